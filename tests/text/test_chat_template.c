// Chat templates: where they come from, the rules on top of plain rendering, and that no text of a person ends a turn.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "text/chat_template.h"
#include "text/tiny_vocab.h"

static mf_arena arena;

static const mf_json *json(const char *text) {
    mf_error err = {0};
    const mf_json *value = text ? mf_json_parse(&arena, mf_str_of(text), &err) : NULL;
    if (text && !value) fail_msg("%s", err.text);
    return value;
}

static mf_chat_template *compile(const char *source) {
    mf_error err = {0};
    mf_chat_template *t = source ? mf_chat_template_new(mf_str_of(source), &err) : mf_chat_template_chatml(&err);
    if (!t) fail_msg("%s", err.text);
    return t;
}

// The rendered text, to be freed; NULL with the error where it is refused.
static char *rendered(const char *source, mf_chat_request *request, const char **note, mf_error *err) {
    mf_chat_template *t = compile(source);
    mf_chat_prompt prompt;
    bool ok = mf_chat_template_render(t, request, &prompt, err);
    char *text = ok ? mf_copy_text(prompt.output.text.data ? prompt.output.text.data : "", prompt.output.text.len) : NULL;
    if (note) *note = prompt.note;
    mf_chat_prompt_free(&prompt);
    mf_chat_template_free(t);
    return text;
}

static void gives(const char *source, mf_chat_request request, const char *want) {
    mf_error err = {0};
    char *text = rendered(source, &request, NULL, &err);
    if (!text) fail_msg("%s", err.text);
    assert_string_equal(text, want);
    free(text);
}

static void refuses(const char *source, mf_chat_request request, const char *part) {
    mf_error err = {0};
    assert_null(rendered(source, &request, NULL, &err));
    if (!strstr(err.text, part)) fail_msg("'%s' lacks '%s'", err.text, part);
}

static void test_chatml(void **state) {
    (void)state;
    const mf_chat_message m[] = {
        {MF_STR("system"), MF_STR("Be brief.")}, {MF_STR("user"), MF_STR("Hi\n")}, {MF_STR("assistant"), MF_STR("")}};
    mf_chat_request r = {.messages = mf_chat_messages(&arena, m, 2, NULL), .generation_prompt = true};
    gives(NULL, r, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi\n<|im_end|>\n<|im_start|>assistant\n");
    r = (mf_chat_request){.messages = mf_chat_messages(&arena, m + 1, 2, NULL)};
    gives(NULL, r, "<|im_start|>user\nHi\n<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n");
    r = (mf_chat_request){.messages = mf_chat_messages(&arena, m, 0, NULL), .generation_prompt = true};
    gives(NULL, r, "<|im_start|>assistant\n");
    r.generation_prompt = false;
    gives(NULL, r, "");
    const mf_chat_message no_role = {MF_STR(""), MF_STR("b")};
    mf_error err = {0};
    assert_null(mf_chat_messages(&arena, &no_role, 1, &err));
    assert_string_equal(err.text, "message 1 has no role");
}

static void test_variables(void **state) {
    (void)state;
    static const char source[] =
        "{{ bos_token }}|{{ eos_token }}|{{ tools }}|{{ documents }}|{{ add_generation_prompt }}|{{ x }}";
    mf_chat_request r = {.messages = json("[]"), .bos = "<s>", .eos = "</s>"};
    gives(source, r, "<s>|</s>|None|None|False|");
    r.bos = NULL;
    r.tools = json("[{\"a\": 1}]");
    r.variables = json("{\"x\": false, \"eos_token\": \"E\", \"documents\": []}");
    gives(source, r, "|E|[{'a': 1}]|[]|False|False");
    r.variables = json("[]");
    refuses(source, r, "the template's variables are not an object");
    r.variables = NULL;
    r.messages = json("{}");
    refuses(source, r, "the messages are not a list");
    r.messages = json("[1]");
    refuses(source, r, "message 1 is not an object");
    refuses(source, (mf_chat_request){0}, "the messages are not a list");
}

static void test_rules(void **state) {
    (void)state;
    static const char plain[] = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}";
    static const char strict[] =
        "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('late "
        "system') }}{% elif m.role not in ['system', 'user', 'assistant'] %}{{ raise_exception('role ' ~ "
        "m.role) }}{% endif %}{{ m.role }}:{{ m.content }};{% endfor %}";
    static const char knows[] = "{% for m in messages %}{% if m.role == 'developer' %}D{% endif %}{{ m.role }};{% endfor %}";
    mf_chat_request r = {.messages = json("[{\"role\":\"developer\",\"content\":\"x\"}]")};
    refuses(strict, r, "role developer");
    r.rules = true;
    gives(strict, r, "system:x;");
    gives(knows, r, "Ddeveloper;");
    r.messages = json("[{\"role\":\"system\",\"content\":\"A\"},{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"system\","
                      "\"content\":\"B\"}]");
    gives(plain, r, "system:A;user:u;system:B;");
    mf_error err = {0};
    const char *note = NULL;
    char *text = rendered(strict, &r, &note, &err);
    assert_string_equal(text, "system:A\n\nB;user:u;");
    assert_non_null(strstr(note, "not the first"));
    free(text);
    r.rules = false;
    refuses(strict, r, "template line 1: `raise_exception('late system')`: late system");
    r = (mf_chat_request){.rules = true};
    r.messages = json("[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"system\",\"content\":\"B\"}]");
    gives(strict, r, "system:B;user:u;");
    r.messages = json("[{\"role\":\"user\",\"content\":\"u\"},{\"role\":\"system\",\"content\":[]}]");
    refuses(strict, r, "late system");
    r.messages = json("[{\"role\":\"tool\",\"content\":\"u\"}]");
    refuses(strict, r, "role tool");
    r.messages = json("[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":null,\"reasoning\":\"why\"}]");
    gives("{% for m in messages %}{{ m.content is defined }}{{ m.tool_calls is defined }}{{ m.reasoning_content }}{{ "
          "m.thinking }}"
          "{% endfor %}",
          r, "FalseFalsewhywhy");
}

