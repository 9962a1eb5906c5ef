// lanes.h on AVX-512 (F, DQ): one register.
#ifndef MF_BACKEND_CPU_X86_LANES_AVX512_H
#define MF_BACKEND_CPU_X86_LANES_AVX512_H

#include <immintrin.h>

#include "backend/cpu/lanes.h"

#define LANES_BLOCK           14
#define LANES_BLOCK_CONVERTED 14

typedef __m512 lanes;
typedef __mmask16 lanes_mask;

LANES_INLINE lanes lanes_set1(float x) { return _mm512_set1_ps(x); }

LANES_INLINE lanes lanes_load(const float *p) { return _mm512_loadu_ps(p); }

LANES_INLINE void lanes_store(float *p, lanes v) { _mm512_storeu_ps(p, v); }

LANES_INLINE lanes_mask lanes_avx512_first(int32_t n) { return (lanes_mask)(n <= 0 ? 0 : n >= 16 ? 0xffff : (1u << n) - 1); }

LANES_INLINE lanes_mask lanes_between(int32_t begin, int32_t end) {
    return (lanes_mask)(lanes_avx512_first(end) & ~lanes_avx512_first(begin));
}

LANES_INLINE lanes lanes_load_part(const float *p, int32_t n) { return _mm512_maskz_loadu_ps(lanes_avx512_first(n), p); }

LANES_INLINE void lanes_store_part(float *p, lanes v, int32_t n) { _mm512_mask_storeu_ps(p, lanes_avx512_first(n), v); }

LANES_INLINE lanes lanes_load_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }

LANES_INLINE lanes lanes_load_i8(const int8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

LANES_INLINE void lanes_store_f16(uint16_t *p, lanes v) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}

LANES_INLINE void lanes_load_pairs(const float *p, lanes *v) {
    __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    __m512 a = lanes_load(p), b = lanes_load(p + MF_LANES);
    v[0] = _mm512_permutex2var_ps(a, even, b);
    v[1] = _mm512_permutex2var_ps(a, _mm512_or_si512(even, _mm512_set1_epi32(1)), b);
}

LANES_INLINE void lanes_store_pairs(float *p, const lanes *v) {
    __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    lanes_store(p, _mm512_permutex2var_ps(v[0], first, v[1]));
    lanes_store(p + MF_LANES, _mm512_permutex2var_ps(v[0], _mm512_add_epi32(first, _mm512_set1_epi32(8)), v[1]));
}

LANES_INLINE lanes lanes_add(lanes a, lanes b) { return _mm512_add_ps(a, b); }

LANES_INLINE lanes lanes_sub(lanes a, lanes b) { return _mm512_sub_ps(a, b); }

LANES_INLINE lanes lanes_mul(lanes a, lanes b) { return _mm512_mul_ps(a, b); }

LANES_INLINE lanes lanes_div(lanes a, lanes b) { return _mm512_div_ps(a, b); }

LANES_INLINE lanes lanes_fma(lanes a, lanes b, lanes c) { return _mm512_fmadd_ps(a, b, c); }

LANES_INLINE lanes lanes_nfma(lanes a, lanes b, lanes c) { return _mm512_fnmadd_ps(a, b, c); }

LANES_INLINE lanes lanes_neg(lanes a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }

LANES_INLINE lanes lanes_max(lanes a, lanes b) { return _mm512_max_ps(a, b); }

LANES_INLINE float lanes_fold_sum(lanes v) {
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

LANES_INLINE float lanes_fold_max(lanes v) {
    __m256 eight = _mm256_max_ps(_mm512_extractf32x8_ps(v, 1), _mm512_castps512_ps256(v));
    __m128 four = _mm_max_ps(_mm256_extractf128_ps(eight, 1), _mm256_castps256_ps128(eight));
    __m128 two = _mm_max_ps(_mm_movehl_ps(four, four), four);
    return _mm_cvtss_f32(_mm_max_ss(_mm_movehdup_ps(two), two));
}

LANES_INLINE lanes lanes_raise(lanes a, lanes b) {
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_slli_epi32(_mm512_castps_si512(b), 23)));
}

LANES_INLINE lanes_mask lanes_less(lanes a, lanes b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }

LANES_INLINE lanes lanes_select(lanes_mask m, lanes a, lanes b) { return _mm512_mask_blend_ps(m, b, a); }

#endif
