// The parts of the kernel table's rows. Each function overwrites the members that its file implements; kernels.c fills a row
// from the row below it, then from these.
#ifndef MF_BACKEND_CPU_ROWS_H
#define MF_BACKEND_CPU_ROWS_H

#include "backend/cpu/kernels.h"

// quantize_32, quantize_256, matmul[], panels, int8_peak.
void mf_matmul_scalar(mf_kernels *k);
void mf_matmul_avx2(mf_kernels *k);
void mf_matmul_avxvnni(mf_kernels *k);
void mf_matmul_avx512(mf_kernels *k);
void mf_matmul_amx(mf_kernels *k);
void mf_matmul_neon(mf_kernels *k);
void mf_matmul_dotprod(mf_kernels *k);
void mf_matmul_i8mm(mf_kernels *k);

// Everything else but name and usable.
void mf_vector_scalar(mf_kernels *k);
void mf_vector_avx2(mf_kernels *k);
void mf_vector_avx512(mf_kernels *k);
void mf_vector_neon(mf_kernels *k);

#endif
