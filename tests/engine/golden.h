// Runs of a model as hashes of its logits, and the golden hashes of tests/fixtures/golden.txt: "arithmetic N", then a line of model,
// cell type and hash for each of the tiny models with f32, f16 and, where its heads are wide enough, q8_0 cells. The hash is FNV-1a over the hashes (FNV-1a) of the logits at
// each position of long.ids.txt and of 8 greedy tokens behind it.
#ifndef TESTS_ENGINE_GOLDEN_H
#define TESTS_ENGINE_GOLDEN_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "backend/cpu/kernels.h"
#include "base/version.h"
#include "engine/fixture.h"

#define MOST_ROWS 400
#define N_DECODE  8
#define N_OTHERS  7

static const char *const golden_models[] = {"llama-f32", "llama3-f16", "llama-mix", "qwen2-f32", "qwen2-mix", "qwen3-f16"};
#define GOLDEN_MODELS (sizeof golden_models / sizeof golden_models[0])

typedef struct trace { // a hash of the logits at each position, and what was generated
    uint64_t rows[MOST_ROWS];
    int32_t n_rows;
    int32_t tokens[N_DECODE];
    int32_t n_tokens;
    int32_t n_cached; // of the prompt's tokens, taken from the prefix cache
} trace;

typedef struct setup {
    const char *row;
    int n_threads;
    int32_t n_batch;
    bool others; // seven other sequences run beside it
    unsigned fuse;
    mf_type cells;
    bool warm; // the prompt has run before: rows that are not evaluated again have no hash (0)
} setup;

static inline uint64_t fnv(const void *data, size_t size) {
    const uint8_t *bytes = data;
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 0x100000001b3U;
    return hash;
}

// A position that the trace has no place for is left out: its n_rows is then not what is expected.
static inline void trace_record(void *arg, mf_sequence *seq, int32_t position, const float *logits, int32_t n_vocab) {
    (void)seq;
    trace *t = arg;
    if (position < 0 || position >= MOST_ROWS) return;
    t->rows[position] = fnv(logits, (size_t)n_vocab * sizeof *logits);
    if (position >= t->n_rows) t->n_rows = position + 1;
}

static inline mf_sequence *trace_start(mf_engine *e, trace *t, bool all_rows, const int32_t *ids, int32_t n, mf_error *err) {
    mf_sampler_params greedy;
    mf_sampler_params_init(&greedy);
    greedy.temp = 0;
    mf_sequence_params p;
    mf_sequence_params_init(&p);
    p.sampler = &greedy, p.max_tokens = N_DECODE;
    if (t) p.logits_from = all_rows ? 0 : -1, p.on_logits = trace_record, p.arg = t;
    mf_sequence *s = mf_sequence_new(e, &p, err);
    if (s && mf_sequence_append(s, ids, (size_t)n, err)) return s;
    mf_sequence_free(s);
    return NULL;
}

static inline bool trace_steps(mf_engine *e, const mf_sequence *seen, trace *t, mf_error *err) {
    while (!mf_engine_idle(e)) {
        const mf_event *events;
        size_t n_events;
        if (!mf_engine_step(e, &events, &n_events, err)) return false;
        for (size_t i = 0; i < n_events; i++) {
            if (events[i].finish == MF_FINISH_ERROR) {
                *err = events[i].error;
                return false;
            }
            if (events[i].seq == seen && events[i].token >= 0 && t->n_tokens < N_DECODE) {
                t->tokens[t->n_tokens++] = events[i].token;
            }
        }
    }
    return true;
}

// The tokens through the model, then N_DECODE more. False with err.
static inline bool trace_run(const fixture *f, const setup *how, const int32_t *ids, int32_t n, trace *t, mf_error *err) {
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = 2048, p.n_batch = how->n_batch, p.max_seqs = 1 + N_OTHERS, p.max_outs = how->n_batch + N_OTHERS,
    p.kv_type = how->cells;
    p.fuse = how->fuse;
    mf_engine *e = mf_engine_new(f->model, &f->devices, &p, err);
    if (!e) return false;
    *t = (trace){0};
    mf_sequence *others[N_OTHERS] = {0}, *seen = NULL;
    bool ok = true;
    if (how->warm) {
        mf_sequence *before = trace_start(e, NULL, false, ids, n, err);
        ok = before && trace_steps(e, NULL, t, err);
        mf_sequence_free(before);
    }
    for (int i = 0; ok && i < N_OTHERS + 1; i++) {
        if (i == 3) ok = (seen = trace_start(e, t, !how->warm, ids, n, err)) != NULL;
        if (!ok || i == N_OTHERS || !how->others) continue;
        ok = (others[i] = trace_start(e, NULL, false, ids + 5 * (i + 1), 11 + 9 * i < n / 2 ? 11 + 9 * i : n / 2, err)) !=
             NULL;
    }
    ok = ok && trace_steps(e, seen, t, err);
    t->n_cached = ok ? mf_sequence_n_cached(seen) : 0;
    for (int i = 0; i < N_OTHERS; i++) mf_sequence_free(others[i]);
    mf_sequence_free(seen);
    mf_engine_free(e);
    return ok;
}

