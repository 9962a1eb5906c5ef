// The vectors of the quantized matmuls at 512 bits: a word of a panel (matmul_job.h) is one of them. The same vocabulary as vec256.h.
#ifndef MF_BACKEND_CPU_X86_VEC512_H
#define MF_BACKEND_CPU_X86_VEC512_H

#include "backend/cpu/x86/matmul_job.h"

#define PARTS 1 // vectors of a word; `part` is 0 everywhere below

typedef __m512i vec;
typedef __m512 fvec;

// Shifts of 16-bit lanes by a literal.
#define SHIFT_RIGHT(v, n) _mm512_srli_epi16(v, n)
#define SHIFT_LEFT(v, n)  _mm512_slli_epi16(v, n)

MF_INLINE vec load_part(const uint8_t *words, int word, int part) { return _mm512_loadu_si512(words + 64 * (word + part)); }
MF_INLINE void store_part(uint8_t *words, int word, int part, vec v) { _mm512_store_si512(words + 64 * (word + part), v); }

MF_INLINE vec vec_zero(void) { return _mm512_setzero_si512(); }
MF_INLINE vec bytes_of(int value) { return _mm512_set1_epi8((char)value); }
MF_INLINE vec pairs_of(int low, int high) {
    return _mm512_set1_epi32((int)((uint32_t)high << 16 | ((uint32_t)low & 0xffff)));
}
MF_INLINE vec ints_of(int value) { return _mm512_set1_epi32(value); }
MF_INLINE vec broadcast_32(const void *p) { return _mm512_set1_epi32(load_32(p)); }
MF_INLINE vec table_of(const void *bytes) { return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)bytes)); }

MF_INLINE vec mask_bytes(vec v, int mask) { return _mm512_and_si512(v, bytes_of(mask)); }
MF_INLINE vec shift_right(vec v, int n) { return _mm512_srl_epi16(v, _mm_cvtsi32_si128(n)); }
MF_INLINE vec shift_left(vec v, int n) { return _mm512_sll_epi16(v, _mm_cvtsi32_si128(n)); }
MF_INLINE vec or_bits(vec a, vec b) { return _mm512_or_si512(a, b); }
MF_INLINE vec xor_bits(vec a, vec b) { return _mm512_xor_si512(a, b); }
MF_INLINE vec look_up(vec table, vec v) { return _mm512_shuffle_epi8(table, v); }
MF_INLINE vec add_ints(vec a, vec b) { return _mm512_add_epi32(a, b); }
MF_INLINE vec sub_ints(vec a, vec b) { return _mm512_sub_epi32(a, b); }
MF_INLINE vec mul_ints(vec a, vec b) { return _mm512_mullo_epi32(a, b); }
MF_INLINE vec mul_pairs(vec a, vec b) { return _mm512_madd_epi16(a, b); }
MF_INLINE int32_t first_int(vec v) { return _mm_cvtsi128_si32(_mm512_castsi512_si128(v)); }

MF_INLINE void bytes_to_ints(__m128i bytes, vec out[PARTS]) { out[0] = _mm512_cvtepi8_epi32(bytes); }
MF_INLINE void bytes_to_pairs(__m128i low, __m128i high, vec out[PARTS]) {
    out[0] = _mm512_cvtepi8_epi16(_mm256_set_m128i(_mm_unpackhi_epi8(low, high), _mm_unpacklo_epi8(low, high)));
}

MF_INLINE fvec fvec_zero(void) { return _mm512_setzero_ps(); }
MF_INLINE fvec floats_of(float value) { return _mm512_set1_ps(value); }
MF_INLINE fvec load_halves(const uint8_t *p, int part) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p + part));
}
MF_INLINE fvec load_floats(const float *row, int part) { return _mm512_load_ps(row + 16 * part); }
MF_INLINE void store_floats(float *row, int part, fvec v) { _mm512_store_ps(row + 16 * part, v); }
MF_INLINE fvec to_floats(vec v) { return _mm512_cvtepi32_ps(v); }
MF_INLINE fvec mul_floats(fvec a, fvec b) { return _mm512_mul_ps(a, b); }
MF_INLINE fvec fma_floats(fvec a, fvec b, fvec c) { return _mm512_fmadd_ps(a, b, c); }
MF_INLINE fvec nfma_floats(fvec a, fvec b, fvec c) { return _mm512_fnmadd_ps(a, b, c); }

#endif
