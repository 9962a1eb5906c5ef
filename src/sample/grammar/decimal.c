#include "sample/grammar/decimal.h"

#include <string.h>

#define MAX_EXPONENT 400

bool mf_decimal_read(mf_arena *arena, mf_str lexeme, mf_decimal *out) {
    char *digits = mf_arena_alloc(arena, lexeme.len + 1, 1),
         *whole = mf_arena_alloc(arena, lexeme.len + MAX_EXPONENT + 1, 1),
         *fraction = mf_arena_alloc(arena, lexeme.len + MAX_EXPONENT + 1, 1);
    if (!digits || !whole || !fraction) return false;
    int64_t point = 0, exponent = 0, n = 0;
    size_t n_whole = 0, n_fraction = 0, i;
    bool negative = lexeme.len > 0 && lexeme.ptr[0] == '-', behind = false;
    for (i = negative; i < lexeme.len && (lexeme.ptr[i] | 0x20) != 'e'; i++) {
        if (lexeme.ptr[i] == '.') {
            behind = true;
        } else {
            digits[n++] = lexeme.ptr[i];
            point += !behind;
        }
    }
    if (i < lexeme.len) {
        mf_str text = {lexeme.ptr + i + 1, lexeme.len - i - 1};
        if (text.len && text.ptr[0] == '+') text.ptr++, text.len--;
        if (!mf_parse_i64(text, &exponent) || exponent > MAX_EXPONENT || exponent < -MAX_EXPONENT) return false;
    }
    point += exponent;
    for (int64_t k = 0; k < point; k++) {
        char c = k < n ? digits[k] : '0';
        if (n_whole || c != '0') whole[n_whole++] = c;
    }
    for (int64_t k = point; k < n; k++) fraction[n_fraction++] = k < 0 ? '0' : digits[k];
    while (n_fraction && fraction[n_fraction - 1] == '0') n_fraction--;
    if (!n_whole) whole[n_whole++] = '0';
    bool zero = n_fraction == 0 && n_whole == 1 && whole[0] == '0';
    *out = (mf_decimal){negative && !zero, {whole, n_whole}, {fraction, n_fraction}};
    return true;
}

