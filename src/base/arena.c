#include "base/arena.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct mf_arena_chunk {
    mf_arena_chunk *next;
    size_t size, used;
    _Alignas(max_align_t) unsigned char bytes[];
};

enum {
    ALIGN = _Alignof(max_align_t),
    FIRST_CHUNK = 4096,
    LARGEST_CHUNK = 1 << 20,
};

// The chunk that bytes will be taken from: the first one, or a fresh one put before it. Chunks double up to
// LARGEST_CHUNK; a request of more than a chunk gets one of its own.
static mf_arena_chunk *room_for(mf_arena *arena, size_t bytes) {
    mf_arena_chunk *first = arena->chunks;
    if (first && first->size - first->used >= bytes) return first;
    size_t size = first ? first->size * 2 : FIRST_CHUNK, total;
    if (size > LARGEST_CHUNK) size = LARGEST_CHUNK;
    if (size < bytes) size = bytes;
    if (!mf_add_size(size, sizeof *first, &total)) return NULL;
    mf_arena_chunk *chunk = mf_alloc(1, total);
    if (!chunk) return NULL;
    chunk->size = size;
    // A large block leaves the current chunk's free space in use.
    if (first && size == bytes && first->used < first->size) {
        chunk->next = first->next;
        first->next = chunk;
    } else {
        chunk->next = first;
        arena->chunks = chunk;
    }
    return chunk;
}

static void *take(mf_arena *arena, size_t n, size_t size) {
    size_t bytes, padded, used;
    if (!mf_mul_size(n, size, &bytes)) return NULL;
    if (bytes == 0) bytes = 1;
    if (!mf_add_size(bytes, ALIGN - 1, &padded)) return NULL;
    padded &= ~(size_t)(ALIGN - 1);
    if (!mf_add_size(arena->used, padded, &used)) return NULL;
    if (arena->limit && used > arena->limit) return arena->full = true, NULL;
    mf_arena_chunk *chunk = room_for(arena, padded);
    if (!chunk) return NULL;
    void *ptr = chunk->bytes + chunk->used;
    chunk->used += padded;
    arena->used = used;
    return ptr;
}

void *mf_arena_alloc(mf_arena *arena, size_t n, size_t size) {
    void *ptr = take(arena, n, size);
    if (!ptr) arena->failed = true;
    return ptr;
}

char *mf_arena_copy(mf_arena *arena, const char *text, size_t len) {
    size_t bytes;
    if (!mf_add_size(len, 1, &bytes)) return NULL;
    char *copy = mf_arena_alloc(arena, bytes, 1);
    if (copy && len) memcpy(copy, text, len);
    return copy;
}

void mf_arena_free(mf_arena *arena) {
    while (arena->chunks) {
        mf_arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
    arena->used = 0;
    arena->failed = arena->full = false;
}
