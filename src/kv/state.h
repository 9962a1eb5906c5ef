// Inside of the KV store, shared by its files.
#ifndef MF_KV_STATE_H
#define MF_KV_STATE_H

#include "base/map.h"
#include "kv/kv.h"

// A block's place in the prefix index.
typedef struct mf_kv_entry {
    uint64_t number; // a name never used twice; 0: not in the index
    uint64_t parent; // the number of the block before it; 0: it is the first
    int32_t tokens[MF_KV_BLOCK];
    int32_t next; // in its bucket; -1: the last
} mf_kv_entry;

struct mf_kv {
    mf_kv_view view;
    mf_device *device;
    size_t bytes;
    bool copies_only; // no block is shared
    int32_t n_blocks;
    int32_t *refs; // [n_blocks]
    int32_t *free; // stack of free blocks that nothing is known of; the lowest number on top at first
    int32_t n_free;
    int32_t n_shared;
    uint64_t copies, hit_cells;
    mf_kv_entry *entries; // [n_blocks]
    int32_t *buckets;     // [n_buckets], a power of two
    int32_t n_buckets;
    mf_hash_key key; // of the buckets' hash
    uint64_t last_number;
    int32_t *newer, *older; // [n_blocks + 1]: the cached blocks in a ring, by use; entry n_blocks is the ring's end
    int32_t n_cached;
    uint8_t *marks; // [n_blocks] for counting
};

// kv.c
int32_t mf_kv_take(mf_kv *kv);              // a free block, with one reference; there must be one
void mf_kv_refer(mf_kv *kv, int32_t block); // one reference more
void mf_kv_drop(mf_kv *kv, int32_t block);  // one less
// One reference more, or a copy of it; -1 when there is no room for one.
int32_t mf_kv_borrow(mf_kv *kv, int32_t block);

// prefix.c
bool mf_kv_prefix_init(mf_kv *kv); // false when memory is out
void mf_kv_prefix_free(mf_kv *kv);
void mf_kv_cache_block(mf_kv *kv, int32_t block);   // a block of the index has lost its last reference
void mf_kv_uncache_block(mf_kv *kv, int32_t block); // it got one again
int32_t mf_kv_evict(mf_kv *kv);                     // forgets the least recently used cached block and returns it
// The last of the first n blocks that is in the index: sets table->n_indexed and table->parent.
void mf_kv_find_parent(const mf_kv *kv, mf_kv_table *table, int32_t n);
void mf_kv_forget(mf_kv *kv, int32_t block); // takes a block out of the index; nothing where it is not in it

#endif
