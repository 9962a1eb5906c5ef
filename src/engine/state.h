// Inside of the engine, shared by its files.
#ifndef MF_ENGINE_STATE_H
#define MF_ENGINE_STATE_H

#include "engine/engine.h"
#include "sample/grammar/constraint.h"

#define MF_ALL_CACHED INT32_MAX

struct mf_sequence {
    mf_engine *engine;
    mf_sequence_params params;
    mf_sampler *sampler;
    mf_array(int32_t) tokens; // appended and generated
    mf_kv_table table;        // the cells of the evaluated ones
    int32_t n_evaluated;
    int32_t n_prompt;    // tokens that were appended: what is behind them was generated
    int32_t n_generated; // since the last append
    uint64_t
        n_draws; // tokens that were ever sampled: the index of the next draw. It only grows, whatever happens to the tokens
    int32_t n_cached; // leading tokens that it never evaluated itself; MF_ALL_CACHED: it has evaluated none
    int32_t n_found;  // cells that the prefix index gave, as long as it has no others and waits for its first rows
    int32_t n_seen;   // leading tokens that were evaluated before its cells were given back: their logits were reported
    bool active;      // has rows to evaluate
    bool running;     // was given rows since it began to wait or gave its cells back
    bool granted;     // there is room for all of its tokens in this step
    uint64_t served;  // the place of its last turn among all turns
    mf_constraint_place place;         // where the answer stands in params.constraint
    int32_t place_from;                // the n_prompt of that answer
    int32_t n_placed;                  // tokens of the answer that led there; -1: there is no place yet
    uint64_t *allowed;                 // a mask without the ending tokens, for ignore_ends
    struct mf_session *session;        // NULL: none
    int32_t saved_tokens, saved_cells; // leading ones that stand in its file as they are
};

// A step's rows, in arrays that are made once.
typedef struct mf_batch {
    int32_t n_rows, n_outs, n_seqs;
    int32_t *token, *pos, *cell, *seq, *row_error; // [n_batch]
    uint8_t *stored;                               // [n_batch]
    int32_t *out_row;                              // [max_outs]
    const int32_t **table;                         // [max_seqs]
    mf_sequence **owner;                           // [max_seqs] by number in the batch
    mf_sequence **turn;                            // [max_seqs] those that may have rows, in their order
    int32_t *first_row, *first_out, *rows, *outs;  // [max_seqs]
} mf_batch;

struct mf_engine {
    const mf_model *model;
    mf_device_list devices;
    mf_engine_params params;
    int32_t seq_cells; // most cells of one sequence
    mf_kv *kv;
    mf_graph_exec *exec;
    mf_sequence **sequences; // [max_seqs] in order of arrival: by when their last turn began
    int32_t n_sequences;
    uint64_t n_served;           // turns so far
    const mf_kv_table **staying; // [max_seqs] for room.c
    mf_batch batch;
    mf_sampler_scratch *scratch; // of all sequences' samplers, which run one after the other
    mf_event *events;            // [max_seqs]
    size_t n_events;
    mf_hash128 fingerprint; // of the model, where fingerprinted
    bool fingerprinted;
    atomic_bool interrupt; // set by any thread, taken by a step
};

// batch.c
bool mf_batch_new(mf_batch *b, const mf_engine_params *p, mf_error *err);
void mf_batch_free(mf_batch *b);
// Picks the rows of the next step and takes their cells. A sequence for which there can be no room ends with an event.
void mf_batch_pick(mf_engine *e);
// Picks rows that a sequence has evaluated before it gave its cells back, and no others. False with err: there is no room.
bool mf_batch_pick_again(mf_sequence *s, mf_error *err);

// room.c
// Decides which active sequences go on in this step (granted), for which others may have to give their cells back.
void mf_room_grant(mf_engine *e);
// Takes what the prefix index knows of a sequence that waits for its first rows. False when memory is out.
bool mf_room_find_prefix(mf_sequence *s, mf_error *err);
// Lets one other sequence give its cells back, for one that needs them at once. False: nobody is left who can.
bool mf_room_widen(const mf_sequence *s);

// constrain.c
bool mf_constrain_new(mf_sequence *s, mf_constraint *c, mf_error *err); // holds it; NULL: none
void mf_constrain_free(mf_sequence *s);
void mf_constrain_moved(mf_sequence *s, bool was_placed); // tokens before the answer, or its first, were dropped
bool mf_constrain_placed(const mf_sequence *s);           // the place is that of all tokens of the answer
// The tokens that may come next: *mask, which the caller drops, and *allowed in it or in the sequence's. MF_FINISH_NONE, or why none can be
// chosen, with err. Without a constraint both are NULL.
mf_finish mf_constrain_mask(mf_sequence *s, mf_token_mask **mask, const uint64_t **allowed, mf_error *err);
// Goes on to the place behind the last token, which was chosen under the mask. *ends: the token ends the answer.
bool mf_constrain_advance(mf_sequence *s, bool *ends, mf_error *err);

// step.c
// Evaluates what a sequence had evaluated before it gave its cells back, without an event.
bool mf_step_again(mf_sequence *s, mf_error *err);

// sequence.c
bool mf_sequence_is_stop(const mf_sequence *seq, int32_t token); // one of params.stop
// Reports an event, and ends the sequence unless `finish` is MF_FINISH_NONE.
void mf_sequence_end(mf_sequence *seq, int32_t token, mf_finish finish, const mf_error *why);

#endif
