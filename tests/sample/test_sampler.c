// What holds for every config: refusals, the random draws, ties, masks, state, log-probabilities.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "base/random.h"
#include "base/real.h"
#include "sample/sampler.h"

static mf_sampler_params plain(void) {
    mf_sampler_params p;
    mf_sampler_params_init(&p);
    p.temp = 1;
    p.top_k = 0;
    p.top_p = 1;
    p.repeat_penalty = 1;
    return p;
}

static mf_sampler *make(const mf_sampler_params *p, int32_t n_vocab) {
    mf_error err = {0};
    mf_sampler *s = mf_sampler_new(p, n_vocab, &err);
    if (!s) fail_msg("%s", err.text);
    return s;
}

static void random_logits(float *logits, int32_t n, uint64_t seed, double scale) {
    for (int32_t i = 0; i < n; i++) {
        double x = 0;
        for (uint64_t j = 0; j < 12; j++) x += mf_random_uniform(seed, (uint64_t)i, j);
        logits[i] = (float)((x - 6) * scale);
    }
}

static int32_t sample(mf_sampler *s, const float *logits, uint64_t index) {
    mf_error err = {0};
    int32_t token = -1;
    if (!mf_sampler_sample(s, logits, NULL, index, &token, &err)) fail_msg("%s", err.text);
    return token;
}

static void test_defaults(void **state) {
    (void)state;
    mf_sampler_params p;
    mf_sampler_params_init(&p);
    assert_true(mf_sampler_params_check(&p, 1, NULL));
    assert_true(p.seed == 42 && p.temp == 0.8f && p.top_k == 40 && p.top_p == 0.95f && p.min_p == 0 && p.typical == 1);
    assert_true(p.repeat_penalty == 1.1f && p.repeat_last_n == 64 && p.frequency_penalty == 0 && p.presence_penalty == 0);
    assert_true(p.dry_multiplier == 0 && p.dry_base == 1.75f && p.dry_allowed_length == 2 && p.dry_penalty_last_n == 64);
    assert_true(p.xtc_probability == 0 && p.xtc_threshold == 0.1f && p.top_n_sigma == 0 && p.n_logit_bias == 0);
    assert_true(p.mirostat == 0 && p.mirostat_tau == 5 && p.mirostat_eta == 0.1f && p.mirostat_m == 100);
}

#define REFUSED(change, sentence)                             \
    do {                                                      \
        mf_sampler_params p = plain();                        \
        mf_error err = {0};                                   \
        change;                                               \
        assert_false(mf_sampler_params_check(&p, 100, &err)); \
        assert_int_equal(err.code, MF_ERR_ARGUMENT);          \
        assert_string_equal(err.text, sentence);              \
        assert_null(mf_sampler_new(&p, 100, &err));           \
    } while (0)

static void test_ranges(void **state) {
    (void)state;
    REFUSED(p.temp = -0.5f, "temp -0.5 is not between 0 and 100");
    REFUSED(p.temp = NAN, "temp nan is not between 0 and 100");
    REFUSED(p.temp = INFINITY, "temp inf is not between 0 and 100");
    REFUSED(p.top_k = -2, "top_k -2 is not between -1 and 2147483647");
    REFUSED(p.top_p = 1.5f, "top_p 1.5 is not between 0 and 1");
    REFUSED(p.min_p = -1, "min_p -1 is not between 0 and 1");
    REFUSED(p.typical = 2, "typical 2 is not between 0 and 1");
    REFUSED(p.top_n_sigma = -1, "top_n_sigma -1 is not between 0 and 1000");
    REFUSED(p.xtc_probability = 1.25f, "xtc_probability 1.25 is not between 0 and 1");
    REFUSED(p.xtc_threshold = -2, "xtc_threshold -2 is not between 0 and 1");
    REFUSED(p.repeat_penalty = 0, "repeat_penalty 0 is not between 0.01 and 100");
    REFUSED(p.frequency_penalty = 101, "frequency_penalty 101 is not between -100 and 100");
    REFUSED(p.presence_penalty = -INFINITY, "presence_penalty -inf is not between -100 and 100");
    REFUSED(p.repeat_last_n = -2, "repeat_last_n -2 is not between -1 and 1048576");
    REFUSED(p.dry_multiplier = -1, "dry_multiplier -1 is not between 0 and 1000");
    REFUSED(p.dry_base = 0.5f, "dry_base 0.5 is not between 1 and 100");
    REFUSED(p.dry_allowed_length = -1, "dry_allowed_length -1 is not between 0 and 1048576");
    REFUSED(p.dry_penalty_last_n = 1 << 21, "dry_penalty_last_n 2097152 is not between -1 and 1048576");
    REFUSED(p.mirostat = 3, "mirostat 3 is not between 0 and 2");
    REFUSED(p.mirostat_tau = -1, "mirostat_tau -1 is not between 0 and 100");
    REFUSED(p.mirostat_eta = NAN, "mirostat_eta nan is not between 0 and 10");
    REFUSED(p.mirostat_m = 1, "mirostat_m 1 is not between 2 and 2147483647");
}

