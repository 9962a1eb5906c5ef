"""What a person sees of a conversation: the program's bytes go through a terminal emulator, and its screen is compared."""
import os
import signal
import sys
import termios
import time

import command
from command import good
from e2e_chat import LETTERS, MODEL
from e2e_chat_terminal import Terminal

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
    command.main([deadly_signals, no_bar_in_an_answer, no_bar_is_left])
