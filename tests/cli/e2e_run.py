"""minfer run: what it answers, what it refuses, and how it ends."""
import json
import os
import pty
import random
import signal
import struct
import subprocess
import time

import command
from command import MINFER, environment, good, refused, run, scratch, tiny, with_metadata, with_text

MODEL = tiny("qwen2-f32")


def token(text):
    ids = json.loads(good("tokenize", MODEL, text, "--json").out)["ids"]
    assert len(ids) == 1, f"{text}: {ids}"
    return ids[0]


A, START, END = token("a"), token("<|im_start|>"), token("<|im_end|>")
RAW = [MODEL, "--raw", "-p", "hello", "--greedy", "--repeat-penalty", "1"]
AAAA = RAW + ["--logit-bias", f"{A}:100"]  # a model that says nothing but "a"


def usage():
    for args in ([], ["run"], ["-p", "x"]):
        r = run(*args)
        assert r.code == 2 and r.out == b"", (args, r.code)
    refused(2, "no model", "run", "-p", "x")
    refused(2, "unknown flag '--tmep'; did you mean --temp?", MODEL, "x", "--tmep", "1")
    refused(2, "did you mean minfer bench?", "bnech")
    refused(2, "'serve' is not in this version", "serve", MODEL)
    refused(1, "No such file", "nothing-here.gguf", "x")
    refused(1, "No such file", "run", "bnech", "x")
    refused(2, "given by --prompt and as the word", MODEL, "a", "-p", "b")
    refused(2, "are both given", MODEL, "-p", "b", "-f", "c")
    refused(2, "unexpected word", MODEL, "a", "b")
    refused(2, "--stop", MODEL, "a", "--stop", "")
    for flag in ("--system", "--chat-template", "--chat-template-kwargs"):
        refused(2, f"{flag} needs a chat template", MODEL, "a", "--raw", flag, "{}")
    for args in (["--help"], ["run", "--help"], ["bench", "-h"], ["--version"]):
        assert good(*args).err == ""
    assert good("--version").out.startswith(b"minfer 0.1.0 (arithmetic ")


def prompt_sources():
    text = scratch("prompt.txt", b"hello\n")
    want = good(*RAW, "-n", "4").out
    base = [MODEL, "--raw", "--greedy", "--repeat-penalty", "1", "-n", "4"]
    assert want.strip()
    assert good(*base, "hello").out == want
    assert good("run", *base, "hello").out == want
    assert good(*base[1:], "-m", MODEL, "hello").out == want
    assert good(*base, "-f", text).out == want
    assert good(*base, "-f", "-", stdin=b"hello").out == want
    assert good(*base, stdin=b"hello\r\n").out == want
    assert good(*base[1:], "hello", env={"MINFER_MODEL": MODEL}).out == want
    assert good(*base[1:], env={"MINFER_MODEL": MODEL, "MINFER_PROMPT": "hello"}).out == want
    assert good(*base, stdin=b"hello", env={"MINFER_MODEL": "other.gguf"}).out == want
    assert good(*base, "--prompt=hello").out == want
    refused(1, "the prompt is empty", *base, stdin=b"")
    refused(1, "the prompt is empty", *base, "")
    refused(1, "the prompt is empty", *base, stdin=b"\n")
    refused(1, "No such file", *base, "-f", "no-such-file")
    refused(1, "prompt.txt", *base[1:], "-m", text, "x")


def terminal_without_prompt():
    master, slave = pty.openpty()
    p = subprocess.run([MINFER, MODEL], stdin=slave, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), timeout=60)
    os.close(slave)
    os.close(master)
    assert p.returncode == 2 and b"no prompt" in p.stderr, p


def answers():
    r = good(*AAAA, "-n", "5")
    assert r.out == b"aaaaa\n", r.out
    assert r.err.startswith("prompt: ") and "tok/s" in r.err and len(r.err.splitlines()) == 1, r.err
    assert good(*AAAA, "-n", "0").out == b""
    r = json.loads(good(*AAAA, "-n", "5", "--json").out)
    assert r["text"] == "aaaaa" and r["tokens"] == [A] * 5 and r["finish_reason"] == "length", r
    assert r["completion_tokens"] == 5 and r["prompt_tokens"] > 0 and r["seed"] == 42, r
    assert r["timings"]["prompt_tokens_per_second"] > 0 and r["timings"]["decode_tokens_per_second"] > 0, r
    r = json.loads(good(*AAAA, "-n", "2", "--json", "--logprobs", "3").out)
    assert [x["id"] for x in r["logprobs"]] == [A, A] and all(len(x["top"]) == 3 for x in r["logprobs"]), r
    for x in r["logprobs"]:
        tops = [y["logprob"] for y in x["top"]]
        assert tops == sorted(tops, reverse=True) and x["logprob"] <= tops[0] < 0, r
    r = good(*AAAA, "-n", "2", "--logprobs", "2")
    assert r.err.count("logprob: \"a\" -") == 2, r.err