static void test_ids(void **state) {
    (void)state;
    mf_logit_bias bias[] = {{5, 1}, {100, 1}};
    REFUSED((p.logit_bias = bias, p.n_logit_bias = 2), "logit_bias: token 100 is outside the vocabulary of 100");
    bias[1] = (mf_logit_bias){-1, 1};
    REFUSED((p.logit_bias = bias, p.n_logit_bias = 2), "logit_bias: token -1 is outside the vocabulary of 100");
    bias[1] = (mf_logit_bias){7, 100.5f};
    REFUSED((p.logit_bias = bias, p.n_logit_bias = 2), "logit_bias: bias 100.5 of token 7 is not between -100 and 100");
    bias[1].bias = NAN;
    REFUSED((p.logit_bias = bias, p.n_logit_bias = 2), "logit_bias: bias nan of token 7 is not between -100 and 100");

    int32_t ids[21] = {1, 300};
    mf_token_run run = {ids, 2};
    REFUSED((p.dry_sequence_breakers = &run, p.n_dry_sequence_breakers = 1),
            "dry_sequence_breakers: token 300 of sequence 0 is outside the vocabulary of 100");
    run.len = 0;
    REFUSED((p.dry_sequence_breakers = &run, p.n_dry_sequence_breakers = 1),
            "dry_sequence_breakers: sequence 0 has 0 tokens, not 1 to 20");
    run.len = 21;
    REFUSED((p.dry_sequence_breakers = &run, p.n_dry_sequence_breakers = 1),
            "dry_sequence_breakers: sequence 0 has 21 tokens, not 1 to 20");

    mf_sampler_params p = plain();
    mf_error err = {0};
    assert_null(mf_sampler_new(&p, 0, &err));
    assert_string_equal(err.text, "a vocabulary of 0 tokens can't be sampled");
    mf_sampler *s = make(&p, 100);
    assert_false(mf_sampler_accept(s, -1));
    assert_false(mf_sampler_accept(s, 100));
    assert_true(mf_sampler_accept(s, 99));
    mf_sampler_free(s);
    mf_sampler_free(NULL);
}

static void check_numeric(mf_sampler *s, const float *logits, const char *sentence) {
    mf_error err = {0};
    int32_t token = 77;
    assert_false(mf_sampler_sample(s, logits, NULL, 0, &token, &err));
    assert_int_equal(err.code, MF_ERR_NUMERIC);
    assert_string_equal(err.text, sentence);
    assert_int_equal(token, 77);
    assert_int_equal(mf_sampler_survivors(s, 0, NULL, NULL), 0);
}

