// The quantizers of activations, one a row of the table: docs/arithmetic.md, "Activations of quantized matmuls". x: n
// floats, a multiple of 32 (256); row: mf_act_row_bytes(). False when a value is not finite; its group is written as zeros
// then.
#ifndef MF_BACKEND_CPU_QUANTIZE_H
#define MF_BACKEND_CPU_QUANTIZE_H

#include "backend/cpu/kernels.h"

bool mf_quantize_32_scalar(const float *x, void *row, int64_t n);
bool mf_quantize_256_scalar(const float *x, void *row, int64_t n);
bool mf_quantize_32_avx2(const float *x, void *row, int64_t n);
bool mf_quantize_256_avx2(const float *x, void *row, int64_t n);
bool mf_quantize_32_avx512(const float *x, void *row, int64_t n);
bool mf_quantize_256_avx512(const float *x, void *row, int64_t n);
bool mf_quantize_32_neon(const float *x, void *row, int64_t n);
bool mf_quantize_256_neon(const float *x, void *row, int64_t n);

#endif
