// The batcher: decode rows of every running sequence first, then prefill chunks up to n_batch rows.
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
    if (ok && b->stored && b->out_row && b->table && b->owner) return true;
    return mf_fail_memory(err, rows * 5 * sizeof(int32_t), "the batch");
}

void mf_batch_free(mf_batch *b) {
    void *all[] = {b->token,     b->pos,  b->cell, b->seq,     b->row_error, b->stored, b->first_row,
                   b->first_out, b->rows, b->outs, b->out_row, b->table,     b->owner};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    *b = (mf_batch){0};
}

static int32_t pending(const mf_sequence *s) { return (int32_t)s->tokens.len - s->n_evaluated; }

static bool wants_logits(const mf_sequence *s, int32_t position) {
    return s->params.logits_from >= 0 && position >= s->params.logits_from;
}

// How many of a sequence's next n rows so many outputs are enough for.
static int32_t within_outs(const mf_sequence *s, int32_t n, int32_t n_outs) {
    int32_t from = s->params.logits_from, silent = from > s->n_evaluated ? from - s->n_evaluated : 0;
    return from < 0 || n - silent <= n_outs ? n : silent + n_outs;
}

// Puts n rows of a sequence into the batch. Their cells were taken; those before `fresh` hold their K and V already.
static void add_rows(mf_batch *b, mf_sequence *s, int32_t n, int32_t fresh) {
    int32_t number = b->n_seqs++, first = s->n_evaluated;
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
        bool last = (size_t)(first + i) + 1 == s->tokens.len;
        if (wants_logits(s, first + i) || last) b->out_row[b->n_outs++] = row;
    }
    b->outs[number] = b->n_outs - b->first_out[number];
}

// Gives a sequence up to `most` rows.
static void serve(mf_engine *e, mf_sequence *s, int32_t most) {
    mf_batch *b = &e->batch;
    int32_t n = pending(s) < most ? pending(s) : most, outs_left = e->params.max_outs - b->n_outs;
    n = within_outs(s, n, outs_left);
    if (n <= 0 || (n == pending(s) && outs_left < 1)) return;
    mf_error err = {0};
    int32_t fresh = s->table.n_cells;
    if (!mf_kv_extend(e->kv, &s->table, s->n_evaluated + n, &err)) {
        bool generating = s->n_generated > 0 && pending(s) == 1;
        mf_sequence_end(s, -1, generating ? MF_FINISH_LENGTH : MF_FINISH_ERROR, generating ? NULL : &err);
        return;
    }
    add_rows(b, s, n, fresh);
}

void mf_batch_pick(mf_engine *e) {
    mf_batch *b = &e->batch;
    int32_t slots = e->params.max_seqs;
    b->n_rows = b->n_outs = b->n_seqs = 0;
    for (int32_t i = 0; i < slots && b->n_rows < e->params.n_batch; i++) {
        mf_sequence *s = e->sequences[i];
        if (s && s->active && pending(s) == 1) serve(e, s, 1);
    }
    for (int32_t i = 0; i < slots && b->n_rows < e->params.n_batch; i++) {
        int32_t slot = (e->next_prefill + i) % slots;
        mf_sequence *s = e->sequences[slot];
        if (s && s->active && pending(s) > 1) serve(e, s, e->params.n_batch - b->n_rows);
    }
    e->next_prefill = (e->next_prefill + 1) % slots;
}
