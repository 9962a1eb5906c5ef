"""Runs the program for the end-to-end tests; makes model files that differ from the tiny fixtures in their metadata."""
import os
import struct
import subprocess
import sys
import tempfile

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures")
MINFER = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "minfer"
SCRATCH = tempfile.mkdtemp(prefix="minfer-cli-")


def tiny(name):
    return os.path.join(FIXTURES, "tiny", name + ".gguf")


def environment(extra=None):
    """This process's, without what would set flags, and with an empty model cache."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MINFER_")}
    env["XDG_CACHE_HOME"] = os.path.join(SCRATCH, "no-cache")
    env.update(extra or {})
    return env


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


def run(*args, stdin=b"", env=None, timeout=300):
    """Exit code, standard output (bytes) and standard error (text)."""
    p = subprocess.run([MINFER, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(env), timeout=timeout)
    return Result(p.returncode, p.stdout, p.stderr.decode())


def good(*args, **kw):
    r = run(*args, **kw)
    assert r.code == 0, f"{args}: exit {r.code}: {r.err}"
    return r


def refused(code, part, *args, **kw):
    """The exit code, one line on standard error that has `part`, nothing on standard output."""
    r = run(*args, **kw)
    lines = r.err.splitlines()
    assert r.code == code, f"{args}: exit {r.code}, not {code}: {r.err}"
    assert r.out == b"", f"{args}: {r.out[:200]}"
    assert len(lines) == 1 and lines[0].startswith("error: "), f"{args}: {r.err}"
    assert part in lines[0], f"{args}: '{part}' is not in: {r.err}"
    return r


def scratch(name, data):
    path = os.path.join(SCRATCH, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def with_metadata(name, pairs):
    """A copy of a tiny file with (key, GGUF value type, value bytes) before its own metadata. A text of the right length keeps
    everything behind it aligned."""
    with open(tiny(name), "rb") as f:
        data = bytearray(f.read())
    extra = b"".join(string(k) + struct.pack("<I", kind) + value for k, kind, value in pairs)
    head = string("test.padding") + struct.pack("<I", 8)
    extra += head + string(b"x" * (-(len(extra) + len(head) + 8) % 32))
    assert len(extra) % 32 == 0
    count = struct.unpack_from("<Q", data, 16)[0]
    struct.pack_into("<Q", data, 16, count + len(pairs) + 1)
    return scratch(f"{name}-{len(os.listdir(SCRATCH))}.gguf", bytes(data[:24]) + extra + bytes(data[24:]))


def with_text(name, old, new, after=b""):
    """A copy of a tiny file in which a text, wherever it stands behind `after`, is another of the same length."""
    assert len(old) == len(new)
    with open(tiny(name), "rb") as f:
        data = f.read()
    at = data.index(after)
    assert old in data[at:]
    return scratch(f"{name}-{len(os.listdir(SCRATCH))}.gguf", data[:at] + data[at:].replace(old, new))


skips = []


def skip(reason):
    """Says that a test, or a part of it, can't run here; the script then ends with 77, so that CTest shows it as skipped."""
    print(f"     skipped: {reason}", flush=True)
    skips.append(reason)


def test_model():
    """The path of SmolLM2; None, with a skip, where it is not there."""
    path = os.path.join(os.environ.get("MINFER_TEST_MODELS", ""), "smollm2-135m-instruct-q4_1.gguf")
    if os.path.exists(path):
        return path
    skip("no SmolLM2 in $MINFER_TEST_MODELS")
    return None


def main(tests):
    import shutil
    try:
        for test in tests:
            test()
            print(f"ok   {test.__name__}", flush=True)
        if skips:
            sys.exit(77)
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
