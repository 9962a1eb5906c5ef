#!/usr/bin/env python3
"""The rules of docs/architecture.md that can be read off the sources: rooms.py REPOSITORY

A folder of src/ includes only headers of its own room or of rooms above it; the core rooms use nothing but libc; no source file
passes 800 lines; the version in CMakeLists.txt is the header's; nothing is left to do later; tests that skip a case say why and
show it (support/cases.h).
"""
import pathlib
import re
import subprocess
import sys

ROOMS = ["base", "quant", "gguf", "device", "graph", "kv", "backend", "model", "text", "sample", "engine", "chat", "api", "server", "tools", "cli"]
CORE = {"base", "quant", "gguf", "device", "graph", "kv", "backend", "model", "sample", "engine"}
FOREIGN = re.compile(r"pcre2|utf8proc|curl|microhttpd|edit/|editline|openssl|gcrypt")
MAX_LINES = 800


def sources(root):
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True
    )
    names = listed.stdout.split("\n") if listed.returncode == 0 else [str(p.relative_to(root)) for p in root.rglob("*")]
    for name in names:
        path = root / name
        if path.suffix in {".c", ".h", ".py", ".sh", ".cmake"} and path.is_file() and not name.startswith("build"):
            yield name, path.read_text(encoding="utf-8")


def check_includes(name, text):
    room = name.split("/")[1]
    if room not in ROOMS:
        yield f"{name}: src/{room}/ is no room"
        return
    for number, line in enumerate(text.split("\n"), 1):
        own = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        system = re.match(r"\s*#\s*include\s+<([^>]+)>", line)
        if own:
            target = own.group(1).split("/")[0]
            if target not in ROOMS:
                yield f"{name}:{number}: includes \"{own.group(1)}\", not written from src/"
            elif ROOMS.index(target) > ROOMS.index(room):
                yield f"{name}:{number}: {room} may not include {target}, which stands below it"
        if system and room in CORE and FOREIGN.search(system.group(1)):
            yield f"{name}:{number}: {room} is a part of the core and may use libc only, not <{system.group(1)}>"


def check(root):
    for name, text in sources(root):
        lines = text.count("\n")
        if lines > MAX_LINES:
            yield f"{name}: {lines} lines; {MAX_LINES} is the limit"
        if name.startswith("tests/") and name.endswith(".c") and re.search(r"\bskip\(\)", text):
            yield f"{name}: skip(), which CTest counts as passed; skip_because() of support/cases.h shows it"
        if name.startswith("src/"):
            if name.count("/") >= 2:
                yield from check_includes(name, text)
            for word in re.findall(r"\b(?:TODO|FIXME|XXX|HACK)\b", text):
                yield f"{name}: {word}"
    cmake = re.search(r"project\(minfer VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text())
    header = re.search(r'MF_VERSION\s+"([^"]+)"', (root / "src/base/version.h").read_text())
    if cmake.group(1) != header.group(1):
        yield f"CMakeLists.txt says version {cmake.group(1)}, src/base/version.h {header.group(1)}"
    arithmetic = re.search(r"MF_ARITHMETIC_VERSION (\d+)", (root / "src/base/version.h").read_text())
    stated = re.search(r"Version \*\*(\d+)\*\*", (root / "docs/arithmetic.md").read_text())
    if arithmetic.group(1) != stated.group(1):
        yield f"docs/arithmetic.md says version {stated.group(1)}, src/base/version.h {arithmetic.group(1)}"


if __name__ == "__main__":
    faults = list(check(pathlib.Path(sys.argv[1]).resolve()))
    print("\n".join(faults) or "the rooms are in order")
    sys.exit(1 if faults else 0)
