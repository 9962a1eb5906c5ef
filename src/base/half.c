#include "base/half.h"

float mf_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 0x1F, fraction = h & 0x3FF;
    if (exponent == 0x1F) return mf_bits_f32(sign | 0x7F800000 | (fraction ? 0x400000 : 0) | fraction << 13);
    if (exponent) return mf_bits_f32(sign | (exponent + 112) << 23 | fraction << 13);
    float magnitude = (float)fraction * 0x1p-24f; // exact
    return mf_bits_f32(sign | mf_f32_bits(magnitude));
}

uint16_t mf_f32_to_f16(float x) {
    uint32_t bits = mf_f32_bits(x), magnitude = bits & 0x7FFFFFFF;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (magnitude > 0x7F800000) return (uint16_t)(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
    if (magnitude >= 0x477FF000) return sign | 0x7C00; // 65520 and above round to infinity
    if (magnitude < 0x38800000) {
        // Below 2^-14 a half is a multiple of 2^-24, which is the unit in the last place of 0.5 in float: the addition rounds.
        float aligned = mf_bits_f32(magnitude) + 0.5f;
        return (uint16_t)(sign | (mf_f32_bits(aligned) - 0x3F000000));
    }
    uint32_t odd = magnitude >> 13 & 1;
    return (uint16_t)(sign | ((magnitude - (112u << 23) + 0xFFF + odd) >> 13));
}

uint16_t mf_f32_to_bf16(float x) {
    uint32_t bits = mf_f32_bits(x);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
