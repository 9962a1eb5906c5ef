"""minfer chat without a terminal: turns, commands, texts of many lines, sessions that outlive the process and its death."""
import json
import os
import random
import re
import resource
import signal
import subprocess
import time

import command
from command import MINFER, SCRATCH, environment, good, refused, run, scratch, tiny
from scripted import CHATML, make

MODEL = tiny("qwen2-f32")
# The model says lower-case letters and spaces only, and never ends by itself: its ids 0 to 255 are the bytes, 288 to 290 control tokens.
LETTERS = [f"--logit-bias={i}:-100" for i in range(291) if not (i in (32, *range(97, 123)) or 256 <= i < 288)]
CHAT = ["chat", MODEL, *LETTERS, "-n", "12"]
COST = re.compile(r"prompt: (\d+) tokens, (\d+) evaluated; (\d+) cached ones dropped")


def talk(lines, *args, base=CHAT, code=0, **kw):
    """Lines that may be commands; the exit code is 1 where one of them fails."""
    r = run(*base, "--commands", *args, stdin="\n".join(lines).encode(), **kw)
    assert r.code == code, (r.code, r.err)
    return r


def answers(r):
    return r.out.decode().splitlines()


def evaluated(r):
    """Of each turn, what it evaluated."""
    return [int(m[1]) for m in COST.findall(r.err)]


def count(text, model=MODEL):
    return len(json.loads(good("tokenize", model, text, "--json").out)["ids"])


def own(question, model=MODEL):
    """The tokens of a turn behind an answer that was cut: its last token, which is not evaluated yet, and what the template adds."""
    return 1 + count(f"<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n", model)


def piped_lines():
    r = talk(["hello", "", "  ", "and again", "more\r"], "--verbose")
    assert len(answers(r)) == 3 and all(a for a in answers(r)), r.out
    assert evaluated(r)[1:] == [own("and again"), own("more")], (evaluated(r), r.err)
    assert talk(["hello", "and again", "more"]).out == r.out
    assert good(*CHAT[1:], "--cnv", stdin=b"hello\nand again\nmore").out == r.out
    first = talk(["and again", "more"], "-p", "hello")
    assert first.out == r.out, first.out
    assert talk([]).out == b""
    refused(2, "no model", "chat")
    refused(1, "No such file", "chat", "nothing-here.gguf")


def single_turn():
    assert len(answers(talk(["/stats", "one", "two"], "--single-turn"))) == 1 + len(answers(talk(["/stats"])))
    assert len(answers(talk(["one", "two"], "-st", "-p", "zero"))) == 1
    r = talk(["word " * 2000, "two"], "-st", code=1)  # it ends after one try
    assert r.out == b"" and "the message is too long" in r.err, r.err
    assert len(answers(talk(["/stat", "/stats", "one", "two"], "-st", code=1))) == len(answers(talk(["/stats", "one"])))


def many_lines():
    one = talk(["a\nb"], "--multiline-input", "--verbose")
    for lines in (["a\\", "b"], ['"""a', 'b"""'], ['"""', "a", "b", '"""']):
        r = talk(lines, "--verbose")
        assert len(answers(r)) == 1 and evaluated(r) == evaluated(one) and r.out == one.out, (lines, r.out, r.err)
    r = talk(["", "a", "b\\", "", "", "c", "", "d"], "--multiline-input")  # an empty line ends a text; a backslash takes it in
    assert len(answers(r)) == 3, r.out
    assert talk(["a", "b", "", "c"], "-mli").out == talk(["a\\", "b", "c"]).out
    r = talk(["/stats", "a"], "--multiline-input")
    assert b"context: 0 of" in r.out, r.out


