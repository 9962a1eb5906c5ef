#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash128.h"

// SMHasher's check of an implementation: every length up to 255 under every seed, hashed once more.
static void test_as_published(void **state) {
    (void)state;
    uint8_t key[256], all[256 * 16];
    for (uint32_t i = 0; i < 256; i++) {
        mf_hash128 h;
        key[i] = (uint8_t)i;
        h = mf_hash128_of(key, i, 256 - i);
        memcpy(all + i * 16, &h, 16);
    }
    assert_true((uint32_t)mf_hash128_of(all, sizeof all, 0).word[0] == 0x6384BA69);
}

// Known values: of nothing, and of a text.
static void test_values(void **state) {
    (void)state;
    static const char text[] = "The quick brown fox jumps over the lazy dog";
    mf_hash128 none = mf_hash128_of(NULL, 0, 0), fox = mf_hash128_of(text, sizeof text - 1, 0);
    assert_true(none.word[0] == 0 && none.word[1] == 0);
    assert_true(fox.word[0] == 0xe34bbc7bbc071b6cU && fox.word[1] == 0x7a433ca9c49a9347U);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_published), cmocka_unit_test(test_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
