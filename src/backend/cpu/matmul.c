// The reference matmuls: rows of the file, one dot product an output. docs/arithmetic.md, "Matmul".
#include "backend/cpu/act.h"
#include "backend/cpu/quantize.h"
#include "backend/cpu/rows.h"
#include "base/fma.h"
#include "base/half.h"
#include "quant/blocks.h"

// One output: the weights of a row (n values) times a row of activations of the format that goes with them.
typedef float dot_fn(const void *row, const void *act, int64_t n);

// ---- Floats --------------------------------------------------------------------------------------------------------------

static float dot_f32(const void *row, const void *act, int64_t n) {
    const char *w = row;
    const float *x = act;
    float acc = 0;
    for (int64_t k = 0; k < n; k++) {
        float value;
        memcpy(&value, w + 4 * k, 4);
        acc = mf_fma(value, x[k], acc);
    }
    return acc;
}

static uint16_t half_at(const void *row, int64_t k) {
    uint16_t h;
    memcpy(&h, (const char *)row + 2 * k, 2);
    return h;
}

static float dot_f16(const void *row, const void *act, int64_t n) {
    const float *x = act;
    float acc = 0;
    for (int64_t k = 0; k < n; k++) acc = mf_fma(mf_f16_to_f32(half_at(row, k)), x[k], acc);
    return acc;
}

static float dot_bf16(const void *row, const void *act, int64_t n) {
    const float *x = act;
    float acc = 0;
    for (int64_t k = 0; k < n; k++) acc = mf_fma(mf_bf16_to_f32(half_at(row, k)), x[k], acc);
    return acc;
}

// ---- One scale per 32 ----------------------------------------------------------------------------------------------------

static float dot_q4_0(const void *row, const void *act, int64_t n) {
    const mf_block_q4_0 *w = row;
    const mf_act32 a = mf_act32_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK; b++) {
        const int8_t *q = a.q + MF_QK * b;
        int32_t dot = 0;
        for (int i = 0; i < 16; i++) dot += ((w[b].qs[i] & 15) - 8) * q[i] + ((w[b].qs[i] >> 4) - 8) * q[i + 16];
        acc = mf_fma(mf_f16_to_f32(w[b].d) * a.d[b], (float)dot, acc);
    }
    return acc;
}

static float dot_q4_1(const void *row, const void *act, int64_t n) {
    const mf_block_q4_1 *w = row;
    const mf_act32 a = mf_act32_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK; b++) {
        const int8_t *q = a.q + MF_QK * b;
        int32_t dot = 0;
        for (int i = 0; i < 16; i++) dot += (w[b].qs[i] & 15) * q[i] + (w[b].qs[i] >> 4) * q[i + 16];
        acc = mf_fma(mf_f16_to_f32(w[b].d) * a.d[b], (float)dot, acc);
        acc = mf_fma(mf_f16_to_f32(w[b].m), a.s[b], acc);
    }
    return acc;
}

// Value i (0-31) of a block of 5-bit values.
static int five_bits(const uint8_t qh[4], const uint8_t qs[16], int i) {
    const int low = i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
    return low | (qh[i / 8] >> i % 8 & 1) << 4;
}

static float dot_q5_0(const void *row, const void *act, int64_t n) {
    const mf_block_q5_0 *w = row;
    const mf_act32 a = mf_act32_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK; b++) {
        int32_t dot = 0;
        for (int i = 0; i < MF_QK; i++) dot += (five_bits(w[b].qh, w[b].qs, i) - 16) * a.q[MF_QK * b + i];
        acc = mf_fma(mf_f16_to_f32(w[b].d) * a.d[b], (float)dot, acc);
    }
    return acc;
}

static float dot_q5_1(const void *row, const void *act, int64_t n) {
    const mf_block_q5_1 *w = row;
    const mf_act32 a = mf_act32_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK; b++) {
        int32_t dot = 0;
        for (int i = 0; i < MF_QK; i++) dot += five_bits(w[b].qh, w[b].qs, i) * a.q[MF_QK * b + i];
        acc = mf_fma(mf_f16_to_f32(w[b].d) * a.d[b], (float)dot, acc);
        acc = mf_fma(mf_f16_to_f32(w[b].m), a.s[b], acc);
    }
    return acc;
}

static float dot_q8_0(const void *row, const void *act, int64_t n) {
    const mf_block_q8_0 *w = row;
    const mf_act32 a = mf_act32_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK; b++) {
        int32_t dot = 0;
        for (int i = 0; i < MF_QK; i++) dot += w[b].qs[i] * a.q[MF_QK * b + i];
        acc = mf_fma(mf_f16_to_f32(w[b].d) * a.d[b], (float)dot, acc);
    }
    return acc;
}

