// Memory that was handed out counts as taken before it is written to.
#define _GNU_SOURCE // MADV_NOHUGEPAGE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>

#include "base/cpu.h"
#include "base/promise.h"

#define MB ((size_t)1 << 20)

static char *reserve(size_t bytes) {
    char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(map != MAP_FAILED);
    madvise(map, bytes, MADV_NOHUGEPAGE);
    assert_true(mf_promise_add(map, bytes));
    return map;
}

static void give_back(char *map, size_t bytes) {
    mf_promise_drop(map);
    munmap(map, bytes);
}

static void what_has_no_pages_is_counted(void **state) {
    (void)state;
    assert_int_equal(mf_promise_untouched(), 0);
    char *a = reserve(100 * MB), *b = reserve(3 * MB), *c = reserve(64 * MB);
    assert_int_equal(mf_promise_untouched(), 167 * MB);
    memset(a, 1, 40 * MB);
    memset(b, 1, 3 * MB);
    assert_int_equal(mf_promise_untouched(), 124 * MB);
    give_back(b, 3 * MB);
    assert_int_equal(mf_promise_untouched(), 124 * MB);
    give_back(a, 100 * MB);
    assert_int_equal(mf_promise_untouched(), 64 * MB);
    mf_promise_drop(a); // twice, and what was never noted
    mf_promise_drop(NULL);
    give_back(c, 64 * MB);
    assert_int_equal(mf_promise_untouched(), 0);
}

static void it_is_not_available(void **state) {
    (void)state;
    const size_t all = (size_t)mf_memory_available() + 4096 * MB;
    char *map = reserve(all / MB * MB);
    assert_int_equal(mf_memory_available(), 0);
    give_back(map, all / MB * MB);
    assert_true(mf_memory_available() > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_has_no_pages_is_counted),
                                       cmocka_unit_test(it_is_not_available)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
