// Quantized matmuls on AVX-512 VNNI.
#include "backend/cpu/x86/matmul_avx512.h"

#include <string.h>

#include "backend/cpu/quantize.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/x86/vec512.h"

#define GROUP  8
#define CHAINS 16

#define DOT_BYTES(s, w, x) _mm512_dpbusd_epi32(s, w, x)
#define DOT_PAIRS(s, w, x) _mm512_dpwssd_epi32(s, w, x)

#include "backend/cpu/x86/matmul_vnni.h"

mf_matmul_fn *mf_matmul_of_avx512(mf_type type) { return matmuls[type]; }

void mf_matmul_avx512(mf_kernels *k) {
    fill_quantized(k);
    k->panels = true;
    k->quantize_32 = mf_quantize_32_avx512;
    k->quantize_256 = mf_quantize_256_avx512;
    k->int8_peak = int8_peak;
    k->matmul[MF_TYPE_F32] = mf_matmul_f32_avx512;
    k->matmul[MF_TYPE_F16] = mf_matmul_f16_avx512;
    k->matmul[MF_TYPE_BF16] = mf_matmul_bf16_avx512;
}
