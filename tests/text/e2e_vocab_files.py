#!/usr/bin/env python3
"""Token ids for the vocabulary files of llama.cpp's tree that minfer's tokenizers cover: its own texts with the published ids beside them
(.inp, .out), and our hard corpus with digests of the published tokenizers' ids (tests/oracle/vocab_ids.py).

The files come from the source package of llama-cpp-python, through pip, into a cache folder ($MINFER_TEST_CACHE, else
~/.cache/minfer-tests); $MINFER_TEST_VOCABS names a folder that has them already. Skipped (77) where they cannot be had.
"""
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "fixtures")
TOOL = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "tests", "ids")
PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
DIGEST = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
WITH_TEXTS = ("command-r", "deepseek-coder", "deepseek-llm", "falcon", "gpt-2", "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "qwen35",
              "refact", "starcoder")  # fmt: skip
# Whose .out was made by llama.cpp, which leaves out the published normalization.
WITHOUT_NFC = ("qwen35",)
REFUSED = {"bert-bge": "bert", "gemma-4": "gemma4", "nomic-bert-moe": "t5"}
SEPARATOR = "\n__ggml_vocab_test__\n"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(77)


def extract(archive, folder):
    with open(archive, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    if digest != DIGEST:
        sys.exit(f"{archive}: sha256 is {digest}, expected {DIGEST}")
    with tarfile.open(archive) as tar:
        for member in tar:
            name = os.path.basename(member.name)
            if member.isfile() and name.startswith("ggml-vocab-") and "/models/" in member.name:
                with tar.extractfile(member) as data, open(os.path.join(folder, name), "wb") as out:
                    out.write(data.read())


def vocabularies():
    """The folder with the files."""
    given = os.environ.get("MINFER_TEST_VOCABS")
    if given:
        return given
    cache = os.environ.get("MINFER_TEST_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "minfer-tests")
    folder = os.path.join(cache, f"vocab-{VERSION}")
    if os.path.isdir(folder):
        return folder
    os.makedirs(cache, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as tmp:
        pip = [sys.executable, "-m", "pip"]
        if subprocess.run([*pip, "--version"], capture_output=True).returncode != 0:
            if subprocess.run([sys.executable, "-m", "venv", os.path.join(tmp, "venv")], capture_output=True).returncode != 0:
                skip("no pip here to fetch the vocabulary files with")
            pip = [os.path.join(tmp, "venv", "bin", "python"), "-m", "pip"]
        fetch = [*pip, "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-binary", PACKAGE, "-d", tmp]
        done = subprocess.run([*fetch, f"{PACKAGE}=={VERSION}"], capture_output=True, text=True)
        archives = [n for n in os.listdir(tmp) if n.endswith(".tar.gz")]
        if done.returncode != 0 or not archives:
            skip(f"the vocabulary files cannot be fetched: {(done.stderr.strip() or 'no archive').splitlines()[-1]}")
        out = os.path.join(tmp, "out")
        os.mkdir(out)
        extract(os.path.join(tmp, archives[0]), out)
        os.rename(out, folder)
    return folder


def ids_of(path, texts, pre=None, flags=()):
    """[(ids with control tokens parsed, ids without)] as lines of text."""
    data = b"".join(b"%d\n%b" % (len(t), t) for t in (t.encode() for t in texts))
    done = subprocess.run([TOOL, *flags, path, *([pre] if pre else [])], input=data, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{path}: {done.stderr.decode()}")
    lines = done.stdout.decode().split("\n")
    return list(zip(lines[0 : 2 * len(texts) : 2], lines[1 : 2 * len(texts) : 2]))


def own_texts(folder, name):
    path = os.path.join(folder, f"ggml-vocab-{name}.gguf")
    with open(path + ".inp", encoding="utf-8", newline="") as f:
        texts = f.read().split(SEPARATOR)
    with open(path + ".out", encoding="utf-8") as f:
        wanted = [" ".join(line.split()) for line in f.read().split("\n")]
    flags = ["--no-nfc"] if name in WITHOUT_NFC else []
    bad = []
    for text, (got, _), want in zip(texts, ids_of(path, texts, None, flags), wanted):
        if got != want:
            bad.append(f"{name}: {text!r}: {got}, published {want}")
    return len(texts), bad


def corpus_texts(folder, key, digests, texts):
    name, _, pre = key.partition("@")
    bad = []
    for i, (text, lines) in enumerate(zip(texts, ids_of(os.path.join(folder, name), texts, pre))):
        for kind, line in zip(("parsed", "plain"), lines):
            if hashlib.sha256(line.encode()).hexdigest()[:8] != digests[kind][8 * i : 8 * i + 8]:
                bad.append(f"{key}, {kind}: {text[:60]!r}: {line[:200]}")
    return 2 * len(texts), bad


def main():
    if not os.path.exists(TOOL):
        skip(f"{TOOL} is not built")
    folder = vocabularies()
    with open(os.path.join(FIXTURES, "token_corpus.json"), encoding="utf-8") as f:
        texts = json.load(f)["texts"]
    with open(os.path.join(FIXTURES, "vocab_ids.json"), encoding="utf-8") as f:
        files = json.load(f)["files"]
    results = [own_texts(folder, name) for name in WITH_TEXTS]
    results += [corpus_texts(folder, key, digests, texts) for key, digests in files.items()]
    bad = [line for _, lines in results for line in lines]
    for name, model in REFUSED.items():
        done = subprocess.run([TOOL, os.path.join(folder, f"ggml-vocab-{name}.gguf")], input="", capture_output=True, text=True)
        if done.returncode != 1 or f"'{model}' is not supported" not in done.stderr:
            bad.append(f"{name}: '{done.stderr.strip()}', a refusal of '{model}' was expected")
    print(f"{sum(n for n, _ in results)} texts over {len(results)} vocabularies and pre-tokenizers, {len(bad)} wrong")
    for line in bad[:40]:
        print(line)
    sys.exit(1 if bad else 0)


main()
