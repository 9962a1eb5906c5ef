// Token sequences compared by what they say.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "chat/align.h"
#include "text/tiny_vocab.h"

static uint8_t *bytes;
static mf_gguf *file;
static mf_tokenizer *tokenizer;

static int make(void **state) {
    (void)state;
    tiny_vocab v;
    size_t size;
    mf_error err = {0};
    tiny_bpe(&v);
    bytes = tiny_build(&v, &size);
    file = mf_gguf_open_memory(bytes, size, &err);
    tokenizer = file ? mf_tokenizer_new(file, NULL, &err) : NULL;
    return tokenizer ? 0 : -1;
}

static int drop(void **state) {
    (void)state;
    mf_tokenizer_free(tokenizer);
    mf_gguf_close(file);
    free(bytes);
    return 0;
}

static mf_symbols symbols_of(const int32_t *ids, size_t n) {
    mf_symbols s;
    mf_error err = {0};
    if (!mf_symbols_make(&s, tokenizer, ids, n, &err)) fail_msg("%s", err.text);
    assert_int_equal(s.end.len, n);
    return s;
}

#define SYMBOLS(...) symbols_of((const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

// Byte tokens stand in the order of the bytes.
enum {
    H = 'h',
    E = 'e',
    L = 'l',
    O = 'o'
};

// Aligns, checks and frees both.
static void expect(mf_symbols a, mf_symbols b, size_t want_a, size_t want_b) {
    size_t n_a, n_b;
    mf_symbols_align(&a, &b, &n_a, &n_b);
    assert_int_equal(n_a, want_a);
    assert_int_equal(n_b, want_b);
    mf_symbols_align(&b, &a, &n_b, &n_a); // the order of the two does not matter
    assert_int_equal(n_a, want_a);
    assert_int_equal(n_b, want_b);
    mf_symbols_free(&a);
    mf_symbols_free(&b);
}

static void other_segmentations(void **state) {
    (void)state;
    expect(SYMBOLS(TINY_HELLO), SYMBOLS(H, E, L, L, O), 1, 5);
    expect(SYMBOLS(TINY_HE, TINY_LL, O), SYMBOLS(TINY_HELL, O), 3, 2);
    expect(SYMBOLS(TINY_IM_START, TINY_HELLO, TINY_IM_END), SYMBOLS(TINY_IM_START, TINY_HE, L, L, O, TINY_IM_END, O), 3, 6);
    // Both need a boundary where they part: "hell" is common, but one has "hello" in a piece.
    expect(SYMBOLS(TINY_HELLO, H), SYMBOLS(TINY_HELL, E), 0, 0);
    expect(SYMBOLS(O, TINY_HELLO, H), SYMBOLS(O, TINY_HELL, E), 1, 1);
    expect(SYMBOLS(TINY_HE, TINY_LL, O), SYMBOLS(H, TINY_HE), 0, 0);
    expect(SYMBOLS(TINY_HE, L, L), SYMBOLS(TINY_HELL, H), 3, 1);
    // One is the other's beginning; one is empty.
    expect(SYMBOLS(TINY_HE, TINY_LL), SYMBOLS(H, E), 1, 2);
    expect(symbols_of(NULL, 0), SYMBOLS(H), 0, 0);
    expect(symbols_of(NULL, 0), symbols_of(NULL, 0), 0, 0);
}

// A control token is none of the bytes of its text; a user-defined one is.
static void control_tokens(void **state) {
    (void)state;
    mf_token_array plain = {0};
    mf_error err = {0};
    assert_true(mf_tokenizer_encode(tokenizer, MF_STR("<|im_end|>"), MF_ENCODE_PLAIN, &plain, &err));
    assert_true(plain.len > 1);
    expect(SYMBOLS(TINY_IM_END), symbols_of(plain.data, plain.len), 0, 0);
    expect(SYMBOLS(TINY_IM_END), SYMBOLS(TINY_IM_START), 0, 0);
    expect(SYMBOLS(H, TINY_IM_END), SYMBOLS(H, TINY_END), 1, 1);
    plain.len = 0;
    assert_true(mf_tokenizer_encode(tokenizer, MF_STR("<think>"), MF_ENCODE_PLAIN, &plain, &err));
    assert_true(plain.len > 1);
    expect(SYMBOLS(TINY_THINK), symbols_of(plain.data, plain.len), 1, plain.len);
    free(plain.data);
}

// A model can generate ids that the vocabulary does not have.
static void ids_outside_the_vocabulary(void **state) {
    (void)state;
    int32_t n = mf_tokenizer_n_vocab(tokenizer);
    expect(SYMBOLS(H, n, E), SYMBOLS(H, n, E), 3, 3);
    expect(SYMBOLS(H, n), SYMBOLS(H, n + 1), 1, 1);
}

static void token_at(void **state) {
    (void)state;
    mf_symbols s = SYMBOLS(TINY_IM_START, TINY_HELLO, H, TINY_LL);
    assert_int_equal(mf_symbols_before(&s, 0), 0);
    assert_int_equal(mf_symbols_before(&s, 2), 6);
    assert_int_equal(mf_symbols_before(&s, 4), 9);
    static const size_t want[] = {0, 1, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX, 2, 3, SIZE_MAX, 4, SIZE_MAX};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        if (mf_symbols_token_at(&s, i) != want[i]) fail_msg("token at symbol %zu", i);
    mf_symbols_free(&s);
    s = symbols_of(NULL, 0);
    assert_int_equal(mf_symbols_token_at(&s, 0), 0);
    assert_true(mf_symbols_token_at(&s, 1) == SIZE_MAX);
    mf_symbols_free(&s);
}

static void cut(void **state) {
    (void)state;
    static const int32_t ids[] = {TINY_IM_START, TINY_HELLO, H, TINY_LL, TINY_IM_END, O};
    enum {
        N = sizeof ids / sizeof *ids
    };
    for (size_t from = 0; from <= N; from++)
        for (size_t to = from; to <= N; to++) {
            int32_t rest[N];
            size_t n = 0;
            for (size_t i = 0; i < N; i++)
                if (i < from || i >= to) rest[n++] = ids[i];
            mf_symbols s = symbols_of(ids, N), want = symbols_of(rest, n);
            mf_symbols_cut(&s, from, to);
            assert_int_equal(s.symbol.len, want.symbol.len);
            assert_int_equal(s.end.len, want.end.len);
            for (size_t i = 0; i < want.symbol.len; i++) assert_int_equal(s.symbol.data[i], want.symbol.data[i]);
            for (size_t i = 0; i < want.end.len; i++) assert_int_equal(s.end.data[i], want.end.data[i]);
            mf_symbols_free(&s);
            mf_symbols_free(&want);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_segmentations),
        cmocka_unit_test(control_tokens),
        cmocka_unit_test(ids_outside_the_vocabulary),
        cmocka_unit_test(token_at),
        cmocka_unit_test(cut),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
