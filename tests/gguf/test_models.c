// Real files of the folder that MINFER_TEST_MODELS names; skipped without it.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "gguf/gguf.h"

enum {
    SKIPPED = 77
};

typedef struct model {
    const char *file, *architecture, *embedding_type;
    uint64_t n_vocab, width;
    size_t n_tensors;
} model;

static const model models[] = {
    {"smollm2-135m-instruct-q4_1.gguf", "llama", "Q8_0", 49152, 576, 272},
    {"qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen2", "Q5_0", 151936, 896, 291},
    {"gemma-3-270m-q4_k_m.gguf", "gemma3", "Q8_0", 262144, 640, 236},
};

static void check(const mf_gguf *file, const model *m) {
    mf_error err = {0};
    mf_str architecture = {"", 0};
    assert_true(mf_gguf_get_str(file, "general.architecture", &architecture, &err));
    assert_true(mf_str_is(architecture, m->architecture));
    assert_int_equal(mf_gguf_n_tensors(file), m->n_tensors);
    const mf_gguf_value *tokens = mf_gguf_get_array(file, "tokenizer.ggml.tokens", MF_GGUF_STRING, &err);
    assert_non_null(tokens);
    assert_int_equal(tokens->count, m->n_vocab);
    size_t offset = 0;
    for (uint64_t i = 0; i < tokens->count; i++) mf_gguf_next_string(tokens, &offset);
    assert_int_equal(offset, tokens->size);
    const mf_gguf_tensor *t = mf_gguf_find_tensor(file, "token_embd.weight");
    assert_non_null(t);
    assert_string_equal(mf_type_name(t->type), m->embedding_type);
    assert_int_equal(t->ne[0], m->width);
    assert_int_equal(t->ne[1], m->n_vocab);
    float row[1024];
    assert_true(m->width <= 1024);
    mf_type_info_of(t->type)->decode(t->data, row, m->width);
    for (uint64_t i = 0; i < m->width; i++) assert_true(row[i] > -100 && row[i] < 100);
}

static void test_models(void **state) {
    const char *folder = *state;
    int found = 0;
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", folder, models[i].file);
        FILE *there = fopen(path, "rb");
        if (!there) continue;
        fclose(there);
        found++;
        mf_error err = {0};
        mf_gguf_close(mf_gguf_open(path, &err)); // warms the page cache
        const uint64_t start = mf_clock_ns();
        mf_gguf *file = mf_gguf_open(path, &err);
        const double ms = (double)(mf_clock_ns() - start) * 1e-6;
        if (!file) fail_msg("%s", err.text);
        print_message("%s: opened in %.1f ms\n", models[i].file, ms);
        check(file, &models[i]);
        mf_gguf_close(file);
    }
    assert_true(found > 0);
}

int main(void) {
    char *folder = getenv("MINFER_TEST_MODELS");
    if (!folder || !*folder) return SKIPPED;
    const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(test_models, folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
