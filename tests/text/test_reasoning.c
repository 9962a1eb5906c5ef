// A thought apart from its answer, wherever the text is cut into pieces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/reasoning.h"

static void expect(const char *template_text, bool open, const char *text, const char *thought, const char *answer,
                   bool cut) {
    size_t len = strlen(text);
    for (size_t size = 1; size <= len + 1; size++) {
        mf_reasoning r;
        mf_buf thoughts = {0}, answers = {0};
        mf_reasoning_init(&r, mf_reasoning_marks_of(mf_str_of(template_text)), open);
        for (size_t at = 0; at <= len; at += size) {
            mf_reasoning_text(&r, (mf_str){text + at, len - at < size ? len - at : size});
            assert_true(answers.len == 0 || r.thought.len == 0); // no thought behind an answer
            mf_buf_add(&thoughts, r.thought.data, r.thought.len);
            mf_buf_add(&answers, r.answer.data, r.answer.len);
            r.thought.len = r.answer.len = 0;
        }
        assert_int_equal(mf_reasoning_end(&r), !cut);
        mf_buf_add(&thoughts, r.thought.data, r.thought.len);
        mf_buf_add(&answers, r.answer.data, r.answer.len);
        assert_string_equal(thoughts.data, thought);
        assert_string_equal(answers.data, answer);
        mf_reasoning_free(&r);
        free(thoughts.data);
        free(answers.data);
    }
}

static void parts(void **state) {
    (void)state;
    expect("", false, "plain", "", "plain", false);
    expect("", false, "", "", "", false);
    expect("", false, " \n", "", " \n", false);
    expect("", false, "<think>a b</think>c", "<think>a b</think>", "c", false);
    expect("", false, " \r\n\t<think></think>", " \r\n\t<think></think>", "", false);
    expect("", false, "<think>cut short", "<think>cut short", "", true);
    expect("", false, "<think>a</thin", "<think>a</thin", "", true);
    expect("", false, "<thin", "", "<thin", false);
    expect("", false, "<<think>a</think>", "", "<<think>a</think>", false);
    expect("", false, "<think>a<</think>b", "<think>a<</think>", "b", false);
    expect("", false, "<think>a</</think></think>", "<think>a</</think>", "</think>", false);
    expect("", false, "x<think>y</think>", "", "x<think>y</think>", false);
    expect("", false, "<think>a</think>b<think>c</think>", "<think>a</think>", "b<think>c</think>", false);
    expect("", true, "a</think>b</think>", "a</think>", "b</think>", false);
    expect("", true, "<think>a</think>b", "<think>a</think>", "b", false);
    expect("", true, "a", "a", "", true);
    expect("uses [/THINK] only", false, "[THINK]a[/THINK]b", "[THINK]a[/THINK]", "b", false);
    expect("uses [/THINK] only", false, "<think>a</think>b", "", "<think>a</think>b", false);
    expect("<seed:think>", false, "<seed:think>a</seed:think>b", "<seed:think>a</seed:think>", "b", false);
}

static void white_space_takes_no_time(void **state) {
    (void)state;
    mf_reasoning r;
    mf_reasoning_init(&r, mf_reasoning_marks_of(MF_STR("")), false);
    for (int i = 0; i < 1000000; i++) mf_reasoning_text(&r, MF_STR(" "));
    assert_true(mf_reasoning_end(&r));
    assert_int_equal(r.answer.len, 1000000);
    mf_reasoning_free(&r);
}

static void inner(const char *thought, const char *want) {
    mf_str s = mf_reasoning_inner(mf_reasoning_marks_of(MF_STR("")), mf_str_of(thought));
    assert_true(mf_str_is(s, want));
}

static void inner_texts(void **state) {
    (void)state;
    inner("", "");
    inner(" <think>\n a \n</think>", "a");
    inner("a</think>", "a");
    inner("<think></think>", "");
    inner("<think>", "");
    inner("<think>a", "a");
    inner("</think", "</think");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts), cmocka_unit_test(white_space_takes_no_time),
                                       cmocka_unit_test(inner_texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
