// The reference of the row kernels: plain loops in the order of docs/arithmetic.md.
#include "backend/cpu/vector.h"

#include <math.h>
#include <string.h>

#include "backend/cpu/attention.h"
#include "backend/cpu/rows.h"
#include "base/fma.h"
#include "base/real.h"

static void rms_norm_scalar(const float *x, const float *w, float *out, int64_t n, float eps) {
    float l[MF_LANES] = {0};
    for (int64_t i = 0; i < n; i++) l[i % MF_LANES] = mf_fma(x[i], x[i], l[i % MF_LANES]);
    float r = 1.0f / sqrtf(mf_fold_sum(l) / (float)n + eps);
    for (int64_t i = 0; i < n; i++) out[i] = (x[i] * r) * w[i];
}

static float max_scalar(const float *x, int64_t n) {
    float l[MF_LANES];
    for (int j = 0; j < MF_LANES; j++) l[j] = -INFINITY;
    for (int64_t i = 0; i < n; i++) l[i % MF_LANES] = mf_larger(x[i], l[i % MF_LANES]);
    return mf_fold_max(l);
}

static void softmax_scalar(const float *x, float *out, int64_t n) {
    float m = max_scalar(x, n);
    float l[MF_LANES] = {0};
    for (int64_t i = 0; i < n; i++) {
        out[i] = mf_exp(x[i] - m);
        l[i % MF_LANES] = l[i % MF_LANES] + out[i];
    }
    float r = 1.0f / mf_fold_sum(l);
    for (int64_t i = 0; i < n; i++) out[i] = out[i] * r;
}

static void add_scalar(const float *a, const float *b, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = a[i] + b[i];
}

static void mul_scalar(const float *a, const float *b, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = a[i] * b[i];
}

static void scale_scalar(const float *a, float scale, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = a[i] * scale;
}

static float silu(float x) { return x / (1.0f + mf_exp(-x)); }

static void silu_scalar(const float *a, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = silu(a[i]);
}

static void gelu_scalar(const float *a, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        float x = a[i];
        float inner = mf_fma(MF_GELU_CUBE * (x * x), x, x);
        out[i] = x / (1.0f + mf_exp(MF_GELU_OUTER * inner));
    }
}

static void swiglu_scalar(const float *gate, const float *up, float *out, int64_t n) {
    for (int64_t i = 0; i < n; i++) out[i] = silu(gate[i]) * up[i];
}

static void rope_scalar(const float *x, const float *table, float *out, int32_t n_head, int32_t head_dim, int32_t n_dims,
                        bool interleaved) {
    int32_t half = n_dims / 2;
    for (int32_t h = 0; h < n_head; h++, x += head_dim, out += head_dim) {
        for (int32_t i = 0; i < half; i++) {
            int32_t i0 = interleaved ? 2 * i : i;
            int32_t i1 = interleaved ? 2 * i + 1 : i + half;
            float c = table[2 * i], s = table[2 * i + 1];
            float x0 = x[i0], x1 = x[i1];
            out[i0] = mf_fma(x0, c, -(x1 * s));
            out[i1] = mf_fma(x1, c, x0 * s);
        }
        if (out != x) memcpy(out + n_dims, x + n_dims, (size_t)(head_dim - n_dims) * sizeof *x);
    }
}

static void kv_store_scalar(const mf_kv_view *kv, int32_t layer, int32_t block, int32_t slot, const float *k,
                            const float *v) {
    int32_t n = kv->head_dim;
    for (int32_t h = 0; h < kv->n_head_kv; h++, k += n, v += n) {
        uint8_t *part = mf_kv_part(kv, layer, block, h);
        mf_kv_write_k(kv, part, slot, n, k);
        mf_kv_write_v(kv, part, slot, n, v);
    }
}

void mf_vector_scalar(mf_kernels *k) {
    k->rms_norm = rms_norm_scalar;
    k->softmax = softmax_scalar;
    k->add = add_scalar;
    k->mul = mul_scalar;
    k->scale = scale_scalar;
    k->silu = silu_scalar;
    k->gelu = gelu_scalar;
    k->swiglu = swiglu_scalar;
    k->rope = rope_scalar;
    k->kv_store = kv_store_scalar;
    k->attention = mf_attention_scalar;
    k->attention_merge = mf_attention_merge_scalar;
}
