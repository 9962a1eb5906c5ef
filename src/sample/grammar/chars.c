// A number written in digits, most significant first, is what both UTF-8 and \u escapes are: a range of code points comes to a small
// tree of digits, whose equal branches are made once.
#include "sample/grammar/chars.h"

#include <stdlib.h>
#include <string.h>

typedef struct digit {
    uint32_t base;
    const char *before; // text in front of it
    int first;          // byte of digit 0; the others follow; -1: hexadecimal digits in either case from `from` on
    uint32_t from;
} digit;

static void add_digit(mf_byteset *set, const digit *d, uint32_t value) {
    if (d->first >= 0) {
        mf_byteset_add(set, (uint8_t)((uint32_t)d->first + value));
        return;
    }
    uint32_t v = d->from + value;
    mf_byteset_add(set, (uint8_t)(v < 10 ? '0' + v : 'a' + v - 10));
    if (v >= 10) mf_byteset_add(set, (uint8_t)('A' + v - 10));
}

typedef struct branch { // digits behind which the same may follow
    mf_byteset bytes;
    const mf_range *rest;
    size_t n;
} branch;

// The part of the ranges that begins with digit `value`, less that digit: how many ranges. out may be NULL.
static size_t behind_digit(const mf_range *ranges, size_t n, uint32_t value, uint32_t unit, mf_range *out) {
    uint32_t low = value * unit, high = low + unit - 1;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].last < low) continue;
        if (ranges[i].first > high) break;
        if (out) out[count].first = ranges[i].first < low ? 0 : ranges[i].first - low;
        if (out) out[count].last = ranges[i].last > high ? unit - 1 : ranges[i].last - low;
        count++;
    }
    return count;
}

static uint32_t emit_digits(mf_compiler *c, const digit *digits, int n_digits, const mf_range *ranges, size_t n,
                            uint32_t next) {
    if (n_digits == 0 || n == 0 || c->failed) return n == 0 ? MF_NO_NODE : next;
    uint32_t unit = 1, at = MF_NO_NODE;
    for (int i = 1; i < n_digits; i++) unit *= digits[i].base;
    branch branches[64];
    size_t n_branches = 0;
    for (uint32_t value = 0; value < digits->base; value++) {
        size_t n_rest = behind_digit(ranges, n, value, unit, NULL), i = 0;
        if (n_rest == 0) continue;
        mf_range *rest = mf_arena_alloc(&c->arena, n_rest, sizeof *rest);
        if (!rest) return mf_compile_no_memory(c);
        behind_digit(ranges, n, value, unit, rest);
        while (i < n_branches && (branches[i].n != n_rest || memcmp(branches[i].rest, rest, n_rest * sizeof *rest) != 0))
            i++;
        if (i == n_branches) branches[n_branches++] = (branch){{{0}}, rest, n_rest};
        add_digit(&branches[i].bytes, digits, value);
    }
    for (size_t i = 0; i < n_branches; i++) {
        uint32_t rest = emit_digits(c, digits + 1, n_digits - 1, branches[i].rest, branches[i].n, next);
        at = mf_compile_either(c, mf_compile_bytes(c, &branches[i].bytes, rest), at);
    }
    return digits->before && at != MF_NO_NODE ? mf_compile_text(c, digits->before, strlen(digits->before), at) : at;
}

// The part of a set within [first, last], less `base`.
static mf_range *part_of(mf_compiler *c, mf_charset set, uint32_t first, uint32_t last, uint32_t base, size_t *n) {
    mf_range *out = mf_arena_alloc(&c->arena, set.n + 1, sizeof *out);
    *n = 0;
    if (!out) return mf_compile_no_memory(c), NULL;
    for (size_t i = 0; i < set.n; i++) {
        uint32_t low = set.ranges[i].first > first ? set.ranges[i].first : first;
        uint32_t high = set.ranges[i].last < last ? set.ranges[i].last : last;
        if (low <= high) out[(*n)++] = (mf_range){low - base, high - base};
    }
    return out;
}

static uint32_t emit_part(mf_compiler *c, mf_charset set, uint32_t first, uint32_t last, uint32_t base, const digit *digits,
                          int n_digits, uint32_t next, uint32_t at) {
    size_t n;
    const mf_range *ranges = part_of(c, set, first, last, base, &n);
    return ranges ? mf_compile_either(c, emit_digits(c, digits, n_digits, ranges, n, next), at) : MF_NO_NODE;
}

uint32_t mf_compile_chars(mf_compiler *c, mf_charset set, uint32_t next) {
    static const digit one[] = {{128, NULL, 0, 0}}, two[] = {{32, NULL, 0xc0, 0}, {64, NULL, 0x80, 0}},
                       three[] = {{16, NULL, 0xe0, 0}, {64, NULL, 0x80, 0}, {64, NULL, 0x80, 0}},
                       four[] = {{8, NULL, 0xf0, 0}, {64, NULL, 0x80, 0}, {64, NULL, 0x80, 0}, {64, NULL, 0x80, 0}};
    size_t n;
    const mf_range *ascii = part_of(c, set, 0, 0x7f, 0, &n);
    mf_byteset bytes = {{0}};
    for (size_t i = 0; ascii && i < n; i++)
        for (uint32_t b = ascii[i].first; b <= ascii[i].last; b++) add_digit(&bytes, one, b);
    uint32_t at = n ? mf_compile_bytes(c, &bytes, next) : MF_NO_NODE;
    at = emit_part(c, set, 0x80, 0x7ff, 0, two, 2, next, at);
    at = emit_part(c, set, 0x800, 0xffff, 0, three, 3, next, at);
    return emit_part(c, set, 0x10000, MF_CHAR_LAST, 0, four, 4, next, at);
}

uint32_t mf_compile_string_chars(mf_compiler *c, mf_charset set, uint32_t next) {
    static const mf_range special[] = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
    static const char letters[] = "bfnrt\"\\/", meant[] = "\b\f\n\r\t\"\\/";
    static const digit unit[] = {{16, "u", -1, 0}, {16, NULL, -1, 0}, {16, NULL, -1, 0}, {16, NULL, -1, 0}};
    static const digit pair[] = {{1, "u", -1, 13},   {4, NULL, -1, 8},  {16, NULL, -1, 0}, {16, NULL, -1, 0},
                                 {1, "\\u", -1, 13}, {4, NULL, -1, 12}, {16, NULL, -1, 0}, {16, NULL, -1, 0}};
    mf_charset plain;
    if (!mf_charset_minus(&c->arena, set, (mf_charset){special, 3}, &plain)) return mf_compile_no_memory(c);
    uint32_t raw = mf_compile_chars(c, plain, next), escaped = MF_NO_NODE;
    mf_byteset simple = {{0}};
    bool any = false;
    for (size_t i = 0; letters[i]; i++)
        if (mf_charset_has(set, (uint8_t)meant[i])) mf_byteset_add(&simple, (uint8_t)letters[i]), any = true;
    if (any) escaped = mf_compile_bytes(c, &simple, next);
    escaped = emit_part(c, set, 0, 0xffff, 0, unit, 4, next, escaped);
    escaped = emit_part(c, set, 0x10000, MF_CHAR_LAST, 0x10000, pair, 8, next, escaped);
    if (escaped != MF_NO_NODE) escaped = mf_compile_text(c, "\\", 1, escaped);
    return mf_compile_either(c, raw, escaped);
}