static void test_not_finite(void **state) {
    (void)state;
    mf_sampler_params p = plain();
    p.repeat_penalty = 0.5f;
    mf_sampler *s = make(&p, 200);
    float logits[200] = {0};
    for (int at = 0; at < 200; at += 199) {
        logits[at] = NAN;
        check_numeric(s, logits, at ? "the logit of token 199 is not a number" : "the logit of token 0 is not a number");
        logits[at] = -NAN;
        check_numeric(s, logits, at ? "the logit of token 199 is not a number" : "the logit of token 0 is not a number");
        logits[at] = INFINITY;
        check_numeric(s, logits, at ? "the logit of token 199 is infinite" : "the logit of token 0 is infinite");
        logits[at] = 0;
    }
    logits[66] = FLT_MAX;
    assert_int_equal(sample(s, logits, 0), 66);
    mf_sampler_accept(s, 66);
    check_numeric(s, logits, "the logit of token 66 overflowed under bias and penalties");
    for (int i = 0; i < 200; i++) logits[i] = -INFINITY;
    check_numeric(s, logits, "no token can be sampled: all 200 logits are -infinity");
    logits[150] = -FLT_MAX;
    assert_int_equal(sample(s, logits, 0), 150);
    mf_sampler_free(s);
}

static void test_ties(void **state) {
    (void)state;
    enum {
        N = 5000
    };
    static float logits[N];
    mf_sampler_params p = plain();
    p.temp = 0;
    mf_sampler *s = make(&p, N);
    assert_int_equal(sample(s, logits, 0), 0);
    for (int i = 0; i < N; i++) logits[i] = i < 70 ? -1.0f : i % 2 ? 0.0f : -0.0f;
    assert_int_equal(sample(s, logits, 3), 70);
    mf_sampler_free(s);

    p.temp = 1;
    p.top_k = 60; // under the number of blocks, every one of which ties
    s = make(&p, N);
    sample(s, logits, 0);
    int32_t ids[60];
    float probs[60];
    assert_int_equal(mf_sampler_survivors(s, 60, ids, probs), 60);
    for (int i = 0; i < 60; i++) {
        assert_int_equal(ids[i], 70 + i);
        assert_true(probs[i] == (float)(1 / 60.0));
    }
    mf_sampler_free(s);
}

// Draws follow the probabilities: Pearson's chi-square over 10^5 draws stays below the 99.9 % point of its distribution.
static void test_frequencies(void **state) {
    (void)state;
    enum {
        N = 40,
        DRAWS = 100000,
        TOP = 16
    };
    float logits[N];
    random_logits(logits, N, 3, 1.0);
    mf_sampler_params p = plain();
    p.temp = 0.8f;
    p.top_k = TOP;
    mf_sampler *s = make(&p, N);
    int count[N] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) count[sample(s, logits, i)]++;
    int32_t ids[TOP];
    float probs[TOP];
    assert_int_equal(mf_sampler_survivors(s, TOP, ids, probs), TOP);
    double chi = 0, total = 0;
    int seen = 0;
    for (int i = 0; i < TOP; i++) {
        double expected = probs[i] * (double)DRAWS, d = count[ids[i]] - expected;
        assert_true(expected > 5);
        chi += d * d / expected;
        total += mf_exp64((double)(logits[ids[i]] - logits[ids[0]]) / 0.8);
        seen += count[ids[i]];
    }
    assert_int_equal(seen, DRAWS);
    assert_true(fabs(probs[0] - 1 / total) < 1e-6);
    assert_true(chi > 2 && chi < 37.7); // 15 degrees of freedom
    mf_sampler_free(s);
}

// A draw depends on the seed and the token's index, not on what was sampled before.
static void test_draws(void **state) {
    (void)state;
    enum {
        N = 300
    };
    float logits[N];
    random_logits(logits, N, 9, 1.0);
    mf_sampler_params p = plain();
    p.xtc_probability = 0.5f;
    p.xtc_threshold = 0.001f;
    mf_sampler *a = make(&p, N), *b = make(&p, N);
    p.seed = 43;
    mf_sampler *other = make(&p, N);
    int differ = 0;
    for (uint64_t i = 0; i < 50; i++) {
        int32_t token = sample(a, logits, i);
        assert_int_equal(token, sample(a, logits, i));
        differ += token != sample(other, logits, i);
    }
    for (uint64_t i = 50; i-- > 0;) {
        int32_t token = sample(b, logits, i);
        assert_int_equal(token, sample(a, logits, i));
    }
    assert_true(differ > 25);
    mf_sampler_free(a);
    mf_sampler_free(b);
    mf_sampler_free(other);
}

