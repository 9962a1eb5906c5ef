// The engine: sequences of tokens over one model, advanced together by mf_engine_step. Everything that generates text calls it; there
// is no other inference loop. Ids in, ids out: text is not known here.
//
// One thread at a time may call into an engine and its sequences.
#ifndef MF_ENGINE_ENGINE_H
#define MF_ENGINE_ENGINE_H

#include "kv/kv.h"
#include "model/model.h"
#include "sample/sampler.h"

typedef struct mf_engine mf_engine;
typedef struct mf_sequence mf_sequence;

typedef struct mf_engine_params {
    int32_t n_ctx;     // KV cells in all, shared by the sequences; a sequence has at most the model's maximum
    int32_t n_batch;   // rows of a step at most
    int32_t max_seqs;  // sequences at once at most
    int32_t max_outs;  // rows of a step whose logits are wanted at most; 0: max_seqs
    mf_type kv_type;   // F16, F32 or Q8_0 (heads of a multiple of 32 channels)
    unsigned fuse;     // MF_FUSE_*
    bool prefix_cache; // take what earlier prompts that begin alike have evaluated (same bytes, other speed)
    bool populate;     // cells get their memory when the engine is made, not when they are first used
    bool kv_share;     // as blocks that both use; else as copies (same bytes)
    const char *dump_dir, *dump_names; // NULL: off; else values of these names (NULL: all) go there whole, as .npy files
    const char *trace_dir;             // NULL: off; else every node's values go there (docs/debugging.md)
    bool op_timing;                    // measure each operation's time
} mf_engine_params;

// n_ctx 4096, n_batch 512, max_seqs 1, f16 cells, all fusions, the prefix cache and sharing on.
void mf_engine_params_init(mf_engine_params *params);

// What an engine will allocate beside the weights, in bytes.
typedef struct mf_engine_memory {
    size_t kv;          // cells
    size_t activations; // planned values, the devices' working memory and the samplers
} mf_engine_memory;

// The plan without the engine; the model's weights need not be prepared.
bool mf_engine_plan(const mf_model *model, const mf_device_list *devices, const mf_engine_params *params,
                    mf_engine_memory *out, mf_error *err);

// Model and devices are borrowed. NULL with err: parameters out of range (by name and value), out of memory.
mf_engine *mf_engine_new(const mf_model *model, const mf_device_list *devices, const mf_engine_params *params,
                         mf_error *err);
void mf_engine_free(mf_engine *engine); // NULL is fine; every sequence must be freed before

mf_engine_memory mf_engine_memory_of(const mf_engine *engine);
mf_kv_stats mf_engine_kv_stats(const mf_engine *engine);
const mf_graph *mf_engine_graph(const mf_engine *engine);       // as it runs, for dumps
const mf_op_time *mf_engine_op_timing(const mf_engine *engine); // [MF_OP_COUNT]; NULL without op_timing
const mf_model *mf_engine_model(const mf_engine *engine);

// Called inside a step for every row whose logits are wanted, before anything is sampled from them: `position` is the row's place in
// the sequence (0-based), logits n_vocab floats that live until the call returns.
typedef void mf_logits_fn(void *arg, mf_sequence *seq, int32_t position, const float *logits, int32_t n_vocab);

typedef struct mf_sequence_params {
    const mf_sampler_params *sampler; // NULL: nothing is sampled; rows are evaluated and logits reported
    int32_t max_tokens;  // stop after as many generated ones (finish reason length); -1: no bound but the context
    const int32_t *stop; // ids that end the sequence (finish reason stop); borrowed
    size_t n_stop;
    int32_t
        logits_from; // rows from this position on report logits, each once, and none of the sequence's comes from the prefix
                     // cache; a step takes at most max_outs of them. -1: only the last
    mf_logits_fn *on_logits; // NULL: not reported
    void *arg;
    struct mf_constraint
        *constraint;  // what each answer may say (sample/grammar/constraint.h); held by the sequence. NULL: anything
    bool ignore_ends; // of a constraint's ending tokens: none is chosen as long as another is allowed
} mf_sequence_params;

void mf_sequence_params_init(mf_sequence_params *params);

mf_sequence *mf_sequence_new(mf_engine *engine, const mf_sequence_params *params, mf_error *err);
void mf_sequence_free(mf_sequence *seq); // gives its blocks back; NULL is fine

// Appends tokens to be evaluated (a prompt, a turn). Refused: ids outside the vocabulary, more tokens than the context holds (both
// counts are in the sentence). With a sampler, generation goes on once they are evaluated, also after the sequence had finished or
// ended with an error. It takes its place behind the sequences that have something to evaluate already.
bool mf_sequence_append(mf_sequence *seq, const int32_t *ids, size_t n, mf_error *err);

