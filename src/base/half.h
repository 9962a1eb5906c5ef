// IEEE half precision and bfloat16, in plain C. Exact one way, round to nearest even the other.
#ifndef MF_BASE_HALF_H
#define MF_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t mf_f32_bits(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u;
}

static inline float mf_bits_f32(uint32_t u) {
    float x;
    memcpy(&x, &u, 4);
    return x;
}

// Exact, subnormals and infinities included; a NaN stays a NaN with its payload, made quiet.
float mf_f16_to_f32(uint16_t h);

// Round to nearest even; overflow gives infinity, underflow subnormals; NaN becomes a quiet NaN with the payload's top bits
// (what F16C does).
uint16_t mf_f32_to_f16(float x);

static inline float mf_bf16_to_f32(uint16_t h) { return mf_bits_f32((uint32_t)h << 16); }

// Round to nearest even; NaN stays NaN, made quiet.
uint16_t mf_f32_to_bf16(float x);

#endif
