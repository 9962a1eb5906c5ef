// The block formats as they lie in a file: little-endian, no padding, alignment 1. Bit layouts are ggml's; a value's formula
// stands with its struct. f16 fields are raw bits (mf_f16_to_f32). 32 nibbles in 16 bytes: value i is the low half of byte
// i, value i + 16 its high half.
#ifndef MF_QUANT_BLOCKS_H
#define MF_QUANT_BLOCKS_H

#include <stdint.h>

#define MF_QK   32  // values in a block of the legacy types and IQ4_NL
#define MF_QK_K 256 // values in a super-block of the K types and IQ4_XS

#define MF_BLOCK struct __attribute__((packed))

// value = d * (q - 8); q: 32 nibbles.
typedef MF_BLOCK mf_block_q4_0 {
    uint16_t d;
    uint8_t qs[16];
}
mf_block_q4_0;
_Static_assert(sizeof(mf_block_q4_0) == 18, "Q4_0");

// value = d * q + m; q: 32 nibbles.
typedef MF_BLOCK mf_block_q4_1 {
    uint16_t d, m;
    uint8_t qs[16];
}
mf_block_q4_1;
_Static_assert(sizeof(mf_block_q4_1) == 20, "Q4_1");

// value = d * (q - 16); q: a nibble of qs with bit i of qh (a little-endian 32-bit word) above it.
typedef MF_BLOCK mf_block_q5_0 {
    uint16_t d;
    uint8_t qh[4];
    uint8_t qs[16];
}
mf_block_q5_0;
_Static_assert(sizeof(mf_block_q5_0) == 22, "Q5_0");

// value = d * q + m; q as in Q5_0.
typedef MF_BLOCK mf_block_q5_1 {
    uint16_t d, m;
    uint8_t qh[4];
    uint8_t qs[16];
}
mf_block_q5_1;
_Static_assert(sizeof(mf_block_q5_1) == 24, "Q5_1");

// value = d * q.
typedef MF_BLOCK mf_block_q8_0 {
    uint16_t d;
    int8_t qs[32];
}
mf_block_q8_0;
_Static_assert(sizeof(mf_block_q8_0) == 34, "Q8_0");

// value = table[q] * d; q: 32 nibbles into mf_iq4_values.
typedef MF_BLOCK mf_block_iq4_nl {
    uint16_t d;
    uint8_t qs[16];
}
mf_block_iq4_nl;
_Static_assert(sizeof(mf_block_iq4_nl) == 18, "IQ4_NL");

// 16 groups of 16. value = (d * sc) * q - dmin * m; of group g: sc = the low nibble of scales[g], m its high nibble.
// q: value 128h + 32j + l is bits 2j, 2j + 1 of qs[32h + l].
typedef MF_BLOCK mf_block_q2_k {
    uint8_t scales[16];
    uint8_t qs[64];
    uint16_t d, dmin;
}
mf_block_q2_k;
_Static_assert(sizeof(mf_block_q2_k) == 84, "Q2_K");

// 16 groups of 16. value = (d * (sc - 32)) * (q - 4 * !high); sc: mf_q3_k_scales. q: bits as in Q2_K; high: of value
// 128h + 32j + l it is bit 4h + j of hmask[l].
typedef MF_BLOCK mf_block_q3_k {
    uint8_t hmask[32];
    uint8_t qs[64];
    uint8_t scales[12];
    uint16_t d;
}
mf_block_q3_k;
_Static_assert(sizeof(mf_block_q3_k) == 110, "Q3_K");

// 8 groups of 32. value = (d * sc) * q - dmin * m; sc, m: mf_q4_k_scales. q: of groups 2p and 2p + 1 the low and high halves
// of qs[32p .. 32p + 31].
typedef MF_BLOCK mf_block_q4_k {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qs[128];
}
mf_block_q4_k;
_Static_assert(sizeof(mf_block_q4_k) == 144, "Q4_K");

// As Q4_K, with a fifth bit: of value l of group g it is bit g of qh[l].
typedef MF_BLOCK mf_block_q5_k {
    uint16_t d, dmin;
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
}
mf_block_q5_k;
_Static_assert(sizeof(mf_block_q5_k) == 176, "Q5_K");

// 16 groups of 16. value = (d * sc) * (q - 32), sc signed. q of value 128h + 32j + l: the nibble j / 2 of
// ql[64h + 32(j % 2) + l] with bits 2j, 2j + 1 of qh[32h + l] above it.
typedef MF_BLOCK mf_block_q6_k {
    uint8_t ql[128];
    uint8_t qh[64];
    int8_t scales[16];
    uint16_t d;
}
mf_block_q6_k;
_Static_assert(sizeof(mf_block_q6_k) == 210, "Q6_K");

// 8 groups of 32. value = (d * (sc - 32)) * table[q]; of group g: sc = nibble g % 2 of scales_l[g / 2] with bits 2g and
// 2g + 1 of scales_h above it. q: nibbles of qs[16g .. 16g + 15].
typedef MF_BLOCK mf_block_iq4_xs {
    uint16_t d;
    uint16_t scales_h;
    uint8_t scales_l[4];
    uint8_t qs[128];
}
mf_block_iq4_xs;
_Static_assert(sizeof(mf_block_iq4_xs) == 136, "IQ4_XS");

#undef MF_BLOCK

// The 16 values of IQ4_NL and IQ4_XS.
extern const int8_t mf_iq4_values[16];

// The 6-bit scales and minimums of Q4_K and Q5_K. Of groups 0-3 they are the low 6 bits of bytes g and g + 4; of groups 4-7
// the halves of byte g + 4, with the top 2 bits of bytes g - 4 and g above them.
static inline void mf_q4_k_scales(const uint8_t scales[12], uint8_t sc[8], uint8_t m[8]) {
    for (int g = 0; g < 4; g++) {
        sc[g] = scales[g] & 63;
        m[g] = scales[g + 4] & 63;
        sc[g + 4] = (uint8_t)((scales[g + 8] & 15) | (scales[g] >> 6) << 4);
        m[g + 4] = (uint8_t)((scales[g + 8] >> 4) | (scales[g + 4] >> 6) << 4);
    }
}

// The 6-bit scales of Q3_K, less 32: -32 to 31. The low 4 bits of groups g and g + 8 are the halves of byte g; the 2 above
// them of group 4k + i are bits 2k, 2k + 1 of byte 8 + i.
static inline void mf_q3_k_scales(const uint8_t scales[12], int8_t sc[16]) {
    for (int g = 0; g < 16; g++) {
        const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
        const int high = scales[8 + g % 4] >> (2 * (g / 4)) & 3;
        sc[g] = (int8_t)((low | high << 4) - 32);
    }
}

#endif
