#!/bin/bash
# Builds the core statically into build-static and checks the kernel row avx512 on an emulated processor (run_avx512.sh): its kernels
# against the reference, and the golden hashes of the tiny models.
#
#     tests/emulate/check_avx512.sh [BUILD_DIRECTORY]
#
# Exit status: 0 all the same, 1 something differs, 77 (with the reason) where the processor has AVX-512 VNNI itself, so that the ordinary
# tests check the row, or something is missing. BOCHS: as in run_avx512.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build-static}
bochs=${BOCHS:-bochs}

skip() {
    echo "check_avx512: skipped: $*" >&2
    exit 77
}

[ "$(uname -m)" = x86_64 ] || skip "not an x86-64 machine"
! grep -qw avx512_vnni /proc/cpuinfo || skip "this processor has AVX-512 VNNI: the ordinary tests check the row"
command -v "$bochs" >/dev/null || skip "$bochs is missing (Debian packages bochs and bochs-term)"

# Bochs 2.7 rounds the ties of VCVTPS2PH away from zero (on its avx2 row too), so what stores halves is left to later ones, which know
# the processors of run_avx512.sh.
kernels=(--row avx512 --quick)
golden=(--row avx512 --threads 1)
models=$("$bochs" --help cpu 2>&1 || true)
case $models in
    *sapphire_rapids*) ;;
    *)
        echo "check_avx512: no stores of halves: this Bochs rounds them wrongly"
        kernels+=(--skip kv_store)
        golden+=(--cells F32)
        ;;
esac

cmake -S . -B "$build" -G Ninja -DCMAKE_EXE_LINKER_FLAGS=-static -DMINFER_CORE_ONLY=ON -DMINFER_WERROR=ON >/dev/null
cmake --build "$build" -j "$(nproc)" --target checkkernels golden >"$build/build.log" || {
    cat "$build/build.log"
    exit 1
}

files=(-f tests/fixtures/golden.txt -f tests/fixtures/tiny/long.ids.txt)
for model in tests/fixtures/tiny/*.gguf; do files+=(-f "$model"); done

# Two machines side by side.
run=tests/emulate/run_avx512.sh
status=0
"$run" "${files[@]}" "$build/tests/golden" "${golden[@]}" tests/fixtures >"$build/golden.log" 2>&1 &
background=$!
"$run" "$build/tests/checkkernels" "${kernels[@]}" || status=$?
wait "$background" || status=$?
cat "$build/golden.log"
exit "$status"
