#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"

#include <string.h>

// The known answers that the authors' Random123 distribution publishes for philox4x32-10.
static void test_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t out[4];
        mf_philox(cases[i].counter, cases[i].key, out);
        assert_memory_equal(out, cases[i].out, sizeof out);
    }
}

static void test_uniform(void **state) {
    (void)state;
    double sum = 0;
    int tenths[10] = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        double u = mf_random_uniform(42, i / 3, i % 3);
        assert_true(u >= 0 && u < 1);
        assert_true(u * 0x1p53 == (double)(uint64_t)(u * 0x1p53));
        sum += u;
        tenths[(int)(u * 10)]++;
    }
    assert_true(sum > 49700 && sum < 50300);
    for (int i = 0; i < 10; i++) assert_in_range(tenths[i], 9600, 10400);
    // A draw depends on its three numbers and on nothing else: 53 bits of the block's first two words.
    assert_true(mf_random_uniform(0, 0, 0) == (double)(0xe169c58d6627e8d5 >> 11) * 0x1p-53);
    assert_true(mf_random_uniform(1, 2, 3) != mf_random_uniform(1, 3, 2));
    assert_true(mf_random_uniform(1, (uint64_t)1 << 40, 0) != mf_random_uniform(1, 0, 0));
    assert_true(mf_random_uniform((uint64_t)1 << 40, 0, 0) != mf_random_uniform(0, 0, 0));
}

static void test_seed(void **state) {
    (void)state;
    assert_true(mf_random_seed() != mf_random_seed());
}

static void test_clock(void **state) {
    (void)state;
    uint64_t a = mf_clock_ns(), b = a;
    for (int i = 0; i < 1000000 && b == a; i++) b = mf_clock_ns();
    assert_true(b > a);
    assert_true(mf_clock_seconds(1000000000, 3500000000u) == 2.5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
