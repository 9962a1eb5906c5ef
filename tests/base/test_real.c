#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/fma.h"
#include "base/half.h"
#include "base/real.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// |got - want| in units of the last of want's `digits` bits.
static double ulps(double got, double want, int digits, int least_exponent) {
    int exponent;
    frexp(want, &exponent);
    if (exponent < least_exponent) exponent = least_exponent;
    return ldexp(fabs(got - want), digits - exponent);
}

typedef struct {
    const char *name;
    double worst, limit;
    int cases;
} function;

static double call(size_t which, double x) {
    double sine, cosine;
    mf_sincos64(x, &sine, &cosine);
    switch (which) {
    case 0: return mf_exp((float)x);
    case 1: return mf_exp64(x);
    case 2: return mf_log64(x);
    case 3: return sine;
    default: return cosine;
    }
}

// tests/fixtures/real_cases.txt has values to the last bit from mpmath.
static void test_against_oracle(void **state) {
    (void)state;
    function functions[] = {
        {"exp32", 0, 1, 0}, {"exp64", 0, 1, 0}, {"log64", 0, 1, 0}, {"sin64", 0, 1, 0}, {"cos64", 0, 1, 0}};
    FILE *file = fopen(MF_FIXTURES "/real_cases.txt", "r");
    assert_non_null(file);
    char line[160];
    while (fgets(line, sizeof line, file)) {
        for (size_t i = 0; i < 5; i++) {
            function *f = &functions[i];
            if (strncmp(line, f->name, 5) != 0) continue;
            char *end;
            double x = strtod(line + 6, &end), want = strtod(end, NULL);
            // The oracle's own rounding to double is half an ulp of the double functions.
            double error = i ? ulps(call(i, x), want, 53, DBL_MIN_EXP) : ulps(call(i, x), want, 24, FLT_MIN_EXP);
            if (!(error <= f->worst)) f->worst = error;
            f->cases++;
            if (i != 2) continue;
            float narrow = (float)x;
            if (narrow == x && narrow > 0) assert_true(mf_log32(narrow) == (float)want);
        }
    }
    fclose(file);
    for (size_t i = 0; i < 5; i++) {
        printf("%s: %d cases, at most %.3f ulp from the rounded value\n", functions[i].name, functions[i].cases,
               functions[i].worst);
        assert_in_range(functions[i].cases, 500, 10000);
        assert_true(functions[i].worst <= functions[i].limit);
    }
}

static void test_exp_corners(void **state) {
    (void)state;
    assert_true(mf_exp(0.0f) == 1 && mf_exp(-0.0f) == 1);
    assert_true(mf_exp(0x1p-149f) == 1 && mf_exp(-0x1p-30f) == 1);
    assert_true(mf_exp(-87.0f) > FLT_MIN);
    assert_int_equal(mf_f32_bits(mf_exp(mf_bits_f32(mf_f32_bits(-87.0f) + 1))), 0);
    assert_int_equal(mf_f32_bits(mf_exp(-FLT_MAX)), 0);
    assert_int_equal(mf_f32_bits(mf_exp(-INFINITY)), 0);
    float largest = 0x1.62e42ep+6f;
    assert_true(mf_exp(largest) < INFINITY && mf_exp(largest) > 3.4e38f);
    assert_true(mf_exp(mf_bits_f32(mf_f32_bits(largest) + 1)) == INFINITY);
    assert_true(mf_exp(FLT_MAX) == INFINITY && mf_exp(INFINITY) == INFINITY);
    for (uint32_t payload = 1; payload < 0x800000; payload += 0x1357) {
        assert_true(isnan(mf_exp(mf_bits_f32(0x7F800000 | payload))));
        assert_true(isnan(mf_exp(mf_bits_f32(0xFF800000 | payload))));
    }
}

// Larger arguments never have smaller values: softmax relies on it.
static void test_exp_is_monotone(void **state) {
    (void)state;
    float last = 0;
    for (float x = -87.5f; x < 0.5f; x += 0x1p-17f) {
        float y = mf_exp(x);
        if (y < last) fail_msg("exp falls at %a", (double)x);
        last = y;
    }
}

