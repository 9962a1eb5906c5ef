// Allocation with overflow-checked sizes.
#ifndef MF_BASE_MEM_H
#define MF_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// a * b and a + b; false when the result does not fit.
static inline bool mf_mul_size(size_t a, size_t b, size_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool mf_add_size(size_t a, size_t b, size_t *out) { return !__builtin_add_overflow(a, b, out); }

// Rounds up to a multiple of `align` (a power of two). The caller has checked that it does not overflow.
static inline size_t mf_align_up(size_t n, size_t align) { return (n + align - 1) & ~(align - 1); }

// n * size zeroed bytes; NULL when the product overflows or memory is out. n * size == 0 gives a unique pointer.
// Freed with free().
void *mf_alloc(size_t n, size_t size);

// Resizes to n * size bytes (new bytes are not set). NULL leaves `ptr` as it was.
void *mf_resize(void *ptr, size_t n, size_t size);

// Uninitialised bytes on a boundary of `align` (a power of two, at least 64 is used); NULL when out. Freed with free().
void *mf_alloc_aligned(size_t bytes, size_t align);

// A copy of len bytes with a NUL behind; NULL when out. Freed with free().
char *mf_copy_text(const char *text, size_t len);

#endif
