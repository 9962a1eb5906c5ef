#include "kv/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kv/cells.h"

static int32_t blocks_for(int32_t cells) { return (int32_t)(((int64_t)cells + MF_KV_BLOCK - 1) / MF_KV_BLOCK); }

static bool layout(const mf_kv_params *p, mf_kv_view *view, size_t *bytes, mf_error *err) {
    if (p->type != MF_TYPE_F16 && p->type != MF_TYPE_F32 && p->type != MF_TYPE_Q8_0)
        return mf_fail(err, MF_ERR_UNSUPPORTED, "KV cells of type %s are not supported; f32, f16 and q8_0 are",
                       mf_type_name(p->type));
    if (p->n_cells < 1 || p->n_layer < 1 || p->n_head_kv < 1 || p->head_dim < 1)
        return mf_fail(err, MF_ERR_ARGUMENT, "a KV store of %d cells, %d layers, %d heads of %d", p->n_cells, p->n_layer,
                       p->n_head_kv, p->head_dim);
    if (!mf_kv_width_fits(p->type, p->head_dim))
        return mf_fail(err, MF_ERR_UNSUPPORTED, "KV cells of type q8_0 take heads of a multiple of %d channels, not of %d",
                       MF_KV_GROUP, p->head_dim);
    mf_kv_view v = {.type = p->type, .n_layer = p->n_layer, .n_head_kv = p->n_head_kv, .head_dim = p->head_dim};
    size_t total;
    v.v_offset = mf_kv_half_bytes(p->type, p->head_dim);
    bool fits = mf_mul_size(v.v_offset, 2, &v.head_stride) &&
                mf_mul_size(v.head_stride, (size_t)p->n_head_kv, &v.block_stride) &&
                mf_mul_size(v.block_stride, (size_t)blocks_for(p->n_cells), &v.layer_stride) &&
                mf_mul_size(v.layer_stride, (size_t)p->n_layer, &total);
    if (!fits) return mf_fail(err, MF_ERR_LIMIT, "a KV store of %d cells overflows", p->n_cells);
    *view = v;
    *bytes = total;
    return true;
}

bool mf_kv_bytes(const mf_kv_params *params, size_t *bytes, mf_error *err) {
    mf_kv_view view;
    return layout(params, &view, bytes, err);
}

mf_kv *mf_kv_new(const mf_kv_params *params, mf_device *device, mf_error *err) {
    mf_kv_view view;
    size_t bytes;
    if (!layout(params, &view, &bytes, err)) return NULL;
    int32_t n = blocks_for(params->n_cells);
    mf_kv *kv = mf_alloc(1, sizeof *kv);
    if (!kv) return mf_fail_memory(err, sizeof *kv, "the KV store"), NULL;
    *kv = (mf_kv){.view = view, .device = device, .bytes = bytes, .n_blocks = n, .copies_only = params->copies};
    kv->refs = mf_alloc((size_t)n, sizeof *kv->refs);
    kv->free = mf_alloc((size_t)n, sizeof *kv->free);
    kv->marks = mf_alloc((size_t)n, sizeof *kv->marks);
    kv->view.base = device->class->alloc(device, bytes);
    if (!kv->refs || !kv->free || !kv->marks || !kv->view.base || !mf_kv_prefix_init(kv)) {
        mf_fail_memory(err, bytes, "the KV store");
        mf_kv_free(kv);
        return NULL;
    }
    for (int32_t i = n - 1; i >= 0; i--) kv->free[kv->n_free++] = i;
    return kv;
}

void mf_kv_populate(mf_kv *kv) { memset(kv->view.base, 0, kv->bytes); }

void mf_kv_free(mf_kv *kv) {
    if (!kv) return;
    if (kv->view.base) kv->device->class->release(kv->device, kv->view.base, kv->bytes);
    mf_kv_prefix_free(kv);
    free(kv->refs);
    free(kv->free);
    free(kv->marks);
    free(kv);
}

const mf_kv_view *mf_kv_view_of(const mf_kv *kv) { return &kv->view; }

int32_t mf_kv_free_blocks(const mf_kv *kv) { return kv->n_free + kv->n_cached; }

