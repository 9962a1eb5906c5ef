// Byte-level BPE: the merge table and the merging of one word.
#include <stdlib.h>

#include "base/mem.h"
#include "text/heap.h"
#include "text/vocab.h"

// left and right id -> rank and result, open addressing. A free slot has result -1.
typedef struct merge {
    uint32_t left, right, rank;
    int32_t result;
} merge;

struct mf_merges {
    merge *slots;
    size_t mask;
    mf_hash_key key;
};

// Where the search for a pair begins.
static size_t slot_of(const mf_merges *m, uint32_t left, uint32_t right) {
    const uint32_t pair[2] = {left, right};
    return (size_t)mf_hash_keyed(pair, sizeof pair, m->key) & m->mask;
}

static const merge *find(const mf_merges *m, int32_t left, int32_t right) {
    for (size_t i = slot_of(m, (uint32_t)left, (uint32_t)right);; i = (i + 1) & m->mask) {
        const merge *slot = &m->slots[i];
        if (slot->result < 0) return NULL;
        if (slot->left == (uint32_t)left && slot->right == (uint32_t)right) return slot;
    }
}

// The first rank of a pair that is there twice counts.
static void insert(mf_merges *m, merge value) {
    for (size_t i = slot_of(m, value.left, value.right);; i = (i + 1) & m->mask) {
        merge *slot = &m->slots[i];
        if (slot->result >= 0 && (slot->left != value.left || slot->right != value.right)) continue;
        if (slot->result < 0) *slot = value;
        return;
    }
}

static int shown(mf_str text) { return text.len > 64 ? 64 : (int)text.len; }

// Reads "left right": both and the two together must be tokens, as the published tokenizers demand.
static bool parse(const mf_tokenizer *t, mf_str text, uint32_t rank, mf_buf *joined, merge *out, mf_error *err) {
    const char *space = text.len > 2 ? memchr(text.ptr + 1, ' ', text.len - 1) : NULL;
    if (!space || space + 1 == text.ptr + text.len)
        return mf_fail(err, MF_ERR_FORMAT, "merge %u '%.*s' is not two texts with a space between", rank, shown(text),
                       text.ptr);
    mf_str left = {text.ptr, (size_t)(space - text.ptr)}, right = {space + 1, text.len - left.len - 1};
    joined->len = 0;
    mf_buf_str(joined, left);
    mf_buf_str(joined, right);
    if (joined->failed) return mf_fail_memory(err, text.len, "a merge");
    mf_str whole = {joined->data, joined->len}, *parts[3] = {&left, &right, &whole};
    uint32_t ids[3];
    for (int i = 0; i < 3; i++)
        if (!mf_map_get(&t->ids, *parts[i], &ids[i]))
            return mf_fail(err, MF_ERR_FORMAT, "merge %u '%.*s': '%.*s' is not in the vocabulary", rank, shown(text),
                           text.ptr, shown(*parts[i]), parts[i]->ptr);
    *out = (merge){ids[0], ids[1], rank, (int32_t)ids[2]};
    return true;
}

mf_merges *mf_merges_load(const mf_tokenizer *t, const mf_gguf *file, mf_error *err) {
    mf_error local = {0};
    const mf_gguf_value *list = mf_gguf_get_array(file, "tokenizer.ggml.merges", MF_GGUF_STRING, &local);
    if (!list || list->count == 0) {
        if (local.code != MF_OK) {
            if (err) *err = local;
        } else {
            mf_fail(err, MF_ERR_FORMAT, "tokenizer.ggml.merges is %s: a gpt2 vocabulary needs its merges",
                    list ? "empty" : "missing");
        }
        return NULL;
    }
    size_t cap = 16;
    while (cap / 8 < list->count / 5 + 1) cap *= 2;
    mf_merges *m = mf_alloc(1, sizeof *m);
    if (m) m->slots = mf_alloc(cap, sizeof *m->slots);
    if (!m || !m->slots || list->count > INT32_MAX) {
        mf_merges_free(m);
        mf_fail_memory(err, cap * sizeof(merge), "the merges");
        return NULL;
    }
    m->mask = cap - 1;
    m->key = mf_hash_key_new();
    for (size_t i = 0; i < cap; i++) m->slots[i].result = -1;
    mf_buf joined = {0};
    size_t offset = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        merge value = {0};
        if (!parse(t, mf_gguf_next_string(list, &offset), i, &joined, &value, err)) {
            mf_merges_free(m);
            m = NULL;
            break;
        }
        // Ordinary text must not merge into a token that only the model and templates say.
        if (t->type[value.result] != MF_TOKEN_CONTROL && t->type[value.result] != MF_TOKEN_UNKNOWN) insert(m, value);
    }
    free(joined.data);
    return m;
}

