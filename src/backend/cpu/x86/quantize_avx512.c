// Activations to int8 on AVX-512.
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/act.h"
#include "backend/cpu/quantize.h"
#include "base/half.h"

// The largest pattern of |x| as an integer.
static inline __m512i max_bits(__m512i max, const float *x) {
    return _mm512_max_epu32(max, _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(0x7fffffff)));
}

// The scale of a group from its largest pattern, and what to multiply by; false when it is not finite.
static inline bool scale_of(uint32_t bits, float *d, float *id) {
    const float amax = mf_bits_f32(bits);
    const bool finite = bits < 0x7f800000, zero = !finite || amax < MF_ACT_TINY;
    *d = zero ? 0 : amax / 127;
    *id = zero ? 0 : 127 / amax;
    return finite;
}

// 16 values to bytes.
static inline __m128i to_bytes(const float *x, float id) {
    if (id == 0) return _mm_setzero_si128();
    return _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), _mm512_set1_ps(id))));
}

// Of 16 bytes: the sum of those with index mod 4 = 0, 1 in the low half of each 32-bit lane, of the others in its high half.
static inline __m128i kind_sums(__m128i q) {
    __m128i sum = _mm_maddubs_epi16(_mm_set1_epi8(1), q);
    sum = _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0x4e));
    return _mm_add_epi16(sum, _mm_shuffle_epi32(sum, 0xb1));
}

// The two kinds' sums together, and -offset times each.
static inline int32_t whole_sum(__m128i sums) { return _mm_cvtsi128_si32(_mm_madd_epi16(sums, _mm_set1_epi16(1))); }

static inline void put_start(int16_t *start, __m128i sums, int offset) {
    const int32_t pair = _mm_cvtsi128_si32(_mm_mullo_epi16(sums, _mm_set1_epi16((short)-offset)));
    memcpy(start, &pair, 4);
}

bool mf_quantize_32_avx512(const float *x, void *row, int64_t n) {
    const mf_act32 a = mf_act32_of(row, n);
    bool finite = true;
    for (int64_t b = 0; b < n / 32; b++, x += 32) {
        float id;
        const __m512i max = max_bits(max_bits(_mm512_setzero_si512(), x), x + 16);
        finite &= scale_of(_mm512_reduce_max_epu32(max), &a.d[b], &id);
        const __m128i low = to_bytes(x, id), high = to_bytes(x + 16, id);
        _mm_storeu_si128((__m128i *)(a.q + 32 * b), low);
        _mm_storeu_si128((__m128i *)(a.q + 32 * b + 16), high);
        const __m128i sums = _mm_add_epi16(kind_sums(low), kind_sums(high));
        a.asum[b] = whole_sum(sums);
        a.s[b] = a.d[b] * (float)a.asum[b];
        put_start(a.start + 2 * b, sums, MF_ACT32_OFFSET);
    }
    return finite;
}

bool mf_quantize_256_avx512(const float *x, void *row, int64_t n) {
    const mf_act256 a = mf_act256_of(row, n);
    bool finite = true;
    for (int64_t b = 0; b < n / 256; b++, x += 256) {
        __m512i max = _mm512_setzero_si512();
        for (int i = 0; i < 16; i++) max = max_bits(max, x + 16 * i);
        float id;
        finite &= scale_of(_mm512_reduce_max_epu32(max), &a.d[b], &id);
        for (int64_t j = 0; j < 16; j++) {
            const __m128i q = to_bytes(x + 16 * j, id), sums = kind_sums(q);
            _mm_storeu_si128((__m128i *)(a.q + 256 * b + 16 * j), q);
            a.asum[16 * b + j] = (int16_t)whole_sum(sums);
            put_start(a.start + 32 * b + 2 * j, sums, MF_ACT256_OFFSET);
        }
        for (int64_t j = 8 * b; j < 8 * b + 8; j++) a.asum32[j] = (int16_t)(a.asum[2 * j] + a.asum[2 * j + 1]);
    }
    return finite;
}
