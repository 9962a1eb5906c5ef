// Log-probabilities of the raw logits, for those who want to see what the model thought.
#include "sample/sampler.h"

#include <float.h>
#include <math.h>

#include "base/real.h"

// The logarithm of the sum of exp(logits - max) in double, in order of id, and the maximum.
static bool log_sum(const float *logits, int32_t n_vocab, float *max_out, double *log_out, mf_error *err) {
    float max = -INFINITY;
    for (int32_t i = 0; i < n_vocab; i++) {
        if (!(logits[i] <= FLT_MAX))
            return mf_fail(err, MF_ERR_NUMERIC, "the logit of token %d is %s", i,
                           logits[i] > 0 ? "infinite" : "not a number");
        if (logits[i] > max) max = logits[i];
    }
    if (max < -FLT_MAX) return mf_fail(err, MF_ERR_NUMERIC, "all %d logits are -infinity", n_vocab);
    double sum = 0;
    for (int32_t i = 0; i < n_vocab; i++) sum += mf_exp64((double)logits[i] - max);
    *max_out = max;
    *log_out = mf_log64(sum);
    return true;
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
    double log_total = 0;
    if (!log_sum(logits, n_vocab, &max, &log_total, err)) return -1;
    if (token_logprob) *token_logprob = (float)((double)logits[token] - max - log_total);

    int32_t len = 0; // ids[0 .. len) are the best so far, in order
    for (int32_t i = 0; i < n_vocab && k > 0; i++) {
        if (logits[i] < -FLT_MAX || (len == k && !(logits[i] > logits[ids[k - 1]]))) continue;
        int32_t at = len < k ? len++ : k - 1;
        for (; at > 0 && logits[i] > logits[ids[at - 1]]; at--) ids[at] = ids[at - 1];
        ids[at] = i;
    }
    for (int32_t i = 0; i < len; i++) logprobs[i] = (float)((double)logits[ids[i]] - max - log_total);
    return len;
}
