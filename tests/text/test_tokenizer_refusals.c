// Every vocabulary that is refused, with the sentence that says why.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "text/tiny_vocab.h"

static tiny_vocab v;

static void refused(const mf_tokenizer_options *opts, mf_code code, const char *part) {
    size_t size;
    mf_error err = {0};
    uint8_t *bytes = tiny_build(&v, &size);
    mf_gguf *file = mf_gguf_open_memory(bytes, size, &err);
    if (!file) fail_msg("%s", err.text);
    mf_tokenizer *t = mf_tokenizer_new(file, opts, &err);
    assert_null(t);
    assert_int_equal(err.code, code);
    if (!strstr(err.text, part)) fail_msg("'%s' does not say '%s'", err.text, part);
    mf_gguf_close(file);
    free(bytes);
}

static void test_model(void **state) {
    (void)state;
    static const char *const others[] = {"bert", "t5", "rwkv", "plamo2", "gemma4", "no_vocab", ""};
    tiny_bpe(&v);
    v.model = NULL;
    refused(NULL, MF_ERR_FORMAT, "tokenizer.ggml.model is missing");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char quoted[32];
        v.model = others[i];
        snprintf(quoted, sizeof quoted, "'%s'", others[i]);
        refused(NULL, MF_ERR_UNSUPPORTED, quoted);
    }
}

static void test_pre(void **state) {
    (void)state;
    tiny_bpe(&v);
    v.pre = NULL;
    refused(NULL, MF_ERR_FORMAT, "tokenizer.ggml.pre is missing");
    v.pre = "no-such-rule";
    refused(NULL, MF_ERR_UNSUPPORTED, "tokenizer.ggml.pre 'no-such-rule' is not known; known: gpt-2");
    refused(NULL, MF_ERR_UNSUPPORTED, "kimi-k2"); // the list is whole
    v.pre = "qwen2";
    refused(&(mf_tokenizer_options){.pre = "qwen22"}, MF_ERR_UNSUPPORTED, "--pre 'qwen22'");
    tiny_spm(&v);
    refused(&(mf_tokenizer_options){.pre = "qwen2"}, MF_ERR_ARGUMENT, "--pre 'qwen2'");
}

static void test_tokens(void **state) {
    (void)state;
    tiny_bpe(&v);
    v.n = 0;
    refused(NULL, MF_ERR_FORMAT, "tokenizer.ggml.tokens is empty");
    tiny_bpe(&v);
    v.tokens[TINY_HELL] = "hello";
    refused(NULL, MF_ERR_FORMAT, "tokens 258 and 259 have the same text 'hello'");
}

static void test_types_and_scores(void **state) {
    (void)state;
    tiny_bpe(&v);
    v.n_types--;
    refused(NULL, MF_ERR_FORMAT, "tokenizer.ggml.token_type has 266 entries for 267 tokens");
    v.n_types++;
    v.types[3] = 7;
    refused(NULL, MF_ERR_FORMAT, "token 3 is 7");
    tiny_spm(&v);
    v.n_scores = 5;
    refused(NULL, MF_ERR_FORMAT, "tokenizer.ggml.scores has 5 entries");
    v.n_scores = 0;
    refused(NULL, MF_ERR_FORMAT, "tokenizer.ggml.scores is missing");
    tiny_spm(&v);
    v.scores[9] = __builtin_nanf("");
    refused(NULL, MF_ERR_FORMAT, "token 9 is not a number");
}

static void test_bytes(void **state) {
    (void)state;
    tiny_bpe(&v);
    v.tokens['a'] = "hole";
    v.tokens['b'] = "hole2";
    refused(NULL, MF_ERR_FORMAT, "no token for byte 0x61 ('a')");
    tiny_spm(&v);
    v.tokens[SPM_BYTES + 0x80] = "hole";
    refused(NULL, MF_ERR_FORMAT, "no token for byte 0x80");
    tiny_spm(&v);
    for (int b = 0; b < 256; b++) v.types[SPM_BYTES + b] = MF_TOKEN_UNUSED;
    v.unk = -1;
    v.tokens[0] = "<nothing>";
    refused(NULL, MF_ERR_FORMAT, "neither byte tokens nor an unknown token");
}

static void test_merges(void **state) {
    (void)state;
    tiny_bpe(&v);
    v.n_merges = 0;
    refused(NULL, MF_ERR_FORMAT, "tokenizer.ggml.merges is missing");
    tiny_bpe(&v);
    v.merges[1] = "ll";
    refused(NULL, MF_ERR_FORMAT, "merge 1 'll'");
    v.merges[1] = "l x";
    refused(NULL, MF_ERR_FORMAT, "merge 1 'l x': 'lx' is not in the vocabulary");
    v.merges[1] = "lx y";
    refused(NULL, MF_ERR_FORMAT, "'lx' is not in the vocabulary");
}

static void test_ids(void **state) {
    (void)state;
    tiny_bpe(&v);
    v.eos = TINY_THINKING + 1;
    refused(NULL, MF_ERR_FORMAT, "tokenizer.ggml.eos_token_id is 267, outside the vocabulary of 267 tokens");
    tiny_bpe(&v);
    v.bos = 1 << 30;
    refused(NULL, MF_ERR_FORMAT, "tokenizer.ggml.bos_token_id");
    tiny_bpe(&v);
    v.unk = 1000;
    refused(NULL, MF_ERR_FORMAT, "tokenizer.ggml.unknown_token_id");
}

static void test_long_special(void **state) {
    (void)state;
    static char text[5000];
    memset(text, 'x', sizeof text - 1);
    tiny_bpe(&v);
    v.tokens[TINY_THINK] = text;
    refused(NULL, MF_ERR_FORMAT, "special token 264 has 4999 bytes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),  cmocka_unit_test(test_pre),
        cmocka_unit_test(test_tokens), cmocka_unit_test(test_types_and_scores),
        cmocka_unit_test(test_bytes),  cmocka_unit_test(test_merges),
        cmocka_unit_test(test_ids),    cmocka_unit_test(test_long_special),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
