// How a panel's blocks become vectors of bytes on AVX2: one short piece for each type. A word is the 4 neighbouring values
// of each of 16 rows, in two vectors of 8 rows. Everything is inlined with a constant type.
//
// Words come out as unsigned bytes that are small enough for 16-bit sums of a block, but for the wide types: signed bytes.
// Types with an offset get it from the activations' `start` (act.h); Q4_0 and Q3_K have smaller offsets than that and are
// raised by the difference.
#ifndef MF_BACKEND_CPU_X86_UNPACK_AVX2_H
#define MF_BACKEND_CPU_X86_UNPACK_AVX2_H

#include <immintrin.h>

#include "backend/cpu/act.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/panels_layout.h"
#include "backend/cpu/x86/matmul_job.h"
#include "quant/blocks.h"

// ---- What kind of type it is ---------------------------------------------------------------------------------------------

// Weights of 8 bits, whose sums take 32.
MF_INLINE bool is_wide(mf_type t) { return t == MF_TYPE_Q8_0 || t == MF_TYPE_IQ4_NL || t == MF_TYPE_IQ4_XS; }

// Whether sums begin at the activations' start. Q5_1 has no offset, but would leave 16 bits without one; it is put back in
// the end.
MF_INLINE bool has_start(mf_type t) {
    return t == MF_TYPE_Q4_0 || t == MF_TYPE_Q5_0 || t == MF_TYPE_Q5_1 || t == MF_TYPE_Q3_K || t == MF_TYPE_Q6_K;
}

// ---- Vectors -------------------------------------------------------------------------------------------------------------

MF_INLINE __m256i load_half_word(const uint8_t *words, int word, int half) {
    return _mm256_loadu_si256((const __m256i *)(words + 64 * word + 32 * half));
}

MF_INLINE __m256i mask_bytes(__m256i v, int mask) { return _mm256_and_si256(v, _mm256_set1_epi8((char)mask)); }
MF_INLINE __m256i shift_right(__m256i v, int n) { return _mm256_srl_epi16(v, _mm_cvtsi32_si128(n)); }
MF_INLINE __m256 load_half_floats(const uint8_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }

// ---- Types with a scale per 32 -------------------------------------------------------------------------------------------

MF_INLINE void iq4_xs_scales(const block32 *at, __m256 d[2]) {
    const uint8_t *high = at->body + at->group / 4 * MF_PANEL,
                  *low = at->body + MF_PANEL_IQ4_XS_LOW + at->group / 2 * MF_PANEL;
    const __m128i h = _mm_loadu_si128((const __m128i *)high), l = _mm_loadu_si128((const __m128i *)low);
    const __m128i top = _mm_and_si128(_mm_srl_epi16(h, _mm_cvtsi32_si128(at->group % 4 * 2)), _mm_set1_epi8(3));
    const __m128i bottom = _mm_and_si128(_mm_srl_epi16(l, _mm_cvtsi32_si128(at->group % 2 * 4)), _mm_set1_epi8(15));
    const __m128i sc = _mm_sub_epi8(_mm_or_si128(_mm_slli_epi16(top, 4), bottom), _mm_set1_epi8(32));
    d[0] = _mm256_mul_ps(d[0], _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(sc)));
    d[1] = _mm256_mul_ps(d[1], _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(sc, sc))));
}

// The scales (and minimums) of a block's 16 rows.
MF_INLINE void block32_scales(mf_type t, const block32 *at, __m256 d[2], __m256 m[2]) {
    MF_UNROLL
    for (int h = 0; h < 2; h++) {
        d[h] = load_half_floats(at->head + 16 * h);
        if (has_min(t)) m[h] = load_half_floats(at->head + 32 + 16 * h);
    }
    if (t == MF_TYPE_IQ4_XS) iq4_xs_scales(at, d);
}

