"""minfer perplexity against sums made here from --logprobs-free arithmetic: the saved rows; its comparison, and hostile bases."""
import json
import math
import os
import stat
import struct

import command
from command import SCRATCH, good, refused, run, scratch, tiny

MODEL = tiny("qwen2-mix")
TEXT = scratch("text.txt", b"The kettle sang while the bread was cut; nobody spoke of the letter. " * 40)
CTX = 32


def measure(*args):
    return json.loads(good("perplexity", *args, "--json").out)


class Base:
    """A saved file, read by its format."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        assert self.data[:8] == b"_logits_"
        self.n_ctx, self.n_vocab, self.n_chunk = struct.unpack_from("<Iii", self.data, 8)
        at = 20 + 4 * self.n_ctx * self.n_chunk
        self.tokens = struct.unpack_from(f"<{self.n_ctx * self.n_chunk}i", self.data, 20)
        self.rows_in_chunk = self.n_ctx - 1 - self.n_ctx // 2
        stride = 8 + (self.n_vocab + 1) // 2 * 4
        assert len(self.data) == at + self.n_chunk * self.rows_in_chunk * stride
        self.rows = []
        for r in range(self.n_chunk * self.rows_in_chunk):
            scale, least = struct.unpack_from("<ff", self.data, at + r * stride)
            values = struct.unpack_from(f"<{self.n_vocab}H", self.data, at + r * stride + 8)
            self.rows.append([scale * v + least for v in values])

    def nll(self):
        out = []
        for c in range(self.n_chunk):
            for i in range(self.rows_in_chunk):
                target = self.tokens[c * self.n_ctx + self.n_ctx // 2 + i + 1]
                out.append(-self.rows[c * self.rows_in_chunk + i][target])
        return out


def mean(values):
    m = sum(values) / len(values)
    return m, math.sqrt((sum(v * v for v in values) / len(values) - m * m) / (len(values) - 1))


def close(a, b, tolerance):
    assert abs(a - b) <= tolerance * max(1, abs(b)), (a, b)


def perplexity():
    saved = os.path.join(SCRATCH, "base.kld")
    r = measure(MODEL, "-f", TEXT, "-c", str(CTX), "--save-logits", saved)
    base = Base(saved)
    assert (base.n_ctx, base.n_chunk) == (CTX, r["n_chunk"]) and r["n_chunk"] > 5 and r["n_scored"] == len(base.rows)
    assert not os.path.exists(saved + ".part")
    ids = json.loads(good("tokenize", MODEL, "-f", TEXT, "--json").out)["ids"]
    assert list(base.tokens) == ids[:len(base.tokens)] and len(ids) - len(base.tokens) < CTX
    for row in base.rows:  # they are probabilities
        close(sum(math.exp(v) for v in row), 1, 2e-3)
    m, error = mean(base.nll())
    close(r["perplexity"], math.exp(m), 1e-3)
    close(r["perplexity_error"], math.exp(m) * error, 1e-3)
    assert measure(MODEL, "-f", TEXT, "-c", str(CTX), "-b", "7", "-t", "1", "--cpu", "scalar") == r  # the same bytes
    few = measure(MODEL, "-f", TEXT, "-c", str(CTX), "--chunks", "2")
    assert few["n_chunk"] == 2 and few["n_scored"] == 2 * base.rows_in_chunk
    assert b"perplexity  " in good("perplexity", MODEL, "-f", TEXT, "-c", str(CTX), "--chunks", "1").out


def divergence():
    one, other = os.path.join(SCRATCH, "one.kld"), os.path.join(SCRATCH, "other.kld")
    first = measure(MODEL, "-f", TEXT, "-c", str(CTX), "--chunks", "4", "--save-logits", one)
    same = measure(MODEL, "--kl-base", one)
    assert same["perplexity"] == first["perplexity"] and same["same_top"] > 0.99 and same["kl_mean"] < 1e-6, same
    second = tiny("qwen2-f32")
    r = measure(second, "--kl-base", one)
    measure(second, "-f", TEXT, "-c", str(CTX), "--chunks", "4", "--save-logits", other)
    a, b = Base(one), Base(other)
    kl = [sum(math.exp(p) * (p - q) for p, q in zip(x, y) if p > -16) for x, y in zip(a.rows, b.rows)]
    m, error = mean(kl)
    assert m > 1e-4
    close(r["kl_mean"], m, 2e-3)
    close(r["kl_mean_error"], error, 2e-3)
    close(r["kl_max"], max(kl), 5e-3)
    top = sum(x.index(max(x)) == y.index(max(y)) for x, y in zip(a.rows, b.rows)) / len(kl)
    assert abs(r["same_top"] - top) <= 2 / len(kl), (r["same_top"], top)
    m, error = mean([x - y for x, y in zip(b.nll(), a.nll())])
    close(r["log_ratio"], m, 2e-3)
    close(r["base_perplexity"], math.exp(mean(a.nll())[0]), 1e-3)
    assert b"mean KL divergence" in good("perplexity", second, "--kl-base", one).out


def hostile_bases():
    path = os.path.join(SCRATCH, "base.kld")
    measure(MODEL, "-f", TEXT, "-c", str(CTX), "--chunks", "2", "--save-logits", path)
    with open(path, "rb") as f:
        good_file = f.read()

    def broken(part, data):
        refused(1, part, "perplexity", MODEL, "--kl-base", scratch("broken.kld", data))

    def header(n_ctx, n_vocab, n_chunk):
        return good_file[:8] + struct.pack("<Iii", n_ctx, n_vocab, n_chunk) + good_file[20:]

    n_vocab = struct.unpack_from("<i", good_file, 12)[0]
    broken("is no file of saved log-probabilities", b"")
    broken("is no file of saved log-probabilities", b"_logits?" + good_file[8:])
    broken("asks for another size", good_file[:-1])
    broken("asks for another size", good_file + b"x")
    broken("asks for another size", header(CTX, n_vocab, 3))
    broken("asks for", header(1 << 20, n_vocab, 2**31 - 1))
    for n_ctx in (0, 7, 2**31, 2**32 - 1):
        broken("the context is", header(n_ctx, n_vocab, 2))
    for n in (0, -1):
        broken("chunks", header(CTX, n_vocab, n))
        broken("ids; this one has", header(CTX, n, 2))
    broken("token 0 of chunk 0 is -1", good_file[:20] + struct.pack("<i", -1) + good_file[24:])
    broken("token 0 of chunk 0 is", good_file[:20] + struct.pack("<i", n_vocab) + good_file[24:])
    rows = 20 + 4 * CTX * 2
    for value in (float("nan"), float("inf"), -1.0):
        broken("row 0 of chunk 0 of the base: scale", good_file[:rows] + struct.pack("<f", value) + good_file[rows + 4:])
    assert run("perplexity", tiny("llama-f32"), "--kl-base", path).code in (0, 1)


def refusals():
    refused(2, "no model", "perplexity", "-f", TEXT, env={"XDG_CACHE_HOME": SCRATCH})
    refused(1, "a chunk has 512 (--ctx)", "perplexity", MODEL, "-p", "short")
    refused(1, "a chunk has 8 to", "perplexity", MODEL, "-f", TEXT, "-c", "7")
    refused(1, "longer than the model's maximum of 1024", "perplexity", MODEL, "-f", scratch("long.txt", b"word and " * 4000), "-c", "2000")
    refused(1, "--chunks 0", "perplexity", MODEL, "-f", TEXT, "-c", "16", "--chunks", "0")
    refused(2, "--save-logits and --kl-base are both given", "perplexity", MODEL, "--save-logits", "a", "--kl-base", "b")
    refused(1, "No such file", "perplexity", MODEL, "--kl-base", "nothing.kld")
    refused(1, "can't write", "perplexity", MODEL, "-f", TEXT, "-c", "16", "--chunks", "1", "--save-logits", os.path.join(SCRATCH, "no", "folder"))
    folder = os.path.join(SCRATCH, "folder")
    os.mkdir(folder)
    refused(1, "can't write", "perplexity", MODEL, "-f", TEXT, "-c", "16", "--chunks", "1", "--save-logits", folder)
    assert not os.path.exists(folder + ".part")


def no_regular_file():
    """What is written takes no device's or folder's place."""
    folder = os.path.join(SCRATCH, "folder")
    os.mkfifo(folder + ".fifo")
    os.makedirs(folder, exist_ok=True)
    for path in (folder, folder + ".fifo"):
        refused(1, "it is there and no regular file", "perplexity", tiny("qwen2-mix"), "-p", "x y z " * 40, "--ctx", "16", "--save-logits", path)
    assert stat.S_ISFIFO(os.stat(folder + ".fifo").st_mode)


command.main([perplexity, divergence, hostile_bases, refusals, no_regular_file])
