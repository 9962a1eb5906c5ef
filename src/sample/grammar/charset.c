#include "sample/grammar/charset.h"

#include <stdlib.h>

#define SURROGATE_FIRST 0xd800U
#define SURROGATE_LAST  0xdfffU

static const mf_range all[] = {{0, SURROGATE_FIRST - 1}, {SURROGATE_LAST + 1, MF_CHAR_LAST}};
const mf_charset mf_charset_all = {all, 2};

static int by_first(const void *a, const void *b) {
    uint32_t x = ((const mf_range *)a)->first, y = ((const mf_range *)b)->first;
    return x < y ? -1 : x > y;
}

// Copies what two sorted lists of ranges share.
static size_t intersect(const mf_range *a, size_t n_a, const mf_range *b, size_t n_b, mf_range *out) {
    size_t n = 0;
    for (size_t i = 0, j = 0; i < n_a && j < n_b;) {
        uint32_t first = a[i].first > b[j].first ? a[i].first : b[j].first;
        uint32_t last = a[i].last < b[j].last ? a[i].last : b[j].last;
        if (first <= last) out[n++] = (mf_range){first, last};
        if (a[i].last < b[j].last)
            i++;
        else
            j++;
    }
    return n;
}

bool mf_charset_make(mf_arena *arena, const mf_range *ranges, size_t n, mf_charset *out) {
    mf_range *sorted = mf_arena_alloc(arena, n + 1, sizeof *sorted), *kept = mf_arena_alloc(arena, n + 3, sizeof *kept);
    if (!sorted || !kept) return false;
    for (size_t i = 0; i < n; i++) sorted[i] = ranges[i];
    qsort(sorted, n, sizeof *sorted, by_first);
    size_t merged = 0;
    for (size_t i = 0; i < n; i++) {
        if (merged && sorted[i].first <= sorted[merged - 1].last + 1) {
            if (sorted[i].last > sorted[merged - 1].last) sorted[merged - 1].last = sorted[i].last;
        } else {
            sorted[merged++] = sorted[i];
        }
    }
    *out = (mf_charset){kept, intersect(sorted, merged, all, 2, kept)};
    return true;
}

bool mf_charset_complement(mf_arena *arena, mf_charset set, mf_charset *out) {
    mf_range *gaps = mf_arena_alloc(arena, set.n + 1, sizeof *gaps);
    if (!gaps) return false;
    size_t n = 0;
    uint32_t at = 0;
    for (size_t i = 0; i < set.n; i++) {
        if (set.ranges[i].first > at) gaps[n++] = (mf_range){at, set.ranges[i].first - 1};
        at = set.ranges[i].last + 1;
    }
    if (at <= MF_CHAR_LAST) gaps[n++] = (mf_range){at, MF_CHAR_LAST};
    return mf_charset_make(arena, gaps, n, out);
}

bool mf_charset_minus(mf_arena *arena, mf_charset a, mf_charset b, mf_charset *out) {
    mf_charset others;
    mf_range *kept = mf_arena_alloc(arena, a.n + b.n + 3, sizeof *kept);
    if (!kept || !mf_charset_complement(arena, b, &others)) return false;
    *out = (mf_charset){kept, intersect(a.ranges, a.n, others.ranges, others.n, kept)};
    return true;
}

bool mf_charset_has(mf_charset set, uint32_t cp) {
    size_t low = 0, high = set.n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (set.ranges[middle].last < cp)
            low = middle + 1;
        else
            high = middle;
    }
    return low < set.n && set.ranges[low].first <= cp;
}
