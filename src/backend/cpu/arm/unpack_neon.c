// How a panel's blocks become signed bytes on NEON: one short function for each type.
#include <arm_neon.h>

#include "backend/cpu/arm/matmul_neon.h"
#include "backend/cpu/panels_layout.h"
#include "quant/blocks.h"

// ---- Vectors: a quarter v of a word holds 4 rows -----------------------------------------------------------------------------

#define QUARTERS 4

static inline uint8x16_t load_quarter(const uint8_t *words, int word, int v) {
    return vld1q_u8(words + MF_WORD_BYTES * word + 16 * v);
}

static inline void put_quarter(int8_t *words, int word, int v, uint8x16_t bytes, int offset) {
    vst1q_s8(words + MF_WORD_BYTES * word + 16 * v, vsubq_s8(vreinterpretq_s8_u8(bytes), vdupq_n_s8((int8_t)offset)));
}

static inline uint8x16_t low_bits(uint8x16_t bytes, int mask) { return vandq_u8(bytes, vdupq_n_u8((uint8_t)mask)); }

// Shifted left by n, or right where n is negative, then masked.
static inline uint8x16_t moved_bits(uint8x16_t bytes, int n, int mask) {
    return low_bits(vshlq_u8(bytes, vdupq_n_s8((int8_t)n)), mask);
}

static void put_halves(const uint8_t *from, float *to) {
    for (int i = 0; i < MF_PANEL; i += 4) vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(from + 2 * i))));
}

// ---- Types with a scale per 32 -----------------------------------------------------------------------------------------------

// The 16 bytes of nibbles of a block, less `offset`, with a fifth bit above each where there is one: bit `step` of a byte belongs to
// word `step`, bit step + 4 to word step + 4.
static inline void put_nibbles(const uint8_t *qs, const uint8_t *fifth, int offset, int8_t *words) {
    for (int step = 0; step < 4; step++) {
        for (int v = 0; v < QUARTERS; v++) {
            const uint8x16_t bytes = load_quarter(qs, step, v);
            uint8x16_t low = low_bits(bytes, 15), high = vshrq_n_u8(bytes, 4);
            if (fifth) {
                const uint8x16_t bits = load_quarter(fifth, 0, v);
                low = vorrq_u8(low, moved_bits(bits, 4 - step, 16));
                high = vorrq_u8(high, moved_bits(bits, -step, 16));
            }
            put_quarter(words, step, v, low, offset);
            put_quarter(words, step + 4, v, high, offset);
        }
    }
}

static inline void put_table_values(const uint8_t *qs, int8_t *words) {
    const int8x16_t values = vld1q_s8(mf_iq4_values);
    put_nibbles(qs, NULL, 0, words);
    for (int i = 0; i < 8 * QUARTERS; i++) {
        vst1q_s8(words + 16 * i, vqtbl1q_s8(values, vreinterpretq_u8_s8(vld1q_s8(words + 16 * i))));
    }
}

static void put_scales(mf_type type, const uint8_t *panel, int64_t b, mf_tile32 *out) {
    const uint8_t *head = panel + mf_panel_head(mf_panel_shape_of(type), b);
    put_halves(head, out->d);
    if (mf_unpacker_of(type)->has_min) put_halves(head + 2 * MF_PANEL, out->m);
}

static const uint8_t *body_of(mf_type type, const uint8_t *panel, int64_t b) {
    return panel + mf_panel_body(mf_panel_shape_of(type), b);
}

static void unpack_q4_0(const uint8_t *panel, int64_t b, mf_tile32 *out) {
    put_scales(MF_TYPE_Q4_0, panel, b, out);
    put_nibbles(body_of(MF_TYPE_Q4_0, panel, b), NULL, 8, out->words);
}

static void unpack_q4_1(const uint8_t *panel, int64_t b, mf_tile32 *out) {
    put_scales(MF_TYPE_Q4_1, panel, b, out);
    put_nibbles(body_of(MF_TYPE_Q4_1, panel, b), NULL, 0, out->words);
}

