// Token ids of real vocabularies against fixtures made by the published tokenizers (tests/oracle/token_ids.py). Needs the
// models: MINFER_TEST_MODELS names their folder. Those that are not there are skipped.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/json.h"
#include "support/cases.h"
#include "text/messages.h"

typedef struct fixture {
    mf_arena arena;
    mf_buf text;
    const mf_json *root;
} fixture;

static void fixture_open(fixture *f, const char *name) {
    char path[4096];
    mf_error err = {0};
    memset(f, 0, sizeof *f);
    snprintf(path, sizeof path, "%s/%s", MF_FIXTURES, name);
    if (!mf_file_read(path, 1 << 24, &f->text, &err)) fail_msg("%s", err.text);
    f->root = mf_json_parse(&f->arena, (mf_str){f->text.data, f->text.len}, &err);
    if (!f->root) fail_msg("%s: %s", name, err.text);
}

static void fixture_close(fixture *f) {
    mf_arena_free(&f->arena);
    free(f->text.data);
}

static int compare(const mf_tokenizer *t, const mf_json *text, const mf_json *want, unsigned flags) {
    mf_token_array ids = {0};
    mf_error err = {0};
    if (!mf_tokenizer_encode(t, text->text, flags, &ids, &err)) fail_msg("%s", err.text);
    const mf_json *id = want->child;
    size_t i = 0;
    for (; i < ids.len && id; i++, id = id->next) {
        int64_t value;
        assert_true(mf_json_i64(id, &value));
        if (value != ids.data[i]) break;
    }
    bool same = i == ids.len && !id;
    if (!same)
        print_error("%s: '%.*s': id %zu differs (%zu ids, %zu expected)\n", flags ? "parsed" : "plain",
                    (int)(text->text.len < 60 ? text->text.len : 60), text->text.ptr, i, ids.len, want->count);
    free(ids.data);
    return !same;
}

static void check_model(const char *fixture_name) {
    fixture corpus, expected;
    fixture_open(&corpus, "token_corpus.json");
    fixture_open(&expected, fixture_name);
    mf_str file = mf_json_get(expected.root, "file")->text;
    char path[4096];
    const char *folder = getenv("MINFER_TEST_MODELS");
    snprintf(path, sizeof path, "%s/%.*s", folder ? folder : "", (int)file.len, file.ptr);
    bool there = access(path, R_OK) == 0;
    int bad = 0, n = 0;
    if (there) {
        mf_error err = {0};
        mf_gguf *gguf = mf_gguf_open(path, &err);
        if (!gguf) fail_msg("%s", err.text);
        mf_tokenizer *t = mf_tokenizer_new(gguf, NULL, &err);
        if (!t) fail_msg("%s", err.text);
        const mf_json *parsed = mf_json_get(expected.root, "parsed")->child;
        const mf_json *plain = mf_json_get(expected.root, "plain")->child;
        for (const mf_json *text = mf_json_get(corpus.root, "texts")->child; text; text = text->next, n++) {
            assert_true(parsed && plain);
            bad += compare(t, text, parsed, MF_ENCODE_PARSE_CONTROL);
            bad += compare(t, text, plain, 0);
            parsed = parsed->next;
            plain = plain->next;
        }
        bool own;
        talker m = {.t = t, .template = mf_chat_template_of_file(gguf, NULL, false, &own, &err)};
        if (!m.template) fail_msg("%s", err.text);
        none_from_messages(&m, NULL, 0, 1);
        mf_chat_template_free(m.template);
        mf_tokenizer_free(t);
        mf_gguf_close(gguf);
    }
    fixture_close(&corpus);
    fixture_close(&expected);
    if (!there) skip_because("%s is not there (MINFER_TEST_MODELS names the folder of models)", path);
    assert_true(n > 200);
    assert_int_equal(bad, 0);
}

static void smollm2(void **state) { (void)state, check_model("tokens_smollm2.json"); }
static void qwen2(void **state) { (void)state, check_model("tokens_qwen2.5-coder.json"); }
static void gemma3(void **state) { (void)state, check_model("tokens_gemma3.json"); }

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(smollm2), cmocka_unit_test(qwen2), cmocka_unit_test(gemma3)};
    return run_cases(argc, argv, tests, NULL, NULL);
}
