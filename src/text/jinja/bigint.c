#include "text/jinja/bigint.h"

#include <math.h>
#include <stdio.h>

#include "text/jinja/run.h"

enum {
    MAX_LIMBS = MF_JINJA_INT_DIGITS / 9 + 1,
    SMALL_LIMBS = 3, // of any int64
};

// An operand's magnitude; an int64's limbs lie in `small`.
typedef struct wide {
    bool negative;
    uint32_t n;
    const uint32_t *limbs;
    uint32_t small[SMALL_LIMBS];
} wide;

static void widen(mf_jval v, wide *w) {
    if (v.type == MF_J_BIG) {
        *w = (wide){.negative = v.big->negative, .n = v.big->n, .limbs = v.big->limbs};
        return;
    }
    int64_t value = v.type == MF_J_BOOL ? v.boolean : v.integer;
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    w->negative = value < 0;
    w->n = 0;
    for (; magnitude; magnitude /= MF_JBIG_BASE) w->small[w->n++] = (uint32_t)(magnitude % MF_JBIG_BASE);
    w->limbs = w->small;
}

static mf_jbig *new_big(mf_jrun *run, size_t n) {
    if (n > MAX_LIMBS + 2) {
        mf_jraise(run, "an integer of more than %d digits", MF_JINJA_INT_DIGITS);
        return NULL;
    }
    mf_jbig *big = mf_jalloc(run, 1, sizeof *big + n * sizeof big->limbs[0]);
    if (big) big->n = (uint32_t)n;
    return big;
}

static bool normalize(mf_jrun *run, mf_jbig *big, mf_jval *out) {
    while (big->n && big->limbs[big->n - 1] == 0) big->n--;
    if (big->n > MAX_LIMBS) return mf_jraise(run, "an integer of more than %d digits", MF_JINJA_INT_DIGITS);
    unsigned __int128 value = 0;
    for (uint32_t i = big->n; i-- > 0 && big->n <= SMALL_LIMBS;) value = value * MF_JBIG_BASE + big->limbs[i];
    unsigned __int128 most = (unsigned __int128)INT64_MAX + big->negative;
    if (big->n <= SMALL_LIMBS && value <= most) {
        *out = mf_jint(big->negative ? (int64_t)(0 - (uint64_t)value) : (int64_t)value);
        return true;
    }
    *out = (mf_jval){.type = MF_J_BIG, .big = big};
    return true;
}

static int compare_magnitude(const wide *a, const wide *b) {
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (uint32_t i = a->n; i-- > 0;)
        if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
    return 0;
}

int mf_jbig_compare(mf_jval a, mf_jval b) {
    wide x, y;
    widen(a, &x);
    widen(b, &y);
    if (x.negative != y.negative) return x.negative ? -1 : 1;
    return x.negative ? compare_magnitude(&y, &x) : compare_magnitude(&x, &y);
}

// |a| + |b|, or |a| - |b| where |a| >= |b|.
static bool add_magnitude(mf_jrun *run, const wide *a, const wide *b, bool minus, bool negative, mf_jval *out) {
    uint32_t n = a->n > b->n ? a->n : b->n;
    mf_jbig *sum = mf_jpay(run, n) ? new_big(run, n + 1) : NULL;
    if (!sum) return false;
    int64_t carry = 0;
    for (uint32_t i = 0; i <= n; i++) {
        int64_t other = i < b->n ? b->limbs[i] : 0;
        int64_t limb = (i < a->n ? a->limbs[i] : 0) + (minus ? -other : other) + carry;
        carry = limb >= (int64_t)MF_JBIG_BASE ? 1 : limb < 0 ? -1 : 0;
        sum->limbs[i] = (uint32_t)(limb - carry * (int64_t)MF_JBIG_BASE);
    }
    sum->negative = negative;
    return normalize(run, sum, out);
}

static bool add(mf_jrun *run, const wide *a, const wide *b, mf_jval *out) {
    if (a->negative == b->negative) return add_magnitude(run, a, b, false, a->negative, out);
    if (compare_magnitude(a, b) >= 0) return add_magnitude(run, a, b, true, a->negative, out);
    return add_magnitude(run, b, a, true, b->negative, out);
}

