// The prefix index. A block is known by its 64 tokens and by the number of the block before it; numbers are never used twice, so equal
// numbers mean an equal history, token by token. Hashes only choose the bucket.
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "kv/state.h"

bool mf_kv_prefix_init(mf_kv *kv) {
    size_t n = (size_t)kv->n_blocks;
    kv->n_buckets = 16;
    while (kv->n_buckets < kv->n_blocks && kv->n_buckets < 1 << 30) kv->n_buckets *= 2;
    kv->entries = mf_alloc(n, sizeof *kv->entries);
    kv->buckets = mf_alloc((size_t)kv->n_buckets, sizeof *kv->buckets);
    kv->key = mf_hash_key_new();
    kv->newer = mf_alloc(n + 1, sizeof *kv->newer);
    kv->older = mf_alloc(n + 1, sizeof *kv->older);
    if (!kv->entries || !kv->buckets || !kv->newer || !kv->older) return false;
    for (int32_t i = 0; i < kv->n_buckets; i++) kv->buckets[i] = -1;
    kv->newer[n] = kv->older[n] = kv->n_blocks;
    return true;
}

void mf_kv_prefix_free(mf_kv *kv) {
    free(kv->entries);
    free(kv->buckets);
    free(kv->newer);
    free(kv->older);
}

// Blocks that were found equal to one of the index, or copied from one, have no number of their own: from there on mf_kv_index looks again.
void mf_kv_find_parent(const mf_kv *kv, mf_kv_table *table, int32_t n) {
    while (n > 0 && !kv->entries[table->blocks.data[n - 1]].number) n--;
    table->n_indexed = n;
    table->parent = n ? kv->entries[table->blocks.data[n - 1]].number : 0;
}

static int32_t *bucket_of(const mf_kv *kv, uint64_t parent, const int32_t *tokens) {
    const mf_hash_key key = {{kv->key.k[0], kv->key.k[1] ^ parent}};
    uint64_t hash = mf_hash_keyed(tokens, MF_KV_BLOCK * sizeof *tokens, key);
    return &kv->buckets[hash & (uint64_t)(kv->n_buckets - 1)];
}

// The block that holds these 64 tokens behind `parent`; -1 when none is known.
static int32_t find(const mf_kv *kv, uint64_t parent, const int32_t *tokens) {
    for (int32_t b = *bucket_of(kv, parent, tokens); b >= 0; b = kv->entries[b].next)
        if (kv->entries[b].parent == parent && memcmp(kv->entries[b].tokens, tokens, sizeof kv->entries[b].tokens) == 0)
            return b;
    return -1;
}

void mf_kv_forget(mf_kv *kv, int32_t block) {
    mf_kv_entry *e = &kv->entries[block];
    if (!e->number) return;
    int32_t *at = bucket_of(kv, e->parent, e->tokens);
    while (*at != block) at = &kv->entries[*at].next;
    *at = e->next;
    e->number = 0;
}

void mf_kv_cache_block(mf_kv *kv, int32_t block) { // as the newest
    int32_t end = kv->n_blocks, newest = kv->older[end];
    kv->older[block] = newest, kv->newer[block] = end;
    kv->newer[newest] = block, kv->older[end] = block;
    kv->n_cached++;
}

void mf_kv_uncache_block(mf_kv *kv, int32_t block) {
    kv->newer[kv->older[block]] = kv->newer[block];
    kv->older[kv->newer[block]] = kv->older[block];
    kv->n_cached--;
}

int32_t mf_kv_evict(mf_kv *kv) {
    int32_t oldest = kv->newer[kv->n_blocks];
    mf_kv_uncache_block(kv, oldest);
    mf_kv_forget(kv, oldest);
    return oldest;
}

bool mf_kv_match(mf_kv *kv, const int32_t *tokens, int32_t n_tokens, mf_kv_table *table, mf_error *err) {
    if (table->n_cells != table->n_indexed * MF_KV_BLOCK)
        return mf_fail(err, MF_ERR_ARGUMENT, "a prefix for a table of %d cells, %d blocks of them known", table->n_cells,
                       table->n_indexed);
    size_t most = (size_t)(n_tokens / MF_KV_BLOCK);
    if (!mf_array_reserve(&table->blocks, most)) return mf_fail_memory(err, most * sizeof(int32_t), "a block table");
    if (table->n_indexed == 0) table->parent = 0;
    for (size_t i = table->blocks.len; i < most; i++) {
        int32_t block = find(kv, table->parent, tokens + i * MF_KV_BLOCK);
        if (block < 0) break;
        uint64_t number = kv->entries[block].number;
        int32_t own = mf_kv_borrow(kv, block);
        if (own < 0) break;
        table->blocks.data[table->blocks.len++] = own;
        table->parent = number;
        table->n_indexed++;
        table->n_cells += MF_KV_BLOCK;
        kv->hit_cells += MF_KV_BLOCK;
    }
    return true;
}

void mf_kv_index(mf_kv *kv, mf_kv_table *table, const int32_t *tokens) {
    int32_t end = table->loaded ? 0 : (table->shifted ? table->n_pure : table->n_cells) / MF_KV_BLOCK;
    for (; table->n_indexed < end; table->n_indexed++) {
        int32_t block = table->blocks.data[table->n_indexed];
        const int32_t *own = tokens + (size_t)table->n_indexed * MF_KV_BLOCK;
        int32_t known = find(kv, table->parent, own);
        if (known < 0) {
            int32_t *bucket = bucket_of(kv, table->parent, own);
            mf_kv_entry *e = &kv->entries[block];
            e->number = ++kv->last_number;
            e->parent = table->parent;
            memcpy(e->tokens, own, sizeof e->tokens);
            e->next = *bucket;
            *bucket = known = block;
        }
        table->parent = kv->entries[known].number;
    }
}
