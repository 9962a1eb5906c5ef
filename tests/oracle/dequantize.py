#!/usr/bin/env python3
"""Writes tests/fixtures/dequantize.bin: blocks of every decodable type and what the Python package gguf makes of them.

Layout, little-endian: 'MFDQ', 60 bytes of text (versions), u32 number of size rows, per row (u32 type, u32 values in a block,
u32 bytes in a block, 20 bytes of name); u32 number of cases, per case (u32 type, u32 blocks, u32 values), the blocks, the f32
values.
"""

import struct
import sys
from pathlib import Path

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T

# Where the f16 fields of a block are.
F16_FIELDS = {
    T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q2_K: [80, 82], T.Q3_K: [108],
    T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0], T.IQ4_XS: [0],
}  # fmt: skip

# Zeros, subnormals, the smallest and the largest normal numbers, infinities, a NaN.
EDGES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400, 0x8400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x3C00]


def floats(kind, rng):
    if kind == T.F32:
        bits = rng.integers(0, 1 << 32, 256, dtype=np.uint64).astype(np.uint32)
        return bits.view(np.uint8)
    bits = rng.integers(0, 1 << 16, 512, dtype=np.uint32).astype(np.uint16)
    bits[: len(EDGES)] = EDGES
    return bits.view(np.uint8)


def blocks(kind, rng):
    length, size = GGML_QUANT_SIZES[kind]
    n = 64 if length == 32 else 16
    out = rng.integers(0, 256, (n, size), dtype=np.uint16).astype(np.uint8)
    for field, at in enumerate(F16_FIELDS[kind]):
        for i in range(n):
            # every pair of edges does not fit; the second field walks them at another pace
            bits = EDGES[(i * (1 + 4 * field)) % len(EDGES)] if i < n // 2 else None
            if bits is None:
                bits = int(np.float16(rng.normal(0, 0.05)).view(np.uint16))
            out[i, at : at + 2] = np.frombuffer(struct.pack("<H", bits), np.uint8)
    out[-1, :] = 0
    out[-2, :] = 255
    for at in F16_FIELDS[kind]:
        out[-2, at : at + 2] = np.frombuffer(struct.pack("<H", 0x2E66), np.uint8)
    return out.reshape(-1)


def main():
    path = Path(__file__).parent.parent / "fixtures" / "dequantize.bin"
    rng = np.random.default_rng(20)
    import importlib.metadata as meta

    versions = f"gguf {meta.version('gguf')}, numpy {np.__version__}".encode()
    out = b"MFDQ" + versions.ljust(60, b"\0")
    # gguf 0.19 gives Q8_1 the size it had before its sums became f16; ggml's struct has 36 bytes
    sizes = {t: s for t, s in GGML_QUANT_SIZES.items() if t != T.Q8_1}
    out += struct.pack("<I", len(sizes))
    for kind, (length, size) in sizes.items():
        out += struct.pack("<III", kind, length, size) + kind.name.encode().ljust(20, b"\0")
    kinds = [T.F32, T.F16, T.BF16, *F16_FIELDS]
    out += struct.pack("<I", len(kinds))
    with np.errstate(all="ignore"):
        for kind in kinds:
            data = blocks(kind, rng) if kind in F16_FIELDS else floats(kind, rng)
            values = gguf.quants.dequantize(data, kind).astype("<f4").reshape(-1)
            out += struct.pack("<III", kind, len(data) // GGML_QUANT_SIZES[kind][1], len(values))
            out += data.tobytes() + values.tobytes()
    path.write_bytes(out)
    print(f"{path}: {len(out)} bytes, {len(kinds)} types", file=sys.stderr)


main()
