// lanes.h on AArch64's NEON: four registers of four.
#ifndef MF_BACKEND_CPU_ARM_LANES_NEON_H
#define MF_BACKEND_CPU_ARM_LANES_NEON_H

#include <arm_neon.h>

#include "backend/cpu/lanes.h"

#define LANES_BLOCK           6
#define LANES_BLOCK_CONVERTED 6

typedef struct lanes {
    float32x4_t q0, q1, q2, q3;
} lanes;

typedef struct lanes_mask {
    uint32x4_t q0, q1, q2, q3;
} lanes_mask;

#define LANES_NEON_EACH1(type, f, a)    ((type){f((a).q0), f((a).q1), f((a).q2), f((a).q3)})
#define LANES_NEON_EACH2(type, f, a, b) ((type){f((a).q0, (b).q0), f((a).q1, (b).q1), f((a).q2, (b).q2), f((a).q3, (b).q3)})
#define LANES_NEON_EACH3(type, f, a, b, c) \
    ((type){f((a).q0, (b).q0, (c).q0), f((a).q1, (b).q1, (c).q1), f((a).q2, (b).q2, (c).q2), f((a).q3, (b).q3, (c).q3)})

LANES_INLINE lanes lanes_set1(float x) { return (lanes){vdupq_n_f32(x), vdupq_n_f32(x), vdupq_n_f32(x), vdupq_n_f32(x)}; }

LANES_INLINE lanes lanes_load(const float *p) {
    return (lanes){vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)};
}

LANES_INLINE void lanes_store(float *p, lanes v) {
    vst1q_f32(p, v.q0);
    vst1q_f32(p + 4, v.q1);
    vst1q_f32(p + 8, v.q2);
    vst1q_f32(p + 12, v.q3);
}

LANES_INLINE lanes lanes_load_part(const float *p, int32_t n) {
    float all[MF_LANES] = {0};
    for (int32_t j = 0; j < n; j++) all[j] = p[j];
    return lanes_load(all);
}

LANES_INLINE void lanes_store_part(float *p, lanes v, int32_t n) {
    float all[MF_LANES];
    lanes_store(all, v);
    for (int32_t j = 0; j < n; j++) p[j] = all[j];
}

LANES_INLINE float32x4_t lanes_neon_half4(const uint16_t *p) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }

LANES_INLINE lanes lanes_load_f16(const uint16_t *p) {
    return (lanes){lanes_neon_half4(p), lanes_neon_half4(p + 4), lanes_neon_half4(p + 8), lanes_neon_half4(p + 12)};
}

LANES_INLINE lanes lanes_load_i8(const int8_t *p) {
    int8x16_t bytes = vld1q_s8(p);
    int16x8_t lo = vmovl_s8(vget_low_s8(bytes)), hi = vmovl_s8(vget_high_s8(bytes));
    return (lanes){vcvtq_f32_s32(vmovl_s16(vget_low_s16(lo))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(lo))),
                   vcvtq_f32_s32(vmovl_s16(vget_low_s16(hi))), vcvtq_f32_s32(vmovl_s16(vget_high_s16(hi)))};
}

LANES_INLINE void lanes_store_f16(uint16_t *p, lanes v) {
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v.q0)));
    vst1_u16(p + 4, vreinterpret_u16_f16(vcvt_f16_f32(v.q1)));
    vst1_u16(p + 8, vreinterpret_u16_f16(vcvt_f16_f32(v.q2)));
    vst1_u16(p + 12, vreinterpret_u16_f16(vcvt_f16_f32(v.q3)));
}

LANES_INLINE void lanes_load_pairs(const float *p, lanes *v) {
    float32x4x2_t a = vld2q_f32(p), b = vld2q_f32(p + 8), c = vld2q_f32(p + 16), d = vld2q_f32(p + 24);
    v[0] = (lanes){a.val[0], b.val[0], c.val[0], d.val[0]};
    v[1] = (lanes){a.val[1], b.val[1], c.val[1], d.val[1]};
}

LANES_INLINE void lanes_store_pairs(float *p, const lanes *v) {
    vst2q_f32(p, ((float32x4x2_t){{v[0].q0, v[1].q0}}));
    vst2q_f32(p + 8, ((float32x4x2_t){{v[0].q1, v[1].q1}}));
    vst2q_f32(p + 16, ((float32x4x2_t){{v[0].q2, v[1].q2}}));
    vst2q_f32(p + 24, ((float32x4x2_t){{v[0].q3, v[1].q3}}));
}

LANES_INLINE lanes lanes_add(lanes a, lanes b) { return LANES_NEON_EACH2(lanes, vaddq_f32, a, b); }

LANES_INLINE lanes lanes_sub(lanes a, lanes b) { return LANES_NEON_EACH2(lanes, vsubq_f32, a, b); }

LANES_INLINE lanes lanes_mul(lanes a, lanes b) { return LANES_NEON_EACH2(lanes, vmulq_f32, a, b); }

LANES_INLINE lanes lanes_div(lanes a, lanes b) { return LANES_NEON_EACH2(lanes, vdivq_f32, a, b); }

LANES_INLINE lanes lanes_fma(lanes a, lanes b, lanes c) { return LANES_NEON_EACH3(lanes, vfmaq_f32, c, a, b); }

LANES_INLINE lanes lanes_nfma(lanes a, lanes b, lanes c) { return LANES_NEON_EACH3(lanes, vfmsq_f32, c, a, b); }

LANES_INLINE lanes lanes_neg(lanes a) { return LANES_NEON_EACH1(lanes, vnegq_f32, a); }

// vmaxq_f32 would hand on a NaN.
LANES_INLINE float32x4_t lanes_neon_larger(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }

LANES_INLINE lanes lanes_max(lanes a, lanes b) { return LANES_NEON_EACH2(lanes, lanes_neon_larger, a, b); }

LANES_INLINE float lanes_fold_sum(lanes v) {
    float32x4_t four = vaddq_f32(vaddq_f32(v.q0, v.q2), vaddq_f32(v.q1, v.q3));
    float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

LANES_INLINE float lanes_fold_max(lanes v) {
    float32x4_t four = lanes_neon_larger(lanes_neon_larger(v.q3, v.q1), lanes_neon_larger(v.q2, v.q0));
    float l[4];
    vst1q_f32(l, four);
    return mf_larger(mf_larger(l[3], l[1]), mf_larger(l[2], l[0]));
}

LANES_INLINE float32x4_t lanes_neon_raise(float32x4_t a, float32x4_t b) {
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(a), vshlq_n_s32(vreinterpretq_s32_f32(b), 23)));
}

LANES_INLINE lanes lanes_raise(lanes a, lanes b) { return LANES_NEON_EACH2(lanes, lanes_neon_raise, a, b); }

LANES_INLINE lanes_mask lanes_less(lanes a, lanes b) { return LANES_NEON_EACH2(lanes_mask, vcltq_f32, a, b); }

LANES_INLINE lanes_mask lanes_between(int32_t begin, int32_t end) {
    static const int32_t number[MF_LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    uint32x4_t in[4];
    for (int i = 0; i < 4; i++) {
        int32x4_t j = vld1q_s32(number + 4 * i);
        in[i] = vandq_u32(vcgeq_s32(j, vdupq_n_s32(begin)), vcltq_s32(j, vdupq_n_s32(end)));
    }
    return (lanes_mask){in[0], in[1], in[2], in[3]};
}

LANES_INLINE lanes lanes_select(lanes_mask m, lanes a, lanes b) { return LANES_NEON_EACH3(lanes, vbslq_f32, m, a, b); }

#endif
