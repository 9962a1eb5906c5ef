#!/usr/bin/env python3
"""Write a GGUF with a real model's shape and vocabulary and random weights, for measurements of speed and memory.

usage: random_model.py SHAPE TYPE VOCAB.gguf OUT.gguf

SHAPE: a key of SHAPES. TYPE: a key of TYPES, or q4_k_m (q4_k, with the embedding, attn_v and ffn_down in q6_k).
VOCAB.gguf lends its tokenizer keys. Rows that no K type divides get q5_0 (q8_0 for q6_k), as llama-quantize does.
The bytes depend on the arguments alone. Only Python's standard library is needed.
"""
import os
import random
import struct
import sys

SHAPES = {  # architecture, n_embd, n_layer, n_head, n_head_kv, head_dim, n_ff, tied output
    "qwen2.5-0.5b": ("qwen2", 896, 24, 14, 2, 64, 4864, True),
    "qwen2.5-1.5b": ("qwen2", 1536, 28, 12, 2, 128, 8960, True),
    "qwen3-0.6b": ("qwen3", 1024, 28, 16, 8, 128, 3072, True),
    "llama-3.2-1b": ("llama", 2048, 16, 32, 8, 64, 8192, True),
    "qwen2.5-7b": ("qwen2", 3584, 28, 28, 4, 128, 18944, False),
}

# GGUF's number of a type, weights and bytes in a block, and the block: ("h", scale of the weights' deviation) is a half float,
# a number is so many random bytes. The factors bring the weights' standard deviation near 1/sqrt(columns).
TYPES = {
    "f32": (0, 1, 4, None),
    "f16": (1, 1, 2, None),
    "q4_0": (2, 32, 18, [("h", 1 / 4.6), 16]),
    "q4_1": (3, 32, 20, [("h", 1 / 4.6), ("h", -7.5 / 4.6), 16]),
    "q5_0": (6, 32, 22, [("h", 1 / 9.2), 20]),
    "q5_1": (7, 32, 24, [("h", 1 / 9.2), ("h", -15.5 / 9.2), 20]),
    "q8_0": (8, 32, 34, [("h", 1 / 74), 32]),
    "q2_k": (10, 256, 84, [80, ("h", 1 / 9), ("h", 1 / 9)]),
    "q3_k": (11, 256, 110, [108, ("h", 1 / 42)]),
    "q4_k": (12, 256, 144, [("h", 1 / 200), ("h", 7.5 / 200), 140]),
    "q5_k": (13, 256, 176, [("h", 1 / 400), ("h", 15.5 / 400), 172]),
    "q6_k": (14, 256, 210, [208, ("h", 1 / 1300)]),
    "iq4_nl": (20, 32, 18, [("h", 1 / 70), 16]),
    "iq4_xs": (23, 256, 136, [("h", 1 / 1300), 134]),
    "bf16": (30, 1, 2, None),
}
FIXED_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # of GGUF's value types
STRING, ARRAY, UINT32, FLOAT32 = 8, 9, 4, 6
ALIGNMENT = 32
PIECE = 1 << 20  # weights of which the random bytes are made; a tensor repeats them from another place


