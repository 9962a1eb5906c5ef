"""Builds the engines that minfer is measured against, outside the repository."""
import os
import re
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "support"))
import fetch_model  # noqa: E402

LLAMA_PACKAGE = "llama-cpp-python==0.3.36"
LLAMA_TOOLS = ["llama-bench", "llama-batched-bench", "llama-completion", "llama-quantize", "llama-perplexity"]
IK_TOOLS = ["llama-bench", "llama-batched-bench", "llama-sweep-bench"]


def build_with_cmake(source, build, options, tools, log):
    with open(log, "w") as out:
        subprocess.run(["cmake", "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", *options], check=True, stdout=out, stderr=out)
        subprocess.run(["cmake", "--build", build, "-j", str(os.cpu_count()), "--target", *tools], check=True, stdout=out, stderr=out)


def prepare_llama(folder):
    for base, _, files in os.walk(folder):  # the archive's times lie in the future of some builds, which then never settle
        for name in files:
            os.utime(os.path.join(base, name))
    # gcc 12's _tile_loadconfig reads 8 of its 64 bytes as far as the optimizer knows, and the stores before it are dropped.
    tiles = os.path.join(folder, "ggml", "src", "ggml-cpu", "amx", "mmq.cpp")
    with open(tiles) as f:
        text = f.read()
    kept = '__asm__ volatile("" : : "r"(&tc) : "memory"); _tile_loadconfig(&tc);'
    if kept not in text:
        with open(tiles, "w") as f:
            f.write(re.sub(r"^    _tile_loadconfig\(&tc\);", "    " + kept, text, flags=re.M))


def build_llama(folder):
    source = os.path.join(folder, "llama.cpp")
    if not os.path.isdir(source):
        with tempfile.TemporaryDirectory(dir=folder) as tmp:
            pip = fetch_model.pip_command(tmp)
            subprocess.run([*pip, "download", "-q", "--no-deps", "-d", tmp, LLAMA_PACKAGE], check=True)
            (archive,) = [f for f in os.listdir(tmp) if f.endswith(".tar.gz")]
            with tarfile.open(os.path.join(tmp, archive)) as tar:
                tar.extractall(tmp)
            unpacked = os.path.join(tmp, archive[: -len(".tar.gz")], "vendor", "llama.cpp")
            prepare_llama(unpacked)
            os.rename(unpacked, source)
    build = os.path.join(source, "build")
    options = ["-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_OPENSSL=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF"]
    build_with_cmake(source, build, options, LLAMA_TOOLS, os.path.join(folder, "build-llama.log"))
    return os.path.join(build, "bin")


def build_ik(folder, checkout):
    build = os.path.join(folder, "ik-build")
    build_with_cmake(checkout, build, ["-DLLAMA_CURL=OFF", "-DLLAMA_BUILD_TESTS=OFF"], IK_TOOLS, os.path.join(folder, "build-ik.log"))
    return os.path.join(build, "bin")


def commit_of(source):
    found = subprocess.run(["git", "-C", source, "rev-parse", "--short", "HEAD"], text=True, capture_output=True)
    return found.stdout.strip() if found.returncode == 0 else "unknown"
