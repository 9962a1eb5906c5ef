// SentencePiece's BPE: the adjacent pair whose joined piece has the highest score is merged first, the leftmost of equals.
#include <stdlib.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/heap.h"
#include "text/vocab.h"

typedef struct symbol {
    uint32_t at, len; // bytes of the escaped text; len 0: merged into the one before
    uint32_t prev, next;
} symbol;

struct mf_spm_state {
    mf_buf text; // escaped, with its prefix
    mf_array(symbol) symbols;
    mf_heap heap;
    // An unused piece is merged like others, and taken apart again at the end, where its last proposal was put together.
    uint32_t *left_len; // of each id the bytes of its left part, 0 where there was no proposal; NULL until the first one
    mf_array(int32_t) unused;
    bool prev_unknown;
};

static const uint32_t none = UINT32_MAX;

// Scores as whole numbers of which the lowest is the highest score: the bits of a float that is positive grow with it, of a negative one
// fall.
static uint32_t rank_of(float score) {
    uint32_t bits = mf_f32_bits(score + 0.0F); // -0 is 0
    return bits >> 31 ? bits : 0x7fffffffU - bits;
}

// The piece that merging may make of a text; -1 when it is none. Control, unknown, byte and guarded tokens are never made of text.
static int32_t piece(const mf_encoder *e, const char *text, size_t len) {
    const mf_tokenizer *t = e->t;
    uint32_t id;
    if (len > t->max_piece || !mf_map_get(&t->ids, (mf_str){text, len}, &id)) return -1;
    uint8_t type = t->type[id];
    if (type == MF_TOKEN_USER_DEFINED) return mf_is_guarded(e->guarded, (int32_t)id) ? -1 : (int32_t)id;
    return type == MF_TOKEN_NORMAL || type == MF_TOKEN_UNUSED ? (int32_t)id : -1;
}

// Remembers how an unused piece is put together.
static bool note_unused(const mf_tokenizer *t, mf_spm_state *s, int32_t id, uint32_t left_len) {
    if (!s->left_len && !(s->left_len = mf_alloc(t->n, sizeof *s->left_len))) return false;
    if (!s->left_len[id] && !mf_array_push(&s->unused, id)) return false;
    s->left_len[id] = left_len;
    return true;
}

static bool propose(const mf_encoder *e, mf_spm_state *s, uint32_t left) {
    const mf_tokenizer *t = e->t;
    const symbol *a = &s->symbols.data[left];
    if (a->next == none) return true;
    const symbol *b = &s->symbols.data[a->next];
    int32_t id = piece(e, s->text.data + a->at, (size_t)a->len + b->len);
    if (id < 0) return true;
    if (t->type[id] == MF_TOKEN_UNUSED && !note_unused(t, s, id, a->len)) return false;
    return mf_heap_push(&s->heap, (mf_candidate){mf_candidate_order(rank_of(t->score[id]), left), a->len + b->len, 0, id});
}

// One symbol a character. Bytes that are not UTF-8 are symbols of their own.
static bool prepare(mf_spm_state *s, mf_str text, bool prefix) {
    s->text.len = 0;
    s->symbols.len = 0;
    s->heap.len = 0;
    for (; s->unused.len; s->unused.len--) s->left_len[s->unused.data[s->unused.len - 1]] = 0;
    if (prefix) mf_buf_text(&s->text, MF_SPACE_MARK);
    mf_buf_str(&s->text, text);
    if (s->text.failed || s->text.len >= none) return false;
    for (uint32_t i = 0; i < s->text.len;) {
        uint32_t cp, n = (uint32_t)s->symbols.len;
        int len = mf_utf8_decode(s->text.data + i, s->text.len - i, &cp);
        if (len <= 0) len = 1;
        if (!mf_array_push(&s->symbols, ((symbol){i, (uint32_t)len, n ? n - 1 : none, n + 1}))) return false;
        i += (uint32_t)len;
    }
    if (s->symbols.len) s->symbols.data[s->symbols.len - 1].next = none;
    return true;
}

static bool merge_all(const mf_encoder *e, mf_spm_state *s) {
    for (uint32_t i = 0; i + 1 < s->symbols.len; i++)
        if (!propose(e, s, i)) return false;
    symbol *symbols = s->symbols.data;
    while (s->heap.len) {
        const mf_candidate c = mf_heap_pop(&s->heap);
        const uint32_t at = mf_candidate_at(&c);
        symbol *left = &symbols[at];
        if (left->len == 0 || left->next == none || left->len + symbols[left->next].len != c.left) continue;
        symbol *right = &symbols[left->next];
        left->len = c.left;
        right->len = 0;
        left->next = right->next;
        if (left->next != none) symbols[left->next].prev = at;
        if (!propose(e, s, at)) return false;
        if (left->prev != none && !propose(e, s, left->prev)) return false;
    }
    return true;
}

// A symbol that is no piece: its bytes, or without byte tokens one unknown token for a run of such symbols.
static bool emit_unknown(mf_encoder *e, const char *text, size_t len, mf_error *err) {
    const mf_tokenizer *t = e->t;
    if (t->byte_id[0] < 0) {
        bool first = !e->spm->prev_unknown;
        e->spm->prev_unknown = true;
        return !first || mf_encoder_push(e, t->unk, err);
    }
    for (size_t i = 0; i < len; i++)
        if (!mf_encoder_push(e, t->byte_id[(uint8_t)text[i]], err)) return false;
    return true;
}

// Recursion ends: each part is shorter, and a piece has at most max_piece bytes; the depth is bounded below.
static bool emit(mf_encoder *e, const char *text, size_t len, int depth, mf_error *err) {
    int32_t id = piece(e, text, len);
    if (id < 0) return emit_unknown(e, text, len, err);
    uint32_t left = e->spm->left_len ? e->spm->left_len[id] : 0;
    if (left && depth < 64) return emit(e, text, left, depth + 1, err) && emit(e, text + left, len - left, depth + 1, err);
    e->spm->prev_unknown = false;
    return mf_encoder_push(e, id, err);
}

bool mf_spm_text(mf_encoder *e, mf_str text, bool prefix, mf_error *err) {
    if (!e->spm && !(e->spm = mf_alloc(1, sizeof *e->spm))) return mf_fail_memory(err, sizeof *e->spm, "encoding");
    mf_spm_state *s = e->spm;
    if (!prepare(s, text, prefix) || !merge_all(e, s))
        return mf_fail_memory(err, text.len * sizeof(mf_candidate), "encoding");
    s->prev_unknown = false;
    for (uint32_t i = s->symbols.len ? 0 : none; i != none; i = s->symbols.data[i].next)
        if (!emit(e, s->text.data + s->symbols.data[i].at, s->symbols.data[i].len, 0, err)) return false;
    return true;
}

void mf_spm_state_free(mf_spm_state *s) {
    if (!s) return;
    free(s->text.data);
    free(s->symbols.data);
    free(s->heap.data);
    free(s->unused.data);
    free(s->left_len);
    free(s);
}
