#define _GNU_SOURCE // memmem

#include "api/breakers.h"

#include <stdlib.h>
#include <string.h>

static bool same(const char *a, const char *b, size_t n) { return n == 0 || (a[0] == b[0] && memcmp(a, b, n) == 0); }

// What a token of `word` does for the text.
static mf_breaker_token effect(int32_t id, mf_str word, mf_str text) {
    mf_breaker_token e = {.id = id, .len = (uint8_t)(word.len < text.len ? word.len : 0)};
    e.holds = memmem(word.ptr, word.len, text.ptr, text.len) != NULL;
    for (size_t k = 1; k < text.len; k++) {
        const uint64_t bit = (uint64_t)1 << k;
        const size_t rest = text.len - k;
        if (k <= word.len && same(word.ptr + word.len - k, text.ptr, k)) e.ends |= bit;
        if (rest <= word.len && same(word.ptr, text.ptr + k, rest)) e.begins |= bit;
        if (rest > word.len && same(word.ptr, text.ptr + k, word.len)) e.inside |= bit;
    }
    return e;
}

bool mf_breaker_make(const mf_tokenizer *t, mf_str text, mf_breaker_text *out, mf_error *err) {
    *out = (mf_breaker_text){0};
    if (text.len < 1 || text.len > MF_SAMPLER_BREAKER_TEXT_MAX)
        return mf_fail(err, MF_ERR_ARGUMENT, "a sequence breaker has %zu bytes, not 1 to %d", text.len,
                       MF_SAMPLER_BREAKER_TEXT_MAX);
    mf_array(mf_breaker_token) tokens = {0};
    mf_buf word = {0};
    bool ok = true;
    for (int32_t id = 0; id < mf_tokenizer_n_vocab(t) && ok; id++) {
        word.len = 0;
        mf_tokenizer_piece(t, id, true, &word);
        ok = !word.failed;
        if (!ok || word.len == 0) continue;
        mf_breaker_token e = effect(id, (mf_str){word.data, word.len}, text);
        if (e.holds || e.ends || e.begins || e.inside) ok = mf_array_push(&tokens, e);
    }
    free(word.data);
    if (!ok) {
        free(tokens.data);
        return mf_fail_memory(err, tokens.len * sizeof *tokens.data, "a sequence breaker");
    }
    *out = (mf_breaker_text){tokens.data, tokens.len};
    return true;
}
