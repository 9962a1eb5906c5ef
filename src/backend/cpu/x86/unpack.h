// How a panel's blocks become vectors of bytes: one short piece for each type, for the x86 rows of the table. Everything is inlined
// with a constant type. The including file has chosen its vectors (vec256.h, vec512.h) and says what its sums take:
//
//   vec from_signed(vec v)       a signed byte as its sums take it
//   vec raised(mf_type, vec v)   a small unsigned byte as its sums take it: plus a constant for some types
//   int offset_of(mf_type)       how far the words of a K type stand above its values, where that is taken off in the end with the
//                                scales as pairs; 0: not so
//   int run_words(mf_type)       words of a super-block whose sum is multiplied by a scale at once: 8 (32 values) or 4 (16 values)
//   void put_scale(__m128i bytes, vec out[PARTS])   the scales of 16 rows as the sums are multiplied by them
#ifndef MF_BACKEND_CPU_X86_UNPACK_H
#define MF_BACKEND_CPU_X86_UNPACK_H

#include "backend/cpu/act.h"
#include "backend/cpu/x86/matmul_job.h"
#include "quant/blocks.h"

MF_INLINE __m128i load_bytes(const uint8_t *planes, int i) {
    return _mm_loadu_si128((const __m128i *)(planes + MF_PANEL * i));
}
MF_INLINE __m128i low_bits(__m128i v, int mask) { return _mm_and_si128(v, _mm_set1_epi8((char)mask)); }
MF_INLINE __m128i bits_at(__m128i v, int shift, int mask) {
    return low_bits(_mm_srl_epi16(v, _mm_cvtsi32_si128(shift)), mask);
}

// A 6-bit scale less 32, from its low 4 and its high 2 bits.
MF_INLINE __m128i split_scale(__m128i low, __m128i high) {
    return _mm_sub_epi8(_mm_or_si128(low, _mm_slli_epi16(high, 4)), _mm_set1_epi8(32));
}

// ---- Types with a scale per 32 -------------------------------------------------------------------------------------------

// The scales (and minimums) of a block's 16 rows.
MF_INLINE void block32_scales(mf_type t, const block32 *at, fvec d[PARTS], fvec m[PARTS]) {
    vec sc[PARTS];
    if (t == MF_TYPE_IQ4_XS) {
        const __m128i high = bits_at(load_bytes(at->body, at->group / 4), at->group % 4 * 2, 3);
        const __m128i low = bits_at(load_bytes(at->body + MF_PANEL_IQ4_XS_LOW, at->group / 2), at->group % 2 * 4, 15);
        bytes_to_ints(split_scale(low, high), sc);
    }
    MF_UNROLL
    for (int p = 0; p < PARTS; p++) {
        d[p] = load_halves(at->head, p);
        if (t == MF_TYPE_IQ4_XS) d[p] = mul_floats(d[p], to_floats(sc[p]));
        if (has_min(t)) m[p] = load_halves(at->head + 32, p);
    }
}

// A part of the words of a step of a block.
MF_INLINE void block32_words(mf_type t, const block32 *at, int step, int part, vec w[4]) {
    const vec v = load_part(at->qs, step, part);
    if (t == MF_TYPE_Q8_0) {
        w[0] = from_signed(v);
        return;
    }
    w[0] = mask_bytes(v, 15);
    w[1] = mask_bytes(SHIFT_RIGHT(v, 4), 15);
    if (t == MF_TYPE_Q5_0 || t == MF_TYPE_Q5_1) { // bit `step` of each byte belongs to w[0], bit step + 4 to w[1]
        const vec qh = load_part(at->body, 0, part);
        w[0] = or_bits(w[0], mask_bytes(shift_left(qh, 4 - step), 16));
        w[1] = or_bits(w[1], mask_bytes(shift_right(qh, step), 16));
    } else if (t == MF_TYPE_IQ4_NL || t == MF_TYPE_IQ4_XS) {
        const vec values = from_signed(table_of(mf_iq4_values));
        w[0] = look_up(values, w[0]);
        w[1] = look_up(values, w[1]);
    } else {
        w[0] = raised(t, w[0]);
        w[1] = raised(t, w[1]);
    }
}

// ---- Super-blocks of 256 -------------------------------------------------------------------------------------------------

