// What matmul_body.h asks for, over one operation that the including file defines:
//
//   DOT4(sum, w, a, lane)   sum[i] += the four products of bytes 4i … 4i+3 of w with bytes 4*lane … 4*lane+3 of a, i = 0 … 3;
//                           signed bytes, a within ±127, lane a literal
#ifndef MF_BACKEND_CPU_ARM_MATMUL_DOT4_H
#define MF_BACKEND_CPU_ARM_MATMUL_DOT4_H

#include <arm_neon.h>

#include "backend/cpu/arm/matmul_neon.h"
#include "backend/cpu/lanes.h"

#define GROUP 4

#define MULTIPLY(sum, w, a) DOT4(sum, w, a, 0)
#define MULTIPLY_MACS       16

static inline void arrange_words(int8_t *words, int n_words) { (void)words, (void)n_words; }

LANES_INLINE void add_words(const int8_t *words, int n_words, const int8_t *const *q, int n, int32x4_t (*sum)[4]) {
    LANES_UNROLL
    for (int i = 0; i < n_words; i += 4, words += 4 * MF_WORD_BYTES) {
        int8x16_t a[GROUP], w[4];
        LANES_UNROLL
        for (int r = 0; r < n; r++) a[r] = vld1q_s8(q[r] + 4 * i);
#define ADD_WORD(lane)                                                                  \
    LANES_UNROLL                                                                        \
    for (int v = 0; v < 4; v++) w[v] = vld1q_s8(words + lane * MF_WORD_BYTES + 16 * v); \
    LANES_UNROLL                                                                        \
    for (int r = 0; r < n; r++) {                                                       \
        LANES_UNROLL                                                                    \
        for (int v = 0; v < 4; v++) sum[r][v] = DOT4(sum[r][v], w[v], a[r], lane);      \
    }
        ADD_WORD(0)
        ADD_WORD(1)
        ADD_WORD(2)
        ADD_WORD(3)
#undef ADD_WORD
    }
}

#endif
