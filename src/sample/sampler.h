// The sampler: from a row of logits to a token id. One chain, one config, no allocation after mf_sampler_new. The stages, their
// formulas and the random draws are in docs/sampling.md. A sampler belongs to one sequence and to one thread at a time.
#ifndef MF_SAMPLE_SAMPLER_H
#define MF_SAMPLE_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define MF_SAMPLER_LAST_N_MAX       (1 << 20) // the most tokens a penalty may look back
#define MF_SAMPLER_BREAKER_MAX      20        // the most tokens of one DRY sequence breaker
#define MF_SAMPLER_BREAKER_TEXT_MAX 64        // the most bytes of one that is a text
#define MF_SAMPLER_LOGPROBS_MAX     128       // the most entries of mf_sampler_logprobs

typedef struct mf_logit_bias {
    int32_t token;
    float bias; // added to the token's logit, in ±100; repeated tokens add up
} mf_logit_bias;

typedef struct mf_token_run {
    const int32_t *ids;
    size_t len;
} mf_token_run;

// What a token does for a text that breaks sequences, for the sampler knows no text. Bit k of a set stands for the text's first k bytes.
typedef struct mf_breaker_token {
    int32_t id;
    uint8_t len;     // of its bytes, where it may lie inside the text
    bool holds;      // the whole text stands in it
    uint64_t ends;   // it ends with the first k bytes
    uint64_t inside; // behind them it is what follows, and more does
    uint64_t begins; // behind them it begins with all that follows
} mf_breaker_token;

typedef struct mf_breaker_text {
    const mf_breaker_token *tokens; // those that do something, by ascending id
    size_t n;
} mf_breaker_text;

// The config. Every field has its range in params.c; mf_sampler_params_check names the field that is outside. The arrays are
// borrowed by mf_sampler_params_check and copied by mf_sampler_new.
typedef struct mf_sampler_params {
    uint64_t seed;                             // 42; the key of every draw
    float temp;                                // 0.8; 0 = greedy
    int32_t top_k;                             // 40; 0, -1 = off
    float top_p;                               // 0.95; 1 = off
    float min_p;                               // 0 = off
    float typical;                             // 1 = off
    float top_n_sigma;                         // 0 = off
    float xtc_probability;                     // 0 = off
    float xtc_threshold;                       // 0.1; over 0.5 = off
    float repeat_penalty;                      // 1.1; 1 = off
    float frequency_penalty;                   // 0 = off
    float presence_penalty;                    // 0 = off
    int32_t repeat_last_n;                     // 64 tokens seen by the three penalties; 0 = off, -1 = all of the context
    float dry_multiplier;                      // 0 = off
    float dry_base;                            // 1.75
    int32_t dry_allowed_length;                // 2
    int32_t dry_penalty_last_n;                // 64; 0 = off, -1 = all of the context
    const mf_token_run *dry_sequence_breakers; // none
    size_t n_dry_sequence_breakers;
    const mf_breaker_text *dry_breaker_texts; // none
    size_t n_dry_breaker_texts;
    int32_t mirostat;                // 0 = off, 1, 2
    float mirostat_tau;              // 5; bits of surprise aimed at
    float mirostat_eta;              // 0.1; learning rate
    int32_t mirostat_m;              // 100; ranked candidates that version 1 estimates from
    const mf_logit_bias *logit_bias; // none
    size_t n_logit_bias;
} mf_sampler_params;

// The defaults above.
void mf_sampler_params_init(mf_sampler_params *params);

// Puts a context's length where a penalty looks back on all of it, at most MF_SAMPLER_LAST_N_MAX.
void mf_sampler_params_fit(mf_sampler_params *params, int32_t n_ctx);

// MF_ERR_ARGUMENT for nonsense, by name and value: NaN, out of range, ids outside [0, n_vocab).
bool mf_sampler_params_check(const mf_sampler_params *params, int32_t n_vocab, mf_error *err);

typedef struct mf_sampler mf_sampler;

