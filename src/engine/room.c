// Who has cells: which sequences go on in a step, in order of arrival, and who gives cells back for that.
//
// A sequence goes on when there is room for all of its tokens beside those that came before it. Where there isn't, others give their
// cells back: first idle ones, then those that wait for their first rows, then those that came after it, the youngest first. They keep
// their tokens, their sampler and their count of draws, and evaluate the same rows again later (full blocks are found in the prefix
// index unless their space was needed). Cells that a context shift has moved can't be evaluated again: they are never given back.
#include <string.h>

#include "engine/state.h"

static int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

// ---- The prefix index

// Rows that may come from the prefix index: those whose logits nobody waits for.
static int32_t rows_to_find(const mf_sequence *s) { return s->params.logits_from < 0 ? (int32_t)s->tokens.len : s->n_seen; }

static bool looks_for_prefix(const mf_sequence *s) {
    return s->engine->params.prefix_cache && !s->running && s->table.n_cells == s->n_found;
}

bool mf_room_find_prefix(mf_sequence *s, mf_error *err) {
    if (!looks_for_prefix(s)) return true;
    if (!mf_kv_match(s->engine->kv, s->tokens.data, rows_to_find(s), &s->table, err)) return false;
    s->n_found = s->table.n_cells;
    s->n_evaluated = smaller(s->n_found, (int32_t)s->tokens.len - 1); // the last row's logits are wanted
    return true;
}

// Whether another sequence is about to evaluate the block that this one would begin with.
static bool prefix_is_coming(const mf_sequence *s) {
    const mf_engine *e = s->engine;
    int32_t end = s->n_found + MF_KV_BLOCK;
    if (!looks_for_prefix(s) || end > rows_to_find(s)) return false;
    for (int32_t i = 0; i < e->n_sequences; i++) {
        const mf_sequence *t = e->sequences[i];
        bool evaluates = t != s && t->active && (t->running || t->granted) && !t->table.shifted && !t->table.loaded &&
                         t->n_evaluated < end;
        if (evaluates && (int32_t)t->tokens.len >= end &&
            memcmp(t->tokens.data, s->tokens.data, (size_t)end * sizeof *s->tokens.data) == 0)
            return true;
    }
    return false;
}

// ---- Giving cells back

static void give_back(mf_sequence *s) {
    if (s->n_cached != MF_ALL_CACHED && s->n_evaluated > s->n_seen) s->n_seen = s->n_evaluated;
    mf_kv_truncate(s->engine->kv, &s->table, 0);
    s->n_evaluated = s->n_found = 0;
    s->running = false;
}

typedef enum reach { // whose cells may be asked for
    OF_THE_YOUNGER,  // of idle, waiting and younger sequences
    OF_ANYONE,
    OF_THE_IDLE_MOVED // of everyone but idle sequences whose cells a shift has moved
} reach;

// Whether the sequence at place `other` must give its cells back when the one at place `own` needs them.
static bool yields(const mf_engine *e, int32_t other, int32_t own, reach r) {
    const mf_sequence *t = e->sequences[other];
    if (other == own) return false;
    if (r == OF_THE_IDLE_MOVED) return !t->table.shifted || t->active;
    if (t->table.shifted) return false;
    return r == OF_ANYONE || !t->active || (!t->running && !t->granted) || other > own;
}

// How gladly a sequence gives its cells back: idle ones in the order in which they came, then waiting and then running ones, youngest first.
static int rank(const mf_sequence *t) { return !t->active ? 0 : !t->running && !t->granted ? 1 : 2; }

static mf_sequence *next_to_yield(const mf_engine *e, int32_t own, reach r) {
    mf_sequence *best = NULL;
    for (int32_t i = 0; i < e->n_sequences; i++) {
        mf_sequence *t = e->sequences[i];
        if (t->table.blocks.len == 0 || !yields(e, i, own, r)) continue;
        if (!best || rank(t) < rank(best) || (rank(t) == rank(best) && t->active)) best = t;
    }
    return best;
}

static int32_t blocks_needed(const mf_sequence *s) {
    return mf_kv_blocks_needed(s->engine->kv, &s->table, s->table.n_cells, (int32_t)s->tokens.len);
}

