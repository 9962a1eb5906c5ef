"""What a flag says is done or refused: by every command, and for minfer MODEL --cnv as for minfer chat."""
import fcntl
import json
import os
import pty
import re
import socket
import subprocess
import time

import command
from command import MINFER, SCRATCH, environment, good, refused, run, scratch, tiny

MODEL = tiny("qwen2-f32")


def table():
    """(names, placeholder, commands) of every flag, out of the reference."""
    rows = []
    for line in good("--help-markdown").out.decode().splitlines():
        m = re.match(r"\| (`--.*?) \| (\S*) \| (\w+(?:, \w+)*) \| ", line.replace("\\|", "/"))
        if m:
            rows.append((re.findall(r"`(-[^`]+)`", m[1]), re.sub(r"`[^`]+`", "", m[1]).strip(), m[3].split(", ")))
    return rows


def commands():
    return re.findall(r"^\| `(\w+)` \|", good("--help-markdown").out.decode().split("###")[0], re.M)


def not_ours():
    """A command takes no flag that it does not use."""
    rows = table()
    assert len(rows) > 70
    for name in commands():
        for names, argument, takers in rows:
            if takers == ["all"] or any(names[0] in other and (name in t or t == ["all"]) for other, _, t in rows):
                continue
            args = [name, names[0] + "=1" if argument else names[0]]
            if f"{names[0]} has no effect: " not in run(*args).err:  # as a flag of llama.cpp
                refused(2, f"minfer {name} does not take the flag {names[0]}", *args)


def conversation():
    lines = b"hi\nagain\n"
    for flags in ([], ["-mli"], ["--single-turn"], ["--keep", "4"], ["--no-context-shift"], ["-p", "first"], ["--seed", "5"]):
        want = good("chat", MODEL, "-n", "4", *flags, stdin=lines).out
        for name in ("--cnv", "-cnv", "--conversation", "-i", "--interactive"):
            assert good(MODEL, name, "-n", "4", *flags, stdin=lines).out == want, (name, flags)
        assert good(MODEL, "-n", "4", *flags, stdin=lines, env={"MINFER_CONVERSATION": "1"}).out == want, flags
    kept = os.path.join(SCRATCH, "kept.json")
    good(MODEL, "--session", kept, "--cnv", "-n", "4", stdin=b"hi")
    assert "messages" in good("chat", MODEL, "--session", kept, "-n", "4", stdin=b"").err
    for flags in (["--json"], ["--raw"], ["--logprobs", "2"], ["--dump-graph", "x"]):
        refused(2, f"minfer chat does not take the flag {flags[0]}", MODEL, *flags, "-i")
        refused(2, f"minfer chat does not take the flag {flags[0]}", "chat", MODEL, *flags)
    for flags in (["--session", "x"], ["-mli"]):
        refused(2, f"minfer run does not take the flag {flags[0]}", MODEL, *flags, "hi")


def first_question():
    """-f with a conversation is its first question, never a command."""
    path = scratch("first.txt", b"tell me\n")
    want = good("chat", MODEL, "-n", "4", "-p", "tell me", stdin=b"more").out
    assert good("chat", MODEL, "-n", "4", "-f", path, stdin=b"more").out == want
    assert good(MODEL, "-n", "4", "-f", path, "--cnv", stdin=b"more").out == want
    assert b"context:" not in good("chat", MODEL, "-n", "4", "-f", scratch("stats.txt", b"/stats"), stdin=b"").out
    refused(1, "no-such-file", "chat", MODEL, "-f", "no-such-file")
    refused(2, "-f -", "chat", MODEL, "-f", "-")


def help_command():
    assert good("help").out == good("--help").out and good("help", "bench").out == good("bench", "--help").out
    refused(2, "there is no command 'benhc'", "help", "benhc")


