"""What a person sees of a conversation: the program's bytes go through a terminal emulator, and its screen is compared."""
import json
import os
import signal
import sys
import termios
import time

import command
from command import good, scratch
from e2e_chat import LETTERS, MODEL
from e2e_chat_terminal import Terminal
from scripted import make

try:
    import pyte
except ImportError:
    print("skipped: there is no terminal emulator (Debian's python3-pyte)")
    sys.exit(77)

COLUMNS, ROWS = 100, 60
LONG = 700  # tokens
PASTE_MODE = 2004 << 5  # as pyte names a private mode


class Screen(Terminal):
    def __init__(self, *args, columns=COLUMNS, **kw):
        self.screen = pyte.Screen(columns, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        super().__init__(*args, rows=ROWS, columns=columns, **kw)

    def took(self, data):
        self.stream.feed(data)

    def lines(self):
        """The screen's lines, without what is empty at the end."""
        lines = [line.rstrip() for line in self.screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines


def started(*args, **kw):
    t = Screen(*args, **kw)
    t.expect("/help lists the commands")
    t.prompt()
    return t


def wrapped(text, columns=COLUMNS):
    return [text[i:i + columns].rstrip() for i in range(0, len(text), columns)]


def pause(t):
    """Stops the program for longer than a bar waits before it is drawn."""
    os.kill(t.p.pid, signal.SIGSTOP)
    time.sleep(0.4)
    os.kill(t.p.pid, signal.SIGCONT)


def shown(t, question):
    """The lines between a question and the next prompt, which is empty."""
    lines = t.lines()
    assert lines[-1] == ">", lines
    return lines[lines.index("> " + question) + 1:-1]


def no_bar_in_an_answer():
    flags = ["-n", str(LONG), "--seed", "5"]
    slow = ["--cpu", "scalar", "-t", "1"]
    base = ["chat", MODEL, *LETTERS]
    answer = good(*base, *flags, stdin=b"hello").out.decode().rstrip("\n")
    t = started(*flags, *slow, base=base)
    t.send("hello\r")
    t.expect("\n")
    while len(t.seen) < 20:
        t.read(1)
    pause(t)
    t.prompt()
    assert shown(t, "hello") == wrapped(answer), (shown(t, "hello"), answer)
    t.end()


def no_bar_is_left():
    """Of a prompt that is read while the bar is there nothing stays but the answer; also in a window that is narrower than a bar."""
    question = "the question " * 30
    flags = ["-n", "30", "--seed", "5", "-b", "1", "--cpu", "scalar", "-t", "1"]
    base = ["chat", MODEL, *LETTERS]
    answer = good(*base, *flags, stdin=question.encode()).out.decode().rstrip("\n")
    for columns in (COLUMNS, 30):
        t = started(*flags, base=base, columns=columns)
        t.send(question + "\r")
        t.expect("\n")
        pause(t)
        t.prompt()
        lines = t.lines()
        want = wrapped(answer, columns)
        assert lines[-1] == ">" and lines[-1 - len(want):-1] == want, (columns, lines)
        assert not any("reading" in line or "%" in line for line in lines), (columns, lines)
        t.end()


ESCAPES = ["\033]0;owned\a", "A", "\r", "BB", "\033[2J", "C\tc", "\r\n", "D", "\u009b31m", "E", b"\xc2", b"\x9b", "32m", "\x7f", "\0", " end"]


def answers_command_no_terminal():
    model = make("escapes", ESCAPES)
    want = ["\u241b]0;owned\u2407A\u240dBB\u241b[2JC       c", "D\ufffd31mE\ufffd32m\u2421\u2400 end"]
    want[0] = want[0][:want[0].index("C ")] + "C" + " " * (8 - (want[0].index("C ") + 1) % 8) + "c"  # a tab is one
    t = started(base=["chat", model])
    t.send("hello\r")
    t.expect("\n")
    t.prompt()
    assert shown(t, "hello") == want and t.screen.title == "", (shown(t, "hello"), t.screen.title)
    t.end()
    t = Screen(base=["run", model, "hello"])
    t.finish()
    assert [line for line in t.lines() if "tok/s" not in line] == want and t.screen.title == "", t.lines()
    raw = "".join(p if isinstance(p, str) else "" for p in ESCAPES[:9]).encode()
    t = Screen("--raw-output", base=["run", model, "hello"])
    t.finish()
    assert t.screen.title == "owned", t.lines()
    assert good(model, "hello").out.startswith(raw)  # what goes into a file or a pipe is as the model says it


def system_messages_command_no_terminal():
    """Nor does what a history says that somebody else wrote."""
    path = scratch("history.json", json.dumps({"minfer_session": 1, "messages": [{"role": "system", "content": "be\033]0;owned\a kind"}]}).encode())
    t = started()
    t.send(f"/load {path}\r")
    t.prompt()
    t.send("/system\r")
    t.prompt()
    assert shown(t, "/system") == ["be\u241b]0;owned\u2407 kind"] and t.screen.title == "", (t.lines(), t.screen.title)
    t.end()


def ended_by(number, generating):
    t = Screen("--cpu", "scalar", "-t", "1", base=["chat", MODEL, *LETTERS])
    tty = os.open(t.name, os.O_RDWR | os.O_NOCTTY)
    t.expect("/help lists the commands")
    t.prompt()
    assert termios.tcgetattr(tty) != t.modes and PASTE_MODE in t.screen.mode
    t.send("a line that is not ended")
    if generating:
        t.send("\r")
        t.expect("\n")
        while len(t.seen) < 5:
            t.read(1)
    else:
        t.expect("not ended")
    os.kill(t.p.pid, number)
    while t.p.poll() is None:
        t.read(0.1)
    while t.read(0.2):
        pass
    assert t.p.returncode == -number, (number, t.p.returncode)
    assert termios.tcgetattr(tty) == t.modes, number
    assert PASTE_MODE not in t.screen.mode, number
    if not generating:
        assert t.screen.cursor.x == 0 and t.lines() == t.lines()[:t.screen.cursor.y], t.lines()  # the shell's prompt has a line of its own
    os.close(tty)
    os.close(t.master)


def deadly_signals():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        for generating in (False, True):
            ended_by(number, generating)


if __name__ == "__main__":
    command.main([no_bar_in_an_answer, no_bar_is_left, deadly_signals, answers_command_no_terminal, system_messages_command_no_terminal])