// 32 values of the IQ4 types times their activations.
static int32_t iq4_dot(const uint8_t qs[16], const int8_t *q) {
    int32_t dot = 0;
    for (int i = 0; i < 16; i++) dot += mf_iq4_values[qs[i] & 15] * q[i] + mf_iq4_values[qs[i] >> 4] * q[i + 16];
    return dot;
}

static float dot_iq4_nl(const void *row, const void *act, int64_t n) {
    const mf_block_iq4_nl *w = row;
    const mf_act32 a = mf_act32_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK; b++) {
        acc = mf_fma(mf_f16_to_f32(w[b].d) * a.d[b], (float)iq4_dot(w[b].qs, a.q + MF_QK * b), acc);
    }
    return acc;
}

static float dot_iq4_xs(const void *row, const void *act, int64_t n) {
    const mf_block_iq4_xs *w = row;
    const mf_act32 a = mf_act32_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK; b++) {
        const mf_block_iq4_xs *s = &w[b / 8];
        const int g = (int)(b % 8);
        const int scale = ((s->scales_l[g / 2] >> g % 2 * 4 & 15) | (s->scales_h >> 2 * g & 3) << 4) - 32;
        const float d = mf_f16_to_f32(s->d) * (float)scale;
        acc = mf_fma(d * a.d[b], (float)iq4_dot(s->qs + 16 * g, a.q + MF_QK * b), acc);
    }
    return acc;
}

// ---- Super-blocks of 256 -------------------------------------------------------------------------------------------------

static float dot_q4_k(const void *row, const void *act, int64_t n) {
    const mf_block_q4_k *w = row;
    const mf_act256 a = mf_act256_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK_K; b++) {
        uint8_t sc[8], m[8];
        mf_q4_k_scales(w[b].scales, sc, m);
        int32_t sum = 0, min = 0;
        for (int j = 0; j < 8; j++) {
            const int8_t *q = a.q + MF_QK_K * b + 32 * j;
            int32_t dot = 0;
            for (int i = 0; i < 32; i++) dot += (w[b].qs[j / 2 * 32 + i] >> j % 2 * 4 & 15) * q[i];
            sum += sc[j] * dot;
            min += m[j] * a.asum32[8 * b + j];
        }
        acc = mf_fma(mf_f16_to_f32(w[b].d) * a.d[b], (float)sum, acc);
        acc = mf_fma(-(mf_f16_to_f32(w[b].dmin) * a.d[b]), (float)min, acc);
    }
    return acc;
}

static float dot_q5_k(const void *row, const void *act, int64_t n) {
    const mf_block_q5_k *w = row;
    const mf_act256 a = mf_act256_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK_K; b++) {
        uint8_t sc[8], m[8];
        mf_q4_k_scales(w[b].scales, sc, m);
        int32_t sum = 0, min = 0;
        for (int j = 0; j < 8; j++) {
            const int8_t *q = a.q + MF_QK_K * b + 32 * j;
            int32_t dot = 0;
            for (int i = 0; i < 32; i++) {
                dot += ((w[b].qs[j / 2 * 32 + i] >> j % 2 * 4 & 15) | (w[b].qh[i] >> j & 1) << 4) * q[i];
            }
            sum += sc[j] * dot;
            min += m[j] * a.asum32[8 * b + j];
        }
        acc = mf_fma(mf_f16_to_f32(w[b].d) * a.d[b], (float)sum, acc);
        acc = mf_fma(-(mf_f16_to_f32(w[b].dmin) * a.d[b]), (float)min, acc);
    }
    return acc;
}

static float dot_q6_k(const void *row, const void *act, int64_t n) {
    const mf_block_q6_k *w = row;
    const mf_act256 a = mf_act256_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK_K; b++) {
        int32_t sum = 0;
        for (int j = 0; j < 16; j++) {
            const int8_t *q = a.q + MF_QK_K * b + 16 * j;
            const int half = j / 8, quarter = j % 8 / 2, first = j % 2 * 16;
            const uint8_t *ql = w[b].ql + 64 * half + quarter % 2 * 32 + first, *qh = w[b].qh + 32 * half + first;
            int32_t dot = 0;
            for (int i = 0; i < 16; i++) {
                dot += (((ql[i] >> quarter / 2 * 4 & 15) | (qh[i] >> 2 * quarter & 3) << 4) - 32) * q[i];
            }
            sum += w[b].scales[j] * dot;
        }
        acc = mf_fma(mf_f16_to_f32(w[b].d) * a.d[b], (float)sum, acc);
    }
    return acc;
}

