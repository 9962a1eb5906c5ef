#include "sample/grammar/vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

#define MAX_TOKEN_BYTES 65535
#define MAX_PLAIN_CHARS 64

// Characters of a token that is plain; 0: it is not.
static uint32_t plain_chars(mf_str text) {
    uint32_t n = 0, cp;
    for (size_t at = 0; at < text.len; n++) {
        int taken = mf_utf8_decode(text.ptr + at, text.len - at, &cp);
        if (taken <= 0 || cp < 0x20 || cp == '"' || cp == '\\') return 0;
        at += (size_t)taken;
    }
    return n <= MAX_PLAIN_CHARS ? n : 0;
}

// ---- The tree

typedef struct entry {
    mf_str text;
    int32_t id;
} entry;

static int by_text(const void *a, const void *b) {
    const entry *x = a, *y = b;
    size_t n = x->text.len < y->text.len ? x->text.len : y->text.len;
    int order = memcmp(x->text.ptr, y->text.ptr, n);
    if (order) return order;
    if (x->text.len != y->text.len) return x->text.len < y->text.len ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void trie_free(mf_trie *t) {
    free(t->bytes);
    free(t->depth);
    free(t->skip);
    free(t->first);
    free(t->tokens);
}

static size_t shared(mf_str a, mf_str b) {
    size_t n = 0;
    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n]) n++;
    return n;
}

// Of n sorted entries.
static bool trie_make(mf_trie *t, const entry *entries, size_t n) {
    size_t n_nodes = 0;
    for (size_t i = 0; i < n; i++) n_nodes += entries[i].text.len - (i ? shared(entries[i - 1].text, entries[i].text) : 0);
    t->n = (uint32_t)n_nodes;
    t->bytes = mf_alloc(n_nodes + 1, 1);
    t->depth = mf_alloc(n_nodes + 1, sizeof *t->depth);
    t->skip = mf_alloc(n_nodes + 1, sizeof *t->skip);
    t->first = mf_alloc(n_nodes + 1, sizeof *t->first);
    t->tokens = mf_alloc(n + 1, sizeof *t->tokens);
    if (!t->bytes || !t->depth || !t->skip || !t->first || !t->tokens) return false;
    uint32_t *open = mf_alloc(MAX_TOKEN_BYTES + 1, sizeof *open), node = 0; // the node at each depth of the entry before
    if (!open) return false;
    for (size_t i = 0; i < n; i++) {
        mf_str text = entries[i].text;
        size_t from = i ? shared(entries[i - 1].text, text) : 0;
        for (size_t d = i ? entries[i - 1].text.len : 0; d > from; d--) t->skip[open[d - 1]] = node;
        for (size_t d = from; d < text.len; d++) {
            t->bytes[node] = (uint8_t)text.ptr[d];
            t->depth[node] = (uint16_t)(d + 1);
            t->first[node] = (uint32_t)i; // what ends at a node or behind it comes from here on
            open[d] = node++;
        }
        t->tokens[i] = entries[i].id;
    }
    for (size_t d = n ? entries[n - 1].text.len : 0; d > 0; d--) t->skip[open[d - 1]] = node;
    t->first[n_nodes] = (uint32_t)n;
    free(open);
    return true;
}

// ---- The whole

static bool copy_tokens(mf_grammar_vocab *v, const mf_grammar_token *tokens, mf_error *err) {
    size_t total = 0;
    for (int32_t id = 0; id < v->n; id++) {
        if (tokens[id].name.len > MAX_TOKEN_BYTES)
            return mf_fail(err, MF_ERR_LIMIT, "token %d has %zu bytes; grammars take at most %d", id, tokens[id].name.len,
                           MAX_TOKEN_BYTES);
        total += tokens[id].name.len;
    }
    v->bytes = mf_alloc(total + 1, 1);
    v->ends = mf_alloc((size_t)v->n + 1, sizeof *v->ends);
    if (!v->bytes || !v->ends) return mf_fail_memory(err, total, "the vocabulary");
    total = 0;
    for (int32_t id = 0; id < v->n; id++) {
        size_t len = tokens[id].name.len;
        if (len) memcpy(v->bytes + total, tokens[id].name.ptr, len);
        v->tokens[id] = tokens[id];
        v->tokens[id].name.ptr = v->bytes + total;
        v->tokens[id].text = tokens[id].text && len > 0;
        if (v->tokens[id].text && len > v->most_bytes) v->most_bytes = (uint32_t)len;
        if (tokens[id].ends) v->ends[v->n_ends++] = id;
        total += len;
    }
    return true;
}

// plain[k]: the plain tokens of at most k characters.
static bool make_plain(mf_grammar_vocab *v) {
    for (int32_t id = 0; id < v->n; id++) {
        uint32_t n = v->tokens[id].text ? plain_chars(v->tokens[id].name) : 0;
        if (n > v->most_chars) v->most_chars = n;
    }
    v->plain = mf_alloc((size_t)v->most_chars + 1, sizeof *v->plain);
    if (!v->plain) return false;
    for (uint32_t k = 0; k <= v->most_chars; k++)
        if (!(v->plain[k] = mf_alloc(v->n_words, sizeof **v->plain))) return false;
    for (int32_t id = 0; id < v->n; id++) {
        uint32_t n = v->tokens[id].text ? plain_chars(v->tokens[id].name) : 0;
        if (n) v->plain[n][id / 64] |= (uint64_t)1 << id % 64;
    }
    for (uint32_t k = 1; k <= v->most_chars; k++)
        for (size_t i = 0; i < v->n_words; i++) v->plain[k][i] |= v->plain[k - 1][i];
    return true;
}

static bool make_tries(mf_grammar_vocab *v) {
    size_t n = 0, n_others = 0;
    entry *entries = mf_alloc((size_t)v->n + 1, sizeof *entries);
    if (!entries) return false;
    for (int32_t id = 0; id < v->n; id++)
        if (v->tokens[id].text) entries[n++] = (entry){v->tokens[id].name, id};
    qsort(entries, n, sizeof *entries, by_text);
    bool ok = trie_make(&v->all, entries, n);
    for (size_t i = 0; i < n; i++)
        if (!plain_chars(entries[i].text)) entries[n_others++] = entries[i];
    ok = ok && trie_make(&v->others, entries, n_others);
    free(entries);
    return ok;
}

mf_grammar_vocab *mf_grammar_vocab_new(const mf_grammar_token *tokens, int32_t n, mf_error *err) {
    mf_grammar_vocab *v = mf_alloc(1, sizeof *v);
    if (!v) return mf_fail_memory(err, sizeof *v, "the vocabulary"), NULL;
    v->n = n;
    v->n_words = ((size_t)n + 63) / 64;
    v->tokens = mf_alloc((size_t)n + 1, sizeof *v->tokens);
    bool ok = v->tokens || mf_fail_memory(err, (size_t)n * sizeof *v->tokens, "the vocabulary");
    ok = ok && copy_tokens(v, tokens, err) && ((make_plain(v) && make_tries(v)) || mf_fail_memory(err, 0, "the vocabulary"));
    if (ok) return v;
    mf_grammar_vocab_free(v);
    return NULL;
}

void mf_grammar_vocab_free(mf_grammar_vocab *v) {
    if (!v) return;
    trie_free(&v->all);
    trie_free(&v->others);
    for (uint32_t k = 0; v->plain && k <= v->most_chars; k++) free(v->plain[k]);
    free(v->plain);
    free(v->tokens);
    free(v->bytes);
    free(v->ends);
    free(v);
}
