"""Writes tests/fixtures/json_cases.txt: what Python's json module makes of valid, broken and mutated texts.

Lines: "accept HEX DUMP", "reject HEX" (HEX: the text's bytes, "-" for none) and "real HEXFLOAT DIGITS" (how many significant
digits repr() needs). DUMP: n, t, f, #LEXEME, "HEX of the string's UTF-8", [a,b], {"HEX":a,"HEX":b} with every member in order.
Where RFC 8259 leaves a choice ours is the stricter: no NaN, no lone surrogate, no more than 512 levels.

Usage: python json_cases.py (standard library only)"""

import json
import os
import random
import struct
import sys

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "json_cases.txt")
rng = random.Random(5)

NUMBERS_GOOD = """0 -0 1 -1 10 1234567890 0.0 -0.0 0.1 1.5 -1.25 0e0 0E0 0e+0 0e-0 1e1 1E1 1e+1 1e-1 1.5e3 1.5E-3 -2e5 1e400 -1e400
1e-400 123456789012345678901234567890 0.00000000000000000000000000000000001 9223372036854775807 9223372036854775808
-9223372036854775808 -9223372036854775809 1180591620717411303424 3.141592653589793 2.2250738585072014e-308 5e-324 0.10 1.0e00
1e0001 100 -10.01 12e34""".split()
NUMBERS_BAD = """- + +1 -- --1 01 -01 00 007 .5 -.5 1. -1. 1.e1 .e1 e1 1e 1e+ 1e- 1e1.5 1.2.3 1e1e1 0x1 0x 0b1 1_000 1,000 NaN -NaN nan Infinity
-Infinity inf -inf 1a 1e1a 0.1.1 1+1 1-1 1/2 ++1 -+1 1E 1E+ 0.e1 -0. -e1 １ ٣ 1f 1d 1L 1n $1 1% #1 -1-1 1..2 1ee2 1e--2""".split()
STRING_BODIES_GOOD = [
    r"", r"a", r"abc def", r"\"", r"\\", r"\/", r"\b\f\n\r\t", r"/", r"'", r"\u0000", r"\u0041", r"\u00e9", r"\u00E9", r"\u20ac",
    r"\uffff", r"\ufffe", r"\ufeff", r"\ud83d\ude00", r"\uD83D\uDE00x", r"\udbff\udfff", r"\ud800\udc00", r"\\u0041", r"\\\"",
    r"\\\\", "é", "€", "😀", "\u2028\u2029", "\x7f", "\ufeff", "\U0010ffff", r"\u005c\u0022", "a" * 300, r"\n" * 100, r"\u0061" * 50,
    "# // /* */", "[{]}", r"ends with a backslash \\", "日本語", "\u0080", r"\u001f", "tab-free", "}", ",", ":",
]
STRING_BODIES_BAD = [
    "\\", r"\a", r"\'", r"\0", r"\x41", r"\v", r"\e", r"\ ", r"\u", r"\u1", r"\u12", r"\u123", r"\u123g", r"\u 123", r"\u+123",
    r"\u-123", r"\U0041", r"\ud800", r"\ud800x", r"\ud800\n", r"\ud800\u0041", r"\ud800\ud800", r"\udc00", r"\udc00\ud800", r"\udfff",
    r"\ud83d\ude0", r"\ud83d\u", "\n", "\t", "\r", "\x00", "\x01", "\x1f", "a\nb", r"\u00zz", r"\uD83D", r"\u00é0", r"\\\u12", r"\u0x41",
    "\"", "\\\"", r"\ud800\\udc00", r"\u{41}", r"\N", r"\\\\\u", "\x08", "\x0b", "\x0c",
]
RAW_STRINGS = [  # bytes that are not UTF-8, or barely are
    b"\xff", b"\xc3", b"\xc3\x28", b"\x80", b"\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xe0\xa0\x80", b"\xed\x9f\xbf",
    b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xee\x80\x80", b"\xef\xbf\xbf", b"\xf0\x80\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf0\x90\x80\x80", b"\xf4\x8f\xbf\xbf",
    b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xe2\x82", b"\xf0\x9f\x98", b"\xe2\x28\xa1", b"\xf0\x28\x8c\xbc",
    b"\xc2\x80", b"\xdf\xbf", b"a\x80b", b"\xe9",
]
STRUCTURES = [
    "", " ", "\n", "null", "true", "false", " null ", "\t\r\n null\n", "nul", "nulll", "Null", "NULL", "tru", "True", "TRUE", "fals", "FALSE", "falsey",
    "truefalse", "null null", "undefined", "[]", "{}", "[ ]", "{ }", "[\n]", "[1]", "[1,2]", "[ 1 , 2 ]", "[1,]", "[,1]", "[,]", "[1,,2]", "[1 2]", "[1;2]",
    "[1:2]", "[", "]", "{", "}", "[]]", "[[]", "{}}", "{{}", "[}", "{]", "[{]}", "[{}]", "[[],[]]", "[[[]]]", "[[],", "[1", "[1,", "[\"a\"", "[\"a\",", "[null",
    "{\"a\":1}", "{\"a\": 1}", "{\"a\" :1}", "{ \"a\" : 1 }", "{\"a\":1,}", "{,\"a\":1}", "{\"a\":1,\"b\":2}", "{\"a\":1,,\"b\":2}", "{\"a\":1 \"b\":2}", "{\"a\"}",
    "{\"a\":}", "{:1}", "{1:2}", "{a:1}", "{'a':1}", "{\"a\"=1}", "{\"a\"::1}", "{\"a\",1}", "{\"a\":1:2}", "{\"a\":1;\"b\":2}", "{\"a\":1", "{\"a\":", "{\"a\"", "{\"a",
    "{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":1}", "{\"\":0}", "{\"\\u0061\":1,\"a\":2}", "{\"a\":{\"b\":{\"c\":[1,{\"d\":null}]}}}", "{\"a\":[]}", "{\"a\":{}}",
    "{null:1}", "{true:1}", "{[]:1}", "[true,false,null]", "[\"\",0,{}]", "'a'", "a", "\"", "\"a", "a\"", "\"a\" \"b\"", "\"a\",", "1 1", "1,", ",1", ",", ":", "\"a\":1",
    "// c\n1", "/* c */1", "1 // c", "1 /* c */", "# c\n1", "[1 /* c */]", "\ufeff1", "1\ufeff", "\ufeff", "\u00a01", "1\u00a0", "\u20281", "\x0c1", "\x0b1", "1\x00", "\x00", "\x001",
    "[\x00]", "[1\x00]", "[]\x00", "<null>", "(1)", "*", "?", "\\", "\\u0031", "[\\n1]", "@", "[\"a\"\n,\n\"b\"]", "{\"k\":\"v\"}\n\n", "[1]x", "{}[]", "[]{}", "[true false]", "[nul]",
    "[-]", "[1,-]", "{\"a\":-}", "[1e]", "[\"\\\"]", "[\"\\\\\"]", "{\"a\":\"b\":\"c\"}", "{\"a\" \"b\"}", "{\"a\":truE}", "[fals]", "--1", "[1}", "{\"a\":[}", "[{\"a\":1]",
]
NESTED = [f * n + v + b * n for n in (2, 20, 511, 512, 513, 600) for f, v, b in (("[", "", "]"), ('{"a":', "1", "}"), ('[{"k":', "0", "}]"))]
NESTED += ["[" * 512 + "]" * 511, "[" * 100000, '{"a":' * 100000, "[" * 512 + "1" + "]" * 512, "[" * 512 + "[]" + "]" * 512, "[" + "[[]]," * 600 + "[]]"]
DOCUMENTS = [
    '{"model":"m","messages":[{"role":"user","content":"Hi \\"there\\" \\u00e9\\n"}],"temperature":0.7,"n":1,"stop":null,"stream":true}',
    '[1, -2.5e-3, "a\\\\b", {"x": [true, false, null], "y": {}}, [], "\\ud83d\\ude00"]',
    '{"type":"object","properties":{"a":{"type":"integer","minimum":-1e2},"b":{"enum":["x","y"]}},"required":["a"]}',
    '\n{ "a" : [ 0 , 0.1 , 10E+5 ] , "é" : "\u20ac" }\r\n\t',
]