static void unpack_q5_0(const uint8_t *panel, int64_t b, mf_tile32 *out) {
    const uint8_t *body = body_of(MF_TYPE_Q5_0, panel, b);
    put_scales(MF_TYPE_Q5_0, panel, b, out);
    put_nibbles(body + MF_PANEL_Q5_QS, body, 16, out->words);
}

static void unpack_q5_1(const uint8_t *panel, int64_t b, mf_tile32 *out) {
    const uint8_t *body = body_of(MF_TYPE_Q5_1, panel, b);
    put_scales(MF_TYPE_Q5_1, panel, b, out);
    put_nibbles(body + MF_PANEL_Q5_QS, body, 0, out->words);
}

static void unpack_q8_0(const uint8_t *panel, int64_t b, mf_tile32 *out) {
    const uint8_t *body = body_of(MF_TYPE_Q8_0, panel, b);
    put_scales(MF_TYPE_Q8_0, panel, b, out);
    for (int word = 0; word < 8; word++) {
        for (int v = 0; v < QUARTERS; v++) put_quarter(out->words, word, v, load_quarter(body, word, v), 0);
    }
}

static void unpack_iq4_nl(const uint8_t *panel, int64_t b, mf_tile32 *out) {
    put_scales(MF_TYPE_IQ4_NL, panel, b, out);
    put_table_values(body_of(MF_TYPE_IQ4_NL, panel, b), out->words);
}

// b counts groups of 32: the panel's blocks are of 256, with a 6-bit scale less 32 for each group.
static void unpack_iq4_xs(const uint8_t *panel, int64_t b, mf_tile32 *out) {
    const uint8_t *body = body_of(MF_TYPE_IQ4_XS, panel, b / 8);
    const int group = (int)(b % 8);
    put_scales(MF_TYPE_IQ4_XS, panel, b / 8, out);
    const uint8x16_t high = vld1q_u8(body + group / 4 * MF_PANEL);
    const uint8x16_t low = vld1q_u8(body + MF_PANEL_IQ4_XS_LOW + group / 2 * MF_PANEL);
    const uint8x16_t bits =
        vorrq_u8(vshlq_n_u8(moved_bits(high, -(group % 4 * 2), 3), 4), moved_bits(low, -(group % 2 * 4), 15));
    int8_t scale[MF_PANEL];
    put_quarter(scale, 0, 0, bits, 32);
    for (int r = 0; r < MF_PANEL; r++) out->d[r] *= (float)scale[r];
    put_table_values(body + MF_PANEL_IQ4_XS_QS + 256 * group, out->words);
}

// ---- Super-blocks of 256 -----------------------------------------------------------------------------------------------------

static inline uint8x16_t plane(const uint8_t *planes, int i) { return vld1q_u8(planes + MF_PANEL * i); }

static inline void put_scale(int32_t *to, int8x16_t sc) {
    const int16x8_t low = vmovl_s8(vget_low_s8(sc)), high = vmovl_s8(vget_high_s8(sc));
    vst1q_s32(to, vmovl_s16(vget_low_s16(low)));
    vst1q_s32(to + 4, vmovl_s16(vget_high_s16(low)));
    vst1q_s32(to + 8, vmovl_s16(vget_low_s16(high)));
    vst1q_s32(to + 12, vmovl_s16(vget_high_s16(high)));
}

static inline void put_small_scale(int32_t *to, uint8x16_t sc) { put_scale(to, vreinterpretq_s8_u8(sc)); }

static inline void put_min(int16_t *to, uint8x16_t m) {
    vst1q_s16(to, vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(m))));
    vst1q_s16(to + 8, vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(m))));
}

