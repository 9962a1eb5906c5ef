#!/usr/bin/env python3
"""How far engines' quantized arithmetic is from the float32 pass: mean KL divergence and agreement of the most likely token.

    python tests/oracle/kl.py MODEL.gguf FOLDER [--llama LLAMA_CPP] [--minfer DUMP_LOGITS] [--threads 1] [--limit 1.05]

FOLDER is what reference_logits.py wrote for the same model. LLAMA_CPP is a built source tree of llama.cpp (static libraries
in build/), against which llama_logits.c is compiled into FOLDER. DUMP_LOGITS is minfer's tool of that name. They are run as

    PROGRAM MODEL IDS_FILE N_CTX OUT.f32 [THREADS]

and their logits are read from a pipe, so nothing but the reference is on disk. KL is that of the engine's distribution from
the reference's, sum p_ref * (log p_ref - log p), in nats, over every row but the last of each chunk. The table's last column
is each mean as a multiple of llama.cpp's; when that is above --limit for minfer, the exit status is 1.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

ROWS_AT_ONCE = 32
HERE = Path(__file__).resolve().parent


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def build_llama_logits(tree, folder):
    build = tree / "build"
    libraries = [build / "src/libllama.a"]
    libraries += sorted((build / "ggml/src").glob("libggml*.a"), key=lambda p: (p.name != "libggml.a", "base" in p.name))
    for library in libraries:
        if not library.exists():
            sys.exit(f"{library} is missing: build llama.cpp with -DBUILD_SHARED_LIBS=OFF")
    program = folder / "llama_logits"
    includes = [f"-I{tree}/include", f"-I{tree}/ggml/include"]
    subprocess.run(["cc", "-std=c17", "-O1", "-c", *includes, HERE / "llama_logits.c", "-o", f"{program}.o"], check=True)
    subprocess.run(["c++", f"{program}.o", *libraries, "-fopenmp", "-lpthread", "-ldl", "-lm", "-o", program], check=True)
    return program


def measure(command, folder, facts):
    """Per-row KL and agreement of the logits that command writes to its standard output."""
    n_vocab, n_ctx, n_row = facts["n_vocab"], facts["n_ctx"], facts["n_ctx"] * facts["n_chunk"]
    reference = np.memmap(folder / "logits.f32", "<f4", "r", shape=(n_row, n_vocab))
    divergence, same, finite = np.zeros(n_row), np.zeros(n_row, bool), True
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE) as process:
        for start in range(0, n_row, ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, n_row)
            wanted = (stop - start) * n_vocab * 4
            data = process.stdout.read(wanted)
            if len(data) != wanted:
                sys.exit(f"{command[0]} ended {wanted - len(data)} bytes early in rows {start} to {stop - 1}")
            engine = np.frombuffer(data, "<f4").reshape(-1, n_vocab)
            finite = finite and bool(np.isfinite(engine).all())
            p, q = log_softmax(reference[start:stop]), log_softmax(engine)
            divergence[start:stop] = (np.exp(p) * (p - q)).sum(axis=1)
            same[start:stop] = p.argmax(axis=1) == q.argmax(axis=1)
        if process.stdout.read(1):
            sys.exit(f"{command[0]} wrote more than {n_row} rows of {n_vocab}")
    if process.returncode != 0 or not finite:
        sys.exit(f"{command[0]}: exit status {process.returncode}" + ("" if finite else ", and logits that are not finite"))
    scored = np.arange(n_row) % n_ctx != n_ctx - 1
    return divergence[scored], same[scored]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--llama", type=Path)
    parser.add_argument("--minfer", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1.05)
    args = parser.parse_args()
    facts = json.loads((args.folder / "reference.json").read_text())
    if facts["model"] != args.model.name:
        sys.exit(f"{args.folder} is a reference for {facts['model']}, not {args.model.name}")
    programs = {}
    if args.llama:
        programs["llama.cpp"] = build_llama_logits(args.llama, args.folder)
    if args.minfer:
        programs["minfer"] = args.minfer
    print(f"{args.model.name}, {facts['n_chunk']} chunks of {facts['n_ctx']} ids\n")
    print("| engine | mean KL (nats) | standard error | median | 99 % | same top-1 | rows | of llama.cpp's |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    means = {}
    for name, program in programs.items():
        command = [program, args.model, args.folder / "ids.txt", facts["n_ctx"], "/dev/stdout"]
        kl, same = measure(command + [args.threads] if name == "llama.cpp" else command, args.folder, facts)
        np.save(args.folder / f"{name}.kl.npy", kl)
        means[name] = kl.mean()
        ratio = f"{means[name] / means['llama.cpp']:.3f}" if "llama.cpp" in means else ""
        error = kl.std() / np.sqrt(len(kl))
        print(
            f"| {name} | {means[name]:.6f} | {error:.6f} | {np.median(kl):.6f} | {np.quantile(kl, 0.99):.5f} "
            f"| {100 * same.mean():.2f} % | {len(kl)} | {ratio} |",
            flush=True,
        )
    if len(means) == 2 and means["minfer"] > args.limit * means["llama.cpp"]:
        sys.exit(f"minfer's mean KL is more than {args.limit} times llama.cpp's")


if __name__ == "__main__":
    main()
