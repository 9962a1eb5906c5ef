// DRY's breakers that are texts, against a search in the whole text, however tokens cut it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "api/breakers.h"
#include "base/random.h"
#include "text/tiny_vocab.h"

enum {
    LONG = 40,
    N_USED = 12,
    ALLOWED = 1
};

static uint8_t *bytes;
static mf_gguf *file;
static mf_tokenizer *tokenizer;
static int32_t used[N_USED]; // the tokens of which texts are made

static int open_tokenizer(void **state) {
    (void)state;
    static tiny_vocab v;
    static const char *const more[] = {"ab", "ba", "aab", "bb", "abab", "baa", "a\n", "\nb"};
    tiny_bpe(&v);
    for (int i = 0; i < 8; i++) used[i] = tiny_add(&v, more[i], MF_TOKEN_USER_DEFINED, 0);
    used[8] = 'a', used[9] = 'b', used[10] = '\n' + 256, used[11] = TINY_IM_END;
    mf_error err = {0};
    size_t size;
    bytes = tiny_build(&v, &size);
    file = mf_gguf_open_memory(bytes, size, &err);
    tokenizer = file ? mf_tokenizer_new(file, NULL, &err) : NULL;
    if (!tokenizer) return print_error("%s\n", err.text), 1;
    used[10] = mf_tokenizer_find(tokenizer, MF_STR("\xC4\x8A")); // the line end's own token
    return used[10] < 0;
}

static int close_tokenizer(void **state) {
    (void)state;
    mf_tokenizer_free(tokenizer);
    mf_gguf_close(file);
    free(bytes);
    return 0;
}

static bool holds(const mf_buf *text, size_t from, size_t to, mf_str part) {
    for (size_t at = from; at + part.len <= to; at++)
        if (memcmp(text->data + at, part.ptr, part.len) == 0) return true;
    return false;
}

// How many tokens stand behind the newest one in which one of the texts ends.
static size_t since(const int32_t *ids, size_t n, const char *const *texts, size_t n_texts) {
    mf_buf text = {0};
    size_t ends[LONG + 1] = {0}, newest = 0;
    for (size_t i = 0; i < n; i++) {
        mf_tokenizer_piece(tokenizer, ids[i], true, &text);
        ends[i + 1] = text.len;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_texts; k++) {
            mf_str part = mf_str_of(texts[k]);
            size_t from = ends[i] + 1 > part.len ? ends[i] + 1 - part.len : 0; // its last byte is this token's
            if (ends[i + 1] > ends[i] && holds(&text, from, ends[i + 1], part)) newest = i + 1;
        }
    free(text.data);
    return n - newest;
}

static bool is_breaker(int32_t id, const char *const *texts, size_t n_texts) {
    mf_buf word = {0};
    mf_tokenizer_piece(tokenizer, id, true, &word);
    bool is = false;
    for (size_t k = 0; k < n_texts; k++) is = is || holds(&word, 0, word.len, mf_str_of(texts[k]));
    free(word.data);
    return is;
}

// How much the definition takes off a token's logit, with base 2.
static double penalty(const int32_t *ids, size_t n, int32_t token, const char *const *texts, size_t n_texts) {
    size_t limit = since(ids, n, texts, n_texts), best = 0;
    bool any = false;
    for (size_t place = 1; place < n; place++) {
        size_t same = 0;
        while (same < place && ids[place - 1 - same] == ids[n - 1 - same]) same++;
        if (same > limit) same = limit;
        if (ids[place] == token && same >= ALLOWED && (!any || same > best)) best = same, any = true;
    }
    return any && !is_breaker(token, texts, n_texts) ? exp2((double)best - ALLOWED) : 0;
}

