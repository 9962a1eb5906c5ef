// A mutator of files with fixed seeds, and a cap on memory for tests that load what it makes. To be included by one file of a program.
#ifndef MF_TESTS_MUTATE_H
#define MF_TESTS_MUTATE_H

#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MUTATE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MUTATE_SANITIZED 1
#endif
#endif

// An allocation that a hostile number asked for ends the program here instead of filling the machine.
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "max_allocation_size_mb=256:hard_rss_limit_mb=1024"; }

// The same without a sanitizer, whose shadow needs far more address space.
static inline void mutate_cap_memory(void) {
#ifndef MUTATE_SANITIZED
    const struct rlimit cap = {(rlim_t)4 << 30, (rlim_t)4 << 30};
    setrlimit(RLIMIT_AS, &cap);
#endif
}

static inline uint32_t mutate_draw(uint64_t *state, uint32_t limit) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % limit;
}

// Numbers that break arithmetic, and ordinary small ones that break agreement.
static inline uint64_t mutate_number(uint64_t *random) {
    static const uint64_t edges[] = {
        0,          0x7f,       0xff,       0x7fffffff,           0x80000000,           0xffffffff,
        1ull << 32, 1ull << 62, 1ull << 63, 0x7fc00000 /* NaN */, 0x7f800000 /* inf */, UINT64_MAX};
    return mutate_draw(random, 2) ? edges[mutate_draw(random, 12)] : mutate_draw(random, 600);
}

// A change in the first `head` bytes (of a GGUF file: keys, infos). Returns the new size: at most 8 bytes more, for which there is room.
static inline size_t mutate_bytes(uint8_t *data, size_t size, size_t head, uint64_t *random) {
    const uint32_t at = mutate_draw(random, (uint32_t)head - 8);
    const uint64_t n = mutate_number(random);
    switch (mutate_draw(random, 6)) {
    case 0: data[at] ^= (uint8_t)(1u << mutate_draw(random, 8)); return size;
    case 1: data[at] = (uint8_t)mutate_draw(random, 256); return size;
    case 2: memcpy(data + at, &n, 8); return size;
    case 3: memcpy(data + at, &n, 4); return size;
    case 4: memmove(data + at + 8, data + at, size - at); return size + 8;
    default: memmove(data + at, data + at + 4, size - at - 4); return size - 4;
    }
}

#endif
