// Matmuls with float weights on AVX-512: acc = fma(w, x, acc), k ascending, 16 outputs side by side.
#include "backend/cpu/x86/matmul_avx512.h"
#include "backend/cpu/x86/matmul_job.h"

#define GROUP  8    // rows of activations that share a load of weights
#define PANELS 4    // panels at once for few rows, whose sums would otherwise wait for each other
#define AHEAD  2048 // bytes that the one-row kernel prefetches ahead

MF_INLINE size_t value_bytes(mf_type t) { return t == MF_TYPE_F32 ? 4 : 2; }

// A weight of each of 16 rows as floats.
MF_INLINE __m512 load_weights(mf_type t, const uint8_t *p) {
    if (t == MF_TYPE_F32) return _mm512_loadu_ps(p);
    const __m256i half = _mm256_loadu_si256((const __m256i *)p);
    if (t == MF_TYPE_F16) return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

// n_panels panels from panel p times n rows of activations from row r.
MF_INLINE void block(mf_type t, const job *c, int32_t p, int n_panels, int32_t r, int n) {
    const size_t size = value_bytes(t);
    const uint8_t *w = (const uint8_t *)c->w->data + (size_t)p * c->w->stride;
    const float *x[GROUP];
    __m512 sum[GROUP * PANELS]; // [row][panel]
    for (int i = 0; i < n; i++) x[i] = (const float *)(c->act + (size_t)(r + i) * c->act_stride);
    MF_UNROLL
    for (int i = 0; i < n * n_panels; i++) sum[i] = _mm512_setzero_ps();
    for (int64_t k = 0; k < c->w->n_in; k++) {
        MF_UNROLL
        for (int j = 0; j < n_panels; j++) {
            const uint8_t *from = w + (size_t)j * c->w->stride + (size_t)k * MF_PANEL * size;
            if (n == 1) _mm_prefetch((const char *)from + AHEAD, _MM_HINT_T0);
            const __m512 weights = load_weights(t, from);
            MF_UNROLL
            for (int i = 0; i < n; i++) {
                sum[i * n_panels + j] = _mm512_fmadd_ps(weights, _mm512_set1_ps(x[i][k]), sum[i * n_panels + j]);
            }
        }
    }
    MF_UNROLL
    for (int j = 0; j < n_panels; j++) {
        _Alignas(64) float acc[GROUP][MF_PANEL];
        MF_UNROLL
        for (int i = 0; i < n; i++) _mm512_store_ps(acc[i], sum[i * n_panels + j]);
        store_rows(c, p + j, r, n, acc);
    }
}

MF_INLINE void matmul(mf_type t, const job *c, int32_t n_rows, int32_t panel0, int32_t panel1) {
    const int rows = rows_a_block(c->act_stride, GROUP);
    for (int32_t row = 0; row < n_rows; row += rows) {
        const int32_t end = n_rows - row < rows ? n_rows : row + rows;
        for (int32_t p = panel0, step; p < panel1; p += step) {
            step = n_rows < 4 && panel1 - p >= PANELS ? PANELS : 1;
            for (int32_t r = row, n; r < end; r += n) {
                n = end - r >= 8 ? 8 : end - r >= 4 ? 4 : 1;
                if (n == 8) block(t, c, p, 1, r, 8);
                if (n == 4) block(t, c, p, 1, r, 4);
                if (n == 1 && step == 1) block(t, c, p, 1, r, 1);
                if (n == 1 && step == PANELS) block(t, c, p, PANELS, r, 1);
            }
        }
    }
}

MATMUL(extern, mf_matmul_f32_avx512, MF_TYPE_F32)
MATMUL(extern, mf_matmul_f16_avx512, MF_TYPE_F16)
MATMUL(extern, mf_matmul_bf16_avx512, MF_TYPE_BF16)
