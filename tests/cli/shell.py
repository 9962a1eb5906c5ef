"""A shell on a terminal, with minfer's completion and a model cache whose names and files mean harm."""
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import time

import command
from command import MINFER, SCRATCH, environment, good, string

RUNS, SHORT = "touch HARM", ">HARM"  # SHORT has no space in it
NAMES = [f"one$({RUNS})", f"two`{RUNS}`", f"three;{RUNS};", f'four";{RUNS};"', f"five';{RUNS};'", f"six\n$({RUNS})", f"seven {RUNS}", f"eight&{RUNS}&",
         "nine\x1b[31m", f"ten)(${{x:=$({RUNS})}}", f"-eleven$({RUNS})", "twelve*",
         f"a1$({SHORT})", f"b1`{SHORT}`", f"c1;{SHORT};", f"d1)($({SHORT})", f"e1&{SHORT}&", f"f1|{SHORT}"]
METADATA = f"x\n$({RUNS}) `{RUNS}` ;{RUNS};\n$({RUNS})"


def fill():
    """The folder that the shell stands in; its cache holds the names."""
    home = os.path.join(SCRATCH, "home")
    models = os.path.join(home, "cache", "minfer", "models")
    os.makedirs(models)
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + string("general.architecture") + struct.pack("<I", 8) + string(METADATA)
    for name in [*NAMES, "innocent"]:
        with open(os.path.join(models, name + ".gguf"), "wb") as f:
            f.write(data)
    for name in NAMES:
        open(os.path.join(home, "file-" + name.replace("/", "_")), "w").close()
    return home


class Shell:
    def __init__(self, argv, home):
        env = environment({"XDG_CACHE_HOME": os.path.join(home, "cache"), "HOME": home, "PATH": os.path.dirname(MINFER) + ":" + os.environ["PATH"], "TERM": "xterm"})
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(home)
            os.execvpe(argv[0], argv, env)

    def wait_for(self, mark, timeout=20):
        """What is shown up to the mark."""
        seen, end = b"", time.monotonic() + timeout
        while mark not in seen and time.monotonic() < end:
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    seen += os.read(self.fd, 65536)
                except OSError:
                    break
        assert mark in seen, (mark, seen[-2000:])
        return seen

    def type(self, text):
        os.write(self.fd, text)

    def run(self, line):
        self.count = getattr(self, "count", 0) + 1
        self.type(line + b"; echo e''nd%d\r" % self.count)
        return self.wait_for(b"end%d" % self.count)

    def close(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


def complete_and_run(shell, home, complete=b"\t\t"):
    """Completes in many places, runs what came of it, and looks whether anything else ran."""
    for words in ("info ", "rm ", "run ", "run file-", "info inno", "info -", "run -f file-", "list "):
        shell.type(b"echo minfer; minfer " + words.encode() + complete)
        time.sleep(0.3)  # a key that comes while a list is shown may answer its question
        shell.type(b"\x03")
        shell.run(b"true")
    for name in NAMES:
        for start in ("info ", "rm ", "run file-"):
            shell.type(b"minfer " + start.encode() + re.match("-?([a-z0-9]+)", name)[1].encode() + complete)
            time.sleep(0.2)
            shell.run(b" --help >/dev/null 2>&1 </dev/null")
        assert not os.path.exists(os.path.join(home, "HARM")), name
    assert not os.path.exists(os.path.join(home, "HARM"))


def need(name):
    if not shutil.which(name):
        print(f"skipped: no {name}", flush=True)
        sys.exit(77)
