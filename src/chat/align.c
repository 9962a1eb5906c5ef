#include "chat/align.h"

#include <stdlib.h>
#include <string.h>

#define CONTROL 256u

static bool add_token(mf_symbols *s, const mf_tokenizer *t, int32_t id, mf_buf *piece) {
    // A model's matrix may have more rows than the vocabulary has tokens: such an id says nothing, and is only itself.
    if (id >= mf_tokenizer_n_vocab(t) || mf_tokenizer_type(t, id) == MF_TOKEN_CONTROL)
        return mf_array_push(&s->symbol, CONTROL + (uint32_t)id) && mf_array_push(&s->end, s->symbol.len);
    piece->len = 0;
    mf_tokenizer_piece(t, id, true, piece);
    if (piece->failed || !mf_array_reserve(&s->symbol, s->symbol.len + piece->len)) return false;
    for (size_t i = 0; i < piece->len; i++) s->symbol.data[s->symbol.len++] = (uint8_t)piece->data[i];
    return mf_array_push(&s->end, s->symbol.len);
}

bool mf_symbols_make(mf_symbols *s, const mf_tokenizer *t, const int32_t *ids, size_t n, mf_error *err) {
    *s = (mf_symbols){0};
    mf_buf piece = {0};
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) ok = add_token(s, t, ids[i], &piece);
    free(piece.data);
    if (ok) return true;
    mf_symbols_free(s);
    return mf_fail_memory(err, n * sizeof(uint32_t), "the text of a conversation");
}

void mf_symbols_free(mf_symbols *s) {
    free(s->symbol.data);
    free(s->end.data);
    *s = (mf_symbols){0};
}

size_t mf_symbols_before(const mf_symbols *s, size_t i) { return i ? s->end.data[i - 1] : 0; }

size_t mf_symbols_token_at(const mf_symbols *s, size_t symbol) {
    size_t low = 0, high = s->end.len; // the first i with symbols_before(i) >= symbol
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (mf_symbols_before(s, middle) < symbol)
            low = middle + 1;
        else
            high = middle;
    }
    return mf_symbols_before(s, low) == symbol ? low : SIZE_MAX;
}

void mf_symbols_align(const mf_symbols *a, const mf_symbols *b, size_t *n_a, size_t *n_b) {
    size_t common = 0, most = a->symbol.len < b->symbol.len ? a->symbol.len : b->symbol.len;
    while (common < most && a->symbol.data[common] == b->symbol.data[common]) common++;
    *n_a = *n_b = 0;
    for (size_t i = 0, j = 0; i <= a->end.len && j <= b->end.len;) {
        size_t at_a = mf_symbols_before(a, i), at_b = mf_symbols_before(b, j);
        if (at_a > common || at_b > common) return;
        if (at_a == at_b)
            *n_a = i++, *n_b = j++;
        else if (at_a < at_b)
            i++;
        else
            j++;
    }
}

void mf_symbols_cut(mf_symbols *s, size_t from, size_t to) {
    if (from == to) return;
    size_t first = mf_symbols_before(s, from), last = mf_symbols_before(s, to), n = last - first;
    memmove(s->symbol.data + first, s->symbol.data + last, (s->symbol.len - last) * sizeof *s->symbol.data);
    s->symbol.len -= n;
    for (size_t i = to; i < s->end.len; i++) s->end.data[from + i - to] = s->end.data[i] - n;
    s->end.len -= to - from;
}
