// The AVX-512 row's matmuls, for files of its own and for the row above it.
#ifndef MF_BACKEND_CPU_X86_MATMUL_AVX512_H
#define MF_BACKEND_CPU_X86_MATMUL_AVX512_H

#include "backend/cpu/kernels.h"

mf_matmul_fn mf_matmul_f32_avx512, mf_matmul_f16_avx512, mf_matmul_bf16_avx512;

// Of a quantized type.
mf_matmul_fn *mf_matmul_of_avx512(mf_type type);

#endif
