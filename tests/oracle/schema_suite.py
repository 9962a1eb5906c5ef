#!/usr/bin/env python3
"""JSON-Schema-Test-Suite against constraints: every test is right, or its schema is refused by name.

    python tests/oracle/schema_suite.py CONSTRAINT_LINES SUITE [DRAFT…]

CONSTRAINT_LINES is the program tests/sample/tool_constraint_lines.c, SUITE a checkout of json-schema-org/JSON-Schema-Test-Suite.
Instances are written as the conventions ask for (docs/constrained.md): declared properties in their order, whole numbers without a
fraction or an exponent. Prints, for each draft, the tests that are right, refused and wrong.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

DRAFTS = ("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12")
URIS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


def declared(schema, names):
    """The names of all properties of a schema and of what stands in it, in their order."""
    if isinstance(schema, dict):
        for key in ("properties", "required", "dependentRequired", "dependencies"):
            value = schema.get(key)
            if isinstance(value, (dict, list)):
                names.extend(n for n in value if isinstance(n, str))
            if key.startswith("depend") and isinstance(value, dict):
                for list_ in value.values():
                    names.extend(n for n in (list_ if isinstance(list_, list) else ()) if isinstance(n, str))
        for value in schema.values():
            declared(value, names)
    if isinstance(schema, list):
        for value in schema:
            declared(value, names)
    return names


def ordered(value, names):
    if isinstance(value, dict):
        first = {n: i for i, n in reversed(list(enumerate(names)))}
        keys = sorted(value, key=lambda k: first.get(k, len(names)))
        return {k: ordered(value[k], names) for k in keys}
    if isinstance(value, list):
        return [ordered(v, names) for v in value]
    return value


def text_of(value, names):
    return json.dumps(ordered(value, names), ensure_ascii=False)


def main():
    program, suite = sys.argv[1], Path(sys.argv[2])
    tool = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wrong = 0
    for draft in sys.argv[3:] or DRAFTS:
        counts, reasons = Counter(), Counter()
        for path in sorted((suite / "tests" / draft).rglob("*.json")):
            for group in json.loads(path.read_text()):
                schema = group["schema"]
                if isinstance(schema, dict) and "$schema" not in schema:
                    schema = {"$schema": URIS[draft], **schema}
                names = declared(schema, [])
                texts = [text_of(t["data"], names) for t in group["tests"]]
                tool.stdin.write(json.dumps({"schema": json.dumps(schema), "texts": texts}) + "\n")
                tool.stdin.flush()
                answer = json.loads(tool.stdout.readline())
                if "error" in answer:
                    counts["refused"] += len(texts)
                    reasons[answer["error"].split(": ", 1)[-1][:60]] += len(texts)
                    continue
                for test, text, result in zip(group["tests"], texts, answer["results"]):
                    right = (result == "accepted") == test["valid"]
                    counts["right" if right else "wrong"] += 1
                    if not right:
                        wrong += 1
                        print(f"{draft}/{path.name}: {group['description']}: {test['description']}: {text[:100]} is {result}; schema {json.dumps(schema)[:300]}")
        print(f"{draft}: {counts['right']} right, {counts['refused']} refused, {counts['wrong']} wrong")
        for reason, n in reasons.most_common(12):
            print(f"    {n:5} {reason}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
