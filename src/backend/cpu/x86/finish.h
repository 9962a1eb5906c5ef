// The end of a super-block: from exact sums to floats, as docs/arithmetic.md has it. Beside what unpack.h asks for, the including file
// says
//
//   vec add_pairs(vec sum, vec w, vec x)   adds products of 16-bit pairs
#ifndef MF_BACKEND_CPU_X86_FINISH_H
#define MF_BACKEND_CPU_X86_FINISH_H

#include "backend/cpu/x86/unpack.h"

// The super-block's minimums, or scales, times the sums of its activations.
MF_INLINE vec pair_sum(mf_type t, const mf_act256 *a, int64_t b, const scales256 *s, int part) {
    const int16_t *asum = pair_asums(t, a, b);
    vec sum = vec_zero();
    MF_UNROLL
    for (int i = 0; i < pair_count(t); i++) sum = add_pairs(sum, s->pairs[i][part], broadcast_32(asum + 2 * i));
    return sum;
}

// Ends a super-block.
MF_INLINE fvec finish_256(mf_type t, const mf_act256 *a, int64_t b, vec sum, const scales256 *s, int part, fvec acc) {
    const fvec d_a = floats_of(a->d[b]);
    if (offset_of(t)) sum = sub_ints(sum, mul_ints(pair_sum(t, a, b, s, part), ints_of(offset_of(t))));
    acc = fma_floats(mul_floats(s->d[part], d_a), to_floats(sum), acc);
    if (!has_min(t)) return acc;
    return nfma_floats(mul_floats(s->dmin[part], d_a), to_floats(pair_sum(t, a, b, s, part)), acc);
}

#endif
