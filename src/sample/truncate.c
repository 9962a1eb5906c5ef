// Stages that shorten the candidates to the plausible ones.
#include "sample/state.h"

#include <float.h>
#include <math.h>

#include "base/random.h"
#include "base/real.h"

enum {
    LANES = MF_LOGITS_LANES,
    BUCKETS = 1024,
    RANK_AT_ONCE = 256
};

// Tang et al., "Top-nσ" (2024): tokens more than n standard deviations of the logits below the largest are dropped. The sums over
// the vocabulary run in sixteen lanes by token number mod 16. Distances are compared squared: no root is taken.
void mf_stage_top_n_sigma(mf_sampler *s) {
    mf_candidates *c = s->candidates;
    double n = s->params.top_n_sigma;
    if (n <= 0) return;
    double lane[LANES] = {0}, count = 0;
    for (int32_t i = 0; i < c->n_vocab; i++) {
        if (c->logits[i] < -FLT_MAX) continue;
        lane[i % LANES] += c->logits[i];
        count++;
    }
    double mean = mf_sum_of_lanes(lane) / count;
    for (int j = 0; j < LANES; j++) lane[j] = 0;
    for (int32_t i = 0; i < c->n_vocab; i++) {
        double d = c->logits[i] - mean;
        if (c->logits[i] >= -FLT_MAX) lane[i % LANES] += d * d;
    }
    double limit = n * n * (mf_sum_of_lanes(lane) / count);
    for (int32_t i = 0; i < c->n_vocab; i++) {
        double below = (double)c->max - c->logits[i];
        if (below * below > limit) c->logits[i] = -INFINITY;
    }
}

void mf_stage_top_k(mf_sampler *s) { mf_candidates_take(s->candidates, s->params.top_k > 0 ? (size_t)s->params.top_k : 0); }

// Meister et al., "Locally typical sampling" (2022): the tokens whose surprise is nearest to the entropy, until their
// probabilities pass `typical`.
void mf_stage_typical(mf_sampler *s) {
    mf_candidates *c = s->candidates;
    if (s->params.typical >= 1) return;
    double total = mf_candidates_softmax(c), log_total = mf_log64(total), entropy = 0;
    float max = mf_candidates_max(c);
    for (size_t i = 0; i < c->len; i++)
        if (c->list[i].p > 0) entropy += c->list[i].p / total * (log_total - ((double)c->list[i].logit - max));
    for (size_t i = 0; i < c->len; i++) {
        double score = log_total - ((double)c->list[i].logit - max) - entropy;
        c->list[i].key = (float)(score < 0 ? score : -score);
    }
    c->ranked = false;
    mf_candidates_sort(c);
    double target = s->params.typical * total, sum = 0;
    size_t kept = 0;
    while (kept < c->len && sum <= target) sum += c->list[kept++].p;
    c->len = kept;
    mf_candidates_rank(c);
}

// Which of BUCKETS sixteenths of a nat below the maximum a logit falls into.
static int bucket_of(float max, float logit) {
    float d = (max - logit) * 16;
    return d < BUCKETS - 1 ? (int)d : BUCKETS - 1;
}

// Drops what is surely behind the point where the ranked sum reaches `target`, without ranking.
static void narrow(mf_candidates *c, double target) {
    double sums[BUCKETS] = {0}, sum = 0;
    float max = mf_candidates_max(c);
    for (size_t i = 0; i < c->len; i++) sums[bucket_of(max, c->list[i].logit)] += c->list[i].p;
    int last = 0;
    for (; last < BUCKETS - 1; last++) {
        sum += sums[last];
        if (sum >= target) break;
    }
    // One bucket more than needed: these sums are rounded otherwise than the ranked one.
    size_t len = 0;
    for (size_t i = 0; i < c->len; i++)
        if (bucket_of(max, c->list[i].logit) <= last + 1) c->list[len++] = c->list[i];
    c->len = len;
}

// Holtzman et al., "The curious case of neural text degeneration" (2020): the fewest tokens, best first, whose probabilities
// reach top_p.
void mf_stage_top_p(mf_sampler *s) {
    mf_candidates *c = s->candidates;
    if (s->params.top_p >= 1) return;
    double target = s->params.top_p * mf_candidates_softmax(c), sum = 0;
    if (!c->ranked && c->len > RANK_AT_ONCE) narrow(c, target);
    mf_candidates_rank(c);
    size_t kept = 0;
    do sum += c->list[kept++].p;
    while (kept < c->len && sum < target);
    c->len = kept;
}

// Nguyen et al., "Min-p sampling" (2024): the tokens at least min_p times as probable as the best one.
void mf_stage_min_p(mf_sampler *s) {
    if (s->params.min_p <= 0) return;
    mf_candidates_keep(s->candidates, mf_candidates_max(s->candidates) + (float)mf_log64(s->params.min_p));
}

// XTC ("exclude top choices", p-e-w 2024): with probability xtc_probability, of the tokens that are at least as probable as the
// threshold only the least probable one stays. Over 0.5 there is at most one such token.
void mf_stage_xtc(mf_sampler *s) {
    const mf_sampler_params *p = &s->params;
    mf_candidates *c = s->candidates;
    if (p->xtc_probability <= 0 || p->xtc_threshold > 0.5f || c->len < 2) return;
    if (mf_random_uniform(p->seed, s->token_index, MF_DRAW_XTC) >= p->xtc_probability) return;
    double least = p->xtc_threshold * mf_candidates_softmax(c);
    size_t n_top = 0, last = 0;
    for (size_t i = 0; i < c->len; i++) {
        if (c->list[i].p < least) continue;
        if (n_top++ == 0 || c->list[i].logit <= c->list[last].logit) last = i;
    }
    if (n_top < 2) return;
    size_t len = 0;
    for (size_t i = 0; i < c->len; i++)
        if (c->list[i].p < least || i == last) c->list[len++] = c->list[i];
    c->len = len;
}

// Logits become distances below the best one over the temperature, so that no temperature overflows.
void mf_stage_temperature(mf_sampler *s) {
    mf_candidates *c = s->candidates;
    float max = mf_candidates_max(c), temp = s->params.temp;
    for (size_t i = 0; i < c->len; i++) c->list[i].logit = (c->list[i].logit - max) / temp;
}
