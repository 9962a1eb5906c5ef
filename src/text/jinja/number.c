#include "text/jinja/number.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/json.h"
#include "base/utf8.h"
#include "text/jinja/bigint.h"
#include "text/jinja/run.h"
#include "text/jinja/unicode.h"

static int64_t small(mf_jval v) { return v.type == MF_J_BOOL ? v.boolean : v.integer; }

// ---- Arithmetic

static bool zero(mf_jrun *run, const char *what) { return mf_jraise(run, "%s by zero", what); }

static bool small_arith(mf_jrun *run, mf_jarith_op op, int64_t a, int64_t b, mf_jval *out, bool *done) {
    int64_t value;
    *done = true;
    switch (op) {
    case MF_J_ADD: *done = !__builtin_add_overflow(a, b, &value); break;
    case MF_J_SUB: *done = !__builtin_sub_overflow(a, b, &value); break;
    case MF_J_MUL: *done = !__builtin_mul_overflow(a, b, &value); break;
    case MF_J_FLOORDIV:
    case MF_J_MOD:
        if (b == 0) return zero(run, op == MF_J_MOD ? "integer modulo" : "integer division or modulo");
        *done = b != -1;
        if (!*done) return true;
        value = op == MF_J_MOD ? a % b : a / b;
        if (a % b != 0 && (a < 0) != (b < 0)) value += op == MF_J_MOD ? b : -1;
        break;
    default: *done = false; return true;
    }
    if (*done) *out = mf_jint(value);
    return true;
}

static double floor_mod(double a, double b, double *quotient) {
    double rest = fmod(a, b), div = (a - rest) / b;
    if (rest != 0) {
        if ((b < 0) != (rest < 0)) {
            rest += b;
            div -= 1;
        }
    } else {
        rest = copysign(0, b);
    }
    double down = div != 0 ? floor(div) : copysign(0, a / b);
    if (div != 0 && div - down > 0.5) down += 1;
    *quotient = down;
    return rest;
}

static bool real_power(mf_jrun *run, double a, double b, double *out) {
    if (a == 0 && b < 0) return mf_jraise(run, "0.0 cannot be raised to a negative power");
    if (a < 0 && isfinite(a) && isfinite(b) && floor(b) != b)
        return mf_jfail(run, MF_ERR_UNSUPPORTED, "complex numbers are not supported");
    *out = pow(a, b);
    if (isinf(*out) && isfinite(a) && isfinite(b)) return mf_jraise(run, "(34, 'Numerical result out of range')");
    return true;
}

static bool real_arith(mf_jrun *run, mf_jarith_op op, double a, double b, mf_jval *out) {
    double value = 0, quotient;
    switch (op) {
    case MF_J_ADD: value = a + b; break;
    case MF_J_SUB: value = a - b; break;
    case MF_J_MUL: value = a * b; break;
    case MF_J_DIV:
        if (b == 0) return zero(run, "float division");
        value = a / b;
        break;
    case MF_J_FLOORDIV:
        if (b == 0) return zero(run, "float floor division");
        floor_mod(a, b, &value);
        break;
    case MF_J_MOD:
        if (b == 0) return zero(run, "float modulo");
        value = floor_mod(a, b, &quotient);
        break;
    case MF_J_POW:
        if (!real_power(run, a, b, &value)) return false;
        break;
    }
    *out = mf_jreal(value);
    return true;
}

static bool is_zero(mf_jval v) { return v.type != MF_J_BIG && small(v) == 0; }

static bool int_arith(mf_jrun *run, mf_jarith_op op, mf_jval a, mf_jval b, mf_jval *out) {
    if (op == MF_J_DIV) {
        double value;
        if (is_zero(b)) return zero(run, "division");
        if (!mf_jbig_divide(run, a, b, &value)) return false;
        *out = mf_jreal(value);
        return true;
    }
    bool negative = b.type == MF_J_BIG ? b.big->negative : small(b) < 0;
    if (op == MF_J_POW && negative) {
        double x, y;
        return mf_jto_real(run, a, &x) && mf_jto_real(run, b, &y) && real_arith(run, op, x, y, out);
    }
    if (a.type != MF_J_BIG && b.type != MF_J_BIG) {
        bool done;
        if (!small_arith(run, op, small(a), small(b), out, &done)) return false;
        if (done) return true;
    }
    if ((op == MF_J_MOD || op == MF_J_FLOORDIV) && is_zero(b)) return zero(run, "integer division or modulo");
    return mf_jbig_arith(run, op, a, b, out);
}

