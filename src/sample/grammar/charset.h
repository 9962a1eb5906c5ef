// Sets of characters: ranges of code points, in order, disjoint and not touching. Surrogates are in none.
#ifndef MF_SAMPLE_GRAMMAR_CHARSET_H
#define MF_SAMPLE_GRAMMAR_CHARSET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/array.h"

#define MF_CHAR_LAST 0x10ffffU

typedef struct mf_range {
    uint32_t first, last;
} mf_range;

typedef struct mf_charset {
    const mf_range *ranges;
    size_t n;
} mf_charset;

typedef mf_array(mf_range) mf_range_array;

extern const mf_charset mf_charset_all;

// The set of some ranges in any order. False: memory. Like the others, its result lives in the arena.
bool mf_charset_make(mf_arena *arena, const mf_range *ranges, size_t n, mf_charset *out);
bool mf_charset_complement(mf_arena *arena, mf_charset set, mf_charset *out);
bool mf_charset_minus(mf_arena *arena, mf_charset a, mf_charset b, mf_charset *out);
bool mf_charset_has(mf_charset set, uint32_t cp);

#endif
