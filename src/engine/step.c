// The one step: pick rows, run the graph, hand out logits, sample.
#include "engine/state.h"

// Chooses a token as the sampler and the constraint have it. MF_FINISH_NONE, or with err why there is none.
static mf_finish choose(mf_sequence *s, const float *logits, int32_t *token, mf_error *err) {
    mf_token_mask *mask = NULL;
    const uint64_t *allowed = NULL;
    mf_finish finish = mf_constrain_mask(s, &mask, &allowed, err);
    if (finish == MF_FINISH_NONE && !mf_sampler_sample(s->sampler, logits, allowed, s->n_draws++, token, err))
        finish = MF_FINISH_ERROR;
    mf_token_mask_drop(mask);
    return finish;
}

// Takes a token out of the logits of a sequence's last row.
static void generate(mf_sequence *s, const float *logits) {
    int32_t token;
    mf_error err = {0};
    mf_finish none = choose(s, logits, &token, &err);
    if (none != MF_FINISH_NONE) {
        mf_sequence_end(s, -1, none, &err);
        return;
    }
    mf_sampler_accept(s->sampler, token);
    s->n_generated++;
    bool stop = mf_sequence_is_stop(s, token), ends = false;
    bool full = (int32_t)s->tokens.len >= s->engine->seq_cells,
         enough = s->params.max_tokens >= 0 && s->n_generated >= s->params.max_tokens;
    s->tokens.data[s->tokens.len++] = token; // there is room for one token more than there are cells
    if (!mf_constrain_advance(s, &ends, &err)) {
        mf_sequence_end(s, -1, MF_FINISH_ERROR, &err);
        return;
    }
    mf_sequence_end(s, token, stop || ends ? MF_FINISH_STOP : full || enough ? MF_FINISH_LENGTH : MF_FINISH_NONE, NULL);
}

// A row whose activation turned non-finite ends its sequence, naming where, and is cut off with what is behind it.
static bool row_failed(mf_engine *e, int32_t number) {
    const mf_batch *b = &e->batch;
    mf_sequence *s = b->owner[number];
    for (int32_t r = b->first_row[number]; r < b->first_row[number] + b->rows[number]; r++) {
        if (!b->row_error[r]) continue;
        const mf_graph *g = mf_graph_exec_graph(e->exec);
        const mf_node *n = &g->nodes.data[b->row_error[r] - 1];
        mf_error err = {0};
        const char *rows = n->op == MF_OP_GET_ROWS && n->weight ? n->weight->name : NULL; // they are damaged
        mf_fail(&err, MF_ERR_NUMERIC, "token %d: an activation is not finite (%s%s%s into %s)", b->pos[r], mf_op_name(n->op),
                rows ? " of " : "", rows ? rows : "", g->values.data[n->dst].name);
        mf_sequence_truncate(s, b->pos[r]);
        mf_sequence_end(s, -1, MF_FINISH_ERROR, &err);
        return true;
    }
    return false;
}

// Rows of a sequence stand in their cells: others may find them.
static void took_rows(mf_sequence *s, int32_t n) {
    s->n_evaluated += n;
    if (s->engine->params.prefix_cache) mf_kv_index(s->engine->kv, &s->table, s->tokens.data);
}

static void finish_sequence(mf_engine *e, int32_t number) {
    const mf_batch *b = &e->batch;
    mf_sequence *s = b->owner[number];
    if (row_failed(e, number)) return;
    int64_t n_vocab;
    const float *logits = mf_graph_exec_output(e->exec, &n_vocab);
    took_rows(s, b->rows[number]);
    for (int32_t o = b->first_out[number]; o < b->first_out[number] + b->outs[number]; o++)
        if (s->params.on_logits)
            s->params.on_logits(s->params.arg, s, b->pos[b->out_row[o]], logits + o * n_vocab, (int32_t)n_vocab);
    bool stopped = !s->active;                                      // by on_logits
    if (stopped || s->n_evaluated < (int32_t)s->tokens.len) return; // more of the prompt is to come
    if (s->sampler)
        generate(s, logits + (int64_t)(b->first_out[number] + b->outs[number] - 1) * n_vocab);
    else
        s->active = false;
}

// Without results a step ends its sequences, but for an interrupted one: they are as they were before it.
static void take_back(mf_engine *e, const mf_error *why) {
    mf_batch *b = &e->batch;
    for (int32_t i = 0; i < b->n_seqs; i++) {
        mf_kv_truncate(e->kv, &b->owner[i]->table, b->owner[i]->n_evaluated);
        if (why->code != MF_ERR_CANCELLED) mf_sequence_end(b->owner[i], -1, MF_FINISH_ERROR, why);
    }
}

static bool run(mf_engine *e, const atomic_bool *interrupt, mf_error *err) {
    const mf_batch *b = &e->batch;
    mf_step step = {b->n_rows,    b->n_outs, b->token,   b->pos,   b->cell,
                    b->seq,       b->stored, b->out_row, b->table, mf_kv_view_of(e->kv),
                    b->row_error, interrupt};
    return mf_model_check_file(e->model, err) && mf_graph_exec_run(e->exec, &step, err);
}

static bool run_batch(mf_engine *e, mf_error *err) {
    const mf_batch *b = &e->batch;
    mf_error why = {0};
    if (run(e, &e->interrupt, &why)) {
        for (int32_t i = 0; i < b->n_seqs; i++) finish_sequence(e, i);
        return true;
    }
    if (why.code == MF_ERR_CANCELLED) atomic_store(&e->interrupt, false);
    take_back(e, &why);
    if (err) *err = why;
    return false;
}

bool mf_engine_step(mf_engine *e, const mf_event **events, size_t *n_events, mf_error *err) {
    e->n_events = 0;
    bool ok = !atomic_exchange(&e->interrupt, false) || mf_fail(err, MF_ERR_CANCELLED, "the step was interrupted");
    if (ok) {
        mf_batch_pick(e);
        ok = e->batch.n_rows == 0 || run_batch(e, err);
    }
    *events = e->events;
    *n_events = e->n_events;
    return ok;
}

void mf_engine_interrupt(mf_engine *e) { atomic_store(&e->interrupt, true); }

bool mf_step_again(mf_sequence *s, mf_error *err) {
    s->running = false;
    if (!mf_room_find_prefix(s, err)) return false;
    while (s->n_evaluated < s->n_seen) {
        if (!mf_batch_pick_again(s, err)) return false;
        if (!run(s->engine, NULL, err)) return mf_kv_truncate(s->engine->kv, &s->table, s->n_evaluated), false;
        took_rows(s, s->engine->batch.n_rows);
    }
    return true;
}
