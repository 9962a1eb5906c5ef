// Quantized matmuls with Armv8.2's dot product of bytes.
#include <arm_neon.h>

#include "backend/cpu/rows.h"

#define DOT4(sum, w, a, lane) vdotq_laneq_s32(sum, w, a, lane)

#include "backend/cpu/arm/matmul_body.h"

void mf_matmul_dotprod(mf_kernels *k) { matmul_fill(k); }