def stops():
    def answer(*args):
        r = json.loads(good(*AAAA, "--json", *args).out)
        return r["text"], r["finish_reason"], r["completion_tokens"], r.get("stop")

    assert answer("-n", "10", "--stop", "aaaa") == ("", "stop", 4, "aaaa")
    assert answer("-n", "3", "--stop", "aaaa") == ("aaa", "length", 3, None)
    assert answer("-n", "3", "--stop", "b", "--stop", "aa") == ("", "stop", 2, "aa")
    assert answer("-n", "3", "-r", "b") == ("aaa", "length", 3, None)
    assert good(*AAAA, "-n", "3", "--stop", "aab").out == b"aaa\n"
    end = RAW + ["--logit-bias", f"{END}:100", "--json"]
    r = json.loads(good(*end, "-n", "5").out)
    assert (r["text"], r["finish_reason"], r["completion_tokens"], r["tokens"]) == ("", "stop", 1, []), r
    # Stop texts see what control tokens say, which is not shown.
    r = json.loads(good(*end, "-n", "5", "--stop", "im_end").out)
    assert (r["text"], r["finish_reason"], r["stop"]) == ("", "stop", "im_end"), r
    start = RAW + ["--logit-bias", f"{START}:100", "--json", "-n", "5"]
    r = json.loads(good(*start).out)
    assert (r["text"], r["finish_reason"], r["tokens"]) == ("", "length", [START] * 5), r
    r = json.loads(good(*start, "--stop", "no", "--stop", "|><|im_start|><").out)
    assert (r["text"], r["finish_reason"], r["completion_tokens"], r["stop"]) == ("", "stop", 3, "|><|im_start|><"), r
    r = json.loads(good(*end, "-n", "5", "--ignore-eos").out)
    assert r["finish_reason"] == "length" and r["completion_tokens"] == 5 and END not in r["tokens"], r


def same_bytes():
    def text(*args):
        return good(MODEL, "tell me", "-n", "40", "--temp", "1", *args).out

    first = text("--seed", "7")
    assert first == text("--seed", "7") and first != text("--seed", "8")
    for args in (["-t", "1"], ["-t", "3"], ["-b", "1"], ["-b", "7"], ["--cpu", "scalar"], ["--no-fuse", "all"], ["-c", "512"]):
        assert text("--seed", "7", *args) == first, args
    assert text("--seed", "7", "--cache-type", "f32") == text("--seed", "7", "-ctk", "f32", "-ctv", "f32")
    r = good(MODEL, "tell me", "-n", "8", "--seed", "-1")
    seed = [line.split()[1] for line in r.err.splitlines() if line.startswith("seed: ")]
    assert len(seed) == 1 and good(MODEL, "tell me", "-n", "8", "--seed", seed[0]).out == r.out, r.err


def contexts():
    long = "word " * 300
    refused(1, "the context 16; --ctx makes it larger", MODEL, long, "-c", "16")
    refused(1, "the model's maximum", MODEL, long * 20)
    r = good(*AAAA, "-c", "32", "-n", "100", "--json")
    answer = json.loads(r.out)
    assert answer["finish_reason"] == "length" and answer["prompt_tokens"] + answer["completion_tokens"] == 33, answer
    assert "the answer is cut off: prompt and answer fill the context of 32 tokens; --ctx makes it larger" in r.err, r.err
    r = good(*AAAA, "-c", "5000", "-n", "1")
    assert "--ctx 5000 is more than the model's 1024, which is used" in r.err
    refused(1, "-c: 0 is below 1", *AAAA, "-c", "0")


