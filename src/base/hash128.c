#include "base/hash128.h"

#include <string.h>

#define C1 0x87c37b91114253d5U
#define C2 0x4cf5ad432745937fU

static uint64_t turn(uint64_t x, int n) { return x << n | x >> (64 - n); }

static uint64_t mix1(uint64_t k) { return turn(k * C1, 31) * C2; }
static uint64_t mix2(uint64_t k) { return turn(k * C2, 33) * C1; }

static uint64_t finish(uint64_t h) {
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdU;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53U;
    return h ^ h >> 33;
}

mf_hash128 mf_hash128_of(const void *bytes, size_t len, uint32_t seed) {
    const uint8_t *p = bytes;
    uint64_t h1 = seed, h2 = seed, k[2];
    size_t left = len;
    for (; left >= sizeof k; left -= sizeof k, p += sizeof k) {
        memcpy(k, p, sizeof k);
        h1 = (turn(h1 ^ mix1(k[0]), 27) + h2) * 5 + 0x52dce729;
        h2 = (turn(h2 ^ mix2(k[1]), 31) + h1) * 5 + 0x38495ab5;
    }
    memset(k, 0, sizeof k);
    if (left) memcpy(k, p, left);
    h1 ^= mix1(k[0]) ^ len; // what is missing is zero, and zero mixes to zero
    h2 ^= mix2(k[1]) ^ len;
    h1 += h2;
    h2 += h1;
    h1 = finish(h1);
    h2 = finish(h2);
    h1 += h2;
    return (mf_hash128){{h1, h1 + h2}};
}
