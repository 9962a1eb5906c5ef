// How a panel's blocks become vectors of bytes on AVX-512: one short piece for each type. A word (matmul_job.h) is one
// vector. Words come out as unsigned bytes with an offset that the sum begins with: the dot products are exact in 32 bits,
// so any offset will do.
#ifndef MF_BACKEND_CPU_X86_UNPACK_AVX512_H
#define MF_BACKEND_CPU_X86_UNPACK_AVX512_H

#include "backend/cpu/act.h"
#include "backend/cpu/x86/matmul_job.h"
#include "quant/blocks.h"

// What is added to a type's values to make them unsigned.
MF_INLINE int offset_of(mf_type t) {
    switch (t) {
    case MF_TYPE_Q3_K: return 4;
    case MF_TYPE_Q4_0: return 8;
    case MF_TYPE_Q5_0: return 16;
    case MF_TYPE_Q6_K: return 32;
    case MF_TYPE_Q8_0:
    case MF_TYPE_IQ4_NL:
    case MF_TYPE_IQ4_XS: return 128;
    default: return 0;
    }
}

MF_INLINE __m512i load_word(const uint8_t *words, int word) { return _mm512_loadu_si512(words + 64 * word); }
MF_INLINE __m512i mask_bytes(__m512i v, int mask) { return _mm512_and_si512(v, _mm512_set1_epi8((char)mask)); }
MF_INLINE __m512i shift_right(__m512i v, int n) { return _mm512_srl_epi16(v, _mm_cvtsi32_si128(n)); }
MF_INLINE __m512i shift_left(__m512i v, int n) { return _mm512_sll_epi16(v, _mm_cvtsi32_si128(n)); }
MF_INLINE __m512 load_halves(const uint8_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
MF_INLINE __m128i load_bytes(const uint8_t *planes, int i) {
    return _mm_loadu_si128((const __m128i *)(planes + MF_PANEL * i));
}
MF_INLINE __m128i low_bits(__m128i v, int mask) { return _mm_and_si128(v, _mm_set1_epi8((char)mask)); }
MF_INLINE __m128i bits_at(__m128i v, int shift, int mask) {
    return low_bits(_mm_srl_epi16(v, _mm_cvtsi32_si128(shift)), mask);
}

// ---- Types with a scale per 32 -------------------------------------------------------------------------------------------

// The scales (and minimums) of a block's 16 rows.
MF_INLINE void block32_scales(mf_type t, const block32 *at, __m512 *d, __m512 *m) {
    *d = load_halves(at->head);
    *m = has_min(t) ? load_halves(at->head + 32) : _mm512_setzero_ps();
    if (t == MF_TYPE_IQ4_XS) {
        const __m128i high = bits_at(load_bytes(at->body, at->group / 4), at->group % 4 * 2, 3);
        const __m128i low = bits_at(load_bytes(at->body + MF_PANEL_IQ4_XS_LOW, at->group / 2), at->group % 2 * 4, 15);
        const __m128i sc = _mm_sub_epi8(_mm_or_si128(_mm_slli_epi16(high, 4), low), _mm_set1_epi8(32));
        *d = _mm512_mul_ps(*d, _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(sc)));
    }
}

// The words of a step of a block.
MF_INLINE void block32_words(mf_type t, const block32 *at, int step, __m512i w[4]) {
    const __m512i v = load_word(at->qs, step);
    if (t == MF_TYPE_Q8_0) {
        w[0] = _mm512_xor_si512(v, _mm512_set1_epi8((char)128));
        return;
    }
    w[0] = mask_bytes(v, 15);
    w[1] = mask_bytes(_mm512_srli_epi16(v, 4), 15);
    if (t == MF_TYPE_Q5_0 || t == MF_TYPE_Q5_1) { // bit `step` of each byte belongs to w[0], bit step + 4 to w[1]
        const __m512i qh = load_word(at->body, 0);
        w[0] = _mm512_or_si512(w[0], mask_bytes(shift_left(qh, 4 - step), 16));
        w[1] = _mm512_or_si512(w[1], mask_bytes(shift_right(qh, step), 16));
    } else if (t == MF_TYPE_IQ4_NL || t == MF_TYPE_IQ4_XS) {
        const __m128i values = _mm_xor_si128(_mm_loadu_si128((const __m128i *)mf_iq4_values), _mm_set1_epi8((char)128));
        w[0] = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), w[0]);
        w[1] = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), w[1]);
    }
}

// ---- Super-blocks of 256 -------------------------------------------------------------------------------------------------

// Words that share a scale: 8 (32 values) or 4 (16 values).
MF_INLINE int run_words(mf_type t) { return t == MF_TYPE_Q4_K || t == MF_TYPE_Q5_K ? 8 : 4; }

