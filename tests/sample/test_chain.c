// The chain against the plain reference of tests/oracle/sampler.py: tokens step by step, and the candidates of the last draw.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/random.h"
#include "sample/sampler.h"

enum {
    MAX_VOCAB = 512,
    MAX_IDS = 128,
    MAX_BREAKERS = 8
};

typedef struct test_case {
    char name[80];
    int vocab;
    uint64_t logits_seed;
    double scale, grid, holes;
    mf_sampler_params params;
    mf_logit_bias bias[8];
    mf_token_run breakers[MAX_BREAKERS];
    int32_t breaker_ids[MAX_BREAKERS][MF_SAMPLER_BREAKER_MAX];
    int32_t prompt[MAX_IDS], tokens[MAX_IDS], survivors[MAX_VOCAB];
    double probs[MAX_VOCAB];
    size_t n_prompt, n_tokens, n_survivors;
} test_case;

#define REAL(field) \
    { #field, offsetof(mf_sampler_params, field), false }
#define INTEGER(field) \
    { #field, offsetof(mf_sampler_params, field), true }

static const struct field {
    const char *name;
    size_t offset;
    bool integer;
} fields[] = {
    REAL(temp),
    INTEGER(top_k),
    REAL(top_p),
    REAL(min_p),
    REAL(typical),
    REAL(top_n_sigma),
    REAL(xtc_probability),
    REAL(xtc_threshold),
    REAL(repeat_penalty),
    REAL(frequency_penalty),
    REAL(presence_penalty),
    INTEGER(repeat_last_n),
    REAL(dry_multiplier),
    REAL(dry_base),
    INTEGER(dry_allowed_length),
    INTEGER(dry_penalty_last_n),
    INTEGER(mirostat),
    REAL(mirostat_tau),
    REAL(mirostat_eta),
    INTEGER(mirostat_m),
};

static void set_field(mf_sampler_params *params, const char *name, const char *value) {
    if (strcmp(name, "seed") == 0) {
        params->seed = strtoull(value, NULL, 10);
        return;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strcmp(name, fields[i].name) != 0) continue;
        char *field = (char *)params + fields[i].offset;
        if (fields[i].integer)
            *(int32_t *)(void *)field = atoi(value);
        else
            *(float *)(void *)field = strtof(value, NULL);
        return;
    }
    fail_msg("the fixture sets '%s'", name);
}

static size_t read_ids(const char *text, int32_t *ids, size_t max) {
    size_t n = 0;
    for (char *end; n < max; text = end) {
        long id = strtol(text, &end, 10);
        if (end == text) break;
        ids[n++] = (int32_t)id;
    }
    return n;
}

static void read_line(test_case *c, const char *key, const char *rest) {
    char name[64], value[64];
    if (strcmp(key, "vocab") == 0) {
        c->vocab = atoi(rest);
    } else if (strcmp(key, "logits") == 0) {
        assert_int_equal(sscanf(rest, "%lu %lf %lf %lf", &c->logits_seed, &c->scale, &c->grid, &c->holes), 4);
    } else if (strcmp(key, "set") == 0) {
        assert_int_equal(sscanf(rest, "%63s %63s", name, value), 2);
        set_field(&c->params, name, value);
    } else if (strcmp(key, "bias") == 0) {
        mf_logit_bias *b = &c->bias[c->params.n_logit_bias++];
        assert_int_equal(sscanf(rest, "%d %f", &b->token, &b->bias), 2);
    } else if (strcmp(key, "breaker") == 0) {
        size_t n = c->params.n_dry_sequence_breakers++;
        c->breakers[n] = (mf_token_run){c->breaker_ids[n], read_ids(rest, c->breaker_ids[n], MF_SAMPLER_BREAKER_MAX)};
    } else if (strcmp(key, "prompt") == 0) {
        c->n_prompt = read_ids(rest, c->prompt, MAX_IDS);
    } else if (strcmp(key, "tokens") == 0) {
        c->n_tokens = read_ids(rest, c->tokens, MAX_IDS);
    } else if (strcmp(key, "survivor") == 0) {
        size_t n = c->n_survivors++;
        assert_int_equal(sscanf(rest, "%d %lf", &c->survivors[n], &c->probs[n]), 2);
    } else {
        fail_msg("the fixture has a line '%s'", key);
    }
}

static bool read_case(FILE *file, test_case *c) {
    char line[1024];
    memset(c, 0, sizeof *c);
    mf_sampler_params_init(&c->params);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *rest = strchr(line, ' ');
        if (line[0] == '#' || line[0] == 0) continue;
        if (strcmp(line, "end") == 0) return true;
        assert_non_null(rest);
        *rest++ = 0;
        if (strcmp(line, "case") == 0)
            snprintf(c->name, sizeof c->name, "%s", rest);
        else
            read_line(c, line, rest);
    }
    return false;
}

static void make_logits(const test_case *c, uint64_t step, float *logits) {
    for (int i = 0; i < c->vocab; i++) {
        double x = 0;
        for (uint64_t j = 0; j < 4; j++) x += mf_random_uniform(c->logits_seed, (uint64_t)i, 4 * step + j);
        x = (x - 2) * c->scale;
        if (c->grid > 0) x = floor(x / c->grid) * c->grid;
        logits[i] = mf_random_uniform(c->logits_seed + 1, (uint64_t)i, step) < c->holes ? -INFINITY : (float)x;
    }
}

static void check_survivors(const test_case *c, const mf_sampler *s) {
    int32_t ids[MAX_VOCAB];
    float probs[MAX_VOCAB];
    size_t n = mf_sampler_survivors(s, MAX_VOCAB, ids, probs);
    if (n != c->n_survivors) fail_msg("%s: %zu survivors, not %zu", c->name, n, c->n_survivors);
    for (size_t i = 0; i < n; i++)
        if (ids[i] != c->survivors[i] || !(fabs(probs[i] - c->probs[i]) <= 1e-6))
            fail_msg("%s: survivor %zu is %d with %.9g, not %d with %.9g", c->name, i, ids[i], probs[i], c->survivors[i],
                     c->probs[i]);
}

static void check_case(test_case *c) {
    mf_error err = {0};
    c->params.logit_bias = c->bias;
    c->params.dry_sequence_breakers = c->breakers;
    mf_sampler *s = mf_sampler_new(&c->params, c->vocab, &err);
    if (!s) fail_msg("%s: %s", c->name, err.text);
    for (size_t i = 0; i < c->n_prompt; i++) assert_true(mf_sampler_accept(s, c->prompt[i]));
    float logits[MAX_VOCAB], before[MAX_VOCAB];
    for (size_t step = 0; step < c->n_tokens; step++) {
        int32_t token = -1;
        make_logits(c, step, logits);
        memcpy(before, logits, sizeof logits);
        if (!mf_sampler_sample(s, logits, NULL, step, &token, &err)) fail_msg("%s: %s", c->name, err.text);
        assert_memory_equal(before, logits, (size_t)c->vocab * sizeof *logits);
        if (token != c->tokens[step]) fail_msg("%s: step %zu gives %d, not %d", c->name, step, token, c->tokens[step]);
        assert_true(mf_sampler_accept(s, token));
    }
    check_survivors(c, s);
    mf_sampler_free(s);
}

static void test_oracle(void **state) {
    (void)state;
    FILE *file = fopen(MF_FIXTURES "/sampler.txt", "r");
    assert_non_null(file);
    test_case *c = malloc(sizeof *c);
    assert_non_null(c);
    int n = 0;
    for (; read_case(file, c); n++) check_case(c);
    free(c);
    fclose(file);
    assert_int_equal(n, 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_oracle)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
