// Log-probabilities of the raw logits, for those who want to see what the model thought.
#include "sample/sampler.h"

#include <float.h>
#include <math.h>

#include "base/real.h"
#include "sample/candidates.h"

enum {
    BLOCK = MF_LOGITS_BLOCK,
    LANES = MF_LOGITS_LANES
};

_Static_assert(BLOCK == MF_EXP64_BLOCK, "a block of logits is a block of exponentials");

// A whole block from logit i on: in place, or in `tail` with -infinity behind the last one.
static const float *block_at(const float *logits, int32_t n_vocab, int32_t i, float tail[BLOCK]) {
    if (n_vocab - i >= BLOCK) return logits + i;
    for (int32_t j = 0; j < BLOCK; j++) tail[j] = i + j < n_vocab ? logits[i + j] : -INFINITY;
    return tail;
}

static int32_t not_sound(const float *block) {
    int32_t bad = 0;
    for (int i = 0; i < BLOCK; i++) bad |= !(block[i] <= FLT_MAX); // NaN and +infinity fail the comparison
    return bad;
}

static bool find_max(const float *logits, int32_t n_vocab, float *max, mf_error *err) {
    float tail[BLOCK];
    int32_t bad = 0;
    *max = -INFINITY;
    for (int32_t i = 0; i < n_vocab; i += BLOCK) {
        const float *block = block_at(logits, n_vocab, i, tail);
        bad |= not_sound(block);
        float m = mf_logits_block_max(block);
        if (m > *max) *max = m;
    }
    if (bad) return mf_logits_refuse(logits, NULL, err);
    if (*max < -FLT_MAX) return mf_fail(err, MF_ERR_NUMERIC, "all %d logits are -infinity", n_vocab);
    return true;
}

// The logarithm of the sum of exp(logits - max), in double.
static double log_sum(const float *logits, int32_t n_vocab, float max) {
    float tail[BLOCK];
    double lane[LANES] = {0}, x[BLOCK], y[BLOCK];
    for (int32_t i = 0; i < n_vocab; i += BLOCK) {
        const float *block = block_at(logits, n_vocab, i, tail);
        for (int j = 0; j < BLOCK; j++) x[j] = (double)block[j] - max;
        mf_exp64_block(x, y);
        for (int j = 0; j < BLOCK; j += LANES)
            for (int k = 0; k < LANES; k++) lane[k] += y[j + k];
    }
    return mf_log64(mf_sum_of_lanes(lane));
}

// Puts the ids of the k largest logits first in `ids`, best first, equal ones by id; -infinity never. Returns how many there are.
static int32_t best(const float *logits, int32_t n_vocab, int32_t k, int32_t *ids) {
    float tail[BLOCK];
    int32_t len = 0;
    for (int32_t b = 0; b < n_vocab && k > 0; b += BLOCK) {
        const float *block = block_at(logits, n_vocab, b, tail);
        if (len == k && !(mf_logits_block_max(block) > logits[ids[k - 1]])) continue;
        for (int32_t i = b; i < n_vocab && i < b + BLOCK; i++) {
            if (logits[i] < -FLT_MAX || (len == k && !(logits[i] > logits[ids[k - 1]]))) continue;
            int32_t at = len < k ? len++ : k - 1;
            for (; at > 0 && logits[i] > logits[ids[at - 1]]; at--) ids[at] = ids[at - 1];
            ids[at] = i;
        }
    }
    return len;
}

int mf_sampler_logprobs(const float *logits, int32_t n_vocab, int32_t token, float *token_logprob, int32_t k, int32_t *ids,
                        float *logprobs, mf_error *err) {
    if (k < 0 || k > MF_SAMPLER_LOGPROBS_MAX) {
        mf_fail(err, MF_ERR_ARGUMENT, "%d log-probabilities were asked for, not 0 to %d", k, MF_SAMPLER_LOGPROBS_MAX);
        return -1;
    }
    if (token_logprob && (token < 0 || token >= n_vocab)) {
        mf_fail(err, MF_ERR_ARGUMENT, "token %d is outside the vocabulary of %d", token, n_vocab);
        return -1;
    }
    float max = 0;
    if (!find_max(logits, n_vocab, &max, err)) return -1;
    double log_total = log_sum(logits, n_vocab, max);
    if (token_logprob) *token_logprob = (float)((double)logits[token] - max - log_total);

    int32_t len = best(logits, n_vocab, k, ids);
    for (int32_t i = 0; i < len; i++) logprobs[i] = (float)((double)logits[ids[i]] - max - log_total);
    return len;
}
