// The row kernels and attention on AVX2.
#include "backend/cpu/x86/lanes_avx2.h"

#include "backend/cpu/vector_body.h"

void mf_vector_avx2(mf_kernels *k) { vector_fill(k); }
