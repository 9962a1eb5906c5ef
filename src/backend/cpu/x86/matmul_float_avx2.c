// Matmuls with float weights on AVX2: acc = fma(w, x, acc), k ascending, 16 outputs side by side.
#include <immintrin.h>
#include <string.h>

#include "backend/cpu/x86/float_avx2.h"

#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define GROUP 6    // rows of activations that share a load of weights
#define AHEAD 2048 // bytes prefetched ahead

INLINE size_t value_bytes(mf_type t) { return t == MF_TYPE_F32 ? 4 : 2; }

// 8 weights as floats.
INLINE __m256 load_weights(mf_type t, const uint8_t *p) {
    if (t == MF_TYPE_F32) return _mm256_loadu_ps((const float *)p);
    const __m128i half = _mm_loadu_si128((const __m128i *)p);
    if (t == MF_TYPE_F16) return _mm256_cvtph_ps(half);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

// n_panels panels (stride bytes apart) times n rows of activations over k values; acc[row][panel * 16 + lane] goes on.
INLINE void block(mf_type t, const uint8_t *w, size_t stride, int n_panels, const float *const *x, int n, int64_t k_count,
                  float *acc, size_t acc_stride) {
    __m256 sum[GROUP][4];
    UNROLL
    for (int r = 0; r < n; r++) {
        UNROLL
        for (int v = 0; v < 2 * n_panels; v++) sum[r][v] = _mm256_loadu_ps(acc + (size_t)r * acc_stride + 8 * v);
    }
    const size_t size = value_bytes(t);
    for (int64_t k = 0; k < k_count; k++) {
        __m256 weights[4];
        UNROLL
        for (int v = 0; v < 2 * n_panels; v++) {
            const uint8_t *from = w + (size_t)(v / 2) * stride + ((size_t)k * MF_PANEL + 8 * (size_t)(v % 2)) * size;
            if (n == 1 && v % 2 == 0) _mm_prefetch((const char *)from + AHEAD, _MM_HINT_T0);
            weights[v] = load_weights(t, from);
        }
        UNROLL
        for (int r = 0; r < n; r++) {
            const __m256 a = _mm256_set1_ps(x[r][k]);
            UNROLL
            for (int v = 0; v < 2 * n_panels; v++) sum[r][v] = _mm256_fmadd_ps(weights[v], a, sum[r][v]);
        }
    }
    UNROLL
    for (int r = 0; r < n; r++) {
        UNROLL
        for (int v = 0; v < 2 * n_panels; v++) _mm256_storeu_ps(acc + (size_t)r * acc_stride + 8 * v, sum[r][v]);
    }
}

// Two panels at once for few rows, whose sums would otherwise wait for each other.
INLINE void panels(mf_type t, const uint8_t *w, size_t stride, int n_panels, const float *const *x, int n, int64_t n_in,
                   float *acc) {
    const size_t width = (size_t)n_panels * MF_PANEL;
    if (n_panels == 2) {
        if (n == 1) block(t, w, stride, 2, x, 1, n_in, acc, width);
        if (n == 2) block(t, w, stride, 2, x, 2, n_in, acc, width);
        return;
    }
    switch (n) {
    case 1: block(t, w, stride, 1, x, 1, n_in, acc, width); break;
    case 2: block(t, w, stride, 1, x, 2, n_in, acc, width); break;
    case 3: block(t, w, stride, 1, x, 3, n_in, acc, width); break;
    case 4: block(t, w, stride, 1, x, 4, n_in, acc, width); break;
    case 5: block(t, w, stride, 1, x, 5, n_in, acc, width); break;
    default: block(t, w, stride, 1, x, 6, n_in, acc, width); break;
    }
}

// Rows of activations that stay in the second-level cache.
static int rows_a_block(int64_t n_in) {
    const int64_t rows = (192 << 10) / (4 * n_in + 1) / GROUP * GROUP;
    return rows < GROUP ? GROUP : rows > 96 ? 96 : (int)rows;
}

// How many of `left` rows to take together: groups of equal size.
static int group_of(int left) {
    const int groups = (left + GROUP - 1) / GROUP;
    return (left + groups - 1) / groups;
}

INLINE void matmul(mf_type t, const mf_matrix *w, const void *act, size_t act_stride, int32_t n_rows, int32_t panel0,
                   int32_t panel1, float *dst, size_t dst_stride) {
    const int rows = rows_a_block(w->n_in);
    for (int32_t row0 = 0; row0 < n_rows; row0 += rows) {
        const int32_t end = n_rows - row0 < rows ? n_rows : row0 + rows;
        for (int32_t p = panel0, step; p < panel1; p += step) {
            const uint8_t *panel = (const uint8_t *)w->data + (size_t)p * w->stride;
            const int64_t first = (int64_t)p * MF_PANEL, left = w->n_out - first;
            step = n_rows <= 2 && p + 1 < panel1 ? 2 : 1;
            const size_t width = (size_t)step * MF_PANEL, n_store = (size_t)left < width ? (size_t)left : width;
            for (int32_t r = row0, n; r < end; r += n) {
                float acc[GROUP * 2 * MF_PANEL] = {0};
                const float *x[GROUP];
                n = group_of(end - r);
                for (int i = 0; i < n; i++) x[i] = (const float *)((const char *)act + (size_t)(r + i) * act_stride);
                panels(t, panel, w->stride, step, x, n, w->n_in, acc);
                for (int i = 0; i < n; i++) {
                    memcpy(dst + (size_t)(r + i) * dst_stride + first, acc + (size_t)i * width, n_store * sizeof(float));
                }
            }
        }
    }
}

#define MATMUL(name, type)                                                                                               \
    void mf_matmul_##name##_avx2(const mf_matrix *w, const void *act, size_t act_stride, int32_t n_rows, int32_t panel0, \
                                 int32_t panel1, float *dst, size_t dst_stride) {                                        \
        matmul(type, w, act, act_stride, n_rows, panel0, panel1, dst, dst_stride);                                       \
    }

MATMUL(f32, MF_TYPE_F32)
MATMUL(f16, MF_TYPE_F16)
MATMUL(bf16, MF_TYPE_BF16)