def commands():
    r = talk(["/stats", "/help", "/?"])
    assert r.out.startswith(b"context: 0 of 1024 tokens\n") and r.out.count(b"/regen") == 2, r.out
    for word in ("/exit", "/quit", "/bye"):
        assert len(answers(talk(["one", word, "two"]))) == 1
    r = talk(["/udno", "/regen", "/undo", "/edit x", "/edit", "/save", "/load", "/clear x", "/load nothing-here.json", "/system", "/ x"], "-n", "2",
             code=1)
    errors = [line for line in r.err.splitlines() if line.startswith("error: ")]
    for part, line in zip(("no command '/udno'; did you mean /undo?", "no answer to generate", "nothing to take back", "no question to edit", "no question to edit", "name is needed",
                           "name is needed", "/clear takes nothing", "No such file"), errors, strict=True):
        assert part in line, (part, line)
    assert answers(r)[0] == "there is no system message" and len(answers(r)) == 2, r.out  # "/ x" is a question

    base = answers(talk(["one", "two"]))
    r = talk(["one", "two", "/regen", "/regen"], "--verbose")
    assert evaluated(r)[2:] == [1, 1] and answers(r)[:2] == base and len(set(answers(r)[1:])) == 3, r.out
    assert len(set(answers(talk(["one", "/clear", "one", "/clear", "one"])))) == 3  # no draw is used twice

    def plain(lines, *args, **kw):  # without draws an answer follows from what was said alone
        return talk(lines, "--greedy", *args, **kw)

    base = answers(plain(["one", "two"]))
    assert answers(plain(["one", "two", "/regen"]))[1:] == answers(plain(["one", "two", "two"]))[1:2] * 2
    r = plain(["one", "other", "/undo", "two"], "--verbose")
    assert answers(r)[2] == base[1] and evaluated(r)[2] <= own("two"), r.err
    assert answers(plain(["one", "other", "/edit two"]))[2] == base[1]
    assert answers(plain(["x", "/clear", "one", "two"]))[1:] == base
    with_system = answers(plain(["one", "two"], "--system", "be kind"))
    assert with_system != base
    r = plain(["/system be kind", "one", "/system", "two", "/system none", "/clear", "one", "two"])
    assert answers(r) == [with_system[0], "be kind", with_system[1], *base], r.out
    r = plain(["one", "two", "/edit " + "word " * 2000, "three"], code=1)  # the turn that was to be edited stays
    assert "the message is too long" in r.err and r.out == plain(["one", "two", "three"]).out, (r.out, r.err)
    edits = talk(["one", "/edit"], code=1)
    assert "/edit needs the new text" in edits.err


def saved():
    path = os.path.join(SCRATCH, "talk.json")
    r = talk(["one", "two", f"/save {path}", "three"])
    with open(path) as f:
        history = json.load(f)
    assert history["minfer_session"] == 1 and [m["role"] for m in history["messages"]] == ["user", "assistant"] * 2, history
    assert [m["content"] for m in history["messages"][1::2]] == answers(r)[:2], history
    r = talk([f"/load {path}", "three"], "--greedy", "--verbose")  # encoded again, the answers may be cut into other tokens
    assert answers(talk(["x", f"/load {path}", "three"], "--greedy"))[1:] == answers(r) and evaluated(r)[0] > own("three")
    for content, part in ((b"{", "line 1"), (b"[]", "no history"), (b'{"minfer_session": 2, "messages": []}', "version 2"),
                          (b'{"minfer_session": 1, "messages": [{"role": "tool", "content": ""}]}', "no role"),
                          (b'{"minfer_session": 1, "messages": [{"role": "user", "content": 1}]}', "no text"),
                          (b'{"minfer_session": 1, "messages": [{"role": "user", "content": "a\\u0000"}]}', "no text"),
                          (b'{"minfer_session": 1, "regenerated": -1, "messages": []}', "no count")):
        bad = scratch("bad.json", content)
        r = talk(["one", f"/load {bad}", "two"], code=1)
        assert part in r.err and r.out == talk(["one", "two"]).out, (content, r.err)  # the conversation stays


def lines_are_text():
    """Without a terminal and --commands nothing in a line is a command; with it only known names are."""
    victim, talk_file = scratch("victim", b"precious"), os.path.join(SCRATCH, "questions.json")
    lines = [f"/save {victim}", "/clear", "/exit", "/sav x", "/?", "last"]
    assert len(answers(good(*CHAT, stdin="\n".join(lines).encode()))) == len(lines)
    assert open(victim, "rb").read() == b"precious"
    texts = ["/etc/passwd is what?", "/api/v1 404", "/no_think hello", "/think", "/ x", "//clear", "/Clear", " /clear", "a /exit", "/exit/x", "/models", "exit"]
    talk([*texts, f"/save {talk_file}"], "-n", "2")
    with open(talk_file) as f:
        assert [m["content"] for m in json.load(f)["messages"][::2]] == texts
    for line, meant in (("/sav x", "save"), ("/quti", "quit"), ("/byte", None), ("/s", "system"), ("/stat", "stats"), ("/clean up", "clear"), ("/rgeen", "regen"),
                        ("/save?", None), ("/exits", "exit"), ("/list", None), ("/hel", "help"), ("/new", None)):
        r = talk([line], "-n", "2", code=1 if meant else 0)
        assert (f"did you mean /{meant}?" in r.err and r.out == b"") if meant else r.out, (line, r.err)
    for prompt in ("/exit", "/clear", f"/save {victim}"):  # nor is the first question
        assert len(answers(talk(["two"], "-p", prompt))) == 2 and open(victim, "rb").read() == b"precious"


