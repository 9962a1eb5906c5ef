// Quantized matmuls on AVX-VNNI: VNNI's dot products on the 256-bit vectors of processors without AVX-512. Everything else is AVX2's.
#include <string.h>

#include "backend/cpu/rows.h"
#include "backend/cpu/x86/vec256.h"

#define GROUP  4
#define CHAINS 12

#define DOT_BYTES(s, w, x) _mm256_dpbusd_avx_epi32(s, w, x)
#define DOT_PAIRS(s, w, x) _mm256_dpwssd_avx_epi32(s, w, x)

#include "backend/cpu/x86/matmul_vnni.h"

void mf_matmul_avxvnni(mf_kernels *k) {
    fill_quantized(k);
    k->int8_peak = int8_peak;
}
