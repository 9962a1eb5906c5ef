#!/usr/bin/env python3
"""Makes the tiny random models of tests/fixtures/tiny and the logits that transformers computes for them.

    python tests/oracle/tiny_models.py tests/fixtures/tiny

needs numpy, gguf, torch and transformers; running it again with the versions named in a NAME.json gives the same bytes.
Weights are random, vocabulary and merges are trained here on the text below, so nothing in the files is anyone else's.

Models (all: 2 layers, grouped heads, context 1024, byte-level BPE, ChatML template, <|im_end|> ends a turn):

    llama-f32    F32      interleaved rope (rows of q and k permuted as llama.cpp's converter does), output.weight, smollm
    llama3-f16   F16      rope_freqs.weight, tied head, llama-bpe, begins with BOS
    llama-mix    mixture  Q4_0 Q4_1 Q5_0 Q8_0 Q4_K Q6_K in turn over the matrices, tied head, smollm
    qwen2-f32    F32      NeoX rope, biases, tied head, qwen2
    qwen2-mix    mixture  as a Q4_K_M file: Q4_K, with Q6_K for v, down and the tied embedding, qwen2
    qwen3-f16    F16      per-head norms of q and k, head size 32 beside 4 heads on 64 channels, tied head, qwen2

The expected logits are those of the dequantized weights in float32 (transformers, eager attention, one thread), for two
sequences that every model shares: short.ids.txt (90 ids, crosses a block of 64 cells) and long.ids.txt (300 ids, crosses a
split of 256 cells). The files of ids hold decimal numbers between white space. The activations that meet quantized weights
are rounded to 8 bit as docs/arithmetic.md says, so an engine's logits differ by the rounding of float32 only, and where that
tips an activation to the next byte.

NAME.logits.bin, all little-endian:

    u32 n_vocab, u32 n_record, then n_record times { u32 sequence (0 short, 1 long), u32 row, f32 logits[n_vocab] }

where row counts the sequence's positions from 0. NAME.json holds the same facts in words, the versions and sha256 sums.
"""

import hashlib
import json
import re
import struct
import sys
from collections import Counter
from pathlib import Path

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type

import torch_model

TEXT = """
The kettle sang while the rain drew lines on the window. There was bread on the table, and the bread was still warm.
She read the letter twice, then turned it over, as if there were more to read on the other side of the paper.
In the morning the river was higher than the road, and the road was the only thing that led there.
We count the stones in the wall: the first one, the other one, and then the one that nobody remembers.
A small engine reads a file, and then it answers. The answer is the same in the morning and in the evening.
for (size_t i = 0; i < count; i++) { sum += values[i]; } return sum;
def area(width, height): return width * height
if (there is an error) { return the error; } else { return the value; }
"""

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]

CHAT_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

SEQUENCES = {"short": (90, (0, 1, 15, 62, 63, 64, 65, 89)), "long": (300, (254, 255, 256, 257, 299))}
SMALLEST_VOCABULARY = 288

MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
MIXTURE = (Type.Q4_K, Type.Q6_K, Type.Q5_0, Type.Q4_0, Type.Q8_0, Type.Q4_0, Type.Q4_1)
MIXTURE_2 = (Type.Q4_1, Type.Q8_0, Type.Q4_K, Type.Q6_K, Type.Q4_0, Type.Q5_0, Type.Q8_0)
Q4_K_M = (Type.Q4_K, Type.Q4_K, Type.Q6_K, Type.Q4_K, Type.Q4_K, Type.Q4_K, Type.Q6_K)