// Ways to say the same thing give the same tokens, on a vocabulary of a real size.
static void test_equivalent(void **state) {
    (void)state;
    enum {
        N = 32003
    };
    float *logits = malloc(N * sizeof *logits);
    assert_non_null(logits);
    random_logits(logits, N, 21, 3.0);
    mf_sampler_params p = plain();
    p.top_p = 0.9f;
    p.temp = 1.5f;
    mf_sampler *off = make(&p, N);
    p.top_k = N;
    mf_sampler *whole = make(&p, N);
    p.top_k = N - 1; // the list is ranked before top-p, which then need not narrow it
    mf_sampler *ranked = make(&p, N);
    for (uint64_t i = 0; i < 20; i++) {
        int32_t token = sample(off, logits, i);
        assert_int_equal(token, sample(whole, logits, i));
        assert_int_equal(token, sample(ranked, logits, i));
        size_t n = mf_sampler_survivors(off, 0, NULL, NULL);
        assert_true(n > 256 && n < N);
        assert_int_equal(n, mf_sampler_survivors(ranked, 0, NULL, NULL));
    }
    mf_sampler_free(off);
    mf_sampler_free(whole);
    mf_sampler_free(ranked);

    // The k best by insertion, against top-k on both sides of the number of blocks (501).
    static const int32_t ks[] = {1, 40, 500, 501, 3000};
    for (size_t t = 0; t < sizeof ks / sizeof *ks; t++) {
        p = plain();
        p.top_k = ks[t];
        mf_sampler *s = make(&p, N);
        sample(s, logits, 0);
        int32_t *ids = malloc((size_t)ks[t] * sizeof *ids);
        assert_non_null(ids);
        assert_int_equal(mf_sampler_survivors(s, (size_t)ks[t], ids, NULL), ks[t]);
        float least = logits[ids[ks[t] - 1]];
        int above = 0;
        for (int32_t i = 0; i < N; i++) above += logits[i] > least;
        assert_int_equal(above, ks[t] - 1);
        for (int32_t i = 1; i < ks[t]; i++) assert_true(logits[ids[i - 1]] > logits[ids[i]] || ids[i - 1] < ids[i]);
        free(ids);
        mf_sampler_free(s);
    }
    free(logits);
}

// What is chosen under an allowed set is what is chosen where all other logits are -infinity, and nothing of them is looked at.
static void test_allowed(void **state) {
    (void)state;
    float logits[200], others_gone[200];
    uint64_t allowed[4] = {0};
    mf_logit_bias bias = {2, 6};
    mf_sampler_params p = plain();
    p.repeat_penalty = 2, p.logit_bias = &bias, p.n_logit_bias = 1;
    for (int mode = 0; mode < 80; mode++) {
        p.temp = mode % 4 == 0 ? 0 : 1;
        p.mirostat = mode % 4 < 2 ? 0 : mode % 4 - 1;
        random_logits(logits, 200, (uint64_t)mode, 2);
        for (size_t w = 0; w < 4; w++) allowed[w] = (uint64_t)(mf_random_uniform(9, (uint64_t)mode, w) * 0x1p64);
        if (mode % 5 == 0) allowed[1] = 0, allowed[2] = UINT64_MAX;
        for (int32_t i = 0; i < 200; i++) {
            bool is_allowed = allowed[i / 64] >> i % 64 & 1;
            others_gone[i] = is_allowed ? logits[i] : -INFINITY;
            if (!is_allowed) logits[i] = NAN;
        }
        mf_sampler *s = make(&p, 200);
        mf_sampler_accept(s, 2);
        for (uint64_t index = 0; index < 20; index++) {
            mf_error err = {0};
            int32_t token = -1;
            if (!mf_sampler_sample(s, logits, allowed, index, &token, &err)) fail_msg("%s", err.text);
            assert_true(allowed[token / 64] >> token % 64 & 1);
            assert_int_equal(token, sample(s, others_gone, index));
        }
        const uint64_t none[4] = {0};
        mf_error err = {0};
        int32_t token;
        assert_false(mf_sampler_sample(s, logits, none, 0, &token, &err));
        assert_int_equal(err.code, MF_ERR_NUMERIC);
        mf_sampler_free(s);
    }
}

