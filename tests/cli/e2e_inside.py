"""--dump-graph, --dump-graph-json, --trace and --op-timing on a tiny model."""
import glob
import json
import os
import tempfile

import command
from command import good

MODEL = os.path.join(command.FIXTURES, "tiny", "qwen2-mix.gguf")


def dumps():
    with tempfile.TemporaryDirectory() as folder:
        dot, graph = os.path.join(folder, "g.dot"), os.path.join(folder, "g.json")
        said = good("--dump-graph", dot, "--dump-graph-json", graph, MODEL, "hello")
        assert said.out == b"", "a dump answers nothing"
        with open(graph, encoding="utf-8") as f:
            nodes = json.load(f)["nodes"]
        n = len(nodes)
        assert n > 20 and {"matmul", "attention", "rope_store"} <= {node["op"] for node in nodes}
        lines = said.err
        assert f"Graph DOT exported to {dot} ({n} nodes)" in lines and f"Graph JSON exported to {graph} ({n} nodes, prefill)" in lines
        with open(dot, encoding="utf-8") as f:
            assert f.read().startswith("digraph")


def trace():
    plain = good("--greedy", "-n", "4", MODEL, "hello").out
    with tempfile.TemporaryDirectory() as folder:
        traced = good("--greedy", "-n", "4", "--trace", folder, MODEL, "hello").out
        assert traced == plain, "a trace changes nothing"
        steps = sorted(glob.glob(os.path.join(folder, "step-*.jsonl")))
        assert len(steps) == 4
        with open(steps[0], encoding="utf-8") as f:
            lines = [json.loads(line) for line in f]
        assert "token" in lines[0] and any(line.get("op") == "matmul" and line["non_finite"] == 0 for line in lines[1:])


def timing():
    said = good("--greedy", "-n", "4", "--op-timing", MODEL, "hello").err
    assert "matmul" in said and "us/call" in said
    assert "us/call" not in good("--greedy", "-n", "4", MODEL, "hello").err


command.main([dumps, trace, timing])
