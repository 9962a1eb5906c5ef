#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/session.h"
#include "engine/state.h"

void mf_sequence_params_init(mf_sequence_params *params) {
    *params = (mf_sequence_params){.max_tokens = -1, .logits_from = -1};
}

static int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
static int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }

// From token n on, what a session's file has is out of date.
static void changed_from(mf_sequence *s, int32_t n) {
    s->saved_tokens = smaller(s->saved_tokens, n);
    s->saved_cells = smaller(s->saved_cells, n);
}

static void leave(mf_sequence *s) {
    mf_engine *e = s->engine;
    int32_t i = 0;
    while (i < e->n_sequences && e->sequences[i] != s) i++;
    if (i == e->n_sequences) return;
    memmove(e->sequences + i, e->sequences + i + 1, (size_t)(e->n_sequences - i - 1) * sizeof(mf_sequence *));
    e->n_sequences--;
}

static void arrive(mf_sequence *s) {
    leave(s);
    s->engine->sequences[s->engine->n_sequences++] = s;
}

mf_sequence *mf_sequence_new(mf_engine *e, const mf_sequence_params *params, mf_error *err) {
    if (e->n_sequences == e->params.max_seqs)
        return mf_fail(err, MF_ERR_LIMIT, "all %d sequences are in use", e->params.max_seqs), NULL;
    mf_sequence *s = mf_alloc(1, sizeof *s);
    if (!s) return mf_fail_memory(err, sizeof *s, "a sequence"), NULL;
    *s = (mf_sequence){.engine = e, .params = *params, .n_cached = MF_ALL_CACHED};
    s->params.constraint = NULL; // until it is held
    size_t cells = (size_t)e->seq_cells + 1;
    bool room = mf_array_reserve(&s->tokens, cells) && mf_array_reserve(&s->table.blocks, cells / MF_KV_BLOCK + 1);
    if (!room) mf_fail_memory(err, cells * sizeof(int32_t), "a sequence");
    if (room && params->sampler) {
        mf_sampler_params sampler = *params->sampler;
        mf_sampler_params_fit(&sampler, e->seq_cells);
        room = (s->sampler = mf_sampler_new_over(&sampler, e->scratch, err)) != NULL;
    }
    room = room && mf_constrain_new(s, params->constraint, err);
    if (!room) {
        mf_sequence_free(s);
        return NULL;
    }
    arrive(s);
    return s;
}

void mf_sequence_free(mf_sequence *s) {
    if (!s) return;
    mf_session_close(s->session);
    mf_kv_release(s->engine->kv, &s->table);
    mf_sampler_free(s->sampler);
    mf_constrain_free(s);
    free(s->tokens.data);
    leave(s);
    free(s);
}

static bool check_tokens(const mf_sequence *s, const int32_t *ids, size_t n, mf_error *err) {
    size_t cells = (size_t)s->engine->seq_cells;
    int32_t n_vocab = s->engine->model->hparams.n_vocab;
    if (n > cells || s->tokens.len + n > cells)
        return mf_fail(err, MF_ERR_LIMIT, "%zu tokens do not fit into a context of %zu", s->tokens.len + n, cells);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_vocab)
            return mf_fail(err, MF_ERR_ARGUMENT, "token %zu is %d; the vocabulary has %d ids", i, ids[i], n_vocab);
    return true;
}

// Lets a sequence wait for rows, behind those that came before.
static void wake(mf_sequence *s) {
    if (s->active) return;
    arrive(s);
    s->active = true;
    s->running = false;
}

bool mf_sequence_append(mf_sequence *s, const int32_t *ids, size_t n, mf_error *err) {
    if (!check_tokens(s, ids, n, err)) return false;
    if (n == 0) return true;
    memcpy(s->tokens.data + s->tokens.len, ids, n * sizeof *ids);
    s->tokens.len += n;
    if (!s->active) s->running = false;
    if (!mf_room_find_prefix(s, err)) {
        s->tokens.len -= n;
        return false;
    }
    s->n_prompt = (int32_t)s->tokens.len;
    s->n_generated = 0;
    wake(s);
    for (size_t i = 0; i < n && s->sampler; i++) mf_sampler_accept(s->sampler, ids[i]);
    return true;
}

void mf_sequence_truncate(mf_sequence *s, int32_t n) {
    if (n < 0) n = 0;
    if ((size_t)n >= s->tokens.len) return;
    s->tokens.len = (size_t)n;
    if (s->n_evaluated > n) s->n_evaluated = n;
    if (s->n_prompt > n) s->n_prompt = n;
    s->n_generated = smaller(s->n_generated, n - s->n_prompt);
    if (s->n_seen > n) s->n_seen = n;
    if (s->n_found > n) s->n_found = 0;
    if (s->n_cached >= n) s->n_cached = MF_ALL_CACHED; // it has evaluated none of those that are left
    mf_kv_truncate(s->engine->kv, &s->table, s->n_evaluated);
    changed_from(s, n);
    s->active = false;
    if (!s->sampler) return;
    mf_sampler_reset(s->sampler);
    for (int32_t i = 0; i < n; i++) mf_sampler_accept(s->sampler, s->tokens.data[i]);
}

mf_sampler *mf_sequence_sampler(mf_sequence *s) { return s->sampler; }

// What a count of leading tokens is when n_discard of them behind n_keep are dropped.
static int32_t without(int32_t n, int32_t n_keep, int32_t n_discard) {
    return n <= n_keep ? n : n - n_discard > n_keep ? n - n_discard : n_keep;
}

