// The reference of attention and of the merge of its splits.
#include "backend/cpu/attention.h"

#include <math.h>
#include <string.h>

#include "base/fma.h"
#include "base/real.h"

static void merge(float *a, const float *b, int32_t head_dim) {
    if (b[1] == 0.0f) return;
    if (a[1] == 0.0f) {
        memcpy(a, b, mf_attention_state_floats(head_dim) * sizeof *a);
        return;
    }
    float m = mf_larger(b[0], a[0]);
    float wa = mf_exp(a[0] - m), wb = mf_exp(b[0] - m);
    a[0] = m;
    a[1] = mf_fma(a[1], wa, b[1] * wb);
    for (int32_t d = 0; d < head_dim; d++) a[2 + d] = mf_fma(a[2 + d], wa, b[2 + d] * wb);
}

void mf_attention_merge_scalar(float *a, const float *b, int32_t n, int32_t head_dim) {
    size_t step = mf_attention_state_floats(head_dim);
    for (int32_t i = 0; i < n; i++, a += step, b += step) merge(a, b, head_dim);
}

void mf_attention_finish(const float *state, float *out, int32_t head_dim) {
    float r = 1.0f / state[1];
    for (int32_t d = 0; d < head_dim; d++) out[d] = state[2 + d] * r;
}

size_t mf_attention_scratch_floats(int32_t n_group, int32_t head_dim) {
    return mf_attention_layout_of((size_t)n_group * MF_ATTENTION_ROWS, head_dim).total + MF_LANES;
}

// t * tanh(s / t)
static float softcapped(float s, float t) {
    float u = s / t;
    return t * (1.0f - 2.0f / (mf_exp(2.0f * u) + 1.0f));
}

// One split of one query vector, already scaled. score: 256 floats; cell: head_dim; state: where M, L and O of this split go.
static void attend_split(const mf_attention_piece *p, const float *q, int32_t split, mf_cell_range range, float *score,
                         float *cell, float *state) {
    const mf_kv_view *kv = p->kv;
    int32_t head_dim = kv->head_dim;
    const int32_t *table = p->table + (int64_t)split * (MF_ATTENTION_SPLIT / MF_KV_BLOCK);
    float largest[MF_LANES], l[MF_LANES] = {0};
    for (int j = 0; j < MF_LANES; j++) largest[j] = -INFINITY;
    for (int32_t c = range.begin; c < range.end; c++) {
        const uint8_t *part = mf_kv_part(kv, p->layer, table[c / MF_KV_BLOCK], p->kv_head);
        float s = 0.0f;
        mf_kv_read_k(kv, part, c % MF_KV_BLOCK, cell);
        for (int32_t d = 0; d < head_dim; d++) s = mf_fma(q[d], cell[d], s);
        score[c] = p->softcap > 0.0f ? softcapped(s, p->softcap) : s;
        largest[c % MF_LANES] = mf_larger(score[c], largest[c % MF_LANES]);
    }
    float m = mf_fold_max(largest);
    float *o = state + 2;
    for (int32_t d = 0; d < head_dim; d++) o[d] = 0.0f;
    for (int32_t c = range.begin; c < range.end; c++) {
        float w = mf_exp(score[c] - m);
        mf_kv_read_v(kv, mf_kv_part(kv, p->layer, table[c / MF_KV_BLOCK], p->kv_head), c % MF_KV_BLOCK, cell);
        l[c % MF_LANES] = l[c % MF_LANES] + w;
        for (int32_t d = 0; d < head_dim; d++) o[d] = mf_fma(w, cell[d], o[d]);
    }
    state[0] = m;
    state[1] = mf_fold_sum(l);
}

void mf_attention_scalar(const mf_attention_piece *p) {
    int32_t head_dim = p->kv->head_dim;
    float *q = p->scratch, *score = q + head_dim, *cell = score + MF_ATTENTION_SPLIT, *split_state = cell + head_dim;
    for (int32_t r = 0; r < p->n_rows; r++) {
        for (int32_t g = 0; g < p->n_group; g++) {
            const float *src = p->q + (size_t)r * p->q_stride + (size_t)g * (size_t)head_dim;
            float *state = p->state + (size_t)(r * p->n_group + g) * mf_attention_state_floats(head_dim);
            for (int32_t d = 0; d < head_dim; d++) q[d] = src[d] * p->scale;
            if (p->kv->type == MF_TYPE_Q8_0) mf_kv_hadamard(q, head_dim);
            state[1] = 0.0f;
            for (int32_t split = p->split0; split < p->split1; split++) {
                mf_cell_range range = mf_attention_cells(p, r, split);
                if (range.begin >= range.end) continue;
                attend_split(p, q, split, range, score, cell, split_state);
                merge(state, split_state, head_dim);
            }
        }
    }
}
