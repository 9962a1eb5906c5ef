#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "quant/blocks.h"
#include "quant/types.h"

static void test_names(void **state) {
    (void)state;
    assert_string_equal(mf_type_name(MF_TYPE_Q4_K), "Q4_K");
    assert_string_equal(mf_type_name(16), "IQ2_XXS");
    assert_string_equal(mf_type_name(63), "type 63");
    assert_string_equal(mf_type_name(64), "unknown type");
    assert_string_equal(mf_type_name(UINT32_MAX), "unknown type");
    for (uint32_t i = 0; i < MF_TYPE_LIMIT; i++) { // every number has a name, and a hole's name has its number
        char hole[16];
        snprintf(hole, sizeof hole, "type %u", i);
        if (mf_type_info_of(i))
            assert_string_not_equal(mf_type_name(i), hole);
        else
            assert_string_equal(mf_type_name(i), hole);
    }
}

static void test_rows(void **state) {
    (void)state;
    static const uint32_t weights[] = {
        MF_TYPE_F32,  MF_TYPE_F16,  MF_TYPE_BF16, MF_TYPE_Q4_0, MF_TYPE_Q4_1, MF_TYPE_Q5_0,   MF_TYPE_Q5_1,   MF_TYPE_Q8_0,
        MF_TYPE_Q2_K, MF_TYPE_Q3_K, MF_TYPE_Q4_K, MF_TYPE_Q5_K, MF_TYPE_Q6_K, MF_TYPE_IQ4_NL, MF_TYPE_IQ4_XS,
    };
    for (size_t i = 0; i < sizeof weights / sizeof weights[0]; i++) assert_non_null(mf_type_info_of(weights[i])->decode);
    assert_null(mf_type_info_of(39)->decode); // MXFP4: by name only
    assert_null(mf_type_info_of(4));
    assert_null(mf_type_info_of(MF_TYPE_LIMIT));
    assert_null(mf_type_info_of(UINT32_MAX));
}

static void test_row_bytes(void **state) {
    (void)state;
    size_t bytes = 1;
    assert_true(mf_type_row_bytes(MF_TYPE_F32, 3, &bytes));
    assert_int_equal(bytes, 12);
    assert_true(mf_type_row_bytes(MF_TYPE_Q4_K, 512, &bytes));
    assert_int_equal(bytes, 288);
    assert_true(mf_type_row_bytes(MF_TYPE_Q4_0, 0, &bytes));
    assert_int_equal(bytes, 0);
    assert_false(mf_type_row_bytes(MF_TYPE_Q4_K, 128, &bytes));
    assert_false(mf_type_row_bytes(MF_TYPE_Q4_0, 33, &bytes));
    assert_false(mf_type_row_bytes(MF_TYPE_F32, UINT64_MAX / 2, &bytes));
    assert_false(mf_type_row_bytes(99, 32, &bytes));
}

// The packed 6-bit scales, one group set at a time.
static void test_scales(void **state) {
    (void)state;
    static const struct {
        uint8_t packed[12];
        int group, sc, m;
    } cases[] = {
        {{63}, 0, 63, 0},
        {{[3] = 42}, 3, 42, 0},
        {{[5] = 17}, 1, 0, 17},
        {{[8] = 0x5a}, 4, 10, 5},
        {{[0] = 0xc0, [8] = 0x0f}, 4, 63, 0},
        {{[7] = 0xc0, [11] = 0xf0}, 7, 0, 63},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t sc[8], m[8];
        mf_q4_k_scales(cases[i].packed, sc, m);
        for (int g = 0; g < 8; g++) {
            assert_int_equal(sc[g], g == cases[i].group ? cases[i].sc : 0);
            assert_int_equal(m[g], g == cases[i].group ? cases[i].m : 0);
        }
    }
    static const uint8_t three[12] = {[1] = 0x73, [9] = 0x24}; // group 1: 3 and bits 0, group 9: 7 and bits 2; 5: bits 1
    int8_t sc[16];
    mf_q3_k_scales(three, sc);
    for (int g = 0; g < 16; g++)
        assert_int_equal(sc[g], g == 1 ? 3 - 32 : g == 9 ? (7 | 2 << 4) - 32 : g == 5 ? 16 - 32 : -32);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_row_bytes),
        cmocka_unit_test(test_scales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
