#!/bin/sh
# fuzz.sh SECONDS: runs every fuzz target for so long on a corpus that grows in build-fuzz/corpus. Stops at the first finding.
set -eu
cd "$(dirname "$0")/../.."
seconds=$1
cmake -S . -B build-fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMINFER_FUZZ=ON \
    -DMINFER_SANITIZE=address,undefined -DMINFER_WERROR=ON >/dev/null
cmake --build build-fuzz >/dev/null
for source in tests/fuzz/fuzz_*.c; do
    name=$(basename "$source" .c)
    mkdir -p "build-fuzz/corpus/$name"
    printf 'fuzz: %s\n' "$name"
    "build-fuzz/tests/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
        "build-fuzz/corpus/$name"
done
