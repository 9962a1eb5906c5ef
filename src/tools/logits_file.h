// Saved log-probabilities in the format of llama-perplexity's --kl-divergence-base, so that either program can make the base:
//     "_logits_", uint32 n_ctx, int32 n_vocab, int32 n_chunk, int32 tokens[n_chunk][n_ctx] (as the text has them), then for each chunk n_ctx - 1 -
//     n_ctx / 2 rows, those of the tokens n_ctx / 2 … n_ctx - 2, each
//     float scale, float least, uint16 value[n_vocab] (and one more where n_vocab is odd): the log-probability of id i is
//     scale * value[i] + least. Differences of more than 16 to the best are cut.
// All numbers are little-endian.
#ifndef MF_TOOLS_LOGITS_FILE_H
#define MF_TOOLS_LOGITS_FILE_H

#include "base/error.h"
#include "base/file.h"

#include <stdio.h>

#define MF_LOGITS_CTX_MIN 8
#define MF_LOGITS_CTX_MAX (1 << 20)

typedef struct mf_logits_header {
    int32_t n_ctx, n_vocab, n_chunk;
} mf_logits_header;

int32_t mf_logits_rows(int32_t n_ctx); // of a chunk

typedef struct mf_logits_reader {
    mf_file_map map;
    mf_logits_header header;
    size_t tokens_at, rows_at, row_bytes;
} mf_logits_reader;

// Opens and checks a file: its magic, counts, its size to the byte, tokens inside the vocabulary. Refused too: a vocabulary of another
// size than n_vocab. Closed in any case.
bool mf_logits_open(mf_logits_reader *r, const char *path, int32_t n_vocab, mf_error *err);
void mf_logits_close(mf_logits_reader *r);

int32_t mf_logits_token(const mf_logits_reader *r, int32_t chunk, int32_t i);

// Row i of a chunk as n_vocab log-probabilities. False with err: a scale that makes no sense.
bool mf_logits_row(const mf_logits_reader *r, int32_t chunk, int32_t i, float *logprobs, mf_error *err);

// Writes under a temporary name; the file appears when all rows are there.
typedef struct mf_logits_writer {
    const char *path; // borrowed
    char *temporary;
    FILE *file;
    mf_logits_header header;
    uint16_t *row;
} mf_logits_writer;

// tokens: [n_chunk][n_ctx]. Closed in any case.
bool mf_logits_create(mf_logits_writer *w, const char *path, mf_logits_header header, const int32_t *tokens, mf_error *err);

// The next row: logits and the logarithm of the sum of their exponentials.
bool mf_logits_write(mf_logits_writer *w, const float *logits, double log_sum, mf_error *err);

bool mf_logits_commit(mf_logits_writer *w, mf_error *err);
void mf_logits_discard(mf_logits_writer *w); // after a commit it only frees

#endif
