// The vectors of the quantized matmuls at 256 bits: a word of a panel (matmul_job.h) is two of them, of 8 rows each.
#ifndef MF_BACKEND_CPU_X86_VEC256_H
#define MF_BACKEND_CPU_X86_VEC256_H

#include "backend/cpu/x86/matmul_job.h"

#define PARTS 2 // vectors of a word

typedef __m256i vec;
typedef __m256 fvec;

// Shifts of 16-bit lanes by a literal.
#define SHIFT_RIGHT(v, n) _mm256_srli_epi16(v, n)
#define SHIFT_LEFT(v, n)  _mm256_slli_epi16(v, n)

MF_INLINE vec load_part(const uint8_t *words, int word, int part) {
    return _mm256_loadu_si256((const __m256i *)(words + 64 * word + 32 * part));
}
MF_INLINE void store_part(uint8_t *words, int word, int part, vec v) {
    _mm256_store_si256((__m256i *)(words + 64 * word + 32 * part), v);
}

MF_INLINE vec vec_zero(void) { return _mm256_setzero_si256(); }
MF_INLINE vec bytes_of(int value) { return _mm256_set1_epi8((char)value); }
MF_INLINE vec pairs_of(int low, int high) {
    return _mm256_set1_epi32((int)((uint32_t)high << 16 | ((uint32_t)low & 0xffff)));
}
MF_INLINE vec ints_of(int value) { return _mm256_set1_epi32(value); }
MF_INLINE vec broadcast_32(const void *p) { return _mm256_set1_epi32(load_32(p)); }
MF_INLINE vec table_of(const void *bytes) { return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)bytes)); }

MF_INLINE vec mask_bytes(vec v, int mask) { return _mm256_and_si256(v, bytes_of(mask)); }
MF_INLINE vec shift_right(vec v, int n) { return _mm256_srl_epi16(v, _mm_cvtsi32_si128(n)); }
MF_INLINE vec shift_left(vec v, int n) { return _mm256_sll_epi16(v, _mm_cvtsi32_si128(n)); }
MF_INLINE vec or_bits(vec a, vec b) { return _mm256_or_si256(a, b); }
MF_INLINE vec xor_bits(vec a, vec b) { return _mm256_xor_si256(a, b); }
MF_INLINE vec look_up(vec table, vec v) { return _mm256_shuffle_epi8(table, v); }
MF_INLINE vec add_ints(vec a, vec b) { return _mm256_add_epi32(a, b); }
MF_INLINE vec sub_ints(vec a, vec b) { return _mm256_sub_epi32(a, b); }
MF_INLINE vec mul_ints(vec a, vec b) { return _mm256_mullo_epi32(a, b); }
MF_INLINE vec mul_pairs(vec a, vec b) { return _mm256_madd_epi16(a, b); }
MF_INLINE int32_t first_int(vec v) { return _mm256_extract_epi32(v, 0); }

// One signed byte for each of the 16 rows, as 32-bit numbers, and two as 16-bit pairs.
MF_INLINE void bytes_to_ints(__m128i bytes, vec out[PARTS]) {
    out[0] = _mm256_cvtepi8_epi32(bytes);
    out[1] = _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes));
}
MF_INLINE void bytes_to_pairs(__m128i low, __m128i high, vec out[PARTS]) {
    out[0] = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(low, high));
    out[1] = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(low, high));
}

MF_INLINE fvec fvec_zero(void) { return _mm256_setzero_ps(); }
MF_INLINE fvec floats_of(float value) { return _mm256_set1_ps(value); }
MF_INLINE fvec load_halves(const uint8_t *p, int part) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 16 * part)));
}
MF_INLINE fvec load_floats(const float *row, int part) { return _mm256_load_ps(row + 8 * part); }
MF_INLINE void store_floats(float *row, int part, fvec v) { _mm256_store_ps(row + 8 * part, v); }
MF_INLINE fvec to_floats(vec v) { return _mm256_cvtepi32_ps(v); }
MF_INLINE fvec mul_floats(fvec a, fvec b) { return _mm256_mul_ps(a, b); }
MF_INLINE fvec fma_floats(fvec a, fvec b, fvec c) { return _mm256_fmadd_ps(a, b, c); }
MF_INLINE fvec nfma_floats(fvec a, fvec b, fvec c) { return _mm256_fnmadd_ps(a, b, c); }

#endif