# Sizes, then the type of each layer's matrices in the order of MATRICES, then that of the embedding and the head.
MODELS = {
    "llama-f32": dict(
        arch="llama", seed=11, n_embd=64, n_head=4, n_head_kv=2, head_dim=16, n_ff=48, base=100000.0, eps=1e-4, tied=False,
        pre="smollm", n_merge=29, layers=[(Type.F32,) * 7] * 2, embd=Type.F32,
    ),
    "llama3-f16": dict(
        arch="llama", seed=12, n_embd=64, n_head=4, n_head_kv=2, head_dim=16, n_ff=48, base=500000.0, eps=1e-5, tied=True,
        pre="llama-bpe", n_merge=29, layers=[(Type.F16,) * 7] * 2, embd=Type.F16,
        llama3=dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=256),
    ),
    "llama-mix": dict(
        arch="llama", seed=13, n_embd=256, n_head=8, n_head_kv=2, head_dim=32, n_ff=128, base=100000.0, eps=1e-5, tied=True,
        pre="smollm", n_merge=29, layers=[MIXTURE, MIXTURE_2], embd=Type.Q6_K,
    ),
    "qwen2-f32": dict(
        arch="qwen2", seed=21, n_embd=64, n_head=4, n_head_kv=2, head_dim=16, n_ff=48, base=1000000.0, eps=1e-6, tied=True,
        pre="qwen2", n_merge=32, layers=[(Type.F32,) * 7] * 2, embd=Type.F32,
    ),
    "qwen2-mix": dict(
        arch="qwen2", seed=22, n_embd=256, n_head=4, n_head_kv=1, head_dim=64, n_ff=256, base=1000000.0, eps=1e-6, tied=True,
        pre="qwen2", n_merge=32, layers=[Q4_K_M] * 2, embd=Type.Q6_K,
    ),
    "qwen3-f16": dict(
        arch="qwen3", seed=31, n_embd=64, n_head=4, n_head_kv=2, head_dim=32, n_ff=48, base=1000000.0, eps=1e-6, tied=True,
        pre="qwen2", n_merge=32, layers=[(Type.F16,) * 7] * 2, embd=Type.F16,
    ),
}


# The vocabulary