def sampling():
    for args, part in ((["--temp", "-1"], "temp -1"), (["--top-p", "2"], "top_p 2"), (["--min-p", "-0.5"], "min_p"), (["--mirostat", "3"], "mirostat 3"),
                       (["--logit-bias", "99999:1"], "token 99999"), (["--logit-bias", "1:101"], "bias 101"), (["--repeat-penalty", "0"], "repeat_penalty"),
                       (["--dry-sequence-breakers", "99999"], "token 99999"), (["--dry-base", "1e300"], "dry_base")):
        refused(1, part, MODEL, "x", *args)
    refused(2, "'hot' is not a number", MODEL, "x", "--temp", "hot")
    refused(2, "is not ID:BIAS", MODEL, "x", "--logit-bias", "1=2")
    base = [MODEL, "tell me", "-n", "30", "--temp", "1", "--seed", "3"]
    plain = good(*base).out
    for args in (["--top-k", "1"], ["--typical", "0.2"], ["--mirostat", "2"], ["--top-n-sigma", "0.1"], ["--xtc-probability", "1", "--xtc-threshold", "0.01"],
                 ["--presence-penalty", "50"], ["--frequency-penalty", "50"], ["--min-p", "0.9"]):
        assert good(*base, *args).out != plain, args
    dry = ["--dry-multiplier", "50", "--dry-allowed-length", "1", "--temp", "0", "--repeat-penalty", "1", "-n", "20", "--raw", "-p", "aaaa", "--json"]
    assert good(MODEL, *dry).out != b""
    for breakers in ("198;13,2", "\n", "a"):
        assert json.loads(good(MODEL, *dry, "--dry-sequence-breakers", breakers).out)["text"]
    said = [json.loads(good(MODEL, *dry, *b).out)["tokens"] for b in ([], ["--dry-sequence-breakers", "none"],
                                                                      ["--dry-sequence-breakers", "a", "--dry-sequence-breakers", "none"])]
    assert said[0] == said[1] == said[2]
    # What breaks sequences is never a repetition.
    always = [*AAAA, "-n", "9", "--dry-multiplier", "50", "--dry-allowed-length", "1"]
    assert good(*always).out != b"a" * 9 + b"\n" == good(*always, "--dry-sequence-breakers", "a").out
    refused(1, "--dry-sequence-breakers: a sequence breaker has 65 bytes, not 1 to 64", MODEL, "x", "--dry-sequence-breakers", "y" * 65)


def file_defaults():
    pairs = [("general.sampling.temp", 6, struct.pack("<f", 0)), ("general.sampling.top_k", 5, struct.pack("<i", 7)),
             ("general.sampling.penalty_repeat", 6, struct.pack("<f", 1))]
    model = with_metadata("qwen2-f32", pairs)
    r = good(model, "x", "-n", "9")
    assert "the file's own sampling defaults: --temp 0 --top-k 7 --repeat-penalty 1" in r.err, r.err
    assert r.out == good(MODEL, "x", "-n", "9", "--greedy", "--repeat-penalty", "1").out
    r = good(model, "x", "-n", "9", "--temp", "0.8", "--top-k", "40", "--repeat-penalty", "1.1")
    assert "defaults" not in r.err and r.out == good(MODEL, "x", "-n", "9").out
    # As llama.cpp reads -1: off, or the whole context.
    minus = with_metadata("qwen2-f32", [("general.sampling.temp", 6, struct.pack("<f", -1)), ("general.sampling.top_k", 5, struct.pack("<i", -1)),
                                        ("general.sampling.min_p", 6, struct.pack("<f", -1)), ("general.sampling.penalty_last_n", 5, struct.pack("<i", -1))])
    r = good(minus, "x", "-n", "90")
    assert "--temp 0 --top-k -1 --min-p 0 --repeat-last-n -1" in r.err, r.err
    assert r.out == good(MODEL, "x", "-n", "90", "--temp", "0", "--repeat-last-n", "4096").out != good(MODEL, "x", "-n", "90", "--temp", "0").out
    assert good(minus, "x", "-n", "90", "--temp", "0.8").out == good(MODEL, "x", "-n", "90", "--top-k", "0", "--repeat-last-n", "-1").out
    dry = ["--dry-multiplier", "3", "--dry-allowed-length", "1", "-n", "90"]
    assert good(MODEL, "x", *dry, "--dry-penalty-last-n", "-1").out == good(MODEL, "x", *dry, "--dry-penalty-last-n", "4096").out
    refused(1, "key 'general.sampling.top_k'", with_metadata("qwen2-f32", [("general.sampling.top_k", 5, struct.pack("<i", -2))]), "x")
    hostile = with_metadata("qwen2-f32", [("general.sampling.temp", 6, struct.pack("<f", float("nan")))])
    r = run(hostile, "x")
    assert r.code == 1 and "temp nan" in r.err, r.err


def raw_prompts():
    """--raw puts BOS before a prompt that has none, and never EOS behind it."""
    model = with_metadata("llama3-f16", [("tokenizer.ggml.add_eos_token", 7, b"\1")])

    def n_prompt(*words):
        return json.loads(good(model, *words, "--raw", "-n", "1", "--json").out)["prompt_tokens"]

    n_text = len(json.loads(good("tokenize", model, "tell me", "--plain", "--json").out)["ids"])
    assert n_prompt("tell me") == n_prompt("<|endoftext|>tell me") == n_text + 1
    assert n_prompt("tell me<|im_end|>") == n_text + 2