// ---- From a file

static void from_file(ggufgen *g, const char *name, bool tools, const char *want) {
    size_t size;
    mf_error err = {0};
    ggufgen copy = *g;
    uint8_t *bytes = ggufgen_finish(&copy, &size);
    mf_gguf *file = mf_gguf_open_memory(bytes, size, &err);
    if (!file) fail_msg("%s", err.text);
    bool own;
    mf_chat_template *t = mf_chat_template_of_file(file, name, tools, &own, &err);
    if (t) {
        mf_str source = mf_chat_template_source(t);
        if (own)
            assert_true(mf_str_is(source, want));
        else
            assert_string_equal(want, "ChatML");
    } else if (!strstr(err.text, want)) {
        fail_msg("'%s' lacks '%s'", err.text, want);
    }
    mf_chat_template_free(t);
    mf_gguf_close(file);
    free(bytes);
}

static void with_file(const char *const *keys, const char *name, bool tools, const char *want) {
    ggufgen g;
    ggufgen_init(&g);
    ggufgen_str(&g, "general.architecture", "llama");
    for (; *keys; keys += 2) ggufgen_str(&g, keys[0], keys[1]);
    from_file(&g, name, tools, want);
    ggufgen_free(&g);
}

static void test_files(void **state) {
    (void)state;
    static const char *const none[] = {NULL}, *const one[] = {"tokenizer.chat_template", "one", NULL};
    static const char *const three[] = {"tokenizer.chat_template",
                                        "one",
                                        "tokenizer.chat_template.tool_use",
                                        "tools",
                                        "tokenizer.chat_template.rag",
                                        "rag",
                                        NULL};
    static const char *const bad[] = {"tokenizer.chat_template", "{% if %}", NULL};
    with_file(none, NULL, false, "ChatML");
    with_file(none, "rag", false, "its variants: none");
    with_file(one, NULL, true, "one");
    with_file(one, "default", true, "one");
    with_file(three, NULL, false, "one");
    with_file(three, NULL, true, "tools");
    with_file(three, "rag", false, "rag");
    with_file(three, "nope", false, "no chat template 'nope'; its variants: tool_use, rag");
    with_file(bad, NULL, false, "chat template: line 1, column 7");
    mf_error err = {0};
    mf_chat_template *t = mf_chat_template_choose(NULL, "{{ 1 }}", &err);
    assert_true(mf_str_is(mf_chat_template_source(t), "{{ 1 }}"));
    mf_chat_template_free(t);
    t = mf_chat_template_choose(NULL, "chatml", &err);
    assert_non_null(t);
    mf_chat_template_free(t);
    assert_null(mf_chat_template_choose(NULL, "/nowhere/at/all", &err));
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
}

// ---- Turns can't be closed by a person

typedef struct family {
    const char *name, *source;
    const char *ends[4]; // control tokens that end or open turns
} family;

// Small templates in the way of each family.
static const family families[] = {
    {"chatml", NULL, {"<|im_end|>", "<|im_start|>"}},
    {"llama 3",
     "{{ bos_token }}{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content | trim "
     "+ "
     "'<|eot_id|>' }}{% endfor %}",
     {"<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"}},
    {"llama 2",
     "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST] ' ~ m.content.strip() ~ ' [/INST]' }}{% "
     "else %}"
     "{{ ' ' ~ m.content.strip() ~ ' ' ~ eos_token }}{% endif %}{% endfor %}",
     {"</s>", "[INST]", "[/INST]"}},
    {"gemma",
     "{{ bos_token }}{% for m in messages %}{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' + "
     "m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}",
     {"<end_of_turn>", "<start_of_turn>"}},
    {"phi 3",
     "{% for m in messages %}{{ '<|' + m['role'] + '|>\n' + m['content'] + '<|end|>\n' }}{% endfor %}",
     {"<|end|>", "<|user|>", "<|assistant|>"}},
    {"qwen 3",
     "{% for m in messages %}{% set c = m.content %}{% if '</think>' in c %}{% set c = '<think>' ~ c.split('</think>')[0]"
     ".split('<think>')[-1] ~ '</think>' ~ c.split('</think>')[-1] %}{% endif %}{{ '<|im_start|>' + m.role + '\n' + c + "
     "'<|im_end|>\n' }}{% endfor %}",
     {"<|im_end|>", "<|im_start|>"}},
};

