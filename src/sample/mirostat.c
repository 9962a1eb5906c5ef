// Mirostat (Basu et al., ICLR 2021): keeps the surprise of the text near tau bits by steering how many candidates there are.
#include "sample/state.h"

#include <float.h>

#include "base/random.h"
#include "base/real.h"

#define LN2 0.6931471805599453

// Version 1: Zipf's exponent from the m best candidates, and from it the number of candidates whose surprise is at most mu.
static size_t candidates_for(const mf_candidates *c, double mu, size_t n_all, size_t m) {
    double sum_tb = 0, sum_tt = 0;
    for (size_t i = 0; i + 1 < m && i + 1 < c->len; i++) {
        double t = mf_log64((double)(i + 2) / (double)(i + 1));
        double b = (double)c->list[i].logit - c->list[i + 1].logit; // log(p_i / p_i+1)
        sum_tb += t * b;
        sum_tt += t * t;
    }
    if (sum_tt == 0) return 1;
    double s_hat = sum_tb / sum_tt, eps = s_hat - 1, log_n = mf_log64((double)c->n_vocab);
    // (eps * 2^mu / (1 - n^-eps)) ^ (1 / s_hat), in logarithms; the quotient's limit for eps -> 0 is 2^mu / log n.
    double x = eps * log_n, quotient = x > -1e-9 && x < 1e-9 ? 1 / log_n : eps / (1 - mf_exp64(-x));
    double log_power = mu * LN2 + mf_log64(quotient);
    double log_all = mf_log64((double)n_all) * s_hat;
    if (log_power <= 0) return 1;
    if (log_power >= log_all) return n_all;
    size_t k = (size_t)mf_exp64(log_power / s_hat);
    return k < 1 ? 1 : k < n_all ? k : n_all;
}

static void shorten_v1(mf_sampler *s) {
    mf_candidates *c = s->candidates;
    size_t m = (size_t)s->params.mirostat_m, n_all = 0;
    for (int32_t i = 0; i < c->n_vocab; i++) n_all += c->logits[i] >= -FLT_MAX;
    mf_candidates_take(c, m);
    mf_candidates_rank(c);
    size_t k = candidates_for(c, s->mirostat.mu, n_all, m);
    if (k > c->len) {
        mf_candidates_take(c, k);
        mf_candidates_rank(c);
    } else {
        c->len = k;
    }
}

// Version 2: the candidates whose surprise is at most mu, and the best one in any case.
static void shorten_v2(mf_sampler *s) {
    mf_candidates *c = s->candidates;
    mf_candidates_take(c, 0);
    double log_total = mf_log64(mf_candidates_softmax(c));
    float max = mf_candidates_max(c);
    size_t len = 0;
    for (size_t i = 0; i < c->len; i++) {
        double surprise = (log_total - ((double)c->list[i].logit - max)) / LN2;
        if (surprise <= s->mirostat.mu) c->list[len++] = c->list[i];
    }
    if (len == 0) c->list[len++] = (mf_candidate){.id = mf_candidates_argmax(c), .logit = max};
    c->len = len;
}

int32_t mf_mirostat_sample(mf_sampler *s) {
    mf_candidates *c = s->candidates;
    if (s->params.mirostat == 1)
        shorten_v1(s);
    else
        shorten_v2(s);
    size_t chosen = mf_candidates_draw(c, mf_random_uniform(s->params.seed, s->token_index, MF_DRAW_TOKEN));
    double surprise = -mf_log64(c->list[chosen].p) / LN2;
    s->mirostat.token = c->list[chosen].id;
    s->mirostat.next_mu = (float)(s->mirostat.mu - s->params.mirostat_eta * (surprise - s->params.mirostat_tau));
    return s->mirostat.token;
}
