"""Second names and flags pasted from llama.cpp's programs: each works, or is answered with advice. The environment, and a terminal."""
import os
import pty
import re
import select
import signal
import subprocess
import time

import command
from command import MINFER, environment, good, refused, run, tiny

MODEL = tiny("qwen2-mix")
SHORT = ["--raw", "-p", "hi", "-n", "2", "--greedy"]
SAID = good(MODEL, *SHORT).err.splitlines()[:-1]  # about the answer, before the speeds

# Same meaning under another name: (command, words). What it does is compared with the canonical form.
SAME = [
    (["--ctx-size", "64"], ["--ctx", "64"]), (["--n-ctx", "64"], ["--ctx", "64"]), (["-c", "64"], ["--ctx", "64"]), (["--temperature", "0.5"], ["--temp", "0.5"]),
    (["--temp", "0.5", "-s", "7"], ["--temp", "0.5", "--seed", "7"]), (["--n-predict", "3"], ["-n", "3"]), (["--predict", "3"], ["-n", "3"]),
    (["-ctk", "f32", "-ctv", "f32"], ["--cache-type", "f32"]), (["--cache-type-k", "f32", "--cache-type-v", "f32"], ["--cache-type", "f32"]),
    (["-r", "e"], ["--stop", "e"]), (["--reverse-prompt", "e"], ["--stop", "e"]), (["-t", "1"], ["--threads", "1"]), (["-b", "4"], ["--batch-size", "4"]),
    (["--typical-p", "0.5"], ["--typical", "0.5"]), (["--mirostat-ent", "4"], ["--mirostat-tau", "4"]), (["--mirostat-lr", "0.2"], ["--mirostat-eta", "0.2"]),
    (["--top-nsigma", "1"], ["--top-n-sigma", "1"]), (["-l", "5:1"], ["--logit-bias", "5:1"]), (["--n-probs", "1"], ["--logprobs", "1"]),
    (["--dry-sequence-breaker", "x"], ["--dry-sequence-breakers", "x"]), (["--max-tokens", "3"], ["-n", "3"]),
]

# Accepted without effect on the answer, with a word or without.
ACCEPTED = [
    "-ngl 99", "--gpu-layers 99", "--n-gpu-layers 99", "-np 1", "-ub 64", "--ubatch-size 64", "-fa on", "-fa", "--flash-attn auto", "--no-mmap", "--mmap", "--mlock",
    "--no-warmup", "-tb 2", "--threads-batch 2", "--numa distribute", "--prio 2", "--poll 50", "-cb", "-nocb", "--simple-io", "--no-display-prompt", "-st",
    "--single-turn", "--log-disable", "--no-perf", "-nkvo", "-sm none", "-mg 0", "-ts 1,1", "--keep 4", "--no-context-shift", "--context-shift", "-e", "--no-escape",
    "-co", "--color", "--color auto", "--color off", "--log-colors on", "-lv 1", "--verbosity 1", "--check-tensors", "--swa-full", "-kvu", "--defrag-thold 0.1",
]

# Refused with exit code 2 and one line that says what to do instead, or why not.
ADVISED = [
    "-hf owner/repo", "-hfr owner/repo", "--hf-repo owner/repo", "-mu http://x", "-if", "--interactive-first", "--lora x",
    "-md x", "--model-draft x", "--draft-max 4", "--mmproj x", "--image x", "--rope-freq-base 1", "--rope-scaling yarn", "--samplers top_k", "--dynatemp-range 1",
    "--list-devices", "-dev CUDA0", "--override-kv a=int:1", "--prompt-cache x", "--slots-file x", "--kv-cache-dir x", "--split-max-size 1G",
]


def same():
    for other, canonical in SAME:
        a, b = (good(MODEL, "--raw", "-p", "tell me", "-n", "6", *f) for f in (other, canonical))
        assert a.out == b.out, other
        assert sum("logprob" in line for line in a.err.splitlines()) == sum("logprob" in line for line in b.err.splitlines())


def accepted():
    want = good(MODEL, *SHORT).out
    for flags in ACCEPTED:
        r = good(MODEL, *flags.split(), *SHORT)
        assert r.out == want, flags
        for line in r.err.splitlines():
            assert "has no effect: " in line or line.startswith("prompt: ") or line in SAID, (flags, line)
    every = [word for flags in ACCEPTED for word in flags.split() if flags != "-fa"]
    assert good(MODEL, *every, *SHORT).out == want


def advised():
    for flags in ADVISED:
        r = run(MODEL, *flags.split(), *SHORT)
        lines = r.err.splitlines()
        assert r.code == 2 and r.out == b"" and len(lines) == 1, (flags, r.code, r.err)
        assert lines[0].startswith(f"error: {flags.split()[0]}: ") and "unknown flag" not in lines[0], (flags, lines)


def near_misses():
    for wrong, right in (("--tempp", "--temp"), ("--thread", "--threads"), ("--ctx-sise", "--ctx-size"), ("--top_k", "--top-k"), ("--bach-size", "--batch-size"),
                         ("--system-promt", "--system-prompt"), ("--ignore-eso", "--ignore-eos")):
        refused(2, f"unknown flag '{wrong}'; did you mean {right}?", MODEL, wrong, "1", *SHORT)
    refused(2, "did you mean --repetitions?", "bench", MODEL, "--repetition", "2")
    refused(2, "did you mean minfer perplexity?", "perplexty", MODEL)


