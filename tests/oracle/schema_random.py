#!/usr/bin/env python3
"""Random schemas and instances: what jsonschema says of each is what a constraint says.

    python tests/oracle/schema_random.py CONSTRAINT_LINES [PAIRS [SEED]]

CONSTRAINT_LINES is the program tests/sample/tool_constraint_lines.c. Wants jsonschema[format-nongpl]==4.26.0 (pip install). Instances
are written as the conventions ask for (docs/constrained.md): declared properties in their order, whole numbers without a fraction or an
exponent, values of an enum as the schema spells them. Schemas stay within what is understood, and away from what the conventions say
otherwise (oneOf, other spellings of numbers). Prints every difference, and how many pairs were seen, valid and refused.
"""

import json
import random
import re
import subprocess
import sys
from collections import Counter

import jsonschema

NAMES = ("a", "b", "ab", "c d", "é", 'q"', "x-1", "name")
WORDS = ("", "a", "ab", "abc", "b", "aab", "é€", "😀", 'q"\\', "2024-02-29", "2023-02-29", "127.0.0.1", "1::2", "a@b.cd", "10:20:30Z", "a\nb")
PATTERNS = ("^a", "b$", "^[ab]*$", "a+b?", "^.{2,3}$", "^(?:a|bc){1,3}$", "[0-9]", "^[\\s\\S]+$", "[^a]", "^$")
FORMATS = ("date", "ipv4", "ipv6", "uuid")
NUMBERS = (0, 1, 2, 3, 7, 10, 12, 21, 100, -1, -3, -10, 0.5, -0.5, 2.25, 1.5, 99.99)


class Random(random.Random):
    def often(self, p):
        return self.random() < p

    def bounds(self, low, high):
        a, b = sorted((self.randint(low, high), self.randint(low, high)))
        return a, b


def plain_value(r, depth):
    """A value of any kind."""
    kind = r.randrange(8 if depth else 6)
    if kind == 0:
        return None
    if kind == 1:
        return r.often(0.5)
    if kind < 4:
        return r.choice(NUMBERS)
    if kind < 6:
        return r.choice(WORDS)
    if kind == 6:
        return [plain_value(r, depth - 1) for _ in range(r.randrange(4))]
    return {n: plain_value(r, depth - 1) for n in r.sample(NAMES, r.randrange(4))}


def string_schema(r):
    s = {"type": "string"}
    if r.often(0.3):
        s["minLength"] = r.randrange(4)
    if r.often(0.3):
        s["maxLength"] = r.randrange(5)
    if r.often(0.4):
        s["pattern"] = r.choice(PATTERNS)
    if r.often(0.15):
        s["format"] = r.choice(FORMATS)
    return s


def number_schema(r):
    s = {"type": r.choice(("number", "integer"))}
    low, high = sorted((r.choice(NUMBERS), r.choice(NUMBERS)))
    if r.often(0.4):
        s[r.choice(("minimum", "exclusiveMinimum"))] = low
    if r.often(0.4):
        s[r.choice(("maximum", "exclusiveMaximum"))] = high
    if s["type"] == "integer" and r.often(0.3):
        s["multipleOf"] = r.choice((1, 2, 3, 7))
    return s


def array_schema(r, depth):
    s = {"type": "array"}
    if r.often(0.6):
        s["items"] = schema(r, depth - 1)
    if r.often(0.3):
        s["prefixItems"] = [schema(r, depth - 1) for _ in range(r.randint(1, 3))]
    if r.often(0.3):
        s["minItems"] = r.randrange(3)
    if r.often(0.3):
        s["maxItems"] = r.randrange(5)
    if r.often(0.1):
        return {"type": "array", "items": {"enum": r.sample(WORDS[:6], 4)}, "uniqueItems": True, **({"minItems": 2} if r.often(0.5) else {})}
    return s


def object_schema(r, depth):
    s = {"type": "object"}
    names = r.sample(NAMES, r.randrange(5))
    if names:
        s["properties"] = {n: schema(r, depth - 1) for n in names}
        if r.often(0.5):
            s["required"] = [n for n in names if r.often(0.5)]
    if r.often(0.4):
        s["additionalProperties"] = r.choice((False, True, schema(r, depth - 1)))
    if r.often(0.2):
        s["patternProperties"] = {r.choice(("^a", "b", "-")): schema(r, depth - 1)}
    if r.often(0.2):
        s["minProperties"] = r.randrange(3)
    if r.often(0.2):
        s["maxProperties"] = r.randrange(4)
    if r.often(0.1):
        s["propertyNames"] = {"maxLength": r.randint(1, 3)}
    if len(names) > 1 and r.often(0.15):
        s["dependentRequired"] = {names[0]: [names[1]]}
    return s


def schema(r, depth):
    kind = r.randrange(12 if depth > 0 else 6)
    if kind == 0:
        return r.choice((True, {}, {"type": "null"}, {"type": "boolean"}, {"type": ["null", "string"]}))
    if kind == 1:
        return {"enum": [plain_value(r, 1) for _ in range(r.randint(1, 4))]}
    if kind < 4:
        return string_schema(r)
    if kind < 6:
        return number_schema(r)
    if kind < 8:
        return array_schema(r, depth)
    if kind < 10:
        return object_schema(r, depth)
    if kind == 10:
        return {"anyOf": [schema(r, depth - 1) for _ in range(r.randint(1, 3))]}
    beside = schema(r, depth - 1)
    return {"allOf": [schema(r, depth - 1) for _ in range(r.randint(1, 2))], **(beside if isinstance(beside, dict) else {})}