// A sampler with an empty history, for a context of any length unless the params were made to fit one. NULL: params that mf_sampler_params_check refuses, or no memory.
mf_sampler *mf_sampler_new(const mf_sampler_params *params, int32_t n_vocab, mf_error *err);

// What sampling writes over a vocabulary and nothing is kept in: the largest part of a sampler. Samplers that never run at the same time
// can share one, which must outlive them.
typedef struct mf_candidates mf_sampler_scratch;

mf_sampler_scratch *mf_sampler_scratch_new(int32_t n_vocab, mf_error *err);
void mf_sampler_scratch_free(mf_sampler_scratch *scratch); // NULL is fine
size_t mf_sampler_scratch_bytes(int32_t n_vocab);

// mf_sampler_new over a scratch of that vocabulary, whose survivors are those of the sampler that sampled last.
mf_sampler *mf_sampler_new_over(const mf_sampler_params *params, mf_sampler_scratch *scratch, mf_error *err);

// Bytes of such a sampler, but for what its params ask for (a history, texts, biases).
size_t mf_sampler_bytes(int32_t n_vocab);

void mf_sampler_free(mf_sampler *s); // NULL is fine

// Changes the key of the draws that follow.
void mf_sampler_set_seed(mf_sampler *s, uint64_t seed);

// Puts a token of the sequence (prompt or generated) into the history, in O(1). False, and nothing changes, for an id outside
// the vocabulary.
bool mf_sampler_accept(mf_sampler *s, int32_t token);

// Chooses a token from n_vocab logits, which are not modified. allowed: a bit for each token in words of 64, of which the others are never
// chosen, nor are their logits looked at; NULL: all. token_index is the number of tokens that were ever sampled in this sequence: with
// the seed it is the counter of the random draws, and no draw of a sequence is used twice. Sampling changes nothing that a later
// sampling sees (mirostat learns when the token is accepted), so it may be repeated. MF_ERR_NUMERIC: a logit that is NaN or +infinity
// (named by token), or no allowed logit above -infinity, before or after bias and penalties.
bool mf_sampler_sample(mf_sampler *s, const float *logits, const uint64_t *allowed, uint64_t token_index, int32_t *token,
                       mf_error *err);

// The candidates that the last successful mf_sampler_sample drew from, in its order, with their probabilities (sum 1). Fills at
// most cap entries (probs may be NULL) and returns how many candidates there were; 0 before the first sampling.
size_t mf_sampler_survivors(const mf_sampler *s, size_t cap, int32_t *ids, float *probs);

// Forgets the history and what mirostat has learned.
void mf_sampler_reset(mf_sampler *s);

// Makes the state (history, mirostat, texts that may break) of dst that of src, without allocating. False, and nothing changes, unless both
// look back equally far over vocabularies of one size, with as many such texts.
bool mf_sampler_copy(mf_sampler *dst, const mf_sampler *src);

// Appends the state as bytes, for a sampler in another process that goes on where this one is. *out says where memory was out.
void mf_sampler_save(const mf_sampler *s, mf_buf *out);

// Takes such a state over, but for what the params have no use for: mirostat's estimate without mirostat, a history that is
// the end of the one that is there. False with err, and nothing changes, for bytes that are none.
bool mf_sampler_load(mf_sampler *s, const void *bytes, size_t n, mf_error *err);

// A sampler with the params and the state of `s`; NULL when memory is out.
mf_sampler *mf_sampler_clone(const mf_sampler *s, mf_error *err);

// log_softmax of n_vocab raw logits (natural logarithm): fills ids and logprobs with the k most probable tokens (ties: lower id
// first) and *token_logprob, unless it is NULL, with that of `token`. Returns how many of the k there are (a logit of -infinity
// is never listed), or -1: k outside 0 … MF_SAMPLER_LOGPROBS_MAX, `token` outside the vocabulary (MF_ERR_ARGUMENT), logits that
// mf_sampler_sample would refuse (MF_ERR_NUMERIC).
int mf_sampler_logprobs(const float *logits, int32_t n_vocab, int32_t token, float *token_logprob, int32_t k, int32_t *ids,
                        float *logprobs, mf_error *err);

#endif
