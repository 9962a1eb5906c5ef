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

// SipHash-1-3, against the hash of bytes in CPython 3.11, whose key follows from PYTHONHASHSEED (here 7).
static void test_keyed_hash(void **state) {
    (void)state;
    const mf_hash_key key = {{0x12C874A1806F0E3D, 0x470A89D2F9D2784F}};
    static const struct {
        size_t len;
        uint64_t hash;
    } cases[] = {{1, 0x7E255BF0210F9775},  {7, 0x987CFD95990DD34B},  {8, 0x8450991E34FE08DE}, {9, 0xA0A0A12BD6C44F35},
                 {15, 0x1517E7DC54A43F5B}, {16, 0x642BBA6A6C24EBF5}, {20, 0xEED21668D559EC9C}};
    uint8_t bytes[20];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)i;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(mf_hash_keyed(bytes, cases[i].len, key) == cases[i].hash);
}

// No two maps agree about where a key belongs.
static void test_every_map_has_its_own_key(void **state) {
    (void)state;
    mf_map a = {0}, b = {0};
    assert_true(mf_map_set(&a, MF_STR("x"), 1, NULL) && mf_map_set(&b, MF_STR("x"), 1, NULL));
    assert_memory_not_equal(&a.key, &b.key, sizeof a.key);
    assert_true(mf_hash_keyed("x", 1, a.key) != mf_hash_keyed("x", 1, b.key));
    mf_map_free(&a);
    mf_map_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_and_get), cmocka_unit_test(test_odd_keys),
        cmocka_unit_test(test_reserve),     cmocka_unit_test(test_hash_mixes),
        cmocka_unit_test(test_keyed_hash),  cmocka_unit_test(test_every_map_has_its_own_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
