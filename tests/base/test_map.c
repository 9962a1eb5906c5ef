#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/map.h"

#include <stdio.h>
#include <stdlib.h>

static void test_set_and_get(void **state) {
    (void)state;
    enum {
        KEYS = 20000
    };
    char(*keys)[16] = malloc(KEYS * sizeof *keys);
    mf_map map = {0};
    uint32_t value = 0;
    bool existed = true;
    assert_false(mf_map_get(&map, MF_STR("x"), &value));
    for (uint32_t i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof keys[i], "key %u", i);
        assert_true(mf_map_set(&map, mf_str_of(keys[i]), i, &existed));
        assert_false(existed);
    }
    assert_int_equal(map.len, KEYS);
    for (uint32_t i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof key, "key %u", i);
        assert_true(mf_map_get(&map, mf_str_of(key), &value));
        assert_int_equal(value, i);
    }
    assert_false(mf_map_get(&map, MF_STR("key 20000"), &value));
    assert_true(mf_map_set(&map, MF_STR("key 7"), 99, &existed));
    assert_true(existed);
    assert_true(mf_map_get(&map, MF_STR("key 7"), &value));
    assert_int_equal(value, 99);
    assert_int_equal(map.len, KEYS);
    mf_map_free(&map);
    assert_int_equal(map.len, 0);
    free(keys);
}

static void test_odd_keys(void **state) {
    (void)state;
    mf_map map = {0};
    uint32_t value = 0;
    assert_true(mf_map_set(&map, (mf_str){0}, 1, NULL));
    assert_true(mf_map_set(&map, (mf_str){"\0", 1}, 2, NULL));
    assert_true(mf_map_set(&map, (mf_str){"\0\0", 2}, 3, NULL));
    assert_true(mf_map_get(&map, MF_STR(""), &value) && value == 1);
    assert_true(mf_map_get(&map, (mf_str){"\0", 1}, &value) && value == 2);
    assert_true(mf_map_get(&map, (mf_str){"\0\0", 2}, &value) && value == 3);
    assert_int_equal(map.len, 3);
    mf_map_free(&map);
}

static void test_reserve(void **state) {
    (void)state;
    mf_map map = {0};
    assert_true(mf_map_reserve(&map, 1000));
    size_t cap = map.cap;
    char keys[1000][8];
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(keys[i], sizeof keys[i], "%u", i);
        assert_true(mf_map_set(&map, mf_str_of(keys[i]), i, NULL));
    }
    assert_int_equal(map.cap, cap);
    assert_false(mf_map_reserve(&map, SIZE_MAX));
    assert_int_equal(map.len, 1000);
    mf_map_free(&map);
}

// Every single-bit change of an input changes about half of the hash.
static void test_hash_mixes(void **state) {
    (void)state;
    char text[20] = "a hash of bytes!";
    for (size_t len = 1; len <= sizeof text; len++) {
        uint64_t whole = mf_hash(text, len, 5);
        int changed = 0;
        for (size_t b = 0; b < len * 8; b++) {
            text[b / 8] ^= (char)(1 << b % 8);
            int n = __builtin_popcountll(whole ^ mf_hash(text, len, 5));
            assert_in_range(n, 8, 56);
            changed += n;
            text[b / 8] ^= (char)(1 << b % 8);
        }
        assert_in_range(changed / (int)(len * 8), 26, 38);
        assert_true(whole != mf_hash(text, len, 6));
        assert_true(whole != mf_hash(text, len - 1, 5));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_get),
        cmocka_unit_test(test_odd_keys),
        cmocka_unit_test(test_reserve),
        cmocka_unit_test(test_hash_mixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
