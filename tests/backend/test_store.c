// Memory for matrices: places that don't overlap, on a line's boundary, and all of it given back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/device.h"

enum {
    N = 300
};

static size_t size_of(int i) { // most are small, one is larger than a region
    return i == 7 ? (size_t)40 << 20 : (size_t)1 + (size_t)i * 7919 % 400000;
}

static void matrices_do_not_overlap(void **state) {
    (void)state;
    cpu_device device = {0};
    unsigned char *p[N];
    for (int i = 0; i < N; i++) {
        p[i] = mf_cpu_store_alloc(&device, size_of(i));
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 64, 0);
        memset(p[i], i % 251 + 1, size_of(i));
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(p[i][0], i % 251 + 1);
        assert_int_equal(p[i][size_of(i) - 1], i % 251 + 1);
    }
    for (int i = 0; i < N; i++) {
        assert_non_null(device.regions);
        mf_cpu_store_release(&device, p[i * 77 % N]);
    }
    assert_null(device.regions);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    cpu_device device = {0};
    assert_null(mf_cpu_store_alloc(&device, SIZE_MAX / 2));
    assert_null(mf_cpu_store_alloc(&device, SIZE_MAX - 64));
    assert_null(device.regions);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_do_not_overlap),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
