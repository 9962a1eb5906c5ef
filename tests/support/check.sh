#!/bin/sh
# What `./dev check` does once the packages are there: both compilers with -Werror, clang-tidy, the format check, fuzz runs, threads
# under TSan, the core on emulated processors, and everything under ASan and UBSan. The last lines are ctest's.
set -eu
cd "$(dirname "$0")/../.."
jobs=$(nproc)

step() { printf '\n== %s\n' "$*"; }

build() { # build DIR TARGETS CMAKE-ARGS…: quiet unless it fails
    dir=$1 targets=$2
    shift 2
    cmake -S . -B "$dir" -G Ninja -DMINFER_WERROR=ON "$@" >/dev/null
    # shellcheck disable=SC2086
    cmake --build "$dir" -j "$jobs" --target $targets >"$dir/build.log" || { tail -n 60 "$dir/build.log"; exit 1; }
}

step "gcc, -Werror"
build build all

step "clang with fuzzers, ASan and UBSan, -Werror"
build build-fuzz all -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMINFER_FUZZ=ON -DMINFER_SANITIZE=address,undefined

step "format"
if clang-format --version | grep -q 'version 14\.'; then
    git ls-files '*.c' '*.h' | xargs clang-format --dry-run -Werror
else
    echo "skipped: the style is that of clang-format 14, here is $(clang-format --version)"
fi

step "clang-tidy"
git ls-files 'src/*.c' | grep -v /arm/ | xargs -P "$jobs" -n 1 clang-tidy -p build-fuzz --quiet >build-fuzz/tidy.log 2>&1 || {
    cat build-fuzz/tidy.log
    exit 1
}

step "fuzz, ${FUZZ_SECONDS:-15} s a target"
sh tests/support/fuzz.sh "${FUZZ_SECONDS:-15}"

step "threads under TSan"
build build-tsan 'test_base_pool test_base_log test_engine_threads test_api_generate test_api_host' -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMINFER_SANITIZE=thread
ctest --test-dir build-tsan --output-on-failure -R '^(base_pool|base_log|engine_threads|api_generate|api_host)$'

# Exit status 77: skipped, the reason is printed.
emulated() {
    status=0
    "$@" || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 77 ]
}

step "64-bit Arm, emulated"
emulated tests/emulate/run_aarch64.sh

step "AVX-512, emulated"
emulated tests/emulate/check_avx512.sh

step "everything under ASan and UBSan"
ctest --test-dir build-fuzz --output-on-failure -j "$jobs"
