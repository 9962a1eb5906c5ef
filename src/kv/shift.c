// The context shift: a sequence loses a range of its cells, and what stood behind it moves down into blocks of its own.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/real.h"
#include "kv/cells.h"
#include "kv/state.h"

typedef struct shift {
    mf_kv *kv;
    const mf_rope_params *rope;
    int32_t n_keep, n_discard, n; // n: cells afterwards
    int32_t first;                // the block in which the change begins
    const int32_t *old;           // the table's blocks before, from `first` on
    int32_t n_old;
    double *turn; // [n_dims / 2] cosine, sine of the turn back
    float *cells; // [n_layer * n_head_kv][head_dim] for the workers
} shift;

// The last new block that reads old block first + i; first - 1: none does.
static int32_t last_reader(const shift *s, int32_t i) {
    int64_t begin = (int64_t)(s->first + i) * MF_KV_BLOCK - s->n_discard, end = begin + MF_KV_BLOCK; // as cells afterwards
    if (begin < s->n_keep) begin = s->n_keep;
    if (end > s->n) end = s->n;
    if (begin < end) return (int32_t)((end - 1) / MF_KV_BLOCK);
    return i == 0 && s->n_keep % MF_KV_BLOCK ? s->first : s->first - 1;
}

static int32_t n_blocks(int32_t cells) { return (int32_t)(((int64_t)cells + MF_KV_BLOCK - 1) / MF_KV_BLOCK); }

// Free blocks without which some new one would have none in its turn, as old ones are given back behind their last reader.
static int32_t free_blocks_needed(const shift *s) {
    int32_t most = 0;
    for (int32_t j = s->first; j < n_blocks(s->n); j++) {
        int32_t need = j - s->first + 1;
        for (int32_t i = 0; i < s->n_old; i++) need -= last_reader(s, i) < j && s->kv->refs[s->old[i]] == 1;
        if (need > most) most = need;
    }
    return most;
}

static void turn_back(const shift *s, uint8_t *part, int32_t slot, float *cell) {
    const mf_kv_view *kv = &s->kv->view;
    int32_t half = s->rope->n_dims / 2, n = s->rope->n_dims;
    mf_kv_read_k(kv, part, slot, cell);
    if (kv->type == MF_TYPE_Q8_0) mf_kv_hadamard(cell, kv->head_dim);
    for (int32_t i = 0; i < half; i++) {
        float *x0 = cell + (s->rope->interleaved ? 2 * i : i), *x1 = s->rope->interleaved ? x0 + 1 : x0 + half;
        double a = (double)*x0, b = (double)*x1, cosine = s->turn[2 * i], sine = s->turn[2 * i + 1];
        *x0 = (float)(a * cosine - b * sine);
        *x1 = (float)(b * cosine + a * sine);
    }
    int32_t width = kv->type == MF_TYPE_Q8_0 ? mf_kv_hadamard_width(kv->head_dim) : 1;
    n = (n + width - 1) / width * width;
    mf_kv_write_k(kv, part, slot, n, cell);
}

// New block j out of the old ones.
typedef struct filling {
    const shift *s;
    int32_t j, block;
} filling;

// A layer's head of it.
static void fill_head(void *arg, int32_t piece) {
    const filling *f = arg;
    const shift *s = f->s;
    const mf_kv_view *kv = &s->kv->view;
    int32_t l = piece / kv->n_head_kv, h = piece % kv->n_head_kv, first = f->j * MF_KV_BLOCK;
    int32_t end = s->n - first < MF_KV_BLOCK ? s->n - first : MF_KV_BLOCK;
    uint8_t *part = mf_kv_part(kv, l, f->block, h);
    for (int32_t slot = 0; slot < end; slot++) {
        bool moves = first + slot >= s->n_keep;
        int32_t from = first + slot + (moves ? s->n_discard : 0);
        const uint8_t *old = mf_kv_part(kv, l, s->old[from / MF_KV_BLOCK - s->first], h);
        mf_kv_copy_cell(kv, old, from % MF_KV_BLOCK, part, slot);
        if (moves) turn_back(s, part, slot, s->cells + (size_t)piece * (size_t)kv->head_dim);
    }
}