static int compare_text(mf_str a, mf_str b) {
    size_t n = a.len < b.len ? a.len : b.len;
    int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

static int compare_size(const mf_decimal *a, const mf_decimal *b) {
    if (a->whole.len != b->whole.len) return a->whole.len < b->whole.len ? -1 : 1;
    int order = compare_text(a->whole, b->whole);
    return order ? order : compare_text(a->fraction, b->fraction);
}

int mf_decimal_compare(const mf_decimal *a, const mf_decimal *b) {
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    return a->negative ? -compare_size(a, b) : compare_size(a, b);
}

bool mf_decimal_is_whole(const mf_decimal *a) { return a->fraction.len == 0; }

// ---- Sizes, without a sign

static void text(mf_buf *out, mf_str part) { mf_buf_str(out, part); }

static void any_fraction(mf_buf *out, bool whole_only) { mf_buf_text(out, whole_only ? "" : "(\\.[0-9]+)?"); }

// Digits with which a text gets larger (smaller) than `digits` at some place, then what may follow; a choice that begins with '|'.
static void other_digits(mf_buf *out, mf_str digits, bool larger, bool leading, const char *fixed_rest, bool exact_length) {
    for (size_t i = 0; i < digits.len; i++) {
        char low = larger ? (char)(digits.ptr[i] + 1) : (i == 0 && leading ? '1' : '0'),
             high = larger ? '9' : (char)(digits.ptr[i] - 1);
        if (low > high) continue;
        mf_buf_char(out, '|');
        text(out, (mf_str){digits.ptr, i});
        mf_buf_printf(out, "[%c-%c]", low, high);
        if (exact_length && digits.len - i - 1 > 0) mf_buf_printf(out, "[0-9]{%zu}", digits.len - i - 1);
        mf_buf_text(out, fixed_rest);
    }
}

// A fraction behind an equal whole part that makes the number larger than the bound, or equal to it.
static void larger_fraction(mf_buf *out, mf_str f, bool exclusive) {
    mf_buf_text(out, "(\\.(");
    mf_buf_text(out, "[^\\s\\S]");
    other_digits(out, f, true, false, "[0-9]*", false);
    mf_buf_char(out, '|');
    text(out, f);
    mf_buf_text(out, exclusive ? "[0-9]*[1-9][0-9]*" : f.len ? "[0-9]*" : "[0-9]+");
    mf_buf_text(out, "))");
    if (!exclusive && f.len == 0) mf_buf_char(out, '?');
}

static void smaller_fraction(mf_buf *out, mf_str f, bool exclusive) {
    bool may_end = f.len > 0 || !exclusive; // without any fraction
    mf_buf_text(out, "(\\.([^\\s\\S]");
    other_digits(out, f, false, false, "[0-9]*", false);
    for (size_t i = 1; i < f.len; i++) {
        mf_buf_char(out, '|');
        text(out, (mf_str){f.ptr, i});
    }
    if (!exclusive) {
        mf_buf_char(out, '|');
        text(out, f);
        mf_buf_text(out, f.len ? "0*" : "0+");
    }
    mf_buf_text(out, "))");
    if (may_end) mf_buf_char(out, '?');
}

static void at_least_size(const mf_decimal *b, bool exclusive, bool whole_only, mf_buf *out) {
    bool zero = b->whole.len == 1 && b->whole.ptr[0] == '0';
    // More digits.
    mf_buf_printf(out, "([1-9][0-9]{%zu,}", zero ? (size_t)0 : b->whole.len);
    any_fraction(out, whole_only);
    // As many, and larger.
    if (!zero) other_digits(out, b->whole, true, true, whole_only ? "" : "(\\.[0-9]+)?", true);
    // The same whole part.
    if (!whole_only || (!exclusive && b->fraction.len == 0)) {
        mf_buf_char(out, '|');
        text(out, b->whole);
        if (!whole_only) larger_fraction(out, b->fraction, exclusive);
    }
    mf_buf_char(out, ')');
}

static void at_most_size(const mf_decimal *b, bool exclusive, bool whole_only, mf_buf *out) {
    bool zero = b->whole.len == 1 && b->whole.ptr[0] == '0';
    mf_buf_text(out, "([^\\s\\S]");
    if (!zero) { // fewer digits, or as many and smaller
        mf_buf_text(out, "|0");
        any_fraction(out, whole_only);
        if (b->whole.len > 1) {
            mf_buf_printf(out, "|[1-9][0-9]{0,%zu}", b->whole.len - 2);
            any_fraction(out, whole_only);
        }
        other_digits(out, b->whole, false, true, whole_only ? "" : "(\\.[0-9]+)?", true);
    }
    if (!whole_only || !exclusive || b->fraction.len > 0) {
        mf_buf_char(out, '|');
        text(out, b->whole);
        if (!whole_only) smaller_fraction(out, b->fraction, exclusive);
    }
    mf_buf_char(out, ')');
}

void mf_decimal_at_least(const mf_decimal *b, bool exclusive, bool whole_only, mf_buf *regex) {
    const mf_decimal size = {false, b->whole, b->fraction};
    bool zero = b->whole.len == 1 && b->whole.ptr[0] == '0' && b->fraction.len == 0;
    mf_buf_text(regex, "(");
    if (b->negative || (zero && !exclusive)) { // -x with x at most the size; -0 is zero
        mf_buf_text(regex, "-");
        at_most_size(&size, exclusive, whole_only, regex);
        mf_buf_text(regex, "|");
    }
    if (b->negative) {
        mf_buf_text(regex, "(0|[1-9][0-9]*)");
        any_fraction(regex, whole_only);
    } else {
        at_least_size(&size, exclusive, whole_only, regex);
    }
    mf_buf_text(regex, ")");
}

void mf_decimal_at_most(const mf_decimal *b, bool exclusive, bool whole_only, mf_buf *regex) {
    const mf_decimal size = {false, b->whole, b->fraction};
    bool zero = b->whole.len == 1 && b->whole.ptr[0] == '0' && b->fraction.len == 0;
    mf_buf_text(regex, "(-");
    if (b->negative || (zero && exclusive)) {
        at_least_size(&size, exclusive, whole_only, regex);
    } else {
        mf_buf_text(regex, "(0|[1-9][0-9]*)");
        any_fraction(regex, whole_only);
        mf_buf_text(regex, "|");
        at_most_size(&size, exclusive, whole_only, regex);
    }
    mf_buf_text(regex, ")");
}
