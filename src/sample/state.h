// What a sampler consists of, and the stages of the chain (docs/sampling.md).
#ifndef MF_SAMPLE_STATE_H
#define MF_SAMPLE_STATE_H

#include "sample/candidates.h"
#include "sample/sampler.h"

// The last tokens of the sequence, in a ring, and how often each token is among the last repeat_last_n of them.
typedef struct mf_history {
    int32_t *ring;
    size_t cap, len, head; // head: where the next token goes
    int32_t *count;        // n_vocab entries
    size_t window;         // repeat_last_n
} mf_history;

// The token `back` places from the end (0 is the newest); back < len.
static inline int32_t mf_history_at(const mf_history *h, size_t back) {
    return h->ring[h->head > back ? h->head - 1 - back : h->head + h->cap - 1 - back];
}

typedef struct mf_dry {
    mf_token_run *breakers; // sorted by their first token
    int32_t *breaker_ids;
    size_t n_breakers;
    mf_breaker_text *texts;
    mf_breaker_token *text_tokens;
    uint64_t *open; // of each text: with which of its beginnings the sequence ends, as bits
    size_t n_texts;
    size_t since;     // tokens behind the newest one in which a text ends
    int32_t *recent;  // the last tokens, newest first
    uint32_t *match;  // match[k]: how many tokens the endings of the history and of the history without its last k share
    uint32_t *repeat; // n_vocab entries, all 0 between calls: the longest repetition the token would continue
} mf_dry;

// Mirostat's estimate of the surprise to allow. A sampled token changes it when it is accepted.
typedef struct mf_mirostat {
    float mu;
    int32_t token; // the token sampled last, -1 for none
    float next_mu; // mu after that token
} mf_mirostat;

struct mf_sampler {
    mf_sampler_params params; // its arrays are those below
    mf_logit_bias *bias;
    mf_history history;
    mf_dry dry;
    mf_mirostat mirostat;
    mf_candidates *candidates;
    bool owns_candidates;
    uint64_t token_index; // of the sampling that runs
};

// The draws of one token (mf_random_uniform's last argument).
enum {
    MF_DRAW_TOKEN,
    MF_DRAW_XTC
};

// history.c
bool mf_history_init(mf_history *h, size_t window, size_t cap, int32_t n_vocab, mf_error *err);
void mf_history_free(mf_history *h);
void mf_history_push(mf_history *h, int32_t token);
void mf_history_clear(mf_history *h);

// dry.c
bool mf_dry_init(mf_dry *dry, const mf_sampler_params *params, int32_t n_vocab, mf_error *err);
void mf_dry_free(mf_dry *dry);
bool mf_dry_active(const mf_sampler_params *params);
void mf_dry_accept(mf_dry *dry, int32_t token);
void mf_dry_clear(mf_dry *dry);                   // forgets what was accepted
bool mf_dry_copy(mf_dry *dst, const mf_dry *src); // the same; false: they have not the same number of texts

// Stages that edit the logits.
void mf_stage_bias(mf_sampler *s);
void mf_stage_penalties(mf_sampler *s);
void mf_stage_dry(mf_sampler *s);

// Stages that shorten the list, or scale it.
void mf_stage_top_n_sigma(mf_sampler *s); // edits the logits; the list is not made yet
void mf_stage_top_k(mf_sampler *s);       // makes the list
void mf_stage_typical(mf_sampler *s);
void mf_stage_top_p(mf_sampler *s);
void mf_stage_min_p(mf_sampler *s);
void mf_stage_xtc(mf_sampler *s);
void mf_stage_temperature(mf_sampler *s);

// Mirostat in place of those; returns the chosen token.
int32_t mf_mirostat_sample(mf_sampler *s);

#endif