static bool multiply(mf_jrun *run, const wide *a, const wide *b, mf_jval *out) {
    mf_jbig *product = new_big(run, (size_t)a->n + b->n + 1);
    if (!product || !mf_jpay(run, (uint64_t)a->n * b->n)) return false;
    for (uint32_t i = 0; i < a->n; i++) {
        uint64_t carry = 0;
        for (uint32_t k = 0; k < b->n || carry; k++) {
            uint64_t limb = product->limbs[i + k] + (k < b->n ? (uint64_t)a->limbs[i] * b->limbs[k] : 0) + carry;
            product->limbs[i + k] = (uint32_t)(limb % MF_JBIG_BASE);
            carry = limb / MF_JBIG_BASE;
        }
    }
    product->negative = a->negative != b->negative;
    return normalize(run, product, out);
}

// remainder[0..n] -= limbs * factor; whether it stayed at or above 0 (else it holds the wrapped difference).
static bool subtract_scaled(uint32_t *remainder, const uint32_t *limbs, uint32_t n, uint32_t factor) {
    int64_t borrow = 0;
    for (uint32_t i = 0; i <= n; i++) {
        int64_t limb = (int64_t)remainder[i] - (i < n ? (int64_t)((uint64_t)limbs[i] * factor % MF_JBIG_BASE) : 0) + borrow;
        borrow = -(i < n ? (int64_t)((uint64_t)limbs[i] * factor / MF_JBIG_BASE) : 0);
        if (limb < 0) {
            limb += MF_JBIG_BASE;
            borrow--;
        }
        if (limb < 0) {
            limb += MF_JBIG_BASE;
            borrow--;
        }
        remainder[i] = (uint32_t)limb;
    }
    return borrow == 0;
}

static void add_back(uint32_t *remainder, const uint32_t *limbs, uint32_t n) {
    uint32_t carry = 0;
    for (uint32_t i = 0; i <= n; i++) {
        uint64_t limb = (uint64_t)remainder[i] + (i < n ? limbs[i] : 0) + carry;
        carry = limb >= MF_JBIG_BASE;
        remainder[i] = (uint32_t)(limb % MF_JBIG_BASE);
    }
}

// Magnitudes: quotient and remainder towards zero. Each quotient limb is estimated from the top limbs of the divisor, scaled so
// that the first is at least half the base (Knuth, volume 2, 4.3.1, algorithm D).
static bool divide(mf_jrun *run, const wide *a, const wide *b, mf_jval *quotient, mf_jval *rest) {
    uint32_t scale = MF_JBIG_BASE / (b->limbs[b->n - 1] + 1);
    uint32_t m = a->n, n = b->n;
    mf_jbig *q = new_big(run, m >= n ? m - n + 1 : 1);
    uint32_t *top = mf_jalloc(run, (size_t)m + n + 3, sizeof *top), *down = mf_jalloc(run, n, sizeof *down);
    mf_jbig *r = new_big(run, n);
    if (!q || !top || !down || !r || !mf_jpay(run, (uint64_t)m * n + m)) return false;
    uint64_t carry = 0;
    for (uint32_t i = 0; i < m || carry; i++) {
        carry += i < m ? (uint64_t)a->limbs[i] * scale : 0;
        top[i] = (uint32_t)(carry % MF_JBIG_BASE);
        carry /= MF_JBIG_BASE;
    }
    for (uint32_t i = 0; i < n; i++) {
        carry += (uint64_t)b->limbs[i] * scale;
        down[i] = (uint32_t)(carry % MF_JBIG_BASE);
        carry /= MF_JBIG_BASE;
    }
    for (uint32_t i = m >= n ? m - n + 1 : 0; i-- > 0;) {
        uint64_t high = (uint64_t)top[i + n] * MF_JBIG_BASE + top[i + n - 1], digit = high / down[n - 1];
        if (digit >= MF_JBIG_BASE) digit = MF_JBIG_BASE - 1;
        if (!subtract_scaled(top + i, down, n, (uint32_t)digit)) {
            do {
                digit--;
                add_back(top + i, down, n);
            } while (top[i + n] != 0);
        }
        q->limbs[i] = (uint32_t)digit;
    }
    carry = 0;
    for (uint32_t i = n; i-- > 0;) { // undo the scale
        carry = carry * MF_JBIG_BASE + top[i];
        r->limbs[i] = (uint32_t)(carry / scale);
        carry %= scale;
    }
    return normalize(run, q, quotient) && normalize(run, r, rest);
}