// mf_q4_k_scales for 16 rows.
static void put_q4_k_scales(const uint8_t *planes, mf_tile256 *out) {
    for (int g = 0; g < 4; g++) {
        const uint8x16_t a = plane(planes, g), b = plane(planes, g + 4), c = plane(planes, g + 8);
        put_small_scale(out->sc[g], low_bits(a, 63));
        put_min(out->m[g], low_bits(b, 63));
        put_small_scale(out->sc[g + 4], vorrq_u8(low_bits(c, 15), moved_bits(a, -2, 0x30)));
        put_min(out->m[g + 4], vorrq_u8(vshrq_n_u8(c, 4), moved_bits(b, -2, 0x30)));
    }
}

// mf_q3_k_scales for 16 rows.
static void put_q3_k_scales(const uint8_t *planes, mf_tile256 *out) {
    for (int g = 0; g < 16; g++) {
        const uint8x16_t low = moved_bits(plane(planes, g % 8), g < 8 ? 0 : -4, 15);
        const uint8x16_t high = moved_bits(plane(planes, 8 + g % 4), -(2 * (g / 4)), 3);
        const uint8x16_t bits = vorrq_u8(low, vshlq_n_u8(high, 4));
        put_scale(out->sc[g], vsubq_s8(vreinterpretq_s8_u8(bits), vdupq_n_s8(32)));
    }
}

// Q4_K and Q5_K; qh: NULL for Q4_K. Bits 2p and 2p + 1 of the high bits belong to the p-th pair of sub-blocks.
static inline void put_pairs(const uint8_t *qs, const uint8_t *qh, int8_t *words) {
    for (int step = 0; step < 32; step++) {
        const int pair = step / 8, word = 16 * pair + step % 8;
        for (int v = 0; v < QUARTERS; v++) {
            const uint8x16_t bytes = load_quarter(qs, step, v);
            uint8x16_t low = low_bits(bytes, 15), high = vshrq_n_u8(bytes, 4);
            if (qh) {
                const uint8x16_t bits = load_quarter(qh, step % 8, v);
                low = vorrq_u8(low, moved_bits(bits, 4 - 2 * pair, 16));
                high = vorrq_u8(high, moved_bits(bits, 3 - 2 * pair, 16));
            }
            put_quarter(words, word, v, low, 0);
            put_quarter(words, word + 8, v, high, 0);
        }
    }
}

static void unpack_q4_k(const uint8_t *panel, int64_t b, mf_tile256 *out) {
    const uint8_t *head = panel + mf_panel_head(mf_panel_shape_of(MF_TYPE_Q4_K), b), *body = body_of(MF_TYPE_Q4_K, panel, b);
    put_halves(head, out->d);
    put_halves(head + 2 * MF_PANEL, out->dmin);
    put_q4_k_scales(body, out);
    put_pairs(body + MF_PANEL_Q4_K_QS, NULL, out->words);
}

static void unpack_q5_k(const uint8_t *panel, int64_t b, mf_tile256 *out) {
    const uint8_t *head = panel + mf_panel_head(mf_panel_shape_of(MF_TYPE_Q5_K), b), *body = body_of(MF_TYPE_Q5_K, panel, b);
    put_halves(head, out->d);
    put_halves(head + 2 * MF_PANEL, out->dmin);
    put_q4_k_scales(body, out);
    put_pairs(body + MF_PANEL_Q5_K_QS, body + MF_PANEL_Q5_K_QH, out->words);
}

static void unpack_q6_k(const uint8_t *panel, int64_t b, mf_tile256 *out) {
    const uint8_t *body = body_of(MF_TYPE_Q6_K, panel, b), *ql = body + MF_PANEL_Q6_K_QL, *qh = body + MF_PANEL_Q6_K_QH;
    put_halves(panel + mf_panel_head(mf_panel_shape_of(MF_TYPE_Q6_K), b), out->d);
    for (int g = 0; g < 16; g++) put_scale(out->sc[g], vreinterpretq_s8_u8(plane(body, g)));
    for (int step = 0; step < 16; step++) {
        const int half = step / 8, first = 16 * half + step % 8, word = 32 * half + step % 8;
        for (int v = 0; v < QUARTERS; v++) {
            const uint8x16_t a0 = load_quarter(ql, first, v), a1 = load_quarter(ql, first + 8, v);
            const uint8x16_t bits = load_quarter(qh, step, v);
            put_quarter(out->words, word, v, vorrq_u8(low_bits(a0, 15), moved_bits(bits, 4, 0x30)), 32);
            put_quarter(out->words, word + 8, v, vorrq_u8(low_bits(a1, 15), moved_bits(bits, 2, 0x30)), 32);
            put_quarter(out->words, word + 16, v, vorrq_u8(vshrq_n_u8(a0, 4), low_bits(bits, 0x30)), 32);
            put_quarter(out->words, word + 24, v, vorrq_u8(vshrq_n_u8(a1, 4), moved_bits(bits, -2, 0x30)), 32);
        }
    }
}

