// The promise of docs/arithmetic.md, on logits and bitwise: the same bytes with any number of threads, any batch size, alone or among
// others, fused or not, on every kernel row that runs here; and the golden hashes of tests/fixtures/golden.txt.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels.h"
#include "base/version.h"
#include "engine/fixture.h"

#define MOST_ROWS 400
#define N_DECODE  8
#define N_OTHERS  7

static const char *const models[] = {"llama-f32", "llama3-f16", "llama-mix", "qwen2-f32", "qwen2-mix", "qwen3-f16"};

typedef struct trace { // a hash of the logits at each position, and what was generated
    uint64_t rows[MOST_ROWS];
    int32_t n_rows;
    int32_t tokens[N_DECODE];
    int32_t n_tokens;
} trace;

typedef struct setup {
    const char *row;
    int n_threads;
    int32_t n_batch;
    bool others;
    unsigned fuse;
    mf_type cells;
} setup;

static uint64_t fnv(uint64_t hash, const void *data, size_t size) {
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3U;
    return hash;
}

static void record(void *arg, mf_sequence *seq, int32_t position, const float *logits, int32_t n_vocab) {
    (void)seq;
    trace *t = arg;
    assert_in_range(position, 0, MOST_ROWS - 1);
    t->rows[position] = fnv(0xcbf29ce484222325U, logits, (size_t)n_vocab * sizeof *logits);
    if (position >= t->n_rows) t->n_rows = position + 1;
}

static mf_sequence *start(mf_engine *e, const mf_sampler_params *greedy, trace *t, const int32_t *ids, int32_t n) {
    mf_sequence_params p;
    mf_sequence_params_init(&p);
    p.sampler = greedy, p.max_tokens = N_DECODE;
    if (t) p.all_logits = true, p.on_logits = record, p.arg = t;
    mf_error err = {0};
    mf_sequence *s = mf_sequence_new(e, &p, &err);
    if (!s || !mf_sequence_append(s, ids, (size_t)n, &err)) fail_msg("%s", err.text);
    return s;
}

static void run(const fixture *f, const setup *how, const int32_t *ids, int32_t n, trace *t) {
    mf_error err = {0};
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = 2048, p.n_batch = how->n_batch, p.max_seqs = 1 + N_OTHERS, p.max_outs = how->n_batch + N_OTHERS,
    p.kv_type = how->cells;
    p.fuse = how->fuse;
    mf_engine *e = mf_engine_new(f->model, &f->devices, &p, &err);
    if (!e) fail_msg("%s", err.text);
    mf_sampler_params greedy;
    mf_sampler_params_init(&greedy);
    greedy.temp = 0;
    *t = (trace){0};
    mf_sequence *others[N_OTHERS] = {0}, *seen = NULL;
    for (int i = 0; i < N_OTHERS + 1; i++) {
        if (i == 3) seen = start(e, &greedy, t, ids, n);
        if (i < N_OTHERS && how->others)
            others[i] = start(e, &greedy, NULL, ids + 5 * (i + 1), 11 + 9 * i < n / 2 ? 11 + 9 * i : n / 2);
    }
    while (!mf_engine_idle(e)) {
        const mf_event *events;
        size_t n_events;
        if (!mf_engine_step(e, &events, &n_events, &err)) fail_msg("%s", err.text);
        for (size_t i = 0; i < n_events; i++) {
            if (events[i].finish == MF_FINISH_ERROR) fail_msg("%s", events[i].error.text);
            if (events[i].seq == seen && events[i].token >= 0) t->tokens[t->n_tokens++] = events[i].token;
        }
    }
    for (int i = 0; i < N_OTHERS; i++) mf_sequence_free(others[i]);
    mf_sequence_free(seen);
    mf_engine_free(e);
}

static void open_model(fixture *f, const char *name, const char *row, int n_threads) {
    char path[512];
    mf_error err = {0};
    snprintf(path, sizeof path, MF_FIXTURES "/tiny/%s.gguf", name);
    if (!fixture_open(f, path, row, n_threads, &err)) fail_msg("%s: %s", name, err.text);
}

static int32_t load_ids(const char *name, int32_t *ids) {
    char path[512];
    snprintf(path, sizeof path, MF_FIXTURES "/tiny/%s.ids.txt", name);
    int32_t n = fixture_ids(path, ids, MOST_ROWS);
    assert_true(n > 0);
    return n;
}

static void compare(const trace *want, const trace *got, const char *model, const setup *how) {
    assert_int_equal(want->n_rows, got->n_rows);
    for (int32_t i = 0; i < want->n_rows; i++)
        if (want->rows[i] != got->rows[i])
            fail_msg("%s: logits differ at position %d (row %s, %d threads, batch %d, %s, fusions %x)", model, i, how->row,
                     how->n_threads, how->n_batch, how->others ? "with others" : "alone", how->fuse);
    assert_memory_equal(want->tokens, got->tokens, sizeof want->tokens);
}

