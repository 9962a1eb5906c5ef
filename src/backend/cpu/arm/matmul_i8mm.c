// Quantized matmuls with Armv8.6's int8 matrix instructions: an instruction multiplies two rows of weights with two of activations, 8 values
// each, twice the work of a dot product. One row of activations, which waits for memory, stays with dot products.
#include <arm_neon.h>

#include "backend/cpu/arm/matmul_neon.h"
#include "backend/cpu/lanes.h"
#include "backend/cpu/rows.h"

#define GROUP 4

#define MULTIPLY(sum, w, a) vmmlaq_s32(sum, w, a)
#define MULTIPLY_MACS       32

static inline int32x4_t as_ints(int8x16_t v) { return vreinterpretq_s32_s8(v); }

// Two words become [16 rows][8 bytes].
static inline void arrange_words(int8_t *words, int n_words) {
    for (int i = 0; i < n_words; i += 2, words += 2 * MF_WORD_BYTES) {
        int32x4_t w[2][4];
        for (int v = 0; v < 8; v++) w[v / 4][v % 4] = as_ints(vld1q_s8(words + 16 * v));
        for (int v = 0; v < 4; v++) {
            vst1q_s8(words + 32 * v, vreinterpretq_s8_s32(vzip1q_s32(w[0][v], w[1][v])));
            vst1q_s8(words + 32 * v + 16, vreinterpretq_s8_s32(vzip2q_s32(w[0][v], w[1][v])));
        }
    }
}

// The first or the second 64 bits of each of two vectors.
static inline int8x16_t low_halves(int8x16_t a, int8x16_t b) { return vcombine_s8(vget_low_s8(a), vget_low_s8(b)); }
static inline int8x16_t high_halves(int8x16_t a, int8x16_t b) { return vcombine_s8(vget_high_s8(a), vget_high_s8(b)); }

// Rows of activations go in pairs; a lone one is paired with itself.
LANES_INLINE void add_words(const int8_t *words, int n_words, const int8_t *const *q, int n, int32x4_t (*sum)[4]) {
    const int pairs = (n + 1) / 2;
    int32x4_t square[GROUP / 2][8]; // of a pair with each two rows of weights: [a0 w0, a0 w1, a1 w0, a1 w1]
    LANES_UNROLL
    for (int i = 0; i < 8 * pairs; i++) square[i / 8][i % 8] = vdupq_n_s32(0);
    for (int i = 0; i < n_words; i += 4, words += 4 * MF_WORD_BYTES) {
        int8x16_t a[GROUP / 2][2];
        LANES_UNROLL
        for (int p = 0; p < pairs; p++) {
            const int8x16_t first = vld1q_s8(q[2 * p] + 4 * i);
            const int8x16_t second = 2 * p + 1 < n ? vld1q_s8(q[2 * p + 1] + 4 * i) : first;
            a[p][0] = low_halves(first, second);
            a[p][1] = high_halves(first, second);
        }
        LANES_UNROLL
        for (int v = 0; v < 16; v++) {
            const int8x16_t w = vld1q_s8(words + 16 * v);
            LANES_UNROLL
            for (int p = 0; p < pairs; p++) square[p][v % 8] = vmmlaq_s32(square[p][v % 8], a[p][v / 8], w);
        }
    }
    LANES_UNROLL
    for (int r = 0; r < n; r++) {
        LANES_UNROLL
        for (int v = 0; v < 4; v++) {
            const int8x16_t s = vreinterpretq_s8_s32(square[r / 2][2 * v]),
                            t = vreinterpretq_s8_s32(square[r / 2][2 * v + 1]);
            sum[r][v] = vaddq_s32(sum[r][v], as_ints(r % 2 ? high_halves(s, t) : low_halves(s, t)));
        }
    }
}

#include "backend/cpu/arm/matmul_body.h"

static void matmul_i8mm(const mf_matrix *w, const void *act, size_t act_stride, int32_t n_rows, int32_t panel0,
                        int32_t panel1, float *dst, size_t dst_stride) {
    mf_matmul_fn *fn = n_rows == 1 ? mf_matmul_quantized_dotprod : matmul;
    fn(w, act, act_stride, n_rows, panel0, panel1, dst, dst_stride);
}

void mf_matmul_i8mm(mf_kernels *k) { fill_quantized(k, matmul_i8mm); }
