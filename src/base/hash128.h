// MurmurHash3_x64_128 (Austin Appleby, 2011): 128 bits of bytes of any number. The same everywhere; finds differences, not forgery.
#ifndef MF_BASE_HASH128_H
#define MF_BASE_HASH128_H

#include <stddef.h>
#include <stdint.h>

typedef struct mf_hash128 {
    uint64_t word[2];
} mf_hash128;

mf_hash128 mf_hash128_of(const void *bytes, size_t len, uint32_t seed);

#endif