// Every setting on one kernel row against one thread, whole batch, alone, unfused, on the scalar row.
static void matrix(const char *model, const char *row, bool whole, const char *ids_name) {
    static const int32_t batches[] = {1, 7, 64, 512};
    int32_t ids[MOST_ROWS], n = load_ids(ids_name, ids);
    setup base = {"scalar", 1, 512, false, 0, MF_TYPE_F16};
    trace want, got;
    fixture f;
    open_model(&f, model, base.row, base.n_threads);
    run(&f, &base, ids, n, &want);
    fixture_close(&f);
    assert_int_equal(want.n_rows, n + N_DECODE - 1);
    for (int threads = 1; threads <= 3; threads++) {
        open_model(&f, model, row, threads);
        for (size_t b = 0; b < sizeof batches / sizeof batches[0]; b++)
            for (int others = 0; others < 2; others++) {
                if (!whole && threads + (int)b + others != 3) continue;
                setup how = {row, threads, batches[b], others, MF_FUSE_ALL, MF_TYPE_F16};
                run(&f, &how, ids, n, &got);
                compare(&want, &got, model, &how);
            }
        for (unsigned fuse = 0; fuse < MF_FUSE_ALL && threads == 2; fuse = fuse ? fuse * 2 : 1) {
            setup how = {row, threads, 64, false, fuse, MF_TYPE_F16};
            run(&f, &how, ids, n, &got);
            compare(&want, &got, model, &how);
        }
        fixture_close(&f);
    }
}

static void each_row(const char *ids_name) {
    for (const mf_kernels *const *k = mf_kernels_all(); *k; k++) {
        if (!(*k)->usable(mf_cpu_features_get())) continue;
        bool scalar = strcmp((*k)->name, "scalar") == 0;
        for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) matrix(models[m], (*k)->name, !scalar, ids_name);
    }
}

static void short_prompt(void **state) { (void)state, each_row("short"); }
static void long_prompt(void **state) {
    (void)state;
    matrix("llama-mix", NULL, true, "long");
    matrix("qwen2-mix", NULL, true, "long");
}

// tests/fixtures/golden.txt: "arithmetic N", then lines of model, cells, hash. With MINFER_GOLDEN_WRITE the file is written.
static void golden(void **state) {
    (void)state;
    int32_t ids[MOST_ROWS], n = load_ids("long", ids);
    static const mf_type cells[] = {MF_TYPE_F32, MF_TYPE_F16};
    FILE *out = getenv("MINFER_GOLDEN_WRITE") ? fopen(MF_FIXTURES "/golden.txt", "w") : NULL;
    FILE *in = out ? NULL : fopen(MF_FIXTURES "/golden.txt", "r");
    assert_true(in || out);
    int version = 0;
    if (out) fprintf(out, "arithmetic %d\n", MF_ARITHMETIC_VERSION);
    if (in) assert_int_equal(fscanf(in, "arithmetic %d", &version), 1);
    if (in) assert_int_equal(version, MF_ARITHMETIC_VERSION);
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++)
        for (int c = 0; c < 2; c++) {
            char name[32], type[8];
            unsigned long long expected = 0;
            if (in) {
                assert_int_equal(fscanf(in, "%31s %7s %llx", name, type, &expected), 3);
                assert_string_equal(name, models[m]);
            }
            for (const mf_kernels *const *k = mf_kernels_all(); *k; k++) {
                if (!(*k)->usable(mf_cpu_features_get())) continue;
                fixture f;
                trace t;
                setup how = {(*k)->name, 2, 128, false, MF_FUSE_ALL, cells[c]};
                open_model(&f, models[m], (*k)->name, 2);
                run(&f, &how, ids, n, &t);
                fixture_close(&f);
                uint64_t hash = fnv(0xcbf29ce484222325U, t.rows, sizeof t.rows[0] * (size_t)t.n_rows);
                if (out && !expected)
                    expected = hash, fprintf(out, "%s %s %016llx\n", models[m], mf_type_name(cells[c]), expected);
                if (hash != expected)
                    fail_msg("%s with %s cells on row %s: %016llx, golden %016llx", models[m], mf_type_name(cells[c]),
                             (*k)->name, (unsigned long long)hash, expected);
            }
        }
    if (in) fclose(in);
    if (out) fclose(out);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_prompt), cmocka_unit_test(long_prompt),
                                       cmocka_unit_test(golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
