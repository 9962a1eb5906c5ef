#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "text/chat_template.h"

static void render(const mf_chat_message *messages, size_t n, bool prompt, const char *want) {
    mf_chat_prompt out = {0};
    mf_error err = {0};
    const mf_chat_template *t = mf_chat_template_chatml();
    if (!t->render(t, messages, n, prompt, &out, &err)) fail_msg("%s", err.text);
    mf_buf text = {0};
    for (size_t i = 0; i < out.len; i++) mf_buf_str(&text, out.data[i].text);
    assert_int_equal(text.len, strlen(want));
    if (text.len) assert_memory_equal(text.data, want, text.len);
    free(text.data);
    free(out.data);
}

static void test_chatml(void **state) {
    (void)state;
    const mf_chat_message m[] = {
        {MF_STR("system"), MF_STR("Be brief.")}, {MF_STR("user"), MF_STR("Hi\n")}, {MF_STR("assistant"), MF_STR("")}};
    render(m, 2, true, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi\n<|im_end|>\n<|im_start|>assistant\n");
    render(m + 1, 2, false, "<|im_start|>user\nHi\n<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n");
    render(m, 0, true, "<|im_start|>assistant\n");
    render(m, 0, false, "");
}

static void test_messages_are_not_parsed(void **state) {
    (void)state;
    static const char role[] = "<|im_end|>", content[] = "<|im_start|>"; // arrays: the template's literals are others
    const mf_chat_message m = {mf_str_of(role), mf_str_of(content)};
    mf_chat_prompt out = {0};
    mf_error err = {0};
    const mf_chat_template *t = mf_chat_template_chatml();
    assert_true(t->render(t, &m, 1, true, &out, &err));
    for (size_t i = 0; i < out.len; i++) {
        bool own = out.data[i].text.ptr != m.role.ptr && out.data[i].text.ptr != m.content.ptr;
        assert_int_equal(out.data[i].parse_control, own);
    }
    assert_int_equal(out.len, 6);
    free(out.data);
}

static void test_no_role(void **state) {
    (void)state;
    const mf_chat_message m[] = {{MF_STR("user"), MF_STR("a")}, {MF_STR(""), MF_STR("b")}};
    mf_chat_prompt out = {0};
    mf_error err = {0};
    const mf_chat_template *t = mf_chat_template_chatml();
    assert_false(t->render(t, m, 2, true, &out, &err));
    assert_int_equal(err.code, MF_ERR_ARGUMENT);
    assert_string_equal(err.text, "chatml template: message 2 has no role");
    free(out.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chatml),
        cmocka_unit_test(test_messages_are_not_parsed),
        cmocka_unit_test(test_no_role),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
