"""--dump-graph, --dump-graph-json, --trace, --dump-values and --op-timing on a tiny model."""
import ast
import glob
import json
import math
import os
import struct
import tempfile

import command
from command import SCRATCH, good, refused

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


def floats(path):
    """(shape, numbers) of an .npy file, by NumPy's description of the format."""
    with open(path, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x93NUMPY\1\0"
    end = 10 + struct.unpack_from("<H", data, 8)[0]
    header = ast.literal_eval(data[10:end].decode())
    assert end % 64 == 0 and data[end - 1:end] == b"\n" and header["descr"] == "<f4" and header["fortran_order"] is False
    count = math.prod(header["shape"])
    assert len(data) == end + 4 * count
    return header["shape"], struct.unpack_from(f"<{count}f", data, end)


def values():
    """Whole values, as the trace has their first ones; by name; the logits; nothing changes."""
    folder, traced = os.path.join(SCRATCH, "values"), os.path.join(SCRATCH, "values-trace")
    args = ["--greedy", "-n", "3", "--raw", MODEL, "hello"]
    plain = good(*args).out
    assert good(*args, "--dump-values", folder, "--trace", traced).out == plain
    steps = sorted(os.listdir(folder))
    assert steps == [f"step-{i + 1:06d}" for i in range(len(steps))] and len(steps) == 3
    for step in steps:
        with open(os.path.join(traced, step + ".jsonl"), encoding="utf-8") as f:
            rows = {n["name"]: n for n in map(json.loads, f.readlines()[1:])}  # the last of a name
        for name, node in rows.items():
            if node["shape"][0] == 0:
                continue
            shape, numbers = floats(os.path.join(folder, step, name + ".npy"))
            assert math.prod(shape) == math.prod(node["shape"]) and shape[-1] == node["shape"][0], (name, shape)
            assert all(abs(a - b) < 1e-6 * max(1, abs(b)) for a, b in zip(numbers, node["first"])), name
        assert {"logits", "blk.0.k_rope", "blk.0.v"} <= set(rows)
    some = os.path.join(SCRATCH, "some")
    good(*args, "--dump-names", "attn_out,blk.1.q,logits", env={"MINFER_DUMP_DIR": some})
    got = os.listdir(os.path.join(some, "step-000001"))
    assert {"blk.0.attn_out.npy", "blk.1.q.npy", "logits.npy"} <= set(got) and not {"blk.0.q.npy", "embedding.npy"} & set(got), got
    refused(1, "--dump-names needs --dump-values", *args, "--dump-names", "x")
    refused(1, "not a folder", *args, "--dump-values", os.path.abspath(__file__))


command.main([dumps, trace, values, timing])