void mf_merges_free(mf_merges *m) {
    if (!m) return;
    free(m->slots);
    free(m);
}

// A word's symbols: a list in an array, so that a merge is constant time.
typedef struct symbol {
    int32_t id; // -1: merged into the one before
    uint32_t prev, next;
} symbol;

struct mf_bpe_state {
    mf_array(symbol) symbols;
    mf_heap heap;
    mf_buf mapped; // the word in the byte alphabet
};

static const uint32_t none = UINT32_MAX;

static bool propose(const mf_encoder *e, mf_bpe_state *s, uint32_t at) {
    const symbol *left = &s->symbols.data[at];
    if (left->next == none) return true;
    int32_t right = s->symbols.data[left->next].id;
    const merge *found = find(e->t->merges, left->id, right);
    return !found || mf_is_guarded(e->guarded, found->result) ||
           mf_heap_push(&s->heap,
                        (mf_candidate){mf_candidate_order(found->rank, at), found->left, found->right, found->result});
}

static bool merge_word(const mf_encoder *e, mf_bpe_state *s) {
    symbol *symbols = s->symbols.data;
    s->heap.len = 0;
    for (uint32_t i = 0; i + 1 < s->symbols.len; i++)
        if (!propose(e, s, i)) return false;
    while (s->heap.len) {
        const mf_candidate c = mf_heap_pop(&s->heap);
        const uint32_t at = mf_candidate_at(&c);
        symbol *left = &symbols[at];
        if (left->id != (int32_t)c.left || left->next == none || symbols[left->next].id != (int32_t)c.right) continue;
        symbol *right = &symbols[left->next];
        left->id = c.result;
        right->id = -1;
        left->next = right->next;
        if (left->next != none) symbols[left->next].prev = at;
        if (!propose(e, s, at)) return false;
        if (left->prev != none && !propose(e, s, left->prev)) return false;
    }
    return true;
}

// The id of a whole word in the byte alphabet; -1 when it is no token. False: memory is out.
static bool whole_word(const mf_tokenizer *t, mf_bpe_state *s, mf_str word, int32_t *out) {
    *out = -1;
    s->mapped.len = 0;
    for (size_t i = 0; i < word.len; i++) {
        uint32_t cp = mf_byte_to_char((uint8_t)word.ptr[i]);
        if (cp >= 0x80) mf_buf_char(&s->mapped, (char)(0xC0 | cp >> 6));
        mf_buf_char(&s->mapped, (char)(cp >= 0x80 ? 0x80 | (cp & 0x3F) : cp));
    }
    if (s->mapped.failed) return false;
    uint32_t id;
    if (mf_map_get(&t->ids, (mf_str){s->mapped.data, s->mapped.len}, &id) && t->type[id] == MF_TOKEN_NORMAL)
        *out = (int32_t)id;
    return true;
}

bool mf_bpe_word(mf_encoder *e, mf_str word, mf_error *err) {
    const mf_tokenizer *t = e->t;
    if (!e->bpe && !(e->bpe = mf_alloc(1, sizeof *e->bpe))) return mf_fail_memory(err, sizeof *e->bpe, "encoding");
    mf_bpe_state *s = e->bpe;
    if (t->pre->ignore_merges) {
        int32_t id;
        if (!whole_word(t, s, word, &id)) return mf_fail_memory(err, 2 * word.len, "a word");
        if (id >= 0) return mf_encoder_push(e, id, err);
    }
    s->symbols.len = 0;
    if (!mf_array_reserve(&s->symbols, word.len)) return mf_fail_memory(err, word.len * sizeof(symbol), "a word");
    for (size_t i = 0; i < word.len; i++) {
        int32_t id = t->byte_id[(uint8_t)word.ptr[i]];
        if (id < 0) {
            mf_encoder_drop(e, (uint8_t)word.ptr[i]);
            continue;
        }
        uint32_t n = (uint32_t)s->symbols.len;
        s->symbols.data[s->symbols.len++] = (symbol){id, n ? n - 1 : none, n + 1};
    }
    if (s->symbols.len == 0) return true;
    s->symbols.data[s->symbols.len - 1].next = none;
    if (!merge_word(e, s)) return mf_fail_memory(err, s->heap.len * 2 * sizeof(mf_candidate), "a word's merges");
    for (uint32_t i = 0; i != none; i = s->symbols.data[i].next)
        if (!mf_encoder_push(e, s->symbols.data[i].id, err)) return false;
    return true;
}

void mf_bpe_state_free(mf_bpe_state *s) {
    if (!s) return;
    free(s->symbols.data);
    free(s->heap.data);
    free(s->mapped.data);
    free(s);
}
