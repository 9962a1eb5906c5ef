// Mutated vocabularies by the thousand: each is refused with a sentence, or encodes a text and decodes it; never a crash, a hang or memory
// without bound. The seeds are fixed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/mutate.h"
#include "text/tiny_vocab.h"

enum {
    N_MUTANTS = 3000
};

static void use(const mf_tokenizer *t) {
    const mf_str text = MF_STR("<|im_start|>hello hello<think> a  b\xC3\xA9\xFF \xE2\x96\x81 12345\r\n<s></s>");
    mf_token_array ids = {0};
    mf_buf back = {0};
    mf_error err = {0};
    if (!mf_tokenizer_encode(t, text, MF_ENCODE_PARSE_CONTROL | MF_ENCODE_ADD_SPECIAL, &ids, &err)) fail_msg("%s", err.text);
    mf_decoder d;
    mf_decoder_init(&d, t, true, true);
    for (size_t i = 0; i < ids.len; i++) {
        assert_true(ids.data[i] >= 0 && ids.data[i] < mf_tokenizer_n_vocab(t));
        mf_decoder_feed(&d, ids.data[i], &back);
    }
    mf_decoder_finish(&d);
    free(back.data);
    free(ids.data);
}

static bool try(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size); // of the exact size, so that a byte behind it is seen
    assert_non_null(copy);
    memcpy(copy, data, size);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(copy, size, &err);
    mf_tokenizer *t = file ? mf_tokenizer_new(file, NULL, &err) : NULL;
    if (t)
        use(t);
    else if (err.code == MF_OK || err.text[0] == 0 || err.code == MF_ERR_INTERNAL)
        fail_msg("refused with code %d: '%s'", err.code, err.text);
    const bool loaded = t != NULL;
    mf_tokenizer_free(t);
    mf_gguf_close(file);
    free(copy);
    return loaded;
}

static void mutants(const tiny_vocab *v, uint64_t seed) {
    size_t size;
    uint8_t *data = tiny_build(v, &size), *copy = malloc(size + 64);
    assert_non_null(copy);
    assert_true(try(data, size));
    int loaded = 0;
    for (int i = 0; i < N_MUTANTS; i++) {
        memcpy(copy, data, size);
        size_t len = size;
        for (uint32_t k = 1 + mutate_draw(&seed, 2); k > 0; k--) len = mutate_bytes(copy, len, len, &seed);
        loaded += try(copy, len);
    }
    print_message("%s: %d of %d mutants loaded\n", v->model, loaded, N_MUTANTS);
    assert_true(loaded > 0 && loaded < N_MUTANTS);
    free(copy);
    free(data);
}

static void byte_level_bpe(void **state) {
    (void)state;
    static tiny_vocab v;
    tiny_bpe(&v);
    mutants(&v, 11);
}

static void sentencepiece(void **state) {
    (void)state;
    static tiny_vocab v;
    tiny_spm(&v);
    mutants(&v, 12);
}

int main(void) {
    mutate_cap_memory();
    const struct CMUnitTest tests[] = {cmocka_unit_test(byte_level_bpe), cmocka_unit_test(sentencepiece)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
