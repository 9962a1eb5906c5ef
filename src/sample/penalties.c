// Stages that look at single tokens: logit bias, and the penalties for tokens that were seen before.
#include "sample/state.h"

void mf_stage_bias(mf_sampler *s) {
    for (size_t i = 0; i < s->params.n_logit_bias; i++) s->candidates->logits[s->bias[i].token] += s->bias[i].bias;
}

// Keskar et al., "CTRL" (2019), divide by the repeat penalty; a logit that is not positive is multiplied, since dividing would
// raise it. Frequency and presence are OpenAI's.
static float penalized(const mf_sampler_params *p, float logit, int32_t count) {
    logit = logit > 0 ? logit / p->repeat_penalty : logit * p->repeat_penalty;
    return logit - ((float)count * p->frequency_penalty + p->presence_penalty);
}

void mf_stage_penalties(mf_sampler *s) {
    const mf_sampler_params *p = &s->params;
    mf_history *h = &s->history;
    if (p->repeat_penalty == 1 && p->frequency_penalty == 0 && p->presence_penalty == 0) return;
    size_t n = h->len < h->window ? h->len : h->window;
    // A token is penalized once: its count is negative from then to the end of the stage.
    for (size_t i = 0; i < n; i++) {
        int32_t token = mf_history_at(h, i), count = h->count[token];
        if (count < 0) continue;
        s->candidates->logits[token] = penalized(p, s->candidates->logits[token], count);
        h->count[token] = -count;
    }
    for (size_t i = 0; i < n; i++) {
        int32_t *count = &h->count[mf_history_at(h, i)];
        if (*count < 0) *count = -*count;
    }
}
