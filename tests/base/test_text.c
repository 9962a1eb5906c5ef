#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void test_buf(void **state) {
    (void)state;
    mf_buf buf = {0};
    mf_buf_add(&buf, NULL, 0);
    assert_string_equal(buf.data, "");
    mf_buf_text(&buf, "one ");
    mf_buf_char(&buf, '2');
    mf_buf_str(&buf, MF_STR(" three"));
    mf_buf_printf(&buf, " %d %s", 4, "five");
    assert_string_equal(buf.data, "one 2 three 4 five");
    assert_int_equal(buf.len, 18);
    char wide[1001];
    memset(wide, 'w', 1000);
    wide[1000] = 0;
    mf_buf_printf(&buf, "%s|%s", wide, wide); // past the size that printf tries on the stack
    assert_int_equal(buf.len, 18 + 2001);
    assert_int_equal(buf.data[18 + 1000], '|');
    assert_false(buf.failed);
    free(buf.data);
}

static void test_buf_limit(void **state) {
    (void)state;
    mf_buf buf = {.limit = 5};
    mf_buf_text(&buf, "12345");
    assert_false(buf.failed);
    mf_buf_text(&buf, "");
    assert_false(buf.failed);
    mf_buf_char(&buf, '6');
    assert_true(buf.failed);
    buf.limit = 100;
    mf_buf_char(&buf, '6');
    mf_buf_printf(&buf, "%d", 7);
    assert_string_equal(buf.data, "12345");
    free(buf.data);
    mf_buf over = {0};
    mf_buf_add(&over, "x", SIZE_MAX);
    assert_true(over.failed);
    free(over.data);
}

static void test_str(void **state) {
    (void)state;
    assert_true(mf_str_eq((mf_str){0}, MF_STR("")));
    assert_true(mf_str_is(MF_STR("abc"), "abc"));
    assert_false(mf_str_is(MF_STR("abc"), "abd"));
    assert_false(mf_str_is(MF_STR("abc"), "ab"));
    assert_true(mf_str_starts(MF_STR("abc"), MF_STR("ab")));
    assert_true(mf_str_starts(MF_STR("abc"), (mf_str){0}));
    assert_false(mf_str_starts(MF_STR("ab"), MF_STR("abc")));
}

static void test_parse_i64(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-0", 0},
                {"+7", 7},
                {"0012", 12},
                {"-9223372036854775808", INT64_MIN},
                {"9223372036854775807", INT64_MAX}};
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      " 1",
                                      "1 ",
                                      "0x10",
                                      "1.0",
                                      "1e3",
                                      "--1",
                                      "1_0",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999999"};
    int64_t value = 0;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(mf_parse_i64(mf_str_of(good[i].text), &value));
        assert_int_equal(value, good[i].value);
    }
    value = 42;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(mf_parse_i64(mf_str_of(bad[i]), &value));
    assert_false(mf_parse_i64((mf_str){"1\0", 2}, &value));
    assert_int_equal(value, 42);
}

static void check_f64(void) {
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"0", 0},
        {"1.5", 1.5},
        {"+.5", 0.5},
        {"5.", 5},
        {"-2e-3", -2e-3},
        {"1E+2", 100},
        {"0.1", 0.1},
        {"1e-400", 0},
        {"0e99999999999999999999", 0},
        {"4.9e-324", 0x1p-1074},
        {"2.4703282292062327e-324", 0},
        {"2.4703282292062328e-324", 0x1p-1074},
        {"2.2250738585072011e-308", 0x0.fffffffffffffp-1022},
        {"1.7976931348623157e308", 0x1.fffffffffffffp1023},
        {"179769313486231580793e288", 0x1.fffffffffffffp1023},
        {"9007199254740993", 9007199254740992.0},
        {"9007199254740993.00000000000000000000000000000001", 9007199254740994.0},
        {"0.000000000000000000000000000001e30", 1},
    };
    static const char *const bad[] = {"",
                                      ".",
                                      "-",
                                      "e5",
                                      "1e",
                                      "1e+",
                                      " 1",
                                      "1 ",
                                      "0x1p3",
                                      "inf",
                                      "nan",
                                      "1,5",
                                      "1.5.",
                                      "--1",
                                      "1e400",
                                      "-1e309",
                                      "1e99999999999999999999999999"};
    double value = 0;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(mf_parse_f64(mf_str_of(good[i].text), &value));
        assert_true(value == good[i].value);
    }
    value = 42;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(mf_parse_f64(mf_str_of(bad[i]), &value));
    assert_true(value == 42);
    assert_true(mf_parse_f64(MF_STR("-0"), &value) && value == 0 && signbit(value));
}

static void test_parse_f64(void **state) {
    (void)state;
    check_f64();
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"};
    for (size_t i = 0; i < 3; i++)
        if (setlocale(LC_NUMERIC, locales[i])) check_f64();
    setlocale(LC_NUMERIC, "C");
}

// Texts of a million digits take the way through the sticky digit.
static void test_parse_f64_of_long_texts(void **state) {
    (void)state;
    enum {
        DIGITS = 1000000
    };
    char *text = malloc(DIGITS + 64);
    double value = 0;
    memset(text, '0', DIGITS);
    memcpy(text, "1.", 2);
    assert_true(mf_parse_f64((mf_str){text, DIGITS}, &value) && value == 1);
    memcpy(text, "9007199254740993.", 17); // halfway: only the last digit breaks the tie
    assert_true(mf_parse_f64((mf_str){text, DIGITS}, &value) && value == 9007199254740992.0);
    text[DIGITS - 1] = '1';
    assert_true(mf_parse_f64((mf_str){text, DIGITS}, &value) && value == 9007199254740994.0);
    memset(text, '0', DIGITS);
    memcpy(text, "0.", 2);
    int n = snprintf(text + DIGITS, 64, "25e%d", DIGITS - 1);
    assert_true(mf_parse_f64((mf_str){text, DIGITS + (size_t)n}, &value) && value == 2.5);
    memset(text, '7', DIGITS);
    assert_false(mf_parse_f64((mf_str){text, DIGITS}, &value));
    n = snprintf(text + DIGITS, 64, "e-%d", DIGITS);
    assert_true(mf_parse_f64((mf_str){text, DIGITS + (size_t)n}, &value) && value == 7.0 / 9);
    free(text);
}

static void test_edit_distance(void **state) {
    (void)state;
    assert_int_equal(mf_edit_distance(MF_STR("kitten"), MF_STR("sitting")), 3);
    assert_int_equal(mf_edit_distance(MF_STR(""), MF_STR("abc")), 3);
    assert_int_equal(mf_edit_distance(MF_STR("abc"), (mf_str){0}), 3);
    assert_int_equal(mf_edit_distance(MF_STR("--ctx-size"), MF_STR("--ctx-szie")), 1);
    assert_int_equal(mf_edit_distance(MF_STR("same"), MF_STR("same")), 0);
    char longer[66];
    memset(longer, 'x', 65);
    assert_int_equal(mf_edit_distance((mf_str){longer, 65}, MF_STR("x")), 64);
    assert_int_equal(mf_edit_distance((mf_str){longer, 64}, (mf_str){longer, 64}), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_buf),           cmocka_unit_test(test_buf_limit),
        cmocka_unit_test(test_str),           cmocka_unit_test(test_parse_i64),
        cmocka_unit_test(test_parse_f64),     cmocka_unit_test(test_parse_f64_of_long_texts),
        cmocka_unit_test(test_edit_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
