// One counter-based random generator: a draw is a function of (seed, token index, draw number) and of nothing else.
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11), key = seed, counter = (index, draw).
#ifndef MF_BASE_RANDOM_H
#define MF_BASE_RANDOM_H

#include <stdint.h>

// The block function: 128 bits from a 128-bit counter and a 64-bit key.
void mf_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

// Uniform in [0, 1), a multiple of 2^-53.
double mf_random_uniform(uint64_t seed, uint64_t index, uint64_t draw);

// A seed from the operating system.
uint64_t mf_random_seed(void);

#endif
