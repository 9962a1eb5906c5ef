// Quantized matmuls with Armv8.2's dot product of bytes.
#include <arm_neon.h>

#include "backend/cpu/rows.h"

#define DOT4(sum, w, a, lane) vdotq_laneq_s32(sum, w, a, lane)

#include "backend/cpu/arm/matmul_dot4.h"

#include "backend/cpu/arm/matmul_body.h"

void mf_matmul_quantized_dotprod(const mf_matrix *w, const void *act, size_t act_stride, int32_t n_rows, int32_t panel0,
                                 int32_t panel1, float *dst, size_t dst_stride) {
    matmul(w, act, act_stride, n_rows, panel0, panel1, dst, dst_stride);
}

void mf_matmul_dotprod(mf_kernels *k) { fill_quantized(k, mf_matmul_quantized_dotprod); }
