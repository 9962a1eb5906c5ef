"""minfer list and rm, and the names of cached models."""
import json
import os
import pty
import re
import shutil
import subprocess

import command
from command import MINFER, SCRATCH, environment, good, refused, run, string, tiny, with_metadata

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
    refused(1, "'omega' is no file", "omega", "hi", env=ENV)
    refused(1, "No such file", "omega.gguf", "hi", env=ENV)
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
    refused(2, f"the models lie in {FOLDER}", "rm", env=ENV)
    refused(1, "no model has exactly the name 'three'", "rm", "three", "--yes", env=ENV)
    refused(1, "no model has exactly the name 'o'", "rm", "o", "--yes", env=ENV)
    refused(1, "no model has exactly the name '/'", "rm", "/", "--yes", env=ENV)
    refused(1, "no model has exactly the name 'ONE'", "rm", "ONE", "--yes", env=ENV)
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


def doctor_shows_them():
    fill("one.gguf", "org/two.gguf")
    state = {**ENV, "XDG_STATE_HOME": os.path.join(SCRATCH, "state")}
    said = good("doctor", env=state).out.decode()
    assert re.search(rf"^models +{re.escape(FOLDER)}: 2\n +one\n +org/two\nhistory +{re.escape(SCRATCH)}/state/minfer/history$", said, re.M), said
    told = json.loads(good("doctor", "--json", env=state).out)
    assert told["models"] == {"directory": FOLDER, "names": ["one", "org/two"]} and told["history"].endswith("/state/minfer/history")


def removal_stays_inside():
    """Nothing behind a link is touched; a link itself lies in the cache."""
    outside = os.path.join(SCRATCH, "outside")
    fill("own/one.gguf", "best-of-00003.gguf", "twice.gguf", "twice.GGUF")
    os.makedirs(outside)
    mine = os.path.join(outside, "mine.gguf")
    shutil.copy(tiny("qwen2-mix"), mine)
    os.symlink(outside, os.path.join(FOLDER, "link"))
    os.symlink(outside, os.path.join(FOLDER, "own", "link"))
    os.symlink(mine, os.path.join(FOLDER, "alias.gguf"))
    for name in ("link/mine", "link/mine.gguf", "own/link/mine"):
        refused(1, "behind a link", "rm", name, "--yes", env=ENV)
    for name in ("mine", "/", "..", mine, "../../../outside/mine", "link/../link/mine", "own", "link"):
        refused(1, "no model has exactly the name", "rm", name, "--yes", env=ENV)
    good("rm", "alias", "--yes", env=ENV)
    assert os.path.exists(mine) and not os.path.lexists(os.path.join(FOLDER, "alias.gguf"))
    refused(1, "'twice' is the name of twice.", "rm", "twice", "--yes", env=ENV)
    for name in ("best-of-00003", "own/one.gguf", "twice.gguf"):
        good("rm", name, "--yes", env=ENV)
    assert sorted(os.listdir(FOLDER)) == ["link", "own", "twice.GGUF"] and os.listdir(outside) == ["mine.gguf"]


def names_are_shown():
    """What a file's name or metadata says never reaches a terminal as a command to it."""
    fill()
    hostile = "a\x1b[31mb\u202ec\u009bd"
    shutil.copy(with_metadata("qwen2-mix", [("key\x1b[2J\u009b", 8, string("value\x1b]0;t\x07"))]), os.path.join(FOLDER, hostile + ".gguf"))
    name = "a\\x1B[31mb\\xE2\\x80\\xAEc\\xC2\\x9Bd"
    for args in (["list"], ["list", "--json"], ["info", hostile], ["info", hostile, "--json"], ["doctor"], ["doctor", "--json"], [hostile, "hi", "--raw", "-n", "1", "--meta"],
                 ["rm", hostile], ["bench", hostile, "-p", "0", "-n", "1", "-r", "1", "--warmup-ms", "0", "-o", "csv"], ["rm", hostile[:-1]], ["run", hostile + "x", "y"]):
        r = run(*args, env=ENV)
        said = r.out.decode() + r.err
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", said), (args, said)
    assert name in good("list", env=ENV).out.decode()
    shown = good("info", hostile, env=ENV).out.decode()
    assert name in shown and "key\\x1B[2J\\xC2\\x9B" in shown and '"value\\x1B]0;t\\x07"' in shown
    assert json.loads(good("list", "--json", env=ENV).out)["models"][0]["name"] == hostile
    assert good("list", "--names", env=ENV).out == b""
    refused(2, "are both given", "list", "--names", "--json", env=ENV)
    fill("plain-7B.gguf", "org/Other_1.gguf", "with space.gguf", "a$b.gguf", "-flag.gguf", "modèle.gguf")
    assert good("list", "--names", env=ENV).out.decode() == "modèle\norg/Other_1\nplain-7B\n"


command.main([listing, names, no_model, removal, removal_stays_inside, names_are_shown, doctor_shows_them])
