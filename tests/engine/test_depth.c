// Attention over four splits of cells: the same logits whether one worker merges the splits as it goes or several merge them afterwards,
// on every kernel row, with few rows in a step.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "engine/golden.h"

enum {
    DEEP = 1000,
    FROM = 970 // rows whose logits are compared
};

typedef struct deep_rows {
    uint64_t hash[DEEP];
} deep_rows;

static void record(void *arg, mf_sequence *seq, int32_t position, const float *logits, int32_t n_vocab) {
    (void)seq;
    ((deep_rows *)arg)->hash[position] = fnv(logits, (size_t)n_vocab * sizeof *logits);
}

static void run_to_idle(mf_engine *e) {
    mf_error err = {0};
    const mf_event *events;
    size_t n;
    while (!mf_engine_idle(e))
        if (!mf_engine_step(e, &events, &n, &err)) fail_msg("%s", err.text);
}

// The rows from FROM on, `few` of them in a step.
static void run(const char *name, const char *row, int n_threads, int32_t few, mf_type cells, deep_rows *out) {
    mf_error err = {0};
    fixture f;
    if (!golden_open(&f, MF_FIXTURES, name, row, n_threads, &err)) fail_msg("%s", err.text);
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = 1024, p.max_outs = 8, p.kv_type = cells, p.prefix_cache = false;
    mf_sequence_params q;
    mf_sequence_params_init(&q);
    q.logits_from = FROM, q.on_logits = record, q.arg = out;
    mf_engine *e = mf_engine_new(f.model, &f.devices, &p, &err);
    mf_sequence *s = e ? mf_sequence_new(e, &q, &err) : NULL;
    int32_t ids[DEEP];
    for (int32_t i = 0; i < DEEP; i++) ids[i] = (i * 17 + i / 7 * 3) % 280;
    *out = (deep_rows){0};
    for (int32_t at = 0, n = FROM; s && at < DEEP; at += n, n = DEEP - at < few ? DEEP - at : few) {
        if (!mf_sequence_append(s, ids + at, (size_t)n, &err)) break;
        run_to_idle(e);
    }
    if (err.text[0]) fail_msg("%s", err.text);
    mf_sequence_free(s);
    mf_engine_free(e);
    fixture_close(&f);
}

static void four_splits(const char *name, mf_type cells) {
    static const struct {
        int n_threads;
        int32_t few;
    } ways[] = {{1, 8}, {1, 1}, {3, 1}, {5, 3}};
    deep_rows want = {0}, got;
    for (const mf_kernels *const *k = mf_kernels_all(); *k; k++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            bool reference = strcmp((*k)->name, "scalar") == 0;
            if (!(*k)->usable(mf_cpu_features_get()) || (reference && (i != 3 || cells != MF_TYPE_F16))) continue;
            run(name, (*k)->name, ways[i].n_threads, ways[i].few, cells, &got);
            if (!want.hash[DEEP - 1]) want = got;
            for (int32_t r = FROM; r < DEEP; r++)
                if (want.hash[r] != got.hash[r])
                    fail_msg("%s: row %d differs on %s, %d threads, %d rows a step", name, r, (*k)->name, ways[i].n_threads,
                             ways[i].few);
        }
    assert_true(want.hash[DEEP - 1] != 0);
}

static void halves(void **state) {
    (void)state;
    four_splits("llama-mix", MF_TYPE_F16);
}

static void bytes(void **state) {
    (void)state;
    four_splits("qwen2-mix", MF_TYPE_Q8_0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(halves), cmocka_unit_test(bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