static void compare(const mf_sampler *s, const int32_t *ids, size_t n, const char *const *texts, size_t n_texts) {
    enum {
        MOST = 512
    };
    int32_t list[MOST], n_vocab = mf_tokenizer_n_vocab(tokenizer);
    float probs[MOST];
    double total = 0;
    size_t kept = mf_sampler_survivors(s, MOST, list, probs);
    assert_int_equal(kept, n_vocab);
    for (int32_t id = 0; id < n_vocab; id++) total += exp(-penalty(ids, n, id, texts, n_texts));
    for (size_t i = 0; i < kept; i++) {
        double want = exp(-penalty(ids, n, list[i], texts, n_texts)) / total;
        if (fabs(probs[i] - want) > 1e-5) fail_msg("token %d behind %zu tokens: %g, not %g", list[i], n, probs[i], want);
    }
}

static void check(const char *const *texts, size_t n_texts, uint64_t seed) {
    static const float logits[512];
    mf_breaker_text made[4];
    mf_error err = {0};
    for (size_t i = 0; i < n_texts; i++)
        if (!mf_breaker_make(tokenizer, mf_str_of(texts[i]), &made[i], &err)) fail_msg("%s", err.text);
    mf_sampler_params p;
    mf_sampler_params_init(&p);
    p.temp = 1, p.top_k = 0, p.top_p = 1, p.repeat_penalty = 1;
    p.dry_multiplier = 1, p.dry_base = 2, p.dry_allowed_length = ALLOWED;
    p.dry_breaker_texts = made, p.n_dry_breaker_texts = n_texts;
    mf_sampler *s = mf_sampler_new(&p, mf_tokenizer_n_vocab(tokenizer), &err);
    if (!s) fail_msg("%s", err.text);
    for (size_t i = 0; i < n_texts; i++) free((void *)made[i].tokens);
    int32_t ids[LONG];
    for (size_t n = 0; n < LONG; n++) {
        int32_t token;
        if (!mf_sampler_sample(s, logits, NULL, n, &token, &err)) fail_msg("%s", err.text);
        compare(s, ids, n, texts, n_texts);
        ids[n] = used[(size_t)(mf_random_uniform(seed, n, 0) * N_USED)];
        mf_sampler_accept(s, ids[n]);
        if (n == LONG / 2) { // its state goes with it
            mf_sampler *clone = mf_sampler_clone(s, &err);
            assert_non_null(clone);
            mf_sampler_free(s);
            s = clone;
        }
    }
    mf_sampler_free(s);
}

static void test_texts(void **state) {
    (void)state;
    static const char *const texts[] = {"a",    "\n",         "ba",     "abb", "aabab",
                                        "a\nb", "<|im_end|>", "b<|im_", "x",   "ababababababab"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (uint64_t seed = 0; seed < 5; seed++) check(&texts[i], 1, seed);
    for (uint64_t seed = 0; seed < 5; seed++) check(texts + 1, 4, seed), check(texts, 0, seed);
}

static void test_refusals(void **state) {
    (void)state;
    mf_breaker_text b;
    mf_error err = {0};
    char text[66];
    memset(text, 'a', sizeof text);
    assert_false(mf_breaker_make(tokenizer, (mf_str){text, 65}, &b, &err));
    assert_string_equal(err.text, "a sequence breaker has 65 bytes, not 1 to 64");
    assert_false(mf_breaker_make(tokenizer, MF_STR(""), &b, &err));
    assert_true(mf_breaker_make(tokenizer, (mf_str){text, 64}, &b, &err));
    free((void *)b.tokens);
    mf_sampler_params p;
    mf_sampler_params_init(&p);
    const mf_breaker_token out[] = {{.id = 3}, {.id = 3}};
    const mf_breaker_text wrong = {out, 2};
    p.dry_breaker_texts = &wrong, p.n_dry_breaker_texts = 1;
    assert_false(mf_sampler_params_check(&p, 10, &err));
    assert_string_equal(err.text, "dry_breaker_texts: token 3 of text 0 is outside the vocabulary of 10 or out of order");
    assert_false(mf_sampler_params_check(&p, 3, &err));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
