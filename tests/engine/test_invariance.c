// The promise of docs/arithmetic.md, on logits and bitwise: the same bytes with any number of threads, any batch size, alone or among
// others, fused or not, on every kernel row that runs here; and the golden hashes of tests/fixtures/golden.txt.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/golden.h"

static void run(const fixture *f, const setup *how, const int32_t *ids, int32_t n, trace *t) {
    mf_error err = {0};
    if (!trace_run(f, how, ids, n, t, &err)) fail_msg("%s", err.text);
}

static void open_model(fixture *f, const char *name, const char *row, int n_threads) {
    mf_error err = {0};
    if (!golden_open(f, MF_FIXTURES, name, row, n_threads, &err)) fail_msg("%s: %s", name, err.text);
}

static int32_t load_ids(const char *name, int32_t *ids) {
    int32_t n = golden_ids(MF_FIXTURES, name, ids);
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

// Builds with sanitizers are slow: they take a part of the settings.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

// Every setting on one kernel row against one thread, whole batch, alone, unfused, on the scalar row.
static void matrix(const char *model, const char *row, mf_type cells, bool whole, const char *ids_name) {
    static const int32_t batches[] = {1, 7, 64, 512};
    whole = whole && !SANITIZED;
    int32_t ids[MOST_ROWS], n = load_ids(ids_name, ids);
    setup base = {"scalar", 1, 512, false, 0, cells};
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
                setup how = {row, threads, batches[b], others, MF_FUSE_ALL, cells};
                run(&f, &how, ids, n, &got);
                compare(&want, &got, model, &how);
            }
        for (unsigned fuse = 0; fuse < MF_FUSE_ALL && threads == 2; fuse = fuse ? fuse * 2 : 1) {
            setup how = {row, threads, 64, false, fuse, cells};
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
        for (size_t m = 0; m < GOLDEN_MODELS; m += SANITIZED ? 2 : 1)
            matrix(golden_models[m], (*k)->name, MF_TYPE_F16, !scalar, ids_name);
        for (size_t m = 0; m < GOLDEN_MODELS; m++)
            if (golden_wide(golden_models[m])) matrix(golden_models[m], (*k)->name, MF_TYPE_Q8_0, false, ids_name);
    }
}

static void short_prompt(void **state) { (void)state, each_row("short"); }
static void long_prompt(void **state) {
    (void)state;
    matrix("llama-mix", NULL, MF_TYPE_F16, true, "long");
    matrix("qwen2-mix", NULL, MF_TYPE_F16, true, "long");
    matrix("qwen2-mix", NULL, MF_TYPE_Q8_0, true, "long");
}

// With MINFER_GOLDEN_WRITE the file is written.
static void golden(void **state) {
    (void)state;
    const golden_options o = {.fixtures = MF_FIXTURES, .n_threads = 2, .write = getenv("MINFER_GOLDEN_WRITE") != NULL};
    mf_error err = {0};
    if (golden_check(&o, &err) < 1) fail_msg("%s", err.text);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_prompt), cmocka_unit_test(long_prompt),
                                       cmocka_unit_test(golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
