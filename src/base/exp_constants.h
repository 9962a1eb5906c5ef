// The constants of mf_exp, for the vector kernels that repeat its steps (base/real.c) lane by lane.
#ifndef MF_BASE_EXP_CONSTANTS_H
#define MF_BASE_EXP_CONSTANTS_H

#define MF_EXP_LOG2_E   0x1.715476p+0f
#define MF_EXP_LN2_HIGH 0x1.62e43p-1f // ln 2 in two parts; the products of the first with every n are exact
#define MF_EXP_LN2_LOW  (-0x1.05c61p-29f)
#define MF_EXP_ROUND    0x1.8p23f // added to a float it leaves the nearest integer in the low bits of the fraction

#define MF_EXP_SMALLEST (-87.0f)          // below it exp is 0
#define MF_EXP_ZERO     (-0x1.5c0002p+6f) // the float next below it, the largest whose exp is 0
#define MF_EXP_LARGEST  0x1.62e42ep+6f    // the last x whose exp is finite

// exp(r) = 1 + r + C2 r^2 + … + C6 r^6. A minimax fit (iterated weighted least squares) of (exp(r) - 1 - r) / r^2 over
// |r| <= ln 2 / 2 with the relative error of exp as its weight: 2^-28.3 before the coefficients are rounded to float.
#define MF_EXP_C2 0x1.fffffcp-2f
#define MF_EXP_C3 0x1.555492p-3f
#define MF_EXP_C4 0x1.5558f2p-5f
#define MF_EXP_C5 0x1.123a00p-7f
#define MF_EXP_C6 0x1.6a23f4p-10f

#endif
