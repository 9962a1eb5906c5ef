#!/usr/bin/env python3
"""What tests/text/tool_jinja_lines.c does, by jinja2 as Hugging Face's transformers sets it up (utils/chat_template_utils.py).

Each line of standard input is {"template": text, "variables": {...}}; each line of output {"text": ...} or {"error": ...}. With the
word `clock` strftime_now() tells the time, else it is always the start of 2025.
"""
import datetime
import json
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime.now() if "clock" in sys.argv[1:] else datetime.datetime(2025, 1, 1)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


class TemplateDict:
    def __call__(self, *args, **kwargs):
        return dict(*args, **kwargs)

    def fromkeys(self, *args, **kwargs):
        return dict.fromkeys(*args, **kwargs)


def check_name(name):
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"underscore-prefixed attribute {name!r} on a namespace")


class TemplateNamespace(jinja2.utils.Namespace):
    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            check_name(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name, value):
        check_name(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals.update(
        raise_exception=raise_exception, strftime_now=NOW.strftime, dict=TemplateDict(), namespace=TemplateNamespace
    )
    return env


def render(env, cache, template, variables):
    try:
        if template not in cache:
            cache.clear()
            cache[template] = env.from_string(template)
        text = cache[template].render(**variables)
        text.encode()
        return {"text": text}
    except Exception as e:
        return {"error": f"{type(e).__name__}: {e}"}


def main():
    env, cache = environment(), {}
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(render(env, cache, request["template"], request["variables"])), flush=True)


if __name__ == "__main__":
    main()
