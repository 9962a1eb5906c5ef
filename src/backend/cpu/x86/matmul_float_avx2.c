// Matmuls with float weights on AVX2: acc = fma(w, x, acc), k ascending, 16 outputs side by side.
#include "backend/cpu/x86/float_avx2.h"
#include "backend/cpu/x86/matmul_job.h"

#define GROUP 6    // rows of activations that share a load of weights
#define AHEAD 2048 // bytes to prefetch ahead while a panel is read once

MF_INLINE size_t value_bytes(mf_type t) { return t == MF_TYPE_F32 ? 4 : 2; }

// A weight of each of 8 rows as floats.
MF_INLINE __m256 load_weights(mf_type t, const uint8_t *p) {
    if (t == MF_TYPE_F32) return _mm256_loadu_ps((const float *)p);
    const __m128i half = _mm_loadu_si128((const __m128i *)p);
    if (t == MF_TYPE_F16) return _mm256_cvtph_ps(half);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

// What is read meanwhile: from where, and how many bytes on with each k.
typedef struct ahead {
    const uint8_t *from;
    size_t step;
} ahead;

// n_panels panels from panel p times n rows of activations from row r; n * n_panels <= GROUP.
MF_INLINE void block(mf_type t, const job *c, int32_t p, int n_panels, int32_t r, int n, ahead next) {
    const size_t size = value_bytes(t);
    const uint8_t *w = (const uint8_t *)c->w->data + (size_t)p * c->w->stride;
    const float *x[GROUP];
    __m256 sum[GROUP][2]; // [panel * n + row][half of the panel]
    for (int i = 0; i < n; i++) x[i] = (const float *)(c->act + (size_t)(r + i) * c->act_stride);
    MF_UNROLL
    for (int i = 0; i < n * n_panels; i++) sum[i][0] = sum[i][1] = _mm256_setzero_ps();
    for (int64_t k = 0; k < c->w->n_in; k++) {
        MF_UNROLL
        for (int j = 0; j < n_panels; j++) {
            const uint8_t *from = w + (size_t)j * c->w->stride + (size_t)k * MF_PANEL * size;
            _mm_prefetch((const char *)next.from + (size_t)j * c->w->stride + (size_t)k * next.step, _MM_HINT_T0);
            const __m256 low = load_weights(t, from), high = load_weights(t, from + 8 * size);
            MF_UNROLL
            for (int i = 0; i < n; i++) {
                const __m256 a = _mm256_set1_ps(x[i][k]);
                sum[j * n + i][0] = _mm256_fmadd_ps(low, a, sum[j * n + i][0]);
                sum[j * n + i][1] = _mm256_fmadd_ps(high, a, sum[j * n + i][1]);
            }
        }
    }
    float acc[GROUP][MF_PANEL];
    MF_UNROLL
    for (int i = 0; i < n * n_panels; i++) {
        _mm256_storeu_ps(acc[i], sum[i][0]);
        _mm256_storeu_ps(acc[i] + 8, sum[i][1]);
    }
    for (int j = 0; j < n_panels; j++) store_rows(c, p + j, r, n, acc + j * n);
}

// Few rows take several panels at once: the sums of one would wait for each other.
MF_INLINE void blocks(mf_type t, const job *c, int32_t p, int n_panels, int32_t r, int n, ahead next) {
    switch (n) {
    case 1:
        if (n_panels == 4) block(t, c, p, 4, r, 1, next);
        if (n_panels == 2) block(t, c, p, 2, r, 1, next);
        if (n_panels == 1) block(t, c, p, 1, r, 1, next);
        break;
    case 2:
        if (n_panels == 2) block(t, c, p, 2, r, 2, next);
        if (n_panels == 1) block(t, c, p, 1, r, 2, next);
        break;
    case 3: block(t, c, p, 1, r, 3, next); break;
    case 4: block(t, c, p, 1, r, 4, next); break;
    case 5: block(t, c, p, 1, r, 5, next); break;
    default: block(t, c, p, 1, r, 6, next); break;
    }
}

// How many of `left` rows to take together: groups of equal size.
static int group_of(int left) {
    const int groups = (left + GROUP - 1) / GROUP;
    return (left + groups - 1) / groups;
}

// Rows that take one group read their panel as they go. Of more, each group reads its share of the next panel.
MF_INLINE ahead ahead_of(mf_type t, const job *c, int32_t p, int32_t done, int32_t n, int32_t n_rows) {
    const size_t step = MF_PANEL * value_bytes(t), stride = c->w->stride;
    const uint8_t *w = (const uint8_t *)c->w->data + (size_t)p * stride;
    if (n_rows <= GROUP) return (ahead){w + AHEAD, step};
    return (ahead){w + stride + stride * (size_t)done / (size_t)n_rows, step * (size_t)n / (size_t)n_rows};
}

MF_INLINE void matmul(mf_type t, const job *c, int32_t n_rows, int32_t panel0, int32_t panel1) {
    const int rows = rows_a_block(c->act_stride, GROUP), most = n_rows == 1 ? 4 : n_rows == 2 ? 2 : 1;
    for (int32_t row = 0; row < n_rows; row += rows) {
        const int32_t end = n_rows - row < rows ? n_rows : row + rows;
        for (int32_t p = panel0, step; p < panel1; p += step) {
            step = panel1 - p >= most ? most : panel1 - p >= 2 && most > 2 ? 2 : 1;
            for (int32_t r = row, n; r < end; r += n) {
                n = group_of(end - r);
                blocks(t, c, p, step, r, n, ahead_of(t, c, p, r - row, n, end - row));
            }
        }
    }
}

MATMUL(extern, mf_matmul_f32_avx2, MF_TYPE_F32)
MATMUL(extern, mf_matmul_f16_avx2, MF_TYPE_F16)
MATMUL(extern, mf_matmul_bf16_avx2, MF_TYPE_BF16)
