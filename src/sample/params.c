// The config: defaults, ranges, and the refusal of nonsense.
#include "sample/sampler.h"

void mf_sampler_params_init(mf_sampler_params *params) {
    *params = (mf_sampler_params){
        .seed = 42,
        .temp = 0.8f,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.0f,
        .typical = 1.0f,
        .top_n_sigma = 0.0f,
        .xtc_probability = 0.0f,
        .xtc_threshold = 0.1f,
        .repeat_penalty = 1.1f,
        .frequency_penalty = 0.0f,
        .presence_penalty = 0.0f,
        .repeat_last_n = 64,
        .dry_multiplier = 0.0f,
        .dry_base = 1.75f,
        .dry_allowed_length = 2,
        .dry_penalty_last_n = 64,
        .mirostat = 0,
        .mirostat_tau = 5.0f,
        .mirostat_eta = 0.1f,
        .mirostat_m = 100,
    };
}

typedef struct range {
    const char *name;
    size_t offset;
    bool integer; // int32_t, else float
    double min, max;
} range;

#define REAL(field, min, max) \
    { #field, offsetof(mf_sampler_params, field), false, min, max }
#define INTEGER(field, min, max) \
    { #field, offsetof(mf_sampler_params, field), true, min, max }

static const range ranges[] = {
    REAL(temp, 0, 100),
    INTEGER(top_k, -1, INT32_MAX),
    REAL(top_p, 0, 1),
    REAL(min_p, 0, 1),
    REAL(typical, 0, 1),
    REAL(top_n_sigma, 0, 1000),
    REAL(xtc_probability, 0, 1),
    REAL(xtc_threshold, 0, 1),
    REAL(repeat_penalty, 0.01f, 100),
    REAL(frequency_penalty, -100, 100),
    REAL(presence_penalty, -100, 100),
    INTEGER(repeat_last_n, -1, MF_SAMPLER_LAST_N_MAX),
    REAL(dry_multiplier, 0, 1000),
    REAL(dry_base, 1, 100),
    INTEGER(dry_allowed_length, 0, MF_SAMPLER_LAST_N_MAX),
    INTEGER(dry_penalty_last_n, -1, MF_SAMPLER_LAST_N_MAX),
    INTEGER(mirostat, 0, 2),
    REAL(mirostat_tau, 0, 100),
    REAL(mirostat_eta, 0, 10),
    INTEGER(mirostat_m, 2, INT32_MAX),
};

static bool check_ranges(const mf_sampler_params *params, mf_error *err) {
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        const range *r = &ranges[i];
        const char *field = (const char *)params + r->offset;
        double value =
            r->integer ? (double)*(const int32_t *)(const void *)field : (double)*(const float *)(const void *)field;
        // A NaN fails both comparisons.
        if (!(value >= r->min && value <= r->max))
            return mf_fail(err, MF_ERR_ARGUMENT, "%s %.9g is not between %.7g and %.10g", r->name, value, r->min, r->max);
    }
    return true;
}

static bool check_bias(const mf_sampler_params *params, int32_t n_vocab, mf_error *err) {
    for (size_t i = 0; i < params->n_logit_bias; i++) {
        mf_logit_bias b = params->logit_bias[i];
        if (b.token < 0 || b.token >= n_vocab)
            return mf_fail(err, MF_ERR_ARGUMENT, "logit_bias: token %d is outside the vocabulary of %d", b.token, n_vocab);
        if (!(b.bias >= -100 && b.bias <= 100))
            return mf_fail(err, MF_ERR_ARGUMENT, "logit_bias: bias %.9g of token %d is not between -100 and 100", b.bias,
                           b.token);
    }
    return true;
}

static bool check_breakers(const mf_sampler_params *params, int32_t n_vocab, mf_error *err) {
    for (size_t i = 0; i < params->n_dry_sequence_breakers; i++) {
        mf_token_run run = params->dry_sequence_breakers[i];
        if (run.len < 1 || run.len > MF_SAMPLER_BREAKER_MAX)
            return mf_fail(err, MF_ERR_ARGUMENT, "dry_sequence_breakers: sequence %zu has %zu tokens, not 1 to %d", i,
                           run.len, MF_SAMPLER_BREAKER_MAX);
        for (size_t j = 0; j < run.len; j++)
            if (run.ids[j] < 0 || run.ids[j] >= n_vocab)
                return mf_fail(err, MF_ERR_ARGUMENT,
                               "dry_sequence_breakers: token %d of sequence %zu is outside the vocabulary of %d", run.ids[j],
                               i, n_vocab);
    }
    return true;
}

void mf_sampler_params_fit(mf_sampler_params *params, int32_t n_ctx) {
    int32_t *const last[] = {&params->repeat_last_n, &params->dry_penalty_last_n};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++)
        if (*last[i] == -1) *last[i] = n_ctx < MF_SAMPLER_LAST_N_MAX ? n_ctx : MF_SAMPLER_LAST_N_MAX;
}

static bool check_breaker_texts(const mf_sampler_params *params, int32_t n_vocab, mf_error *err) {
    for (size_t i = 0; i < params->n_dry_breaker_texts; i++) {
        mf_breaker_text text = params->dry_breaker_texts[i];
        for (size_t j = 0; j < text.n; j++)
            if (text.tokens[j].id < (j ? text.tokens[j - 1].id + 1 : 0) || text.tokens[j].id >= n_vocab)
                return mf_fail(err, MF_ERR_ARGUMENT,
                               "dry_breaker_texts: token %d of text %zu is outside the vocabulary of %d or out of order",
                               text.tokens[j].id, i, n_vocab);
    }
    return true;
}

bool mf_sampler_params_check(const mf_sampler_params *params, int32_t n_vocab, mf_error *err) {
    if (n_vocab < 1) return mf_fail(err, MF_ERR_ARGUMENT, "a vocabulary of %d tokens can't be sampled", n_vocab);
    return check_ranges(params, err) && check_bias(params, n_vocab, err) && check_breakers(params, n_vocab, err) &&
           check_breaker_texts(params, n_vocab, err);
}