class Lexeme(str):
    pass


class Refused(ValueError):
    pass


def refuse(_):
    raise Refused


def dump(v, depth=0):
    if isinstance(v, list) or isinstance(v, tuple):
        if depth == 512:
            raise Refused
    if v is None:
        return "n"
    if v is True or v is False:
        return "t" if v else "f"
    if isinstance(v, Lexeme):
        return "#" + v
    if isinstance(v, str):
        return '"' + v.encode("utf-8").hex() + '"'  # a lone surrogate raises UnicodeEncodeError, a ValueError
    if isinstance(v, tuple):
        return "{" + ",".join(dump(k) + ":" + dump(x, depth + 1) for k, x in v) + "}"
    return "[" + ",".join(dump(x, depth + 1) for x in v) + "]"


def judge(text):
    try:
        value = json.loads(text.decode("utf-8"), parse_float=Lexeme, parse_int=Lexeme, parse_constant=refuse, object_pairs_hook=tuple)
        return dump(value)
    except (ValueError, RecursionError):
        return None


def mutate(text):
    text = bytearray(text)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(4)
        if kind == 0 and at < len(text):
            del text[at]
        elif kind == 1 and at < len(text):
            text[at] = rng.choice(b'{}[]",:\\0123456789eE+-.untrfalse \n\x00\xc3\xff')
        elif kind == 2:
            text.insert(at, rng.choice(b'{}[]",:\\019eE+-.u \n'))
        else:
            del text[at:]
    return bytes(text)


