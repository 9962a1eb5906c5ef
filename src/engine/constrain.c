// A sequence under a constraint: where its answer stands, and which tokens may come next. The place is found from the tokens when it is
// wanted, so it follows whatever happens to them: a new turn, a truncate, a session.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "engine/state.h"

bool mf_constrain_new(mf_sequence *s, mf_constraint *c, mf_error *err) {
    s->n_placed = -1;
    if (!c) return true;
    s->params.constraint = mf_constraint_hold(c);
    if (mf_constraint_vocab_size(c) != s->engine->model->hparams.n_vocab)
        return mf_fail(err, MF_ERR_ARGUMENT, "the constraint is for a vocabulary of %d ids; the model has %d",
                       mf_constraint_vocab_size(c), s->engine->model->hparams.n_vocab);
    size_t n_words = ((size_t)s->engine->model->hparams.n_vocab + 63) / 64;
    if (s->params.ignore_ends && !(s->allowed = mf_alloc(n_words, sizeof *s->allowed)))
        return mf_fail_memory(err, n_words * sizeof *s->allowed, "a constraint's mask");
    return true;
}

void mf_constrain_free(mf_sequence *s) {
    if (!s->params.constraint) return;
    if (s->n_placed >= 0) mf_constraint_drop_place(s->params.constraint, s->place);
    mf_constraint_drop(s->params.constraint);
    free(s->allowed);
}

static int32_t answer_length(const mf_sequence *s) { return (int32_t)s->tokens.len - s->n_prompt; }

bool mf_constrain_placed(const mf_sequence *s) {
    return s->n_placed >= 0 && s->place_from == s->n_prompt && s->n_placed == answer_length(s);
}

void mf_constrain_moved(mf_sequence *s, bool was_placed) {
    if (!was_placed) return;
    s->place_from = s->n_prompt;
    s->n_placed = answer_length(s);
}

static void restart(mf_sequence *s) {
    mf_constraint *c = s->params.constraint;
    if (s->n_placed >= 0) mf_constraint_drop_place(c, s->place);
    s->place = mf_constraint_start(c);
    s->place_from = s->n_prompt;
    s->n_placed = 0;
}

// Brings the place to the answer's last token.
static bool follow(mf_sequence *s, mf_error *err) {
    mf_constraint *c = s->params.constraint;
    if (s->n_placed < 0 || s->place_from != s->n_prompt || s->n_placed > answer_length(s)) restart(s);
    while (s->n_placed < answer_length(s)) {
        mf_constraint_place to;
        if (!mf_constraint_advance(c, s->place, s->tokens.data[s->n_prompt + s->n_placed], &to, err)) return false;
        mf_constraint_drop_place(c, s->place);
        s->place = to;
        s->n_placed++;
    }
    return true;
}

// The mask without the ending tokens, unless nothing else is in it.
static const uint64_t *without_ends(mf_sequence *s, const mf_token_mask *mask) {
    size_t n_words = ((size_t)s->engine->model->hparams.n_vocab + 63) / 64;
    uint64_t any = 0;
    mf_constraint_without_ends(s->params.constraint, mask->words, s->allowed);
    for (size_t i = 0; i < n_words; i++) any |= s->allowed[i];
    return any ? s->allowed : mask->words;
}

mf_finish mf_constrain_mask(mf_sequence *s, mf_token_mask **mask, const uint64_t **allowed, mf_error *err) {
    mf_constraint *c = s->params.constraint;
    if (!c) return MF_FINISH_NONE;
    if (!follow(s, err) || !(*mask = mf_constraint_mask(c, s->place, err))) return MF_FINISH_ERROR;
    if ((*mask)->n_allowed == 0) {
        mf_constraint_fail_stuck(c, s->place, s->tokens.data + s->n_prompt, (size_t)answer_length(s), err);
        return MF_FINISH_CONSTRAINT;
    }
    *allowed = s->params.ignore_ends ? without_ends(s, *mask) : (*mask)->words;
    return MF_FINISH_NONE;
}

bool mf_constrain_advance(mf_sequence *s, bool *ends, mf_error *err) {
    if (!s->params.constraint) return true;
    *ends = mf_constraint_is_end(s->params.constraint, s->tokens.data[s->tokens.len - 1]);
    return follow(s, err);
}
