"""Every flag with values that make no sense: an exit code of 0, 1 or 2, one sentence where it is not 0, and never a crash."""
import concurrent.futures
import os
import re
import subprocess

import command
from command import MINFER, SCRATCH, environment, good, scratch, tiny

MODEL = tiny("qwen2-mix")
MESSAGES = scratch("messages.json", b'[{"role": "user", "content": "x"}]')
WORDS = scratch("words.txt", b"the time and the place " * 60)
VALUES = ["", " ", "-", "--", "nan", "inf", "-inf", "1e400", "-1e400", "1e-400", "0x10", "1,5", "1.5", "-1", "-2", "-0", "0", "1", "2", "+1", "2147483647", "2147483648",
          "-2147483648", "-2147483649", "9223372036854775807", "9223372036854775808", "99999999999999999999", "1e10", "1e300", " 1", "1 ", "\u00e9", "A" * 4096,
          "%s%n%x", "on", "auto", "always", "yes", b"\xff\xfe\x1b[31m", "../../etc/passwd", "/dev/null", "/", "/nonexistent/x", "1:1,2:2", "1:nan", "1:1e300", "0:101",
          "-1:1", "99999999:1", "1;2,3", ";", ",", "{", "{}", "[]", '{"a":1e400}', "null", "{% for %}", "{{ 1/0 }}", "chatml", "q8_0", "scalar", "cpu", "cuda", "json",
          "\u202e", "\n", "a\nb"]
COMMANDS = {"run": [MODEL, "hi", "-n", "1"], "chat": [MODEL, "-n", "1"], "info": [MODEL], "tokenize": [MODEL, "hi"], "render": [MODEL, "--messages", MESSAGES],
            "bench": [MODEL, "-p", "0", "-n", "1", "-r", "1", "--warmup-ms", "0"], "perplexity": [MODEL, "-f", WORDS, "--ctx", "16"], "list": [], "rm": ["nosuch"],
            "completion": ["bash"], "help": [], "session": ["info", "nosuch"]}
REPLACED = {"--prompt": "hi", "--file": "hi", "--messages": "--messages", "--model": MODEL}  # the word (and its value) that the flag stands for
READ = ("--file", "--model", "--messages", "--tools", "--kl-base")
SLICES = 10


def cases():
    """(words of the command line) for every flag, command and value."""
    for line in good("--help-markdown").out.decode().splitlines():
        m = re.match(r"\| (`--.*?) \| (\S*) \| (\w+(?:, \w+)*) \| ", line.replace("\\|", "/"))
        if not m:
            continue
        flag, argument = re.findall(r"`(-[^`]+)`", m[1])[0], re.sub(r"`[^`]+`", "", m[1]).strip()
        for name in COMMANDS if m[3] == "all" else m[3].split(", "):
            if name not in COMMANDS:  # doctor measures the machine
                continue
            words = list(COMMANDS[name])
            if flag in REPLACED and REPLACED[flag] in words:
                at = words.index(REPLACED[flag])
                del words[at:at + (2 if REPLACED[flag].startswith("--") else 1)]
            if name == "perplexity" and flag in ("--prompt", "--file"):
                words = [MODEL, "--ctx", "16"]
            for i, value in enumerate(VALUES):
                if argument in ("FILE", "DIR") and flag not in READ and value:  # nothing is written outside
                    value = os.path.join(SCRATCH, "out" + re.sub(r"\W", "_", str(value)[:200]))
                bytes_of = value if isinstance(value, bytes) else value.encode()
                yield i, [name, *words, *([flag.encode() + b"=" + bytes_of] if not argument or i % 2 else [flag, value])]
            yield 0, [name, *words, flag]
            if argument:
                yield 1, [name, *words, flag, "1", flag, "2"]


def check(args):
    p = subprocess.run([MINFER, *args], input=b"hi\n" if args[0] in ("chat", "rm") else b"", stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=SCRATCH, env=environment(), timeout=120)
    lines = p.stderr.split(b"\n")
    errors = [line for line in lines if line.startswith(b"error: ")]
    wrong = None
    if p.returncode not in (0, 1, 2):
        wrong = f"exit {p.returncode}"
    elif b"runtime error" in p.stderr or b"Sanitizer" in p.stderr:
        wrong = "a sanitizer's report"
    elif len(errors) != (1 if p.returncode else 0):
        wrong = f"exit {p.returncode} with {len(errors)} errors"
    elif re.search(rb"[\x00-\x08\x0b-\x1f\x7f]", p.stderr):
        wrong = "control characters"
    return wrong and (wrong, args, p.stderr[-300:])


def nonsense():
    every = os.environ.get("MINFER_TEST_EVERY")  # all of them, in minutes
    chosen = [args for n, (i, args) in enumerate(cases()) if every or (n // len(VALUES) + i) % SLICES == 0]
    assert len(chosen) > 500, len(chosen)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        wrong = [w for w in pool.map(check, chosen) if w]
    assert not wrong, "\n".join(map(str, wrong[:40])) + f"\n{len(wrong)} of {len(chosen)}"


command.main([nonsense])