def templates():
    plain = good("tokenize", MODEL, "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", "--json")
    ids = json.loads(plain.out)["ids"]
    assert json.loads(good(MODEL, "hi", "-n", "1", "--json").out)["prompt_tokens"] == len(ids)
    system = json.loads(good(MODEL, "hi", "--system", "be brief", "-n", "1", "--json").out)["prompt_tokens"]
    assert system > len(ids)
    # What a person writes is no control token.
    said = json.loads(good(MODEL, "<|im_end|>", "-n", "1", "--json").out)["prompt_tokens"]
    assert said > len(ids)
    assert json.loads(good(MODEL, "<|im_end|>", "--raw", "-n", "1", "--json").out)["prompt_tokens"] == 1
    # Another model's own template is used as it stands.
    other = with_text("qwen2-f32", b"<|im_start|>", b"<|xx_start|>")
    assert json.loads(good(other, "hi", "-n", "1", "--json").out)["prompt_tokens"] == len(ids)
    foreign = with_text("qwen2-f32", b"<|im_start|>", b"[[im_start]]", after=b"tokenizer.chat_template")
    assert "chat template" not in good(foreign, "hi", "-n", "1").err
    # Without one it is ChatML, said once, where the vocabulary has its tokens.
    none = with_text("qwen2-f32", b"tokenizer.chat_template", b"tokenizer.chat_tempfile")
    r = good(none, "hi", "-n", "1", "--json")
    assert "no chat template: ChatML is used" in r.err and json.loads(r.out)["prompt_tokens"] == len(ids)
    assert "chat template" not in good(none, "hi", "-n", "1", "--raw").err
    with open(none, "rb") as f:
        data = f.read()
    bare = scratch("bare.gguf", data.replace(b"<|im_start|>", b"<|xx_start|>"))
    refused(1, "no chat template and no <|im_start|> and <|im_end|> tokens", bare, "hi")
    good(bare, "hi", "--raw", "-n", "1")
    good(bare, "hi", "--chat-template", "{{ messages[0].content }}", "-n", "1")
    # Another template, its variables, its refusals.
    word = json.loads(good(MODEL, "hi", "--raw", "-n", "1", "--json").out)["prompt_tokens"]
    given = ["--chat-template", "{% if x %}{{ messages[-1].content }}{% endif %}{{ messages[-1].content }}", "-n", "1", "--json"]
    assert json.loads(good(MODEL, "hi", *given).out)["prompt_tokens"] == word
    twice = good(MODEL, "hi", *given, "--chat-template-kwargs", '{"x": true}')
    assert json.loads(twice.out)["prompt_tokens"] == 2 * word
    refused(1, "stop: hi", MODEL, "hi", "--chat-template", "{{ raise_exception('stop: ' ~ messages[0].content) }}")
    refused(1, "line 1, column 4: the tag 'include' is not supported", MODEL, "hi", "--chat-template", "{% include 'x' %}")
    for command in ("run", "chat"):  # at load, though this conversation never comes there
        refused(1, "the method str.encode() is not supported", command, MODEL, "--chat-template", "{% if x %}{{ x.encode() }}{% endif %}", "-p", "hi")
    refused(1, "--chat-template-kwargs takes a JSON object", MODEL, "hi", "--chat-template-kwargs", "[]")
    refused(1, "no chat template 'nope'; its variants: none", MODEL, "hi", "--chat-template", "nope")


