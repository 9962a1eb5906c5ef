#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

// The sanitizers' allocators end the program instead of returning NULL unless told otherwise.
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

// A size that no machine gives, taken at run time so that the compiler does not warn of it.
static volatile size_t huge = SIZE_MAX / 2;

static void test_alloc(void **state) {
    (void)state;
    uint64_t *numbers = mf_alloc(1000, sizeof *numbers);
    assert_non_null(numbers);
    for (int i = 0; i < 1000; i++) assert_int_equal(numbers[i], 0);
    numbers[999] = 7;
    numbers = mf_resize(numbers, 100000, sizeof *numbers);
    assert_non_null(numbers);
    assert_int_equal(numbers[999], 7);
    assert_null(mf_resize(numbers, SIZE_MAX / 4, 8)); // the product overflows; numbers stays
    assert_int_equal(numbers[999], 7);
    free(numbers);
    assert_null(mf_alloc(SIZE_MAX / 4, 8));
    assert_null(mf_alloc(1, huge));
    void *empty = mf_alloc(0, 8);
    assert_non_null(empty);
    empty = mf_resize(empty, 0, 8);
    assert_non_null(empty);
    free(empty);
}

static void test_aligned(void **state) {
    (void)state;
    const size_t aligns[] = {1, 64, 4096};
    for (size_t i = 0; i < 3; i++) {
        void *p = mf_alloc_aligned(100, aligns[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (aligns[i] < 64 ? 64 : aligns[i]), 0);
        memset(p, 1, 100);
        free(p);
    }
    assert_null(mf_alloc_aligned(huge, 64));
}

static void test_copy_and_sizes(void **state) {
    (void)state;
    char *copy = mf_copy_text("ab\0cd", 5);
    assert_memory_equal(copy, "ab\0cd\0", 6);
    free(copy);
    copy = mf_copy_text(NULL, 0);
    assert_string_equal(copy, "");
    free(copy);
    assert_null(mf_copy_text("x", SIZE_MAX));
    size_t out;
    assert_true(mf_mul_size(3, 4, &out) && out == 12);
    assert_false(mf_mul_size(SIZE_MAX, 2, &out));
    assert_true(mf_add_size(3, 4, &out) && out == 7);
    assert_false(mf_add_size(SIZE_MAX, 1, &out));
    assert_int_equal(mf_align_up(0, 64), 0);
    assert_int_equal(mf_align_up(65, 64), 128);
}

static void test_arena_blocks_are_apart(void **state) {
    (void)state;
    enum {
        BLOCKS = 3000
    };
    mf_arena arena = {0};
    unsigned char *blocks[BLOCKS];
    size_t sizes[BLOCKS];
    unsigned random = 1;
    for (int i = 0; i < BLOCKS; i++) {
        random = random * 1103515245 + 12345;
        sizes[i] = i % 500 == 499 ? 100000 : random >> 16 & 255;
        blocks[i] = mf_arena_alloc(&arena, sizes[i], 1);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % _Alignof(max_align_t), 0);
        for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(blocks[i][k], 0);
        if (sizes[i]) memset(blocks[i], i & 255, sizes[i]);
    }
    for (int i = 0; i < BLOCKS; i++)
        for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(blocks[i][k], i & 255);
    mf_arena_free(&arena);
    assert_int_equal(arena.used, 0);
    assert_string_equal(mf_arena_copy(&arena, "again", 5), "again");
    assert_string_equal(mf_arena_copy(&arena, NULL, 0), "");
    mf_arena_free(&arena);
}

static void test_arena_limits(void **state) {
    (void)state;
    mf_arena arena = {.limit = 4096};
    assert_non_null(mf_arena_alloc(&arena, 4000, 1));
    assert_null(mf_arena_alloc(&arena, 200, 1));
    assert_non_null(mf_arena_alloc(&arena, 64, 1));
    assert_null(mf_arena_alloc(&arena, SIZE_MAX / 2, 4));
    assert_null(mf_arena_alloc(&arena, SIZE_MAX, 1));
    assert_null(mf_arena_copy(&arena, "x", SIZE_MAX));
    mf_arena_free(&arena);
    assert_int_equal(arena.limit, 4096);
    assert_null(mf_arena_alloc(&arena, 4097, 1));
    mf_arena unlimited = {0};
    assert_null(mf_arena_alloc(&unlimited, huge, 1));
    assert_null(mf_arena_alloc(&unlimited, SIZE_MAX, 1));
    assert_null(unlimited.chunks);
}

static void test_array(void **state) {
    (void)state;
    mf_array(int) a = {0};
    for (int i = 0; i < 10000; i++) assert_true(mf_array_push(&a, i * 3));
    assert_int_equal(a.len, 10000);
    for (int i = 0; i < 10000; i++) assert_int_equal(a.data[i], i * 3);
    size_t cap = a.cap;
    assert_true(mf_array_reserve(&a, 5));
    assert_int_equal(a.cap, cap);
    assert_false(mf_array_reserve(&a, SIZE_MAX / 2)); // the bytes overflow
    assert_false(mf_array_reserve(&a, huge / 4));     // they fit, the machine has not got them
    assert_int_equal(a.cap, cap);
    assert_int_equal(a.data[9999], 29997);
    free(a.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc),          cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_copy_and_sizes), cmocka_unit_test(test_arena_blocks_are_apart),
        cmocka_unit_test(test_arena_limits),   cmocka_unit_test(test_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
