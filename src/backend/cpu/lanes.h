// Sixteen floats side by side: the small interface over which every vector kernel is written once (vector_body.h,
// attention_body.h). A file of an instruction set includes its implementation (x86/lanes_avx2.h, x86/lanes_avx512.h,
// arm/lanes_neon.h) and then the bodies. This page is the interface's definition; each operation is the IEEE operation on each
// lane, rounded to nearest even, and no two are fused unless the name says so.
//
//   lanes                    16 floats; lane j of memory p is p[j]; no alignment is asked of any pointer
//   lanes_mask               16 truth values
//   LANES_BLOCK              how many accumulators of type `lanes` the inner loop of attention keeps in registers
//   LANES_BLOCK_CONVERTED    the same where several sixteens of cells are converted for them in turn
//
//   lanes_set1(x)            x in every lane
//   lanes_load(p)            p[0 … 15]
//   lanes_load_part(p, n)    p[0 … n-1], +0 in the others, whose memory is not read; 0 < n < 16
//   lanes_store(p, v)
//   lanes_store_part(p, v, n)
//   lanes_load_f16(p)        16 IEEE halves
//   lanes_load_i8(p)         16 signed bytes
//   lanes_store_f16(p, v)    rounds to nearest even (what mf_f32_to_f16 does)
//   lanes_load_pairs(p, v)   v[0] = p[0], p[2], … p[30]; v[1] = p[1], p[3], … p[31]
//   lanes_store_pairs(p, v)  the inverse
//
//   lanes_add lanes_sub lanes_mul lanes_div (a, b)
//   lanes_fma(a, b, c)       a * b + c rounded once
//   lanes_nfma(a, b, c)      c - a * b rounded once
//   lanes_neg(a)             the sign flipped
//   lanes_max(a, b)          a > b ? a : b
//   lanes_fold_sum(v)        l[j] + l[j+8], then with 4, 2 and 1 (mf_fold_sum)
//   lanes_fold_max(v)        mf_fold_max
//
//   lanes_raise(a, b)        a with the bits of b, shifted left by 23, added to its bits: a * 2^n when n is in b's low bits
//
//   lanes_less(a, b)         a < b, false for NaN
//   lanes_between(b, e)      lanes b … e-1 (b and e may lie outside 0 … 16)
//   lanes_select(m, a, b)    a where m is true, b elsewhere
#ifndef MF_BACKEND_CPU_LANES_H
#define MF_BACKEND_CPU_LANES_H

#include <stdint.h>

#include "backend/cpu/vector.h"

#define LANES_INLINE static inline __attribute__((always_inline, unused))

// Unrolls the loop that follows whole: its trip count is a constant after inlining, and its accumulators must live in registers.
#ifdef __clang__
#define LANES_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LANES_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
