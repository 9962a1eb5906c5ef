"""minfer info and minfer doctor."""
import json
import re
import struct

import command
from command import good, refused, run, string, tiny, with_metadata, with_text


def text():
    r = good("info", tiny("qwen2-mix"))
    out = r.out.decode()
    assert r.err == ""
    for part in ("GGUF version 3", 'general.architecture                       "qwen2"', "tokenizer.ggml.tokens", "(291 of string)" if "291 of" in out else "of string)",
                 "token_embd.weight", "blk.0.attn_q.weight", "parameters", "memory for --ctx 1024", "enough for --ctx 1024 of at most 1024"):
        assert part in out, f"{part}: {out}"
    assert "blk.1." not in out and "blk.1." in good("info", tiny("qwen2-mix"), "--verbose").out.decode()
    assert max(len(line) for line in out.splitlines()) < 250


def machine_readable():
    r = json.loads(good("info", tiny("qwen2-f32"), "--ctx", "128", "--json").out)
    assert r["metadata"]["general.architecture"] == "qwen2" and r["refusal"] is None
    tokens = r["metadata"]["tokenizer.ggml.tokens"]
    assert tokens["item"] == "string" and tokens["count"] > 256 and len(tokens["first"]) == 6
    assert r["metadata"]["tokenizer.chat_template"].startswith("{%")
    count = 0
    for t in r["tensors"]:
        n = 1
        for d in t["shape"]:
            n *= d
        count += n
        assert t["type"] == "F32" and t["bytes"] == 4 * n, t
    assert count == r["parameters"] == r["types"]["F32"]["parameters"]
    m, meta = r["memory"], r["metadata"]
    assert m["total"] == m["weights"] + m["kv"] + m["activations"] and m["n_ctx"] == 128 and m["largest_n_ctx"] == 1024
    per_cell = 2 * 2 * meta["qwen2.block_count"] * meta["qwen2.attention.head_count_kv"] * meta["qwen2.embedding_length"] // meta["qwen2.attention.head_count"]
    assert 128 * per_cell <= m["kv"] <= 128 * per_cell + 4096, (m, per_cell)
    wide = json.loads(good("info", tiny("qwen2-f32"), "--ctx", "128", "--json", "--cache-type", "f32").out)["memory"]
    assert wide["kv"] > 1.9 * m["kv"]


def contexts():
    r = good("info", tiny("qwen2-f32"), "-c", "99999")
    assert "--ctx 99999 is more than the model's 1024, which is used" in r.err and "memory for --ctx 1024" in r.out.decode()
    refused(1, "-c: 0 is below 1", "info", tiny("qwen2-f32"), "-c", "0")


def other_architectures():
    model = with_text("qwen2-f32", struct.pack("<Q", 5) + b"qwen2", struct.pack("<Q", 5) + b"qqen2")
    r = good("info", model)
    assert "minfer can't run this file" in r.err and "unsupported architecture 'qqen2'" in r.err, r.err
    assert json.loads(good("info", model, "--json").out)["memory"] is None


def hostile_values():
    nested = struct.pack("<IQ", 9, 2) + 2 * (struct.pack("<IQ", 8, 1) + string("deep"))
    pairs = [("odd.text", 8, string("line\nbreak \x1b[31m \u20ac" + "\u20ac" * 60)), ("odd.bytes", 8, string(b"\xff\xfe")), ("odd.nested", 9, nested),
             ("odd.empty", 9, struct.pack("<IQ", 5, 0)), ("odd.big", 10, struct.pack("<Q", 2**64 - 1)), ("odd.nan", 6, struct.pack("<f", float("nan"))),
             ("odd.bool", 7, b"\x01"), ("odd.reals", 9, struct.pack("<IQ3f", 6, 3, 1.5, -2, 1e30))]
    model = with_metadata("qwen2-f32", pairs)
    r = good("info", model)
    out = r.out.decode()
    assert "\x1b" not in out and "line\\nbreak" in out and "18446744073709551615" in out and "(2 of array)" in out and "[1.5, -2, 1e+30]" in out, out
    meta = json.loads(good("info", model, "--json").out)["metadata"]
    assert meta["odd.bool"] is True and meta["odd.nan"] is None and meta["odd.nested"] == {"item": "array", "count": 2, "first": []}, meta
    assert meta["odd.empty"]["count"] == 0 and meta["odd.text"].endswith("\u20ac" * 60)
    assert meta["odd.big"] == 2**64, meta["odd.big"]


def refusals():
    refused(2, "no model", "info")
    refused(1, "No such file", "info", "nothing.gguf")
    refused(2, "unexpected word", "info", tiny("qwen2-f32"), "x")
    refused(2, "minfer info does not take the flag --temp", "info", tiny("qwen2-f32"), "--temp", "1")
    refused(1, "unknown backend", "info", tiny("qwen2-f32"), "--backend", "tpu")


def doctor():
    r = json.loads(good("doctor", "--json").out)
    assert r["threads"] >= 1 and r["read_bytes_per_second"] > 1e8 and r["int8_macs_per_second"] > 1e8
    assert r["memory"] >= r["memory_available"] > 0
    rows = {k["name"]: k for k in r["kernels"]}
    assert rows["scalar"]["usable"] and rows[r["kernels_chosen"]]["note"].startswith("chosen")
    assert all(not k["usable"] or not k["note"].startswith("not usable") for k in r["kernels"])
    backends = {b["name"]: b for b in r["backends"]}
    assert backends["cpu"]["usable"] and "not compiled into" in backends["cuda"]["note"]
    scalar = good("doctor", "--cpu", "scalar", "-t", "1").out.decode()
    assert re.search(r"scalar +chosen: ", scalar) and "1 by --threads" in scalar, scalar
    refused(1, "avx999", "doctor", "--cpu", "avx999")
    refused(2, "unexpected word", "doctor", "x")
    assert run("doctor", "--backend", "cuda").code == 1


command.main([text, machine_readable, contexts, other_architectures, hostile_values, refusals, doctor])
