// The row kernels over lanes (lanes.h), written once for every instruction set: the including file has chosen the lanes and
// exports vector_fill.
#include <math.h>
#include <string.h>

#include "backend/cpu/attention.h"
#include "backend/cpu/lanes_math.h"
#include "backend/cpu/rows.h"
#include "base/half.h"

// out[i] = f(a[i], …) over whole lanes, then the rest; EXPRESSION is over x (and y), lanes of a (and b). An output may be one of
// the inputs.
#define LANES_MAP1(a, out, n, EXPRESSION)                    \
    do {                                                     \
        int64_t i_ = 0;                                      \
        for (; i_ + MF_LANES <= (n); i_ += MF_LANES) {       \
            lanes x = lanes_load((a) + i_);                  \
            lanes_store((out) + i_, EXPRESSION);             \
        }                                                    \
        if (i_ < (n)) {                                      \
            int32_t rest_ = (int32_t)((n)-i_);               \
            lanes x = lanes_load_part((a) + i_, rest_);      \
            lanes_store_part((out) + i_, EXPRESSION, rest_); \
        }                                                    \
    } while (0)

#define LANES_MAP2(a, b, out, n, EXPRESSION)                                                  \
    do {                                                                                      \
        int64_t i_ = 0;                                                                       \
        for (; i_ + MF_LANES <= (n); i_ += MF_LANES) {                                        \
            lanes x = lanes_load((a) + i_), y = lanes_load((b) + i_);                         \
            lanes_store((out) + i_, EXPRESSION);                                              \
        }                                                                                     \
        if (i_ < (n)) {                                                                       \
            int32_t rest_ = (int32_t)((n)-i_);                                                \
            lanes x = lanes_load_part((a) + i_, rest_), y = lanes_load_part((b) + i_, rest_); \
            lanes_store_part((out) + i_, EXPRESSION, rest_);                                  \
        }                                                                                     \
    } while (0)

static void vector_add(const float *a, const float *b, float *out, int64_t n) { LANES_MAP2(a, b, out, n, lanes_add(x, y)); }

static void vector_mul(const float *a, const float *b, float *out, int64_t n) { LANES_MAP2(a, b, out, n, lanes_mul(x, y)); }

static void vector_scale(const float *a, float scale, float *out, int64_t n) {
    lanes s = lanes_set1(scale);
    LANES_MAP1(a, out, n, lanes_mul(x, s));
}

static void vector_silu(const float *a, float *out, int64_t n) { LANES_MAP1(a, out, n, lanes_silu(x)); }

static void vector_gelu(const float *a, float *out, int64_t n) { LANES_MAP1(a, out, n, lanes_gelu(x)); }

static void vector_swiglu(const float *gate, const float *up, float *out, int64_t n) {
    LANES_MAP2(gate, up, out, n, lanes_mul(lanes_silu(x), y));
}

static void vector_rms_norm(const float *a, const float *w, float *out, int64_t n, float eps) {
    lanes sum = lanes_set1(0.0f);
    int64_t i = 0;
    for (; i + MF_LANES <= n; i += MF_LANES) {
        lanes x = lanes_load(a + i);
        sum = lanes_fma(x, x, sum);
    }
    if (i < n) {
        lanes x = lanes_load_part(a + i, (int32_t)(n - i));
        sum = lanes_fma(x, x, sum);
    }
    lanes r = lanes_set1(1.0f / sqrtf(lanes_fold_sum(sum) / (float)n + eps));
    LANES_MAP2(a, w, out, n, lanes_mul(lanes_mul(x, r), y));
}

// The lanes of the part of a row after its last whole sixteen, with `rest` where there is no element.
LANES_INLINE lanes load_rest(const float *a, int32_t n, float rest) {
    return lanes_select(lanes_between(0, n), lanes_load_part(a, n), lanes_set1(rest));
}

static float vector_max(const float *a, int64_t n) {
    lanes m = lanes_set1(-INFINITY);
    int64_t i = 0;
    for (; i + MF_LANES <= n; i += MF_LANES) m = lanes_max(lanes_load(a + i), m);
    if (i < n) m = lanes_max(load_rest(a + i, (int32_t)(n - i), -INFINITY), m);
    return lanes_fold_max(m);
}

static void vector_softmax(const float *a, float *out, int64_t n) {
    lanes m = lanes_set1(vector_max(a, n)), sum = lanes_set1(0.0f);
    int64_t i = 0;
    for (; i + MF_LANES <= n; i += MF_LANES) {
        lanes p = lanes_exp_of_negative(lanes_sub(lanes_load(a + i), m));
        lanes_store(out + i, p);
        sum = lanes_add(sum, p);
    }
    if (i < n) {
        int32_t rest = (int32_t)(n - i);
        lanes p = lanes_exp_of_negative(lanes_sub(lanes_load_part(a + i, rest), m));
        lanes_store_part(out + i, p, rest);
        sum = lanes_add(sum, lanes_select(lanes_between(0, rest), p, lanes_set1(0.0f)));
    }
    vector_scale(out, 1.0f / lanes_fold_sum(sum), out, n);
}

