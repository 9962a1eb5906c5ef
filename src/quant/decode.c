// The decoders of plain floats and of the types with one scale per 32 values.
#include "quant/decode.h"

#include "base/half.h"
#include "quant/blocks.h"

const int8_t mf_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void mf_decode_f32(const void *blocks, float *out, size_t n) {
    if (n) memcpy(out, blocks, n * sizeof *out);
}

void mf_decode_f16(const void *blocks, float *out, size_t n) {
    const uint8_t *p = blocks;
    for (size_t i = 0; i < n; i++) out[i] = mf_f16_to_f32((uint16_t)(p[2 * i] | p[2 * i + 1] << 8));
}

void mf_decode_bf16(const void *blocks, float *out, size_t n) {
    const uint8_t *p = blocks;
    for (size_t i = 0; i < n; i++) out[i] = mf_bf16_to_f32((uint16_t)(p[2 * i] | p[2 * i + 1] << 8));
}

void mf_decode_q4_0(const void *blocks, float *out, size_t n) {
    const mf_block_q4_0 *b = blocks;
    for (; n; n -= MF_QK, out += MF_QK, b++) {
        const float d = mf_f16_to_f32(b->d);
        for (int i = 0; i < 16; i++) {
            out[i] = d * (float)((b->qs[i] & 15) - 8);
            out[i + 16] = d * (float)((b->qs[i] >> 4) - 8);
        }
    }
}

void mf_decode_q4_1(const void *blocks, float *out, size_t n) {
    const mf_block_q4_1 *b = blocks;
    for (; n; n -= MF_QK, out += MF_QK, b++) {
        const float d = mf_f16_to_f32(b->d), m = mf_f16_to_f32(b->m);
        for (int i = 0; i < 16; i++) {
            out[i] = d * (float)(b->qs[i] & 15) + m;
            out[i + 16] = d * (float)(b->qs[i] >> 4) + m;
        }
    }
}

// Value i (0-31) of a block of 5-bit values, 0-31.
static inline int five_bits(const uint8_t qh[4], const uint8_t qs[16], int i) {
    const int low = i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
    return low | (qh[i / 8] >> (i % 8) & 1) << 4;
}

void mf_decode_q5_0(const void *blocks, float *out, size_t n) {
    const mf_block_q5_0 *b = blocks;
    for (; n; n -= MF_QK, out += MF_QK, b++) {
        const float d = mf_f16_to_f32(b->d);
        for (int i = 0; i < MF_QK; i++) out[i] = d * (float)(five_bits(b->qh, b->qs, i) - 16);
    }
}

void mf_decode_q5_1(const void *blocks, float *out, size_t n) {
    const mf_block_q5_1 *b = blocks;
    for (; n; n -= MF_QK, out += MF_QK, b++) {
        const float d = mf_f16_to_f32(b->d), m = mf_f16_to_f32(b->m);
        for (int i = 0; i < MF_QK; i++) out[i] = d * (float)five_bits(b->qh, b->qs, i) + m;
    }
}

void mf_decode_q8_0(const void *blocks, float *out, size_t n) {
    const mf_block_q8_0 *b = blocks;
    for (; n; n -= MF_QK, out += MF_QK, b++) {
        const float d = mf_f16_to_f32(b->d);
        for (int i = 0; i < MF_QK; i++) out[i] = (float)b->qs[i] * d;
    }
}

void mf_decode_iq4_nl(const void *blocks, float *out, size_t n) {
    const mf_block_iq4_nl *b = blocks;
    for (; n; n -= MF_QK, out += MF_QK, b++) {
        const float d = mf_f16_to_f32(b->d);
        for (int i = 0; i < 16; i++) {
            out[i] = d * (float)mf_iq4_values[b->qs[i] & 15];
            out[i + 16] = d * (float)mf_iq4_values[b->qs[i] >> 4];
        }
    }
}
