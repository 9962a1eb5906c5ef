#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/half.h"

#include <math.h>

// The value of a half from its definition.
static double half_value(uint16_t h) {
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double magnitude = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return h & 0x8000 ? -magnitude : magnitude;
}

static void test_every_half(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float x = mf_f16_to_f32((uint16_t)h);
        if ((h & 0x7C00) != 0x7C00) {
            if ((double)x != half_value((uint16_t)h) || !signbit(x) != (h < 0x8000)) fail_msg("half %04X", (unsigned)h);
            if (mf_f32_to_f16(x) != h) fail_msg("half %04X does not come back", (unsigned)h);
        } else if ((h & 0x3FF) == 0) {
            assert_true(isinf(x) && !signbit(x) == (h < 0x8000));
            assert_int_equal(mf_f32_to_f16(x), h);
        } else {
            assert_int_equal(mf_f32_bits(x), (h & 0x8000u) << 16 | 0x7FC00000 | (h & 0x3FFu) << 13);
            assert_int_equal(mf_f32_to_f16(x), h | 0x200);
        }
    }
}

// Between each two neighbours: just under, at and just over the halfway point.
static void test_halfway_points(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x7C00; h++) {
        double low = half_value((uint16_t)h), high = h == 0x7BFF ? 65536 : half_value((uint16_t)(h + 1));
        float middle = (float)((low + high) / 2);
        uint16_t even = (uint16_t)(h & 1 ? h + 1 : h);
        if (mf_f32_to_f16(middle) != even) fail_msg("tie over %04X", (unsigned)h);
        if (mf_f32_to_f16(-middle) != (even | 0x8000)) fail_msg("tie under -%04X", (unsigned)h);
        if (mf_f32_to_f16(mf_bits_f32(mf_f32_bits(middle) - 1)) != h) fail_msg("under the tie over %04X", (unsigned)h);
        if (mf_f32_to_f16(mf_bits_f32(mf_f32_bits(middle) + 1)) != h + 1) fail_msg("over the tie over %04X", (unsigned)h);
    }
    assert_int_equal(mf_f32_to_f16(0x1p-149f), 0);
    assert_int_equal(mf_f32_to_f16(-0x1p-149f), 0x8000);
    assert_int_equal(mf_f32_to_f16(3e38f), 0x7C00);
    assert_int_equal(mf_f32_to_f16(mf_bits_f32(0xFF812345)), 0xFE09); // a signalling NaN: quiet, its top bits kept
}

static void test_bf16(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        float x = mf_bf16_to_f32((uint16_t)h);
        assert_int_equal(mf_f32_bits(x), h << 16);
        assert_int_equal(mf_f32_to_bf16(x), isnan(x) ? h | 0x40 : h);
    }
    assert_int_equal(mf_f32_to_bf16(mf_bits_f32(0x3F808000)), 0x3F80); // ties go to even
    assert_int_equal(mf_f32_to_bf16(mf_bits_f32(0x3F818000)), 0x3F82);
    assert_int_equal(mf_f32_to_bf16(mf_bits_f32(0x3F808001)), 0x3F81);
    assert_int_equal(mf_f32_to_bf16(mf_bits_f32(0x3F807FFF)), 0x3F80);
    assert_int_equal(mf_f32_to_bf16(mf_bits_f32(0x7F7FFFFF)), 0x7F80); // rounds up to infinity
    assert_int_equal(mf_f32_to_bf16(mf_bits_f32(0x7F800001)), 0x7FC0); // a NaN whose payload would be cut off
    assert_int_equal(mf_f32_to_bf16(mf_bits_f32(0xFFFFFFFF)), 0xFFFF);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_half),
        cmocka_unit_test(test_halfway_points),
        cmocka_unit_test(test_bf16),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
