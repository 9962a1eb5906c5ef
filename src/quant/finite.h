// Numbers of the file's layout that are infinite or NaN.
#ifndef MF_QUANT_FINITE_H
#define MF_QUANT_FINITE_H

#include "quant/types.h"

// The offsets of the half-precision scales in a block of the type, in bytes; -1: it has no second one. False: no scales are known.
bool mf_scales_of(mf_type type, int out[2]);

// Whether n values (a multiple of the block) have no float and no block's scale that is infinite or NaN. Types without a decoder pass.
bool mf_all_finite(mf_type type, const void *data, size_t n);

// The first value whose number, or whose block's scale, is infinite or NaN; n: none.
size_t mf_first_not_finite(mf_type type, const void *data, size_t n);

#endif
