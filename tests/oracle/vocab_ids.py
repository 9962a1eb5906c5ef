#!/usr/bin/env python3
"""Digests of the published tokenizers' ids of the hard corpus, for the vocabulary files of llama.cpp's tree: tests/fixtures/vocab_ids.json.

    vocab_ids.py FOLDER      the folder with ggml-vocab-*.gguf

For each file (and for one file with each pre-tokenizer that has no vocabulary there, "FILE@PRE"), 8 hexadecimal digits a text: the
start of the SHA-256 of the ids in decimal with spaces between. "parsed": control tokens are parsed; "plain": they are not. Texts are those
of token_corpus.json. The tokenizers are built by token_ids.py.
"""
import hashlib
import os
import sys

import sentencepiece
import tokenizers

import token_ids

FILES = ("command-r", "deepseek-coder", "falcon", "gpt-2", "llama-bpe", "llama-spm", "mpt", "qwen2", "qwen35", "refact", "starcoder")
OTHERS = ("afmoe", "youtu", "spark2_5", "seed-coder", "minicpm5", "laguna", "chameleon", "viking", "default", "deepseek-v3", "gpt-4o",
          "tekken", "bailingmoe", "exaone-moe", "bloom", "kimi-k2", "jais-2", "superbpe", "tiny_aya", "smollm")  # fmt: skip


def digest(ids):
    return hashlib.sha256(" ".join(map(str, ids)).encode()).hexdigest()[:8]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    texts = token_ids.corpus()
    out = {}
    for name, pre in [(f, None) for f in FILES] + [("gpt-2", p) for p in OTHERS]:
        path = os.path.join(sys.argv[1], f"ggml-vocab-{name}.gguf")
        parsed, plain = token_ids.encoders(path, pre)
        out[f"ggml-vocab-{name}.gguf" + (f"@{pre}" if pre else "")] = {
            "parsed": "".join(digest(parsed(t)) for t in texts),
            "plain": "".join(digest(plain(t)) for t in texts),
        }
        print(name, pre or "", file=sys.stderr)
    made_by = {"script": "tests/oracle/vocab_ids.py", "tokenizers": tokenizers.__version__, "sentencepiece": sentencepiece.__version__}
    token_ids.write("vocab_ids.json", {"made_by": made_by, "files": out})


if __name__ == "__main__":
    main()