// Rotates (x0, x1) by lanes of cosines and sines.
LANES_INLINE void rotate(lanes *x, const lanes *turn) {
    lanes x0 = x[0], x1 = x[1];
    x[0] = lanes_fma(x0, turn[0], lanes_neg(lanes_mul(x1, turn[1])));
    x[1] = lanes_fma(x1, turn[0], lanes_mul(x0, turn[1]));
}

// n <= 16 pairs of every head that stand `half` channels apart; `turn` is for them.
LANES_INLINE void rope_halves(const float *a, float *out, int32_t n_head, int32_t head_dim, int32_t half, int32_t n,
                              const lanes *turn) {
    for (int32_t h = 0; h < n_head; h++, a += head_dim, out += head_dim) {
        lanes x[2];
        if (n == MF_LANES) {
            x[0] = lanes_load(a), x[1] = lanes_load(a + half);
            rotate(x, turn);
            lanes_store(out, x[0]), lanes_store(out + half, x[1]);
        } else {
            x[0] = lanes_load_part(a, n), x[1] = lanes_load_part(a + half, n);
            rotate(x, turn);
            lanes_store_part(out, x[0], n), lanes_store_part(out + half, x[1], n);
        }
    }
}

// n <= 16 pairs of every head that stand side by side.
LANES_INLINE void rope_neighbours(const float *a, float *out, int32_t n_head, int32_t head_dim, int32_t n,
                                  const lanes *turn) {
    for (int32_t h = 0; h < n_head; h++, a += head_dim, out += head_dim) {
        lanes x[2];
        float all[2 * MF_LANES] = {0};
        const float *from = a;
        float *to = out;
        if (n < MF_LANES) {
            memcpy(all, a, (size_t)(2 * n) * sizeof *a);
            from = to = all;
        }
        lanes_load_pairs(from, x);
        rotate(x, turn);
        lanes_store_pairs(to, x);
        if (n < MF_LANES) memcpy(out, all, (size_t)(2 * n) * sizeof *a);
    }
}

static void vector_rope(const float *a, const float *table, float *out, int32_t n_head, int32_t head_dim, int32_t n_dims,
                        bool interleaved) {
    int32_t half = n_dims / 2;
    for (int32_t i = 0; i < half; i += MF_LANES) {
        int32_t n = half - i < MF_LANES ? half - i : MF_LANES;
        float pairs[2 * MF_LANES] = {0};
        memcpy(pairs, table + 2 * i, (size_t)(2 * n) * sizeof *table);
        lanes turn[2];
        lanes_load_pairs(pairs, turn);
        if (interleaved)
            rope_neighbours(a + 2 * i, out + 2 * i, n_head, head_dim, n, turn);
        else
            rope_halves(a + i, out + i, n_head, head_dim, half, n, turn);
    }
    if (out == a) return;
    for (int32_t h = 0; h < n_head; h++)
        memcpy(out + (int64_t)h * head_dim + n_dims, a + (int64_t)h * head_dim + n_dims,
               (size_t)(head_dim - n_dims) * sizeof *a);
}

// mf_kv_hadamard over lanes; out may be x. Each step puts its sums into the lower half and its differences into the upper one, so the
// next pairs are neighbours too, and behind the last step the channels stand in order again.
static void vector_hadamard(const float *x, float *out, int32_t head_dim) {
    float buffer[2][MF_KV_HADAMARD];
    int32_t n = mf_kv_hadamard_width(head_dim);
    float norm = 1 / sqrtf((float)n);
    for (int32_t d = 0; d < head_dim; d += n) {
        const float *from = x + d;
        for (int32_t s = 1, turn = 0; s < n; s *= 2, turn ^= 1) {
            float *to = buffer[turn];
            for (int32_t i = 0; i < n / 2; i += MF_LANES) {
                lanes pair[2];
                lanes_load_pairs(from + 2 * i, pair);
                lanes_store(to + i, lanes_add(pair[0], pair[1]));
                lanes_store(to + n / 2 + i, lanes_sub(pair[0], pair[1]));
            }
            from = to;
        }
        vector_scale(from, norm, out + d, n);
    }
}