static inline int32_t golden_ids(const char *fixtures, const char *name, int32_t *ids) {
    char path[512];
    snprintf(path, sizeof path, "%s/tiny/%s.ids.txt", fixtures, name);
    return fixture_ids(path, ids, MOST_ROWS);
}

static inline bool golden_open(fixture *f, const char *fixtures, const char *model, const char *row, int n_threads,
                               mf_error *err) {
    char path[512];
    snprintf(path, sizeof path, "%s/tiny/%s.gguf", fixtures, model);
    return fixture_open(f, path, row, n_threads, err);
}

typedef struct golden_options {
    const char *fixtures;            // the folder
    const char *model, *row, *cells; // only these (NULL: all)
    int n_threads;
    bool write;   // golden.txt out of what the rows give, which must be one hash
    FILE *report; // a line for each hash (NULL: none)
} golden_options;

static inline bool golden_hash(const golden_options *o, const char *model, const char *row, mf_type cells, uint64_t *hash,
                               mf_error *err) {
    int32_t ids[MOST_ROWS], n = golden_ids(o->fixtures, "long", ids);
    const setup how = {row, o->n_threads, 128, false, MF_FUSE_ALL, cells, false};
    fixture f;
    trace t;
    if (n < 1) return mf_fail(err, MF_ERR_IO, "no long.ids.txt in '%s'", o->fixtures);
    if (!golden_open(&f, o->fixtures, model, row, o->n_threads, err)) return false;
    const bool ok = trace_run(&f, &how, ids, n, &t, err);
    fixture_close(&f);
    *hash = ok ? fnv(t.rows, sizeof t.rows[0] * (size_t)t.n_rows) : 0;
    return ok;
}

// One line of the file on each row of the table that runs here; *expected is 0 where it is still to be found.
static inline bool golden_line(const golden_options *o, const char *model, mf_type cells, uint64_t *expected, int *n,
                               mf_error *err) {
    for (const mf_kernels *const *k = mf_kernels_all(); *k; k++) {
        uint64_t hash = 0;
        if (!(*k)->usable(mf_cpu_features_get()) || (o->row && strcmp(o->row, (*k)->name) != 0)) continue;
        if (!golden_hash(o, model, (*k)->name, cells, &hash, err)) return false;
        if (o->write && !*expected) *expected = hash;
        if (o->report) fprintf(o->report, "%-8s %-10s %s %016" PRIx64 "\n", (*k)->name, model, mf_type_name(cells), hash);
        if (o->report) fflush(o->report);
        if (hash != *expected)
            return mf_fail(err, MF_ERR_ARGUMENT, "%s with %s cells on row %s: %016" PRIx64 ", golden %016" PRIx64, model,
                           mf_type_name(cells), (*k)->name, hash, *expected);
        ++*n;
    }
    return true;
}

// Whether a model's heads are a multiple of 32 wide.
static inline bool golden_wide(const char *model) {
    static const char *const wide[] = {"llama-mix", "qwen2-mix", "qwen3-f16"};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (strcmp(model, wide[i]) == 0) return true;
    return false;
}

static inline bool golden_lines(const golden_options *o, FILE *file, int *n, mf_error *err) {
    static const mf_type cells[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
    int version = MF_ARITHMETIC_VERSION;
    if (o->write) fprintf(file, "arithmetic %d\n", version);
    if (!o->write && (fscanf(file, "arithmetic %d", &version) != 1 || version != MF_ARITHMETIC_VERSION))
        return mf_fail(err, MF_ERR_ARGUMENT, "golden.txt is not of arithmetic %d", MF_ARITHMETIC_VERSION);
    for (size_t m = 0; m < GOLDEN_MODELS; m++)
        for (size_t c = 0; c < sizeof cells / sizeof cells[0]; c++) {
            if (cells[c] == MF_TYPE_Q8_0 && !golden_wide(golden_models[m])) continue;
            char name[32], type[8];
            uint64_t expected = 0;
            if (!o->write && (fscanf(file, "%31s %7s %" SCNx64, name, type, &expected) != 3 ||
                              strcmp(name, golden_models[m]) != 0 || strcmp(type, mf_type_name(cells[c])) != 0))
                return mf_fail(err, MF_ERR_ARGUMENT, "golden.txt has no line for %s with %s cells in its place",
                               golden_models[m], mf_type_name(cells[c]));
            if (o->model && strcmp(o->model, golden_models[m]) != 0) continue;
            if (o->cells && strcmp(o->cells, mf_type_name(cells[c])) != 0) continue;
            if (!golden_line(o, golden_models[m], cells[c], &expected, n, err)) return false;
            if (o->write) fprintf(file, "%s %s %016" PRIx64 "\n", golden_models[m], mf_type_name(cells[c]), expected);
        }
    return true;
}

// How many hashes were the golden ones; -1 with err when one was not.
static inline int golden_check(const golden_options *o, mf_error *err) {
    char path[512];
    int n = 0;
    snprintf(path, sizeof path, "%s/golden.txt", o->fixtures);
    FILE *file = fopen(path, o->write ? "w" : "r");
    if (!file) {
        mf_fail(err, MF_ERR_IO, "cannot open '%.300s'", path);
        return -1;
    }
    const bool ok = golden_lines(o, file, &n, err);
    fclose(file);
    return ok ? n : -1;
}

#endif
