#include "base/real.h"

#include "base/exp_constants.h"
#include "base/fma.h"
#include "base/half.h"

#include <math.h>

// The double functions use nothing but IEEE + - * /, which round the same on every machine; INFINITY and NAN are all that is
// taken from math.h.

// exp in float; the steps are the definition, which the vector kernels repeat.
float mf_exp(float x) {
    float shifted = mf_fma(x, MF_EXP_LOG2_E, MF_EXP_ROUND); // the low bits of its fraction are n, x / ln 2 rounded to even
    float n = shifted - MF_EXP_ROUND;
    float r = mf_fma(n, -MF_EXP_LN2_HIGH, x);
    r = mf_fma(n, -MF_EXP_LN2_LOW, r);
    float p = MF_EXP_C6;
    p = mf_fma(p, r, MF_EXP_C5);
    p = mf_fma(p, r, MF_EXP_C4);
    p = mf_fma(p, r, MF_EXP_C3);
    p = mf_fma(p, r, MF_EXP_C2);
    p = mf_fma(p, r, 1.0f);
    p = mf_fma(p, r, 1.0f);
    // n goes straight into the exponent: the shift throws away all of `shifted` but n, and the result is a normal number.
    float y = mf_bits_f32(mf_f32_bits(p) + (mf_f32_bits(shifted) << 23));
    y = x < MF_EXP_SMALLEST ? 0.0f : y;
    y = x > MF_EXP_LARGEST ? INFINITY : y;
    return x != x ? x : y;
}

float mf_log32(float x) { return (float)mf_log64(x); }

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    return bits;
}

static double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

// 2^n for -1022 <= n <= 1023.
static double power_of_two(int n) { return double_of((uint64_t)(n + 1023) << 52); }

// The nearest integer, ties to even, for |x| < 2^51.
static double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

// c[0] + c[1] x + … + c[n-1] x^(n-1).
static double polynomial(const double *c, int n, double x) {
    double sum = c[n - 1];
    for (int i = n - 2; i >= 0; i--) sum = sum * x + c[i];
    return sum;
}

// ln 2 in two parts; the first has 40 bits, so that its product with an exponent is exact.
static const double ln2_first = 0x1.62e42fefa2p-1, ln2_second = 0x1.9ef35793c7673p-41;

// exp(x - n ln 2), n the nearest integer to x / ln 2.
static inline double exp_fraction(double x, double n) {
    double high = x - n * ln2_first, low = n * ln2_second;
    double r = high - low, rest = (high - r) - low;
    // Taylor's series without its first two terms, spelled out for the vectorizer; the first term left out is below 2^-57 for
    // |r| <= ln 2 / 2.
    double sum = r * (1.0 / 6227020800) + 1.0 / 479001600;
    sum = (sum * r + 1.0 / 39916800) * r + 1.0 / 3628800;
    sum = (sum * r + 1.0 / 362880) * r + 1.0 / 40320;
    sum = (sum * r + 1.0 / 5040) * r + 1.0 / 720;
    sum = (sum * r + 1.0 / 120) * r + 1.0 / 24;
    sum = (sum * r + 1.0 / 6) * r + 1.0 / 2;
    return 1 + (r + (r * r * sum + rest));
}

double mf_exp64(double x) {
    if (x != x) return x;
    if (x > 0x1.62e42fefa39efp+9) return INFINITY;
    if (x < -746.0) return 0;
    double n = nearest(x * 0x1.71547652b82fep+0);
    // In two steps, because 2^n alone may be out of range.
    int whole = (int)n, half = whole / 2;
    return exp_fraction(x, n) * power_of_two(half) * power_of_two(whole - half);
}

// gcc compiles the loop for AVX2 too and the loader chooses; both forms give the same bits, as all of this file does. (TSan starts
// after that choice. clang vectorizes the plain form well, and clang 14 gives the chooser another name.)
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("avx2", "default")))
#endif
void mf_exp64_block(const double *restrict x, double *restrict y) {
    for (int i = 0; i < MF_EXP64_BLOCK; i++) {
        double shifted = x[i] * 0x1.71547652b82fep+0 + 0x1.8p52; // the low bits of its fraction are n
        double part = exp_fraction(x[i], shifted - 0x1.8p52);
        uint64_t result = bits_of(part) + (bits_of(shifted) << 52); // n goes straight into the exponent
        y[i] = double_of(result & -(uint64_t)(x[i] >= -700.0));     // a mask, where gcc takes a choice for a branch
    }
}

