// lanes.h on AVX2, FMA and F16C: two registers of eight.
#ifndef MF_BACKEND_CPU_X86_LANES_AVX2_H
#define MF_BACKEND_CPU_X86_LANES_AVX2_H

#include <immintrin.h>

#include "backend/cpu/lanes.h"

#define LANES_BLOCK           6
#define LANES_BLOCK_CONVERTED 5

typedef struct lanes {
    __m256 lo, hi;
} lanes;

typedef lanes lanes_mask; // all bits of a true lane are set

LANES_INLINE lanes lanes_set1(float x) { return (lanes){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }

LANES_INLINE lanes lanes_load(const float *p) { return (lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }

LANES_INLINE void lanes_store(float *p, lanes v) {
    _mm256_storeu_ps(p, v.lo);
    _mm256_storeu_ps(p + 8, v.hi);
}

LANES_INLINE lanes_mask lanes_between(int32_t begin, int32_t end) {
    __m256i below = _mm256_set1_epi32(begin - 1), above = _mm256_set1_epi32(end);
    __m256i lo = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), hi = _mm256_add_epi32(lo, _mm256_set1_epi32(8));
    lo = _mm256_and_si256(_mm256_cmpgt_epi32(lo, below), _mm256_cmpgt_epi32(above, lo));
    hi = _mm256_and_si256(_mm256_cmpgt_epi32(hi, below), _mm256_cmpgt_epi32(above, hi));
    return (lanes_mask){_mm256_castsi256_ps(lo), _mm256_castsi256_ps(hi)};
}

LANES_INLINE lanes lanes_load_part(const float *p, int32_t n) {
    lanes_mask m = lanes_between(0, n);
    __m256 hi = n > 8 ? _mm256_maskload_ps(p + 8, _mm256_castps_si256(m.hi)) : _mm256_setzero_ps();
    return (lanes){_mm256_maskload_ps(p, _mm256_castps_si256(m.lo)), hi};
}

LANES_INLINE void lanes_store_part(float *p, lanes v, int32_t n) {
    lanes_mask m = lanes_between(0, n);
    _mm256_maskstore_ps(p, _mm256_castps_si256(m.lo), v.lo);
    if (n > 8) _mm256_maskstore_ps(p + 8, _mm256_castps_si256(m.hi), v.hi);
}

LANES_INLINE lanes lanes_load_f16(const uint16_t *p) {
    return (lanes){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                   _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)))};
}

LANES_INLINE lanes lanes_load_i8(const int8_t *p) {
    return (lanes){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p))),
                   _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p + 8))))};
}

LANES_INLINE void lanes_store_f16(uint16_t *p, lanes v) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v.lo, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(v.hi, _MM_FROUND_TO_NEAREST_INT));
}

LANES_INLINE __m256 lanes_avx2_in_order(__m256 v) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), _MM_SHUFFLE(3, 1, 2, 0)));
}

LANES_INLINE void lanes_load_pairs(const float *p, lanes *v) {
    lanes a = lanes_load(p), b = lanes_load(p + MF_LANES);
    v[0] = (lanes){lanes_avx2_in_order(_mm256_shuffle_ps(a.lo, a.hi, _MM_SHUFFLE(2, 0, 2, 0))),
                   lanes_avx2_in_order(_mm256_shuffle_ps(b.lo, b.hi, _MM_SHUFFLE(2, 0, 2, 0)))};
    v[1] = (lanes){lanes_avx2_in_order(_mm256_shuffle_ps(a.lo, a.hi, _MM_SHUFFLE(3, 1, 3, 1))),
                   lanes_avx2_in_order(_mm256_shuffle_ps(b.lo, b.hi, _MM_SHUFFLE(3, 1, 3, 1)))};
}

LANES_INLINE void lanes_avx2_store_pairs8(float *p, __m256 even, __m256 odd) {
    __m256 a = _mm256_unpacklo_ps(even, odd), b = _mm256_unpackhi_ps(even, odd);
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(a, b, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(a, b, 0x31));
}

LANES_INLINE void lanes_store_pairs(float *p, const lanes *v) {
    lanes_avx2_store_pairs8(p, v[0].lo, v[1].lo);
    lanes_avx2_store_pairs8(p + MF_LANES, v[0].hi, v[1].hi);
}

LANES_INLINE lanes lanes_add(lanes a, lanes b) { return (lanes){_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }

LANES_INLINE lanes lanes_sub(lanes a, lanes b) { return (lanes){_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }

LANES_INLINE lanes lanes_mul(lanes a, lanes b) { return (lanes){_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }

LANES_INLINE lanes lanes_div(lanes a, lanes b) { return (lanes){_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }

LANES_INLINE lanes lanes_fma(lanes a, lanes b, lanes c) {
    return (lanes){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

LANES_INLINE lanes lanes_nfma(lanes a, lanes b, lanes c) {
    return (lanes){_mm256_fnmadd_ps(a.lo, b.lo, c.lo), _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}

LANES_INLINE lanes lanes_neg(lanes a) {
    __m256 sign = _mm256_set1_ps(-0.0f);
    return (lanes){_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}

LANES_INLINE lanes lanes_max(lanes a, lanes b) { return (lanes){_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }

LANES_INLINE float lanes_fold_sum(lanes v) {
    __m256 eight = _mm256_add_ps(v.lo, v.hi);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

LANES_INLINE float lanes_fold_max(lanes v) {
    __m256 eight = _mm256_max_ps(v.hi, v.lo);
    __m128 four = _mm_max_ps(_mm256_extractf128_ps(eight, 1), _mm256_castps256_ps128(eight));
    __m128 two = _mm_max_ps(_mm_movehl_ps(four, four), four);
    return _mm_cvtss_f32(_mm_max_ss(_mm_movehdup_ps(two), two));
}

LANES_INLINE __m256 lanes_avx2_raise(__m256 a, __m256 b) {
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_slli_epi32(_mm256_castps_si256(b), 23)));
}

LANES_INLINE lanes lanes_raise(lanes a, lanes b) {
    return (lanes){lanes_avx2_raise(a.lo, b.lo), lanes_avx2_raise(a.hi, b.hi)};
}

LANES_INLINE lanes_mask lanes_less(lanes a, lanes b) {
    return (lanes_mask){_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}

LANES_INLINE lanes lanes_select(lanes_mask m, lanes a, lanes b) {
    return (lanes){_mm256_blendv_ps(b.lo, a.lo, m.lo), _mm256_blendv_ps(b.hi, a.hi, m.hi)};
}

#endif
