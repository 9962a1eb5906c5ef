// Quantized matmuls on AVX-512 VNNI.
#include "backend/cpu/rows.h"

void mf_matmul_avx512(mf_kernels *k) { (void)k; }