def small():
    """Flags and outputs that people expect."""
    words = good(MODEL, "hi", "-n", "1")
    r = good(MODEL, "hi", "-n", "1", "--gpu", "99")
    assert r.out == words.out and "--gpu has no effect: " in r.err
    bench = ["bench", MODEL, "-p", "0", "-n", "2", "-r", "1", "--warmup-ms", "0"]
    assert json.loads(good(*bench, "--json").out)[0]["n_gen"] == 2 and json.loads(good(*bench, "--n-ctx", "64", "-o", "json").out)
    refused(2, "--output and --json are both given", *bench, "-o", "csv", "--json")
    refused(1, "--ctx 4: these tests need 18 tokens", *bench, "--n-ctx", "4")
    said = good(MODEL, "hi", "-n", "1", "--meta").err
    assert "tensor token_embd.weight: " in said and "tensor blk.0.attn_q.weight: " in said and "blk.1." not in said, said
    messages = scratch("said.json", b'[{"role": "user", "content": "x\\u001b"}]')
    text = good("render", MODEL, "--messages", messages).out.decode()
    assert json.loads(good("render", MODEL, "--messages", messages, "--json").out) == {"text": text}
    assert re.search(r"KV cache: \d+ blocks .*, [1-9]\d* used", good(MODEL, "hi", "-n", "1", "-v").err)
    broken = scratch("broken.gguf", b"GGUF" + b"\0" * 60)
    for args in ((broken, "hi"), ("info", broken), ("tokenize", broken, "x"), (os.path.join(SCRATCH, "missing.gguf"), "hi"), ("render", MODEL, "--messages", "nothing.json"),
                 ("render", MODEL, "--messages", scratch("bad.json", b"{"))):
        r = run(*args)
        names = re.findall(r"[\w-]+\.(?:gguf|json)", r.err)
        assert r.code == 1 and len(names) == len(set(names)) == 1, r.err


def empty_names():
    """An empty text names no file, folder or thing."""
    for flag in ("--model", "--file", "--chat-template", "--trace", "--dump-graph", "--dump-values", "--cpu", "--backend", "--pre"):
        refused(2, f"{flag}: '' is not a name", MODEL, flag, "")
    refused(2, "--session: '' is not a name", "chat", MODEL, "--session", "")
    for args in (("tokenize", MODEL, "1", "--ids", "--no-special"), ("perplexity", MODEL, "-p", "x", "--kl-base", "y")):
        refused(2, "", *args)


def shown(*args):
    """What a terminal gets."""
    master, slave = pty.openpty()
    p = subprocess.Popen([MINFER, *args], stdin=subprocess.DEVNULL, stdout=slave, stderr=subprocess.PIPE, env=environment({"TERM": "xterm"}))
    os.close(slave)
    seen = b""
    try:
        while piece := os.read(master, 4096):
            seen += piece
    except OSError:  # the other side is closed
        pass
    os.close(master)
    assert p.wait(timeout=60) == 0, p.stderr.read()
    p.stderr.close()
    return seen


def text_of_files_on_a_terminal():
    """A template's text and a vocabulary's don't command a terminal, unless they are asked for raw."""
    messages = scratch("red.json", b'[{"role": "user", "content": "x"}]')
    render = ["render", "--messages", messages, "--template", "{{ '\x1b]0;t\x07\x1b[31m' }}red"]
    assert b"\x1b" in good(*render).out and b"\x1b" in shown(*render, "--raw-output")
    assert not re.search(rb"[\x00-\x08\x0e-\x1f]", shown(*render)) and b"red" in shown(*render)
    ids = json.loads(good("tokenize", MODEL, "\x1b[31m", "--json").out)["ids"]
    tokenize = ["tokenize", MODEL, "--ids", ",".join(map(str, ids))]
    assert good(*tokenize).out == b"\x1b[31m" and b"\x1b" not in shown(*tokenize)


