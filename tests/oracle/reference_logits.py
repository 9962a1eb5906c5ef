#!/usr/bin/env python3
"""Writes the float32 logits of a real GGUF over the corpus: what kl.py measures engines against.

    python tests/oracle/reference_logits.py MODEL.gguf FOLDER [--ctx 512] [--threads 1] [--llama-base]

Weights are dequantized to float32 and transformers computes every position of each chunk from an empty context. In FOLDER:

    ids.txt          the ids of all chunks, one chunk a line
    logits.f32       float32 [n_chunk * ctx][n_vocab], little-endian (2.5 GB for a vocabulary of 151,936)
    reference.json   model and its sha256, n_vocab, n_ctx, n_chunk, files of the corpus, versions
    llama-base.bin   with --llama-base: the same in the file format of `llama-perplexity --kl-divergence-base`, which keeps
                     the second half of each chunk as 16-bit steps below the largest logit

    llama-perplexity -m MODEL.gguf --kl-divergence --kl-divergence-base FOLDER/llama-base.bin -c 512
"""

import argparse
import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import torch

import corpus
import torch_model


def llama_base_rows(logits):
    """Rows as llama-perplexity keeps them: f32 step, f32 least log probability, then u16 steps, padded to an even count."""
    top = logits.max(axis=1, keepdims=True)
    low = np.maximum(logits.min(axis=1, keepdims=True), top - 16)
    log_sum = np.log(np.exp((logits - top).astype(np.float64)).sum(axis=1, keepdims=True))
    step = ((top - low) / 65535).astype(np.float32)
    rows = np.zeros((logits.shape[0], 4 + (logits.shape[1] + 1) // 2 * 2), np.uint16)
    rows[:, 0:2] = step.view(np.uint16)
    rows[:, 2:4] = (low - top - log_sum).astype(np.float32).view(np.uint16)
    rows[:, 4 : 4 + logits.shape[1]] = np.rint(np.maximum(logits - low, 0) / step).astype(np.uint16)
    return rows


def write_reference(model, chunks, folder, n_vocab, base):
    n_ctx = len(chunks[0])
    if base:
        base.write(b"_logits_" + struct.pack("<Iii", n_ctx, n_vocab, len(chunks)))
        base.write(np.array(chunks, "<i4").tobytes())
    with open(folder / "logits.f32", "wb") as out, torch.no_grad():
        for i, ids in enumerate(chunks):
            logits = model(torch.tensor([ids])).logits[0].numpy()
            out.write(np.ascontiguousarray(logits, "<f4"))
            if base:
                base.write(llama_base_rows(logits[n_ctx // 2 : n_ctx - 1]).tobytes())
            print(f"chunk {i + 1} of {len(chunks)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ctx", type=int, default=512)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--llama-base", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.folder.mkdir(parents=True, exist_ok=True)
    model, n_vocab, meta = torch_model.load(args.model)
    chunks = corpus.chunks(meta, args.ctx)
    (args.folder / "ids.txt").write_text("".join(" ".join(map(str, ids)) + "\n" for ids in chunks))
    if args.llama_base:
        with open(args.folder / "llama-base.bin", "wb") as base:
            write_reference(model, chunks, args.folder, n_vocab, base)
    else:
        write_reference(model, chunks, args.folder, n_vocab, None)
    with open(args.model, "rb") as f:
        sha256 = hashlib.file_digest(f, "sha256").hexdigest()
    facts = dict(
        model=args.model.name,
        sha256=sha256,
        n_vocab=n_vocab,
        n_ctx=args.ctx,
        n_chunk=len(chunks),
        corpus=[str(path) for path in corpus.FILES],
        versions=torch_model.versions(),
    )
    (args.folder / "reference.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
