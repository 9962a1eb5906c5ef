// The batcher: which rows a step has. Decode rows of every running sequence first, then prefill chunks up to n_batch rows; where rows
// or outputs are short, who was served least recently comes first.
#include <stdlib.h>

#include "base/mem.h"
#include "engine/state.h"

bool mf_batch_new(mf_batch *b, const mf_engine_params *p, mf_error *err) {
    size_t rows = (size_t)p->n_batch, seqs = (size_t)p->max_seqs, outs = (size_t)p->max_outs;
    int32_t **by_row[] = {&b->token, &b->pos, &b->cell, &b->seq, &b->row_error};
    int32_t **by_seq[] = {&b->first_row, &b->first_out, &b->rows, &b->outs};
    bool ok = true;
    for (size_t i = 0; i < sizeof by_row / sizeof by_row[0]; i++) ok = (*by_row[i] = mf_alloc(rows, sizeof(int32_t))) && ok;
    for (size_t i = 0; i < sizeof by_seq / sizeof by_seq[0]; i++) ok = (*by_seq[i] = mf_alloc(seqs, sizeof(int32_t))) && ok;
    b->stored = mf_alloc(rows, 1);
    b->out_row = mf_alloc(outs, sizeof(int32_t));
    b->table = mf_alloc(seqs, sizeof *b->table);
    b->owner = mf_alloc(seqs, sizeof *b->owner);
    b->turn = mf_alloc(seqs, sizeof *b->turn);
    if (ok && b->stored && b->out_row && b->table && b->owner && b->turn) return true;
    return mf_fail_memory(err, rows * 5 * sizeof(int32_t), "the batch");
}

void mf_batch_free(mf_batch *b) {
    void *all[] = {b->token,     b->pos,  b->cell, b->seq,     b->row_error, b->stored, b->first_row,
                   b->first_out, b->rows, b->outs, b->out_row, b->table,     b->owner,  b->turn};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    *b = (mf_batch){0};
}

static int32_t pending(const mf_sequence *s) { return (int32_t)s->tokens.len - s->n_evaluated; }

// Whether the logits of a row are wanted: rows that are evaluated again have reported theirs.
static bool wants_logits(const mf_sequence *s, int32_t position) {
    if (position < s->n_seen) return false;
    bool last = (size_t)position + 1 == s->tokens.len;
    return last || (s->params.logits_from >= 0 && position >= s->params.logits_from);
}

// How many of a sequence's next n rows so many outputs are enough for.
static int32_t within_outs(const mf_sequence *s, int32_t n, int32_t n_outs) {
    int32_t silent = n;
    while (silent > 0 && wants_logits(s, s->n_evaluated + silent - 1)) silent--;
    return n - silent <= n_outs ? n : silent + n_outs;
}

// Takes cells for n rows of a sequence and puts them into the batch. Rows of cells that it has are stored already.
static bool add_rows(mf_sequence *s, int32_t n, mf_error *err) {
    mf_batch *b = &s->engine->batch;
    int32_t number = b->n_seqs, first = s->n_evaluated, fresh = s->table.n_cells;
    if (!mf_kv_extend(s->engine->kv, &s->table, first + n, err)) return false;
    b->n_seqs++;
    b->owner[number] = s;
    b->table[number] = s->table.blocks.data;
    b->first_row[number] = b->n_rows, b->rows[number] = n;
    b->first_out[number] = b->n_outs;
    for (int32_t i = 0; i < n; i++) {
        int32_t row = b->n_rows++;
        b->token[row] = s->tokens.data[first + i];
        b->pos[row] = b->cell[row] = first + i;
        b->seq[row] = number;
        b->row_error[row] = 0;
        b->stored[row] = first + i < fresh;
        if (wants_logits(s, first + i)) b->out_row[b->n_outs++] = row;
    }
    b->outs[number] = b->n_outs - b->first_out[number];
    if (first < s->n_cached) s->n_cached = first;
    s->n_found = 0;
    s->running = true;
    return true;
}

// Gives a sequence up to `most` rows, as many as there are outputs for.
static void serve(mf_engine *e, mf_sequence *s, int32_t most) {
    mf_error err = {0};
    int32_t n = pending(s) < most ? pending(s) : most;
    n = within_outs(s, n, e->params.max_outs - e->batch.n_outs);
    if (n == 0) return;
    if (!add_rows(s, n, &err)) {
        mf_sequence_end(s, -1, MF_FINISH_ERROR, &err);
        return;
    }
    s->served = ++e->n_served;
}

static bool decodes(const mf_sequence *s) { return s->running && pending(s) == 1; }

// Whether a gets rows before b, who came before it.
static bool overtakes(const mf_sequence *a, const mf_sequence *b, bool rows_are_short) {
    if (!rows_are_short && decodes(a) != decodes(b)) return decodes(a);
    return a->served < b->served;
}

// Lists who may have rows, in the order in which they get them; returns how many, and how many of them decode.
static int32_t take_turns(mf_engine *e, int32_t *n_decoding) {
    const mf_engine_params *p = &e->params;
    mf_sequence **turn = e->batch.turn;
    int32_t n = 0, most = p->n_batch < p->max_outs ? p->n_batch : p->max_outs;
    *n_decoding = 0;
    for (int32_t i = 0; i < e->n_sequences; i++) *n_decoding += e->sequences[i]->granted && decodes(e->sequences[i]);
    for (int32_t i = 0; i < e->n_sequences; i++) {
        if (!e->sequences[i]->granted) continue;
        int32_t at = n++;
        for (; at > 0 && overtakes(e->sequences[i], turn[at - 1], *n_decoding >= most); at--) turn[at] = turn[at - 1];
        turn[at] = e->sequences[i];
    }
    return n;
}

static void clear(mf_batch *b) { b->n_rows = b->n_outs = b->n_seqs = 0; }

void mf_batch_pick(mf_engine *e) {
    mf_batch *b = &e->batch;
    clear(b);
    mf_room_grant(e);
    int32_t n_decoding, n = take_turns(e, &n_decoding);
    for (int32_t i = 0; i < n && b->n_rows < e->params.n_batch; i++) {
        n_decoding -= decodes(b->turn[i]);
        int32_t most = e->params.n_batch - b->n_rows - n_decoding; // a row for each that decodes and comes later
        serve(e, b->turn[i], most > 1 ? most : 1);
    }
}

bool mf_batch_pick_again(mf_sequence *s, mf_error *err) {
    mf_engine *e = s->engine;
    int32_t left = s->n_seen - s->n_evaluated, n = left < e->params.n_batch ? left : e->params.n_batch;
    clear(&e->batch);
    while (mf_kv_blocks_needed(e->kv, &s->table, s->table.n_cells, s->n_evaluated + n) > mf_kv_free_blocks(e->kv) &&
           mf_room_widen(s))
        ;
    return add_rows(s, n, err);
}
