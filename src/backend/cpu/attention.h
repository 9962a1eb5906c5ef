// Where attention's cells are, and which of them a row sees: shared by the reference and the vector kernels.
#ifndef MF_BACKEND_CPU_ATTENTION_H
#define MF_BACKEND_CPU_ATTENTION_H

#include "backend/cpu/kernels.h"
#include "backend/cpu/vector.h"
#include "kv/cells.h"

// Cells of a split, counted from its first: [begin, end). Empty when begin >= end.
typedef struct mf_cell_range {
    int32_t begin, end;
} mf_cell_range;

static inline mf_cell_range mf_attention_cells(const mf_attention_piece *p, int32_t row, int32_t split) {
    int64_t base = (int64_t)split * MF_ATTENTION_SPLIT;
    int64_t begin = p->window > 0 ? (int64_t)p->cell[row] - p->window + 1 - base : -base;
    int64_t end = (int64_t)p->cell[row] + 1 - base;
    return (mf_cell_range){.begin = (int32_t)(begin < 0                    ? 0
                                              : begin > MF_ATTENTION_SPLIT ? MF_ATTENTION_SPLIT
                                                                           : begin),
                           .end = (int32_t)(end < 0                    ? 0
                                            : end > MF_ATTENTION_SPLIT ? MF_ATTENTION_SPLIT
                                                                       : end)};
}

// Floats of an attention state: M, L, then O.
static inline size_t mf_attention_state_floats(int32_t head_dim) { return (size_t)head_dim + 2; }

// The scratch of a piece with `queries` query vectors (rows x heads of a group), in floats from a 64-byte boundary. Rows of scores and
// of results are padded so that a kernel can work on whole lanes.
typedef struct mf_attention_layout {
    size_t result_stride; // head_dim rounded up to 16
    size_t query;         // [queries][head_dim], scaled
    size_t score;         // [queries][MF_SCORE_STRIDE]: scores, then p
    size_t result;        // [queries][result_stride]: o of a split
    size_t largest, sum;  // [queries]: m and l of a split
    size_t cells;         // [65][result_stride]: K or V as floats
    size_t scales;        // [head_dim / 32][64]: the scales of a block's K or V as floats
    size_t total;
} mf_attention_layout;

#define MF_SCORE_STRIDE (MF_ATTENTION_SPLIT + MF_LANES) // not a power of two, so that rows do not meet in one cache set

static inline size_t mf_whole_lanes(size_t n) { return (n + MF_LANES - 1) / MF_LANES * MF_LANES; }

static inline mf_attention_layout mf_attention_layout_of(size_t queries, int32_t head_dim) {
    mf_attention_layout l = {.result_stride = mf_whole_lanes((size_t)head_dim)};
    l.score = mf_whole_lanes(queries * (size_t)head_dim);
    l.result = l.score + queries * MF_SCORE_STRIDE;
    l.largest = l.result + queries * l.result_stride;
    l.sum = l.largest + mf_whole_lanes(queries);
    l.cells = l.sum + mf_whole_lanes(queries);
    l.scales = l.cells + (MF_KV_BLOCK + 1) * l.result_stride;
    l.total = l.scales + MF_KV_BLOCK * ((size_t)head_dim / MF_KV_GROUP);
    return l;
}

void mf_attention_scalar(const mf_attention_piece *piece);
void mf_attention_merge_scalar(float *a, const float *b, int32_t n, int32_t head_dim);

#endif