// Half (rows 0-7 or 8-15) of the words of a step of a block.
MF_INLINE void block32_words(mf_type t, const block32 *at, int step, int half, __m256i w[4]) {
    const __m256i v = load_half_word(at->qs, step, half);
    w[0] = t == MF_TYPE_Q8_0 ? v : mask_bytes(v, 15);
    w[1] = mask_bytes(_mm256_srli_epi16(v, 4), 15);
    if (t == MF_TYPE_Q4_0) {
        w[0] = _mm256_add_epi8(w[0], _mm256_set1_epi8(MF_ACT32_OFFSET - 8));
        w[1] = _mm256_add_epi8(w[1], _mm256_set1_epi8(MF_ACT32_OFFSET - 8));
    } else if (t == MF_TYPE_Q5_0 || t == MF_TYPE_Q5_1) { // bit `step` of each byte belongs to w[0], bit step + 4 to w[1]
        const __m256i qh = load_half_word(at->body, 0, half);
        w[0] = _mm256_or_si256(w[0], mask_bytes(_mm256_sll_epi16(qh, _mm_cvtsi32_si128(4 - step)), 16));
        w[1] = _mm256_or_si256(w[1], mask_bytes(shift_right(qh, step), 16));
    } else if (t == MF_TYPE_IQ4_NL || t == MF_TYPE_IQ4_XS) {
        const __m256i values = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)mf_iq4_values));
        w[0] = _mm256_shuffle_epi8(values, w[0]);
        w[1] = _mm256_shuffle_epi8(values, w[1]);
    }
}

// ---- Super-blocks of 256 -------------------------------------------------------------------------------------------------

// Words whose sum shares a scale and still fits 16 bits: 8 (32 values) or 4 (16 values).
MF_INLINE int run_words(mf_type t) { return t == MF_TYPE_Q4_K ? 8 : 4; }

// Half of the words of a step of a super-block.
MF_INLINE void block256_words(mf_type t, const uint8_t *body, int step, int half, __m256i w[4]) {
    const uint8_t *qs = body + qs_offset(t);
    if (t == MF_TYPE_Q4_K || t == MF_TYPE_Q5_K) {
        const __m256i v = load_half_word(qs, step, half);
        w[0] = mask_bytes(v, 15);
        w[1] = mask_bytes(_mm256_srli_epi16(v, 4), 15);
        if (t == MF_TYPE_Q5_K) { // bits 2p and 2p + 1 of the high bits belong to the p-th pair of sub-blocks
            const __m256i bits = shift_right(load_half_word(body + MF_PANEL_Q5_K_QH, step % 8, half), step / 8 * 2);
            w[0] = _mm256_or_si256(w[0], mask_bytes(_mm256_slli_epi16(bits, 4), 16));
            w[1] = _mm256_or_si256(w[1], mask_bytes(_mm256_slli_epi16(bits, 3), 16));
        }
    } else if (t == MF_TYPE_Q6_K) {
        const __m256i qh = load_half_word(body + MF_PANEL_Q6_K_QH, step, half);
        const __m256i a = load_half_word(qs, step / 8 * 16 + step % 8, half),
                      b = load_half_word(qs, step / 8 * 16 + step % 8 + 8, half);
        w[0] = _mm256_or_si256(mask_bytes(a, 15), mask_bytes(_mm256_slli_epi16(qh, 4), 0x30));
        w[1] = _mm256_or_si256(mask_bytes(b, 15), mask_bytes(_mm256_slli_epi16(qh, 2), 0x30));
        w[2] = _mm256_or_si256(mask_bytes(_mm256_srli_epi16(a, 4), 15), mask_bytes(qh, 0x30));
        w[3] = _mm256_or_si256(mask_bytes(_mm256_srli_epi16(b, 4), 15), mask_bytes(_mm256_srli_epi16(qh, 2), 0x30));
    } else {
        const __m256i v = load_half_word(qs, step, half);
        MF_UNROLL
        for (int i = 0; i < 4; i++) w[i] = mask_bytes(_mm256_srli_epi16(v, 2 * i), 3);
        if (t == MF_TYPE_Q3_K) { // bit 4 * (half of 128) + i of the high bits
            const __m256i bits = shift_right(load_half_word(body + MF_PANEL_Q3_K_HMASK, step % 8, half), step / 8 * 4);
            w[0] = _mm256_or_si256(w[0], mask_bytes(_mm256_slli_epi16(bits, 2), 4));
            w[1] = _mm256_or_si256(w[1], mask_bytes(_mm256_slli_epi16(bits, 1), 4));
            w[2] = _mm256_or_si256(w[2], mask_bytes(bits, 4));
            w[3] = _mm256_or_si256(w[3], mask_bytes(_mm256_srli_epi16(bits, 1), 4));
            MF_UNROLL
            for (int i = 0; i < 4; i++) w[i] = _mm256_add_epi8(w[i], _mm256_set1_epi8(MF_ACT256_OFFSET - 4));
        }
    }
}

// The scales of a super-block's 16 rows, 8 rows a vector.
typedef struct scales256 {
    __m256i sc[16][2]; // a 16-bit pair (sc, sc) for each run of words
    __m256i m[8][2];   // a 16-bit pair (m[2i], m[2i + 1]); 4 of them for sub-blocks of 32
    __m256 d[2], dmin[2];
} scales256;

