// The queue of merges of BPE and SentencePiece: the best first, the leftmost of equals.
#ifndef MF_TEXT_HEAP_H
#define MF_TEXT_HEAP_H

#include <stdint.h>

#include "base/array.h"

// A merge that could be done at the symbol in the lower half of `order`; the upper half ranks merges, the lowest first. What it was
// proposed for stands beside it: when symbols have changed since, it no longer fits them and is passed over.
typedef struct mf_candidate {
    uint64_t order;
    uint32_t left, right; // BPE: the ids of both; SentencePiece: left is the bytes of both
    int32_t result;       // the merged id
} mf_candidate;

typedef mf_array(mf_candidate) mf_heap;

static inline uint64_t mf_candidate_order(uint32_t rank, uint32_t at) { return (uint64_t)rank << 32 | at; }
static inline uint32_t mf_candidate_at(const mf_candidate *c) { return (uint32_t)c->order; }

// False when memory is out.
bool mf_heap_push(mf_heap *heap, mf_candidate c);

// Takes the best out of a heap that is not empty.
mf_candidate mf_heap_pop(mf_heap *heap);

#endif
