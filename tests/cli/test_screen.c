// What a model says commands no terminal, wherever it is cut into pieces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "cli/screen.h"

static void shown(mf_str text, size_t size, mf_buf *out) {
    mf_screen s = {0};
    for (size_t at = 0; at < text.len; at += size)
        mf_screen_text(&s, (mf_str){text.ptr + at, text.len - at < size ? text.len - at : size}, out);
    mf_screen_end(&s, out);
}

static void expect(mf_str text, const char *want) {
    for (size_t size = 1; size <= text.len + 1; size++) {
        mf_buf out = {0};
        shown(text, size, &out);
        assert_int_equal(out.len, text.len ? strlen(want) : 0);
        if (out.len) assert_string_equal(out.data, want);
        free(out.data);
    }
}

static void pictures(void **state) {
    (void)state;
    expect(MF_STR(""), "");
    expect(MF_STR("plain\ttext\n\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80"),
           "plain\ttext\n\xC3\xBC \xE2\x82\xAC \xF0\x9F\x98\x80");
    expect(MF_STR("\033]0;title\a"), "\xE2\x90\x9B]0;title\xE2\x90\x87");
    expect(MF_STR("a\0b\177c"), "a\xE2\x90\x80"
                                "b\xE2\x90\xA1"
                                "c");
    expect(MF_STR("a\r\nb\rc\r\r\n\r"), "a\nb\xE2\x90\x8D"
                                        "c\xE2\x90\x8D\n\xE2\x90\x8D");
    expect(MF_STR("\r\033"), "\xE2\x90\x8D\xE2\x90\x9B");
    expect(MF_STR("\xC2\x9B"
                  "31m"),
           "\xEF\xBF\xBD"
           "31m");
    expect(MF_STR("\x9B"
                  "31m\xC2"),
           "\xEF\xBF\xBD"
           "31m\xEF\xBF\xBD");
    expect(MF_STR("\xE2\x82\033[m"), "\xEF\xBF\xBD\xEF\xBF\xBD\xE2\x90\x9B[m");
}

// Of all two and three bytes nothing comes through that a terminal obeys.
static void nothing_comes_through(void **state) {
    (void)state;
    static const char third[] = {'\n', '\r', '\033', '\x9B', 'a', '\xBF'};
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++)
            for (size_t c = 0; c < sizeof third; c++) {
                char bytes[3] = {(char)a, (char)b, third[c]};
                mf_buf out = {0};
                shown((mf_str){bytes, 3}, 1, &out);
                assert_true(mf_utf8_valid(out.data, out.len, NULL));
                for (size_t i = 0; i < out.len;) {
                    uint32_t cp;
                    i += (size_t)mf_utf8_decode(out.data + i, out.len - i, &cp);
                    assert_true(cp == '\n' || cp == '\t' || (cp >= 0x20 && cp < 0x7F) || cp >= 0xA0);
                }
                free(out.data);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(pictures), cmocka_unit_test(nothing_comes_through)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
