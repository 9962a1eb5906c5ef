#!/usr/bin/env python3
"""Logits of the tiny models of tests/fixtures/tiny with every rope scaling, as transformers computes them in float32.

    python tests/oracle/rope_scalings.py tests/fixtures

writes rope_scalings.bin, which also says which keys and tensors each case adds to its model's file. Little-endian:

    72 bytes of versions, u32 number of cases, per case:
        24 bytes name, 16 bytes model, u32 context to configure
        u32 number of keys, per key: 56 bytes name, u32 GGUF kind (4 u32, 6 f32, 8 string), 16 bytes value (a string ends in NULs)
        u32 number of tensors, per tensor: 32 bytes name, u32 n, n f32
        u32 sequence (0 short.ids.txt, 1 long.ids.txt), u32 n_vocab, u32 number of rows, per row: u32 row, f32 logits[n_vocab]
"""

import struct
import sys
from pathlib import Path

import numpy as np
import torch
import transformers

import torch_model

ROWS = {0: (15, 89), 1: (63, 256, 299)}


def longrope(half):
    """Divisors that grow over the pairs, as published ones do."""
    i = np.arange(half)
    short, long = 1 + 0.05 * i, 1 + 0.6 * i**1.5
    return [float(np.float32(x)) for x in short], [float(np.float32(x)) for x in long]


def cases():
    """(name, model, context, sequence, transformers' rope parameters, keys, tensors)"""
    out = []
    for model, half in (("llama-f32", 8), ("qwen2-f32", 8), ("qwen3-f16", 16)):
        arch = model.split("-")[0]
        short, long = longrope(half)
        factors = {"rope_factors_short.weight": short, "rope_factors_long.weight": long}
        scaled = [
            ("linear", 512, 1, {"rope_type": "linear", "factor": 4.0}, {"type": "linear", "factor": 4.0}, {}),
            ("untyped", 512, 1, {"rope_type": "linear", "factor": 2.5}, {"factor": 2.5}, {}),
            (
                "yarn", 512, 1,
                {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 256},
                {"type": "yarn", "factor": 4.0, "original_context_length": 256}, {},
            ),
            (
                "yarn-all", 512, 1,
                {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 128, "beta_fast": 16.0,
                 "beta_slow": 2.0, "attention_factor": 1.125},
                {"type": "yarn", "factor": 8.0, "original_context_length": 128, "yarn_beta_fast": 16.0, "yarn_beta_slow": 2.0,
                 "yarn_attn_factor": 1.125}, {},
            ),
        ]  # fmt: skip
        published = {"rope_type": "longrope", "short_factor": short, "long_factor": long, "attention_factor": 1.1875}
        for name, n_ctx, sequence, orig in (("long", 512, 1, 256), ("short", 256, 0, 256)):
            scaled.append((
                f"longrope-{name}", n_ctx, sequence, {**published, "original_max_position_embeddings": orig},
                {"type": "longrope", "original_context_length": orig, "attn_factor": 1.1875}, factors,
            ))  # fmt: skip
        for name, n_ctx, sequence, parameters, keys, tensors in scaled:
            out.append((f"{arch} {name}", model, n_ctx, sequence, parameters,
                        {f"{arch}.rope.scaling.{k}": v for k, v in keys.items()}, tensors))  # fmt: skip
    llama3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 256}  # fmt: skip
    out.append(("llama llama3", "llama3-f16", 512, 1, llama3, {}, {}))  # its rope_freqs.weight is in the file
    return out


def logits_of(path, parameters, ids):
    model, n_vocab, meta = torch_model.load(path)
    arch = meta["general.architecture"]
    config = model.config
    config.rope_parameters = {**parameters, "rope_theta": meta.get(f"{arch}.rope.freq_base", 10000.0)}
    model.model.rotary_emb = type(model.model.rotary_emb)(config)
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].numpy(), n_vocab


def value(v):
    if isinstance(v, str):
        return 8, v.encode().ljust(16, b"\0")
    return (4, struct.pack("<I", v).ljust(16, b"\0")) if isinstance(v, int) else (6, struct.pack("<f", v).ljust(16, b"\0"))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    folder = Path(sys.argv[1])
    sequences = [[int(t) for t in (folder / "tiny" / f"{n}.ids.txt").read_text().split()] for n in ("short", "long")]
    versions = ", ".join(f"{k} {v}" for k, v in torch_model.versions().items() if k in ("torch", "transformers", "numpy"))
    all_cases = cases()
    out = versions.encode().ljust(72, b"\0") + struct.pack("<I", len(all_cases))
    for name, model, n_ctx, sequence, parameters, keys, tensors in all_cases:
        logits, n_vocab = logits_of(folder / "tiny" / f"{model}.gguf", parameters, sequences[sequence])
        out += name.encode().ljust(24, b"\0") + model.encode().ljust(16, b"\0") + struct.pack("<II", n_ctx, len(keys))
        for key, v in keys.items():
            kind, data = value(v)
            out += key.encode().ljust(56, b"\0") + struct.pack("<I", kind) + data
        out += struct.pack("<I", len(tensors))
        for tensor, values in tensors.items():
            out += tensor.encode().ljust(32, b"\0") + struct.pack(f"<I{len(values)}f", len(values), *values)
        rows = ROWS[sequence]
        out += struct.pack("<III", sequence, n_vocab, len(rows))
        for row in rows:
            out += struct.pack("<I", row) + logits[row].astype("<f4").tobytes()
    path = folder / "rope_scalings.bin"
    path.write_bytes(out)
    print(f"{path}: {len(out)} bytes, {len(all_cases)} cases")


if __name__ == "__main__":
    main()
