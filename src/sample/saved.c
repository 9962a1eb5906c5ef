// A sampler's state as bytes: little-endian, as all machines minfer runs on. They may come from a file and are checked.
#include <math.h>
#include <string.h>

#include "sample/state.h"

typedef struct saved_head { // the history follows, the oldest token first
    uint32_t n_history, mirostat;
    float mu;
} saved_head;

void mf_sampler_save(const mf_sampler *s, mf_buf *out) {
    const mf_history *h = &s->history;
    saved_head head = {(uint32_t)h->len, s->params.mirostat != 0, s->mirostat.mu};
    mf_buf_add(out, &head, sizeof head);
    for (size_t i = h->len; i > 0; i--) {
        int32_t token = mf_history_at(h, i - 1);
        mf_buf_add(out, &token, sizeof token);
    }
}

static int32_t token_at(const uint8_t *bytes, size_t i) {
    int32_t token;
    memcpy(&token, bytes + sizeof(saved_head) + i * sizeof token, sizeof token);
    return token;
}

static bool check(const mf_sampler *s, const saved_head *head, const uint8_t *bytes, size_t n, mf_error *err) {
    if (head->n_history > MF_SAMPLER_LAST_N_MAX || n != sizeof *head + head->n_history * sizeof(int32_t) ||
        head->mirostat > 1)
        return mf_fail(err, MF_ERR_FORMAT, "the sampler's state is not one");
    if (!isfinite(head->mu)) return mf_fail(err, MF_ERR_FORMAT, "mirostat's estimate is not finite");
    for (size_t i = 0; i < head->n_history; i++)
        if (token_at(bytes, i) < 0 || token_at(bytes, i) >= s->candidates->n_vocab)
            return mf_fail(err, MF_ERR_FORMAT, "token %zu of the sampler's history is %d; the vocabulary has %d ids", i,
                           token_at(bytes, i), s->candidates->n_vocab);
    return true;
}

// Whether the history that is there ends in the saved one: it may look further back.
static bool ends_in(const mf_history *h, const uint8_t *bytes, size_t n) {
    size_t most = n < h->cap ? n : h->cap;
    if (h->len < most) return false;
    for (size_t back = 0; back < most; back++)
        if (mf_history_at(h, back) != token_at(bytes, n - 1 - back)) return false;
    return true;
}

bool mf_sampler_load(mf_sampler *s, const void *bytes, size_t n, mf_error *err) {
    saved_head head;
    if (n < sizeof head) return mf_fail(err, MF_ERR_FORMAT, "the sampler's state is not one");
    memcpy(&head, bytes, sizeof head);
    if (!check(s, &head, bytes, n, err)) return false;
    if (!ends_in(&s->history, bytes, head.n_history)) {
        mf_history_clear(&s->history);
        for (size_t i = 0; i < head.n_history; i++) mf_history_push(&s->history, token_at(bytes, i));
    }
    if (head.mirostat && s->params.mirostat) s->mirostat.mu = head.mu;
    s->mirostat.token = -1;
    return true;
}