// Drops everything from token n on; what was generated or appended behind it is forgotten.
void mf_sequence_truncate(mf_sequence *seq, int32_t n);

// The sequence's own sampler; NULL: it has none. What is changed in it counts from the next step on.
mf_sampler *mf_sequence_sampler(mf_sequence *seq);

// Drops the tokens [n_keep, n_keep + n_discard), all of them evaluated, and moves what is behind them down, cells and all, without
// evaluating anything again (mf_kv_shift): room in a context that is full. Callers should drop a quarter of the context at least at
// once. What was moved saw tokens that are gone, so it is not shared with others, and its bytes are not what a new sequence of
// the tokens that are left would give. The sampler's history keeps what it saw. Where the cache is full, others give their cells back; where the sequence
// itself has, it evaluates its rows again first. Refused: a range that was not evaluated, a cache full of moved cells.
bool mf_sequence_shift(mf_sequence *seq, int32_t n_keep, int32_t n_discard, mf_error *err);

// Ends a sequence's generation: no more events come until something is appended, or it is resumed.
void mf_sequence_stop(mf_sequence *seq);

// Goes on with an answer that was stopped, cut by mf_sequence_truncate or loaded from a session: max_tokens counts from its beginning.
// Where the last token is evaluated it is evaluated again, for its logits. Nothing changes for a sequence that is not idle. Refused:
// a sequence without tokens, an answer that has ended by itself (a stop token, max_tokens, a full context), without a sampler
// one of which all is evaluated.
bool mf_sequence_resume(mf_sequence *seq, mf_error *err);

int32_t mf_sequence_n_ctx(const mf_sequence *seq);       // the most tokens it can have
int32_t mf_sequence_n_tokens(const mf_sequence *seq);    // appended and generated
int32_t mf_sequence_n_evaluated(const mf_sequence *seq); // in the cache: none while its cells are given back
int32_t mf_sequence_n_generated(const mf_sequence *seq); // of the answer: its last tokens
int32_t mf_sequence_n_cached(const mf_sequence *seq);    // tokens that were found in the prefix cache and not evaluated
const int32_t *mf_sequence_tokens(const mf_sequence *seq);
bool mf_sequence_idle(const mf_sequence *seq); // nothing to evaluate

// How many tokens were ever sampled in the sequence: the index of its next draw (docs/sampling.md), which no truncate, shift or new
// turn takes back. For one that goes on where another ended; mf_sequence_set_draws never lowers it.
uint64_t mf_sequence_n_draws(const mf_sequence *seq);
void mf_sequence_set_draws(mf_sequence *seq, uint64_t n);

typedef enum mf_finish {
    MF_FINISH_NONE,
    MF_FINISH_STOP,
    MF_FINISH_LENGTH,
    MF_FINISH_ERROR,
    MF_FINISH_CONSTRAINT // no token is allowed: the constraint leads where the vocabulary can't go
} mf_finish;

typedef struct mf_event {
    mf_sequence *seq;
    int32_t token;    // generated in this step; -1: none
    mf_finish finish; // the sequence ended with this step
    mf_error error;   // MF_FINISH_ERROR, MF_FINISH_CONSTRAINT: why; the sequence can be used again
} mf_event;

// Evaluates one batch: a row of every generating sequence, then prefill chunks up to n_batch rows; samples, and reports one event for
// each sequence that got a token or ended. *n_events 0 and true: there is nothing left to do, or only prompt rows were evaluated
// (mf_engine_idle tells). False with err: the step failed; the sequences that took part have ended with that error.
//
// Sequences are served in order of arrival: by when their turn was appended. Where rows or outputs are short they take turns. Where the
// cache is full, idle sequences and then those that came last give their cells back; they keep their tokens, their sampler and their count of
// draws, and evaluate the same rows again when there is room: nobody's bytes change. Cells that a shift has moved are never given
// back, and a sequence that can't fit beside those ends with an error that names the cells. A sequence that begins like one that is being
// evaluated waits for its blocks. A row of which an activation is not finite is cut off with the tokens behind it, and ends its
// sequence with an error that names the place.
bool mf_engine_step(mf_engine *engine, const mf_event **events, size_t *n_events, mf_error *err);
bool mf_engine_idle(const mf_engine *engine);

// Makes the step that runs, or the next one where none does, return false with MF_ERR_CANCELLED within a few milliseconds. Nothing
// is lost: the rows of that step are evaluated by the next. Any thread may call it, and a signal's handler.
void mf_engine_interrupt(mf_engine *engine);

#endif
