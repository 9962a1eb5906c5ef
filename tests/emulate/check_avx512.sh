#!/bin/bash
# Builds the core statically into build-static and checks the kernel rows avxvnni, avx512 and amx, where this machine's processor lacks
# them, on an emulated one (run_avx512.sh): their kernels against the reference, and the golden hashes of the tiny models.
#
#     tests/emulate/check_avx512.sh [BUILD_DIRECTORY]
#
# What the emulator can do decides: Debian's Bochs 2.7 has AVX-512 VNNI only, later ones have AVX-VNNI, and AMX is checked where
# EMULATE_AMX=1 says that the emulator is one that Linux uses tiles on. Each row left out is named with the reason.
#
# Exit status: 0 all the same, 1 something differs, 77 (with the reason) where every row is this processor's own, so that the ordinary
# tests check it, or something is missing. BOCHS, EMULATE_AMX: as in run_avx512.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build-static}
bochs=${BOCHS:-bochs}

skip() {
    echo "check_avx512: skipped: $*" >&2
    exit 77
}

rows=()
want() { # ROW CPUINFO_FLAG POSSIBLE REASON: adds a row that this processor lacks and the emulator has
    if grep -qw "$2" /proc/cpuinfo; then
        echo "check_avx512: $1: skipped: this processor has it, the ordinary tests check it"
    elif "$3"; then
        rows+=("$1")
    else
        echo "check_avx512: $1: skipped: $4"
    fi
}

[ "$(uname -m)" = x86_64 ] || skip "not an x86-64 machine"
command -v "$bochs" >/dev/null || skip "$bochs is missing (Debian packages bochs and bochs-term)"
models=$("$bochs" --help cpu 2>&1 || true)
recent=false # knows the processors of run_avx512.sh
[[ $models != *sapphire_rapids* ]] || recent=true
tiles=false
[ "${EMULATE_AMX:-0}" != 1 ] || tiles=$recent

want avxvnni avx_vnni "$recent" "this Bochs has no AVX-VNNI"
want avx512 avx512_vnni true ""
want amx amx_int8 "$tiles" "Linux uses tiles on an emulator with IA32_XFD only (EMULATE_AMX=1)"
[ ${#rows[@]} -gt 0 ] || skip "no row to emulate"

# Bochs 2.7 rounds the ties of VCVTPS2PH away from zero (on its avx2 row too), so what stores halves is left to later ones.
kernels=(--quick)
golden=(--threads 1)
if ! $recent; then
    echo "check_avx512: no stores of halves: this Bochs rounds them wrongly"
    kernels+=(--skip kv_store)
    golden+=(--cells F32)
fi

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
for row in "${rows[@]}"; do
    what=()
    [ "$row" = avx512 ] || what=(matmul) # the other functions are those of the row below
    "$run" "${files[@]}" "$build/tests/golden" --row "$row" "${golden[@]}" tests/fixtures >"$build/golden.log" 2>&1 &
    background=$!
    "$run" "$build/tests/checkkernels" --row "$row" "${kernels[@]}" "${what[@]}" || status=$?
    wait "$background" || status=$?
    cat "$build/golden.log"
done
exit "$status"