// mf_kv_quantize over lanes.
LANES_INLINE uint16_t quantize_group(const float *x, int8_t *q) {
    lanes largest = lanes_set1(0.0f), none = largest; // none: NaN where a value is not finite
    for (int i = 0; i < MF_KV_GROUP; i += MF_LANES) {
        lanes v = lanes_load(x + i);
        largest = lanes_max(lanes_max(v, lanes_neg(v)), largest);
        none = lanes_add(none, lanes_sub(v, v));
    }
    float amax = lanes_fold_max(largest), missing = lanes_fold_sum(none);
    uint16_t d = mf_f32_to_f16(amax / 127);
    memset(q, 0, MF_KV_GROUP);
    if (missing != missing || d >= 0x7c00) return 0x7e00;
    if (d == 0) return 0;
    lanes id = lanes_set1(1 / mf_f16_to_f32(d)), round = lanes_set1(0x1.8p23f), most = lanes_set1(127.0f);
    float r[MF_KV_GROUP];
    for (int i = 0; i < MF_KV_GROUP; i += MF_LANES) {
        lanes v = lanes_sub(lanes_add(lanes_mul(lanes_load(x + i), id), round), round);
        v = lanes_max(lanes_neg(lanes_max(lanes_neg(v), lanes_neg(most))), lanes_neg(most));
        lanes_store(r + i, v);
    }
    for (int i = 0; i < MF_KV_GROUP; i++) q[i] = (int8_t)r[i];
    return d;
}

// One head's cell as bytes.
LANES_INLINE void store_channels_q8(const mf_kv_view *kv, uint8_t *part, int32_t slot, const float *k, const float *v) {
    int32_t n = kv->head_dim;
    int8_t *k_cell = (int8_t *)part + mf_kv_k_index(n, slot, 0);
    int8_t *v_cell = (int8_t *)(part + kv->v_offset) + (size_t)slot * (size_t)n;
    uint16_t *k_scale = mf_kv_scales(kv, part), *v_scale = mf_kv_scales(kv, part + kv->v_offset);
    int32_t width = mf_kv_hadamard_width(n);
    float mixed[MF_KV_HADAMARD];
    for (int32_t d = 0; d < n; d += MF_KV_GROUP) {
        int8_t q[MF_KV_GROUP];
        if (d % width == 0) vector_hadamard(k + d, mixed, width);
        k_scale[mf_kv_scale_index(slot, d)] = quantize_group(mixed + d % width, q);
        v_scale[mf_kv_scale_index(slot, d)] = quantize_group(v + d, v_cell + d);
        for (int32_t i = 0; i < MF_KV_GROUP; i++) k_cell[(d + i) * MF_KV_LANES] = q[i];
    }
}

// n <= 16 channels of one head's cell. K's stand 16 elements apart, V's side by side.
LANES_INLINE void store_channels_f16(uint16_t *k_cell, uint16_t *v_cell, const float *k, const float *v, int32_t n) {
    uint16_t k_half[MF_LANES], v_half[MF_LANES];
    bool whole = n == MF_LANES;
    lanes_store_f16(k_half, whole ? lanes_load(k) : lanes_load_part(k, n));
    lanes_store_f16(whole ? v_cell : v_half, whole ? lanes_load(v) : lanes_load_part(v, n));
    for (int32_t d = 0; d < n; d++) k_cell[d * MF_KV_LANES] = k_half[d];
    if (!whole) memcpy(v_cell, v_half, (size_t)n * sizeof *v_half);
}

static void vector_kv_store(const mf_kv_view *kv, int32_t layer, int32_t block, int32_t slot, const float *k,
                            const float *v) {
    int32_t n = kv->head_dim;
    for (int32_t h = 0; h < kv->n_head_kv; h++, k += n, v += n) {
        uint8_t *part = mf_kv_part(kv, layer, block, h);
        size_t k_first = mf_kv_k_index(n, slot, 0), v_first = (size_t)slot * (size_t)n;
        if (kv->type == MF_TYPE_Q8_0) {
            store_channels_q8(kv, part, slot, k, v);
        } else if (kv->type == MF_TYPE_F16) {
            uint16_t *k_cell = (uint16_t *)part + k_first, *v_cell = (uint16_t *)(part + kv->v_offset) + v_first;
            for (int32_t d = 0; d < n; d += MF_LANES)
                store_channels_f16(k_cell + d * MF_KV_LANES, v_cell + d, k + d, v + d, n - d < MF_LANES ? n - d : MF_LANES);
        } else {
            float *k_cell = (float *)part + k_first;
            for (int32_t d = 0; d < n; d++) k_cell[d * MF_KV_LANES] = k[d];
            memcpy((float *)(part + kv->v_offset) + v_first, v, (size_t)n * sizeof *v);
        }
    }
}

#include "backend/cpu/attention_body.h"

static void vector_fill(mf_kernels *k) {
    k->rms_norm = vector_rms_norm;
    k->softmax = vector_softmax;
    k->add = vector_add;
    k->mul = vector_mul;
    k->scale = vector_scale;
    k->silu = vector_silu;
    k->gelu = vector_gelu;
    k->swiglu = vector_swiglu;
    k->rope = vector_rope;
    k->kv_store = vector_kv_store;
    k->attention = vector_attention;
    k->attention_merge = vector_attention_merge;
}
