#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/utf8.h"

#include <string.h>

static void test_fail_fills_the_error(void **state) {
    (void)state;
    mf_error err = {0};
    assert_false(mf_fail(&err, MF_ERR_FORMAT, "tensor '%s': %d dimensions, at most 4", "blk.0", 9));
    assert_int_equal(err.code, MF_ERR_FORMAT);
    assert_string_equal(err.text, "tensor 'blk.0': 9 dimensions, at most 4");
    assert_false(mf_fail(NULL, MF_ERR_FORMAT, "nobody listens"));
    assert_false(mf_fail_prefix(NULL, "nobody"));
}

static void test_prefix(void **state) {
    (void)state;
    mf_error err = {0};
    mf_fail(&err, MF_ERR_IO, "short read");
    assert_false(mf_fail_prefix(&err, "%s", "model.gguf"));
    assert_int_equal(err.code, MF_ERR_IO);
    assert_string_equal(err.text, "model.gguf: short read");
    assert_false(mf_fail(&err, err.code, "again: %s", err.text)); // the old sentence may be an argument
    assert_string_equal(err.text, "again: model.gguf: short read");
}

static void test_text_from_outside_is_made_harmless(void **state) {
    (void)state;
    mf_error err = {0};
    mf_fail(&err, MF_ERR_FORMAT, "key '%s'", "a\nb\x1b[31m\x7f\xff\xc3\xa9\xc2\x85");
    assert_string_equal(err.text, "key 'a?b?[31m??\xc3\xa9?'");
}

static void test_long_text_is_cut_at_a_character(void **state) {
    (void)state;
    mf_error err = {0};
    char text[1200];
    for (size_t shift = 0; shift < 3; shift++) {
        memset(text, 'x', shift);
        for (size_t i = shift; i + 3 < sizeof text; i += 3) memcpy(text + i, "\xe2\x82\xac", 4);
        mf_fail(&err, MF_ERR_FORMAT, "%s", text);
        size_t len = strlen(err.text);
        assert_in_range(len, sizeof err.text - 4, sizeof err.text - 1);
        assert_true(mf_utf8_valid(err.text, len, NULL));
        assert_memory_equal(err.text, text, len);
        mf_fail_prefix(&err, "%s", "prefix");
        assert_memory_equal(err.text, "prefix: ", 8);
        assert_true(mf_utf8_valid(err.text, strlen(err.text), NULL));
    }
}

static void test_memory(void **state) {
    (void)state;
    mf_error err = {0};
    assert_false(mf_fail_memory(&err, 12345, "the KV cache"));
    assert_int_equal(err.code, MF_ERR_MEMORY);
    assert_string_equal(err.text, "out of memory: 12345 bytes for the KV cache");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_fills_the_error),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_text_from_outside_is_made_harmless),
        cmocka_unit_test(test_long_text_is_cut_at_a_character),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
