// Matmuls with float weights on AVX2.
#ifndef MF_BACKEND_CPU_X86_FLOAT_AVX2_H
#define MF_BACKEND_CPU_X86_FLOAT_AVX2_H

#include "backend/cpu/kernels.h"

mf_matmul_fn mf_matmul_f32_avx2, mf_matmul_f16_avx2, mf_matmul_bf16_avx2;

#endif
