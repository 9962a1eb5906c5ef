#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/session.h"
#include "engine/state.h"

void mf_sequence_params_init(mf_sequence_params *params) {
    *params = (mf_sequence_params){.max_tokens = -1, .logits_from = -1};
}

static int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

// From token n on, what a session's file has is out of date.
static void changed_from(mf_sequence *s, int32_t n) {
    s->saved_tokens = smaller(s->saved_tokens, n);
    s->saved_cells = smaller(s->saved_cells, n);
}

static int32_t free_slot(const mf_engine *e) {
    for (int32_t i = 0; i < e->params.max_seqs; i++)
        if (!e->sequences[i]) return i;
    return -1;
}

mf_sequence *mf_sequence_new(mf_engine *e, const mf_sequence_params *params, mf_error *err) {
    int32_t slot = free_slot(e);
    if (slot < 0) return mf_fail(err, MF_ERR_LIMIT, "all %d sequences are in use", e->params.max_seqs), NULL;
    mf_sequence *s = mf_alloc(1, sizeof *s);
    if (!s) return mf_fail_memory(err, sizeof *s, "a sequence"), NULL;
    *s = (mf_sequence){.engine = e, .params = *params, .slot = slot};
    size_t cells = (size_t)e->seq_cells + 1;
    bool room = mf_array_reserve(&s->tokens, cells) && mf_array_reserve(&s->table.blocks, cells / MF_KV_BLOCK + 1);
    if (!room) mf_fail_memory(err, cells * sizeof(int32_t), "a sequence");
    if (room && params->sampler) {
        mf_sampler_params sampler = *params->sampler;
        mf_sampler_params_fit(&sampler, e->seq_cells);
        room = (s->sampler = mf_sampler_new(&sampler, e->model->hparams.n_vocab, err)) != NULL;
    }
    if (!room) {
        mf_sequence_free(s);
        return NULL;
    }
    e->sequences[slot] = s;
    return s;
}

void mf_sequence_free(mf_sequence *s) {
    if (!s) return;
    mf_session_close(s->session);
    mf_kv_release(s->engine->kv, &s->table);
    mf_sampler_free(s->sampler);
    free(s->tokens.data);
    if (s->engine->sequences[s->slot] == s) s->engine->sequences[s->slot] = NULL;
    free(s);
}

// Takes what the prefix cache knows of the tokens. The last one is evaluated all the same: its logits are wanted.
static bool take_prefix(mf_sequence *s, mf_error *err) {
    mf_kv_truncate(s->engine->kv, &s->table, 0);
    if (!mf_kv_match(s->engine->kv, s->tokens.data, (int32_t)s->tokens.len, &s->table, err)) return false;
    int32_t last = (int32_t)s->tokens.len - 1;
    s->n_cached = s->n_evaluated = s->table.n_cells < last ? s->table.n_cells : last;
    return true;
}

static bool check_tokens(const mf_sequence *s, const int32_t *ids, size_t n, mf_error *err) {
    size_t cells = (size_t)s->engine->seq_cells;
    int32_t n_vocab = s->engine->model->hparams.n_vocab;
    if (s->failed) return mf_fail(err, MF_ERR_ARGUMENT, "the sequence has failed");
    if (n > cells || s->tokens.len + n > cells)
        return mf_fail(err, MF_ERR_LIMIT, "%zu tokens do not fit into a context of %zu", s->tokens.len + n, cells);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_vocab)
            return mf_fail(err, MF_ERR_ARGUMENT, "token %zu is %d; the vocabulary has %d ids", i, ids[i], n_vocab);
    return true;
}

