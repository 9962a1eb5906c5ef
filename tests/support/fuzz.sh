#!/bin/sh
# fuzz.sh SECONDS [TARGET…]: runs the fuzz targets (all of tests/fuzz) for so long each, on a corpus that grows in build-fuzz/corpus, with
# the words of tests/fuzz/TARGET.dict where there is one. Stops at the first finding.
set -eu
cd "$(dirname "$0")/../.."
seconds=$1
shift
[ $# -gt 0 ] || set -- $(basename -s .c tests/fuzz/fuzz_*.c)
cmake -S . -B build-fuzz -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMINFER_FUZZ=ON \
    -DMINFER_SANITIZE=address,undefined -DMINFER_WERROR=ON >/dev/null
cmake --build build-fuzz >/dev/null
for name; do
    mkdir -p "build-fuzz/corpus/$name"
    printf 'fuzz: %s\n' "$name"
    dictionary=
    [ ! -f "tests/fuzz/$name.dict" ] || dictionary=-dict=tests/fuzz/$name.dict
    "build-fuzz/tests/$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 -verbosity=0 \
        -len_control=10 $dictionary "build-fuzz/corpus/$name"
done
