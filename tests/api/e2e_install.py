"""The installed library: what is installed, what it exports, and programs built against it by find_package, pkg-config and C++."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

REPOSITORY = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MINFER = os.path.abspath(sys.argv[1])
BUILD = os.path.dirname(MINFER)
MODEL = os.path.join(REPOSITORY, "tests", "fixtures", "tiny", "qwen2-f32.gguf")
QUESTION = "Is there bread on the table?"
SCRATCH = tempfile.mkdtemp(prefix="minfer-install-")
PREFIX = os.path.join(SCRATCH, "prefix")


def cached(name):
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as f:
        found = re.search(rf"^{name}:[A-Z]+=(.*)$", f.read(), re.M)
    return found.group(1) if found else ""


CC = cached("CMAKE_C_COMPILER") or "cc"
FLAGS = [f"-fsanitize={cached('MINFER_SANITIZE')}"] if cached("MINFER_SANITIZE") else []
CXX = shutil.which("clang++" if "clang" in os.path.basename(CC) else "g++")


def call(*args, env=None):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(env or {})}, timeout=600)
    assert p.returncode == 0, f"{' '.join(args)}: exit {p.returncode}\n{p.stdout.decode(errors='replace')}{p.stderr.decode(errors='replace')}"
    return p.stdout


def installed(*pattern):
    """The one file below the prefix whose path ends so."""
    found = [os.path.join(d, f) for d, _, files in os.walk(PREFIX) for f in files if os.path.join(d, f).endswith(os.path.join(*pattern))]
    assert len(found) == 1, (pattern, found)
    return found[0]


def lib_dir():
    return os.path.dirname(installed("libminfer.a"))


def answer(program, *args, env=None):
    return call(program, *args, env=env)


def cli_answer():
    return call(MINFER, MODEL, QUESTION, "-n", "256").rstrip(b"\n")


def installs():
    call("cmake", "--install", BUILD, "--prefix", PREFIX)
    headers = [f for _, _, files in os.walk(os.path.join(PREFIX, "include")) for f in files]
    assert headers == ["minfer.h"], headers
    assert answer(os.path.join(PREFIX, "bin", "minfer"), "--version").startswith(b"minfer ")
    for part in (("man1", "minfer.1"), ("completions", "minfer"), ("site-functions", "_minfer"), ("vendor_completions.d", "minfer.fish")):
        assert os.path.getsize(installed(*part)) > 1000
    names = set(os.listdir(lib_dir()))
    assert {"libminfer.so", "libminfer.so.0", "libminfer.a"} <= names, names
    assert not [n for n in names if n.startswith("libmf_")], names


def exports():
    with open(os.path.join(PREFIX, "include", "minfer.h"), encoding="utf-8") as f:
        header = f.read()
    declared = set(re.findall(r"MINFER_API [^;]*?\b(minfer_\w+)\(", header))
    bare = [line for line in header.split("\n") if re.match(r"(?!typedef|MINFER_API|#|//)\w[^/]*\bminfer_\w+\(", line)]
    assert declared and not bare, f"without MINFER_API: {bare}"
    library = os.path.join(lib_dir(), "libminfer.so")
    lines = call("nm", "-D", "--defined-only", library).decode().split("\n")
    symbols = {line.split()[2].split("@")[0] for line in lines if len(line.split()) == 3 and line.split()[1] != "A"}
    assert symbols == declared, f"only in the library: {sorted(symbols - declared)}; only in the header: {sorted(declared - symbols)}"
    assert re.search(r"SONAME\s+libminfer\.so\.0\n", call("objdump", "-p", library).decode())


def header_alone():
    source = os.path.join(SCRATCH, "alone")
    for compiler, suffix, standards in ((CC, ".c", ("c99", "c11", "c17")), (CXX, ".cc", ("c++11", "c++17"))):
        if not compiler:
            print("     skipped: no C++ compiler", flush=True)
            continue
        with open(source + suffix, "w", encoding="utf-8") as f:
            f.write("#include <minfer.h>\nint main(void) { return minfer_arithmetic_version() < 1; }\n")
        for standard in standards:
            call(compiler, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", *FLAGS,
                 f"-I{PREFIX}/include", source + suffix, f"-L{lib_dir()}", "-lminfer", "-o", source)
            call(source, env={"LD_LIBRARY_PATH": lib_dir()})


def by_find_package():
    for kind in ("OFF", "ON"):
        build = os.path.join(SCRATCH, "examples-" + kind)
        call("cmake", "-S", os.path.join(REPOSITORY, "examples"), "-B", build, f"-DCMAKE_PREFIX_PATH={PREFIX}",
             f"-DCMAKE_C_COMPILER={CC}", f"-DCMAKE_C_FLAGS={' '.join(['-Wall', '-Wextra', '-Werror', *FLAGS])}",
             f"-DMINFER_EXAMPLES_STATIC={kind}")
        call("cmake", "--build", build)
        said = answer(os.path.join(build, "oneshot"), MODEL, QUESTION)
        assert said.rstrip(b"\n") == cli_answer() and said.strip(), said
        many = answer(os.path.join(build, "many"), MODEL, "The kettle sang")
        assert many == answer(os.path.join(build, "many"), MODEL, "The kettle sang")
        for number in b"1234":
            assert re.search(rb"^%c: \d+ tokens$" % number, many, re.M), many
        p = subprocess.run([os.path.join(build, "chat"), MODEL], input=f'{QUESTION}\nAnd "then"?\n'.encode(), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=600)
        assert p.returncode == 0 and p.stdout.startswith(said), p
        history = json.loads(p.stderr.splitlines()[-1])
        assert [m["role"] for m in history] == ["user", "assistant"] * 2, history
        assert [m["content"] for m in history[::2]] == [QUESTION, 'And "then"?'], history


def the_tour():
    """The program in docs/api.md."""
    with open(os.path.join(REPOSITORY, "docs", "api.md"), encoding="utf-8") as f:
        blocks = re.findall(r"^```c\n(.*?)^```", f.read(), re.M | re.S)
    program = os.path.join(SCRATCH, "tour")
    with open(program + ".c", "w", encoding="utf-8") as f:
        f.write(next(b for b in blocks if "int main" in b))
    call(CC, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", *FLAGS, f"-I{PREFIX}/include", program + ".c", f"-L{lib_dir()}",
         "-lminfer", "-o", program)
    said = answer(program, MODEL, QUESTION, env={"LD_LIBRARY_PATH": lib_dir()})
    assert said.rstrip(b"\n") == call(MINFER, MODEL, QUESTION, "-n", "-1").rstrip(b"\n") and said.strip(), said


def by_pkg_config():
    if not shutil.which("pkg-config"):
        print("     skipped: no pkg-config", flush=True)
        return
    env = {"PKG_CONFIG_PATH": os.path.join(lib_dir(), "pkgconfig")}
    assert call("pkg-config", "--modversion", "minfer", env=env).decode().strip() == "0.1.0"
    program = os.path.join(SCRATCH, "oneshot")
    flags = call("pkg-config", "--cflags", "--libs", "minfer", env=env).decode().split()
    call(CC, *FLAGS, os.path.join(REPOSITORY, "examples", "oneshot.c"), *flags, "-o", program)
    assert answer(program, MODEL, QUESTION, env={"LD_LIBRARY_PATH": lib_dir()}).rstrip(b"\n") == cli_answer()
    p = subprocess.run([program, "nothing-here.gguf", "x"], stderr=subprocess.PIPE, env={**os.environ, "LD_LIBRARY_PATH": lib_dir()}, timeout=60)
    assert p.returncode == 1 and b"No such file" in p.stderr, p


def main():
    if cached("MINFER_FUZZ") == "ON" and not FLAGS:
        print("skipped: a library with fuzzing hooks needs their run-time library")
        return 77
    try:
        for test in (installs, exports, header_alone, by_find_package, the_tour, by_pkg_config):
            test()
            print(f"ok   {test.__name__}", flush=True)
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
    return 0


sys.exit(main())
