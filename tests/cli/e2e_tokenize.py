"""minfer tokenize: ids and pieces, and back."""
import json

import command
from command import good, refused, run, scratch, tiny

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
    plain = tokenize(text, "--no-special")
    assert len(plain["ids"]) > 2 and piece_bytes(plain["pieces"]) == text.encode()


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


command.main([round_trip, any_bytes, special_tokens, long_inputs, refusals])