def texts():
    for t in NUMBERS_GOOD + NUMBERS_BAD:
        yield t.encode()
        yield ("[" + t + ",0]").encode()
    for body in STRING_BODIES_GOOD + STRING_BODIES_BAD:
        yield ('"' + body + '"').encode()
    for body in STRING_BODIES_GOOD[:20] + STRING_BODIES_BAD[:20]:
        yield ('{"' + body + '":"x"}').encode()
    for raw in RAW_STRINGS:
        yield b'"' + raw + b'"'
        yield raw
        yield b'["' + raw + b" "
    for t in STRUCTURES + NESTED + DOCUMENTS:
        yield t.encode()
    for i in range(400):
        yield mutate(DOCUMENTS[i % len(DOCUMENTS)].encode())


def reals():
    for e in range(-1074, 1024, 7):
        yield 2.0**e
    for i in range(400):
        x = struct.unpack("<d", struct.pack("<Q", rng.getrandbits(63)))[0]
        if x == x and x not in (float("inf"),):
            yield -x if i % 2 else x
    for i in range(200):
        yield round(rng.uniform(-1000, 1000), i % 12)
    for x in (0.1, 0.2, 0.3, 1.0, 1e22, 1e23, 123456789.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.7, 1 / 3, 100.0, 1e15, 1e16, 1e17, 9007199254740993.0):
        yield x


def digits(x):
    return len(repr(abs(x)).split("e")[0].replace(".", "").strip("0")) or 1


def main():
    sys.setrecursionlimit(10000)
    seen = set()
    with open(OUT, "w") as out:
        out.write("# made by tests/oracle/json_cases.py with Python %s\n" % sys.version.split()[0])
        for text in texts():
            if text in seen:
                continue
            seen.add(text)
            if len(text) > 20000:  # too long for a line: the C test makes them itself
                continue
            verdict = judge(text)
            out.write("reject %s\n" % (text.hex() or "-") if verdict is None else "accept %s %s\n" % (text.hex(), verdict))
        for x in reals():
            out.write("real %s %d\n" % (x.hex(), digits(x)))


main()