mf_kv_stats mf_kv_stats_get(const mf_kv *kv) {
    return (mf_kv_stats){
        .blocks_total = kv->n_blocks,
        .blocks_used = kv->n_blocks - mf_kv_free_blocks(kv),
        .blocks_shared = kv->n_shared,
        .blocks_cached = kv->n_cached,
        .copies = kv->copies,
        .hit_cells = kv->hit_cells,
        .bytes = kv->bytes,
    };
}

int32_t mf_kv_take(mf_kv *kv) {
    int32_t block = kv->n_free ? kv->free[--kv->n_free] : mf_kv_evict(kv);
    kv->refs[block] = 1;
    return block;
}

void mf_kv_refer(mf_kv *kv, int32_t block) {
    int32_t refs = ++kv->refs[block];
    if (refs == 1) mf_kv_uncache_block(kv, block);
    if (refs == 2) kv->n_shared++;
}

void mf_kv_drop(mf_kv *kv, int32_t block) {
    int32_t refs = --kv->refs[block];
    if (refs == 1) kv->n_shared--;
    if (refs > 0) return;
    if (kv->entries[block].number)
        mf_kv_cache_block(kv, block);
    else
        kv->free[kv->n_free++] = block;
}

static bool shared(const mf_kv *kv, const mf_kv_table *t, int32_t i) {
    return (size_t)i < t->blocks.len && kv->refs[t->blocks.data[i]] > 1;
}

int32_t mf_kv_blocks_needed(const mf_kv *kv, const mf_kv_table *table, int32_t first, int32_t n_cells) {
    int32_t need = blocks_for(n_cells) - (int32_t)table->blocks.len;
    if (need < 0) need = 0;
    for (int32_t i = first / MF_KV_BLOCK; i < blocks_for(n_cells); i++) need += shared(kv, table, i);
    return need;
}

bool mf_kv_fits_beside(mf_kv *kv, const mf_kv_table *table, int32_t n_cells, int32_t n_reserved,
                       const mf_kv_table *const *others, size_t n) {
    int32_t used = 0, need = blocks_for(n_cells) - (int32_t)table->blocks.len;
    if (need < 0) need = 0;
    memset(kv->marks, 0, (size_t)kv->n_blocks);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < others[k]->blocks.len && others[k] != table; i++) {
            uint8_t *mark = &kv->marks[others[k]->blocks.data[i]];
            used += !*mark;
            *mark = 1;
        }
    for (size_t i = 0; i < table->blocks.len; i++) {
        bool others_too = kv->marks[table->blocks.data[i]];
        used += !others_too;
        need += others_too && (int32_t)i >= table->n_cells / MF_KV_BLOCK && (int32_t)i < blocks_for(n_cells);
    }
    return need + n_reserved <= kv->n_blocks - used;
}

static void copy_block(mf_kv *kv, int32_t from, int32_t to) {
    for (int32_t l = 0; l < kv->view.n_layer; l++) {
        uint8_t *layer = kv->view.base + (size_t)l * kv->view.layer_stride;
        memcpy(layer + (size_t)to * kv->view.block_stride, layer + (size_t)from * kv->view.block_stride,
               kv->view.block_stride);
    }
}

int32_t mf_kv_borrow(mf_kv *kv, int32_t block) {
    mf_kv_refer(kv, block); // so that it isn't the one that makes room
    if (!kv->copies_only) return block;
    int32_t copy = mf_kv_free_blocks(kv) ? mf_kv_take(kv) : -1;
    if (copy >= 0) copy_block(kv, block, copy);
    mf_kv_drop(kv, block);
    return copy;
}

// Cells of block i are about to be written: nobody else may see that.
static void make_private(mf_kv *kv, mf_kv_table *table, int32_t i) {
    int32_t block = table->blocks.data[i];
    if (!shared(kv, table, i)) {
        mf_kv_forget(kv, block);
        return;
    }
    int32_t own = mf_kv_take(kv);
    copy_block(kv, block, own);
    kv->copies++;
    mf_kv_drop(kv, block);
    table->blocks.data[i] = own;
}

