#include "base/text.h"

#include "base/array.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

// Makes room for `more` bytes and a NUL, or sets failed.
static bool make_room(mf_buf *buf, size_t more) {
    size_t len, bytes;
    if (buf->failed) return false;
    if (mf_add_size(buf->len, more, &len) && mf_add_size(len, 1, &bytes) && (!buf->limit || len <= buf->limit) &&
        mf_array_grow((void **)&buf->data, &buf->cap, bytes, 1))
        return true;
    buf->failed = true;
    return false;
}

void mf_buf_add(mf_buf *buf, const void *bytes, size_t len) {
    if (!make_room(buf, len)) return;
    if (len) memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
    buf->data[buf->len] = 0;
}

void mf_buf_char(mf_buf *buf, char c) { mf_buf_add(buf, &c, 1); }

void mf_buf_text(mf_buf *buf, const char *text) { mf_buf_add(buf, text, strlen(text)); }

void mf_buf_str(mf_buf *buf, mf_str text) { mf_buf_add(buf, text.ptr, text.len); }

void mf_buf_printf(mf_buf *buf, const char *format, ...) {
    char small[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n < 0) {
        buf->failed = true;
    } else if ((size_t)n < sizeof small) {
        mf_buf_add(buf, small, (size_t)n);
    } else if (make_room(buf, (size_t)n)) {
        va_start(args, format);
        vsnprintf(buf->data + buf->len, (size_t)n + 1, format, args);
        va_end(args);
        buf->len += (size_t)n;
    }
}

void mf_buf_shown(mf_buf *buf, mf_str text, bool quoted) {
    if (quoted) mf_buf_char(buf, '"');
    for (size_t i = 0; i < text.len;) {
        uint32_t cp;
        int n = mf_utf8_decode(text.ptr + i, text.len - i, &cp);
        size_t bytes = n > 0 ? (size_t)n : 1;
        if (quoted && n > 0 && (cp == '"' || cp == '\\')) mf_buf_char(buf, '\\');
        if (quoted && n > 0 && cp == '\n')
            mf_buf_text(buf, "\\n");
        else if (n > 0 && !mf_utf8_is_control(cp))
            mf_buf_add(buf, text.ptr + i, bytes);
        else
            for (size_t k = 0; k < bytes; k++) mf_buf_printf(buf, "\\x%02X", (unsigned char)text.ptr[i + k]);
        i += bytes;
    }
    if (quoted) mf_buf_char(buf, '"');
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool mf_parse_i64(mf_str text, int64_t *out) {
    size_t i = 0;
    bool negative = false;
    if (i < text.len && (text.ptr[i] == '-' || text.ptr[i] == '+')) negative = text.ptr[i++] == '-';
    if (i == text.len) return false;
    int64_t value = 0;
    for (; i < text.len; i++) {
        if (!is_digit(text.ptr[i])) return false;
        int digit = text.ptr[i] - '0';
        if (__builtin_mul_overflow(value, 10, &value)) return false;
        if (__builtin_add_overflow(value, negative ? -digit : digit, &value)) return false;
    }
    *out = value;
    return true;
}

// A double's value and every halfway point between two doubles have at most 767 significant digits; digits behind those
// only tell whether something is left.
#define MANTISSA_DIGITS 800

// A decimal number taken apart: sign, mantissa digits without leading zeros, and the power of ten of the last one.
typedef struct decimal {
    bool negative, any_digit, sticky;
    size_t n_digits;
    int64_t exponent;
    char digits[MANTISSA_DIGITS];
} decimal;

static void take_digit(decimal *d, char c, bool fraction) {
    d->any_digit = true;
    if (d->n_digits == 0 && c == '0') {
        d->exponent -= fraction;
    } else if (d->n_digits < MANTISSA_DIGITS) {
        d->digits[d->n_digits++] = c;
        d->exponent -= fraction;
    } else {
        d->sticky |= c != '0';
        d->exponent += !fraction;
    }
}

// The exponent behind 'e', kept within ±10^17: nothing in memory has enough digits to bring that back into range.
static bool take_exponent(mf_str text, size_t i, int64_t *out) {
    const int64_t largest = 100000000000000000;
    bool negative = false;
    if (i < text.len && (text.ptr[i] == '-' || text.ptr[i] == '+')) negative = text.ptr[i++] == '-';
    if (i == text.len) return false;
    int64_t value = 0;
    for (; i < text.len; i++) {
        if (!is_digit(text.ptr[i])) return false;
        if (value < largest) value = value * 10 + (text.ptr[i] - '0');
    }
    *out = negative ? -value : value;
    return true;
}

static bool take_decimal(mf_str text, decimal *d) {
    size_t i = 0;
    if (i < text.len && (text.ptr[i] == '-' || text.ptr[i] == '+')) d->negative = text.ptr[i++] == '-';
    for (; i < text.len && is_digit(text.ptr[i]); i++) take_digit(d, text.ptr[i], false);
    if (i < text.len && text.ptr[i] == '.')
        for (i++; i < text.len && is_digit(text.ptr[i]); i++) take_digit(d, text.ptr[i], true);
    if (!d->any_digit) return false;
    if (i == text.len) return true;
    int64_t exponent;
    if ((text.ptr[i] != 'e' && text.ptr[i] != 'E') || !take_exponent(text, i + 1, &exponent)) return false;
    d->exponent += exponent;
    return true;
}

bool mf_parse_f64(mf_str text, double *out) {
    decimal d;
    memset(&d, 0, offsetof(decimal, digits));
    if (!take_decimal(text, &d)) return false;
    // "digits e exponent" has no decimal point, so strtod reads it the same in every locale.
    char plain[MANTISSA_DIGITS + 32];
    size_t n = 0;
    if (d.negative) plain[n++] = '-';
    if (d.n_digits == 0) plain[n++] = '0';
    memcpy(plain + n, d.digits, d.n_digits);
    n += d.n_digits;
    if (d.sticky) {
        plain[n++] = '1';
        d.exponent--;
    }
    snprintf(plain + n, sizeof plain - n, "e%" PRId64, d.n_digits ? d.exponent : 0);
    double value = strtod(plain, NULL);
    if (!isfinite(value)) return false;
    *out = value;
    return true;
}

size_t mf_edit_distance(mf_str a, mf_str b) {
    enum {
        LONGEST = 64
    };
    if (a.len > LONGEST || b.len > LONGEST) return LONGEST;
    size_t rows[3][LONGEST + 1]; // rows[i % 3][j]: the distance of a[0..i) and b[0..j)
    for (size_t i = 0; i <= a.len; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        for (size_t j = 0; j <= b.len; j++) {
            if (i == 0 || j == 0) {
                row[j] = i + j;
                continue;
            }
            bool same = a.ptr[i - 1] == b.ptr[j - 1];
            size_t replace = above[j - 1] + !same, shorter = above[j] < row[j - 1] ? above[j] : row[j - 1];
            row[j] = replace < shorter + 1 ? replace : shorter + 1;
            bool swapped = i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1];
            if (swapped && two_above[j - 2] + 1 < row[j]) row[j] = two_above[j - 2] + 1;
        }
    }
    return rows[a.len % 3][b.len];
}
