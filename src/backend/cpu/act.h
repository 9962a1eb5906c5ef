// A row of int8 activations (docs/arithmetic.md, "Activations of quantized matmuls"): its parts, one after the other.
#ifndef MF_BACKEND_CPU_ACT_H
#define MF_BACKEND_CPU_ACT_H

#include <stddef.h>
#include <stdint.h>

// Activations below this magnitude are all zero: 127 / amax must not overflow.
#define MF_ACT_TINY 0x1p-120f

// `start` serves kernels that sum products of unsigned weights in 16-bit lanes, where a lane takes two of every four values:
// it is the weight's offset times the activations of that lane, negated, so that a sum that begins with it cannot leave 16
// bits at its end.
#define MF_ACT32_OFFSET  16
#define MF_ACT256_OFFSET 32

typedef struct mf_act32 {
    int8_t *q;      // [n]
    float *d, *s;   // [n/32] scale; d * asum
    int32_t *asum;  // [n/32] sum of q
    int16_t *start; // [n/32][2] -16 * the sum of the q with k mod 4 = 0, 1; and = 2, 3
} mf_act32;

typedef struct mf_act256 {
    int8_t *q;       // [n]
    float *d;        // [n/256] scale
    int16_t *asum;   // [n/16] sums of 16
    int16_t *asum32; // [n/32] sums of 32
    int16_t *start;  // [n/16][2] -32 * the sum of the q with k mod 4 = 0, 1; and = 2, 3
} mf_act256;

static inline mf_act32 mf_act32_of(const void *row, int64_t n) {
    char *p = (char *)row;
    const size_t values = (size_t)n, blocks = (size_t)n / 32;
    return (mf_act32){.q = (int8_t *)p,
                      .d = (float *)(p + values),
                      .s = (float *)(p + values + 4 * blocks),
                      .asum = (int32_t *)(p + values + 8 * blocks),
                      .start = (int16_t *)(p + values + 12 * blocks)};
}

static inline mf_act256 mf_act256_of(const void *row, int64_t n) {
    char *p = (char *)row;
    const size_t values = (size_t)n, blocks = (size_t)n / 256;
    return (mf_act256){.q = (int8_t *)p,
                       .d = (float *)(p + values),
                       .asum = (int16_t *)(p + values + 4 * blocks),
                       .asum32 = (int16_t *)(p + values + 36 * blocks),
                       .start = (int16_t *)(p + values + 52 * blocks)};
}

#endif
