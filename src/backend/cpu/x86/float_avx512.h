// Matmuls with float weights on AVX-512.
#ifndef MF_BACKEND_CPU_X86_FLOAT_AVX512_H
#define MF_BACKEND_CPU_X86_FLOAT_AVX512_H

#include "backend/cpu/kernels.h"

mf_matmul_fn mf_matmul_f32_avx512, mf_matmul_f16_avx512, mf_matmul_bf16_avx512;

#endif
