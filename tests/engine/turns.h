// A long text in turns, for the tests of sessions: a folder, a model, and sequences that are asked turn by turn.
#ifndef MF_TESTS_ENGINE_TURNS_H
#define MF_TESTS_ENGINE_TURNS_H

#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/golden.h"
#include "engine/session.h"
#include "support/folder.h"

enum {
    PROMPT = 150,
    TURN = 40,
    TURNS = 4
};

static char folder[64], path[96];
static int32_t ids[MOST_ROWS];
static fixture model;

static inline void good(bool ok, const mf_error *err) {
    if (!ok) fail_msg("%s", err->text);
}

static inline mf_engine *engine(const fixture *f, mf_type cells, int32_t n_ctx) {
    mf_engine_params p;
    mf_error err = {0};
    mf_engine_params_init(&p);
    p.n_ctx = n_ctx, p.n_batch = 64, p.max_seqs = 2, p.kv_type = cells;
    mf_engine *e = mf_engine_new(f->model, &f->devices, &p, &err);
    good(e != NULL, &err);
    return e;
}

static inline mf_sequence *sequence_with(mf_engine *e, const mf_sampler_params *sampler, trace *t) {
    mf_sequence_params p;
    mf_error err = {0};
    mf_sequence_params_init(&p);
    p.sampler = sampler, p.max_tokens = N_DECODE;
    if (t) p.on_logits = trace_record, p.arg = t;
    mf_sequence *s = mf_sequence_new(e, &p, &err);
    good(s != NULL, &err);
    return s;
}

static inline mf_sequence *sequence(mf_engine *e, trace *t) { // greedy
    mf_sampler_params greedy;
    mf_sampler_params_init(&greedy);
    greedy.temp = 0;
    return sequence_with(e, &greedy, t);
}

// A turn: the prompt or the next tokens of the text, and the answer.
static inline void turn(mf_engine *e, mf_sequence *s, trace *t, int number) {
    mf_error err = {0};
    int32_t first = number ? PROMPT + (number - 1) * TURN : 0, n = number ? TURN : PROMPT;
    trace unseen = {0};
    if (t) *t = (trace){0};
    good(mf_sequence_append(s, ids + first, (size_t)n, &err), &err);
    good(trace_steps(e, s, t ? t : &unseen, &err), &err);
}

static inline int turns_set_up(void **state) {
    (void)state;
    mf_error err = {0};
    if (!folder_make(folder, "session") || golden_ids(MF_FIXTURES, "long", ids) < PROMPT + (TURNS - 1) * TURN) return -1;
    snprintf(path, sizeof path, "%s/chat.kv", folder);
    return golden_open(&model, MF_FIXTURES, "qwen2-mix", NULL, 2, &err) ? 0 : -1;
}

static inline int turns_tear_down(void **state) {
    (void)state;
    fixture_close(&model);
    unlink(path);
    return rmdir(folder); // fails where a temporary file is left
}

#endif