// The words of a step of a super-block.
MF_INLINE void block256_words(mf_type t, const uint8_t *body, int step, __m512i w[4]) {
    const uint8_t *qs = body + qs_offset(t);
    if (t == MF_TYPE_Q4_K || t == MF_TYPE_Q5_K) {
        const __m512i v = load_word(qs, step);
        w[0] = mask_bytes(v, 15);
        w[1] = mask_bytes(_mm512_srli_epi16(v, 4), 15);
        if (t == MF_TYPE_Q5_K) { // bits 2p and 2p + 1 of the high bits belong to the p-th pair of sub-blocks
            const __m512i bits = shift_right(load_word(body + MF_PANEL_Q5_K_QH, step % 8), step / 8 * 2);
            w[0] = _mm512_or_si512(w[0], mask_bytes(_mm512_slli_epi16(bits, 4), 16));
            w[1] = _mm512_or_si512(w[1], mask_bytes(_mm512_slli_epi16(bits, 3), 16));
        }
    } else if (t == MF_TYPE_Q6_K) {
        const __m512i qh = load_word(body + MF_PANEL_Q6_K_QH, step);
        const __m512i a = load_word(qs, step / 8 * 16 + step % 8), b = load_word(qs, step / 8 * 16 + step % 8 + 8);
        w[0] = _mm512_or_si512(mask_bytes(a, 15), mask_bytes(_mm512_slli_epi16(qh, 4), 0x30));
        w[1] = _mm512_or_si512(mask_bytes(b, 15), mask_bytes(_mm512_slli_epi16(qh, 2), 0x30));
        w[2] = _mm512_or_si512(mask_bytes(_mm512_srli_epi16(a, 4), 15), mask_bytes(qh, 0x30));
        w[3] = _mm512_or_si512(mask_bytes(_mm512_srli_epi16(b, 4), 15), mask_bytes(_mm512_srli_epi16(qh, 2), 0x30));
    } else {
        const __m512i v = load_word(qs, step);
        w[0] = mask_bytes(v, 3);
        w[1] = mask_bytes(_mm512_srli_epi16(v, 2), 3);
        w[2] = mask_bytes(_mm512_srli_epi16(v, 4), 3);
        w[3] = mask_bytes(_mm512_srli_epi16(v, 6), 3);
        if (t == MF_TYPE_Q3_K) { // bit 4 * (half of 128) + i of the high bits
            const __m512i bits = shift_right(load_word(body + MF_PANEL_Q3_K_HMASK, step % 8), step / 8 * 4);
            w[0] = _mm512_or_si512(w[0], mask_bytes(_mm512_slli_epi16(bits, 2), 4));
            w[1] = _mm512_or_si512(w[1], mask_bytes(_mm512_slli_epi16(bits, 1), 4));
            w[2] = _mm512_or_si512(w[2], mask_bytes(bits, 4));
            w[3] = _mm512_or_si512(w[3], mask_bytes(_mm512_srli_epi16(bits, 1), 4));
        }
    }
}

// The scales of a super-block's 16 rows.
typedef struct scales256 {
    __m512i sc[16]; // 32 bits, for each run of words
    __m512i m[8];   // a 16-bit pair (m[2i], m[2i + 1]); 4 of them for sub-blocks of 32
    __m512 d, dmin;
} scales256;

MF_INLINE __m512i pair_mins(__m128i m0, __m128i m1) {
    return _mm512_cvtepu8_epi16(_mm256_set_m128i(_mm_unpackhi_epi8(m0, m1), _mm_unpacklo_epi8(m0, m1)));
}

// mf_q4_k_scales for 16 rows.
MF_INLINE void q4_k_scales(const uint8_t *planes, scales256 *s) {
    __m128i m[8];
    MF_UNROLL
    for (int g = 0; g < 4; g++) {
        const __m128i a = load_bytes(planes, g), b = load_bytes(planes, g + 4), c = load_bytes(planes, g + 8);
        s->sc[g] = _mm512_cvtepu8_epi32(low_bits(a, 63));
        s->sc[g + 4] = _mm512_cvtepu8_epi32(_mm_or_si128(low_bits(c, 15), bits_at(a, 2, 0x30)));
        m[g] = low_bits(b, 63);
        m[g + 4] = _mm_or_si128(bits_at(c, 4, 15), bits_at(b, 2, 0x30));
    }
    MF_UNROLL
    for (int i = 0; i < 4; i++) s->m[i] = pair_mins(m[2 * i], m[2 * i + 1]);
}

// mf_q3_k_scales for 16 rows.
MF_INLINE void q3_k_scales(const uint8_t *planes, scales256 *s) {
    MF_UNROLL
    for (int g = 0; g < 16; g++) {
        const __m128i low = bits_at(load_bytes(planes, g % 8), g / 8 * 4, 15);
        const __m128i high = bits_at(load_bytes(planes, 8 + g % 4), 2 * (g / 4), 3);
        s->sc[g] = _mm512_cvtepi8_epi32(_mm_sub_epi8(_mm_or_si128(low, _mm_slli_epi16(high, 4)), _mm_set1_epi8(32)));
    }
}

MF_INLINE void block256_scales(mf_type t, const uint8_t *head, const uint8_t *body, scales256 *s) {
    s->d = load_halves(head);
    s->dmin = has_min(t) ? load_halves(head + 32) : _mm512_setzero_ps();
    if (t == MF_TYPE_Q4_K || t == MF_TYPE_Q5_K) {
        q4_k_scales(body, s);
    } else if (t == MF_TYPE_Q3_K) {
        q3_k_scales(body, s);
    } else if (t == MF_TYPE_Q6_K) {
        for (int g = 0; g < 16; g++) s->sc[g] = _mm512_cvtepi8_epi32(load_bytes(body, g));
    } else {
        for (int g = 0; g < 16; g += 2) {
            const __m128i a = load_bytes(body, g), b = load_bytes(body, g + 1);
            s->sc[g] = _mm512_cvtepu8_epi32(low_bits(a, 15));
            s->sc[g + 1] = _mm512_cvtepu8_epi32(low_bits(b, 15));
            s->m[g / 2] = pair_mins(bits_at(a, 4, 15), bits_at(b, 4, 15));
        }
    }
}

#endif