def variables():
    """Every long name of a flag has its variable; what begins like one and is none is named."""
    base = [MODEL, "hi", "-n", "1"]
    for names, argument, takers in table():
        if "run" not in takers and takers != ["all"] or names[0] in ("--help", "--version"):
            continue
        for name in names:
            if not name.startswith("--") or name == "--batch":
                continue
            env = {"MINFER_" + name[2:].upper().replace("-", "_"): "no" if not argument else "1"}
            assert "is unknown and" not in run(*base, env=env).err, (name, env)
    want = good(MODEL, "tell me", "--raw", "-n", "3", "-c", "64").out
    assert good(MODEL, "tell me", env={"MINFER_N_PREDICT": "3", "MINFER_CTX_SIZE": "64", "MINFER_NO_TEMPLATE": "1"}).out == want
    refused(2, "MINFER_PREDICT and MINFER_N_PREDICT are both set, to '3' and '4'", *base[:2], env={"MINFER_N_PREDICT": "4", "MINFER_PREDICT": "3"})
    good(*base[:2], env={"MINFER_N_PREDICT": "1", "MINFER_PREDICT": "1"})
    err = good(*base, env={"MINFER_TEMPP": "1"}).err
    assert "warning: the variable MINFER_TEMPP is unknown and has no effect; did you mean MINFER_TEMP?" in err, err
    assert "MINFER_WHAT_IS_THIS is unknown and has no effect\n" in good(*base, env={"MINFER_WHAT_IS_THIS": "1"}).err
    for name in ("MINFER_TEST_MODELS", "MINFER_GOLDEN_WRITE", "MINFER_TEMPP"):
        assert name not in good(*base, env={name: "" if name == "MINFER_TEMPP" else "1"}).err
    refused(2, "MINFER_SAMPLERS: ", *base, env={"MINFER_SAMPLERS": "top_k"})
    refused(1, "the schema: line 1", *base, env={"MINFER_JSON_SCHEMA": "{"})
    assert good(*base, env={"MINFER_GRAMMAR": 'root ::= "7"'}).out == b"7\n"
    refused(2, "MINFER_LORA: adapters", "list", env={"MINFER_LORA": "x"})
    assert "MINFER_N_GPU_LAYERS has no effect: " in good(*base, env={"MINFER_N_GPU_LAYERS": "9"}).err
    good("--help", env={"MINFER_SAMPLERS": "x", "MINFER_TEMP": "x", "MINFER_BATCH": "x"})
    for value, on in (("1", True), ("", True), ("please", True), ("0", False), ("no", False)):
        assert ("matmul" in good(*base, env={"MINFER_OP_TIMING": value}).err) == on, value


def switches():
    best = good("--version").out
    for name in ("MINFER_NO_AVX512", "MINFER_NO_AVX2", "MINFER_NO_NEON"):
        for no in ("false", "no", "off", "0", ""):
            assert good("--version", env={name: no}).out == best, (name, no)
        refused(2, f"{name}: 'banana' is not yes or no", "--version", env={name: "banana"})
    nodes = []
    for env in ({}, {"MINFER_NO_FUSE_QKV": "1", "MINFER_NO_FUSE_FFN": "yes", "MINFER_NO_FUSE_NORM": "1", "MINFER_NO_FUSE_ADD": "1"}, {"MINFER_NO_FUSE": "all"}):
        nodes.append(re.search(r"\((\d+) nodes\)", good(MODEL, "hi", "--dump-graph", os.path.join(SCRATCH, "g.dot"), env=env).err)[1])
    assert nodes[0] != nodes[1] == nodes[2], nodes
    refused(2, "MINFER_NO_FUSE_QKV: 'x' is not yes or no", MODEL, "hi", env={"MINFER_NO_FUSE_QKV": "x"})
    refused(2, "MINFER_BATCH: '64' is not 0 (one sequence) or 1 (many); --batch is MINFER_BATCH_SIZE", MODEL, "hi", env={"MINFER_BATCH": "64"})


def fence():
    """Every command that computes refuses a backend that it can't use; the others take none."""
    messages = scratch("m.json", b'[{"role": "user", "content": "x"}]')
    computes = {"run": [MODEL, "x"], "chat": [MODEL], "info": [MODEL], "tokenize": [MODEL, "x"], "bench": [MODEL, "-n", "1", "-p", "0"], "doctor": [],
                "perplexity": [MODEL, "-p", "x"], "render": [MODEL, "--messages", messages]}
    for name in commands():
        if name not in computes:
            refused(2, f"minfer {name} does not take the flag --backend", name, "--backend", "cpu")
            continue
        for backend, part in (("tpu", "unknown backend 'tpu'; known: cuda, vulkan, metal, cpu"), ("cuda", "backend 'cuda' is not compiled into this program")):
            refused(1, part, name, *computes[name], "--backend", backend)
            refused(1, part, name, *computes[name], env={"MINFER_BACKENDS": backend})
            refused(1, part, name, *computes[name], env={"MINFER_BACKEND": backend})


def started(stdin, *args):
    return subprocess.Popen([MINFER, *args], stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())


