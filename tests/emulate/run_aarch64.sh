#!/bin/sh
# Builds the core for 64-bit Arm into build-aarch64 and runs it under qemu-aarch64: every kernel of the rows neon, dotprod and i8mm
# against the reference, and the golden hashes of the tiny models on every row.
#
#     tests/emulate/run_aarch64.sh [BUILD_DIRECTORY]
#
# Exit status: 0 all the same, 1 something differs, 77 (with the reason) where a tool is missing.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build-aarch64}

skip() {
    echo "run_aarch64: skipped: $*" >&2
    exit 77
}

command -v aarch64-linux-gnu-gcc >/dev/null || skip "aarch64-linux-gnu-gcc is missing (Debian package gcc-aarch64-linux-gnu)"
echo 'int main(void) { return 0; }' | aarch64-linux-gnu-gcc -static -x c -o /dev/null - 2>/dev/null ||
    skip "the cross compiler links no static program (Debian package libc6-dev-arm64-cross)"
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) || skip "qemu-aarch64 is missing (Debian package qemu-user)"

cmake -S . -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake -DMINFER_CORE_ONLY=ON -DMINFER_WERROR=ON >/dev/null
cmake --build "$build" -j "$(nproc)" >"$build/build.log" || {
    cat "$build/build.log"
    exit 1
}

# The two programs side by side: each is one thread's work.
status=0
"$qemu" -cpu max "$build/tests/golden" --threads 1 tests/fixtures >"$build/golden.log" 2>&1 &
golden=$!
"$qemu" -cpu max "$build/tests/checkkernels" || status=1
wait "$golden" || status=1
cat "$build/golden.log"
exit "$status"