bool mf_jarith(mf_jrun *run, mf_jarith_op op, mf_jval a, mf_jval b, mf_jval *out) {
    if (a.type != MF_J_FLOAT && b.type != MF_J_FLOAT) {
        if (op == MF_J_DIV && a.type != MF_J_BIG && b.type != MF_J_BIG && small(b) != 0 &&
            llabs(small(a) >> 1) < 1LL << 52 && llabs(small(b) >> 1) < 1LL << 52) {
            *out = mf_jreal((double)small(a) / (double)small(b)); // both are exact
            return true;
        }
        return int_arith(run, op, a, b, out);
    }
    double x, y;
    return mf_jto_real(run, a, &x) && mf_jto_real(run, b, &y) && real_arith(run, op, x, y, out);
}

bool mf_jnegate(mf_jrun *run, mf_jval a, mf_jval *out) {
    if (a.type == MF_J_FLOAT) {
        *out = mf_jreal(-a.real);
        return true;
    }
    return mf_jarith(run, MF_J_SUB, mf_jint(0), a, out);
}

// ---- Conversions

bool mf_jto_real(mf_jrun *run, mf_jval v, double *out) {
    if (v.type == MF_J_FLOAT)
        *out = v.real;
    else if (v.type != MF_J_BIG)
        *out = (double)small(v);
    else {
        mf_str text;
        if (!mf_jint_text(run, v, &text)) return false;
        if (!mf_parse_f64(text, out)) return mf_jraise(run, "int too large to convert to float");
    }
    return true;
}

bool mf_jfrom_real(mf_jrun *run, double value, mf_jval *out) {
    if (isnan(value)) return mf_jraise(run, "cannot convert float NaN to integer");
    if (isinf(value)) return mf_jraise(run, "cannot convert float infinity to integer");
    if (fabs(value) < 9e18) {
        *out = mf_jint((int64_t)value);
        return true;
    }
    if (!mf_jpay(run, MF_JCOST_NUMBER)) return false;
    char text[340];
    int n = snprintf(text, sizeof text, "%.0f", fabs(value)); // whole, so exact
    return mf_jint_from_digits(run, value < 0, (mf_str){text, (size_t)n}, out);
}

