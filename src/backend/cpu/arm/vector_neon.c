// The row kernels and attention on AArch64's NEON.
#include "backend/cpu/arm/lanes_neon.h"

#include "backend/cpu/vector_body.h"

void mf_vector_neon(mf_kernels *k) { vector_fill(k); }
