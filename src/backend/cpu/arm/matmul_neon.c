// Matmuls on AArch64's NEON, as every such processor has it.
#include <arm_neon.h>

#include "backend/cpu/arm/matmul_neon.h"
#include "backend/cpu/lanes.h"
#include "backend/cpu/quantize.h"
#include "backend/cpu/rows.h"

// Products of bytes in 16 bits, two of which fit there together: |a| is at most 127.
LANES_INLINE int32x4_t add_products(int32x4_t sum, int8x16_t w, int8x16_t a) {
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(a)), high = vmull_high_s8(w, a);
    return vpadalq_s16(sum, vpaddq_s16(low, high));
}

#define DOT4(sum, w, a, lane) add_products(sum, w, vreinterpretq_s8_s32(vdupq_laneq_s32(vreinterpretq_s32_s8(a), lane)))

#include "backend/cpu/arm/matmul_dot4.h"

#include "backend/cpu/arm/matmul_body.h"

void mf_matmul_neon(mf_kernels *k) {
    fill_quantized(k, matmul);
    k->panels = true;
    k->quantize_32 = mf_quantize_32_neon;
    k->quantize_256 = mf_quantize_256_neon;
    k->matmul[MF_TYPE_F32] = k->matmul[MF_TYPE_F16] = k->matmul[MF_TYPE_BF16] = mf_matmul_float_neon;
}
