// The chain: which stage runs when, and the sampler's life.
#include "sample/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"

typedef void (*stage)(mf_sampler *s);

// The order is the contract (docs/sampling.md). Greedy and mirostat branch off behind the edits.
static const stage edits[] = {mf_stage_bias, mf_stage_penalties, mf_stage_dry};
static const stage choices[] = {
    mf_stage_top_n_sigma, mf_stage_top_k, mf_stage_typical,     mf_stage_top_p,
    mf_stage_min_p,       mf_stage_xtc,   mf_stage_temperature,
};

static void run(mf_sampler *s, const stage *stages, size_t n) {
    for (size_t i = 0; i < n; i++) stages[i](s);
}

static int32_t sample_greedy(mf_sampler *s) {
    mf_candidates *c = s->candidates;
    int32_t token = mf_candidates_argmax(c);
    c->list[0] = (mf_candidate){.id = token, .logit = c->max, .p = 1};
    c->len = 1;
    return token;
}

static int32_t sample_chain(mf_sampler *s) {
    run(s, choices, sizeof choices / sizeof *choices);
    double u = mf_random_uniform(s->params.seed, s->token_index, MF_DRAW_TOKEN);
    return s->candidates->list[mf_candidates_draw(s->candidates, u)].id;
}

bool mf_sampler_sample(mf_sampler *s, const float *logits, const uint64_t *allowed, uint64_t token_index, int32_t *token,
                       mf_error *err) {
    mf_candidates *c = s->candidates;
    s->token_index = token_index;
    s->mirostat.token = -1;
    c->len = 0;
    if (!mf_candidates_load(c, logits, allowed, err)) return false;
    run(s, edits, sizeof edits / sizeof *edits);
    if (!mf_candidates_scan(c, err)) return false;
    if (s->params.temp == 0)
        *token = sample_greedy(s);
    else if (s->params.mirostat != 0)
        *token = mf_mirostat_sample(s);
    else
        *token = sample_chain(s);
    return true;
}

size_t mf_sampler_survivors(const mf_sampler *s, size_t cap, int32_t *ids, float *probs) {
    const mf_candidates *c = s->candidates;
    for (size_t i = 0; i < c->len && i < cap; i++) {
        ids[i] = c->list[i].id;
        if (probs) probs[i] = c->list[i].p;
    }
    return c->len;
}

bool mf_sampler_accept(mf_sampler *s, int32_t token) {
    if (token < 0 || token >= s->candidates->n_vocab) return false;
    mf_history_push(&s->history, token);
    mf_dry_accept(&s->dry, token);
    if (token == s->mirostat.token) s->mirostat.mu = s->mirostat.next_mu;
    s->mirostat.token = -1;
    return true;
}

static bool copy_bias(mf_sampler *s, mf_error *err) {
    size_t n = s->params.n_logit_bias;
    s->bias = mf_alloc(n, sizeof *s->bias);
    if (!s->bias) return mf_fail_memory(err, n * sizeof *s->bias, "the logit biases");
    if (n > 0) memcpy(s->bias, s->params.logit_bias, n * sizeof *s->bias);
    return true;
}

static size_t history_needed(const mf_sampler_params *params) {
    int32_t n = params->repeat_last_n;
    if (mf_dry_active(params) && params->dry_penalty_last_n > n) n = params->dry_penalty_last_n;
    return (size_t)n;
}

mf_sampler_scratch *mf_sampler_scratch_new(int32_t n_vocab, mf_error *err) {
    mf_candidates *c = mf_alloc(1, sizeof *c);
    if (!c) {
        mf_fail_memory(err, sizeof *c, "a sampler");
        return NULL;
    }
    if (mf_candidates_init(c, n_vocab, err)) return c;
    free(c);
    return NULL;
}

void mf_sampler_scratch_free(mf_sampler_scratch *scratch) {
    if (!scratch) return;
    mf_candidates_free(scratch);
    free(scratch);
}

size_t mf_sampler_scratch_bytes(int32_t n_vocab) {
    return (size_t)n_vocab * (sizeof(float) + 2 * sizeof(mf_candidate)); // and a little for its blocks
}

size_t mf_sampler_bytes(int32_t n_vocab) { return (size_t)n_vocab * (sizeof(int32_t) + sizeof(uint32_t)); }

mf_sampler *mf_sampler_new(const mf_sampler_params *params, int32_t n_vocab, mf_error *err) {
    if (!mf_sampler_params_check(params, n_vocab, err)) return NULL;
    mf_sampler_scratch *scratch = mf_sampler_scratch_new(n_vocab, err);
    mf_sampler *s = scratch ? mf_sampler_new_over(params, scratch, err) : NULL;
    if (s)
        s->owns_candidates = true;
    else
        mf_sampler_scratch_free(scratch);
    return s;
}

mf_sampler *mf_sampler_new_over(const mf_sampler_params *params, mf_sampler_scratch *scratch, mf_error *err) {
    const int32_t n_vocab = scratch->n_vocab;
    if (!mf_sampler_params_check(params, n_vocab, err)) return NULL;
    mf_sampler *s = mf_alloc(1, sizeof *s);
    if (!s) {
        mf_fail_memory(err, sizeof *s, "a sampler");
        return NULL;
    }
    s->params = *params;
    s->candidates = scratch;
    mf_sampler_params_fit(&s->params, INT32_MAX);
    params = &s->params;
    bool ok = copy_bias(s, err) && mf_dry_init(&s->dry, params, n_vocab, err) &&
              mf_history_init(&s->history, (size_t)params->repeat_last_n, history_needed(params), n_vocab, err);
    if (!ok) {
        mf_sampler_free(s);
        return NULL;
    }
    s->params.logit_bias = s->bias;
    s->params.dry_sequence_breakers = s->dry.breakers;
    s->params.n_dry_sequence_breakers = s->dry.n_breakers;
    s->params.dry_breaker_texts = s->dry.texts;
    s->params.n_dry_breaker_texts = s->dry.n_texts;
    mf_sampler_reset(s);
    return s;
}

void mf_sampler_free(mf_sampler *s) {
    if (!s) return;
    free(s->bias);
    mf_dry_free(&s->dry);
    if (s->owns_candidates) mf_sampler_scratch_free(s->candidates);
    mf_history_free(&s->history);
    free(s);
}

void mf_sampler_set_seed(mf_sampler *s, uint64_t seed) { s->params.seed = seed; }

void mf_sampler_reset(mf_sampler *s) {
    mf_history_clear(&s->history);
    mf_dry_clear(&s->dry);
    s->candidates->len = 0;
    s->mirostat = (mf_mirostat){.mu = 2 * s->params.mirostat_tau, .token = -1};
}

bool mf_sampler_copy(mf_sampler *dst, const mf_sampler *src) {
    const mf_history *h = &src->history;
    if (dst->candidates->n_vocab != src->candidates->n_vocab || dst->history.window != h->window ||
        dst->history.cap != h->cap)
        return false;
    if (dst == src) return true;
    if (!mf_dry_copy(&dst->dry, &src->dry)) return false;
    mf_history_clear(&dst->history);
    for (size_t i = h->len; i > 0; i--) mf_history_push(&dst->history, mf_history_at(h, i - 1));
    dst->mirostat = src->mirostat;
    return true;
}

mf_sampler *mf_sampler_clone(const mf_sampler *s, mf_error *err) {
    mf_sampler *clone = mf_sampler_new(&s->params, s->candidates->n_vocab, err);
    if (clone) mf_sampler_copy(clone, s);
    return clone;
}
