"""The two files of minfer chat --session: one process at a time has them, nothing that is not ours is overwritten, no answer is given that
can't be kept, and damage costs no more than it must."""
import json
import os
import random
import re
import subprocess
import time

import command
from command import MINFER, SCRATCH, environment, good, refused, run, scratch, tiny

MODEL = tiny("qwen2-f32")
CHAT = ["chat", MODEL, "--greedy", "-n", "4"]


def path_of(name):
    folder = os.path.join(SCRATCH, name)
    os.mkdir(folder)
    return os.path.join(folder, "talk")


def begin(path, *args):
    return subprocess.Popen([MINFER, *CHAT, "--session", path, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=environment())


def wait_for(path, p):
    while not os.path.exists(path):
        assert p.poll() is None
        time.sleep(0.01)


def ask(p, text):
    p.stdin.write(text + b"\n")
    p.stdin.flush()
    assert p.stdout.readline()


def questions(path):
    with open(path) as f:
        return [m["content"] for m in json.load(f)["messages"] if m["role"] == "user"]


def two_begin_one_session():
    """Many times at once: one has it, the other is refused before it answers, and what the first says is kept."""
    path = path_of("race")
    for i in range(20):
        both = [begin(path, "--verbose") for _ in range(2)]
        outcome = []
        for k, p in enumerate(both):
            out, err = p.communicate(b"turn %d of %d\n" % (i, k), timeout=300)
            outcome.append((p.returncode, out != b"", b"in use by another process" in err))
        assert (0, True, False) in outcome and all(o in ((0, True, False), (1, False, True)) for o in outcome), outcome
        kept, said = questions(path), [f"turn {i} of {k}" for k in range(2) if outcome[k][0] == 0]
        assert sorted(kept[-len(said):]) == said, (kept, outcome)
    assert good("session", "info", path).err == ""


def the_second_is_refused_before_the_first_turn():
    path = path_of("waiting")
    p = begin(path)
    wait_for(path + ".kv", p)
    os.symlink(path, path + ".link")
    for name in (path, path + ".link"):  # by another name, the cells would be another file
        refused(1, "in use by another process", *CHAT, "--session", name, stdin=b"mine")
    ask(p, b"first")
    refused(1, "in use by another process", *CHAT, "--session", path, stdin=b"mine")
    p.communicate(timeout=300)
    assert questions(path) == ["first"]
    assert sorted(os.listdir(os.path.dirname(path))) == ["talk", "talk.kv", "talk.link"]


def nothing_was_said():
    path = path_of("silent")
    assert good(*CHAT, "--session", path, stdin=b"").out == b""
    assert os.listdir(os.path.dirname(path)) == []
    p = begin(path)
    wait_for(path + ".kv", p)
    p.kill()
    p.communicate()
    good(*CHAT, "--session", path, stdin=b"one")
    assert questions(path) == ["one"]


def what_is_not_ours_stays():
    path = path_of("foreign")
    for text in (b"MFSESSION", os.urandom(3000), b"a text of mine\n" * 5):
        for name in (path, path + ".kv"):
            with open(name, "wb") as f:
                f.write(text)
            r = run(*CHAT, "--session", path, stdin=b"x")
            assert r.code == 1 and r.out == b"" and "error: " in r.err, r.err
            with open(name, "rb") as f:
                assert f.read() == text, name
            os.remove(name)


def what_can_not_be_kept_is_refused_at_once():
    path = path_of("unwritable")
    os.mkdir(path + "2.kv")
    for name, part in ((os.path.join(SCRATCH, "no-folder", "x"), "No such file"), ("/proc/x", "can't write"), ("/dev/full", "no regular file"),
                       (path + "2", "directory"), (os.path.dirname(path), "directory")):
        r = run(*CHAT, "--session", name, stdin=b"x")
        assert r.code == 1 and r.out == b"" and part in r.err, (name, r.code, r.err)
    if os.getuid():
        os.chmod(os.path.dirname(path), 0o500)
        refused(1, "Permission denied", *CHAT, "--session", path, stdin=b"x")


def what_others_do_to_the_files():
    """Removed while a conversation runs, they are written anew; replaced, they are not overwritten."""
    path = path_of("meanwhile")
    p = begin(path)
    ask(p, b"one")
    ask(p, b"two")
    for name in (path, path + ".kv"):
        if os.path.exists(name):
            os.remove(name)
    ask(p, b"three")
    p.communicate(timeout=300)
    assert questions(path) == ["one", "two", "three"] and good("session", "info", path).err == ""
    p = begin(path)
    ask(p, b"four")
    os.rename(scratch("mine", b"mine"), path)
    ask(p, b"five")
    assert b"another program has replaced it" in p.communicate(timeout=300)[1]
    with open(path, "rb") as f:
        assert f.read() == b"mine"


def saving_over_the_sessions_own_file():
    path = path_of("itself")
    commands = [] if b"--commands" not in good("chat", "--help").out else ["--commands"]
    for name in (path, os.path.join(os.path.dirname(path), ".", "talk")):
        r = good(*CHAT, *commands, "--session", path, stdin=f"one\n/save {name}\ntwo".encode())
        assert "error" not in r.err, r.err
    assert questions(path) == ["one", "two"] * 2


def no_draw_is_used_twice():
    """Also where the cells don't fit and the conversation is read again."""
    path = path_of("draws")
    for turn, args in enumerate(([], ["-ctk", "f32", "-ctv", "f32"], [])):
        good("chat", MODEL, "-n", "4", "--ignore-eos", "--session", path, *args, stdin=b"the same")
        with open(path) as f:
            assert json.load(f)["draws"] == 4 * (turn + 1)


def what_a_killed_process_left_goes():
    path = path_of("left")
    left = [path + ".0123456789abcdef.tmp", path + ".kv.fedcba9876543210.tmp"]
    kept = [path + ".0123456789abcde.tmp", path + ".0123456789abcdef.tmp~", path + ".0123456789abcdeg.tmp", path + ".kv.tmp", path + "2.0123456789abcdef.tmp"]
    for name in left + kept:
        with open(name, "w"):
            pass
    good(*CHAT, "--session", path, stdin=b"one")
    assert sorted(os.listdir(os.path.dirname(path))) == sorted(map(os.path.basename, kept + [path, path + ".kv"]))


def damage_costs_what_stands_behind_it():
    path = path_of("damaged")
    ends = []
    for turn in ("one", "two", "three"):
        good(*CHAT, "--session", path, stdin=turn.encode())
        ends.append(os.path.getsize(path + ".kv"))
    want = good(*CHAT, "--session", path, stdin=b"four", env=None)
    saved = {}
    for name in (path, path + ".kv"):
        with open(name, "rb") as f:
            saved[name] = f.read()
    rng = random.Random(5)
    for at in [rng.randrange(ends[0], ends[2] - 200) for _ in range(12)]:
        for name, data in saved.items():
            data = bytearray(data)
            if name.endswith(".kv"):
                data[at] ^= 1 << rng.randrange(8)
                damaged = bytes(data)
            with open(name, "wb") as f:
                f.write(data)
        r = run("session", "info", path)
        assert r.code == 1 and re.search(rb"damage +at byte", r.out) and "is damaged at byte" in r.err, (r.out, r.err)
        assert json.loads(run("session", "info", path, "--json").out)["damaged_byte"] <= at
        r = good(*CHAT, "--session", path, stdin=b"")  # looking changes nothing
        with open(path + ".kv", "rb") as f:
            assert "what was said later is read again: " in r.err and f.read() == damaged, r.err
        r = good(*CHAT, "--session", path, "--verbose", stdin=b"five")
        assert "is damaged at byte" in r.err and r.out, r.err
        assert questions(path) == ["one", "two", "three", "four", "five"]
        assert good("session", "info", path).err == ""
    assert want.out


def a_model_that_differs_late_is_another():
    path = path_of("tuned")
    with open(MODEL, "rb") as f:
        data = bytearray(f.read())
    data[-16] ^= 1  # the last bit of some weight
    tuned = scratch("tuned.gguf", bytes(data))
    good(*CHAT, "--session", path, stdin=b"one")
    r = good("chat", tuned, *CHAT[2:], "--session", path, stdin=b"two")
    assert "read again: " in r.err and "the session's model fingerprint is " in r.err, r.err


if __name__ == "__main__":
    command.main([two_begin_one_session, the_second_is_refused_before_the_first_turn, nothing_was_said, what_is_not_ours_stays,
                  what_can_not_be_kept_is_refused_at_once, what_others_do_to_the_files, saving_over_the_sessions_own_file, no_draw_is_used_twice, what_a_killed_process_left_goes,
                  damage_costs_what_stands_behind_it, a_model_that_differs_late_is_another])