// Whether all of a sequence's tokens had room, with n_reserved blocks to spare, if everyone who can be asked gave back.
static bool could_fit(mf_engine *e, int32_t own, int32_t n_reserved, reach r) {
    size_t n = 0;
    for (int32_t i = 0; i < e->n_sequences; i++)
        if (i != own && !yields(e, i, own, r)) e->staying[n++] = &e->sequences[i]->table;
    const mf_sequence *s = e->sequences[own];
    return mf_kv_fits_beside(e->kv, &s->table, (int32_t)s->tokens.len, n_reserved, e->staying, n);
}

static bool make_room(mf_engine *e, int32_t own, int32_t n_reserved, reach r) {
    const mf_sequence *s = e->sequences[own];
    if (n_reserved + blocks_needed(s) <= mf_kv_free_blocks(e->kv)) return true;
    if (!could_fit(e, own, n_reserved, r)) return false;
    while (n_reserved + blocks_needed(s) > mf_kv_free_blocks(e->kv)) {
        mf_sequence *t = next_to_yield(e, own, r);
        if (!t) return false;
        give_back(t);
    }
    return true;
}

bool mf_room_widen(const mf_sequence *s) {
    const mf_engine *e = s->engine;
    int32_t own = 0;
    while (e->sequences[own] != s) own++;
    mf_sequence *t = next_to_yield(e, own, OF_ANYONE);
    if (t) give_back(t);
    return t != NULL;
}

// ---- Who goes on

// Ends a sequence for which there can be no room.
static void refuse(mf_sequence *s) {
    mf_engine *e = s->engine;
    mf_error err = {0};
    int32_t held = 0;
    for (int32_t i = 0; i < e->n_sequences; i++) {
        const mf_sequence *t = e->sequences[i];
        if (t != s && t->table.shifted) held += (int32_t)t->table.blocks.len;
    }
    int32_t total = mf_kv_stats_get(e->kv).blocks_total;
    mf_fail(&err, MF_ERR_LIMIT,
            "the KV cache is full: %zu cells are needed, and of %d there are %d in sequences that a context shift has "
            "moved, which "
            "can't give them back",
            s->tokens.len, total * MF_KV_BLOCK, held * MF_KV_BLOCK);
    mf_sequence_end(s, -1, MF_FINISH_ERROR, &err);
}

// Room for a sequence, behind n_reserved blocks for those before it. False: not in this step.
static bool enter(mf_engine *e, int32_t place, int32_t n_reserved, reach r) {
    mf_sequence *s = e->sequences[place];
    if (!prefix_is_coming(s) && make_room(e, place, n_reserved, r)) return true;
    if (n_reserved > mf_kv_free_blocks(e->kv)) give_back(s); // what it found was promised to others
    return false;
}

// Grants room to active sequences, in order of arrival; with `moved_first` those with moved cells may ask anyone for theirs. True: someone
// goes on, or ended.
static bool grant(mf_engine *e, bool moved_first) {
    int32_t reserved = 0;
    bool any = false, blocked = false;
    for (int32_t i = 0; i < e->n_sequences; i++) e->sequences[i]->granted = false;
    for (int32_t i = 0; i < e->n_sequences; i++) {
        mf_sequence *s = e->sequences[i];
        mf_error err = {0};
        bool urgent = moved_first && s->table.shifted;
        if (!s->active || (blocked && !s->running && !urgent)) continue;
        if (!mf_room_find_prefix(s, &err)) {
            mf_sequence_end(s, -1, MF_FINISH_ERROR, &err);
            any = true;
        } else if (enter(e, i, reserved, urgent ? OF_ANYONE : OF_THE_YOUNGER)) {
            any = s->granted = true;
            reserved += blocks_needed(s);
        } else if (!could_fit(e, i, 0, OF_THE_IDLE_MOVED)) {
            refuse(s);
            any = true;
        } else if (!s->running && !prefix_is_coming(s)) {
            blocked = true; // who came later waits behind it
        }
    }
    return any;
}

void mf_room_grant(mf_engine *e) {
    if (mf_engine_idle(e) || grant(e, false)) return;
    // Sequences with moved cells stand in each other's way, or in that of one before them, which gives its cells back then.
    if (grant(e, true)) return;
    mf_sequence *last = NULL;
    for (int32_t i = 0; i < e->n_sequences; i++) {
        mf_sequence *s = e->sequences[i];
        if (s->active && (s->table.shifted || !last)) last = s;
    }
    if (last) refuse(last);
}
