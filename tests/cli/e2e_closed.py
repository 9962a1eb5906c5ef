"""A closed standard input, output or error: no file takes its number, and what can't be read or written is an error."""
import json
import os
import stat
import subprocess

import command
from command import MINFER, SCRATCH, environment, good, tiny

MODEL = tiny("qwen2-f32")


def closed(fd, *args, stdin=b""):
    """Runs with one descriptor closed; what was written to standard output and error."""
    line = f'"$0" "$@" {fd}>&-' if fd else '"$0" "$@" <&-'
    p = subprocess.run(["sh", "-c", line, MINFER, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), timeout=300)
    return command.Result(p.returncode, p.stdout, p.stderr.decode())


def roles(path):
    with open(path) as f:
        return [m["role"] for m in json.load(f)["messages"]]


def sessions_keep_their_bytes():
    for fd in (1, 2):
        path = os.path.join(SCRATCH, f"closed{fd}")
        talk = ["chat", MODEL, "--session", path, "--greedy", "-n", "4"]
        good(*talk, stdin=b"one")
        before = open(path + ".kv", "rb").read()
        r = closed(fd, *talk, "--verbose", stdin=b"two\nthree")
        after = open(path + ".kv", "rb").read()
        assert r.code == (1 if fd == 1 else 0) and after[:8] == before[:8], (fd, r.code, r.err)
        assert after[: len(before)] == before and good("session", "info", path).err == "", fd
        assert ("can't write to standard output" in r.err) == (fd == 1), (fd, r.err)
        assert len(roles(path)) == (6 if fd == 2 else len(roles(path)))
        assert good(*talk, stdin=b"four").out and "read again" not in good(*talk, stdin=b"five").err


def an_answer_that_nobody_gets_is_an_error():
    for args in (["run", MODEL, "x", "-n", "2"], ["tokenize", MODEL, "x"], ["info", MODEL], ["doctor"], ["--help"], ["--version"], ["completion", "bash"]):
        r = closed(1, *args)
        assert r.code == 1 and "can't write to standard output: Bad file descriptor" in r.err, (args, r.code, r.err)


def a_closed_input_is_no_text():
    r = closed(0, "tokenize", MODEL)
    assert r.code != 0 and r.out == b"", (r.code, r.out, r.err)
    assert closed(0, "run", MODEL, "x", "-n", "2").code == 0


def what_was_said_is_its_owners():
    path = os.path.join(SCRATCH, "private")
    old = os.umask(0)
    try:
        good("chat", MODEL, "--session", path, "-n", "2", stdin=f"one\n/save {path}.saved".encode())
    finally:
        os.umask(old)
    for name in (path, path + ".kv", path + ".saved"):
        if os.path.exists(name):
            assert stat.S_IMODE(os.stat(name).st_mode) == 0o600, name


if __name__ == "__main__":
    command.main([sessions_keep_their_bytes, an_answer_that_nobody_gets_is_an_error, a_closed_input_is_no_text, what_was_said_is_its_owners])