// Python's: the quotient is rounded down, the remainder has the divisor's sign.
static bool floor_divide(mf_jrun *run, const wide *a, const wide *b, mf_jval divisor, mf_jval *quotient, mf_jval *rest) {
    if (!divide(run, a, b, quotient, rest)) return false;
    bool negative = a->negative != b->negative, exact = rest->type == MF_J_INT && rest->integer == 0;
    if (negative && !mf_jnegate(run, *quotient, quotient)) return false;
    if (a->negative && !mf_jnegate(run, *rest, rest)) return false;
    if (!negative || exact) return true;
    return mf_jarith(run, MF_J_SUB, *quotient, mf_jint(1), quotient) && mf_jarith(run, MF_J_ADD, *rest, divisor, rest);
}

static bool power(mf_jrun *run, mf_jval base, int64_t exponent, mf_jval *out) {
    mf_jval result = mf_jint(1);
    for (;;) {
        if ((exponent & 1) && !mf_jarith(run, MF_J_MUL, result, base, &result)) return false;
        exponent >>= 1;
        if (!exponent) break;
        if (!mf_jarith(run, MF_J_MUL, base, base, &base)) return false;
    }
    *out = result;
    return true;
}

static bool raise_power(mf_jrun *run, mf_jval a, mf_jval b, mf_jval *out) {
    int64_t base = a.type == MF_J_BIG ? 2 : a.type == MF_J_BOOL ? a.boolean : a.integer;
    if (b.type == MF_J_BIG && base != 0 && base != 1 && base != -1)
        return mf_jraise(run, "an integer of more than %d digits", MF_JINJA_INT_DIGITS);
    int64_t exponent = b.type == MF_J_BIG ? 2 + (b.big->limbs[0] & 1) : b.type == MF_J_BOOL ? b.boolean : b.integer;
    return power(run, a, exponent, out);
}

bool mf_jbig_arith(mf_jrun *run, mf_jarith_op op, mf_jval a, mf_jval b, mf_jval *out) {
    wide x, y;
    mf_jval other;
    widen(a, &x);
    widen(b, &y);
    switch (op) {
    case MF_J_SUB: y.negative = !y.negative; return add(run, &x, &y, out);
    case MF_J_ADD: return add(run, &x, &y, out);
    case MF_J_MUL: return multiply(run, &x, &y, out);
    case MF_J_FLOORDIV: return floor_divide(run, &x, &y, b, out, &other);
    case MF_J_MOD: return floor_divide(run, &x, &y, b, &other, out);
    default: return raise_power(run, a, b, out);
    }
}

// The double nearest to an integer's magnitude.
static bool nearest(mf_jrun *run, mf_jval v, double *out) {
    mf_str text;
    return mf_jint_text(run, v, &text) && (mf_parse_f64(text, out) || mf_jraise(run, "int too large to convert to float"));
}

bool mf_jbig_divide(mf_jrun *run, mf_jval a, mf_jval b, double *out) {
    wide x, y;
    widen(a, &x);
    widen(b, &y);
    bool negative = x.negative != y.negative;
    if (x.n == 0) {
        *out = 0;
        return true;
    }
    // Scaled by 2^shift, the quotient has at least 66 bits; its last bit then says whether something was left.
    double log_a = 29.897 * x.n, log_b = 29.897 * (y.n - 1);
    int shift = (int)(66 + log_b + 30 - (log_a - 30));
    if (shift < 0) shift = 0;
    mf_jval top = a, scale, quotient, rest;
    if (!power(run, mf_jint(2), shift, &scale) || !mf_jarith(run, MF_J_MUL, a, scale, &top)) return false;
    widen(top, &x);
    x.negative = y.negative = false;
    if (!divide(run, &x, &y, &quotient, &rest)) return false;
    bool exact = rest.type == MF_J_INT && rest.integer == 0;
    if (!mf_jarith(run, MF_J_MUL, quotient, mf_jint(2), &quotient) ||
        (!exact && !mf_jarith(run, MF_J_ADD, quotient, mf_jint(1), &quotient)) || !nearest(run, quotient, out))
        return false;
    *out = ldexp(negative ? -*out : *out, -(shift + 1));
    return isfinite(*out) || mf_jraise(run, "integer division result too large for a float");
}
