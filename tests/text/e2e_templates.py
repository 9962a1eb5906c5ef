#!/usr/bin/env python3
"""The published chat templates, rendered by minfer and by jinja2: e2e_templates.py MINFER

The templates are those in the source distribution of llama-cpp-python, which is fetched once into the cache directory, as is
jinja2 where this Python has none. Skipped with the reason where that can't be done. Every conversation of
tests/oracle/conversations.py goes through every template: the bytes must be equal, and where Python raises minfer must refuse.
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
ORACLE = HERE.parent / "oracle"
sys.path.insert(0, str(ORACLE))
from conversations import conversations  # noqa: E402

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "minfer" / f"templates-{VERSION}"
SKIP = 77


class Skip(Exception):
    pass


def index_url():
    if os.environ.get("PIP_INDEX_URL"):
        return os.environ["PIP_INDEX_URL"]
    p = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True)
    return p.stdout.strip() or "https://pypi.org/simple"


def open_url(url):
    return urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "text/html"}), timeout=60)


def download(path):
    page_url = f"{index_url().rstrip('/')}/{PACKAGE}/"
    with open_url(page_url) as page:
        links = re.findall(r'href="([^"]+)"', page.read().decode())
    name = f"{PACKAGE.replace('-', '_')}-{VERSION}.tar.gz"
    link = next((link for link in links if name in link), None)
    if not link:
        raise Skip(f"{page_url} has no {name}")
    url, _, fragment = urllib.parse.urljoin(page_url, link).partition("#")
    digest = hashlib.sha256()
    with open_url(url) as source, open(path, "wb") as f:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
            f.write(chunk)
    if fragment.startswith("sha256=") and digest.hexdigest() != fragment[len("sha256="):]:
        raise Skip(f"{url} is not the file that the index names")


def templates():
    """The .jinja files as {name: text}."""
    folder = CACHE / "jinja"
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as tmp:
            archive = os.path.join(tmp, "sdist.tar.gz")
            try:
                download(archive)
            except (OSError, ValueError) as e:
                raise Skip(f"the templates can't be fetched: {e}") from None
            out = pathlib.Path(tmp) / "jinja"
            out.mkdir()
            with tarfile.open(archive) as tar:
                for member in tar:
                    if member.isfile() and re.search(r"/models/templates/[^/]+\.jinja$", member.name):
                        (out / os.path.basename(member.name)).write_bytes(tar.extractfile(member).read())
            out.rename(folder)
    return {path.name: path.read_bytes().decode() for path in sorted(folder.glob("*.jinja"))}


def python_with_jinja():
    for python in (os.environ.get("MINFER_ORACLE_PYTHON"), sys.executable, CACHE / "venv" / "bin" / "python"):
        if python and os.path.exists(python) and subprocess.run([python, "-c", "import jinja2"], capture_output=True).returncode == 0:
            return str(python)
    CACHE.mkdir(parents=True, exist_ok=True)
    make = [sys.executable, "-m", "venv", str(CACHE / "venv")]
    python = str(CACHE / "venv" / "bin" / "python")
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "jinja2==3.1.6"]
    for command in (make, install):
        p = subprocess.run(command, capture_output=True, text=True)
        if p.returncode != 0:
            raise Skip(f"jinja2 can't be installed: {p.stderr.strip()[-200:]}")
    return python


def python_answers(requests):
    lines = "".join(json.dumps({"template": text, "variables": variables}) + "\n" for _, _, text, variables in requests)
    p = subprocess.run([python_with_jinja(), ORACLE / "jinja_lines.py", "clock"], input=lines, capture_output=True, text=True, timeout=600)
    assert p.returncode == 0, p.stderr
    return [json.loads(line) for line in p.stdout.splitlines()]


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.write(text)
    return path


def minfer_answer(folder, number, text, variables):
    variables = dict(variables)
    args = [sys.argv[1], "render", "--template", write(folder, f"{number}.jinja", text)]
    args += ["--messages", write(folder, f"{number}.messages", json.dumps(variables.pop("messages")))]
    tools = variables.pop("tools")
    if tools is not None:
        args += ["--tools", write(folder, f"{number}.tools", json.dumps(tools))]
    args += ["--bos", variables.pop("bos_token"), "--eos", variables.pop("eos_token")]
    if not variables.pop("add_generation_prompt"):
        args.append("--no-generation-prompt")
    p = subprocess.run([*args, "--kwargs", json.dumps(variables)], capture_output=True, timeout=120)
    assert p.returncode in (0, 1), (args, p.returncode, p.stderr)
    return p.returncode, p.stdout, p.stderr.decode()


def main():
    try:
        requests = [(name, talk, text, variables) for name, text in templates().items() for talk, variables in conversations().items()]
        wanted = python_answers(requests)
    except Skip as e:
        print(f"skipped: {e}")
        return SKIP
    equal = refused = 0
    faults = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = pool.map(lambda i: minfer_answer(folder, i, *requests[i][2:]), range(len(requests)))
        for (name, talk, _, _), want, (code, out, err) in zip(requests, wanted, answers):
            if "text" in want and code == 0 and out == want["text"].encode():
                equal += 1
            elif "error" in want and code == 1 and out == b"":
                refused += 1
            else:
                faults.append(f"{name}, {talk}: Python {str(want)[:200]}; minfer {code} {out[:200]} {err[:300]}")
    print(f"{len(requests)} renderings: {equal} equal, {refused} refused by both, {len(faults)} different")
    print("\n".join(faults[:20]))
    assert len(requests) > 500, "too few templates"
    return 1 if faults else 0


sys.exit(main())