MF_INLINE void put_scale(scales256 *s, int i, __m128i bytes) {
    const __m256i both = _mm256_broadcastsi128_si256(bytes);
    const __m256i pick = _mm256_setr_epi8(-1, 0, -1, 0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3, //
                                          -1, 4, -1, 4, -1, 5, -1, 5, -1, 6, -1, 6, -1, 7, -1, 7);
    const __m256i next = _mm256_set1_epi16(0x0800);
    s->sc[i][0] = _mm256_srai_epi16(_mm256_shuffle_epi8(both, pick), 8);
    s->sc[i][1] = _mm256_srai_epi16(_mm256_shuffle_epi8(both, _mm256_add_epi8(pick, next)), 8);
}

MF_INLINE void put_mins(scales256 *s, int i, __m128i m0, __m128i m1) {
    s->m[i][0] = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(m0, m1));
    s->m[i][1] = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(m0, m1));
}

MF_INLINE __m128i load_bytes(const uint8_t *planes, int i) {
    return _mm_loadu_si128((const __m128i *)(planes + MF_PANEL * i));
}
MF_INLINE __m128i low_bits(__m128i v, int mask) { return _mm_and_si128(v, _mm_set1_epi8((char)mask)); }

// mf_q4_k_scales for 16 rows.
MF_INLINE void q4_k_scales(const uint8_t *planes, int each, scales256 *s) {
    MF_UNROLL
    for (int g = 0; g < 8; g += 2) {
        __m128i m[2];
        MF_UNROLL
        for (int i = 0; i < 2; i++) {
            const __m128i a = load_bytes(planes, (g + i) % 4), b = load_bytes(planes, (g + i) % 4 + 4);
            const __m128i c = load_bytes(planes, (g + i) % 4 + 8);
            __m128i sc = low_bits(a, 63);
            m[i] = low_bits(b, 63);
            if (g >= 4) {
                sc = _mm_or_si128(low_bits(c, 15), low_bits(_mm_srli_epi16(a, 2), 0x30));
                m[i] = _mm_or_si128(low_bits(_mm_srli_epi16(c, 4), 15), low_bits(_mm_srli_epi16(b, 2), 0x30));
            }
            put_scale(s, (g + i) * each, sc);
            if (each == 2) put_scale(s, (g + i) * 2 + 1, sc);
        }
        put_mins(s, g / 2, m[0], m[1]);
    }
}

// mf_q3_k_scales for 16 rows.
MF_INLINE void q3_k_scales(const uint8_t *planes, scales256 *s) {
    MF_UNROLL
    for (int g = 0; g < 16; g++) {
        const __m128i plane = load_bytes(planes, g % 8);
        const __m128i low = low_bits(g < 8 ? plane : _mm_srli_epi16(plane, 4), 15);
        const __m128i high = low_bits(_mm_srli_epi16(load_bytes(planes, 8 + g % 4), 2 * (g / 4)), 3);
        put_scale(s, g, _mm_sub_epi8(_mm_or_si128(low, _mm_slli_epi16(high, 4)), _mm_set1_epi8(32)));
    }
}

MF_INLINE void block256_scales(mf_type t, const uint8_t *head, const uint8_t *body, scales256 *s) {
    MF_UNROLL
    for (int h = 0; h < 2; h++) {
        s->d[h] = load_half_floats(head + 16 * h);
        if (has_min(t)) s->dmin[h] = load_half_floats(head + 32 + 16 * h);
    }
    if (t == MF_TYPE_Q4_K || t == MF_TYPE_Q5_K) {
        q4_k_scales(body, t == MF_TYPE_Q4_K ? 1 : 2, s);
    } else if (t == MF_TYPE_Q3_K) {
        q3_k_scales(body, s);
    } else if (t == MF_TYPE_Q6_K) {
        MF_UNROLL
        for (int g = 0; g < 16; g++) put_scale(s, g, load_bytes(body, g));
    } else {
        for (int g = 0; g < 16; g += 2) {
            const __m128i a = load_bytes(body, g), b = load_bytes(body, g + 1);
            put_scale(s, g, low_bits(a, 15));
            put_scale(s, g + 1, low_bits(b, 15));
            put_mins(s, g / 2, low_bits(_mm_srli_epi16(a, 4), 15), low_bits(_mm_srli_epi16(b, 4), 15));
        }
    }
}

#endif
