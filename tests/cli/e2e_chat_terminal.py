"""minfer chat on a pseudo-terminal: the prompt, Ctrl-C and Ctrl-D, the history, pastes, other alphabets, colours, a window that changes."""
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import command
from command import MINFER, SCRATCH, environment
from e2e_chat import CHAT, LETTERS, MODEL

PASTE = "\033[200~%s\033[201~"


class Terminal:
    def __init__(self, *args, base=CHAT, env=None, rows=24, columns=100):
        master, slave = pty.openpty()
        self.name, self.modes = os.ttyname(slave), termios.tcgetattr(slave)

        def take_terminal():
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):  # what started the tests may have them ignored
                signal.signal(number, signal.SIG_DFL)
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.size(master, rows, columns)
        extra = {"TERM": "xterm", "XDG_STATE_HOME": os.path.join(SCRATCH, "state"), "LANG": "", "LC_ALL": "", "LC_CTYPE": "", "NO_COLOR": ""}
        extra.update(env or {})
        self.p = subprocess.Popen([MINFER, *base, *args], stdin=slave, stdout=slave, stderr=slave, env=environment(extra), preexec_fn=take_terminal,
                                  close_fds=True)
        os.close(slave)
        self.master, self.seen = master, b""

    def size(self, fd, rows, columns):
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        while data:
            data = data[os.write(self.master, data[:1000]):]
            while data and self.read(0.05):
                pass

    def read(self, timeout):
        if not select.select([self.master], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.seen += data
        self.took(data)
        return bool(data)

    def took(self, data):
        """Sees all that is written, as it comes."""

    def expect(self, part, timeout=60):
        """Waits for a text, and returns what came before it."""
        part = part if isinstance(part, bytes) else part.encode()
        end = time.monotonic() + timeout
        while part not in self.seen:
            assert time.monotonic() < end and (self.read(1) or self.p.poll() is None), f"{part} did not come: {self.seen[-2000:]}"
        before, _, self.seen = self.seen.partition(part)
        return before

    def prompt(self):
        """What comes before the next line that is asked for. The terminal takes keys one by one from here on."""
        before = self.expect("\033[?2004h")
        self.expect("> ")
        return before

    def end(self, code=0):
        """Ctrl-D on an emptied line, as often as it takes: one that comes while the terminal still collects lines is eaten by it."""
        end = time.monotonic() + 60
        while self.p.poll() is None and time.monotonic() < end:
            self.send("\x15\x04")
            pause = time.monotonic() + 1
            while self.p.poll() is None and time.monotonic() < pause:
                self.read(0.1)
        self.finish(code)

    def finish(self, code=0):
        end = time.monotonic() + 60
        while self.p.poll() is None and time.monotonic() < end:
            self.read(0.1)
        assert self.p.wait(timeout=10) == code, (self.p.returncode, self.seen[-500:])
        while self.read(0.2):  # what it wrote last
            pass
        os.close(self.master)

    def questions(self):
        """What was asked, by way of /save."""
        path = os.path.join(SCRATCH, "questions.json")
        if os.path.exists(path):
            os.remove(path)
        self.send(f"/save {path}\r")
        self.prompt()
        end = time.monotonic() + 60
        while not os.path.exists(path) and time.monotonic() < end:
            self.read(0.1)
        with open(path, encoding="utf-8") as f:
            return [m["content"] for m in json.load(f)["messages"] if m["role"] == "user"]


def started(*args, **kw):
    t = Terminal(*args, **kw)
    t.expect("/help lists the commands")
    t.prompt()
    return t


def ask(t, text):
    """Types a line, waits for the next prompt and returns what was shown between."""
    t.send(text + "\r")
    t.expect("\n")
    return t.prompt()


def answers_and_ends():
    t = started()
    assert len(ask(t, "hello").split(b"\n")[0].strip()) > 3
    assert b"context: " in ask(t, "/stats")
    assert b"error: /undo takes nothing behind it" in ask(t, "/undo x")
    assert len(ask(t, "\x15again").strip()) > 3  # the prompt is there behind an error too
    t.end()
    t = started()
    t.send("/exit\r")
    t.finish()


def ctrl_c():
    slow = ["--cpu", "scalar", "-t", "1"]
    t = started(*slow, base=["chat", MODEL, *LETTERS])
    for i in range(3):  # each answer can be stopped, and each prompt comes back
        t.send(f"question {i}\r")
        t.expect("\n")
        while len(t.seen) < 5:
            t.read(1)
        t.send("\x03")
        t.prompt()
    assert t.questions() == ["question 0", "question 1", "question 2"]
    t.send("not to be asked\x03")
    t.prompt()
    t.send('"""not to\rbe asked\x03')
    t.prompt()
    t.send("\x03")
    t.prompt()
    assert len(t.questions()) == 3
    os.kill(t.p.pid, signal.SIGINT)  # from elsewhere, between the answers
    time.sleep(0.2)
    t.send("\x03")
    t.prompt()
    t.end()


def history():
    t = started("-n", "3")
    ask(t, "the first")
    ask(t, "the second")
    t.send("\x1b[A")
    t.expect("the second")
    t.send("\x1b[A")
    t.expect("first")
    t.send(" again\r")
    t.expect("\n")
    t.prompt()
    assert t.questions() == ["the first", "the second", "the first again"]
    t.end()
    file = os.path.join(SCRATCH, "state", "minfer", "history")
    assert os.stat(file).st_mode & 0o777 == 0o600 and os.stat(os.path.dirname(file)).st_mode & 0o777 == 0o700
    t = started("-n", "3")  # it is there the next time
    t.send("\x1b[A\x1b[A")
    t.expect("the first again")
    t.send("\r")
    t.expect("\n")
    t.prompt()
    assert t.questions() == ["the first again"]
    t.end()


def alphabets():
    word = "gr\u00fc\u00df dich \u20ac \u4f60\u597d \U0001f600"
    for env in ({}, {"LC_ALL": "C.UTF-8"}, {"LC_ALL": "C"}):
        t = started("-n", "3", env=env)
        ask(t, word)
        ask(t, PASTE % word)
        ask(t, word + "x\x7f\x7f!")  # a character goes as a whole
        assert t.questions() == [word, word, word[:-1] + "!"], env
        t.end()


def pastes():
    t = started("-n", "3")
    ask(t, PASTE % "one\rtwo\r/clear\r\tthree")
    text = "one\ntwo\n/clear\n\tthree"
    assert t.questions() == [text]
    ask(t, "before " + PASTE % "a\rb" + " behind")
    assert t.questions() == [text, "before a\nb behind"]
    ask(t, PASTE % "" + "x")
    long = "the " * 400
    ask(t, PASTE % long)
    got = t.questions()[2:]
    assert got == ["x", long.strip()], (len(got), [len(q) for q in got], got[1:][:100])
    t.send(PASTE % "\x03\x04" + "\x03")  # no byte of a paste is a key
    t.prompt()
    t.end()


def pastes_are_text():
    """Nothing that was pasted is a command, a fence or a line that goes on, whatever was typed beside it."""
    victim = os.path.join(SCRATCH, "victim")
    with open(victim, "w") as f:
        f.write("precious")
    t = started("-n", "2")
    pasted = ["/clear", "/exit\ra", f"/save {victim}", '\"\"\"a', "a\\", '\"\"\"\ra\\\rb\"\"\"', "/udno x", "a\r\nb", "a\0b", "/clear \ra"]
    for text in pasted:
        ask(t, PASTE % text)
    want = [text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd") for text in pasted]
    assert t.questions() == want, (t.questions(), want)
    t.send("/clear\r")
    t.prompt()
    ask(t, PASTE % "/clear\rabc" + "\x7f\x7f")  # a paste that is edited is still one
    ask(t, PASTE % "/clear" + " typed")
    assert t.questions() == ["/clear\na", "/clear typed"]
    t.send("/clear\r")
    t.prompt()
    # What is typed around a paste means what it does.
    t.send('\"\"\"' + PASTE % 'a\"\"\"' + "\r")
    t.expect(". ")
    t.send('b\"\"\"\r')
    t.expect("\n")
    t.prompt()
    t.send(PASTE % "a" + "\\\r")
    t.expect(". ")
    t.send("b\r")
    t.expect("\n")
    t.prompt()
    assert t.questions() == ['a\"\"\"\nb', "a\nb"], t.questions()
    t.send("/sys" + PASTE % "tem" + " " + PASTE % "be kind" + "\r")
    t.prompt()
    assert b"be kind" in ask(t, "/system")
    with open(victim) as f:
        assert f.read() == "precious"
    data = (PASTE % ("the " * 300000)).encode()
    while data:  # nothing is shown before its end, so nothing has to be read between
        data = data[os.write(t.master, data):]
    t.expect("a paste of over 1048576 characters is not taken")
    t.prompt()
    t.end()


def near_misses():
    """A mistyped command is neither done nor sent: it is there to be corrected, or to be sent as text behind a space."""
    t = started("-n", "2")
    ask(t, "the question")
    said = ask(t, "/udno").replace(b"\x1b", b"")
    assert b"did you mean /undo?" in said, said
    t.expect("/udno")
    t.send("\x7f\x7f\x7fndo\r")
    t.prompt()
    assert t.questions() == []
    ask(t, "/sav it")
    t.expect("/sav it")
    t.send("\x01 \r")
    t.prompt()
    ask(t, "/clear the table")
    t.expect("/clear the table")
    t.send("\x01 \r")
    t.prompt()
    ask(t, "/etc/hosts")
    assert t.questions() == [" /sav it", " /clear the table", "/etc/hosts"], t.questions()
    t.end()


def saving_over_files():
    victim = os.path.join(SCRATCH, "victim")
    t = started("-n", "2")
    ask(t, "the question")
    for reply, kept in (("n", True), ("", True), ("\x03", True), ("y", False)):
        with open(victim, "w") as f:
            f.write("precious")
        t.send(f"/save {victim}\r")
        t.expect("write over it (y or n)? ")
        t.send(reply + ("" if reply == "\x03" else "\r"))
        t.prompt()
        with open(victim) as f:
            assert (f.read() == "precious") == kept, reply
    assert t.questions() == ["the question"]
    t.end()


def editing():
    t = started("-n", "3")
    ask(t, "the question")
    t.send("/edit\r")
    t.expect("edit> ")
    t.expect("the question")
    t.send("s\r")
    t.expect("\n")
    t.prompt()
    assert t.questions() == ["the questions"]
    t.send("/edit\r")
    t.expect("edit> ")
    t.send("\x03")
    t.prompt()
    assert t.questions() == ["the questions"]
    t.end()


def window():
    t = started("-n", "3")
    t.send("a text that is longer than the window will be")
    t.expect("will be")
    t.size(t.master, 10, 20)
    os.kill(t.p.pid, signal.SIGWINCH)
    t.send(" soon\r")
    t.expect("\n")
    t.prompt()
    t.size(t.master, 50, 200)
    ask(t, "wide")
    assert t.questions() == ["a text that is longer than the window will be soon", "wide"]
    t.end()


def colours():
    for args, env in (([], {"NO_COLOR": "1"}), (["--color", "never"], {}), ([], {"TERM": "dumb"}), (["--color", "always"], {})):
        t = started("-n", "3", *args, env=env)  # only thoughts have one
        assert b"\033[2m" not in ask(t, "hello"), args
        t.end()


if __name__ == "__main__":
    command.main([answers_and_ends, ctrl_c, history, alphabets, pastes, pastes_are_text, near_misses, saving_over_files, editing, window, colours])