def saves_nothing_over():
    """/save writes over conversations and empty files alone."""
    own_file = os.path.join(SCRATCH, "own.json")
    for content in (b"precious", b"{}", b'{"messages": []}', b"[1]", b"\n"):
        victim = scratch("victim", content)
        r = talk(["one", f"/save {victim}", "two"], code=1)
        assert "is not written over" in r.err and open(victim, "rb").read() == content and len(answers(r)) == 2, r.err
    link = os.path.join(SCRATCH, "link")
    os.symlink(scratch("behind", b"precious"), link)
    talk(["one", f"/save {link}"], code=1)
    talk(["one", f"/save {SCRATCH}"], code=1)
    for _ in range(2):
        talk(["one", f"/save {own_file}", f"/save {scratch('empty', b'')}"])
    assert json.load(open(own_file))["messages"] == json.load(open(os.path.join(SCRATCH, "empty")))["messages"]


def failed_questions():
    """A question that fails is remembered in the exit code, and the next one is asked."""
    base = answers(talk(["one", "two"], "--greedy"))
    r = talk(["one", "word " * 2000, "two"], "--greedy", code=1)
    assert answers(r) == base and r.err.count("error: the message is too long") == 1 and "--ctx" not in r.err.splitlines()[-1], r.err
    r = talk(["one", "word " * 200, "two"], "--greedy", "--ctx", "128", code=1)
    assert "--ctx N makes the context larger, up to 1024" in r.err, r.err
    model = make("wild", ["a", "b", " c"], wild=["b"])  # the logits behind b are not finite
    for lines, args in ((["x", "y"], []), (["x", "/undo", "/stats", "y"], ["--commands"]), (["x", "/clear", "/edit x", "y"], ["--commands"]),
                        (["x", "/edit z", "/regen"], ["--commands"])):
        r = run("chat", model, *args, stdin="\n".join(lines).encode())
        assert r.code == 1 and r.out.split(b"\n").count(b"ab") == 3 - (lines[1] != "/edit z"), (lines, r.out, r.err)
        assert "not finite" in r.err or "infinite" in r.err, r.err
    path = os.path.join(SCRATCH, "wild.json")
    r = run("chat", model, "--session", path, stdin=b"x\ny\n")
    assert r.code == 1 and r.out == b"ab\nab\n", r.err


