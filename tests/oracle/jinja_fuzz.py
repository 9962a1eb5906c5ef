#!/usr/bin/env python3
"""Random templates through jinja2 and through minfer: jinja_fuzz.py JINJA_LINES SECONDS [SEED]

JINJA_LINES is the program of tests/text/tool_jinja_lines.c. Templates come from a grammar of our own. Where both give a text it must be
the same; where Python raises, minfer must refuse. minfer may refuse more only by name (unsupported, or past a bound). Differences are
printed, one JSON template a line, as fuzz_cases.txt beside this file takes them. Exit status 1 when there are any.
"""
import json
import random
import subprocess
import sys
import time

import jinja_lines
from jinja import VARIABLES

UNSUPPORTED, LIMIT = 3, 6
NAMES = ["n", "f", "s", "e", "l", "d", "big", "t", "nothing", "u", "names", "people", "tree", "messages", "missing", "x", "y", "z"]
STRINGS = ["''", "'a'", "'Hello'", "'a,b'", "' x '", "'é'", "'ß'", "'%s'", "'{}'", "'12'", "'1.5'", "'\\n'", "'a\\nb'", "'<b>'", "'Aa Bb'", "'0x1f'",
           "','", "' '", "'key'", "'name'", "'age'", "'b'"]
NUMBERS = ["0", "1", "2", "3", "-1", "7", "10", "100", "0.5", "2.5", "1e3", "-2.75", "1e16", "0.1", "12345678901234567890", "3.0"]
FILTERS0 = ["abs", "capitalize", "count", "default", "dictsort", "e", "escape", "first", "float", "int", "items", "join", "last", "length", "list", "lower",
            "max", "min", "reverse", "round", "safe", "sort", "string", "striptags", "sum", "title", "tojson", "trim", "unique", "upper", "urlencode",
            "wordcount", "select", "reject", "indent", "filesizeformat", "forceescape"]
FILTERS = ["default({})", "default({}, true)", "join({})", "replace({}, {})", "replace({}, {}, 1)", "round({})", "round(1, 'floor')", "int({})", "float({})",
           "sort(reverse={})", "sort(attribute={})", "map('string')", "map('upper')", "map('length')", "map(attribute={})", "map('default', {})", "select('odd')",
           "select({})", "reject('none')", "select('>', {})", "selectattr({})", "selectattr('age', 'gt', {})", "rejectattr({}, 'defined')", "batch(2)",
           "batch(2, {})", "slice(2)", "slice(3, {})", "tojson(indent={})", "tojson(sort_keys=true)", "truncate({})", "truncate(5, true)", "indent({})",
           "indent(2, {}, {})", "center({})", "trim({})", "format({})", "format({}, {})", "groupby({})", "sum(start={})", "attr({})", "dictsort(true)",
           "dictsort(by='value')", "max(attribute={})", "unique(true)", "xmlattr", "list|{}", "string|{}"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "sequence", "iterable", "callable", "odd",
         "even", "lower", "upper", "eq {}", "ne {}", "gt({})", "lt {}", "in {}", "in({})", "sameas {}", "divisibleby {}", "escaped", "filter", "test"]
METHODS = ["upper()", "lower()", "title()", "capitalize()", "strip()", "strip({})", "lstrip({})", "rstrip()", "split()", "split({})", "split({}, 1)", "rsplit({}, 1)",
           "splitlines()", "replace({}, {})", "find({})", "rfind({})", "count({})", "index({})", "startswith({})", "endswith({})", "join({})", "format({})",
           "format({}, {})", "isdigit()", "isalpha()", "isupper()", "zfill({})", "center({})", "ljust({}, '*')", "partition({})", "swapcase()", "get({})",
           "get({}, {})", "items()", "keys()", "values()", "copy()", "append({})", "removeprefix({})", "expandtabs({})", "casefold()", "istitle()", "isspace()"]