def variables():
    want = good(MODEL, "--raw", "tell me", "-n", "6", "--temp", "1", "--seed", "9").out
    env = {"MINFER_RAW": "1", "MINFER_PREDICT": "6", "MINFER_TEMP": "1", "MINFER_SEED": "9", "MINFER_THREADS": "1", "MINFER_BATCH_SIZE": "3", "MINFER_BATCH": "1"}
    assert good(MODEL, "tell me", env=env).out == want
    rows = {}
    for name in ("MINFER_NO_AVX512", "MINFER_NO_AVX2", "MINFER_NO_NEON"):
        r = good(MODEL, "tell me", env={**env, name: "1"})
        rows[name] = good("--version", env={name: "1"}).out
        assert r.out == want and not re.search(rb"avx512|amx" if name == "MINFER_NO_AVX512" else rb"avx" if name == "MINFER_NO_AVX2" else rb"neon|dot|i8mm", rows[name])
    assert good("--version", env={"MINFER_NO_AVX2": "0", "MINFER_NO_NEON": ""}).out == good("--version").out
    assert good(MODEL, "tell me", env={**env, "MINFER_BACKENDS": "CPU"}).out == want
    refused(1, "unknown backend 'tpu'", MODEL, "tell me", env={"MINFER_BACKENDS": "tpu"})
    refused(2, "MINFER_COLOR: 'pink' is not one of", MODEL, "x", env={"MINFER_COLOR": "pink"})
    refused(2, "MINFER_TOP_K: 'many' is not a whole number", MODEL, "x", env={"MINFER_TOP_K": "many"})
    bench = ["bench", MODEL, "-p", "0", "-n", "2", "-r", "1", "--warmup-ms", "0"]
    good(*bench, env={"MINFER_BATCH": "0"})
    refused(2, "MINFER_BATCH=0 asks for one sequence", *bench, "--parallel", "2", env={"MINFER_BATCH": "0"})
    refused(2, "MINFER_BATCH: '2' is not", *bench, env={"MINFER_BATCH": "2"})
    parallel = good(*bench, "-o", "csv", env={"MINFER_PARALLEL": "2"}).out.decode().splitlines()
    assert "n_parallel" in parallel[0] and len(parallel) == 2


class Terminal:
    """The program with its three streams on a pseudo-terminal."""

    def __init__(self, *args, env=None):
        self.master, slave = pty.openpty()
        full = environment({"TERM": "xterm", **(env or {})})
        full.pop("NO_COLOR", None) if "NO_COLOR" not in (env or {}) else None
        self.p = subprocess.Popen([MINFER, *args], stdin=slave, stdout=slave, stderr=slave, env=full, start_new_session=True)
        os.close(slave)
        self.seen = b""

    def read(self, until=None, timeout=120):
        end = time.monotonic() + timeout
        while time.monotonic() < end and not (until and until in self.seen):
            if not select.select([self.master], [], [], 0.2)[0]:
                if self.p.poll() is not None:
                    break
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the other side is closed
                break
            if not data:
                break
            self.seen += data
        assert not until or until in self.seen, self.seen[-500:]
        return self.seen

    def end(self):
        self.read()
        code = self.p.wait(timeout=60)
        os.close(self.master)
        return code


def on_a_terminal():
    plain = good(MODEL, *SHORT).out
    t = Terminal(MODEL, *SHORT)
    assert t.end() == 0 and plain.strip() in t.seen.replace(b"\r", b"") and b"tok/s" in t.seen
    assert re.sub(rb"\r\x1b\[K|\r[^\r\n]*\[[#.]+\] +\d+ %", b"", t.seen).count(b"\x1b") == 0, t.seen  # a progress bar at most
    t = Terminal(MODEL, *SHORT, "--color", "never", env={"NO_COLOR": "1"})
    assert t.end() == 0
    r = good(MODEL, *SHORT, "--color", "always")
    assert r.out == plain and b"\x1b" not in r.out and "\x1b" not in r.err and "%" not in r.err
    t = Terminal("run", MODEL)  # nothing to answer
    assert t.end() == 2 and b"no prompt" in t.seen
    t = Terminal(MODEL, "--json")  # no conversation either
    assert t.end() == 2 and b"no prompt" in t.seen
    for args, env in (([MODEL], None), ([], {"MINFER_MODEL": MODEL}), ([MODEL], {"MINFER_SESSION": os.path.join(command.SCRATCH, "talk")})):
        t = Terminal(*args, env=env)
        t.read(until=b"> ")
        os.write(t.master, b"\x04")
        assert t.end() == 0, t.seen


def progress_and_interrupt():
    slow = [MODEL, "--cpu", "scalar", "-t", "1", "-b", "8", "--raw", "-n", "1", "-p", "word and other " * 60]
    t = Terminal(*slow)
    code = t.end()
    assert code == 0, t.seen[-300:]
    if b"reading the prompt [" not in t.seen:
        print("     this machine reads the prompt before a bar would appear", flush=True)
    assert "reading" not in good(*slow).err
    a = re.findall(r"\d+", good("tokenize", MODEL, "a").out.decode())[0]
    t = Terminal(MODEL, "--raw", "-p", "x", "-n", "-1", "--greedy", "--repeat-penalty", "1", "--logit-bias", f"{a}:100", "--cpu", "scalar", "-t", "1")
    t.read(until=b"aa")
    os.killpg(t.p.pid, signal.SIGINT)
    assert t.end() == 130 and b"tok/s" in t.seen and b"error" not in t.seen, t.seen[-300:]


command.main([same, accepted, advised, near_misses, variables, on_a_terminal, progress_and_interrupt])