bool mf_sequence_append(mf_sequence *s, const int32_t *ids, size_t n, mf_error *err) {
    if (!check_tokens(s, ids, n, err)) return false;
    if (n == 0) return true;
    memcpy(s->tokens.data + s->tokens.len, ids, n * sizeof *ids);
    s->tokens.len += n;
    bool bypass = s->n_evaluated > 0 || s->params.logits_from >= 0 || !s->engine->params.prefix_cache;
    if (!bypass && !take_prefix(s, err)) {
        s->tokens.len -= n;
        return false;
    }
    s->n_prompt = (int32_t)s->tokens.len;
    s->n_generated = 0;
    s->active = true;
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
    mf_kv_truncate(s->engine->kv, &s->table, s->n_evaluated);
    changed_from(s, n);
    s->active = false;
    if (!s->sampler) return;
    mf_sampler_reset(s->sampler);
    for (int32_t i = 0; i < n; i++) mf_sampler_accept(s->sampler, s->tokens.data[i]);
}

mf_sampler *mf_sequence_sampler(mf_sequence *s) { return s->sampler; }

bool mf_sequence_shift(mf_sequence *s, int32_t n_keep, int32_t n_discard, mf_error *err) {
    const mf_engine *e = s->engine;
    if (s->failed) return mf_fail(err, MF_ERR_ARGUMENT, "the sequence has failed");
    if (n_keep < 0 || n_discard < 1 || n_discard > s->n_evaluated || n_keep > s->n_evaluated - n_discard)
        return mf_fail(err, MF_ERR_ARGUMENT, "a shift that drops %d tokens behind %d; %d are evaluated", n_discard, n_keep,
                       s->n_evaluated);
    mf_kv_truncate(e->kv, &s->table, s->n_evaluated);
    if (!mf_kv_shift(e->kv, &s->table, n_keep, n_discard, mf_model_rope(e->model, e->seq_cells), err)) return false;
    changed_from(s, n_keep);
    size_t behind = s->tokens.len - (size_t)(n_keep + n_discard);
    memmove(s->tokens.data + n_keep, s->tokens.data + n_keep + n_discard, behind * sizeof *s->tokens.data);
    s->tokens.len -= (size_t)n_discard;
    s->n_evaluated -= n_discard;
    if (s->n_prompt > n_keep) s->n_prompt = s->n_prompt - n_discard > n_keep ? s->n_prompt - n_discard : n_keep;
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
    if (s->n_generated > 0 && mf_sequence_is_stop(s, s->tokens.data[n - 1]))
        return mf_fail(err, MF_ERR_ARGUMENT, "the answer has ended with token %d", s->tokens.data[n - 1]);
    if (s->params.max_tokens >= 0 && s->n_generated >= s->params.max_tokens)
        return mf_fail(err, MF_ERR_LIMIT, "the answer has all of its %d tokens", s->params.max_tokens);
    return n <= (size_t)s->engine->seq_cells ||
           mf_fail(err, MF_ERR_LIMIT, "the answer has filled the context of %d tokens", s->engine->seq_cells);
}

bool mf_sequence_resume(mf_sequence *s, mf_error *err) {
    int32_t n = (int32_t)s->tokens.len;
    if (s->failed) return mf_fail(err, MF_ERR_ARGUMENT, "the sequence has failed");
    if (s->active) return true;
    if (n == 0 || (!s->sampler && s->n_evaluated == n))
        return mf_fail(err, MF_ERR_ARGUMENT, "there is nothing to resume: %d of %d tokens are evaluated", s->n_evaluated, n);
    if (s->sampler && !check_open(s, err)) return false;
    if (s->n_evaluated == n) {
        s->n_evaluated = n - 1;
        mf_kv_truncate(s->engine->kv, &s->table, n - 1);
        s->saved_cells = smaller(s->saved_cells, n - 1);
    }
    s->active = true;
    return true;
}

int32_t mf_sequence_n_ctx(const mf_sequence *s) { return s->engine->seq_cells; }
int32_t mf_sequence_n_tokens(const mf_sequence *s) { return (int32_t)s->tokens.len; }
int32_t mf_sequence_n_evaluated(const mf_sequence *s) { return s->n_evaluated; }
int32_t mf_sequence_n_generated(const mf_sequence *s) {
    return smaller(s->n_generated, (int32_t)s->tokens.len - s->n_prompt);
}
int32_t mf_sequence_n_cached(const mf_sequence *s) { return s->n_cached; }
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
    if (finish == MF_FINISH_ERROR) s->failed = true;
}
