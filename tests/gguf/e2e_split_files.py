#!/usr/bin/env python3
"""A model in one file and in parts gives the same bytes, from any part; parts that are missing, repeated or foreign are refused by name."""
import os
import shutil
import struct
import subprocess
import sys
import tempfile

MINFER = os.path.abspath(sys.argv[1])
MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fixtures", "tiny", "llama-mix.gguf")
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
ALIGNMENT = 32


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def text(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n : self.at]

    def skip_value(self, kind):
        if kind == 8:
            self.text()
        elif kind == 9:
            item, count = self.take("IQ")
            for _ in range(count):
                self.skip_value(item)
        else:
            self.at += SIZES[kind]


def read(path):
    """(the keys as raw bytes, how many, [(name, dimensions, type, data)])"""
    with open(path, "rb") as f:
        r = Reader(f.read())
    _, _, n_tensors, n_keys = r.take("4sIQQ")
    first = r.at
    for _ in range(n_keys):
        r.text()
        r.skip_value(r.take("I"))
    keys = r.data[first : r.at]
    infos = []
    for _ in range(n_tensors):
        name = r.text()
        shape = [r.take("Q") for _ in range(r.take("I"))]
        kind, offset = r.take("IQ")
        infos.append((name, shape, kind, offset))
    start = -(-r.at // ALIGNMENT) * ALIGNMENT
    ends = sorted({i[3] for i in infos} | {len(r.data) - start})
    return keys, n_keys, [(n, s, k, r.data[start + o : start + ends[ends.index(o) + 1]]) for n, s, k, o in infos]


def key(name, kind, value):
    return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I" + {2: "H", 4: "I", 5: "i"}[kind], kind, value)


def write(path, keys, n_keys, tensors, no, count, total):
    head = keys + key("split.no", 2, no) + key("split.count", 2, count) + key("split.tensors.count", 5, total)
    infos, data = b"", b""
    for name, shape, kind, values in tensors:
        infos += struct.pack("<Q", len(name)) + name + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        infos += struct.pack("<IQ", kind, len(data))
        data += values + b"\0" * (-len(values) % ALIGNMENT)
    out = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), n_keys + 3) + head + infos
    with open(path, "wb") as f:
        f.write(out + b"\0" * (-len(out) % ALIGNMENT) + data)


def part(folder, no, count=3):
    return os.path.join(folder, f"m-{no + 1:05d}-of-{count:05d}.gguf")


def split(folder, count=3):
    keys, n_keys, tensors = read(MODEL)
    for no in range(count):
        mine = tensors[no * len(tensors) // count : (no + 1) * len(tensors) // count]
        write(part(folder, no, count), *((keys, n_keys) if no == 0 else (b"", 0)), mine, no, count, len(tensors))


def run(path):
    command = [MINFER, path, "-p", "In the morning the river", "--raw", "-n", "24", "--greedy", "-t", "1", "--ctx", "128"]
    return subprocess.run(command, capture_output=True)


def refused(folder, given, *words):
    done = run(part(folder, given))
    text = done.stderr.decode()
    if done.returncode != 1 or done.stdout or not all(w in text for w in words):
        sys.exit(f"exit {done.returncode}, '{text}'; a refusal with {words} was expected")


def main():
    whole = run(MODEL)
    if whole.returncode != 0 or not whole.stdout:
        sys.exit(f"the whole file: {whole.stderr.decode()}")
    with tempfile.TemporaryDirectory() as folder:
        split(folder)
        for no in range(3):
            done = run(part(folder, no))
            if done.returncode != 0 or done.stdout != whole.stdout:
                sys.exit(f"part {no + 1} gives {done.stdout!r}, the whole file {whole.stdout!r}: {done.stderr.decode()}")
        second = part(folder, 1)
        kept = second + ".kept"
        os.rename(second, kept)
        refused(folder, 0, "part 2 of 3", os.path.basename(second))
        shutil.copy(part(folder, 2), second)
        refused(folder, 0, os.path.basename(second), "repeated")
        split(folder, 4)
        shutil.copy(part(folder, 1, 4), second)
        refused(folder, 0, os.path.basename(second), "foreign")
    print("split files: the same bytes from every part; missing, repeated and foreign parts are refused")


main()
