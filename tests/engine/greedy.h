// Greedy sequences of a small model, for the tests of the engine's contract.
#ifndef MF_TESTS_ENGINE_GREEDY_H
#define MF_TESTS_ENGINE_GREEDY_H

#include "engine/fixture.h"

static fixture model;
static mf_sampler_params greedy;

static inline int open_model(void **state) {
    (void)state;
    mf_error err = {0};
    mf_sampler_params_init(&greedy);
    greedy.temp = 0;
    return fixture_open(&model, MF_FIXTURES "/tiny/llama-mix.gguf", NULL, 2, &err) ? 0 : -1;
}

static inline int close_model(void **state) {
    (void)state;
    fixture_close(&model);
    return 0;
}

static inline mf_engine *engine(int32_t n_ctx, int32_t n_batch, int32_t max_seqs) {
    mf_engine_params p;
    mf_error err = {0};
    mf_engine_params_init(&p);
    p.n_ctx = n_ctx, p.n_batch = n_batch, p.max_seqs = max_seqs;
    mf_engine *e = mf_engine_new(model.model, &model.devices, &p, &err);
    if (!e) fail_msg("%s", err.text);
    return e;
}

static inline mf_sequence *sequence(mf_engine *e, int32_t max_tokens) {
    mf_sequence_params p;
    mf_error err = {0};
    mf_sequence_params_init(&p);
    p.sampler = &greedy, p.max_tokens = max_tokens;
    mf_sequence *s = mf_sequence_new(e, &p, &err);
    if (!s) fail_msg("%s", err.text);
    return s;
}

// Steps until idle; the finish of the last event.
static inline mf_finish drain(mf_engine *e, mf_error *why) {
    mf_finish last = MF_FINISH_NONE;
    mf_error err = {0};
    while (!mf_engine_idle(e)) {
        const mf_event *events;
        size_t n;
        if (!mf_engine_step(e, &events, &n, &err)) fail_msg("%s", err.text);
        for (size_t i = 0; i < n; i++) {
            last = events[i].finish;
            if (why && last == MF_FINISH_ERROR) *why = events[i].error;
        }
    }
    return last;
}

#endif
