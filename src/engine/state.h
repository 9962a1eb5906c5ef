// Inside of the engine, shared by its files.
#ifndef MF_ENGINE_STATE_H
#define MF_ENGINE_STATE_H

#include "engine/engine.h"

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
    int32_t n_cached; // found in the prefix cache
    bool active;      // has rows to evaluate
    bool failed;
    int32_t slot;                      // in engine->sequences
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
    int32_t *first_row, *first_out, *rows, *outs;  // [max_seqs]
} mf_batch;

struct mf_engine {
    const mf_model *model;
    mf_device_list devices;
    mf_engine_params params;
    int32_t seq_cells; // most cells of one sequence
    mf_kv *kv;
    mf_graph_exec *exec;
    mf_sequence **sequences; // [max_seqs], NULL where free
    int32_t next_prefill;    // whose prompt goes first: prompts take turns
    mf_batch batch;
    mf_event *events; // [max_seqs]
    size_t n_events;
    atomic_bool interrupt; // set by any thread, taken by a step
};

// batch.c
bool mf_batch_new(mf_batch *b, const mf_engine_params *p, mf_error *err);
void mf_batch_free(mf_batch *b);
// Picks the rows of the next step and takes their cells. A sequence for which no cell is left ends with an event.
void mf_batch_pick(mf_engine *e);

bool mf_sequence_is_stop(const mf_sequence *seq, int32_t token); // one of params.stop
void mf_sequence_end(mf_sequence *seq, int32_t token, mf_finish finish, const mf_error *why);

#endif
