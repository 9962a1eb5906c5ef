#include "sample/state.h"

#include <stdlib.h>

#include "base/mem.h"

bool mf_history_init(mf_history *h, size_t window, size_t cap, int32_t n_vocab, mf_error *err) {
    *h = (mf_history){.cap = cap, .window = window};
    h->ring = mf_alloc(cap, sizeof *h->ring);
    h->count = mf_alloc((size_t)n_vocab, sizeof *h->count);
    if (h->ring && h->count) return true;
    mf_history_free(h);
    return mf_fail_memory(err, (cap + (size_t)n_vocab) * sizeof *h->ring, "the sampler's history");
}

void mf_history_free(mf_history *h) {
    free(h->ring);
    free(h->count);
    *h = (mf_history){0};
}

void mf_history_push(mf_history *h, int32_t token) {
    if (h->cap == 0) return;
    if (h->window > 0) {
        if (h->len >= h->window) h->count[mf_history_at(h, h->window - 1)]--;
        h->count[token]++;
    }
    h->ring[h->head] = token;
    h->head = h->head + 1 == h->cap ? 0 : h->head + 1;
    if (h->len < h->cap) h->len++;
}

void mf_history_clear(mf_history *h) {
    for (size_t i = 0; i < h->len && i < h->window; i++) h->count[mf_history_at(h, i)] = 0;
    h->len = 0;
    h->head = 0;
}