// Q2_K and Q3_K; hmask: NULL for Q2_K. Bit 4 * half + j of the high bits belongs to the j-th bits of qs.
static inline void put_two_bits(const uint8_t *qs, const uint8_t *hmask, int offset, int8_t *words) {
    for (int step = 0; step < 16; step++) {
        const int half = step / 8;
        for (int v = 0; v < QUARTERS; v++) {
            const uint8x16_t bytes = load_quarter(qs, step, v);
            for (int j = 0; j < 4; j++) {
                uint8x16_t bits = moved_bits(bytes, -2 * j, 3);
                if (hmask) bits = vorrq_u8(bits, moved_bits(load_quarter(hmask, step % 8, v), 2 - (4 * half + j), 4));
                put_quarter(words, 32 * half + 8 * j + step % 8, v, bits, offset);
            }
        }
    }
}

static void unpack_q2_k(const uint8_t *panel, int64_t b, mf_tile256 *out) {
    const uint8_t *head = panel + mf_panel_head(mf_panel_shape_of(MF_TYPE_Q2_K), b), *body = body_of(MF_TYPE_Q2_K, panel, b);
    put_halves(head, out->d);
    put_halves(head + 2 * MF_PANEL, out->dmin);
    for (int g = 0; g < 16; g++) {
        put_small_scale(out->sc[g], low_bits(plane(body, g), 15));
        put_min(out->m[g], vshrq_n_u8(plane(body, g), 4));
    }
    put_two_bits(body + MF_PANEL_Q2_K_QS, NULL, 0, out->words);
}

static void unpack_q3_k(const uint8_t *panel, int64_t b, mf_tile256 *out) {
    const uint8_t *body = body_of(MF_TYPE_Q3_K, panel, b);
    put_halves(panel + mf_panel_head(mf_panel_shape_of(MF_TYPE_Q3_K), b), out->d);
    put_q3_k_scales(body, out);
    put_two_bits(body + MF_PANEL_Q3_K_QS, body + MF_PANEL_Q3_K_HMASK, 4, out->words);
}

const mf_unpacker *mf_unpacker_of(mf_type type) {
    static const mf_unpacker unpackers[MF_TYPE_LIMIT] = {
        [MF_TYPE_Q4_0] = {32, false, unpack_q4_0, NULL},     [MF_TYPE_Q4_1] = {32, true, unpack_q4_1, NULL},
        [MF_TYPE_Q5_0] = {32, false, unpack_q5_0, NULL},     [MF_TYPE_Q5_1] = {32, true, unpack_q5_1, NULL},
        [MF_TYPE_Q8_0] = {32, false, unpack_q8_0, NULL},     [MF_TYPE_IQ4_NL] = {32, false, unpack_iq4_nl, NULL},
        [MF_TYPE_IQ4_XS] = {32, false, unpack_iq4_xs, NULL}, [MF_TYPE_Q2_K] = {16, true, NULL, unpack_q2_k},
        [MF_TYPE_Q3_K] = {16, false, NULL, unpack_q3_k},     [MF_TYPE_Q4_K] = {32, true, NULL, unpack_q4_k},
        [MF_TYPE_Q5_K] = {32, true, NULL, unpack_q5_k},      [MF_TYPE_Q6_K] = {16, false, NULL, unpack_q6_k},
    };
    return &unpackers[type];
}
