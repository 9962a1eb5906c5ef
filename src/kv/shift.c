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
    float *cell;  // [head_dim]
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

// Whether there is a free block for each new one in its turn, as old ones are given back behind their last reader.
static bool has_room(const shift *s, mf_error *err) {
    int32_t free_blocks = mf_kv_free_blocks(s->kv);
    for (int32_t j = s->first; j < n_blocks(s->n); j++) {
        int32_t given = 0;
        for (int32_t i = 0; i < s->n_old; i++) given += last_reader(s, i) < j && s->kv->refs[s->old[i]] == 1;
        if (free_blocks + given <= j - s->first)
            return mf_fail(err, MF_ERR_LIMIT,
                           "the KV cache is full: a shift by %d cells needs a free block, %d of %d are free", s->n_discard,
                           free_blocks, s->kv->n_blocks);
    }
    return true;
}

static void turn_back(const shift *s, uint8_t *part, int32_t slot) {
    const mf_kv_view *kv = &s->kv->view;
    int32_t half = s->rope->n_dims / 2, n = s->rope->n_dims;
    mf_kv_read_k(kv, part, slot, s->cell);
    if (kv->type == MF_TYPE_Q8_0) mf_kv_hadamard(s->cell, kv->head_dim);
    for (int32_t i = 0; i < half; i++) {
        float *x0 = s->cell + (s->rope->interleaved ? 2 * i : i), *x1 = s->rope->interleaved ? x0 + 1 : x0 + half;
        double a = (double)*x0, b = (double)*x1, cosine = s->turn[2 * i], sine = s->turn[2 * i + 1];
        *x0 = (float)(a * cosine - b * sine);
        *x1 = (float)(b * cosine + a * sine);
    }
    int32_t width = kv->type == MF_TYPE_Q8_0 ? mf_kv_hadamard_width(kv->head_dim) : 1;
    n = (n + width - 1) / width * width;
    mf_kv_write_k(kv, part, slot, n, s->cell);
}

// New block j out of the old ones.
static void fill(const shift *s, int32_t j, int32_t block) {
    const mf_kv_view *kv = &s->kv->view;
    int32_t end = s->n - j * MF_KV_BLOCK < MF_KV_BLOCK ? s->n - j * MF_KV_BLOCK : MF_KV_BLOCK;
    for (int32_t l = 0; l < kv->n_layer; l++)
        for (int32_t h = 0; h < kv->n_head_kv; h++) {
            uint8_t *part = mf_kv_part(kv, l, block, h);
            for (int32_t slot = 0; slot < end; slot++) {
                bool moves = j * MF_KV_BLOCK + slot >= s->n_keep;
                int32_t from = j * MF_KV_BLOCK + slot + (moves ? s->n_discard : 0);
                const uint8_t *old = mf_kv_part(kv, l, s->old[from / MF_KV_BLOCK - s->first], h);
                mf_kv_copy_cell(kv, old, from % MF_KV_BLOCK, part, slot);
                if (moves) turn_back(s, part, slot);
            }
        }
}

static void move(const shift *s, mf_kv_table *table) {
    for (int32_t j = s->first;; j++) {
        for (int32_t i = 0; i < s->n_old; i++)
            if (last_reader(s, i) == j - 1) mf_kv_drop(s->kv, s->old[i]);
        table->blocks.len = (size_t)j;
        if (j == n_blocks(s->n)) return;
        int32_t block = mf_kv_take(s->kv);
        fill(s, j, block);
        table->blocks.data[j] = block;
    }
}

static bool prepare(shift *s, const mf_kv_table *table, mf_error *err) {
    const mf_rope_params *rope = s->rope;
    size_t pairs = (size_t)rope->n_dims / 2, n_old = table->blocks.len - (size_t)s->first;
    int32_t *old = mf_alloc(n_old, sizeof *old);
    s->old = old;
    s->turn = mf_alloc(2 * pairs, sizeof *s->turn);
    s->cell = mf_alloc((size_t)s->kv->view.head_dim, sizeof *s->cell);
    if (!old || !s->turn || !s->cell) return mf_fail_memory(err, n_old * sizeof *old, "a context shift");
    if (n_old) memcpy(old, table->blocks.data + s->first, n_old * sizeof *old);
    s->n_old = (int32_t)n_old;
    for (size_t i = 0; i < pairs; i++)
        mf_sincos64(-(double)s->n_discard * rope->inv_freq[i], &s->turn[2 * i + 1], &s->turn[2 * i]);
    return has_room(s, err);
}

bool mf_kv_shift(mf_kv *kv, mf_kv_table *table, int32_t n_keep, int32_t n_discard, const mf_rope_params *rope,
                 mf_error *err) {
    if (n_keep < 0 || n_discard < 1 || n_discard > table->n_cells || n_keep > table->n_cells - n_discard)
        return mf_fail(err, MF_ERR_ARGUMENT, "dropping %d cells behind %d of %d", n_discard, n_keep, table->n_cells);
    if (n_keep + n_discard == table->n_cells) return mf_kv_truncate(kv, table, n_keep), true;
    shift s = {.kv = kv,
               .rope = rope,
               .n_keep = n_keep,
               .n_discard = n_discard,
               .n = table->n_cells - n_discard,
               .first = n_keep / MF_KV_BLOCK};
    bool ok = prepare(&s, table, err);
    if (ok) {
        move(&s, table);
        table->n_cells = s.n;
        if (table->n_indexed > s.first) mf_kv_find_parent(kv, table, s.first);
        if (!table->shifted || n_keep < table->n_pure) table->n_pure = n_keep;
        table->shifted = s.n > table->n_pure;
    }
    free((void *)s.old);
    free(s.turn);
    free(s.cell);
    return ok;
}