// Moves the cells. Others give theirs back where there is no room for that.
static bool shift_cells(mf_sequence *s, int32_t n_keep, int32_t n_discard, mf_error *err) {
    mf_engine *e = s->engine;
    if (s->n_evaluated < s->n_seen && !mf_step_again(s, err)) return false;
    mf_kv_truncate(e->kv, &s->table, s->n_evaluated);
    while (mf_kv_shift_needs(e->kv, &s->table, n_keep, n_discard) > mf_kv_free_blocks(e->kv) && mf_room_widen(s))
        ;
    return mf_kv_shift(e->kv, &s->table, n_keep, n_discard, mf_model_rope(e->model, e->seq_cells), err);
}

bool mf_sequence_shift(mf_sequence *s, int32_t n_keep, int32_t n_discard, mf_error *err) {
    int32_t n = larger(s->n_seen, s->n_evaluated);
    if (n_keep < 0 || n_discard < 1 || n_discard > n || n_keep > n - n_discard)
        return mf_fail(err, MF_ERR_ARGUMENT, "a shift that drops %d tokens behind %d; %d are evaluated", n_discard, n_keep,
                       n);
    if (!shift_cells(s, n_keep, n_discard, err)) return false;
    bool placed = mf_constrain_placed(s);
    changed_from(s, n_keep);
    size_t behind = s->tokens.len - (size_t)(n_keep + n_discard);
    memmove(s->tokens.data + n_keep, s->tokens.data + n_keep + n_discard, behind * sizeof *s->tokens.data);
    s->tokens.len -= (size_t)n_discard;
    s->n_evaluated -= n_discard;
    s->n_prompt = without(s->n_prompt, n_keep, n_discard);
    s->n_seen = without(s->n_seen, n_keep, n_discard);
    if (s->n_cached != MF_ALL_CACHED) s->n_cached = without(s->n_cached, n_keep, n_discard);
    s->n_found = 0;
    mf_constrain_moved(s, placed);
    return true;
}

void mf_sequence_stop(mf_sequence *s) { s->active = false; }

bool mf_sequence_is_stop(const mf_sequence *s, int32_t token) {
    for (size_t i = 0; i < s->params.n_stop; i++)
        if (s->params.stop[i] == token) return true;
    return false;
}

// Whether an answer can still grow.
static bool check_open(const mf_sequence *s, mf_error *err) {
    size_t n = s->tokens.len;
    int32_t last = s->tokens.data[n - 1];
    bool ends = s->params.constraint && mf_constraint_is_end(s->params.constraint, last);
    if (s->n_generated > 0 && (ends || mf_sequence_is_stop(s, last)))
        return mf_fail(err, MF_ERR_ARGUMENT, "the answer has ended with token %d", last);
    if (s->params.max_tokens >= 0 && s->n_generated >= s->params.max_tokens)
        return mf_fail(err, MF_ERR_LIMIT, "the answer has all of its %d tokens", s->params.max_tokens);
    return n <= (size_t)s->engine->seq_cells ||
           mf_fail(err, MF_ERR_LIMIT, "the answer has filled the context of %d tokens", s->engine->seq_cells);
}

bool mf_sequence_resume(mf_sequence *s, mf_error *err) {
    int32_t n = (int32_t)s->tokens.len, evaluated = larger(s->n_evaluated, s->n_seen);
    if (s->active) return true;
    if (n == 0 || (!s->sampler && evaluated == n))
        return mf_fail(err, MF_ERR_ARGUMENT, "there is nothing to resume: %d of %d tokens are evaluated", evaluated, n);
    if (s->sampler && !check_open(s, err)) return false;
    s->n_seen = smaller(s->n_seen, n - 1);
    if (s->n_evaluated == n) {
        s->n_evaluated = n - 1;
        mf_kv_truncate(s->engine->kv, &s->table, n - 1);
        s->saved_cells = smaller(s->saved_cells, n - 1);
    }
    wake(s);
    return true;
}

int32_t mf_sequence_n_ctx(const mf_sequence *s) { return s->engine->seq_cells; }
int32_t mf_sequence_n_tokens(const mf_sequence *s) { return (int32_t)s->tokens.len; }
int32_t mf_sequence_n_evaluated(const mf_sequence *s) { return s->n_evaluated; }
int32_t mf_sequence_n_generated(const mf_sequence *s) {
    return smaller(s->n_generated, (int32_t)s->tokens.len - s->n_prompt);
}
int32_t mf_sequence_n_cached(const mf_sequence *s) { return smaller(s->n_cached, s->n_evaluated); }
const int32_t *mf_sequence_tokens(const mf_sequence *s) { return s->tokens.data; }
bool mf_sequence_idle(const mf_sequence *s) { return !s->active; }
uint64_t mf_sequence_n_draws(const mf_sequence *s) { return s->n_draws; }

void mf_sequence_set_draws(mf_sequence *s, uint64_t n) {
    if (n > s->n_draws) s->n_draws = n;
}

void mf_sequence_end(mf_sequence *s, int32_t token, mf_finish finish, const mf_error *why) {
    mf_engine *e = s->engine;
    mf_event *event = &e->events[e->n_events++];
    *event = (mf_event){.seq = s, .token = token, .finish = finish};
    if (why) event->error = *why;
    if (finish != MF_FINISH_NONE) s->active = false;
}
