"""Constrained answers of the binary, on a tiny model and, where it is there, on SmolLM2; and minfer grammar."""
import json
import os
import subprocess
import tempfile

import command
from command import MINFER, environment, tiny

TINY = tiny("llama-mix")


def run(*args, text=None, env=None):
    return subprocess.run([MINFER, *args], input=text, stdin=None if text else subprocess.DEVNULL, capture_output=True, text=True,
                          env=environment(env or {}), timeout=600)


def grammar_command():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "text")
        cases = [("[1, 2]", "accepted\n", 0), ("[1,", "incomplete\n", 1), ('[1,"a"]', "rejected at byte 3\n", 1)]
        for text, said, code in cases:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            schema = '{"type":"array","items":{"type":"integer"}}'
            done = run("grammar", "--json-schema", schema, path)
            assert (done.stdout, done.returncode) == (said, code), (text, done)
        done = run("grammar", "--grammar", 'root ::= "a"+', "-", text="aaa")
        assert (done.stdout, done.returncode) == ("accepted\n", 0), done
        with open(path, "w", encoding="utf-8") as f:
            f.write('root ::= "b"')
        done = run("grammar", "--grammar", path, "-", text="b")
        assert (done.stdout, done.returncode) == ("accepted\n", 0), done


def refusals():
    cases = [
        (("--grammar", "x ::= [", "--json-object"), 2, "are both given"),
        (("--grammar", "root ::= ["), 1, "the grammar: line 1, column 10: a class that does not end"),
        (("--json-schema", '{"properties":{"a":{"not":{}}}}'), 1, "the schema at '#/properties/a': not is not supported"),
        (("--grammar-file", "/nonexistent"), 1, "/nonexistent"),
        (("--json-schema", "{"), 1, "the schema: line 1"),
    ]
    for flags, code, said in cases:
        done = run(TINY, "hello", *flags)
        assert done.returncode == code and said in done.stderr and not done.stdout, (flags, done)


def answers(model):
    done = run(model, "hello", "--grammar", 'root ::= "yes" | "no"', "--temp", "2")
    assert done.stdout in ("yes\n", "no\n"), done
    for seed in range(6):
        schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 90}, "b": {"enum": ["x", "yz"]}}, "required": ["a", "b"], "additionalProperties": False}
        done = run(model, "hello", "--json-schema", json.dumps(schema), "--temp", "1.5", "--seed", str(seed), "--json")
        answer = json.loads(done.stdout)
        assert answer["finish_reason"] == "stop", done
        value = json.loads(answer["text"])
        assert list(value) == ["a", "b"] and 3 <= value["a"] <= 90 and value["b"] in ("x", "yz"), value
    done = run(model, "hello", "--grammar", 'root ::= "a"{7}', "--ignore-eos")
    assert done.stdout == "aaaaaaa\n" and done.returncode == 0, done
    twice = [run(model, "hello", "--json-object", "-n", "40", "-t", t).stdout for t in ("1", "2")]
    assert twice[0] == twice[1]


def conversation(model):
    done = run("chat", model, "--grammar", 'root ::= "one" | "two"', text="hello\nagain\n")
    assert [line for line in done.stdout.split("\n") if line and line not in ("one", "two")] == [], done
    assert done.returncode == 0, done


def variable(model):
    done = run(model, "hello", env={"MINFER_GRAMMAR": 'root ::= "ok"'})
    assert done.stdout == "ok\n", done


def tiny_model():
    answers(TINY)
    conversation(TINY)
    variable(TINY)


def real_model():
    model = command.test_model()
    if model:
        answers(model)
        conversation(model)


command.main([grammar_command, refusals, tiny_model, real_model])
