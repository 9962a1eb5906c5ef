// Matmuls with float weights on NEON: acc = fma(w, x, acc), k ascending, 16 outputs side by side.
#include <string.h>

#include "backend/cpu/arm/lanes_neon.h"
#include "backend/cpu/arm/matmul_neon.h"

#define GROUP 4 // rows of activations that share a load of weights

LANES_INLINE lanes load_weights(mf_type t, const uint8_t *panel, int64_t k) {
    if (t == MF_TYPE_F32) return lanes_load((const float *)panel + k * MF_PANEL);
    const uint16_t *half = (const uint16_t *)panel + k * MF_PANEL;
    if (t == MF_TYPE_F16) return lanes_load_f16(half);
    float32x4_t q[4];
    for (int v = 0; v < 4; v++) q[v] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(half + 4 * v), 16));
    return (lanes){q[0], q[1], q[2], q[3]};
}

LANES_INLINE void rows(mf_type t, const uint8_t *panel, int64_t n_in, const float *const *x, int n, float (*out)[MF_PANEL]) {
    lanes sum[GROUP];
    LANES_UNROLL
    for (int r = 0; r < n; r++) sum[r] = lanes_set1(0);
    for (int64_t k = 0; k < n_in; k++) {
        const lanes w = load_weights(t, panel, k);
        LANES_UNROLL
        for (int r = 0; r < n; r++) sum[r] = lanes_fma(w, lanes_set1(x[r][k]), sum[r]);
    }
    LANES_UNROLL
    for (int r = 0; r < n; r++) lanes_store(out[r], sum[r]);
}

LANES_INLINE void group(mf_type t, const uint8_t *panel, int64_t n_in, const float *const *x, int n,
                        float (*out)[MF_PANEL]) {
    if (n == 4) rows(t, panel, n_in, x, 4, out);
    if (n == 3) rows(t, panel, n_in, x, 3, out);
    if (n == 2) rows(t, panel, n_in, x, 2, out);
    if (n == 1) rows(t, panel, n_in, x, 1, out);
}

void mf_matmul_float_neon(const mf_matrix *w, const void *act, size_t act_stride, int32_t n_rows, int32_t panel0,
                          int32_t panel1, float *dst, size_t dst_stride) {
    for (int32_t p = panel0; p < panel1; p++) {
        const uint8_t *panel = (const uint8_t *)w->data + (size_t)p * w->stride;
        const int64_t first = (int64_t)p * MF_PANEL, left = w->n_out - first;
        const size_t n_store = left < MF_PANEL ? (size_t)left : MF_PANEL;
        for (int32_t r = 0, n; r < n_rows; r += n) {
            const float *x[GROUP];
            float out[GROUP][MF_PANEL];
            n = n_rows - r < GROUP ? n_rows - r : GROUP;
            for (int i = 0; i < n; i++) x[i] = (const float *)((const char *)act + (size_t)(r + i) * act_stride);
            if (w->type == MF_TYPE_F32) group(MF_TYPE_F32, panel, w->n_in, x, n, out);
            if (w->type == MF_TYPE_F16) group(MF_TYPE_F16, panel, w->n_in, x, n, out);
            if (w->type == MF_TYPE_BF16) group(MF_TYPE_BF16, panel, w->n_in, x, n, out);
            for (int i = 0; i < n; i++) memcpy(dst + (size_t)(r + i) * dst_stride + first, out[i], n_store * sizeof(float));
        }
    }
}
