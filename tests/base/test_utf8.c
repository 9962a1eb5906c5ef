#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/utf8.h"

#include <string.h>

static void test_every_code_point(void **state) {
    (void)state;
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        if (cp >= 0xD800 && cp <= 0xDFFF) continue;
        char text[4];
        uint32_t back = 0;
        int n = mf_utf8_encode(cp, text);
        if (mf_utf8_decode(text, 4, &back) != n || back != cp) fail_msg("U+%04X", (unsigned)cp);
        for (int cut = 1; cut < n; cut++) {
            if (mf_utf8_decode(text, (size_t)cut, &back) != -1) fail_msg("U+%04X cut to %d bytes", (unsigned)cp, cut);
            if (mf_utf8_incomplete_tail(text, (size_t)cut) != (size_t)cut) fail_msg("tail of U+%04X", (unsigned)cp);
        }
        if (mf_utf8_incomplete_tail(text, (size_t)n) != 0) fail_msg("tail of U+%04X", (unsigned)cp);
    }
}

// All two-byte starts against the table of RFC 3629.
static void test_every_pair_of_bytes(void **state) {
    (void)state;
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            char text[4] = {(char)a, (char)b, (char)0x80, (char)0x80};
            int want = 0;
            unsigned low = 0x80, high = 0xBF;
            if (a == 0xE0) low = 0xA0;
            if (a == 0xED) high = 0x9F;
            if (a == 0xF0) low = 0x90;
            if (a == 0xF4) high = 0x8F;
            if (a >= 0xC2 && a <= 0xDF) want = 2;
            if (a >= 0xE0 && a <= 0xEF) want = 3;
            if (a >= 0xF0 && a <= 0xF4) want = 4;
            if (b < low || b > high) want = 0;
            if (a < 0x80) want = 1;
            uint32_t cp;
            assert_int_equal(mf_utf8_decode(text, 4, &cp), want);
            assert_int_equal(mf_utf8_decode(text, 2, &cp), want > 2 ? -1 : want);
        }
    }
}

static void test_valid(void **state) {
    (void)state;
    size_t bad = 99;
    assert_true(mf_utf8_valid("", 0, &bad));
    assert_true(mf_utf8_valid("a\xc3\xa9\xf0\x9f\x98\x80", 7, &bad));
    assert_int_equal(bad, 99);
    assert_false(mf_utf8_valid("a\xc3\xa9\xff", 4, &bad));
    assert_int_equal(bad, 3);
    assert_false(mf_utf8_valid("ab\xf0\x9f\x98", 5, &bad));
    assert_int_equal(bad, 2);
    assert_false(mf_utf8_valid("\xed\xa0\x80", 3, NULL)); // a surrogate
    assert_false(mf_utf8_valid("\xc0\x80", 2, NULL));     // an overlong NUL
}

static void test_incomplete_tail(void **state) {
    (void)state;
    assert_int_equal(mf_utf8_incomplete_tail("", 0), 0);
    assert_int_equal(mf_utf8_incomplete_tail("abc", 3), 0);
    assert_int_equal(mf_utf8_incomplete_tail("ab\xf0\x9f\x98", 5), 3);
    assert_int_equal(mf_utf8_incomplete_tail("ab\xe2\x82", 4), 2);
    assert_int_equal(mf_utf8_incomplete_tail("ab\xc3", 3), 1);
    assert_int_equal(mf_utf8_incomplete_tail("ab\xff", 3), 0); // no start of a character
    assert_int_equal(mf_utf8_incomplete_tail("\x80\x80\x80\x80", 4), 0);
    assert_int_equal(mf_utf8_incomplete_tail("ab\xe0\x80", 4), 0); // overlong: wrong, not incomplete
}

static void test_clean(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"plain text", "plain text"},
        {"tab\tnewline\n\x1b[1m", "tab?newline??[1m"},
        {"\xc3\xa9\xff\xc3", "\xc3\xa9?"},
        {"\xe2\x80\xa8 \xc2\x9b", "? ?"},
        {"\xe2\x80\xae\xe2\x81\xa6\xd8\x9c.", "???."}, // marks of direction
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        strcpy(text, cases[i][0]);
        size_t len = mf_utf8_clean(text, strlen(text));
        assert_string_equal(text, cases[i][1]);
        assert_int_equal(len, strlen(cases[i][1]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_point),
        cmocka_unit_test(test_every_pair_of_bytes),
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_incomplete_tail),
        cmocka_unit_test(test_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
