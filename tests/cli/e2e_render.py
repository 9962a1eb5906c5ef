#!/usr/bin/env python3
"""minfer render: what it prints, where it takes things from, what it refuses. e2e_render.py MINFER"""
import json

from command import good, main, refused, run, scratch, tiny, with_text

MODEL = tiny("qwen2-f32")
TALK = [{"role": "system", "content": "Bé"}, {"role": "user", "content": "<|im_end|> hi\n"}]


def messages(talk):
    return scratch("messages.json", json.dumps(talk).encode())


def text(*args, **kw):
    return good("render", *args, **kw).out.decode()


def plain():
    path = messages(TALK)
    want = "<|im_start|>system\nBé<|im_end|>\n<|im_start|>user\n<|im_end|> hi\n<|im_end|>\n"
    assert text(MODEL, "--messages", path) == want + "<|im_start|>assistant\n"
    assert text(MODEL, "--messages", path, "--no-generation-prompt") == want
    assert text(MODEL, "--messages", "-", "--no-generation-prompt", stdin=json.dumps(TALK).encode()) == want
    assert text("--template", "chatml", "--messages", path, "--no-generation-prompt") == want
    assert run("render", MODEL, "--messages", path).err == ""


def given():
    path = messages(TALK)
    template = scratch("own.jinja", b"{{ bos_token }}{{ eos_token }}{{ tools }}{{ x }}{{ add_generation_prompt }}\r\n")
    tools = scratch("tools.json", b'[{"n": 1.0}]')
    args = ["--template", template, "--messages", path]
    assert text(*args) == "NoneTrue"
    assert text(*args, "--bos", "<b>", "--eos", "<e>", "--tools", tools, "--kwargs", '{"x": [1, "é"]}') == "<b><e>[{'n': 1.0}][1, 'é']True"
    assert text(MODEL, *args, "--eos", "E").endswith("ENoneTrue")
    # No line of its own, and nothing at all for an empty text.
    assert text("--template", "{% set x = 1 %}", "--messages", path) == ""


def rules():
    strict = "{% for m in messages %}{% if m.role not in ['system', 'user'] or (m.role == 'system' and not loop.first) %}{{ raise_exception('no ' ~ m.role) }}{% endif %}{{ m.role }}:{{ m.content }};{% endfor %}"
    late = messages([{"role": "user", "content": "u"}, {"role": "system", "content": "s"}])
    refused(1, "`raise_exception('no ' ~ m.role)`: no system", "render", "--template", strict, "--messages", late)
    r = good("render", "--template", strict, "--messages", late, "--chat-rules")
    assert r.out == b"system:s;user:u;" and "put into the first one" in r.err
    developer = messages([{"role": "developer", "content": "d"}])
    refused(1, "no developer", "render", "--template", strict, "--messages", developer)
    assert good("render", "--template", strict, "--messages", developer, "--chat-rules").out == b"system:d;"


def refusals():
    path = messages(TALK)
    refused(2, "render needs --messages FILE", "render", MODEL)
    refused(2, "render needs a MODEL or --template FILE", "render", "--messages", path)
    refused(1, "/nowhere.json", "render", MODEL, "--messages", "/nowhere.json")
    refused(1, "--messages: ", "render", MODEL, "--messages", scratch("bad.json", b"[1,"))
    refused(1, "the messages are not a list", "render", MODEL, "--messages", scratch("object.json", b"{}"))
    refused(1, "--chat-template-kwargs: line 1", "render", MODEL, "--messages", path, "--kwargs", "{")
    refused(1, "/nowhere.jinja", "render", "--template", "/nowhere.jinja", "--messages", path)
    refused(1, "chat template: line 2, column 4: unknown tag 'frob'", "render", "--template", "\n{% frob %}", "--messages", path)
    refused(1, "chat template: template line 1: `x.y`: 'x' is undefined", "render", "--template", "{{ x.y }}", "--messages", path)
    broken = with_text("qwen2-f32", b"{% endif %}", b"{% endiv %}")
    refused(1, "unknown tag 'endiv'", "render", broken, "--messages", path)


main([plain, given, rules, refusals])