static float dot_q2_k(const void *row, const void *act, int64_t n) {
    const mf_block_q2_k *w = row;
    const mf_act256 a = mf_act256_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK_K; b++) {
        int32_t sum = 0, min = 0;
        for (int j = 0; j < 16; j++) {
            const int8_t *q = a.q + MF_QK_K * b + 16 * j;
            const uint8_t *qs = w[b].qs + j / 8 * 32 + j % 2 * 16;
            int32_t dot = 0;
            for (int i = 0; i < 16; i++) dot += (qs[i] >> j % 8 / 2 * 2 & 3) * q[i];
            sum += (w[b].scales[j] & 15) * dot;
            min += (w[b].scales[j] >> 4) * a.asum[16 * b + j];
        }
        acc = mf_fma(mf_f16_to_f32(w[b].d) * a.d[b], (float)sum, acc);
        acc = mf_fma(-(mf_f16_to_f32(w[b].dmin) * a.d[b]), (float)min, acc);
    }
    return acc;
}

static float dot_q3_k(const void *row, const void *act, int64_t n) {
    const mf_block_q3_k *w = row;
    const mf_act256 a = mf_act256_of(act, n);
    float acc = 0;
    for (int64_t b = 0; b < n / MF_QK_K; b++) {
        int8_t sc[16];
        mf_q3_k_scales(w[b].scales, sc);
        int32_t sum = 0;
        for (int j = 0; j < 16; j++) {
            const int8_t *q = a.q + MF_QK_K * b + 16 * j;
            const uint8_t *qs = w[b].qs + j / 8 * 32 + j % 2 * 16, *hmask = w[b].hmask + j % 2 * 16;
            int32_t dot = 0;
            for (int i = 0; i < 16; i++) dot += (((qs[i] >> j % 8 / 2 * 2 & 3) | (hmask[i] >> j / 2 & 1) << 2) - 4) * q[i];
            sum += sc[j] * dot;
        }
        acc = mf_fma(mf_f16_to_f32(w[b].d) * a.d[b], (float)sum, acc);
    }
    return acc;
}

// ---- The row of the table ------------------------------------------------------------------------------------------------

static dot_fn *const dots[MF_TYPE_LIMIT] = {
    [MF_TYPE_F32] = dot_f32,   [MF_TYPE_F16] = dot_f16,       [MF_TYPE_BF16] = dot_bf16,     [MF_TYPE_Q4_0] = dot_q4_0,
    [MF_TYPE_Q4_1] = dot_q4_1, [MF_TYPE_Q5_0] = dot_q5_0,     [MF_TYPE_Q5_1] = dot_q5_1,     [MF_TYPE_Q8_0] = dot_q8_0,
    [MF_TYPE_Q2_K] = dot_q2_k, [MF_TYPE_Q3_K] = dot_q3_k,     [MF_TYPE_Q4_K] = dot_q4_k,     [MF_TYPE_Q5_K] = dot_q5_k,
    [MF_TYPE_Q6_K] = dot_q6_k, [MF_TYPE_IQ4_NL] = dot_iq4_nl, [MF_TYPE_IQ4_XS] = dot_iq4_xs,
};

static void matmul(const mf_matrix *w, const void *act, size_t act_stride, int32_t n_rows, int32_t panel0, int32_t panel1,
                   float *dst, size_t dst_stride) {
    dot_fn *dot = dots[w->type];
    const int64_t first = (int64_t)panel0 * MF_PANEL;
    const int64_t end = (int64_t)panel1 * MF_PANEL < w->n_out ? (int64_t)panel1 * MF_PANEL : w->n_out;
    for (int32_t r = 0; r < n_rows; r++) {
        const char *row = (const char *)act + (size_t)r * act_stride;
        for (int64_t i = first; i < end; i++) {
            dst[(size_t)r * dst_stride + (size_t)i] = dot((const char *)w->data + (size_t)i * w->stride, row, w->n_in);
        }
    }
}

static uint64_t int8_peak(uint64_t rounds, uint32_t *sink) {
    int8_t a[16], b[16];
    int32_t sum[16] = {0};
    for (int i = 0; i < 16; i++) {
        a[i] = (int8_t)(*sink + (uint32_t)i);
        b[i] = (int8_t)(*sink * 3 + (uint32_t)i);
    }
    for (uint64_t n = 0; n < rounds; n++) {
        for (int i = 0; i < 16; i++) sum[i] = (int32_t)((uint32_t)sum[i] + (uint32_t)(a[i] * b[i]));
        __asm__ volatile("" : : "r"(a), "r"(b) : "memory");
    }
    for (int i = 0; i < 16; i++) *sink += (uint32_t)sum[i];
    return rounds * 16;
}

void mf_matmul_scalar(mf_kernels *k) {
    k->quantize_32 = mf_quantize_32_scalar;
    k->quantize_256 = mf_quantize_256_scalar;
    for (int type = 0; type < MF_TYPE_LIMIT; type++) k->matmul[type] = dots[type] ? matmul : NULL;
    k->panels = false;
    k->int8_peak = int8_peak;
}
