// A model's logits of every row of a sequence, and how far two rows of logits are apart.
#ifndef TESTS_ENGINE_LOGITS_H
#define TESTS_ENGINE_LOGITS_H

#include <string.h>

#include "engine/fixture.h"

#define MOST_IDS 512

static inline void logits_collect(void *arg, mf_sequence *seq, int32_t position, const float *logits, int32_t n_vocab) {
    (void)seq;
    memcpy((float *)arg + (size_t)position * (size_t)n_vocab, logits, (size_t)n_vocab * sizeof *logits);
}

static inline bool logits_run(mf_engine *e, const int32_t *ids, int32_t n, float *rows, mf_error *err) {
    mf_sequence_params sp;
    mf_sequence_params_init(&sp);
    sp.logits_from = 0, sp.on_logits = logits_collect, sp.arg = rows;
    mf_sequence *s = mf_sequence_new(e, &sp, err);
    bool ok = s && mf_sequence_append(s, ids, (size_t)n, err);
    while (ok && !mf_engine_idle(e)) {
        const mf_event *events;
        size_t n_events;
        ok = mf_engine_step(e, &events, &n_events, err);
        for (size_t i = 0; ok && i < n_events; i++)
            if (events[i].finish == MF_FINISH_ERROR) *err = events[i].error, ok = false;
    }
    mf_sequence_free(s);
    return ok;
}

// [n][n_vocab], freed by the caller; NULL with err. n_ctx: the context to configure.
static inline float *logits_of(fixture *f, const int32_t *ids, int32_t n, int32_t n_ctx, mf_type cells, mf_error *err) {
    float *rows = calloc((size_t)n * (size_t)f->model->hparams.n_vocab, sizeof *rows);
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = n_ctx, p.n_batch = p.max_outs = n_ctx < 128 ? n_ctx : 128, p.kv_type = cells;
    mf_engine *e = mf_engine_new(f->model, &f->devices, &p, err);
    bool ok = rows && e && logits_run(e, ids, n, rows, err);
    mf_engine_free(e);
    if (ok) return rows;
    free(rows);
    return NULL;
}

// The distance of two rows of logits relative to the spread of the expected ones: |got - want|_2 / |want - mean|_2.
static inline double logits_distance(const float *got, const float *want, int32_t n) {
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

#endif
