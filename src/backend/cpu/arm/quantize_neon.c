// Activations to int8 on NEON.
#include <arm_neon.h>

#include "backend/cpu/act.h"
#include "backend/cpu/quantize.h"
#include "base/half.h"

// The scale of a group of n values, and what to multiply by; false when one is not finite.
static inline bool scale_of(const float *x, int n, float *d, float *id) {
    uint32x4_t max = vdupq_n_u32(0);
    for (int i = 0; i < n; i += 4) {
        max = vmaxq_u32(max, vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + i)), vdupq_n_u32(0x7fffffff)));
    }
    const uint32_t bits = vmaxvq_u32(max);
    const float amax = mf_bits_f32(bits);
    const bool finite = bits < 0x7f800000, zero = !finite || amax < MF_ACT_TINY;
    *d = zero ? 0 : amax / 127;
    *id = zero ? 0 : 127 / amax;
    return finite;
}

// 16 values to bytes. A group whose factor is 0 gives zeros: a NaN is converted to 0.
static inline int8x16_t to_bytes(const float *x, float id) {
    int16x4_t q[4];
    for (int i = 0; i < 4; i++) q[i] = vmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4 * i), id)));
    return vcombine_s8(vmovn_s16(vcombine_s16(q[0], q[1])), vmovn_s16(vcombine_s16(q[2], q[3])));
}

// Lane 0: the sum of the lanes 0, 2, …; lane 1: of the lanes 1, 3, ….
static inline int16x4_t fold_pairs(int16x8_t pairs) {
    const int16x4_t sum = vadd_s16(vget_low_s16(pairs), vget_high_s16(pairs));
    return vadd_s16(sum, vext_s16(sum, sum, 2));
}

// -offset times both.
static inline void put_start(int16_t *start, int16x4_t sum, int offset) {
    const int16x4_t product = vmul_n_s16(sum, (int16_t)-offset);
    start[0] = vget_lane_s16(product, 0);
    start[1] = vget_lane_s16(product, 1);
}

bool mf_quantize_32_neon(const float *x, void *row, int64_t n) {
    const mf_act32 a = mf_act32_of(row, n);
    bool finite = true;
    for (int64_t b = 0; b < n / 32; b++, x += 32) {
        float id;
        finite &= scale_of(x, 32, &a.d[b], &id);
        const int8x16_t low = to_bytes(x, id), high = to_bytes(x + 16, id);
        vst1q_s8(a.q + 32 * b, low);
        vst1q_s8(a.q + 32 * b + 16, high);
        const int16x4_t sum = fold_pairs(vaddq_s16(vpaddlq_s8(low), vpaddlq_s8(high)));
        a.asum[b] = vget_lane_s16(sum, 0) + vget_lane_s16(sum, 1);
        a.s[b] = a.d[b] * (float)a.asum[b];
        put_start(a.start + 2 * b, sum, MF_ACT32_OFFSET);
    }
    return finite;
}

bool mf_quantize_256_neon(const float *x, void *row, int64_t n) {
    const mf_act256 a = mf_act256_of(row, n);
    bool finite = true;
    for (int64_t b = 0; b < n / 256; b++, x += 256) {
        float id;
        finite &= scale_of(x, 256, &a.d[b], &id);
        for (int64_t j = 16 * b; j < 16 * b + 16; j++) { // sub-blocks of 16
            const int8x16_t q = to_bytes(x + 16 * (j - 16 * b), id);
            vst1q_s8(a.q + 16 * j, q);
            const int16x4_t sum = fold_pairs(vpaddlq_s8(q));
            a.asum[j] = (int16_t)(vget_lane_s16(sum, 0) + vget_lane_s16(sum, 1));
            put_start(a.start + 2 * j, sum, MF_ACT256_OFFSET);
        }
    }
    for (int64_t j = 0; j < n / 32; j++) a.asum32[j] = (int16_t)(a.asum[2 * j] + a.asum[2 * j + 1]);
    return finite;
}
