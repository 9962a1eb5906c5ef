// Formulas over lanes that several kernels use; included after an implementation of lanes.h.
#ifndef MF_BACKEND_CPU_LANES_MATH_H
#define MF_BACKEND_CPU_LANES_MATH_H

#include <math.h>

#include "base/exp_constants.h"

// The steps of mf_exp (base/real.c) up to its special cases: right from MF_EXP_SMALLEST to MF_EXP_LARGEST.
LANES_INLINE lanes lanes_exp_inner(lanes x) {
    lanes round = lanes_set1(MF_EXP_ROUND), one = lanes_set1(1.0f);
    lanes shifted = lanes_fma(x, lanes_set1(MF_EXP_LOG2_E), round);
    lanes n = lanes_sub(shifted, round);
    lanes r = lanes_nfma(n, lanes_set1(MF_EXP_LN2_HIGH), x);
    r = lanes_nfma(n, lanes_set1(MF_EXP_LN2_LOW), r);
    lanes p = lanes_fma(lanes_set1(MF_EXP_C6), r, lanes_set1(MF_EXP_C5));
    p = lanes_fma(p, r, lanes_set1(MF_EXP_C4));
    p = lanes_fma(p, r, lanes_set1(MF_EXP_C3));
    p = lanes_fma(p, r, lanes_set1(MF_EXP_C2));
    p = lanes_fma(p, r, one);
    p = lanes_fma(p, r, one);
    return lanes_raise(p, shifted);
}

// mf_exp of x <= 0 or NaN, which is what exp(x - max x) needs. A NaN's payload would go into the exponent.
LANES_INLINE lanes lanes_exp_of_negative(lanes x) {
    lanes otherwise = lanes_max(lanes_set1(0.0f), x); // +0 or NaN
    return lanes_select(lanes_less(lanes_set1(MF_EXP_ZERO), x), lanes_exp_inner(x), otherwise);
}

LANES_INLINE lanes lanes_exp(lanes x) {
    lanes y = lanes_exp_of_negative(x);
    return lanes_select(lanes_less(lanes_set1(MF_EXP_LARGEST), x), lanes_set1(INFINITY), y);
}

LANES_INLINE lanes lanes_silu(lanes x) { return lanes_div(x, lanes_add(lanes_set1(1.0f), lanes_exp(lanes_neg(x)))); }

LANES_INLINE lanes lanes_gelu(lanes x) {
    lanes inner = lanes_fma(lanes_mul(lanes_set1(MF_GELU_CUBE), lanes_mul(x, x)), x, x);
    return lanes_div(x, lanes_add(lanes_set1(1.0f), lanes_exp(lanes_mul(lanes_set1(MF_GELU_OUTER), inner))));
}

#endif
