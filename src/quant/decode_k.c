// The decoders of the super-blocks of 256 values.
#include "base/half.h"
#include "quant/blocks.h"
#include "quant/decode.h"

void mf_decode_q2_k(const void *blocks, float *out, size_t n) {
    const mf_block_q2_k *b = blocks;
    for (; n; n -= MF_QK_K, out += MF_QK_K, b++) {
        const float d = mf_f16_to_f32(b->d), dmin = mf_f16_to_f32(b->dmin);
        for (int g = 0; g < 16; g++) {
            const float scale = d * (float)(b->scales[g] & 15), min = dmin * (float)(b->scales[g] >> 4);
            const uint8_t *qs = b->qs + g / 8 * 32 + g % 2 * 16;
            const int shift = g % 8 / 2 * 2;
            for (int i = 0; i < 16; i++) out[16 * g + i] = scale * (float)(qs[i] >> shift & 3) - min;
        }
    }
}

void mf_decode_q3_k(const void *blocks, float *out, size_t n) {
    const mf_block_q3_k *b = blocks;
    for (; n; n -= MF_QK_K, out += MF_QK_K, b++) {
        const float d = mf_f16_to_f32(b->d);
        int8_t sc[16];
        mf_q3_k_scales(b->scales, sc);
        for (int g = 0; g < 16; g++) {
            const float scale = d * (float)sc[g];
            const uint8_t *qs = b->qs + g / 8 * 32 + g % 2 * 16, *hmask = b->hmask + g % 2 * 16;
            const int shift = g % 8 / 2 * 2, bit = g / 2;
            for (int i = 0; i < 16; i++) {
                const int q = (qs[i] >> shift & 3) - (hmask[i] >> bit & 1 ? 0 : 4);
                out[16 * g + i] = scale * (float)q;
            }
        }
    }
}

void mf_decode_q4_k(const void *blocks, float *out, size_t n) {
    const mf_block_q4_k *b = blocks;
    for (; n; n -= MF_QK_K, out += MF_QK_K, b++) {
        const float d = mf_f16_to_f32(b->d), dmin = mf_f16_to_f32(b->dmin);
        uint8_t sc[8], m[8];
        mf_q4_k_scales(b->scales, sc, m);
        for (int g = 0; g < 8; g++) {
            const float scale = d * (float)sc[g], min = dmin * (float)m[g];
            const uint8_t *qs = b->qs + g / 2 * 32;
            const int shift = g % 2 * 4;
            for (int i = 0; i < 32; i++) out[32 * g + i] = scale * (float)(qs[i] >> shift & 15) - min;
        }
    }
}

void mf_decode_q5_k(const void *blocks, float *out, size_t n) {
    const mf_block_q5_k *b = blocks;
    for (; n; n -= MF_QK_K, out += MF_QK_K, b++) {
        const float d = mf_f16_to_f32(b->d), dmin = mf_f16_to_f32(b->dmin);
        uint8_t sc[8], m[8];
        mf_q4_k_scales(b->scales, sc, m);
        for (int g = 0; g < 8; g++) {
            const float scale = d * (float)sc[g], min = dmin * (float)m[g];
            const uint8_t *qs = b->qs + g / 2 * 32;
            const int shift = g % 2 * 4;
            for (int i = 0; i < 32; i++) {
                const int q = (qs[i] >> shift & 15) | (b->qh[i] >> g & 1) << 4;
                out[32 * g + i] = scale * (float)q - min;
            }
        }
    }
}

void mf_decode_q6_k(const void *blocks, float *out, size_t n) {
    const mf_block_q6_k *b = blocks;
    for (; n; n -= MF_QK_K, out += MF_QK_K, b++) {
        const float d = mf_f16_to_f32(b->d);
        for (int g = 0; g < 16; g++) {
            const float scale = d * (float)b->scales[g];
            const int j = g % 8 / 2; // which 32 values of the half of 128
            const uint8_t *ql = b->ql + g / 8 * 64 + j % 2 * 32 + g % 2 * 16, *qh = b->qh + g / 8 * 32 + g % 2 * 16;
            for (int i = 0; i < 16; i++) {
                const int q = (ql[i] >> (j / 2 * 4) & 15) | (qh[i] >> (2 * j) & 3) << 4;
                out[16 * g + i] = scale * (float)(q - 32);
            }
        }
    }
}

void mf_decode_iq4_xs(const void *blocks, float *out, size_t n) {
    const mf_block_iq4_xs *b = blocks;
    for (; n; n -= MF_QK_K, out += MF_QK_K, b++) {
        const float d = mf_f16_to_f32(b->d);
        for (int g = 0; g < 8; g++) {
            const int sc = (b->scales_l[g / 2] >> (g % 2 * 4) & 15) | (b->scales_h >> (2 * g) & 3) << 4;
            const float scale = d * (float)(sc - 32);
            for (int i = 0; i < 16; i++) {
                out[32 * g + i] = scale * (float)mf_iq4_values[b->qs[16 * g + i] & 15];
                out[32 * g + i + 16] = scale * (float)mf_iq4_values[b->qs[16 * g + i] >> 4];
            }
        }
    }
}
