// The decoders of the type table. Each turns n values (a multiple of the block) into f32 in ggml's order of f32 operations.
#ifndef MF_QUANT_DECODE_H
#define MF_QUANT_DECODE_H

#include <stddef.h>

void mf_decode_f32(const void *blocks, float *out, size_t n);
void mf_decode_f16(const void *blocks, float *out, size_t n);
void mf_decode_bf16(const void *blocks, float *out, size_t n);
void mf_decode_q4_0(const void *blocks, float *out, size_t n);
void mf_decode_q4_1(const void *blocks, float *out, size_t n);
void mf_decode_q5_0(const void *blocks, float *out, size_t n);
void mf_decode_q5_1(const void *blocks, float *out, size_t n);
void mf_decode_q8_0(const void *blocks, float *out, size_t n);
void mf_decode_iq4_nl(const void *blocks, float *out, size_t n);
void mf_decode_q2_k(const void *blocks, float *out, size_t n);
void mf_decode_q3_k(const void *blocks, float *out, size_t n);
void mf_decode_q4_k(const void *blocks, float *out, size_t n);
void mf_decode_q5_k(const void *blocks, float *out, size_t n);
void mf_decode_q6_k(const void *blocks, float *out, size_t n);
void mf_decode_iq4_xs(const void *blocks, float *out, size_t n);

#endif
