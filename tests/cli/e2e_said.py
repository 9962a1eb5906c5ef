"""What a flag says is done or refused: by every command, and for minfer MODEL --cnv as for minfer chat."""
import os
import re

import command
from command import SCRATCH, good, refused, run, scratch, tiny

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


command.main([not_ours, conversation, first_question, help_command])