class Reader:
    """Walks the keys of a GGUF file and keeps those of the tokenizer as bytes."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read(64 << 20)
        self.at = 24
        n_keys = struct.unpack_from("<Q", self.data, 16)[0]
        self.tokenizer, self.n_vocab = [], 0
        for _ in range(n_keys):
            start = self.at
            key = self.string()
            kind = self.number("<I", 4)
            count = self.value(kind)
            if key.startswith(b"tokenizer."):
                self.tokenizer.append(self.data[start : self.at])
            if key == b"tokenizer.ggml.tokens":
                self.n_vocab = count
        if not self.n_vocab:
            sys.exit(f"{path}: no tokenizer.ggml.tokens")

    def number(self, form, size):
        self.at += size
        return struct.unpack_from(form, self.data, self.at - size)[0]

    def string(self):
        n = self.number("<Q", 8)
        self.at += n
        return self.data[self.at - n : self.at]

    def value(self, kind):
        """Skips a value; returns the length of an array."""
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            kind, count = self.number("<I", 4), self.number("<Q", 8)
            if kind in FIXED_SIZES:
                self.at += count * FIXED_SIZES[kind]
            else:
                for _ in range(count):
                    self.value(kind)
            return count
        else:
            self.at += FIXED_SIZES[kind]
        return 0


def noise(kind, n_in):
    """Random blocks of PIECE weights."""
    _, block, size, parts = TYPES[kind]
    deviation = n_in**-0.5
    rng = random.Random(f"{kind} {n_in}")
    if parts is None:  # uniform, of the same deviation
        values = [deviation * 1.732 * (2 * rng.random() - 1) for _ in range(PIECE)]
        if kind == "f32":
            return struct.pack(f"<{PIECE}f", *values)
        if kind == "f16":
            return struct.pack(f"<{PIECE}e", *values)
        upper = memoryview(struct.pack(f"<{PIECE}f", *values)).cast("H")[1::2]
        return upper.tobytes()
    out = bytearray()
    for _ in range(PIECE // block):
        for part in parts:
            out += rng.randbytes(part) if isinstance(part, int) else struct.pack("<e", part[1] * deviation)
    assert len(out) == PIECE // block * size
    return bytes(out)


class Model:
    def __init__(self, shape, kind, n_vocab):
        self.arch, self.n_embd, self.n_layer, n_head, n_kv, head_dim, n_ff, tied = SHAPES[shape]
        self.heads = n_head, n_kv, head_dim
        self.n_ff = n_ff
        base, better = ("q4_k", "q6_k") if kind == "q4_k_m" else (kind, kind)
        self.tensors = []  # name, columns, rows, type; type None: float32 of a constant
        self.add("token_embd.weight", self.n_embd, n_vocab, better if kind != "q4_0" else "q8_0")
        for i in range(self.n_layer):
            self.layer(f"blk.{i}.", base, better)
        self.constant("output_norm.weight", self.n_embd, 1.0)
        if not tied:
            self.add("output.weight", self.n_embd, n_vocab, better)

    def add(self, name, n_in, n_out, kind):
        if n_in % TYPES[kind][1]:
            kind = "q8_0" if kind == "q6_k" else "q5_0"
        self.tensors.append((name, n_in, n_out, kind, 0.0))

    def constant(self, name, n, value):
        self.tensors.append((name, n, 0, None, value))

    def layer(self, b, base, better):
        n_head, n_kv, d = self.heads
        self.constant(b + "attn_norm.weight", self.n_embd, 1.0)
        self.constant(b + "ffn_norm.weight", self.n_embd, 1.0)
        self.add(b + "attn_q.weight", self.n_embd, n_head * d, base)
        self.add(b + "attn_k.weight", self.n_embd, n_kv * d, base)
        self.add(b + "attn_v.weight", self.n_embd, n_kv * d, better)
        self.add(b + "attn_output.weight", n_head * d, self.n_embd, base)
        self.add(b + "ffn_gate.weight", self.n_embd, self.n_ff, base)
        self.add(b + "ffn_up.weight", self.n_embd, self.n_ff, base)
        self.add(b + "ffn_down.weight", self.n_ff, self.n_embd, better)
        if self.arch == "qwen2":
            for name, n in (("q", n_head * d), ("k", n_kv * d), ("v", n_kv * d)):
                self.constant(f"{b}attn_{name}.bias", n, 0.01)
        if self.arch == "qwen3":
            self.constant(b + "attn_q_norm.weight", d, 1.0)
            self.constant(b + "attn_k_norm.weight", d, 1.0)

    def keys(self):
        n_head, n_kv, d = self.heads
        whole = {
            "block_count": self.n_layer,
            "context_length": 32768,
            "embedding_length": self.n_embd,
            "feed_forward_length": self.n_ff,
            "attention.head_count": n_head,
            "attention.head_count_kv": n_kv,
            "attention.key_length": d,
            "attention.value_length": d,
            "rope.dimension_count": d,
        }
        real = {"rope.freq_base": 1e6, "attention.layer_norm_rms_epsilon": 1e-6}
        out = [string("general.architecture") + struct.pack("<I", STRING) + string(self.arch)]
        out += [string(f"{self.arch}.{k}") + struct.pack("<II", UINT32, v) for k, v in whole.items()]
        out += [string(f"{self.arch}.{k}") + struct.pack("<If", FLOAT32, v) for k, v in real.items()]
        return out


def string(text):
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def n_bytes(tensor):
    _, n_in, n_out, kind, _ = tensor
    if kind is None:
        return 4 * n_in
    _, block, size, _ = TYPES[kind]
    return n_in * n_out // block * size


def write_tensor(f, tensor, index, pieces):
    _, n_in, _, kind, value = tensor
    if kind is None:
        f.write(struct.pack("<f", value) * n_in)
        return
    piece = pieces.setdefault((kind, n_in), None) or noise(kind, n_in)
    pieces[kind, n_in] = piece
    size = TYPES[kind][2]
    start = index * 7919 * size % len(piece)
    left = n_bytes(tensor)
    while left > 0:
        part = piece[start : start + left]
        f.write(part)
        left -= len(part)
        start = 0


def padding(n):
    return bytes(-n % ALIGNMENT)


def main(shape, kind, vocab_path, out_path):
    vocab = Reader(vocab_path)
    model = Model(shape, kind, vocab.n_vocab)
    keys = model.keys() + vocab.tokenizer
    head = bytearray(b"GGUF" + struct.pack("<IQQ", 3, len(model.tensors), len(keys)) + b"".join(keys))
    offset = 0
    for tensor in model.tensors:
        name, n_in, n_out, kind, _ = tensor
        dims = (n_in,) if kind is None else (n_in, n_out)
        number = 0 if kind is None else TYPES[kind][0]
        head += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, number, offset)
        offset += n_bytes(tensor) + len(padding(n_bytes(tensor)))
    pieces = {}
    with open(out_path + ".part", "wb") as f:
        f.write(head + padding(len(head)))
        for index, tensor in enumerate(model.tensors):
            write_tensor(f, tensor, index, pieces)
            f.write(padding(n_bytes(tensor)))
    os.replace(out_path + ".part", out_path)


if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[1] not in SHAPES or sys.argv[2] not in (*TYPES, "q4_k_m"):
        sys.exit(f"{__doc__}\nshapes: {' '.join(SHAPES)}\ntypes: {' '.join(TYPES)} q4_k_m")
    main(*sys.argv[1:])
