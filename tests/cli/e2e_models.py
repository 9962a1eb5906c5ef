"""minfer list and rm, and the names of cached models."""
import json
import os
import pty
import shutil
import subprocess

import command
from command import MINFER, SCRATCH, environment, good, refused, run, tiny

CACHE = os.path.join(SCRATCH, "cache")
FOLDER = os.path.join(CACHE, "minfer", "models")
ENV = {"XDG_CACHE_HOME": CACHE}
RAW = ["--raw", "-n", "2", "--greedy"]


def fill(*names):
    shutil.rmtree(CACHE, ignore_errors=True)
    os.makedirs(FOLDER)
    for name in names:
        path = os.path.join(FOLDER, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        shutil.copy(tiny("qwen2-mix"), path)


def listing():
    shutil.rmtree(CACHE, ignore_errors=True)
    r = good("list", env=ENV)
    assert r.out == b"" and f"no models in {FOLDER}" in r.err
    assert json.loads(good("list", "--json", env=ENV).out) == {"directory": FOLDER, "models": []}
    fill("Alpha-1B-Q4_0.gguf", "org/beta.GGUF", "notes.txt", ".hidden.gguf")
    with open(os.path.join(FOLDER, "torn.gguf"), "wb") as f:
        f.write(b"GGUF")
    lines = good("list", env=ENV).out.decode().splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "Alpha-1B-Q4_0", "org/beta", "torn"], lines
    assert lines[1].split()[-1] == "qwen2" and "can't be read" in lines[3]
    r = json.loads(good("list", "--json", env=ENV).out)["models"]
    assert [m["name"] for m in r] == ["Alpha-1B-Q4_0", "org/beta", "torn"]
    assert r[0]["bytes"] == os.path.getsize(r[0]["path"]) and r[0]["architecture"] == "qwen2" and r[0]["parameters"] > 1000
    assert "refusal" in r[2]
    home = {"HOME": SCRATCH, "XDG_CACHE_HOME": ""}
    assert json.loads(good("list", "--json", env=home).out)["directory"] == os.path.join(SCRATCH, ".cache", "minfer", "models")
    assert json.loads(good("list", "--json", env={**home, "XDG_CACHE_HOME": "relative"}).out)["directory"].startswith(SCRATCH)
    refused(2, "unexpected word", "list", "x", env=ENV)


def names():
    fill("Alpha-1B-Q4_0.gguf", "Alpha-7B-Q8_0.gguf", "org/beta.gguf", "beta-long.gguf", "big-00001-of-00002.gguf", "big-00002-of-00002.gguf")
    want = good(tiny("qwen2-mix"), *RAW, "hi").out
    for name in ("alpha-1b", "ALPHA-1B-Q4_0", "Alpha-1B-Q4_0.gguf", "7b", "beta", "org/beta", "long", os.path.join(FOLDER, "org", "beta.gguf")):
        assert good(name, *RAW, "hi", env=ENV).out == want, name
    assert good("-m", "1b", *RAW, "hi", env=ENV).out == want
    assert good(*RAW, "-p", "hi", env={**ENV, "MINFER_MODEL": "1b"}).out == want
    assert good("info", "beta", env=ENV).out.startswith(os.path.join(FOLDER, "org", "beta.gguf").encode())
    refused(1, "'alpha' may be any of: Alpha-1B-Q4_0, Alpha-7B-Q8_0", "alpha", "hi", env=ENV)
    refused(1, "'gamma' is no file", "gamma", "hi", env=ENV)
    refused(1, "No such file", "gamma.gguf", "hi", env=ENV)
    refused(1, "No such file", "./alpha-1b", "hi", env=ENV)
    refused(1, "is no file", "", "-p", "hi", env=ENV) if run("", "-p", "hi", env=ENV).code == 1 else None
    for name in ("hf:owner/repo", "ollama:llama3", "https://host/x.gguf"):
        refused(1, "downloading is not in this version", name, "hi", env=ENV)
    assert [line.split()[0] for line in good("list", env=ENV).out.decode().splitlines()[1:]].count("big") == 1


def no_model():
    fill()
    refused(2, "(it has none)", "-p", "hi", env=ENV)
    fill("only.gguf")
    r = good(*RAW, "-p", "hi", env=ENV)
    assert r.out == good(tiny("qwen2-mix"), *RAW, "hi").out and f"model: {FOLDER}/only.gguf" in r.err
    fill("one.gguf", "two.gguf")
    refused(2, "(it has 2)", "-p", "hi", env=ENV)


def removal():
    fill("one.gguf", "two.gguf", "big-00001-of-00002.gguf", "big-00002-of-00002.gguf")
    refused(2, "--yes", "rm", "one", env=ENV)
    refused(2, "no name", "rm", env=ENV)
    refused(1, "no model 'three'", "rm", "three", "--yes", env=ENV)
    refused(1, "may be any of", "rm", "o", "--yes", env=ENV)
    refused(1, "no model", "rm", tiny("qwen2-mix"), "--yes", env=ENV)
    assert "removed" in good("rm", "one", "--yes", env=ENV).err and not os.path.exists(os.path.join(FOLDER, "one.gguf"))
    good("rm", "big", "-y", env=ENV)
    assert os.listdir(FOLDER) == ["two.gguf"]
    for answer, left in ((b"n\n", 1), (b"y\n", 0)):
        master, slave = pty.openpty()
        os.write(master, answer)
        p = subprocess.run([MINFER, "rm", "two"], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(ENV), timeout=60)
        os.close(slave)
        os.close(master)
        assert b"remove " in p.stderr and len(os.listdir(FOLDER)) == left and p.returncode == (1 if left else 0), p


command.main([listing, names, no_model, removal])