def bad_files():
    with open(MODEL, "rb") as f:
        data = f.read()
    refused(1, "empty.gguf", scratch("empty.gguf", b""), "x")
    refused(1, "is a directory", command.FIXTURES, "x")
    refused(1, "unsupported architecture 'qqen2'", with_text("qwen2-f32", struct.pack("<Q", 5) + b"qwen2", struct.pack("<Q", 5) + b"qqen2"), "x")
    for n in (3, 4, 23, 100, len(data) // 2, len(data) - 1):
        refused(1, "cut.gguf", scratch("cut.gguf", data[:n]), "x")
    rng = random.Random(1)
    refused(1, "random.gguf", scratch("random.gguf", rng.randbytes(5000)), "x")
    refused(1, "random.gguf", scratch("random.gguf", data[:24] + rng.randbytes(5000)), "x")
    for _ in range(40):  # any change: an answer or one line, never a crash
        broken = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            broken[rng.randrange(0, 8000)] = rng.randrange(256)
        r = run(scratch("broken.gguf", bytes(broken)), "x", "-n", "2", timeout=60)
        assert r.code in (0, 1) and (r.code == 0 or r.err.count("error: ") == 1), (r.code, r.err)


def backends():
    refused(1, "unknown backend 'tpu'; known: cuda, vulkan, metal, cpu", MODEL, "x", "--backend", "tpu")
    refused(1, "backend 'cuda' is not compiled into this program", MODEL, "x", "--backend", "CPU,Cuda")
    refused(1, "backend 'vulkan' is not compiled into this program", MODEL, "x", env={"MINFER_BACKENDS": "vulkan"})
    good(MODEL, "x", "-n", "1", "--backend", "Cpu", env={"MINFER_BACKENDS": "vulkan"})
    refused(1, "avx999", MODEL, "x", env={"MINFER_CPU": "avx999"})
    assert good("--version", env={"MINFER_CPU": "scalar"}).out.endswith(b"scalar)\n")
    assert good("--version", env={"MINFER_NO_AVX2": "1", "MINFER_NO_NEON": "1"}).out.endswith(b"scalar)\n")
    refused(1, "the KV cache has one number format", MODEL, "x", "-ctk", "f32", "-ctv", "f16")


def pasted_flags():
    r = good("-m", MODEL, "-p", "hello", "-n", "3", "-ngl", "99", "-fa", "on", "--no-mmap", "--mlock", "-ub", "64", "-np", "1", "--temp", "0", "-s", "1",
             "-no-cnv", "--simple-io", "--no-warmup", "--repeat-penalty", "1")
    assert r.out == good(*RAW, "-n", "3").out
    assert "-ngl has no effect" in r.err and "simple-io" not in r.err, r.err
    refused(2, "-hf: downloading is not in this version", "-hf", "owner/repo", "-p", "x")


def start(*args):
    """A long answer, slow enough to be stopped in the middle."""
    slow = [MINFER, *AAAA, "-n", "-1", "--cpu", "scalar", "-t", "1", *args]
    return subprocess.Popen(slow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment(), bufsize=0)


def interrupt():
    p = start()
    assert p.stdout.read(1) == b"a"
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 130, (p.returncode, err)
    assert (b"a" + out).endswith(b"a\n") and b"tok/s" in err and b"error" not in err, (out[-20:], err)
    p = start("--json", "--verbose")
    assert b"memory" in p.stderr.readline()  # the handler is there, the weights are not
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 130 and b"error" not in err, (p.returncode, err)
    assert out == b"" or json.loads(out)["finish_reason"] == "cancelled", out
    # While the template is rendered, which would be refused only after a second's work.
    slow = "{% set x = 'x' * 30000000 %}{% for i in range(100000) %}{% if 'xxy' in x %}{% endif %}{% endfor %}"
    p = subprocess.Popen([MINFER, MODEL, "hi", "--verbose", "--chat-template", slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, env=environment(), bufsize=0)
    time.sleep(0.3)
    p.send_signal(signal.SIGINT)
    err = p.communicate(timeout=60)[1]
    assert p.returncode in (130, -signal.SIGINT), (p.returncode, err)  # the latter on a machine so slow that nothing was loaded yet


def closed_output():
    p = start()
    p.stdout.read(1)
    p.stdout.close()
    err = p.stderr.read()
    assert p.wait(timeout=60) == 1 and err == b"", (p.returncode, err)
    p.stderr.close()
    with open("/dev/full", "wb") as full:
        p = subprocess.run([MINFER, *AAAA, "-n", "3"], stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment(), timeout=60)
    assert p.returncode == 1 and b"can't write to standard output" in p.stderr, p.stderr
    p = subprocess.Popen([MINFER, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    p.stdout.close()
    assert p.stderr.read() == b"" and p.wait(timeout=60) in (0, 1)
    p.stderr.close()


def half_characters():
    cut = json.loads(good("tokenize", MODEL, "\u20ac", "--json").out)["ids"][:1]
    r = good(*RAW, "-n", "1", "--logit-bias", f"{cut[0]}:100")
    assert r.out == b"\n" and "the answer ended inside a character: 1 byte is left out" in r.err, (r.out, r.err)


def verbose_and_meta():
    assert "debug: memory: " in good(*AAAA, "-n", "1", "--verbose").err
    assert 'general.architecture = "qwen2"' in good(*AAAA, "-n", "1", "--meta").err


command.main([usage, prompt_sources, terminal_without_prompt, answers, stops, same_bytes, contexts, sampling, file_defaults, raw_prompts, templates, bad_files, backends,
              pasted_flags, interrupt, closed_output, half_characters, verbose_and_meta])
