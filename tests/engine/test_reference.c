// Logits of the tiny models against transformers' float32 forward pass (tests/oracle/tiny_models.py), on every kernel row that runs
// here.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels.h"
#include "base/file.h"
#include "engine/fixture.h"

#define MOST_IDS 512

typedef struct collected {
    float *rows; // [MOST_IDS][n_vocab]
    int32_t n_vocab;
} collected;

static void collect(void *arg, mf_sequence *seq, int32_t position, const float *logits, int32_t n_vocab) {
    (void)seq;
    collected *c = arg;
    memcpy(c->rows + (size_t)position * (size_t)n_vocab, logits, (size_t)n_vocab * sizeof *logits);
}

static void evaluate(fixture *f, const char *ids_name, mf_type cells, collected *c) {
    int32_t ids[MOST_IDS];
    char path[512];
    snprintf(path, sizeof path, MF_FIXTURES "/tiny/%s.ids.txt", ids_name);
    int32_t n = fixture_ids(path, ids, MOST_IDS);
    assert_true(n > 0);
    mf_error err = {0};
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = MOST_IDS, p.n_batch = 128, p.max_outs = 128, p.kv_type = cells;
    mf_engine *e = mf_engine_new(f->model, &f->devices, &p, &err);
    if (!e) fail_msg("%s", err.text);
    mf_sequence_params sp;
    mf_sequence_params_init(&sp);
    sp.all_logits = true, sp.on_logits = collect, sp.arg = c;
    mf_sequence *s = mf_sequence_new(e, &sp, &err);
    assert_non_null(s);
    assert_true(mf_sequence_append(s, ids, (size_t)n, &err));
    while (!mf_engine_idle(e)) {
        const mf_event *events;
        size_t n_events;
        assert_true(mf_engine_step(e, &events, &n_events, &err));
        if (n_events) fail_msg("%s", events[0].error.text);
    }
    mf_sequence_free(s);
    mf_engine_free(e);
}

// The distance of two rows of logits relative to the spread of the expected ones: |got - want|_2 / |want - mean|_2.
static double distance(const float *got, const float *want, int32_t n) {
    double mean = 0, diff = 0, spread = 0;
    for (int32_t i = 0; i < n; i++) mean += (double)want[i] / n;
    for (int32_t i = 0; i < n; i++) {
        diff += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        spread += (want[i] - mean) * (want[i] - mean);
    }
    double ratio = diff / spread, root = 1;
    for (int i = 0; i < 60; i++) root = 0.5 * (root + ratio / root);
    return root;
}

static double worst(fixture *f, const char *name, mf_type cells) {
    mf_error err = {0};
    char path[512];
    snprintf(path, sizeof path, MF_FIXTURES "/tiny/%s.logits.bin", name);
    mf_buf expected = {0};
    assert_true(mf_file_read(path, 1 << 26, &expected, &err));
    uint32_t head[2];
    memcpy(head, expected.data, sizeof head);
    int32_t n_vocab = (int32_t)head[0];
    assert_int_equal(n_vocab, f->model->hparams.n_vocab);
    static const char *const ids[2] = {"short", "long"};
    double most = 0;
    for (uint32_t sequence = 0; sequence < 2; sequence++) {
        collected c = {calloc(MOST_IDS * (size_t)n_vocab, sizeof(float)), n_vocab};
        evaluate(f, ids[sequence], cells, &c);
        const char *at = expected.data + sizeof head;
        for (uint32_t i = 0; i < head[1]; i++, at += 8 + (size_t)n_vocab * 4) {
            uint32_t where[2];
            memcpy(where, at, sizeof where);
            if (where[0] != sequence) continue;
            float *want = malloc((size_t)n_vocab * sizeof(float));
            memcpy(want, at + 8, (size_t)n_vocab * sizeof(float));
            double d = distance(c.rows + (size_t)where[1] * (size_t)n_vocab, want, n_vocab);
            if (!(d < most)) most = d;
            free(want);
        }
        free(c.rows);
    }
    free(expected.data);
    return most;
}

static void check(const char *name, double bound_f32, double bound_f16) {
    char path[512];
    snprintf(path, sizeof path, MF_FIXTURES "/tiny/%s.gguf", name);
    for (const mf_kernels *const *k = mf_kernels_all(); *k; k++) {
        if (!(*k)->usable(mf_cpu_features_get())) continue;
        fixture f;
        mf_error err = {0};
        if (!fixture_open(&f, path, (*k)->name, 2, &err)) fail_msg("%s", err.text);
        double f32 = worst(&f, name, MF_TYPE_F32), f16 = worst(&f, name, MF_TYPE_F16);
        print_message("%-12s %-8s f32 cells %.2e, f16 cells %.2e\n", name, (*k)->name, f32, f16);
        assert_true(f32 < bound_f32);
        assert_true(f16 < bound_f16);
        fixture_close(&f);
    }
}

static void llama_f32(void **state) { (void)state, check("llama-f32", 1e-4, 1e-2); }
static void llama3_f16(void **state) { (void)state, check("llama3-f16", 1e-4, 1e-2); }
static void qwen2_f32(void **state) { (void)state, check("qwen2-f32", 1e-4, 1e-2); }
static void qwen3_f16(void **state) { (void)state, check("qwen3-f16", 1e-4, 1e-2); }
static void llama_mix(void **state) { (void)state, check("llama-mix", 1e-1, 1e-1); }
static void qwen2_mix(void **state) { (void)state, check("qwen2-mix", 1e-1, 1e-1); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_f32), cmocka_unit_test(llama3_f16), cmocka_unit_test(qwen2_f32),
        cmocka_unit_test(qwen3_f16), cmocka_unit_test(llama_mix),  cmocka_unit_test(qwen2_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
