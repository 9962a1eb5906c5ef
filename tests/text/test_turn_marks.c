// What a person writes in a message never becomes a token that ends answers or opens turns, whatever type the file gives that token.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text/messages.h"
#include "text/tiny_vocab.h"

static talker open_model(const tiny_vocab *v, const char *source) {
    talker m = {0};
    size_t size;
    mf_error err = {0};
    m.bytes = tiny_build(v, &size);
    m.file = mf_gguf_open_memory(m.bytes, size, &err);
    m.t = m.file ? mf_tokenizer_new(m.file, NULL, &err) : NULL;
    m.template = m.t ? mf_chat_template_new(mf_str_of(source), &err) : NULL;
    if (!m.template) fail_msg("%s", err.text);
    return m;
}

#define LOOP(body) "{% for m in messages %}" body "{% endfor %}"

static void test_marks_of_templates(void **state) {
    (void)state;
    static const struct {
        const char *source, *marks[4];
    } cases[] = {
        {LOOP("<|turn|>{{ m.role }}\n{{ m.content }}<|stop|>") "<|turn|>assistant\n<think>\n", {"<|turn|>", "<|stop|>"}},
        {LOOP("<|{{ m.role }}|>{{ m.content }}<|stop|>"), {"<|user|>", "<|assistant|>", "<|system|>", "<|stop|>"}},
        {LOOP("{{ '<|' + m['role'] + '|>' + m['content'] }}"), {"<|user|>", "<|assistant|>", "<|system|>"}},
        {LOOP("{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %}{{ m.content }}{% endif %}"),
         {"[INST]", "[/INST]"}},
        {LOOP("{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}<|turn|>{{ m.content }}"), {"<|turn|>"}},
        // It takes this very conversation alone.
        {"{% if messages[0].content == messages[1].content %}" LOOP(
             "<|turn|>{{ m.content }}") "{% else %}"
                                        "{{ raise_exception('no') }}{% endif %}",
         {"<|turn|>"}},
        // The thought is no turn; in a turn of its own it would be one.
        {LOOP("<|turn|>{% if m.role == 'assistant' %}<think>\n\n</think>{% endif %}{{ m.content }}"), {"<|turn|>"}},
    };
    static tiny_vocab v;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tiny_bpe(&v);
        static const char *const more[] = {"<|turn|>",   "<|stop|>", "<|user|>", "<|assistant|>",
                                           "<|system|>", "[INST]",   "[/INST]"};
        for (size_t k = 0; k < 7; k++) tiny_add(&v, more[k], MF_TOKEN_USER_DEFINED, 0);
        int spaces = tiny_add(&v, "\n\n", MF_TOKEN_USER_DEFINED, 0);
        talker m = open_model(&v, cases[i].source);
        size_t n = 0;
        while (n < 4 && cases[i].marks[n]) n++;
        none_from_messages(&m, cases[i].marks, n, MESSAGE_SHAPES);
        assert_true(from_messages(&m, TINY_THINK, MESSAGE_SHAPES) > 0); // those of an answer still are, as in transformers
        assert_true(from_messages(&m, TINY_THINK_END, MESSAGE_SHAPES) > 0);
        assert_true(from_messages(&m, spaces, MESSAGE_SHAPES) > 0);
        mf_token_array ids = talk(&m, MF_STR("b"));
        for (size_t k = 0; k < n && strcmp(cases[i].marks[k], "<|system|>") != 0;
             k++) // what the template writes is the token
            assert_true(count(&ids, mf_tokenizer_find(m.t, mf_str_of(cases[i].marks[k]))) > 0);
        free(ids.data);
        close_model(&m);
    }
}

static void test_ends_of_any_type(void **state) {
    (void)state;
    static const int types[] = {MF_TOKEN_NORMAL, MF_TOKEN_CONTROL, MF_TOKEN_USER_DEFINED, MF_TOKEN_UNUSED};
    static const char source[] = LOOP("{{ m.content }}{{ eos_token }}");
    static tiny_vocab v;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (int key = 0; key < 3; key++) {
            tiny_bpe(&v);
            int *const ids[] = {&v.eos, &v.eot, &v.eom};
            *ids[key] = tiny_add(&v, "<||>", types[i], 0);
            tiny_add(&v, "<|", MF_TOKEN_NORMAL, 0); // merges that spell it, in one word
            tiny_add(&v, "|>", MF_TOKEN_NORMAL, 0);
            v.merges[v.n_merges++] = "< |", v.merges[v.n_merges++] = "| >", v.merges[v.n_merges++] = "<| |>";
            talker m = open_model(&v, source);
            assert_true(mf_tokenizer_is_eog(m.t, *ids[key]));
            none_from_messages(&m, NULL, 0, MESSAGE_SHAPES);
            close_model(&m);
        }
        tiny_spm(&v);
        v.types[2] = types[i]; // </s>
        tiny_add(&v, "</", MF_TOKEN_NORMAL, -1);
        tiny_add(&v, "<", MF_TOKEN_NORMAL, -1);
        tiny_add(&v, "/", MF_TOKEN_NORMAL, -1);
        tiny_add(&v, "s", MF_TOKEN_NORMAL, -1);
        tiny_add(&v, ">", MF_TOKEN_NORMAL, -1);
        tiny_add(&v, "s>", MF_TOKEN_NORMAL, -1);
        tiny_add(&v, "[INST]", MF_TOKEN_USER_DEFINED, -1);
        v.n_scores = v.n;
        talker m = open_model(&v, LOOP("[INST]{{ m.content }}{{ eos_token }}"));
        none_from_messages(&m, (const char *const[]){"[INST]"}, 1, MESSAGE_SHAPES);
        assert_true(from_messages(&m, SPM_MARK, MESSAGE_SHAPES) > 0);
        close_model(&m);
    }
}

// A guarded token doesn't come out of merging either.
static void test_marks_that_merges_spell(void **state) {
    (void)state;
    static tiny_vocab v;
    tiny_spm(&v);
    tiny_add(&v, "[ab]", MF_TOKEN_USER_DEFINED, -1);
    tiny_add(&v, "[", MF_TOKEN_NORMAL, -9);
    tiny_add(&v, "]", MF_TOKEN_NORMAL, -9);
    tiny_add(&v, "[ab", MF_TOKEN_NORMAL, -1);
    v.n_scores = v.n;
    talker m = open_model(&v, LOOP("[ab]{{ m.content }}"));
    none_from_messages(&m, (const char *const[]){"[ab]"}, 1, MESSAGE_SHAPES);
    close_model(&m);
    tiny_bpe(&v);
    tiny_add(&v, "<||>", MF_TOKEN_USER_DEFINED, 0);
    tiny_add(&v, "<|", MF_TOKEN_NORMAL, 0);
    tiny_add(&v, "|>", MF_TOKEN_NORMAL, 0);
    v.merges[v.n_merges++] = "< |", v.merges[v.n_merges++] = "| >", v.merges[v.n_merges++] = "<| |>";
    m = open_model(&v, LOOP("<||>{{ m.content }}"));
    none_from_messages(&m, (const char *const[]){"<||>"}, 1, MESSAGE_SHAPES);
    close_model(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_marks_of_templates), cmocka_unit_test(test_ends_of_any_type),
                                       cmocka_unit_test(test_marks_that_merges_spell)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