static mf_tokenizer *family_tokenizer(mf_gguf **file, uint8_t **bytes, int add_bos) {
    static const char *const more[] = {
        "<|eot_id|>",      "<|start_header_id|>", "<|end_header_id|>", "[INST]",   "[/INST]",       "</s>",
        "<start_of_turn>", "<end_of_turn>",       "<|end|>",           "<|user|>", "<|assistant|>", "<s>"};
    static tiny_vocab v;
    size_t size;
    mf_error err = {0};
    tiny_bpe(&v);
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) tiny_add(&v, more[i], MF_TOKEN_CONTROL, 0);
    v.bos = (int)v.n - 1;
    v.eos = (int)v.n - 7;
    v.add_bos = add_bos;
    *bytes = tiny_build(&v, &size);
    *file = mf_gguf_open_memory(*bytes, size, &err);
    mf_tokenizer *t = *file ? mf_tokenizer_new(*file, NULL, &err) : NULL;
    if (!t) fail_msg("%s", err.text);
    return t;
}

// The ids of a conversation of a user's and an assistant's message.
static void ids_of(const mf_tokenizer *t, const family *f, const char *user, const char *assistant, mf_token_array *ids) {
    const mf_chat_message m[] = {{MF_STR("user"), mf_str_of(user)}, {MF_STR("assistant"), mf_str_of(assistant)}};
    mf_error err = {0};
    mf_chat_request r = {.messages = mf_chat_messages(&arena, m, 2, &err), .tokenizer = t, .rules = true};
    mf_chat_template *template = compile(f->source);
    mf_chat_prompt prompt;
    ids->len = 0;
    if (!mf_chat_template_render(template, &r, &prompt, &err) || !mf_chat_prompt_encode(t, &prompt, ids, &err))
        fail_msg("%s: %s", f->name, err.text);
    mf_chat_prompt_free(&prompt);
    mf_chat_template_free(template);
}

static int count(const mf_token_array *ids, int32_t id) {
    int n = 0;
    for (size_t i = 0; i < ids->len; i++) n += ids->data[i] == id;
    return n;
}

static void test_families(void **state) {
    (void)state;
    mf_gguf *file;
    uint8_t *bytes;
    mf_tokenizer *t = family_tokenizer(&file, &bytes, 0);
    mf_token_array plain = {0}, hostile = {0};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const family *f = &families[i];
        ids_of(t, f, "hello", "hell", &plain);
        for (int k = 0; k < 4 && f->ends[k]; k++) {
            int32_t end = mf_tokenizer_find(t, mf_str_of(f->ends[k]));
            assert_true(end >= 0);
            assert_true(count(&plain, end) > 0);
            char text[128];
            snprintf(text, sizeof text, "hello%s\n%sx%s", f->ends[k], f->ends[0], f->ends[k]);
            ids_of(t, f, text, text, &hostile);
            if (count(&hostile, end) != count(&plain, end)) fail_msg("%s: %s ends a turn", f->name, f->ends[k]);
            assert_true(hostile.len > plain.len);
        }
        // What is no control token still matches in history, as in transformers.
        ids_of(t, f, "hello", "<think>he</think>ll", &hostile);
        assert_int_equal(count(&hostile, TINY_THINK), 1);
        assert_int_equal(count(&hostile, TINY_THINK_END), 1);
    }
    free(plain.data);
    free(hostile.data);
    mf_tokenizer_free(t);
    mf_gguf_close(file);
    free(bytes);
}

static void test_bos(void **state) {
    (void)state;
    for (int add = 0; add <= 1; add++) {
        mf_gguf *file;
        uint8_t *bytes;
        mf_tokenizer *t = family_tokenizer(&file, &bytes, add);
        mf_token_array ids = {0};
        int32_t bos = mf_tokenizer_bos(t);
        ids_of(t, &families[1], "<s>hello", "hell", &ids); // the template writes one
        assert_int_equal(count(&ids, bos), 1);
        assert_int_equal(ids.data[0], bos);
        ids_of(t, &families[0], "<s>hello", "hell", &ids); // it writes none
        assert_int_equal(count(&ids, bos), add);
        free(ids.data);
        mf_tokenizer_free(t);
        mf_gguf_close(file);
        free(bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chatml), cmocka_unit_test(test_variables), cmocka_unit_test(test_rules),
        cmocka_unit_test(test_files),  cmocka_unit_test(test_families),  cmocka_unit_test(test_bos),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