def byte_letters():
    """The printable letter that GPT-2's byte-level BPE writes for each byte."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


def train_merges(n_merge):
    """The n_merge most frequent pairs in turn, inside words with their leading space; ties go to the smaller pair."""
    letters = byte_letters()
    found = Counter(re.findall(r" ?[A-Za-z]+", TEXT))
    words = [([letters[b] for b in word.encode()], n) for word, n in found.items()]
    merges = []
    for _ in range(n_merge):
        pairs = Counter()
        for parts, n in words:
            for pair in zip(parts, parts[1:]):
                pairs[pair] += n
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for parts, _ in words:
            i = 0
            while i + 1 < len(parts):
                if (parts[i], parts[i + 1]) == best:
                    parts[i : i + 2] = [best[0] + best[1]]
                i += 1
    return merges


def write_vocabulary(writer, spec):
    letters = byte_letters()
    merges = train_merges(spec["n_merge"])
    tokens = [letters[b] for b in range(256)] + [a + b for a, b in merges] + SPECIAL
    types = [gguf.TokenType.NORMAL] * (len(tokens) - len(SPECIAL)) + [gguf.TokenType.CONTROL] * len(SPECIAL)
    first = len(tokens) - len(SPECIAL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(spec["pre"])
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([f"{a} {b}" for a, b in merges])
    writer.add_bos_token_id(first)
    writer.add_eos_token_id(first + 2)
    writer.add_pad_token_id(first)
    writer.add_add_bos_token(spec["pre"] == "llama-bpe")
    writer.add_chat_template(CHAT_TEMPLATE)
    return len(tokens)


# Number formats that gguf's Python package decodes but does not encode. Plain rounding: good enough for random weights.


def encode_q4_k(x):
    """Rows of a multiple of 256 floats into Q4_K: d, dmin, 8 six-bit scales and minimums, 128 bytes of nibbles."""
    blocks = x.reshape(-1, 8, 32).astype(np.float32)
    low = np.minimum(blocks.min(axis=2), 0)
    step = (blocks.max(axis=2) - low) / 15
    d = (step.max(axis=1, keepdims=True) / 63).astype(np.float16)
    dmin = (-low.min(axis=1, keepdims=True) / 63).astype(np.float16)
    sc = np.clip(np.rint(step / d.astype(np.float32)), 1, 63).astype(np.uint8)
    m = np.clip(np.rint(-low / dmin.astype(np.float32)), 0, 63).astype(np.uint8)
    offset = (dmin.astype(np.float32) * m)[:, :, None]
    q = np.clip(np.rint((blocks + offset) / (d.astype(np.float32) * sc)[:, :, None]), 0, 15).astype(np.uint8)
    first_scales, first_minimums = sc[:, :4] | (sc[:, 4:] >> 4 << 6), m[:, :4] | (m[:, 4:] >> 4 << 6)
    packed = np.concatenate([first_scales, first_minimums, (sc[:, 4:] & 15) | ((m[:, 4:] & 15) << 4)], axis=1)
    nibbles = (q[:, 0::2] | (q[:, 1::2] << 4)).reshape(-1, 128)
    out = np.concatenate([d.view(np.uint8), dmin.view(np.uint8), packed, nibbles], axis=1)
    return out.reshape(x.shape[0], -1)


def encode_q6_k(x):
    """Rows of a multiple of 256 floats into Q6_K: 128 bytes of low nibbles, 64 of high pairs, 16 int8 scales, d."""
    blocks = x.reshape(-1, 16, 16).astype(np.float32)
    step = np.abs(blocks).max(axis=2) / 31
    d = (step.max(axis=1, keepdims=True) / 127).astype(np.float16)
    sc = np.clip(np.rint(step / d.astype(np.float32)), 1, 127).astype(np.int8)
    q = np.clip(np.rint(blocks / (d.astype(np.float32) * sc)[:, :, None]) + 32, 0, 63).astype(np.uint8)
    q = q.reshape(-1, 2, 4, 32)
    low = (q[:, :, 0:2] & 15) | ((q[:, :, 2:4] & 15) << 4)
    high = (q[:, :, 0] >> 4) | (q[:, :, 1] >> 4 << 2) | (q[:, :, 2] >> 4 << 4) | (q[:, :, 3] >> 4 << 6)
    out = np.concatenate([low.reshape(-1, 128), high.reshape(-1, 64), sc.view(np.uint8), d.view(np.uint8)], axis=1)
    return out.reshape(x.shape[0], -1)


def encode(x, kind):
    encoders = {Type.Q4_K: encode_q4_k, Type.Q6_K: encode_q6_k}
    return encoders[kind](x) if kind in encoders else gguf.quantize(x, kind)


# The weights


def rope_factors(spec):
    """What llama.cpp's converter stores for Llama 3's scaling: by how much each pair's frequency is divided."""
    s, half = spec["llama3"], spec["head_dim"] // 2
    wavelength = 2 * np.pi * spec["base"] ** (np.arange(half) / half)
    longest = s["original_max_position_embeddings"] / s["low_freq_factor"]
    shortest = s["original_max_position_embeddings"] / s["high_freq_factor"]
    smooth = (s["original_max_position_embeddings"] / wavelength - s["low_freq_factor"]) / (
        s["high_freq_factor"] - s["low_freq_factor"]
    )
    between = 1 / ((1 - smooth) / s["factor"] + smooth)
    return np.where(wavelength < shortest, 1, np.where(wavelength > longest, s["factor"], between)).astype(np.float32)


def make_tensors(spec, n_vocab):
    """GGUF's tensors by name as (type, stored array), spread so that attention has peaks and logits a deviation of 2."""
    rng = np.random.default_rng(spec["seed"])
    n_embd, n_ff, q_width = spec["n_embd"], spec["n_ff"], spec["n_head"] * spec["head_dim"]
    kv_width = spec["n_head_kv"] * spec["head_dim"]
    shapes = dict(
        attn_q=(q_width, n_embd, 1.5), attn_k=(kv_width, n_embd, 1.5), attn_v=(kv_width, n_embd, 1.0),
        attn_output=(n_embd, q_width, 1.0), ffn_gate=(n_ff, n_embd, 1.2), ffn_up=(n_ff, n_embd, 1.2),
        ffn_down=(n_embd, n_ff, 1.0),
    )
    tensors = {}

    def matrix(name, kind, n_out, n_in, spread):
        x = (rng.standard_normal((n_out, n_in)) * (spread / np.sqrt(n_in))).astype(np.float32)
        tensors[name + ".weight"] = (kind, encode(x, kind))

    def vector(name, n, middle, spread):
        tensors[name] = (Type.F32, (middle + spread * rng.standard_normal(n)).astype(np.float32))

    matrix("token_embd", spec["embd"], n_vocab, n_embd, 2.0)
    for i, types in enumerate(spec["layers"]):
        vector(f"blk.{i}.attn_norm.weight", n_embd, 1.0, 0.2)
        vector(f"blk.{i}.ffn_norm.weight", n_embd, 1.0, 0.2)
        for name, kind in zip(MATRICES, types):
            matrix(f"blk.{i}.{name}", kind, *shapes[name])
        if spec["arch"] == "qwen2":
            for name in ("attn_q", "attn_k", "attn_v"):
                vector(f"blk.{i}.{name}.bias", shapes[name][0], 0.0, 0.5)
        if spec["arch"] == "qwen3":
            vector(f"blk.{i}.attn_q_norm.weight", spec["head_dim"], 1.3, 0.3)
            vector(f"blk.{i}.attn_k_norm.weight", spec["head_dim"], 1.3, 0.3)
    vector("output_norm.weight", n_embd, 1.0, 0.2)
    if not spec["tied"]:
        matrix("output", spec["embd"], n_vocab, n_embd, 2.0)
    if "llama3" in spec:
        tensors["rope_freqs.weight"] = (Type.F32, rope_factors(spec))
    return tensors