// A copied state goes on as its source does; a reset one begins anew.
static void test_state(void **state) {
    (void)state;
    enum {
        N = 64,
        LONG = 40
    };
    float logits[N];
    for (int mirostat = 0; mirostat <= 2; mirostat++) {
        mf_sampler_params p = plain();
        p.repeat_penalty = 1.3f;
        p.frequency_penalty = 0.3f;
        p.repeat_last_n = 7;
        p.dry_multiplier = 0.5f;
        p.dry_allowed_length = 1;
        p.mirostat = mirostat;
        int32_t breaker[] = {4, 5};
        mf_token_run run = {breaker, 2};
        p.dry_sequence_breakers = &run;
        p.n_dry_sequence_breakers = 1;
        mf_sampler *s = make(&p, N), *same = make(&p, N), *clone = NULL;
        int32_t first[LONG];
        for (uint64_t i = 0; i < LONG; i++) {
            random_logits(logits, N, i, 1.5);
            first[i] = sample(s, logits, i);
            if (clone) {
                assert_int_equal(first[i], sample(clone, logits, i));
                assert_int_equal(first[i], sample(same, logits, i));
                mf_sampler_accept(clone, first[i]);
                mf_sampler_accept(same, first[i]);
            }
            mf_sampler_accept(s, first[i]);
            if (i == 20) {
                for (int32_t t = 0; t < 30; t++) mf_sampler_accept(same, t); // forgotten by the copy
                assert_true(mf_sampler_copy(same, s));
                clone = mf_sampler_clone(s, NULL);
                assert_non_null(clone);
            }
        }
        mf_sampler_reset(s);
        for (uint64_t i = 0; i < LONG; i++) {
            random_logits(logits, N, i, 1.5);
            assert_int_equal(first[i], sample(s, logits, i));
            mf_sampler_accept(s, first[i]);
        }
        assert_true(mf_sampler_copy(s, s));
        p.repeat_last_n = 8;
        mf_sampler *other = make(&p, N);
        assert_false(mf_sampler_copy(other, s));
        mf_sampler_free(other);
        mf_sampler_free(s);
        mf_sampler_free(same);
        mf_sampler_free(clone);
    }
}

// Nothing that was seen before a reset counts, nor what a sampler saw that became the copy of another.
static void test_forgets(void **state) {
    (void)state;
    enum {
        N = 12,
        WINDOW = 5
    };
    const float logits[N] = {0};
    float probs[N], fresh_probs[N];
    int32_t ids[N], fresh_ids[N];
    mf_sampler_params p = plain();
    p.frequency_penalty = 1, p.repeat_last_n = WINDOW;
    for (int32_t n_seen = 1; n_seen < N; n_seen++) {
        for (int copied = 0; copied < 2; copied++) {
            mf_sampler *s = make(&p, N), *fresh = make(&p, N);
            for (int32_t i = 0; i < n_seen; i++) mf_sampler_accept(s, i);
            if (copied)
                assert_true(mf_sampler_copy(s, fresh));
            else
                mf_sampler_reset(s);
            for (int32_t i = 0; i < WINDOW; i++) { // each of those that counted, once more
                mf_sampler_accept(s, (n_seen + N - 1 - i) % N);
                mf_sampler_accept(fresh, (n_seen + N - 1 - i) % N);
            }
            assert_int_equal(sample(s, logits, 0), sample(fresh, logits, 0));
            assert_int_equal(mf_sampler_survivors(s, N, ids, probs), N);
            assert_int_equal(mf_sampler_survivors(fresh, N, fresh_ids, fresh_probs), N);
            assert_memory_equal(ids, fresh_ids, sizeof ids);
            assert_memory_equal(probs, fresh_probs, sizeof probs);
            mf_sampler_free(s);
            mf_sampler_free(fresh);
        }
    }
}

