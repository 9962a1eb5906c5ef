// Activations to int8 on AVX2.
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/act.h"
#include "backend/cpu/quantize.h"
#include "base/half.h"

// The largest pattern of |x| as an integer.
static inline __m256i max_bits(__m256i max, const float *x) {
    const __m256i bits = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)x), _mm256_set1_epi32(0x7fffffff));
    return _mm256_max_epi32(max, bits);
}

static inline uint32_t largest(__m256i v) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

// The scale of a group from its largest pattern, and what to multiply by; false when it is not finite.
static inline bool scale_of(uint32_t bits, float *d, float *id) {
    const float amax = mf_bits_f32(bits);
    const bool finite = bits < 0x7f800000, zero = !finite || amax < MF_ACT_TINY;
    *d = zero ? 0 : amax / 127;
    *id = zero ? 0 : 127 / amax;
    return finite;
}

// 32 values to bytes.
static inline __m256i to_bytes(const float *x, float id, bool zero) {
    if (zero) return _mm256_setzero_si256();
    const __m256 factor = _mm256_set1_ps(id);
    __m256i v[4];
    for (int i = 0; i < 4; i++) v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), factor));
    const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    return _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Sums of neighbours: 16-bit lane i has q[2i] + q[2i + 1].
static inline __m256i pair_sums(__m256i q) { return _mm256_maddubs_epi16(_mm256_set1_epi8(1), q); }

bool mf_quantize_32_avx2(const float *x, void *row, int64_t n) {
    const mf_act32 a = mf_act32_of(row, n);
    bool finite = true;
    for (int64_t b = 0; b < n / 32; b++, x += 32) {
        __m256i max = _mm256_setzero_si256();
        for (int i = 0; i < 4; i++) max = max_bits(max, x + 8 * i);
        float id;
        finite &= scale_of(largest(max), &a.d[b], &id);
        const __m256i q = to_bytes(x, id, id == 0);
        _mm256_storeu_si256((__m256i *)(a.q + 32 * b), q);
        // 16-bit lanes alternate between the two kinds of pairs: fold eight of each into one.
        const __m256i pairs = pair_sums(q);
        __m128i sum = _mm_add_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
        sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0x4e));
        sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0xb1));
        const int low = (int16_t)_mm_extract_epi16(sum, 0), high = (int16_t)_mm_extract_epi16(sum, 1);
        a.asum[b] = low + high;
        a.s[b] = a.d[b] * (float)a.asum[b];
        a.start[2 * b] = (int16_t)(-MF_ACT32_OFFSET * low);
        a.start[2 * b + 1] = (int16_t)(-MF_ACT32_OFFSET * high);
    }
    return finite;
}

bool mf_quantize_256_avx2(const float *x, void *row, int64_t n) {
    const mf_act256 a = mf_act256_of(row, n);
    bool finite = true;
    for (int64_t b = 0; b < n / 256; b++, x += 256) {
        __m256i max = _mm256_setzero_si256();
        for (int i = 0; i < 32; i++) max = max_bits(max, x + 8 * i);
        float id;
        finite &= scale_of(largest(max), &a.d[b], &id);
        for (int64_t j = 8 * b; j < 8 * b + 8; j++) { // 32 values, two groups of 16
            const __m256i q = to_bytes(x + 32 * (j - 8 * b), id, id == 0);
            _mm256_storeu_si256((__m256i *)(a.q + 32 * j), q);
            __m256i sum = pair_sums(q);
            sum = _mm256_add_epi16(sum, _mm256_shuffle_epi32(sum, 0x4e));
            sum = _mm256_add_epi16(sum, _mm256_shuffle_epi32(sum, 0xb1));
            const __m256i start = _mm256_mullo_epi16(sum, _mm256_set1_epi16(-MF_ACT256_OFFSET));
            const int32_t start0 = _mm256_extract_epi32(start, 0), start1 = _mm256_extract_epi32(start, 4);
            memcpy(a.start + 4 * j, &start0, 4);
            memcpy(a.start + 4 * j + 2, &start1, 4);
            const __m256i whole = _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
            const int sum0 = _mm256_extract_epi32(whole, 0), sum1 = _mm256_extract_epi32(whole, 4);
            a.asum[2 * j] = (int16_t)sum0;
            a.asum[2 * j + 1] = (int16_t)sum1;
            a.asum32[j] = (int16_t)(sum0 + sum1);
        }
    }
    return finite;
}