def write_gguf(path, name, spec):
    writer = gguf.GGUFWriter(path, spec["arch"])
    writer.add_name(f"tiny random {name}")
    writer.add_context_length(1024)
    writer.add_embedding_length(spec["n_embd"])
    writer.add_block_count(len(spec["layers"]))
    writer.add_feed_forward_length(spec["n_ff"])
    writer.add_head_count(spec["n_head"])
    writer.add_head_count_kv(spec["n_head_kv"])
    writer.add_layer_norm_rms_eps(spec["eps"])
    writer.add_rope_freq_base(spec["base"])
    if spec["arch"] == "llama":
        writer.add_rope_dimension_count(spec["head_dim"])
    if spec["arch"] == "qwen3":
        writer.add_key_length(spec["head_dim"])
        writer.add_value_length(spec["head_dim"])
    n_vocab = write_vocabulary(writer, spec)
    if spec["arch"] == "llama":
        writer.add_vocab_size(n_vocab)
    for tensor, (kind, data) in make_tensors(spec, n_vocab).items():
        writer.add_tensor(tensor, data, raw_dtype=kind if data.dtype == np.uint8 else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# The reference


def reference_logits(path, sequences):
    """All logits of every sequence, float32 [n_ids, n_vocab] each."""
    model, n_vocab, _ = torch_model.load(path, round_activations=True)
    with torch.no_grad():
        return [model(torch.tensor([ids])).logits[0].numpy() for ids in sequences], n_vocab


def make_sequences():
    rng = np.random.default_rng(7)
    return {name: [int(t) for t in rng.integers(0, SMALLEST_VOCABULARY, n)] for name, (n, _) in SEQUENCES.items()}


def make_model(folder, name, spec, sequences):
    path = folder / f"{name}.gguf"
    write_gguf(path, name, spec)
    logits, n_vocab = reference_logits(path, sequences.values())
    records = [(s, row) for s, (_, rows) in enumerate(SEQUENCES.values()) for row in rows]
    with open(folder / f"{name}.logits.bin", "wb") as f:
        f.write(struct.pack("<II", n_vocab, len(records)))
        for s, row in records:
            f.write(struct.pack("<II", s, row) + logits[s][row].astype("<f4").tobytes())
    facts = dict(
        model=path.name,
        sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
        n_vocab=n_vocab,
        rows={sequence: list(rows) for sequence, (_, rows) in SEQUENCES.items()},
        spread=round(float(logits[0].std()), 3),
        reference="float32 forward pass of the dequantized weights, activations of quantized matmuls in 8 bit, eager attention",
        versions=torch_model.versions(),
    )
    (folder / f"{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    return path.stat().st_size, logits


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    sequences = make_sequences()
    for name, ids in sequences.items():
        lines = [" ".join(map(str, ids[i : i + 25])) for i in range(0, len(ids), 25)]
        (folder / f"{name}.ids.txt").write_text("\n".join(lines) + "\n")
    for name, spec in MODELS.items():
        size, logits = make_model(folder, name, spec, sequences)
        print(f"{name:12} {size:8} bytes, logits' spread {logits[0].std():.2f} and {logits[1].std():.2f}")


if __name__ == "__main__":
    main()
