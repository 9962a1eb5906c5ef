// The paged KV store: blocks of 64 cells over all layers, a free list, reference counts, and a block table for each sequence.
#ifndef MF_KV_KV_H
#define MF_KV_KV_H

#include "base/array.h"
#include "device/device.h"

typedef struct mf_kv mf_kv;

typedef struct mf_kv_params {
    mf_type type; // of the cells: F32, F16 or Q8_0
    int32_t n_layer, n_head_kv, head_dim;
    int32_t n_cells; // in all; rounded up to whole blocks
    bool copies;     // tables never share a block: they get copies instead of references
} mf_kv_params;

// A sequence's cells: cell c is slot c % 64 of block blocks.data[c / 64]. Zero-initialised is empty.
typedef struct mf_kv_table {
    mf_array(int32_t) blocks;
    int32_t n_cells;   // cells in use
    int32_t n_indexed; // leading blocks that stand in the prefix index, or were found equal to one that does
    uint64_t parent;   // the index's number for the last of them
    bool shifted;      // a shift moved cells: those from n_pure on are not what evaluating the tokens would give
    int32_t n_pure;
    bool
        loaded; // cells were read from a file: nothing shows that they are what evaluating the tokens gives, so no block is shared by tokens
} mf_kv_table;

typedef struct mf_kv_stats {
    int32_t blocks_total;
    int32_t blocks_used;   // with a reference
    int32_t blocks_shared; // with more than one
    int32_t blocks_cached; // free, but still in the prefix index
    uint64_t copies;       // copies on write
    uint64_t hit_cells;    // cells that mf_kv_match found
    size_t bytes;
} mf_kv_stats;

// Bytes that mf_kv_new will allocate for these parameters; false with err when they make no sense or overflow.
bool mf_kv_bytes(const mf_kv_params *params, size_t *bytes, mf_error *err);

// The store, in the device's memory. NULL with err. Refused by name and value: another cell type, heads that it
// can't hold.
mf_kv *mf_kv_new(const mf_kv_params *params, mf_device *device, mf_error *err);
// Writes to every cell of a store that is not in use yet, so that the system gives it all its memory.
void mf_kv_populate(mf_kv *kv);

void mf_kv_free(mf_kv *kv); // NULL is fine

const mf_kv_view *mf_kv_view_of(const mf_kv *kv);
mf_kv_stats mf_kv_stats_get(const mf_kv *kv);
int32_t mf_kv_free_blocks(const mf_kv *kv); // cached ones included: they are taken when nothing else is left

// Blocks that a table lacks to hold n_cells cells and to write from cell `first` on (shared blocks there must be copied).
int32_t mf_kv_blocks_needed(const mf_kv *kv, const mf_kv_table *table, int32_t first, int32_t n_cells);

// Makes a table hold n_cells cells, all of them from the present end on writable by this sequence alone: takes free blocks, and
// copies the block the end is in when it is shared. All or nothing; false with err (MF_ERR_LIMIT: the cache is full).
bool mf_kv_extend(mf_kv *kv, mf_kv_table *table, int32_t n_cells, mf_error *err);

// Whether mf_kv_extend would succeed if no other tables had blocks than these n (the table itself may be among them), and n_reserved free
// blocks were left over.
bool mf_kv_fits_beside(mf_kv *kv, const mf_kv_table *table, int32_t n_cells, int32_t n_reserved,
                       const mf_kv_table *const *others, size_t n);

// Drops the cells from n_cells on; blocks no longer needed are given back.
void mf_kv_truncate(mf_kv *kv, mf_kv_table *table, int32_t n_cells);

// Gives all blocks back and frees the table.
void mf_kv_release(mf_kv *kv, mf_kv_table *table);

// Makes `to` (empty) share the first n_cells cells of `from` by reference, or copies them. False with err: memory, no room for copies.
bool mf_kv_share(mf_kv *kv, const mf_kv_table *from, int32_t n_cells, mf_kv_table *to, mf_error *err);

// Drops the cells [n_keep, n_keep + n_discard) and moves those behind them down by n_discard positions, K turned back by as many
// (docs/arithmetic.md). The cells before n_keep keep their bytes, blocks that others hold too are not touched, and the moved cells
// stand in blocks of this table alone, which never enter the prefix index. The device's workers share the work. All or nothing; false with err: a range outside the cells,
// memory, or a full cache (a discarded range of two blocks makes room enough, unless others share its blocks).
bool mf_kv_shift(mf_kv *kv, mf_kv_table *table, int32_t n_keep, int32_t n_discard, const mf_rope_params *rope,
                 mf_error *err);

// How many free blocks such a shift needs (one that mf_kv_shift would not refuse).
int32_t mf_kv_shift_needs(mf_kv *kv, const mf_kv_table *table, int32_t n_keep, int32_t n_discard);

// ---- The bytes of a block, for the disk: all layers, [n_layer][block_stride]. Cells from the n-th on are zero in them.
size_t mf_kv_block_bytes(const mf_kv *kv);
void mf_kv_save_block(const mf_kv *kv, const mf_kv_table *table, int32_t i, int32_t n, uint8_t *out);
void mf_kv_load_block(mf_kv *kv, const mf_kv_table *table, int32_t i, const uint8_t *in); // one that is this table's alone

// ---- The prefix index: full blocks by the tokens they hold and the block before them. Freed blocks stay in it, least recently used
// first out, until their space is needed.

// Gives a table that has nothing but blocks of the index (or is empty) every further full block that is known for these tokens, by
// reference or, as long as there is room, as a copy. The cells it has then are table->n_cells. False when memory is out.
bool mf_kv_match(mf_kv *kv, const int32_t *tokens, int32_t n_tokens, mf_kv_table *table, mf_error *err);

// Puts the table's full blocks of evaluated cells that no shift has moved, and that no file's cells stand before, into the index; tokens are the sequence's, table->n_cells of them at least.
void mf_kv_index(mf_kv *kv, mf_kv_table *table, const int32_t *tokens);

#endif
