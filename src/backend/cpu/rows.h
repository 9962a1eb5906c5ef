// The fillers of the kernel table: each puts the functions of one instruction set into a row, leaving the others as they are.
#ifndef MF_BACKEND_CPU_ROWS_H
#define MF_BACKEND_CPU_ROWS_H

#include "backend/cpu/kernels.h"

void mf_matmul_scalar(mf_kernels *k);
void mf_matmul_avx2(mf_kernels *k);
void mf_matmul_avx512(mf_kernels *k);

void mf_vector_scalar(mf_kernels *k);
void mf_vector_avx2(mf_kernels *k);
void mf_vector_avx512(mf_kernels *k);
void mf_vector_neon(mf_kernels *k);

#endif
