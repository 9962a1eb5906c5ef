// An arena: many small allocations, freed together.
#ifndef MF_BASE_ARENA_H
#define MF_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

typedef struct mf_arena_chunk mf_arena_chunk;

// Zero-initialised is empty and ready. limit > 0 bounds the total bytes handed out.
typedef struct mf_arena {
    mf_arena_chunk *chunks;
    size_t used, limit;
    bool failed; // something was refused,
    bool full;   // and by the limit
} mf_arena;

// n * size zeroed bytes, aligned for any type; NULL when memory or the limit is out, or the product overflows.
void *mf_arena_alloc(mf_arena *arena, size_t n, size_t size);

// A copy of len bytes with a NUL behind; NULL when out.
char *mf_arena_copy(mf_arena *arena, const char *text, size_t len);

// Frees everything; the arena is empty and ready again (its limit stays).
void mf_arena_free(mf_arena *arena);

#endif
