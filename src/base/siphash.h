// The hash of tables whose keys come from outside: SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", INDOCRYPT
// 2012). Who doesn't know the key can't choose inputs that collide. In a header, because tables that are asked for every pair of
// symbols of a text need it inline.
#ifndef MF_BASE_SIPHASH_H
#define MF_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// A secret of a table's own.
typedef struct mf_hash_key {
    uint64_t k[2];
} mf_hash_key;

// A key from the operating system.
mf_hash_key mf_hash_key_new(void);

typedef struct mf_sip {
    uint64_t a, b, c, d;
} mf_sip;

static inline uint64_t mf_sip_rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static inline mf_sip mf_sip_round(mf_sip s) {
    s.a += s.b;
    s.c += s.d;
    s.b = mf_sip_rotate(s.b, 13) ^ s.a;
    s.d = mf_sip_rotate(s.d, 16) ^ s.c;
    s.a = mf_sip_rotate(s.a, 32) + s.d;
    s.c += s.b;
    s.b = mf_sip_rotate(s.b, 17) ^ s.c;
    s.d = mf_sip_rotate(s.d, 21) ^ s.a;
    s.c = mf_sip_rotate(s.c, 32);
    return s;
}

static inline mf_sip mf_sip_word(mf_sip s, uint64_t word) {
    s.d ^= word;
    s = mf_sip_round(s);
    s.a ^= word;
    return s;
}

// The last bytes of an input, fewer than 8, as a number with the first one lowest.
static inline uint64_t mf_sip_tail(const uint8_t *p, size_t n) {
    uint32_t low = 0, high = 0;
    uint16_t two = 0;
    if (n >= 4) {
        memcpy(&low, p, 4);
        memcpy(&high, p + n - 4, 4); // overlaps: what it holds twice is shifted out
        return low | (uint64_t)high >> 8 * (8 - n) << 32;
    }
    if (n >= 2) memcpy(&two, p, 2);
    if (n & 1) low = (uint32_t)p[n - 1] << 8 * (n - 1);
    return low | two;
}

static inline uint64_t mf_hash_keyed(const void *bytes, size_t len, mf_hash_key key) {
    const uint8_t *p = bytes;
    mf_sip s = {key.k[0] ^ 0x736F6D6570736575, key.k[1] ^ 0x646F72616E646F6D, key.k[0] ^ 0x6C7967656E657261,
                key.k[1] ^ 0x7465646279746573};
    size_t left = len;
    for (uint64_t word; left >= 8; left -= 8, p += 8) {
        memcpy(&word, p, 8);
        s = mf_sip_word(s, word);
    }
    s = mf_sip_word(s, mf_sip_tail(p, left) | (uint64_t)len << 56);
    s.c ^= 0xFF;
    s = mf_sip_round(mf_sip_round(mf_sip_round(s)));
    return s.a ^ s.b ^ s.c ^ s.d;
}

#endif