def interrupted():
    """Ctrl-C ends a script with 130: in an answer, and where it waits for a line."""
    slow = ["chat", MODEL, *LETTERS, "--cpu", "scalar", "-t", "1"]
    for waits in (False, True):
        p = subprocess.Popen([MINFER, *(CHAT if waits else slow)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        p.stdin.write(b"one\ntwo\nthree\n" if not waits else b"one\n")
        p.stdin.flush()
        assert p.stdout.readline() if waits else p.stdout.read(2)
        if waits:
            time.sleep(0.1)  # it may be there or not: both are right
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
        assert p.returncode == 130 and out.count(b"\n") <= 1, (waits, p.returncode, out, err)


def true_statistics():
    def context(r):
        return [int(line.split()[1]) for line in answers(r) if line.startswith("context: ")]

    r = talk(["one", "/stats", "two", "/stats", "/undo", "/stats", "/clear", "/stats", "three", "/stats"], "--greedy")
    fresh = talk(["three", "/stats"], "--greedy")
    n = context(r)
    assert n[0] < n[1] and abs(n[2] - n[0]) <= 2 and n[3] == 0 and n[4:] == context(fresh), n  # the opening of an answer, the token that is not evaluated yet
    assert [line for line in answers(r) if line == "last turn: none"] == ["last turn: none"] * 2, r.out
    r = talk(["one", "/clear", "/stats"], "--system", "be kind")
    assert context(r) == [count("<|im_start|>system\nbe kind<|im_end|>\n")], r.out


def empty_system_message():
    """It is a message, and what templates put where there is none is not put."""
    template = "{% if messages[0].role != 'system' %}<|im_start|>system\nbe kind<|im_end|>\n{% endif %}" + CHATML
    path = session_path("empty-system.json")
    base = ["chat", MODEL, *LETTERS, "-n", "12", "--greedy", "--chat-template", template]
    none, empty, kind = (answers(talk(["one"], *args, base=base)) for args in ([], ["--system", ""], ["--system", "be kind"]))
    assert none == kind != empty
    talk(["one", f"/save {path}"], "--system", "", base=base)
    assert json.load(open(path))["messages"][0] == {"role": "system", "content": ""}
    assert answers(talk(["/system none", "one"], "--system", "", base=base)) == none
    path = session_path("later-system.json")
    talk(["one"], "--session", path, base=base)
    r = talk(["/system", "/clear", "one"], "--session", path, "--system", "", base=base)
    assert answers(r) == ["", *empty], r.out


def bytes_that_are_no_text():
    plain = ["chat", MODEL, "-n", "12", "--commands"]
    r = run(*plain, stdin=b"\xef\xbb\xbfa\xff\xfe\nb\0c\r\n\xe2\x82\n/save " + os.path.join(SCRATCH, "raw.json").encode())
    assert r.code == 0 and "error" not in r.err, r.err
    with open(os.path.join(SCRATCH, "raw.json"), encoding="utf-8") as f:
        assert [m["content"] for m in json.load(f)["messages"]][::2] == ["a\ufffd\ufffd", "b\ufffdc", "\ufffd\ufffd"]


def session_path(name):
    return os.path.join(SCRATCH, name)


def sessions():
    for i, sampling in enumerate((["--greedy"], ["--seed", "7"], ["--greedy", "-ctk", "q8_0", "-ctv", "q8_0"],
                                  ["--ctx", "256", "--seed", "3"], ["--mirostat", "2", "--seed", "5"])):
        path = session_path(f"s{i}.json")
        base = ["chat", tiny("qwen2-mix") if "q8_0" in sampling else MODEL, *CHAT[2:]]
        first, then = ["one", "two"], ["three", "four"]
        if "--ctx" in sampling:
            first, then = [f"question {k}" for k in range(9)], [f"question {k}" for k in range(9, 14)]
        whole = talk(first + then, *sampling, "--verbose", base=base)
        a = talk(first, *sampling, "--session", path, base=base)
        b = talk(["/stats", *then], *sampling, "--session", path, "--verbose", base=base)
        assert answers(a) + answers(b)[4:] == answers(whole), (sampling, a.out, b.out, whole.out)
        assert evaluated(b) == evaluated(whole)[len(first):], (sampling, b.err)
        assert f"{2 * len(first)} messages" in b.err, b.err
        c = talk(["/regen", "/stats"], *sampling, "--session", path, "--verbose", base=base)
        assert evaluated(c) == [1], c.err
        assert b"in all: 1 turns, 1 prompt tokens" in c.out, c.out


def session_commands():
    path = session_path("commands.json")

    def roles():
        with open(path) as f:
            return [m["role"] for m in json.load(f)["messages"]]

    talk(["/system be kind"], "--session", path)
    assert roles() == ["system"]
    talk(["one", "two", "/undo"], "--greedy", "--session", path)
    assert roles() == ["system", "user", "assistant"]
    r = talk(["two"], "--greedy", "--session", path, "--verbose")
    assert answers(r)[0] == answers(talk(["one", "two"], "--greedy", "--system", "be kind"))[1] and evaluated(r)[0] <= own("two"), r.err
    # The flag's system message beats the history's; the same one changes nothing.
    r = talk(["three"], "--session", path, "--system", "be kind", "--verbose")
    assert evaluated(r) == [own("three")], r.err
    r = talk(["four"], "--session", path, "--system", "be quick", "--verbose")
    assert evaluated(r)[0] > own("four") and "the system message changed" in r.err, r.err
    talk(["/clear"], "--session", path)
    assert roles() == ["system"]


def other_cells():
    path = session_path("other.json")
    talk(["one", "two"], "--greedy", "--session", path)
    for args, part in ((["-ctk", "f32", "-ctv", "f32"], "the session's cells are F16; here they are F32"), (["--ctx", "64"], "the context holds 64")):
        for name in (path, path + ".kv"):
            with open(name, "rb") as f:
                scratch("copy.json" + name[len(path):], f.read())
        r = talk(["three"], "--greedy", *args, "--session", session_path("copy.json"), "--verbose")
        assert part in r.err and "the conversation is read again" in r.err and len(answers(r)) == 1, r.err
        if "f32" in args:
            assert evaluated(r)[0] > own("three"), r.err
    other = tiny("qwen2-mix")
    r = talk(["three"], "--session", path, "--verbose", base=["chat", other, *LETTERS, "-n", "2"])
    assert "the session's number of KV heads is 2; here it is 1" in r.err and evaluated(r)[0] > own("three"), r.err
    scratch("other.json.kv", b"")
    r = talk(["four"], "--session", path, "--verbose")
    assert "the conversation is read again" in r.err and len(answers(r)) == 1, r.err
    assert evaluated(talk(["five"], "--session", path, "--verbose")) == [own("five")]
    os.remove(path + ".kv")
    assert len(answers(talk(["six"], "--session", path))) == 1
    scratch("other.json", b"{")
    r = run(*CHAT, "--session", path, stdin=b"x")
    assert r.code == 1 and "other.json" in r.err and r.out == b"", r.err


def session_info():
    path = session_path("info.json")
    talk(["one"], "--session", path)
    text = good("session", "info", path).out
    assert b"cells        F16" in text and good("session", "info", path + ".kv").out == text, text
    info = json.loads(good("session", "info", path, "--json").out)
    assert info["cell_type"] == "F16" and info["n_tokens"] == info["n_cells"] + 1 and info["n_layer"] == 2 and not info["shifted"], info
    refused(1, "No such file", "session", "info", "nothing-here")
    refused(1, "no session of minfer", "session", "info", scratch("x.kv", b"x" * 100))
    assert run("session").code == 2 and run("session", "info").code == 2


def files_that_can_not_be_written():
    path = session_path("full.json")
    talk(["one"], "--session", path)
    old = [open(name, "rb").read() for name in (path, path + ".kv")]
    limit = len(old[0]) + 40  # of the history and of the cells: both would grow

    def no_space():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    p = subprocess.run([MINFER, *CHAT, "--session", path], input=b"two\nthree\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
                       preexec_fn=no_space, restore_signals=False, timeout=300)
    assert p.returncode == 1 and len(p.stdout.splitlines()) == 2, (p.returncode, p.stdout, p.stderr)
    assert p.stderr.count(b"error: ") == 2, p.stderr
    assert [open(name, "rb").read() for name in (path, path + ".kv")] == old
    assert not [name for name in os.listdir(SCRATCH) if name.startswith("full.json.") and name != "full.json.kv"], os.listdir(SCRATCH)
    r = talk(["two"], "--session", path, "--verbose")
    assert evaluated(r) == [own("two")], r.err


def two_at_once():
    path = session_path("busy.json")
    talk(["one"], "--session", path)
    p = subprocess.Popen([MINFER, *CHAT, "--session", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    p.stdin.write(b"two\n")
    p.stdin.flush()
    assert p.stdout.readline()
    before = open(path, "rb").read()
    r = run(*CHAT, "--session", path, stdin=b"x\n")
    assert r.code == 1 and "in use by another process" in r.err and r.out == b"", (r.code, r.err)
    p.communicate(timeout=60)
    assert p.returncode == 0 and len(json.loads(before)["messages"]) in (2, 4)


def killed():
    """Killed at a random moment, a session goes on with what was said, but for the turn in progress at most."""
    rng = random.Random(int(os.environ.get("MINFER_KILL_SEED", "1")))
    path = session_path("killed.json")
    said = 0
    for i in range(int(os.environ.get("MINFER_KILL_ROUNDS", "20"))):
        p = subprocess.Popen([MINFER, *CHAT, "-n", "4", "--ctx", "512", "--session", path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=environment())
        try:
            p.stdin.write(b"".join(b"question %d %d\n" % (i, k) for k in range(200)))
            p.stdin.close()
            for _ in range(rng.randrange(1, 4)):
                p.stdout.readline()
            time.sleep(rng.random() * 0.1)
        finally:
            p.kill()
        shown = p.stdout.read()
        err = p.stderr.read().decode()
        p.wait()
        p.stdout.close()
        p.stderr.close()
        assert "error" not in err and "read again: /" not in err, err
        if not os.path.exists(path) or not os.path.getsize(path):  # killed before the first turn of all was committed
            assert said == 0 and shown.count(b"\n") == 0, shown
            continue
        with open(path) as f:
            messages = json.load(f)["messages"]
        assert len(messages) % 2 == 0 and messages[-1]["role"] == "assistant"
        turns = sum(m["content"].startswith(f"question {i} ") for m in messages[::2])
        assert turns >= 1 + shown.count(b"\n") - 1, (turns, shown)  # what was shown whole, but for the last
        assert len(messages) // 2 == said + turns, "an older turn is gone"
        said += turns
        assert good("session", "info", path).err == ""
    r = talk(["the end"], "-n", "4", "--ctx", "512", "--session", path, "--verbose")
    assert len(answers(r)) == 1 and "read again" not in r.err, r.err


if __name__ == "__main__":
    command.main([piped_lines, single_turn, many_lines, commands, saved, lines_are_text, saves_nothing_over, failed_questions, interrupted,
                  true_statistics, empty_system_message, bytes_that_are_no_text, sessions, session_commands, other_cells, session_info,
                  files_that_can_not_be_written, two_at_once, killed])