// How many candidates mirostat leaves, which is what it learns.
static size_t n_left(mf_sampler *s, const float *logits, uint64_t index, int32_t *token) {
    *token = sample(s, logits, index);
    return mf_sampler_survivors(s, 0, NULL, NULL);
}

// Mirostat learns when the token that it chose is accepted, and a copy knows what its source has learnt.
static void test_mirostat_learns(void **state) {
    (void)state;
    enum {
        N = 500
    };
    float logits[N];
    for (int32_t i = 0; i < N; i++) logits[i] = (float)(-1.2 * mf_log64(i + 1)); // as frequent as words are
    for (int version = 1; version <= 2; version++) {
        mf_sampler_params p = plain();
        p.mirostat = version, p.mirostat_tau = 2, p.mirostat_eta = 0.5f;
        mf_sampler *s = make(&p, N), *copy = make(&p, N);
        int32_t token, other;
        size_t at_first = n_left(s, logits, 0, &token), learnt = at_first;
        assert_in_range(at_first, 2, N - 1);
        for (uint64_t i = 0; i < 20; i++) assert_int_equal(n_left(s, logits, i, &token), at_first);
        mf_sampler_accept(s, (token + 1) % N); // another token was put in its place
        assert_int_equal(n_left(s, logits, 0, &token), at_first);
        for (uint64_t i = 0; i < 20 && learnt == at_first; i++) {
            mf_sampler_accept(s, token);
            learnt = n_left(s, logits, i, &token);
        }
        assert_int_not_equal(learnt, at_first);
        assert_true(mf_sampler_copy(copy, s));
        mf_sampler *clone = mf_sampler_clone(s, NULL);
        assert_non_null(clone);
        assert_int_equal(n_left(copy, logits, 0, &other), learnt);
        assert_int_equal(n_left(clone, logits, 0, &other), learnt);
        mf_sampler_free(s);
        mf_sampler_free(copy);
        mf_sampler_free(clone);
    }
}

// -1 looks back on everything, and keeps every candidate.
static void test_minus_one(void **state) {
    (void)state;
    enum {
        N = 50,
        LONG = 300
    };
    float logits[N];
    mf_sampler_params all = plain(), fit, wide;
    all.repeat_penalty = 1.2f;
    all.presence_penalty = 2;
    all.frequency_penalty = 0.1f;
    all.dry_multiplier = 1;
    all.top_k = all.repeat_last_n = all.dry_penalty_last_n = -1;
    fit = wide = all;
    mf_sampler_params_fit(&fit, LONG + 1);
    assert_true(fit.top_k == -1 && fit.repeat_last_n == LONG + 1 && fit.dry_penalty_last_n == LONG + 1);
    wide.top_k = 0, wide.repeat_last_n = wide.dry_penalty_last_n = 1000;
    mf_sampler_params huge = all;
    mf_sampler_params_fit(&huge, INT32_MAX);
    assert_int_equal(huge.repeat_last_n, MF_SAMPLER_LAST_N_MAX);
    mf_sampler *s[] = {make(&all, N), make(&fit, N), make(&wide, N)};
    for (uint64_t i = 0; i < LONG; i++) {
        random_logits(logits, N, i, 1.5);
        int32_t token = sample(s[2], logits, i);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(sample(s[k], logits, i), token);
            mf_sampler_accept(s[k], token);
        }
    }
    for (int k = 0; k < 3; k++) mf_sampler_free(s[k]);
}