def value_for(r, s, depth=4):
    """A value that a schema may well allow."""
    if depth == 0 or isinstance(s, bool) or not s:
        return plain_value(r, 1)
    if "enum" in s:
        return r.choice(s["enum"])
    for key in ("anyOf", "allOf"):
        if key in s:
            return value_for(r, r.choice(s[key]), depth - 1)
    kind = s.get("type")
    if kind == "object":
        known = s.get("properties", {})
        value = {n: value_for(r, known[n], depth - 1) for n in known if n in s.get("required", ()) or r.often(0.6)}
        for n in r.sample(NAMES, r.randrange(3)):
            if n not in known:
                value[n] = value_for(r, s.get("additionalProperties", True), depth - 1)
        return value
    if kind == "array":
        prefix = s.get("prefixItems", [])
        n = r.randint(s.get("minItems", 0), max(s.get("minItems", 0), s.get("maxItems", 3)))
        return [value_for(r, prefix[i] if i < len(prefix) else s.get("items", True), depth - 1) for i in range(n)]
    if kind in ("number", "integer"):
        value = r.choice(NUMBERS)
        return int(value) if kind == "integer" else value
    if kind == "string":
        return r.choice(WORDS)
    return {"null": None, "boolean": True}.get(kind, plain_value(r, 1)) if isinstance(kind, str) else plain_value(r, 1)


def mutate(r, value):
    if isinstance(value, list) and value and r.often(0.8):
        i = r.randrange(len(value))
        return r.choice((value[:i] + value[i + 1 :], value[:i] + [mutate(r, value[i])] + value[i + 1 :], value + [plain_value(r, 0)]))
    if isinstance(value, dict) and value and r.often(0.8):
        name = r.choice(list(value))
        if r.often(0.3):
            return {n: v for n, v in value.items() if n != name}
        return {**value, name: mutate(r, value[name])}
    return plain_value(r, 1)


def gathered(validator, schemas, value, out):
    """All schemas that hold for a value, in the order in which they are read; of anyOf, one that is right."""
    choices = []
    for s in schemas:
        if not isinstance(s, dict):
            continue
        out.append(s)
        gathered(validator, s.get("allOf", ()), value, out)
        if "anyOf" in s:
            choices += [next((x for x in s["anyOf"] if validator.evolve(schema=x).is_valid(value)), s["anyOf"][0])]
    if choices:
        gathered(validator, choices, value, out)
    return out


def of_member(s, name):
    """What a schema says of the member of a name."""
    known = [s["properties"][name]] if name in s.get("properties", ()) else []
    known += [x for p, x in s.get("patternProperties", {}).items() if re.search(p, name)]
    return known or [s.get("additionalProperties", True)]


def in_order(validator, schemas, value):
    """The value as the conventions ask for: members in the order in which they are declared, others behind them."""
    all_ = gathered(validator, schemas, value, [])
    if isinstance(value, list):
        below = [[s["prefixItems"][i] if i < len(s.get("prefixItems", ())) else s.get("items", True) for s in all_] for i in range(len(value))]
        return [in_order(validator, b, v) for b, v in zip(below, value)]
    if not isinstance(value, dict):
        return value
    names = {n for s in all_ for n in s.get("properties", ())}
    order = sorted(value, key=lambda n: (n not in names, n))
    return {n: in_order(validator, [x for s in all_ for x in of_member(s, n)], value[n]) for n in order}


def has_object(value):
    return isinstance(value, dict) or (isinstance(value, list) and any(has_object(v) for v in value))


def ready(s):
    """The schema with its names sorted wherever they are declared, so that all agree about their order, and without objects in enums."""
    if isinstance(s, list):
        return [ready(v) for v in s]
    if not isinstance(s, dict):
        return s
    out = {k: [v for v in x if not has_object(v)] or [1] if k == "enum" else ready(x) for k, x in s.items()}
    if isinstance(out.get("properties"), dict):
        out["properties"] = {n: out["properties"][n] for n in sorted(out["properties"])}
    return out


def main():
    program = sys.argv[1]
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 50000
    r = Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    tool = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    counts, reasons, n, differences = Counter(), Counter(), 0, 0
    while n < pairs:
        s = ready(schema(r, 3))
        validator = jsonschema.Draft202012Validator(s, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        values = []
        for _ in range(8):
            value = value_for(r, s)
            values += [value, mutate(r, value)]
        texts = [json.dumps(in_order(validator, [s], v), ensure_ascii=False) for v in values]
        tool.stdin.write(json.dumps({"schema": json.dumps(s), "texts": texts}) + "\n")
        tool.stdin.flush()
        line = tool.stdout.readline()
        if not line:
            sys.exit(f"the program ended on {json.dumps(s)}")
        answer = json.loads(line)
        valid = [validator.is_valid(v) for v in values]
        n += len(values)
        if "error" in answer:
            counts["refused"] += len(values)
            reasons[answer["error"].split(": ", 1)[-1][:70]] += len(values)
            if "allow" in answer["error"] and any(valid):
                differences += 1
                print(f"refused as allowing nothing, but {texts[valid.index(True)]} is valid; schema {json.dumps(s, ensure_ascii=False)}")
            continue
        for text, result, ok in zip(texts, answer["results"], valid):
            counts["valid" if ok else "invalid"] += 1
            if (result == "accepted") != ok:
                differences += 1
                print(f"{text} is {'valid' if ok else 'not valid'}, but {result}; schema {json.dumps(s, ensure_ascii=False)}")
    print(f"{n} pairs: {counts['valid']} valid, {counts['invalid']} not valid, {counts['refused']} refused; {differences} differences")
    for reason, k in reasons.most_common(12):
        print(f"    {k:6} {reason}")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