// A part of the words of a step of a super-block.
MF_INLINE void block256_words(mf_type t, const uint8_t *body, int step, int part, vec w[4]) {
    const uint8_t *qs = body + qs_offset(t);
    if (t == MF_TYPE_Q4_K || t == MF_TYPE_Q5_K) {
        const vec v = load_part(qs, step, part);
        w[0] = mask_bytes(v, 15);
        w[1] = mask_bytes(SHIFT_RIGHT(v, 4), 15);
        if (t == MF_TYPE_Q5_K) { // bits 2p and 2p + 1 of the high bits belong to the p-th pair of sub-blocks
            const vec bits = shift_right(load_part(body + MF_PANEL_Q5_K_QH, step % 8, part), step / 8 * 2);
            w[0] = or_bits(w[0], mask_bytes(SHIFT_LEFT(bits, 4), 16));
            w[1] = or_bits(w[1], mask_bytes(SHIFT_LEFT(bits, 3), 16));
        }
    } else if (t == MF_TYPE_Q6_K) {
        const vec qh = load_part(body + MF_PANEL_Q6_K_QH, step, part);
        const vec a = load_part(qs, step / 8 * 16 + step % 8, part), b = load_part(qs, step / 8 * 16 + step % 8 + 8, part);
        w[0] = or_bits(mask_bytes(a, 15), mask_bytes(SHIFT_LEFT(qh, 4), 0x30));
        w[1] = or_bits(mask_bytes(b, 15), mask_bytes(SHIFT_LEFT(qh, 2), 0x30));
        w[2] = or_bits(mask_bytes(SHIFT_RIGHT(a, 4), 15), mask_bytes(qh, 0x30));
        w[3] = or_bits(mask_bytes(SHIFT_RIGHT(b, 4), 15), mask_bytes(SHIFT_RIGHT(qh, 2), 0x30));
    } else {
        const vec v = load_part(qs, step, part);
        w[0] = mask_bytes(v, 3);
        w[1] = mask_bytes(SHIFT_RIGHT(v, 2), 3);
        w[2] = mask_bytes(SHIFT_RIGHT(v, 4), 3);
        w[3] = mask_bytes(SHIFT_RIGHT(v, 6), 3);
        if (t == MF_TYPE_Q3_K) { // bit 4 * (half of 128) + i of the high bits
            const vec bits = shift_right(load_part(body + MF_PANEL_Q3_K_HMASK, step % 8, part), step / 8 * 4);
            w[0] = raised(t, or_bits(w[0], mask_bytes(SHIFT_LEFT(bits, 2), 4)));
            w[1] = raised(t, or_bits(w[1], mask_bytes(SHIFT_LEFT(bits, 1), 4)));
            w[2] = raised(t, or_bits(w[2], mask_bytes(bits, 4)));
            w[3] = raised(t, or_bits(w[3], mask_bytes(SHIFT_RIGHT(bits, 1), 4)));
        }
    }
}

// The scales of a super-block's 16 rows.
typedef struct scales256 {
    vec sc[16][PARTS];   // for each run of words
    vec pairs[8][PARTS]; // 16-bit pairs of neighbours: minimums, or scales where there is an offset_of the type
    fvec d[PARTS], dmin[PARTS];
} scales256;

// Of those pairs: how many, and the sums of activations that go with them.
MF_INLINE int pair_count(mf_type t) { return t == MF_TYPE_Q4_K || t == MF_TYPE_Q5_K ? 4 : 8; }
MF_INLINE const int16_t *pair_asums(mf_type t, const mf_act256 *a, int64_t b) {
    return pair_count(t) == 4 ? a->asum32 + 8 * b : a->asum + 16 * b;
}

// The scale of sub-block g and its minimum, where there is one, of 16 rows: mf_q4_k_scales and mf_q3_k_scales, row by row.
MF_INLINE __m128i sub_block_scale(mf_type t, const uint8_t *planes, int g) {
    switch (t) {
    case MF_TYPE_Q4_K:
    case MF_TYPE_Q5_K:
        if (g < 4) return low_bits(load_bytes(planes, g), 63);
        return _mm_or_si128(low_bits(load_bytes(planes, g + 4), 15), bits_at(load_bytes(planes, g - 4), 2, 0x30));
    case MF_TYPE_Q3_K:
        return split_scale(bits_at(load_bytes(planes, g % 8), g / 8 * 4, 15),
                           bits_at(load_bytes(planes, 8 + g % 4), 2 * (g / 4), 3));
    case MF_TYPE_Q2_K: return low_bits(load_bytes(planes, g), 15);
    default: return load_bytes(planes, g);
    }
}

MF_INLINE __m128i sub_block_min(mf_type t, const uint8_t *planes, int g) {
    if (t == MF_TYPE_Q2_K) return bits_at(load_bytes(planes, g), 4, 15);
    if (g < 4) return low_bits(load_bytes(planes, g + 4), 63);
    return _mm_or_si128(bits_at(load_bytes(planes, g + 4), 4, 15), bits_at(load_bytes(planes, g), 2, 0x30));
}

MF_INLINE void block256_scales(mf_type t, const uint8_t *head, const uint8_t *body, scales256 *s) {
    MF_UNROLL
    for (int p = 0; p < PARTS; p++) {
        s->d[p] = load_halves(head, p);
        if (has_min(t)) s->dmin[p] = load_halves(head + 32, p);
    }
    const int each = 32 / pair_count(t) / run_words(t); // runs of a sub-block
    MF_UNROLL
    for (int g = 0; g < 2 * pair_count(t); g += 2) {
        __m128i sc[2];
        MF_UNROLL
        for (int i = 0; i < 2; i++) {
            sc[i] = sub_block_scale(t, body, g + i);
            put_scale(sc[i], s->sc[(g + i) * each]);
            if (each == 2) put_scale(sc[i], s->sc[(g + i) * each + 1]);
        }
        if (has_min(t)) bytes_to_pairs(sub_block_min(t, body, g), sub_block_min(t, body, g + 1), s->pairs[g / 2]);
        if (offset_of(t)) bytes_to_pairs(sc[0], sc[1], s->pairs[g / 2]);
    }
}

#endif