// a is an integer, b a float that is not NaN.
static int compare_mixed(mf_jval a, double b) {
    if (isinf(b)) return b > 0 ? -1 : 1;
    if (a.type == MF_J_BIG) {
        double bound = ldexp(1, 63);
        if (fabs(b) < bound) return a.big->negative ? -1 : 1;
        char text[340]; // the float's integer part, which it is as a whole up there
        int n = snprintf(text, sizeof text, "%.0f", fabs(b));
        char own[9 * 64];
        if (a.big->n > 60 || a.big->negative != (b < 0)) return a.big->negative ? -1 : 1;
        int len = snprintf(own, sizeof own, "%" PRIu32, a.big->limbs[a.big->n - 1]);
        for (uint32_t i = a.big->n - 1; i-- > 0;)
            len += snprintf(own + len, sizeof own - (size_t)len, "%09" PRIu32, a.big->limbs[i]);
        int order = len != n ? (len < n ? -1 : 1) : strcmp(own, text);
        return a.big->negative ? -order : order;
    }
    int64_t value = small(a);
    if (b >= 9223372036854775808.0) return -1;
    if (b < -9223372036854775808.0) return 1;
    int64_t whole = (int64_t)b;
    if (value != whole) return value < whole ? -1 : 1;
    double rest = b - (double)whole;
    return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

bool mf_jcompare_numbers(mf_jval a, mf_jval b, int *order) {
    bool float_a = a.type == MF_J_FLOAT, float_b = b.type == MF_J_FLOAT;
    if ((float_a && isnan(a.real)) || (float_b && isnan(b.real))) return false;
    if (float_a && float_b)
        *order = a.real < b.real ? -1 : a.real > b.real;
    else if (float_b)
        *order = compare_mixed(a, b.real);
    else if (float_a)
        *order = -compare_mixed(b, a.real);
    else if (a.type == MF_J_BIG || b.type == MF_J_BIG)
        *order = mf_jbig_compare(a, b);
    else
        *order = small(a) < small(b) ? -1 : small(a) > small(b);
    return true;
}

bool mf_jint_from_digits(mf_jrun *run, bool negative, mf_str digits, mf_jval *out) {
    while (digits.len > 1 && *digits.ptr == '0') digits = (mf_str){digits.ptr + 1, digits.len - 1};
    if (digits.len > MF_JINJA_INT_DIGITS)
        return mf_jraise(run, "Exceeds the limit (%d digits) for integer string conversion", MF_JINJA_INT_DIGITS);
    int64_t value;
    if (mf_parse_i64(digits, &value)) {
        *out = mf_jint(negative ? -value : value);
        return true;
    }
    size_t n = (digits.len + 8) / 9;
    mf_jbig *big = mf_jalloc(run, 1, sizeof *big + n * sizeof big->limbs[0]);
    if (!big) return false;
    *big = (mf_jbig){.negative = negative, .n = (uint32_t)n};
    for (size_t i = 0; i < n; i++) {
        size_t end = digits.len - 9 * i, start = end > 9 ? end - 9 : 0;
        for (size_t k = start; k < end; k++) big->limbs[i] = big->limbs[i] * 10 + (uint32_t)(digits.ptr[k] - '0');
    }
    *out = (mf_jval){.type = MF_J_BIG, .big = big};
    return mf_jarith(run, MF_J_ADD, *out, mf_jint(0), out); // -2^63 fits
}

bool mf_jint_text(mf_jrun *run, mf_jval v, mf_str *out) {
    size_t room = v.type == MF_J_BIG ? 9 * (size_t)v.big->n + 3 : 24;
    if (!mf_jpay(run, (uint64_t)MF_JCOST_PRINT * (v.type == MF_J_BIG ? v.big->n : 1))) return false;
    char *text = mf_jalloc(run, room, 1);
    if (!text) return false;
    int len;
    if (v.type != MF_J_BIG) {
        len = snprintf(text, room, "%" PRId64, small(v));
    } else {
        len = snprintf(text, room, "%s%" PRIu32, v.big->negative ? "-" : "", v.big->limbs[v.big->n - 1]);
        for (uint32_t i = v.big->n - 1; i-- > 0;)
            len += snprintf(text + len, room - (size_t)len, "%09" PRIu32, v.big->limbs[i]);
        if (len - v.big->negative > MF_JINJA_INT_DIGITS)
            return mf_jraise(run, "Exceeds the limit (%d digits) for integer string conversion", MF_JINJA_INT_DIGITS);
    }
    *out = (mf_str){text, (size_t)len};
    return true;
}

int mf_jreal_digits(double value, char digits[32], int *exponent) {
    char room[64]; // more than any double needs, so nothing is allocated
    mf_buf buf = {.data = room, .cap = sizeof room};
    mf_json_writer w = {.out = &buf};
    mf_json_real(&w, value);
    const char *text = room;
    int n = 0, point = 0;
    bool behind = false, started = false;
    for (; *text && *text != 'e'; text++) {
        if (*text == '.') {
            behind = true;
            continue;
        }
        if (*text != '0') started = true;
        if (started && n < 31) digits[n++] = *text;
        if (started && !behind) point++;
        if (!started && behind) point--;
    }
    if (*text == 'e') point += (int)strtol(text + 1, NULL, 10);
    while (n > 1 && digits[n - 1] == '0') n--;
    digits[n] = 0;
    *exponent = point - 1;
    return n;
}

void mf_jreal_text(double value, char out[40]) {
    if (!isfinite(value)) {
        snprintf(out, 40, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    if (signbit(value)) *out++ = '-';
    if (value == 0) {
        memcpy(out, "0.0", 4);
        return;
    }
    char digits[32];
    int exponent, n = mf_jreal_digits(fabs(value), digits, &exponent);
    if (exponent < -4 || exponent >= 16)
        snprintf(out, 39, "%c%s%.17se%c%02d", digits[0], n > 1 ? "." : "", digits + 1, exponent < 0 ? '-' : '+',
                 abs(exponent) % 1000);
    else if (exponent < 0)
        snprintf(out, 39, "0.%.*s%.17s", -exponent - 1, "0000", digits);
    else if (n > exponent + 1)
        snprintf(out, 39, "%.*s.%.17s", exponent + 1, digits, digits + exponent + 1);
    else
        snprintf(out, 39, "%.17s%.*s.0", digits, exponent + 1 - n, "0000000000000000");
}

// ---- Reading text

// The text without white space around it, decimal digits of any script made ASCII, underscores between digits taken out where
// `digits` says so. False where it can't be a number.
static bool plain_number(mf_str text, mf_buf *out) {
    for (size_t i = 0; i < text.len;) {
        uint32_t cp;
        int n = mf_utf8_decode(text.ptr + i, text.len - i, &cp);
        if (n <= 0) return false;
        i += (size_t)n;
        int digit = mf_decimal_value(cp);
        if (digit >= 0)
            mf_buf_char(out, (char)('0' + digit));
        else if (mf_is_space(cp))
            mf_buf_char(out, ' ');
        else if (cp < 0x80)
            mf_buf_char(out, (char)cp);
        else
            return false;
    }
    size_t start = 0;
    while (start < out->len && out->data[start] == ' ') start++;
    while (out->len > start && out->data[out->len - 1] == ' ') out->len--;
    if (out->failed || out->len == start) return false;
    memmove(out->data, out->data + start, out->len - start);
    out->len -= start;
    size_t n = 0;
    for (size_t i = 0; i < out->len; i++) {
        char c = out->data[i];
        bool between = i > 0 && i + 1 < out->len && isalnum((unsigned char)out->data[i - 1]) &&
                       isalnum((unsigned char)out->data[i + 1]);
        if (c == '_' && !between) return false;
        if (c != '_') out->data[n++] = c;
    }
    out->len = n;
    out->data[n] = 0;
    return true;
}

static bool digits_in_base(mf_jrun *run, mf_str text, int base, bool negative, mf_jval *out, bool *ok) {
    *out = mf_jint(0);
    if (text.len == 0) return true;
    for (size_t i = 0; i < text.len; i++) {
        int c = tolower((unsigned char)text.ptr[i]), digit = c <= '9' ? c - '0' : c - 'a' + 10;
        if (!isalnum(c) || digit >= base) return true;
    }
    if (base == 10) {
        *ok = text.len <= MF_JINJA_INT_DIGITS; // past it Python has a ValueError too
        return !*ok || mf_jint_from_digits(run, negative, text, out);
    }
    for (size_t i = 0; i < text.len; i++) {
        int c = tolower((unsigned char)text.ptr[i]), digit = c <= '9' ? c - '0' : c - 'a' + 10;
        if (!mf_jarith(run, MF_J_MUL, *out, mf_jint(base), out) || !mf_jarith(run, MF_J_ADD, *out, mf_jint(digit), out))
            return false;
    }
    *ok = true;
    return !negative || mf_jnegate(run, *out, out);
}

bool mf_jparse_int(mf_jrun *run, mf_str text, int base, mf_jval *out, bool *ok) {
    mf_buf buf = {0};
    *ok = false;
    if (!mf_jpay(run, 8 * (uint64_t)text.len)) return false;
    bool good = plain_number(text, &buf), done = true;
    mf_str plain = {buf.data, buf.len};
    bool negative = good && *plain.ptr == '-';
    if (good && (*plain.ptr == '-' || *plain.ptr == '+')) plain = (mf_str){plain.ptr + 1, plain.len - 1};
    if (good && plain.len > 2 && plain.ptr[0] == '0') {
        int c = tolower((unsigned char)plain.ptr[1]), own = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
        if (own && (base == own || base == 0)) {
            base = own;
            plain = (mf_str){plain.ptr + 2, plain.len - 2};
        }
    }
    if (good && base == 0) {
        base = 10;
        bool zeros = true;
        for (size_t i = 0; i < plain.len; i++) zeros = zeros && plain.ptr[i] == '0';
        if (plain.len > 1 && plain.ptr[0] == '0' && !zeros) good = false;
    }
    if (good) done = digits_in_base(run, plain, base, negative, out, ok);
    if (buf.failed) done = mf_jfail(run, MF_ERR_MEMORY, "out of memory for a number");
    free(buf.data);
    return done;
}

bool mf_jparse_real(mf_jrun *run, mf_str text, double *out, bool *ok) {
    mf_buf buf = {0};
    *ok = false;
    if (!mf_jpay(run, 4 * (uint64_t)text.len + MF_JCOST_NUMBER)) return false;
    if ((*ok = plain_number(text, &buf))) {
        const char *p = buf.data;
        double sign = *p == '-' ? -1 : 1;
        if (*p == '-' || *p == '+') p++;
        if (strcasecmp(p, "inf") == 0 || strcasecmp(p, "infinity") == 0)
            *out = sign * (double)INFINITY;
        else if (strcasecmp(p, "nan") == 0)
            *out = (double)NAN;
        else if (!mf_parse_f64((mf_str){buf.data, buf.len}, out)) {
            // What overflows reads as infinity.
            *ok = strspn(p, "0123456789.") > 0 && strspn(p, "0123456789.eE+-") == strlen(p);
            char *end;
            double value = *ok ? strtod(buf.data, &end) : 0;
            *ok = *ok && !*end && isinf(value);
            if (*ok) *out = value;
        }
    }
    bool done = !buf.failed || mf_jfail(run, MF_ERR_MEMORY, "out of memory for a number");
    free(buf.data);
    return done;
}