static void move(const shift *s, mf_kv_table *table) {
    for (int32_t j = s->first;; j++) {
        for (int32_t i = 0; i < s->n_old; i++)
            if (last_reader(s, i) == j - 1) mf_kv_drop(s->kv, s->old[i]);
        table->blocks.len = (size_t)j;
        if (j == n_blocks(s->n)) return;
        mf_device *device = s->kv->device;
        filling f = {s, j, mf_kv_take(s->kv)};
        device->class->share_out(device, s->kv->view.n_layer * s->kv->view.n_head_kv, fill_head, &f);
        table->blocks.data[j] = f.block;
    }
}

static bool has_room(const shift *s, mf_error *err) {
    int32_t need = free_blocks_needed(s), free_blocks = mf_kv_free_blocks(s->kv);
    return need <= free_blocks ||
           mf_fail(err, MF_ERR_LIMIT, "the KV cache is full: a shift by %d cells needs %d free blocks, %d of %d are free",
                   s->n_discard, need, free_blocks, s->kv->n_blocks);
}

static bool prepare(shift *s, mf_error *err) {
    const mf_rope_params *rope = s->rope;
    const mf_kv_view *kv = &s->kv->view;
    size_t pairs = (size_t)rope->n_dims / 2, heads = (size_t)kv->n_layer * (size_t)kv->n_head_kv;
    int32_t *old = mf_alloc((size_t)s->n_old, sizeof *old);
    if (old) memcpy(old, s->old, (size_t)s->n_old * sizeof *old); // the table's change on the way
    s->old = old;
    s->turn = mf_alloc(2 * pairs, sizeof *s->turn);
    s->cells = mf_alloc(heads * (size_t)kv->head_dim, sizeof *s->cells);
    if (!old || !s->turn || !s->cells) return mf_fail_memory(err, heads * sizeof *s->cells, "a context shift");
    for (size_t i = 0; i < pairs; i++)
        mf_sincos64(-(double)s->n_discard * rope->inv_freq[i], &s->turn[2 * i + 1], &s->turn[2 * i]);
    return has_room(s, err);
}

static shift shift_of(mf_kv *kv, const mf_kv_table *table, int32_t n_keep, int32_t n_discard) {
    int32_t first = n_keep / MF_KV_BLOCK;
    return (shift){.kv = kv,
                   .n_keep = n_keep,
                   .n_discard = n_discard,
                   .n = table->n_cells - n_discard,
                   .first = first,
                   .old = table->blocks.data + first,
                   .n_old = (int32_t)table->blocks.len - first};
}

int32_t mf_kv_shift_needs(mf_kv *kv, const mf_kv_table *table, int32_t n_keep, int32_t n_discard) {
    if (n_keep + n_discard >= table->n_cells) return 0;
    shift s = shift_of(kv, table, n_keep, n_discard);
    return free_blocks_needed(&s);
}

bool mf_kv_shift(mf_kv *kv, mf_kv_table *table, int32_t n_keep, int32_t n_discard, const mf_rope_params *rope,
                 mf_error *err) {
    if (n_keep < 0 || n_discard < 1 || n_discard > table->n_cells || n_keep > table->n_cells - n_discard)
        return mf_fail(err, MF_ERR_ARGUMENT, "dropping %d cells behind %d of %d", n_discard, n_keep, table->n_cells);
    if (n_keep + n_discard == table->n_cells) return mf_kv_truncate(kv, table, n_keep), true;
    shift s = shift_of(kv, table, n_keep, n_discard);
    s.rope = rope;
    bool ok = prepare(&s, err);
    if (ok) {
        move(&s, table);
        table->n_cells = s.n;
        if (table->n_indexed > s.first) mf_kv_find_parent(kv, table, s.first);
        if (!table->shifted || n_keep < table->n_pure) table->n_pure = n_keep;
        table->shifted = s.n > table->n_pure;
    }
    free((void *)s.old);
    free(s.turn);
    free(s.cells);
    return ok;
}
