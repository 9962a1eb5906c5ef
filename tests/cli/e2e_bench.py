"""minfer bench: its tests, its three formats, its refusals."""
import csv
import io
import json
import re
import signal
import subprocess
import time

import command
from command import MINFER, environment, good, refused, tiny

MODEL = tiny("qwen2-mix")
SHORT = ["bench", MODEL, "--warmup-ms", "0"]


def json_format():
    r = json.loads(good(*SHORT, "-p", "40", "-n", "6", "-r", "3", "-o", "json", "-t", "1", "-b", "16").out)
    assert [(x["n_prompt"], x["n_gen"]) for x in r] == [(40, 0), (0, 6)]
    for x in r:
        assert len(x["samples_ns"]) == len(x["samples_ts"]) == 3 and x["n_threads"] == 1 and x["n_batch"] == 16
        assert x["type_k"] == x["type_v"] == "f16" and x["n_depth"] == 0 and x["model_filename"] == MODEL
        mean = sum(x["samples_ts"]) / 3
        assert abs(x["avg_ts"] - mean) < 1e-6 * mean
        sd = (sum((s - mean) ** 2 for s in x["samples_ts"]) / 2) ** 0.5
        assert abs(x["stddev_ts"] - sd) < 1e-6 * mean
        tokens = x["n_prompt"] + x["n_gen"]
        for ns, ts in zip(x["samples_ns"], x["samples_ts"]):
            assert abs(tokens / ns * 1e9 - ts) < 1e-3 * ts
    assert 0 < r[0]["int8_peak_percent"] < 200 and r[0]["bandwidth_percent"] is None and r[0]["first_token_ms"] > 0, r
    assert 0 < r[1]["bandwidth_percent"] and r[1]["int8_peak_percent"] is None and r[1]["first_token_ms"] is None, r


def one_test():
    r = json.loads(good(*SHORT, "-p", "0", "-n", "4", "-r", "1", "-o", "json", "--parallel", "4", "-d", "30").out)
    assert len(r) == 1 and r[0]["n_parallel"] == 4 and r[0]["n_depth"] == 30 and r[0]["stddev_ts"] == 0
    assert abs(16 / r[0]["samples_ns"][0] * 1e9 - r[0]["avg_ts"]) < 1e-3 * r[0]["avg_ts"]
    r = json.loads(good(*SHORT, "-p", "30", "-n", "0", "-r", "1", "-o", "json", "--cache-type", "f32").out)
    assert len(r) == 1 and r[0]["n_gen"] == 0 and r[0]["type_k"] == "f32"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", r[0]["test_time"])


def other_formats():
    text = good(*SHORT, "-p", "20", "-n", "4", "-r", "2").out.decode()
    rows = [line for line in text.splitlines() if line.startswith("| qwen2")]
    assert len(rows) == 2 and "pp20" in rows[0] and "% of int8 peak" in rows[0] and "tg4" in rows[1] and "% of bandwidth" in rows[1], text
    rows = list(csv.DictReader(io.StringIO(good(*SHORT, "-p", "20", "-n", "4", "-r", "2", "-o", "csv", "-d", "8").out.decode())))
    assert [(r["n_prompt"], r["n_gen"], r["n_depth"]) for r in rows] == [("20", "0", "8"), ("0", "4", "8")]
    assert all(float(r["avg_ts"]) > 0 for r in rows) and rows[0]["bandwidth_percent"] == ""


def warm_up():
    start = time.monotonic()
    good("bench", MODEL, "-p", "0", "-n", "1", "-r", "1", env={"MINFER_BENCH_WARMUP_MS": "700"})
    assert time.monotonic() - start > 0.7


def refusals():
    refused(2, "leave no test", "bench", MODEL, "-p", "0", "-n", "0")
    refused(1, "need a context of 2064 tokens; the model's maximum is 1024 a sequence", "bench", MODEL, "-p", "2048", "-n", "0")
    refused(2, "no model", "bench")
    refused(1, "No such file", "bench", "nothing.gguf")
    refused(1, "-r: 0 is not between 1 and 1000", "bench", MODEL, "-r", "0")
    refused(2, "'xml' is not one of md|csv|json", "bench", MODEL, "-o", "xml")
    refused(1, "unknown backend", "bench", MODEL, "--backend", "tpu")
    refused(2, "minfer bench does not take the flag --temp", "bench", MODEL, "--temp", "1")


def interrupt():
    p = subprocess.Popen([MINFER, "bench", MODEL, "--warmup-ms", "60000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    time.sleep(1.5)
    p.send_signal(signal.SIGINT)
    out, err = p.communicate(timeout=60)
    assert p.returncode == 130 and out == b"" and err == b"", (p.returncode, out, err)


command.main([json_format, one_test, other_formats, warm_up, refusals, interrupt])
