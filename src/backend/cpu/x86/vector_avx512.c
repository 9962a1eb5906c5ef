// The row kernels and attention on AVX-512.
#include "backend/cpu/x86/lanes_avx512.h"

#include "backend/cpu/vector_body.h"

void mf_vector_avx512(mf_kernels *k) { vector_fill(k); }
