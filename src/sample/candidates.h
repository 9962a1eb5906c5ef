// Candidates: the working copy of the logits and the list of tokens that are still in play.
#ifndef MF_SAMPLE_CANDIDATES_H
#define MF_SAMPLE_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

// The passes over the vocabulary go in blocks of a constant size, which is what compilers vectorize at -O2; sums run in lanes by
// token id.
enum {
    MF_LOGITS_BLOCK = 64,
    MF_LOGITS_LANES = 16
};

// The largest of a block of logits that has no NaN.
float mf_logits_block_max(const float *block);

// The lanes' sum in a fixed order: halves onto halves.
double mf_sum_of_lanes(const double lane[MF_LOGITS_LANES]);

// Refuses a row that has a NaN or +infinity among the allowed (NULL: all), naming the first one. Always false.
bool mf_logits_refuse(const float *logits, const uint64_t *allowed, mf_error *err);

typedef struct mf_candidate {
    int32_t id;
    float logit;
    float p;   // after mf_candidates_softmax: its weight
    float key; // what mf_candidates_sort orders by
} mf_candidate;

typedef struct mf_candidates {
    int32_t n_vocab;
    size_t n_blocks;     // of 64 logits
    float *logits;       // n_blocks * 64; those behind the vocabulary are -infinity
    float *block_max;    // after mf_candidates_scan
    float max;           // after mf_candidates_scan: of all logits
    mf_candidate *list;  // in ascending order of id, or ranked: descending logit, ties by ascending id
    mf_candidate *spare; // what the sort moves to
    size_t len;
    bool ranked;
} mf_candidates;

bool mf_candidates_init(mf_candidates *c, int32_t n_vocab, mf_error *err);
void mf_candidates_free(mf_candidates *c);

// Copies n_vocab logits; those of tokens without a bit in `allowed` (a word for each block; NULL: all have one) become -infinity unseen.
// MF_ERR_NUMERIC: one that is seen is NaN or +infinity.
bool mf_candidates_load(mf_candidates *c, const float *logits, const uint64_t *allowed, mf_error *err);

// Finds the maxima. MF_ERR_NUMERIC: nothing is above -infinity, or something is +infinity.
bool mf_candidates_scan(mf_candidates *c, mf_error *err);

// The lowest id with the largest logit; after mf_candidates_scan.
int32_t mf_candidates_argmax(const mf_candidates *c);

// Makes the list of the logits above -infinity: the k largest, ranked, where 0 < k < n_vocab; else all, in order of id.
void mf_candidates_take(mf_candidates *c, size_t k);

// Sorts the list by descending key; stable.
void mf_candidates_sort(mf_candidates *c);

// Ranks the list (which is then in descending order of logit, ties by id).
void mf_candidates_rank(mf_candidates *c);

// The largest logit of the list.
float mf_candidates_max(const mf_candidates *c);

// Keeps the candidates with a logit of at least `floor`, in their order.
void mf_candidates_keep(mf_candidates *c, float floor);

// p = exp(logit - max) for the list; returns their sum, in double, in the list's order.
double mf_candidates_softmax(mf_candidates *c);

// Softmax; then the first candidate whose running sum passes u (in [0, 1)) of the total. p are probabilities afterwards.
// Returns its place in the list.
size_t mf_candidates_draw(mf_candidates *c, double u);

#endif