// A state that was saved goes on in another sampler; bytes that are none are refused, and change nothing.
static void test_saved_state(void **state) {
    (void)state;
    enum {
        N = 64,
        SEEN = 30
    };
    mf_error err = {0};
    float logits[N];
    mf_sampler_params p = plain();
    p.repeat_penalty = 1.3f, p.repeat_last_n = 7, p.mirostat = 2;
    mf_sampler *s = make(&p, N), *same = make(&p, N);
    mf_sampler_accept(same, 9);
    for (uint64_t i = 0; i < SEEN; i++) {
        random_logits(logits, N, i, 1.5);
        mf_sampler_accept(s, sample(s, logits, i));
    }
    mf_buf saved = {0};
    mf_sampler_save(s, &saved);
    assert_int_equal(saved.len, 12 + 7 * 4);
    assert_true(mf_sampler_load(same, saved.data, saved.len, &err));
    for (uint64_t i = 0; i < SEEN; i++) {
        random_logits(logits, N, i, 1.5);
        int32_t token = sample(s, logits, i);
        assert_int_equal(token, sample(same, logits, i));
        if (i == SEEN / 2) {
            for (size_t n = 0; n < saved.len; n++) assert_false(mf_sampler_load(same, saved.data, n, &err));
            assert_false(mf_sampler_load(same, saved.data, saved.len + 1, &err));
            for (size_t at = 0; at < saved.len; at++) { // a count, a switch, an estimate, an id
                char old = saved.data[at];
                saved.data[at] = at / 4 == 2 ? (char)0xff : 0x7f;
                if (at % 4 == 3 && at / 4 == 2) saved.data[at - 1] = (char)0xff;
                if (at % 4 == 3) assert_false(mf_sampler_load(same, saved.data, saved.len, &err));
                saved.data[at] = old;
                if (at % 4 == 3 && at / 4 == 2) saved.data[at - 1] = (char)0xc0;
            }
        }
        mf_sampler_accept(s, token);
        mf_sampler_accept(same, token);
    }
    free(saved.data);
    mf_sampler_free(s);
    mf_sampler_free(same);
}

static void test_logprobs(void **state) {
    (void)state;
    enum {
        N = 500
    };
    float logits[N], logprobs[MF_SAMPLER_LOGPROBS_MAX], one;
    int32_t ids[MF_SAMPLER_LOGPROBS_MAX];
    random_logits(logits, N, 2, 2.0);
    logits[7] = logits[3] = 9;
    logits[11] = -INFINITY;
    mf_error err = {0};
    assert_int_equal(mf_sampler_logprobs(logits, N, 7, &one, 20, ids, logprobs, &err), 20);
    double total = 0;
    for (int i = 0; i < N; i++) total += mf_exp64((double)logits[i]);
    assert_int_equal(ids[0], 3);
    assert_int_equal(ids[1], 7);
    assert_true(one == logprobs[1]);
    for (int i = 0; i < 20; i++) {
        assert_true(fabs(logprobs[i] - (logits[ids[i]] - mf_log64(total))) < 1e-5);
        int above = 0;
        for (int j = 0; j < N; j++) above += logits[j] > logits[ids[i]];
        assert_int_equal(above, i == 1 ? 0 : i);
    }
    assert_int_equal(mf_sampler_logprobs(logits, N, 11, &one, 0, NULL, NULL, &err), 0);
    assert_true(one == -INFINITY);
    assert_int_equal(mf_sampler_logprobs(logits + 10, 3, 0, NULL, 9, ids, logprobs, &err), 2);

    assert_int_equal(mf_sampler_logprobs(logits, N, N, &one, 1, ids, logprobs, &err), -1);
    assert_string_equal(err.text, "token 500 is outside the vocabulary of 500");
    assert_int_equal(mf_sampler_logprobs(logits, N, 0, &one, 129, ids, logprobs, &err), -1);
    assert_string_equal(err.text, "129 log-probabilities were asked for, not 0 to 128");
    assert_int_equal(mf_sampler_logprobs(logits + 11, 1, 0, &one, 1, ids, logprobs, &err), -1);
    assert_int_equal(err.code, MF_ERR_NUMERIC);
    logits[0] = NAN;
    assert_int_equal(mf_sampler_logprobs(logits, N, 1, &one, 1, ids, logprobs, &err), -1);
    assert_string_equal(err.text, "the logit of token 0 is not a number");
}