static void test_double_corners(void **state) {
    (void)state;
    double sine, cosine;
    assert_true(mf_exp64(0) == 1 && mf_exp64(-0.0) == 1);
    assert_true(mf_exp64(-INFINITY) == 0 && mf_exp64(-1e300) == 0 && mf_exp64(-745.2) == 0);
    assert_true(mf_exp64(-745) == 0x1p-1074);
    assert_true(mf_exp64(INFINITY) == INFINITY && mf_exp64(709.79) == INFINITY && mf_exp64(709.78) < INFINITY);
    assert_true(isnan(mf_exp64(NAN)) && isnan(mf_log64(NAN)) && isnan(mf_log64(-1)) && isnan(mf_log64(-INFINITY)));
    assert_true(mf_log64(0) == -INFINITY && mf_log64(-0.0) == -INFINITY && mf_log64(INFINITY) == INFINITY);
    assert_true(mf_log64(1) == 0 && !signbit(mf_log64(1)));
    assert_true(mf_log32(1) == 0 && mf_log32(0) == -INFINITY && isnan(mf_log32(-1)) && mf_log32(INFINITY) == INFINITY);
    mf_sincos64(0, &sine, &cosine);
    assert_true(sine == 0 && !signbit(sine) && cosine == 1);
    mf_sincos64(-0.0, &sine, &cosine);
    assert_true(sine == 0 && signbit(sine) && cosine == 1);
    mf_sincos64(0x1p-1074, &sine, &cosine);
    assert_true(sine == 0x1p-1074 && cosine == 1);
    const double outside[] = {0x1.0000000000001p30, -0x1.0000000000001p30, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < 5; i++) {
        mf_sincos64(outside[i], &sine, &cosine);
        assert_true(isnan(sine) && isnan(cosine));
    }
    assert_true(mf_pow64(2, 10) > 1023.999999999999 && mf_pow64(2, 10) < 1024.000000000001);
    assert_true(mf_pow64(10000, 0) == 1);
    assert_true(fabs(mf_pow64(10000, -0.5) - 0.01) < 1e-16);
}

static bool same_float(float got, uint32_t want) { return isnan(mf_bits_f32(want)) ? isnan(got) : mf_f32_bits(got) == want; }

static void test_exp_block(void **state) {
    (void)state;
    double x[MF_EXP64_BLOCK], y[MF_EXP64_BLOCK];
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < MF_EXP64_BLOCK; i++) x[i] = -700.0 + 0.1093 * (i * 200 + round);
        x[round % MF_EXP64_BLOCK] = round % 2 ? -0.0 : -700.0;
        mf_exp64_block(x, y);
        for (int i = 0; i < MF_EXP64_BLOCK; i++) assert_true(y[i] == mf_exp64(x[i]));
    }
    for (int i = 0; i < MF_EXP64_BLOCK; i++) x[i] = i % 2 ? -INFINITY : -700.01 * (i + 1);
    mf_exp64_block(x, y);
    for (int i = 0; i < MF_EXP64_BLOCK; i++) assert_true(y[i] == 0);
}

static void test_fma_against_oracle(void **state) {
    (void)state;
    FILE *file = fopen(MF_FIXTURES "/real_cases.txt", "r");
    assert_non_null(file);
    char line[160];
    int cases = 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, "fma ", 4) != 0) continue;
        char *p = line + 4;
        uint32_t v[4];
        for (int i = 0; i < 4; i++) v[i] = (uint32_t)strtoul(p, &p, 16);
        float got = mf_fma(mf_bits_f32(v[0]), mf_bits_f32(v[1]), mf_bits_f32(v[2]));
        if (!same_float(got, v[3])) fail_msg("%s gives %08x", line, (unsigned)mf_f32_bits(got));
        cases++;
    }
    fclose(file);
    assert_in_range(cases, 3000, 3000);
}

static void test_fma_corners(void **state) {
    (void)state;
    assert_int_equal(mf_f32_bits(mf_fma(1, 0.0f, -0.0f)), 0);
    assert_int_equal(mf_f32_bits(mf_fma(-1, 0.0f, -0.0f)), 0x80000000);
    assert_int_equal(mf_f32_bits(mf_fma(3, -5, 15)), 0);
    assert_true(mf_fma(FLT_MAX, 2, -FLT_MAX) == FLT_MAX); // the product alone would overflow
    assert_true(mf_fma(FLT_MAX, 2, FLT_MAX) == INFINITY);
    assert_true(mf_fma(0x1p-149f, 0.5f, 0) == 0);                 // a tie goes to even zero
    assert_true(mf_fma(0x1p-149f, 0.5f, 0x1p-149f) == 0x1p-148f); // and here away from odd
    assert_true(mf_fma(0x1p-149f, 0x1p-149f, 1) == 1);
    // The tie that the tiny addend breaks: rounding the sum to double first would lose it.
    float tie = 0x1.001p0f; // its square is 1 + 2^-11 + 2^-24: halfway between two floats
    assert_true(mf_fma(tie, tie, 0) == 0x1.002p0f);
    assert_true(mf_fma(tie, tie, 0x1p-120f) == 0x1.002002p0f);
    assert_true(mf_fma(tie, tie, -0x1p-120f) == 0x1.002p0f);
    assert_true(isnan(mf_fma(INFINITY, 0, 1)) && isnan(mf_fma(INFINITY, 1, -INFINITY)) && isnan(mf_fma(1, NAN, 1)));
    assert_true(mf_fma(INFINITY, -2, 1) == -INFINITY && mf_fma(1, 2, INFINITY) == INFINITY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_oracle), cmocka_unit_test(test_exp_corners), cmocka_unit_test(test_exp_is_monotone),
        cmocka_unit_test(test_double_corners), cmocka_unit_test(test_exp_block),   cmocka_unit_test(test_fma_against_oracle),
        cmocka_unit_test(test_fma_corners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