bool mf_kv_extend(mf_kv *kv, mf_kv_table *table, int32_t n_cells, mf_error *err) {
    int32_t need = mf_kv_blocks_needed(kv, table, table->n_cells, n_cells);
    if (need > mf_kv_free_blocks(kv))
        return mf_fail(err, MF_ERR_LIMIT, "the KV cache is full: %d more blocks of %d cells are needed, %d of %d are free",
                       need, MF_KV_BLOCK, mf_kv_free_blocks(kv), kv->n_blocks);
    size_t want = (size_t)blocks_for(n_cells);
    if (!mf_array_reserve(&table->blocks, want)) return mf_fail_memory(err, want * sizeof(int32_t), "a block table");
    for (int32_t i = table->n_cells / MF_KV_BLOCK; (size_t)i < table->blocks.len && (size_t)i < want; i++)
        make_private(kv, table, i);
    while (table->blocks.len < want) table->blocks.data[table->blocks.len++] = mf_kv_take(kv);
    if (n_cells > table->n_cells) table->n_cells = n_cells;
    return true;
}

void mf_kv_truncate(mf_kv *kv, mf_kv_table *table, int32_t n_cells) {
    if (n_cells >= table->n_cells) return;
    if (n_cells < 0) n_cells = 0;
    while (table->blocks.len > (size_t)blocks_for(n_cells)) mf_kv_drop(kv, table->blocks.data[--table->blocks.len]);
    table->n_cells = n_cells;
    table->shifted = table->shifted && n_cells > table->n_pure;
    table->loaded = table->loaded && n_cells > 0;
    if (table->n_indexed > n_cells / MF_KV_BLOCK) mf_kv_find_parent(kv, table, n_cells / MF_KV_BLOCK);
}

void mf_kv_release(mf_kv *kv, mf_kv_table *table) {
    mf_kv_truncate(kv, table, 0);
    free(table->blocks.data);
    *table = (mf_kv_table){0};
}

bool mf_kv_share(mf_kv *kv, const mf_kv_table *from, int32_t n_cells, mf_kv_table *to, mf_error *err) {
    if (to->n_cells || n_cells < 0 || n_cells > from->n_cells)
        return mf_fail(err, MF_ERR_ARGUMENT, "sharing %d of %d cells with a table of %d", n_cells, from->n_cells,
                       to->n_cells);
    size_t n = (size_t)blocks_for(n_cells);
    if (!mf_array_reserve(&to->blocks, n)) return mf_fail_memory(err, n * sizeof(int32_t), "a block table");
    for (size_t i = 0; i < n; i++) {
        int32_t block = mf_kv_borrow(kv, from->blocks.data[i]);
        if (block < 0) {
            to->n_cells = n_cells;
            mf_kv_release(kv, to);
            return mf_fail(err, MF_ERR_LIMIT, "the KV cache is full: %zu blocks are to be copied, %d are free", n, (int)i);
        }
        to->blocks.data[to->blocks.len++] = block;
    }
    to->n_cells = n_cells;
    to->shifted = from->shifted && n_cells > from->n_pure;
    to->n_pure = from->n_pure;
    to->loaded = from->loaded && n_cells > 0;
    mf_kv_find_parent(kv, to, from->n_indexed < n_cells / MF_KV_BLOCK ? from->n_indexed : n_cells / MF_KV_BLOCK);
    return true;
}

// ---- The bytes of a block

size_t mf_kv_block_bytes(const mf_kv *kv) { return (size_t)kv->view.n_layer * kv->view.block_stride; }

void mf_kv_save_block(const mf_kv *kv, const mf_kv_table *table, int32_t i, int32_t n, uint8_t *out) {
    const mf_kv_view *v = &kv->view;
    mf_kv_view image = *v;
    image.base = out, image.layer_stride = v->block_stride;
    if (n < MF_KV_BLOCK) memset(out, 0, mf_kv_block_bytes(kv));
    for (int32_t l = 0; l < v->n_layer; l++) {
        if (n == MF_KV_BLOCK) {
            memcpy(mf_kv_part(&image, l, 0, 0), mf_kv_part(v, l, table->blocks.data[i], 0), v->block_stride);
            continue;
        }
        for (int32_t h = 0; h < v->n_head_kv; h++)
            for (int32_t slot = 0; slot < n; slot++)
                mf_kv_copy_cell(v, mf_kv_part(v, l, table->blocks.data[i], h), slot, mf_kv_part(&image, l, 0, h), slot);
    }
}

void mf_kv_load_block(mf_kv *kv, const mf_kv_table *table, int32_t i, const uint8_t *in) {
    const mf_kv_view *v = &kv->view;
    for (int32_t l = 0; l < v->n_layer; l++)
        memcpy(mf_kv_part(v, l, table->blocks.data[i], 0), in + (size_t)l * v->block_stride, v->block_stride);
}