static double pick(uint64_t i, uint64_t draw, double low, double high) {
    return low + (high - low) * mf_random_uniform(77, i, draw);
}

// Any config that is not refused gives a token with a finite logit, whatever the logits look like.
static void test_any_config(void **state) {
    (void)state;
    enum {
        MAX = 400
    };
    float logits[MAX];
    for (uint64_t i = 0; i < 3000; i++) {
        int32_t n = (int32_t)pick(i, 0, 1, MAX);
        mf_sampler_params p = plain();
        p.seed = i;
        p.temp = (float)pick(i, 1, 0, 2);
        p.top_k = (int32_t)pick(i, 2, 0, 2 * n);
        p.top_p = (float)pick(i, 3, 0, 1.2) > 1 ? 1 : (float)pick(i, 3, 0, 1);
        p.min_p = pick(i, 4, 0, 1) < 0.5 ? 0 : (float)pick(i, 5, 0, 1);
        p.typical = pick(i, 6, 0, 1) < 0.5 ? 1 : (float)pick(i, 7, 0, 1);
        p.top_n_sigma = pick(i, 8, 0, 1) < 0.5 ? 0 : (float)pick(i, 9, 0, 4);
        p.xtc_probability = (float)pick(i, 10, 0, 1);
        p.xtc_threshold = (float)pick(i, 11, 0, 0.6);
        p.repeat_last_n = (int32_t)pick(i, 12, 0, 20);
        p.repeat_penalty = (float)pick(i, 13, 0.5, 2);
        p.frequency_penalty = (float)pick(i, 14, -1, 1);
        p.dry_multiplier = pick(i, 15, 0, 1) < 0.5 ? 0 : (float)pick(i, 16, 0, 1000);
        p.dry_allowed_length = (int32_t)pick(i, 17, 0, 3);
        p.dry_base = (float)pick(i, 18, 1, 100);
        p.mirostat = (int32_t)pick(i, 19, 0, 3);
        p.mirostat_tau = (float)pick(i, 20, 0, 10);
        p.mirostat_eta = (float)pick(i, 21, 0, 10);
        mf_sampler *s = make(&p, n);
        double scale = mf_pow64(10, pick(i, 22, -40, 38));
        for (uint64_t step = 0; step < 4; step++) {
            random_logits(logits, n, i * 4 + step, scale / 6);
            for (int32_t j = 1; j < n; j++)
                if (mf_random_uniform(i, (uint64_t)j, 50) < 0.2) logits[j] = -INFINITY;
            int32_t token = -1;
            mf_error err = {0};
            if (!mf_sampler_sample(s, logits, NULL, step, &token, &err)) {
                // DRY may forbid the only token there is; a huge logit may overflow under a repeat penalty below 1.
                assert_int_equal(err.code, MF_ERR_NUMERIC);
                break;
            }
            assert_in_range(token, 0, n - 1);
            assert_true(logits[token] > -INFINITY);
            mf_sampler_accept(s, token);
        }
        mf_sampler_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),        cmocka_unit_test(test_ranges),      cmocka_unit_test(test_ids),
        cmocka_unit_test(test_not_finite),      cmocka_unit_test(test_ties),        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_draws),           cmocka_unit_test(test_equivalent),  cmocka_unit_test(test_allowed),
        cmocka_unit_test(test_state),           cmocka_unit_test(test_saved_state), cmocka_unit_test(test_minus_one),
        cmocka_unit_test(test_logprobs),        cmocka_unit_test(test_any_config),  cmocka_unit_test(test_forgets),
        cmocka_unit_test(test_mirostat_learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