ATTRIBUTES = ["name", "age", "a", "b", "content", "role", "c", "v", "city", "real", "upper", "items", "nope", "0", "index", "loop"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", ">", "<=", ">=", "in", "not in", "and", "or"]
LOOP = ["loop.index", "loop.index0", "loop.first", "loop.last", "loop.length", "loop.revindex", "loop.previtem", "loop.nextitem", "loop.cycle('a', 'b')",
        "loop.changed(x)", "loop.depth", "loop.revindex0"]


class Generator:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.in_loop = False

    def fill(self, text, depth):
        while "{}" in text:
            text = text.replace("{}", self.expr(depth - 1), 1)
        return text

    def atom(self):
        r = self.r.random()
        if r < 0.45:
            return self.r.choice(NAMES)
        if r < 0.7:
            return self.r.choice(STRINGS)
        if r < 0.9:
            return self.r.choice(NUMBERS)
        if self.in_loop and r < 0.97:
            return self.r.choice(LOOP)
        return self.r.choice(["true", "false", "none", "[]", "{}", "()", "range(3)", "namespace(a=1)", "dict(a=1)"])

    def expr(self, depth):
        if depth <= 0:
            return self.atom()
        sub = lambda: self.expr(depth - 1 - self.r.randrange(2))  # noqa: E731
        kind = self.r.randrange(20)
        if kind < 4:
            return f"{sub()} {self.r.choice(BINARY)} {sub()}"
        if kind < 7:
            return f"{sub()}|{self.r.choice(FILTERS0)}"
        if kind < 9:
            filter_text = self.r.choice(FILTERS)
            if filter_text.endswith("|{}"):
                filter_text = filter_text[:-2] + self.r.choice(FILTERS0)
            return f"{sub()}|{self.fill(filter_text, depth)}"
        if kind < 11:
            return f"({sub()}).{self.fill(self.r.choice(METHODS), depth)}"
        if kind == 11:
            return f"({sub()}) is {'not ' if self.r.random() < 0.3 else ''}{self.fill(self.r.choice(TESTS), 1)}"
        if kind == 12:
            return f"({sub()}).{self.r.choice(ATTRIBUTES)}"
        if kind == 13:
            return f"({sub()})[{sub()}]"
        if kind == 14:
            bound = lambda: self.r.choice(["", "0", "1", "-1", "2", "-3", "9", "none"])  # noqa: E731
            # Not of a literal: jinja2 folds that at load, where it takes a slice of what has none for an Undefined.
            return f"{self.r.choice(NAMES)}[{bound()}:{bound()}{self.r.choice(['', ':', ':-1', ':2', ':-2'])}]"
        if kind == 15:
            return f"[{', '.join(sub() for _ in range(self.r.randrange(4)))}]"
        if kind == 16:
            return "{" + ", ".join(f"{self.atom()}: {sub()}" for _ in range(self.r.randrange(3))) + "}"
        if kind == 17:
            return f"({sub()} if {sub()}{' else ' + sub() if self.r.random() < 0.7 else ''})"
        if kind == 18:
            return f"{self.r.choice(['not ', '-', '+'])}({sub()})"
        return f"({sub()}, {sub()})"

    def tag(self, text):
        left, right = self.r.choice(["", "", "", "-", "+"]), self.r.choice(["", "", "", "-"])
        return f"{{%{left} {text} {right}%}}"

    def data(self):
        return self.r.choice(["", "", "a", " ", "\n", "  \n  ", "x\n", "\n\n b", "{# c #}", "{#- c -#} ", "\t"])

    def body(self, depth):
        return "".join(self.statement(depth) + self.data() for _ in range(self.r.choice([1, 1, 1, 2])))

    def loop(self, depth):
        outer, self.in_loop = self.in_loop, True
        target = self.r.choice(["x", "x", "y", "x, y"])
        source = self.expr(1) if target != "x, y" else self.r.choice(["d.items()", "[(1, 2), (3, 4)]", "d|dictsort", "people|groupby('age')"])
        recursive = " recursive" if self.r.random() < 0.1 else ""
        test = f" if {self.expr(1).replace('loop.', 's.')}" if self.r.random() < 0.2 else ""
        body = self.body(depth - 1)
        if self.r.random() < 0.15:
            body += self.tag(f"if {self.expr(1)}") + self.tag(self.r.choice(["break", "continue"])) + self.tag("endif") + self.data()
        self.in_loop = outer
        otherwise = self.tag("else") + self.body(0) if self.r.random() < 0.2 else ""
        return self.tag(f"for {target} in {source}{test}{recursive}") + body + otherwise + self.tag("endfor")

    def macro(self, depth):
        outer, self.in_loop = self.in_loop, False
        name = self.r.choice(["m", "q"])
        signature = self.r.choice(["", "a", "a, b=2", "x=n", "a, b=a"])
        body = self.data() + self.body(depth - 1) + self.r.choice(["", "{{ a }}", "{{ b }}", "{{ varargs }}", "{{ kwargs }}", "{{ caller() }}", "{{ caller }}"])
        self.in_loop = outer
        use = self.r.choice(["{{ m(1) }}", "{{ q() }}", "{{ m(n, b=s) }}", "{% call m(1) %}c{{ n }}{% endcall %}", "{{ m(1, 2, 3) }}", "{{ q(k=1) }}"])
        return self.tag(f"macro {name}({signature})") + body + self.tag("endmacro") + use

    def statement(self, depth):
        kind = self.r.randrange(14) if depth > 0 else self.r.randrange(5)
        if kind < 5:
            return f"{{{{{self.r.choice(['', ' ', '- '])}{self.expr(self.r.choice([1, 1, 1, 2, 2, 3]))} {self.r.choice(['', '-'])}}}}}"
        if kind < 7:
            branch = self.tag(f"elif {self.expr(1)}") + self.body(0) if self.r.random() < 0.3 else ""
            other = self.tag("else") + self.body(0) if self.r.random() < 0.4 else ""
            return self.tag(f"if {self.expr(2)}") + self.data() + self.body(depth - 1) + branch + other + self.tag("endif")
        if kind < 9:
            return self.loop(depth)
        if kind == 9:
            return self.tag(f"set {self.r.choice(['x', 'y', 'z', 'x, y'])} = {self.expr(2)}")
        if kind == 10:
            return self.tag("set " + self.r.choice(["x", "y|upper", "z | trim"])) + self.body(depth - 1) + self.tag("endset")
        if kind == 11:
            return self.macro(depth)
        if kind == 12:
            return self.tag("filter " + self.r.choice(["upper", "trim", "replace('a', 'b')", "length", "indent"])) + self.body(depth - 1) + self.tag("endfilter")
        return self.r.choice([
            self.tag(f"with x = {self.expr(1)}, y = x") + self.body(depth - 1) + self.tag("endwith"),
            "{% set ns = namespace(k=1) %}" + self.tag(f"set ns.k = {self.expr(1)}") + "{{ ns.k }}",
            self.tag("generation") + self.body(depth - 1) + self.tag("endgeneration"),
            "{% raw %}{{ x }} {% endraw %}",
        ])


def main():
    program, seconds = sys.argv[1], float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    print(f"seed {seed}", file=sys.stderr)
    tool = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    env, cache = jinja_lines.environment(), {}
    counts = {"equal": 0, "refused by both": 0, "refused by name": 0, "different": 0}
    end = time.monotonic() + seconds
    generator, variables = Generator(seed), json.dumps(VARIABLES)
    while time.monotonic() < end:
        template = generator.body(generator.r.choice([1, 2, 2, 3]))
        # Fresh ones each time: jinja2's indent() adds to a list in place before it fails.
        want = jinja_lines.render(env, cache, template, json.loads(variables))
        if " at 0x" in want.get("text", "") or "MemoryError" in want.get("error", ""):
            continue  # an address, or more than Python would hold
        try:
            tool.stdin.write(json.dumps({"template": template, "variables": VARIABLES}) + "\n")
            tool.stdin.flush()
            line = tool.stdout.readline()
        except BrokenPipeError:
            line = ""
        got = json.loads(line) if line else {"error": "the program ended", "code": 0}
        if want.get("text") == got.get("text"):
            counts["equal" if "text" in want else "refused by both"] += 1
        elif got.get("code") in (UNSUPPORTED, LIMIT):
            counts["refused by name"] += 1
        else:
            counts["different"] += 1
            print(json.dumps(template), flush=True)
            print(f"  Python {str(want)[:300]}\n  minfer {str(got)[:300]}", file=sys.stderr, flush=True)
            if not line:
                break
    print(counts, file=sys.stderr)
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
