"""minfer tokenize: ids and pieces, and back."""
import json
import struct

import command
from command import good, refused, run, scratch, string, tiny

MODEL = tiny("qwen2-f32")
TEXT = "Hello, w\u00f6rld! \u4f60\u597d \U0001f468\u200d\U0001f469\u200d\U0001f467 a  b\t\r\n\n12345 'tis"


def tokenize(*args, **kw):
    return json.loads(good("tokenize", MODEL, "--json", *args, **kw).out)


def piece_bytes(pieces):
    return b"".join(bytes(p) if isinstance(p, list) else p.encode() for p in pieces)


def round_trip():
    r = tokenize(TEXT)
    assert piece_bytes(r["pieces"]) == TEXT.encode()
    assert tokenize(stdin=TEXT.encode())["ids"] == r["ids"]
    assert tokenize("-f", scratch("text.txt", TEXT.encode()))["ids"] == r["ids"]
    assert tokenize("-p", TEXT)["ids"] == r["ids"]
    ids = " ".join(map(str, r["ids"]))
    assert good("tokenize", MODEL, "--ids", ids).out == TEXT.encode()
    assert good("tokenize", MODEL, "--ids", stdin=json.dumps(r["ids"]).encode()).out == TEXT.encode()
    back = json.loads(good("tokenize", MODEL, "--ids", "--json", ids).out)
    assert back == {"ids": r["ids"], "text": TEXT}
    lines = good("tokenize", MODEL, TEXT).out.decode().splitlines()
    assert [int(line.split("\t")[0]) for line in lines] == r["ids"]


def any_bytes():
    data = bytes(range(256)) * 2
    r = tokenize(stdin=data)
    assert piece_bytes(r["pieces"]) == data
    assert good("tokenize", MODEL, "--ids", " ".join(map(str, r["ids"]))).out == data
    assert tokenize(stdin=b"") == {"ids": [], "pieces": []}
    assert tokenize("") == {"ids": [], "pieces": []}


def special_tokens():
    text = "<|im_start|>x"
    assert len(tokenize(text)["ids"]) == 2 and tokenize(text)["pieces"] == ["<|im_start|>", "x"]
    for flags in (["--no-special"], ["--plain"], ["--plain", "--no-special"]):
        plain = tokenize(text, *flags)
        assert len(plain["ids"]) > 2 and piece_bytes(plain["pieces"]) == text.encode()


def vocabulary():
    """A file with byte tokens, <|im_end|>, and user-defined tokens of which the template opens turns with one."""
    plain = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
    others = iter(range(256, 512))
    tokens = [chr(b) if b in plain else chr(next(others)) for b in range(256)] + ["aa", "<|im_end|>", "<turn>", "<think>", "   "]
    types = [1] * 257 + [3, 4, 4, 4]

    def array(kind, items):
        return struct.pack("<IIQ", 9, kind, len(items)) + b"".join(items)

    texts = {"general.architecture": "llama", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
             "tokenizer.chat_template": "{% for m in messages %}<turn>{{ m.content }}<|im_end|>{% endfor %}"}
    pairs = [string(k) + struct.pack("<I", 8) + string(v.encode()) for k, v in texts.items()]
    pairs.append(string("tokenizer.ggml.tokens") + array(8, [string(t.encode()) for t in tokens]))
    pairs.append(string("tokenizer.ggml.token_type") + array(5, [struct.pack("<i", t) for t in types]))
    pairs.append(string("tokenizer.ggml.merges") + array(8, [string(b"a a")]))
    return scratch("vocabulary.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs))


def in_a_message():
    """--no-special gives what a person's text becomes; --plain knows no special token at all."""
    model = vocabulary()

    def pieces(*args):
        return json.loads(good("tokenize", model, "--json", *args).out)["pieces"]

    text = "<turn>a   b<think><|im_end|>"
    assert pieces(text) == ["<turn>", "a", "   ", "b", "<think>", "<|im_end|>"]
    assert pieces(text, "--no-special") == [*"<turn>a", "   ", "b", "<think>", *"<|im_end|>"]
    assert pieces(text, "--plain") == list(text)
    with_bos = tiny("llama3-f16")

    def ids(*args):
        return json.loads(good("tokenize", with_bos, "--json", *args).out)["ids"]

    bos, *a = ids("a")
    assert ids("<|endoftext|>a") == [bos] + a  # never two
    assert ids("a", "--no-special") == ids("a", "--plain") == a


def long_inputs():
    assert len(tokenize(stdin=b"a" * 1_000_000)["ids"]) > 0
    assert piece_bytes(tokenize(stdin=b" " * 300_000)["pieces"]) == b" " * 300_000


def refusals():
    refused(1, "'x' is not a token id", "tokenize", MODEL, "--ids", "1 x")
    refused(1, "outside the vocabulary", "tokenize", MODEL, "--ids", "1,99999999")
    refused(1, "outside the vocabulary", "tokenize", MODEL, "--ids", "--", "-1")
    refused(1, "no-such-rule", "tokenize", MODEL, "x", "--pre", "no-such-rule")
    refused(2, "no model", "tokenize")
    refused(2, "unexpected word", "tokenize", MODEL, "a", "b")
    refused(1, "unknown backend", "tokenize", MODEL, "a", "--backend", "tpu")
    refused(1, "No such file", "tokenize", MODEL, "-f", "nothing")
    other = tokenize("it's 12345", "--pre", "gpt-2")
    assert piece_bytes(other["pieces"]) == b"it's 12345"


command.main([round_trip, any_bytes, special_tokens, in_a_message, long_inputs, refusals])
