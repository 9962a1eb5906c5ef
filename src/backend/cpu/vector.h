// What the reference and the vector kernels share: the sixteen lanes of docs/arithmetic.md and the constants of its formulas.
#ifndef MF_BACKEND_CPU_VECTOR_H
#define MF_BACKEND_CPU_VECTOR_H

#include <stdint.h>

#define MF_LANES 16

#define MF_GELU_OUTER (-1.5957691216f) // -2 * sqrt(2 / pi)
#define MF_GELU_CUBE  0.044715f

// The larger of two; b when they compare equal or one is NaN, so that a maximum that starts at -infinity passes over NaN.
static inline float mf_larger(float a, float b) { return a > b ? a : b; }

// The sum of sixteen lanes: l[j] + l[j+8], then with 4, 2 and 1. Overwrites l.
static inline float mf_fold_sum(float *l) {
    for (int half = MF_LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) l[j] = l[j] + l[j + half];
    return l[0];
}

// The largest of sixteen lanes by the same tree (the order decides only the sign of a zero). Overwrites l.
static inline float mf_fold_max(float *l) {
    for (int half = MF_LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) l[j] = mf_larger(l[j + half], l[j]);
    return l[0];
}

#endif
