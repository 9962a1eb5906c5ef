// The elementary functions of docs/arithmetic.md: the same bits on every machine. No libm.
#ifndef MF_BASE_REAL_H
#define MF_BASE_REAL_H

#include <stdint.h>

// exp(x) in float: exactly 1 at 0 (either sign), exactly 0 below -87, +infinity above 88.72; NaN stays NaN. Error under 1 ulp
// elsewhere. The steps are in docs/arithmetic.md ("exp"); vector code repeats them lane by lane.
float mf_exp(float x);

// log(x) in float for x > 0; -infinity at 0, NaN below.
float mf_log32(float x);

// Double versions for tables that are made once per step or load (rope frequencies and angles, sampler thresholds): error under
// 2 ulp; |x| <= 2^30 for sin and cos.
double mf_exp64(double x);
double mf_log64(double x);

// exp64 of MF_EXP64_BLOCK values of at most 700, with 0 for those below -700: a loop of constant length, which compilers vectorize.
#define MF_EXP64_BLOCK 64
void mf_exp64_block(const double *x, double *y);

void mf_sincos64(double x, double *sin_out, double *cos_out);

// base^exponent for base > 0: exp64(exponent * log64(base)).
double mf_pow64(double base, double exponent);

#endif