double mf_log64(double x) {
    // 2 artanh(s) = 2s + s * (2/3 s^2 + 2/5 s^4 + …); the first term left out is below 2^-57 for |s| <= 0.172.
    static const double series[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                    2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    if (x != x || x < 0) return NAN;
    if (x == 0) return -INFINITY;
    if (x == INFINITY) return x;
    int exponent = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        exponent = -54;
    }
    // x = m * 2^exponent with m from sqrt(1/2) to sqrt(2); f = m - 1 is exact.
    uint64_t bits = bits_of(x);
    exponent += (int)(bits >> 52) - 1023;
    double m = double_of((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000);
    if (m > 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        exponent++;
    }
    double f = m - 1, s = f / (2 + f), z = s * s, half_square = 0.5 * f * f;
    double tail = z * polynomial(series, 10, z);
    // 2s = f - f^2/2 + s f^2/2: led by f, which has no error.
    double k = exponent;
    return k * ln2_first - ((half_square - (s * (half_square + tail) + k * ln2_second)) - f);
}

typedef struct pair {
    double high, low; // their exact sum is meant
} pair;

static pair two_sum(double a, double b) {
    double sum = a + b, part = sum - a;
    return (pair){sum, (a - (sum - part)) + (b - part)};
}

// The upper 26 bits of x (Veltkamp).
static double upper_half(double x) {
    double c = x * 134217729.0; // 2^27 + 1
    return c - (c - x);
}

// a * b exactly (Dekker).
static pair two_product(double a, double b) {
    double product = a * b, ah = upper_half(a), bh = upper_half(b), al = a - ah, bl = b - bh;
    return (pair){product, ((ah * bh - product) + ah * bl + al * bh) + al * bl};
}

// x - n * pi/2 with pi/2 in three doubles (161 bits): no double up to 2^30 is so near a multiple that this loses a bit of the
// result's first 53.
static pair reduce(double x, double n) {
    pair first = two_product(n, 0x1.921fb54442d18p+0), second = two_product(n, 0x1.1a62633145c07p-54);
    pair a = two_sum(x - first.high, -first.low), b = two_sum(a.high, -second.high);
    double rest = (a.low + b.low) - (second.low + n * -0x1.f1976b7ed8fbcp-110);
    double high = b.high + rest;
    return (pair){high, (b.high - high) + rest};
}

void mf_sincos64(double x, double *sin_out, double *cos_out) {
    // Taylor's series without their first terms; the first ones left out are below 2^-58 of the result for |r| <= pi/4.
    static const double sin_series[] = {-1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
                                        -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    static const double cos_series[] = {1.0 / 24,        -1.0 / 720,         1.0 / 40320,          -1.0 / 3628800,
                                        1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};
    if (!(x >= -0x1p30 && x <= 0x1p30)) {
        *sin_out = *cos_out = NAN;
        return;
    }
    if (x == 0) { // keeps the sign
        *sin_out = x;
        *cos_out = 1;
        return;
    }
    double n = nearest(x * 0x1.45f306dc9c883p-1);
    pair r = n == 0 ? (pair){x, 0} : reduce(x, n);
    double z = r.high * r.high, half = 0.5 * z, one = 1 - half;
    double sine = r.high + (r.high * z * polynomial(sin_series, 8, z) + r.low * one);
    double cosine = one + (((1 - one) - half) + (z * z * polynomial(cos_series, 8, z) - r.high * r.low));
    switch ((int64_t)n & 3) {
    case 0: *sin_out = sine, *cos_out = cosine; break;
    case 1: *sin_out = cosine, *cos_out = -sine; break;
    case 2: *sin_out = -sine, *cos_out = -cosine; break;
    default: *sin_out = -cosine, *cos_out = sine; break;
    }
}

double mf_pow64(double base, double exponent) { return mf_exp64(exponent * mf_log64(base)); }
