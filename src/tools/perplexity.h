// Perplexity of a text and the divergence from saved predictions, chunk by chunk as llama-perplexity does it, so that the numbers can be compared: a chunk
// is n_ctx tokens read from an empty cache, its first replaced by the beginning token where the vocabulary asks for one, and the tokens of its second half are
// scored. No printing here.
#ifndef MF_TOOLS_PERPLEXITY_H
#define MF_TOOLS_PERPLEXITY_H

#include "engine/engine.h"
#include "tools/logits_file.h"

// Sums over rows, whose mean and its standard error come out.
typedef struct mf_sums {
    double sum, squares;
} mf_sums;

typedef struct mf_estimate {
    double mean, error;
} mf_estimate;

typedef struct mf_perplexity {
    int64_t n;               // scored rows
    mf_sums nll;             // -log p of the text's tokens, in nats
    mf_sums base_nll, ratio; // with a base: its own, and the difference
    mf_sums divergence;      // KL(base || model)
    int64_t same_top;        // rows whose most likely tokens are the same
    float *divergences;      // of every row
} mf_perplexity;

void mf_perplexity_free(mf_perplexity *p);

// Chunk by chunk: false stops with MF_ERR_CANCELLED.
typedef bool mf_perplexity_progress(void *arg, int32_t chunks_done);

typedef struct mf_perplexity_task {
    mf_engine *engine;     // with room for a chunk and no prefix cache
    const int32_t *tokens; // [n_chunk][n_ctx]
    int32_t n_ctx, n_chunk;
    int32_t bos;                  // put at each chunk's start; -1: none
    const mf_logits_reader *base; // NULL: none
    mf_logits_writer *save;       // NULL: none
    mf_perplexity_progress *progress;
    void *arg;
} mf_perplexity_task;

// Adds all chunks to *out (zero-initialised; freed in any case).
bool mf_perplexity_run(const mf_perplexity_task *task, mf_perplexity *out, mf_error *err);

mf_estimate mf_sums_mean(const mf_sums *s, int64_t n); // error 0 for fewer than 2

// exp of the mean of -log p, with its error: the mean's times the value.
mf_estimate mf_perplexity_of(const mf_sums *nll, int64_t n);

// The value at `fraction` (0 to 1) of the sorted divergences, between neighbours in proportion. Sorts them.
double mf_perplexity_percentile(mf_perplexity *p, double fraction);

#endif