def standard_input():
    """A file or pipe stands behind the prompt; beside -f it is refused; nothing else is read, and waiting is said."""
    base = [MODEL, "--raw", "-n", "6", "--temp", "1"]
    alone, want = good(*base, "tell me").out, good(*base, "tell me\n\nof it\nand this").out
    assert alone != want
    for piped in (b"of it\nand this", b"of it\nand this\n", b"\xef\xbb\xbfof it\nand this\r\n"):
        assert good(*base, "tell me", stdin=piped).out == want, piped
        assert good(*base, "-p", "tell me", stdin=piped).out == want, piped
        assert good(*base, stdin=piped, env={"MINFER_PROMPT": "tell me"}).out == want, piped
    with open(scratch("piped.txt", b"of it\nand this\n"), "rb") as f:
        p = started(f, *base, "tell me")
        assert p.communicate(timeout=60)[0] == want
    words = scratch("words.txt", b"\xef\xbb\xbftell me\r\n")
    assert good(*base, "-f", words).out == alone
    refused(2, "and standard input both have a text", *base, "-f", words, stdin=b"x")
    # What is left open and says nothing: a socket, a device, a terminal.
    ours, theirs = socket.socketpair()
    master, slave = pty.openpty()
    for quiet in (theirs, slave, open("/dev/null", "rb"), open("/dev/zero", "rb")):
        p = started(quiet, *base, "tell me")
        out, err = p.communicate(timeout=60)
        assert out == alone and b"waiting" not in err, (quiet, err)
        p = started(quiet, *base, "-f", words)
        assert p.communicate(timeout=60)[0] == alone
    p = started(subprocess.DEVNULL, *base)
    assert p.communicate(timeout=60)[1].startswith(b"error: no prompt: ") and p.returncode == 2
    for fd in (master, slave):
        os.close(fd)
    for args in ([*base, "tell me"], base, [*base, "-f", "-"], ["render", MODEL, "--messages", "-"], ["tokenize", MODEL]):
        p = started(subprocess.PIPE, *args)
        line = p.stderr.readline()
        assert line.startswith(b"waiting for ") and b"on standard input" in line, (args, line)
        p.communicate(b"[]" if args[0] == "render" else b"x", timeout=60)
    ours.send(b"tell me")
    ours.close()
    assert started(theirs, *base).communicate(timeout=60)[0] == alone  # with nothing else to answer, a socket is a prompt
    theirs.close()


def line_ends():
    """LF and CR LF are one line end, a byte order mark is none of the text, and a NUL is kept or named."""
    mark = b"\xef\xbb\xbf"
    talk = ["chat", MODEL, "-n", "4"]
    for unix in (b"one\ntwo\n", b"one\\\ntwo\n", b'"""one\ntwo"""\nthree\n', b'"""\none\n"""\n', b"/stats\n/exit\n"):
        want = good(*talk, stdin=unix).out
        assert good(*talk, stdin=mark + unix.replace(b"\n", b"\r\n")).out == want, unix
    want = good(*talk, "-mli", stdin=b"one\ntwo\n\nthree").out
    assert good(*talk, "-mli", stdin=b"one\r\ntwo\r\n\r\nthree").out == want
    r = run(*talk, stdin=b"one\0two\n")
    assert "NUL bytes in a text are taken as U+FFFD" in r.err and r.out, r.err
    kept = json.loads(good(MODEL, "--raw", "-n", "1", "--json", stdin=b"a\0b").out)["prompt_tokens"]
    assert kept == len(json.loads(good("tokenize", MODEL, "--json", stdin=b"a\0b").out)["ids"]) >= 3
    messages = b'[{"role": "user",\r\n "content": "x"}]'
    want = good("render", MODEL, "--messages", scratch("plain.json", messages)).out
    assert good("render", MODEL, "--messages", scratch("marked.json", mark + messages)).out == want
    template = b"{{ messages[0].content }}"
    marked = scratch("marked.jinja", mark + template)
    assert good("render", "--messages", scratch("plain.json", messages), "--template", marked).out == b"x"
    text = b"a" * (17 << 20)
    r = run(*talk, stdin=text + b"\nshort\n", timeout=120)
    assert "bytes is not taken" in r.err and r.out, r.err


def slow_reader():
    """Standard output and error that don't block are waited for."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(write, False)
    p = subprocess.Popen([MINFER, "--help-markdown"], stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.PIPE, env=environment())
    os.close(write)
    want, got = good("--help-markdown").out, b""
    time.sleep(0.3)
    while piece := os.read(read, 1000):
        got += piece
    assert got == want and p.wait(timeout=60) == 0 and p.stderr.read() == b""
    p.stderr.close()
    os.close(read)


command.main([not_ours, conversation, first_question, help_command, small, empty_names, text_of_files_on_a_terminal, variables, switches, fence, standard_input, line_ends, slow_reader])
