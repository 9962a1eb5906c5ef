// The promise of docs/arithmetic.md, on logits and bitwise: the same bytes with any number of threads, any batch size, alone or among
// others, fused or not, cold or from a cached prefix, with every weight type and cell format, on every kernel row that runs here; and the golden hashes of tests/fixtures/golden.txt.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/golden.h"
#include "support/tinymodel.h"

static void run(const fixture *f, const setup *how, const int32_t *ids, int32_t n, trace *t) {
    mf_error err = {0};
    if (!trace_run(f, how, ids, n, t, &err)) fail_msg("%s", err.text);
}

// A model by its name in tests/fixtures/tiny, or a generated one of which every matrix has another type ("all:llama").
typedef struct subject {
    const char *name;
    uint8_t *bytes; // of a generated one
    size_t size;
} subject;

static subject subject_of(const char *name) {
    subject s = {.name = name};
    if (strncmp(name, "all:", 4) != 0) return s;
    const tinymodel m = {.arch = name + 4,
                         .types = tinymodel_types + 2, // 13 types over 14 matrices
                         .n_types = TINYMODEL_N_TYPES - 2,
                         .embd = MF_TYPE_Q5_1,
                         .head = MF_TYPE_F16,
                         .vectors = MF_TYPE_F32,
                         .seed = 77};
    s.bytes = tinymodel_make(&m, &s.size);
    return s;
}

static void open_model(fixture *f, const subject *s, const char *row, int n_threads) {
    mf_error err = {0};
    const bool ok = s->bytes ? fixture_of(f, mf_gguf_open_memory(s->bytes, s->size, &err), row, n_threads, &err)
                             : golden_open(f, MF_FIXTURES, s->name, row, n_threads, &err);
    if (!ok) fail_msg("%s: %s", s->name, err.text);
}

static int32_t load_ids(const char *name, int32_t *ids) {
    int32_t n = golden_ids(MF_FIXTURES, name, ids);
    assert_true(n > 0);
    return n;
}

static void compare(const trace *want, const trace *got, const char *model, const setup *how) {
    assert_int_equal(want->n_rows, got->n_rows);
    int32_t n = 0;
    for (int32_t i = 0; i < want->n_rows; i++) {
        n += got->rows[i] != 0;
        if (want->rows[i] != got->rows[i] && !(how->warm && got->rows[i] == 0))
            fail_msg("%s: logits differ at position %d (row %s, %d threads, batch %d, %s, fusions %x, %s cells, %s)", model,
                     i, how->row ? how->row : "best", how->n_threads, how->n_batch, how->others ? "with others" : "alone",
                     how->fuse, mf_type_name(how->cells), how->warm ? "warm" : "cold");
    }
    assert_int_equal(n, how->warm ? N_DECODE : want->n_rows);
    assert_true((got->n_cached >= 64) == how->warm);
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

// How much of the matrix is run: a cold and a warm run with three threads or two, a sample of the batch sizes and threads, or all pairs.
typedef enum share {
    FEW,
    SAMPLE,
    WHOLE
} share;

// The settings on one kernel row against `want`: threads, batch sizes, alone and among others, fusions, a warm prefix.
static void settings_of_row(const subject *s, const char *row, mf_type cells, share part, const int32_t *ids, int32_t n,
                            const trace *want) {
    static const int32_t batches[] = {1, 7, 64, 512};
    const setup warm = {row, 2, 64, true, MF_FUSE_ALL, cells, true};
    trace got;
    for (int threads = 1; threads <= 3; threads++) {
        fixture f;
        open_model(&f, s, row, threads);
        for (int b = 0; b < 4; b++) {
            const bool others = (threads + b) % 2;
            if (part == SAMPLE && (threads + b) % 3 != 1) continue;
            if (part == FEW && (threads != 3 || b != 1)) continue;
            const setup how = {row, threads, batches[b], others, MF_FUSE_ALL, cells, false};
            run(&f, &how, ids, n, &got);
            compare(want, &got, s->name, &how);
        }
        for (unsigned fuse = 0; fuse < MF_FUSE_ALL && threads == 2; fuse = fuse ? fuse * 2 : 1) {
            if (part < SAMPLE + (fuse != 0)) continue;
            const setup how = {row, threads, 64, false, fuse, cells, false};
            run(&f, &how, ids, n, &got);
            compare(want, &got, s->name, &how);
        }
        if (threads == warm.n_threads) {
            run(&f, &warm, ids, n, &got);
            compare(want, &got, s->name, &warm);
        }
        fixture_close(&f);
    }
}

// Every kernel row that runs here against one thread, a whole batch, alone, unfused, on the scalar row.
static void matrix(const char *name, mf_type cells, share part, const char *ids_name) {
    int32_t ids[MOST_ROWS], n = load_ids(ids_name, ids);
    const setup base = {"scalar", 1, 512, false, 0, cells, false};
    subject s = subject_of(name);
    trace want;
    fixture f;
    open_model(&f, &s, base.row, base.n_threads);
    run(&f, &base, ids, n, &want);
    fixture_close(&f);
    assert_int_equal(want.n_rows, n + N_DECODE - 1);
    for (const mf_kernels *const *k = mf_kernels_all(); *k; k++) {
        if (!(*k)->usable(mf_cpu_features_get())) continue;
        const bool scalar = strcmp((*k)->name, "scalar") == 0;
        settings_of_row(&s, (*k)->name, cells, scalar || SANITIZED ? FEW : part, ids, n, &want);
    }
    free(s.bytes);
}

static void files(void **state) {
    (void)state;
    for (size_t m = 0; m < GOLDEN_MODELS; m += SANITIZED ? 2 : 1) {
        matrix(golden_models[m], MF_TYPE_F16, SAMPLE, "short");
        if (golden_wide(golden_models[m])) matrix(golden_models[m], MF_TYPE_Q8_0, FEW, "short");
    }
}

static void every_type(void **state) {
    (void)state;
    static const char *const models[] = {"all:llama", "all:qwen2", "all:qwen3"};
    static const mf_type cells[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
    for (size_t m = 0; m < 3; m++)
        for (size_t c = 0; c < 3; c++)
            if (!SANITIZED || c == m) matrix(models[m], cells[c], c != m ? FEW : c == 1 ? WHOLE : SAMPLE, "short");
}

static void long_prompt(void **state) {
    (void)state;
    matrix("llama-mix", MF_TYPE_F16, SAMPLE, "long");
    if (!SANITIZED) matrix("qwen2-mix", MF_TYPE_Q8_0, FEW, "long");
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(files), cmocka_unit_test(every_type), cmocka_unit_test(long_prompt),
                                       cmocka_unit_test(golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
