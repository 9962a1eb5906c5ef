// minfer: language models from GGUF files, on one machine. The public interface; docs/api.md is a short tour of it.
//
// Handles are opaque: a model (weights and tokenizer), an engine over a model (the KV cache and the batch), sequences in an engine, constraints
// of what they may say.
// minfer_step advances all sequences of an engine together and reports a token of each.
//
// Errors. A function that can fail returns false or NULL and fills the minfer_error it is given, which may be NULL; on success it
// leaves it alone. NULL for a handle or a pointer that is needed is refused by these functions (MINFER_ERROR_ARGUMENT) and undefined in
// those without an error. Freeing NULL does nothing.
//
// Threads. A model and a constraint may be used by any number of threads at the same time. An engine and its sequences belong to one thread at a time,
// except for minfer_interrupt, minfer_engine_get_stats, minfer_idle, minfer_sequence_n_evaluated, _n_cached and _idle, which any thread
// may call while the engine and the sequence live: they see them as the last call left them. Engines of one model may run in
// different threads; their steps take turns, since they share the model's threads. Engines of different models run at the same time.
//
// Callbacks. No lock is held while one runs. Inside a callback of an engine only these may be called with it or its sequences: the
// getters, minfer_stop, minfer_interrupt, and what frees: minfer_sequence_free and minfer_engine_free count from the end of the step on
// (no more events of the sequence; the step of a freed engine returns MINFER_ERROR_CANCELLED). What would change a sequence is refused.
//
// Forks. A forked child has none of the model's threads: what needs an engine is refused there (MINFER_ERROR_UNSUPPORTED), freeing
// and closing work.
//
// Floating point. Rounding mode, flush to zero and exceptions of the calling thread change nothing, and are as they were
// afterwards; callbacks see them too, but for the log's.
//
// Structs with a `size` are filled by their init function, to which the caller gives sizeof; they can grow in later versions, and a
// program that was compiled with a smaller one goes on working. Other structs keep their layout. Fields are set after the init.
//
// Results of unknown length. `cap` is the room at `out`, *n gets the length that is needed in any case, and:
//     cap 0         true, nothing is written (out may be NULL): a question for the length
//     cap < *n      false with MINFER_ERROR_SPACE, nothing is written
//     cap >= *n     true; behind a text stands a NUL where there is room for one, which *n does not count
#ifndef MINFER_H
#define MINFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define MINFER_API __attribute__((visibility("default")))
#else
#define MINFER_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ---- Versions

#define MINFER_VERSION_MAJOR 0
#define MINFER_VERSION_MINOR 1
#define MINFER_VERSION_PATCH 0
#define MINFER_VERSION       "0.1.0"

// The library's version, which may be another than the header's.
MINFER_API const char *minfer_version(void);

// The version of the arithmetic: libraries with the same number give the same bytes for the same request, on every machine.
MINFER_API int32_t minfer_arithmetic_version(void);

// ---- Errors and the log

typedef enum minfer_code {
    MINFER_OK = 0,
    MINFER_ERROR_ARGUMENT = 1,    // a value is outside what the function takes
    MINFER_ERROR_FORMAT = 2,      // a file breaks its format
    MINFER_ERROR_UNSUPPORTED = 3, // well-formed, but not something this version can do
    MINFER_ERROR_MEMORY = 4,      // an allocation failed
    MINFER_ERROR_IO = 5,          // the operating system refused a read or a map
    MINFER_ERROR_LIMIT = 6,       // a bound (context, number of sequences) would be passed
    MINFER_ERROR_NUMERIC = 7,     // an activation or logit is not finite
    MINFER_ERROR_CANCELLED = 8,   // a callback asked to stop, or minfer_interrupt did
    MINFER_ERROR_INTERNAL = 9,    // a defect of the library
    MINFER_ERROR_NOT_FOUND = 10,  // what was asked for is not there
    MINFER_ERROR_SPACE = 11       // the caller's buffer is too small
} minfer_code;

typedef struct minfer_error {
    minfer_code code;
    char text[508]; // one sentence that names what was refused and its value; UTF-8, no final period
} minfer_error;

typedef enum minfer_log_level {
    MINFER_LOG_ERROR = 0,
    MINFER_LOG_WARNING = 1,
    MINFER_LOG_NOTICE = 2,
    MINFER_LOG_DEBUG = 3
} minfer_log_level;

// The library writes lines to standard error, those above this level not (MINFER_LOG_NOTICE until it is set). One level for the
// process; any thread may set it.
MINFER_API void minfer_set_log_level(minfer_log_level level);

// Takes a line of the log, of a minfer_log_level: UTF-8 without control characters, a newline or the level's name. Called from any thread that is inside the
// library, one call at a time; it must not call the library.
typedef void minfer_log_fn(void *arg, int level, const char *line);

// Sends lines to a function instead of standard error (NULL: back to there). One for the process; any thread may set it. When the call
// returns, the function that was set before is not running and will not be called any more.
MINFER_API void minfer_set_log(minfer_log_fn *fn, void *arg);

// ---- Models

typedef struct minfer_model minfer_model;

// Called now and then while a model is opened, in the thread that opens it, with a fraction from 0 to 1. False gives it up
// (MINFER_ERROR_CANCELLED).
typedef bool minfer_progress_fn(void *arg, double fraction);

typedef struct minfer_model_options {
    size_t size;
    const char *backends; // NULL: the CPU; else names in order of preference with commas between ("cpu"), any case
    const char *cpu;      // NULL or "": the best instruction set this machine has; else one by name ("scalar", "avx2")
    minfer_progress_fn *progress; // NULL: none
    void *progress_arg;
    int32_t n_threads; // of the model's pool; 0: one for each core that this process may use
    bool ids_only;     // the file's tokenizer is not read: ids in, ids out
} minfer_model_options;

MINFER_API void minfer_model_options_init(minfer_model_options *options, size_t size);

// Opens a GGUF file (of a split one: any part), checks it and prepares its weights for this machine. options may be NULL: the
// defaults. Afterwards nothing of the options is needed. NULL with error: a file that can't be read, is broken or holds something that
// is not supported, each by name; nonsense in the options; an instruction set or backend that is unknown or not usable here; memory; the
// progress function's word. A file without a tokenizer is opened as if ids_only were set. No environment variable is looked at.
//
// The file should stay as it is while it is open: a change is refused by the step that sees it, but a file that is cut in the middle of a
// step raises SIGBUS. The library installs no handler for it.
MINFER_API minfer_model *minfer_model_open(const char *path, const minfer_model_options *options, minfer_error *error);

// Gives a model up. Engines over it and constraints of it go on working: what it holds is freed with the last of them. The handle itself is
// not to be used any more.
MINFER_API void minfer_model_close(minfer_model *model);

// Texts live as long as the model.
MINFER_API const char *minfer_model_architecture(const minfer_model *model); // "qwen2"
MINFER_API const char *minfer_model_device(const minfer_model *model);       // "cpu (avx2, 4 threads)"
MINFER_API int32_t minfer_model_n_vocab(const minfer_model *model);          // ids are 0 … n_vocab-1
MINFER_API int32_t minfer_model_n_ctx_train(const minfer_model *model);      // the most tokens of a sequence
MINFER_API int32_t minfer_model_n_embd(const minfer_model *model);           // channels
MINFER_API int32_t minfer_model_n_layer(const minfer_model *model);
MINFER_API uint64_t minfer_model_n_params(const minfer_model *model); // parameters in all
MINFER_API bool minfer_model_has_tokenizer(const minfer_model *model);

// A text out of the file's metadata ("general.name"): as it stands there, which need not be UTF-8. MINFER_ERROR_NOT_FOUND: no such key;
// MINFER_ERROR_FORMAT: its value is no text.
MINFER_API bool minfer_model_metadata(const minfer_model *model, const char *key, char *out, size_t cap, size_t *n,
                                      minfer_error *error);

// ---- Text and token ids. Those that can fail are refused for a model without a tokenizer (MINFER_ERROR_UNSUPPORTED).

#define MINFER_ENCODE_SPECIAL \
    1u // BOS before (a text that begins with it gets no second one) and EOS behind, where the file asks for them
#define MINFER_ENCODE_CONTROL 2u // the text of a control token becomes that token: not for text from strangers
#define MINFER_ENCODE_PLAIN   4u // no text is special, not even that of a user-defined token

// The ids of a text of len bytes. Any bytes are taken. Refused: unknown flags, a text over 1 GiB, memory.
MINFER_API bool minfer_encode(const minfer_model *model, const char *text, size_t len, unsigned flags, int32_t *out,
                              size_t cap, size_t *n, minfer_error *error);

typedef struct minfer_message { // both end with NUL
    const char *role;           // "system", "user", "assistant"; not empty
    const char *content;
} minfer_message;

// The ids of a conversation in the model's chat format; with open_answer the opening of the assistant's turn stands behind it. What
// messages say never becomes a control token. The format is the chat template in the model's file; without one it is ChatML, and
// MINFER_ERROR_UNSUPPORTED where the model has no <|im_start|> and <|im_end|> for it. Refused too: a conversation that the template
// refuses (with its words), a template that can't be rendered (with line and construct), a message without a role, memory.
MINFER_API bool minfer_encode_chat(const minfer_model *model, const minfer_message *messages, size_t n_messages,
                                   bool open_answer, int32_t *out, size_t cap, size_t *n, minfer_error *error);

#define MINFER_DECODE_SPECIAL   1u // control tokens give their text, else nothing
#define MINFER_DECODE_CONTINUED 2u // the ids continue a text: a space that encoding put before the first word is kept

// The text of ids. Bytes that are no UTF-8 pass as they are, but an incomplete character at the end is left out. Refused: ids outside
// the tokenizer's vocabulary, unknown flags, memory.
MINFER_API bool minfer_decode(const minfer_model *model, const int32_t *ids, size_t n_ids, unsigned flags, char *out,
                              size_t cap, size_t *n, minfer_error *error);

// The bytes of one token: maybe a part of a character. MINFER_DECODE_SPECIAL is the only flag.
MINFER_API bool minfer_piece(const minfer_model *model, int32_t id, unsigned flags, char *out, size_t cap, size_t *n,
                             minfer_error *error);

// Whether a text ends at this token (EOS, end of turn). Any id may be asked; false without a tokenizer.
MINFER_API bool minfer_is_end(const minfer_model *model, int32_t id);
MINFER_API int32_t minfer_bos(const minfer_model *model); // -1: there is none
MINFER_API int32_t minfer_eos(const minfer_model *model); // -1: there is none

// ---- Engines

typedef struct minfer_engine minfer_engine;

typedef enum minfer_cache_type {
    MINFER_CACHE_F16 = 0,
    MINFER_CACHE_F32 = 1,
    MINFER_CACHE_Q8_0 = 2 // a byte and a part of a scale; models whose heads are a multiple of 32 channels wide
} minfer_cache_type;

typedef struct minfer_engine_options {
    size_t size;
    int32_t max_sequences; // 1; at once
    int32_t n_ctx;       // cells of the KV cache in all, shared by the sequences; 0: 4096 for each, or the model's maximum;
                         // MINFER_CTX_AUTO: as many as fit into free memory
    int32_t n_batch;     // 512; rows of a step at most. No number here changes what is generated
    int32_t max_outputs; // rows of a step whose logits are wanted at most; 0: max_sequences
    minfer_cache_type cache_type; // MINFER_CACHE_F16; of the cells
    bool prefix_cache;            // true; a prompt's beginning that was evaluated before is not evaluated again
    bool kv_share;                // true; sequences that begin alike use the same blocks, else copies: the same bytes
    bool populate;                // false; cells get their memory when the engine is made, not when they are first used
} minfer_engine_options;

#define MINFER_CTX_AUTO (-1) // of n_ctx

MINFER_API void minfer_engine_options_init(minfer_engine_options *options, size_t size);

// An engine over a model, with all the memory that its steps need. options may be NULL: the defaults. NULL with error: options
// out of range (by name and value); memory: what does not fit into what is free is refused with the numbers and the largest context
// that would.
MINFER_API minfer_engine *minfer_engine_new(minfer_model *model, const minfer_engine_options *options, minfer_error *error);

// Frees an engine with the sequences that are left in it.
MINFER_API void minfer_engine_free(minfer_engine *engine);

typedef struct minfer_engine_stats {
    size_t size;
    uint64_t weight_bytes, kv_bytes, activation_bytes; // of the model, of the cache, of steps
    uint64_t kv_copies;                                // of blocks, before a write into a shared one
    uint64_t kv_hit_cells;                             // tokens whose cells came from the prefix cache, in all
    int32_t kv_blocks_total;                           // blocks of 64 cells
    int32_t kv_blocks_used;                            // with a sequence in them
    int32_t kv_blocks_shared;                          // with several
    int32_t kv_blocks_cached;                          // free, but still in the prefix cache
} minfer_engine_stats;

// Fills size bytes of *stats: sizeof *stats. Fields that the library does not know are 0. Any thread may ask: the numbers are those of the
// last call that changed the engine, a step that runs not counted.
MINFER_API void minfer_engine_get_stats(const minfer_engine *engine, minfer_engine_stats *stats, size_t size);

// ---- Constraints: what answers may say, and nothing else. Tokens that lead out of one are never chosen. docs/constrained.md has the grammars, what
// is understood of JSON Schema, and its conventions.

typedef struct minfer_constraint minfer_constraint;

#define MINFER_SCHEMA_ANY_ORDER    1u // declared properties may come in any order
#define MINFER_SCHEMA_CLOSED       2u // objects that declare properties take no others unless the schema says so
#define MINFER_SCHEMA_STRICT_ONEOF 4u // oneOf is refused where its branches can't be told apart

// A constraint for answers of a model, out of a JSON Schema of len bytes, which is not needed afterwards. It never changes: any number of sequences, in any
// engines of the model, share what is learned about it. NULL with error: what the schema has that is wrong (MINFER_ERROR_FORMAT, _ARGUMENT),
// not understood (MINFER_ERROR_UNSUPPORTED) or too large (MINFER_ERROR_LIMIT), with a JSON pointer; unknown flags; a model without a tokenizer
// (MINFER_ERROR_UNSUPPORTED); memory. The first one of a model takes longer: the vocabulary is prepared.
MINFER_API minfer_constraint *minfer_constraint_from_schema(minfer_model *model, const char *schema, size_t len,
                                                            unsigned flags, minfer_error *error);

// The same out of a grammar (GBNF), refused with the line and column, or the rule.
MINFER_API minfer_constraint *minfer_constraint_from_gbnf(minfer_model *model, const char *grammar, size_t len,
                                                          minfer_error *error);

// Gives a constraint up. Sequences under it go on as they are.
MINFER_API void minfer_constraint_free(minfer_constraint *constraint);

typedef enum minfer_check {
    MINFER_CHECK_ACCEPTED = 0,   // a whole answer
    MINFER_CHECK_INCOMPLETE = 1, // the beginning of one
    MINFER_CHECK_REJECTED = 2,   // nothing could complete it
    MINFER_CHECK_FAILED = 3      // see the error: NULL, memory, a grammar too ambiguous (MINFER_ERROR_LIMIT)
} minfer_check;

// Holds a text of len bytes against a constraint. *at (which may be NULL) gets the first byte behind which nothing could complete a text that is
// rejected, else len.
MINFER_API minfer_check minfer_constraint_check(const minfer_constraint *constraint, const char *text, size_t len,
                                                size_t *at, minfer_error *error);

// ---- Sequences

typedef struct minfer_sequence minfer_sequence;

typedef struct minfer_logit_bias {
    int32_t token;
    float bias; // added to the token's logit, in ±100; repeated tokens add up
} minfer_logit_bias;

typedef struct minfer_token_run {
    const int32_t *ids;
    size_t n;
} minfer_token_run;

// How a token is chosen. docs/sampling.md has the stages, their order and the ranges.
typedef struct minfer_sampling {
    size_t size;
    uint64_t seed;                                 // 42; with the request it determines every draw
    const minfer_logit_bias *logit_bias;           // none
    const minfer_token_run *dry_sequence_breakers; // none; at most 20 ids each
    size_t n_logit_bias, n_dry_sequence_breakers;
    float temp;                 // 0.8; 0: the most probable token (after the penalties)
    int32_t top_k;              // 40; 0, -1: off
    float top_p;                // 0.95; 1: off
    float min_p;                // 0: off
    float typical;              // 1: off
    float top_n_sigma;          // 0: off
    float xtc_probability;      // 0: off
    float xtc_threshold;        // 0.1
    float repeat_penalty;       // 1.1; 1: off
    float frequency_penalty;    // 0: off
    float presence_penalty;     // 0: off
    int32_t repeat_last_n;      // 64; tokens that the three penalties look back on; -1: all of the context
    float dry_multiplier;       // 0: off
    float dry_base;             // 1.75
    int32_t dry_allowed_length; // 2
    int32_t dry_penalty_last_n; // 64; -1: all of the context
    int32_t mirostat;           // 0: off, 1, 2
    float mirostat_tau;         // 5
    float mirostat_eta;         // 0.1
    int32_t mirostat_m;         // 100
} minfer_sampling;

MINFER_API void minfer_sampling_init(minfer_sampling *sampling, size_t size);

// The same with what the model's file recommends (its general.sampling.* keys) over the defaults. Refused, with *sampling as
// minfer_sampling_init leaves it: a key that is no number or does not fit (MINFER_ERROR_FORMAT).
MINFER_API bool minfer_model_sampling(const minfer_model *model, minfer_sampling *sampling, size_t size,
                                      minfer_error *error);

// Called inside minfer_step, before anything is sampled, with n_vocab logits that live until it returns. position: of the token that they
// follow, from 0.
typedef void minfer_logits_fn(void *arg, minfer_sequence *sequence, int32_t position, const float *logits, int32_t n_vocab);

// Where all_logits is set, the prefix cache is passed by, and a step takes no more rows of the sequence than the engine's max_outputs:
// raise that for prompts to be read quickly.
typedef struct minfer_sequence_options {
    size_t size;
    const minfer_sampling *sampling; // NULL: those of minfer_model_sampling
    const int32_t *stop_tokens;      // ids that end the answer, beside those of minfer_is_end
    size_t n_stop_tokens;
    minfer_logits_fn *on_logits;   // NULL: none
    void *arg;                     // for on_logits and minfer_sequence_arg
    int32_t max_tokens;            // -1: the context is the only bound; else an answer's tokens at most
    bool ignore_end;               // tokens of minfer_is_end don't end the answer
    bool evaluate_only;            // nothing is sampled: tokens are evaluated, and their logits reported
    bool all_logits;               // on_logits gets the logits of every row, in order, and not only of the last
    const char *const *stop_texts; // none; each ends the answer before it: 1 to 4096 bytes, for models with a tokenizer
    size_t n_stop_texts;
    // NULL: none; what each answer may say. Of the engine's model; held by the sequence, so it may be freed at once. With ignore_end an
    // ending token is only chosen where no other is allowed.
    const minfer_constraint *constraint;
} minfer_sequence_options;

MINFER_API void minfer_sequence_options_init(minfer_sequence_options *options, size_t size);

// A sequence without tokens. options may be NULL: the defaults. What they point to is copied. NULL with error: all of the engine's
// sequences are in use (MINFER_ERROR_LIMIT), nonsense in the options (by name and value), memory.
MINFER_API minfer_sequence *minfer_sequence_new(minfer_engine *engine, const minfer_sequence_options *options,
                                                minfer_error *error);

// Ends a sequence at any time and gives its cells back; inside a callback of its engine, behind the step.
MINFER_API void minfer_sequence_free(minfer_sequence *sequence);

// Appends tokens: a prompt, the next turn. The following steps evaluate them and generate from there, also after the sequence had
// finished. Refused, with nothing changed: ids outside the vocabulary, more than the context holds (MINFER_ERROR_LIMIT, with both
// counts), memory.
MINFER_API bool minfer_append(minfer_sequence *sequence, const int32_t *ids, size_t n, minfer_error *error);

// The same with the ids of minfer_encode and of minfer_encode_chat. The latter begins a conversation: a sequence that has tokens is refused,
// since its further turns are not what a template writes for their messages alone.
MINFER_API bool minfer_append_text(minfer_sequence *sequence, const char *text, size_t len, unsigned flags,
                                   minfer_error *error);
MINFER_API bool minfer_append_chat(minfer_sequence *sequence, const minfer_message *messages, size_t n_messages,
                                   bool open_answer, minfer_error *error);

// Drops every token from number n on and stops; something must be appended before it goes on. n beyond the end drops nothing. Refused: a
// negative n.
MINFER_API bool minfer_truncate(minfer_sequence *sequence, int32_t n, minfer_error *error);

// Drops the tokens [n_keep, n_keep + n_discard), all of them evaluated, and moves what is behind them down without evaluating it again:
// room in a context that is full. Drop a quarter of the context at least at once. What was moved saw tokens that are gone: it is not what a new
// sequence of the remaining tokens would give, and is shared with none. Refused: a range that is not evaluated, a cache without room.
MINFER_API bool minfer_shift(minfer_sequence *sequence, int32_t n_keep, int32_t n_discard, minfer_error *error);

// Stops generating: no event comes until something is appended or the answer is resumed.
MINFER_API void minfer_stop(minfer_sequence *sequence);

// Goes on with an answer that was stopped, cut by minfer_truncate, or loaded by minfer_session_open: with the bytes that it would have had,
// max_tokens counted from its beginning, no random draw used twice. True and nothing changes where it goes on anyway. Refused: an answer that ended
// by itself (an ending token, a stop text: MINFER_ERROR_ARGUMENT; max_tokens, the context: MINFER_ERROR_LIMIT), a sequence without tokens.
MINFER_API bool minfer_resume(minfer_sequence *sequence, minfer_error *error);

// The tokens so far, appended and generated; they live until the next call that changes the sequence, a step included.
MINFER_API const int32_t *minfer_sequence_tokens(const minfer_sequence *sequence, size_t *n);
MINFER_API int32_t minfer_sequence_n_evaluated(const minfer_sequence *sequence);   // how many of them are in the KV cache
MINFER_API int32_t minfer_sequence_n_cached(const minfer_sequence *sequence);      // that came from the prefix cache
MINFER_API bool minfer_sequence_idle(const minfer_sequence *sequence);             // a step would do nothing for it
MINFER_API const char *minfer_sequence_stop_text(const minfer_sequence *sequence); // that ended the answer; NULL: none did
MINFER_API void *minfer_sequence_arg(const minfer_sequence *sequence);             // of its options
MINFER_API minfer_engine *minfer_sequence_engine(const minfer_sequence *sequence);

// ---- Conversations: turns over a sequence of its own. Before each answer the whole conversation is rendered by the chat template and
// compared with the tokens that the sequence holds: what they share is kept, and the rest is evaluated. The answer comes as events of the sequence,
// step by step; it is in the history with the next call that changes the conversation, which ends it where it is still coming.

typedef struct minfer_conversation minfer_conversation;

typedef struct minfer_conversation_options {
    size_t size;
    const minfer_sampling *sampling; // NULL: those of minfer_model_sampling
    const char *chat_template;       // NULL: the model's format, as minfer_encode_chat has it; else a template's text
    const char *tools;               // NULL: none; a JSON array, as templates take them
    const char *variables;           // NULL: none; a JSON object of variables for the template ("enable_thinking", …)
    const char *const *stop_texts;   // none; as those of a sequence
    size_t n_stop_texts;
    void *arg;          // for minfer_sequence_arg
    int32_t max_tokens; // -1: the context is the only bound; else an answer's tokens at most
    int32_t n_keep;     // 0; tokens at the beginning that never leave a full context, beside the system message
    int32_t
        n_reserve; // -1; cells that are kept free for an answer when a turn begins; -1: max_tokens, at most a quarter of the context
    bool shift; // true; when turns leave a full context, the cells of those that stay are moved; else evaluated again
    const minfer_constraint *constraint; // NULL: none; as that of a sequence, for each answer
} minfer_conversation_options;

MINFER_API void minfer_conversation_options_init(minfer_conversation_options *options, size_t size);

// A conversation without messages, with a sequence of its own. options may be NULL: the defaults. What they point to is copied. NULL with error: no
// tokenizer, no usable template (with line and construct), what is no JSON, all of the engine's sequences in use, nonsense in the options, memory.
MINFER_API minfer_conversation *minfer_conversation_new(minfer_engine *engine, const minfer_conversation_options *options,
                                                        minfer_error *error);

// Frees a conversation with its sequence, as freeing the sequence or the engine does.
MINFER_API void minfer_conversation_free(minfer_conversation *conversation);

// Its sequence: for events, minfer_stop, minfer_resume, sessions and getters. Its tokens are the conversation's: appending, truncating and shifting are
// refused.
MINFER_API minfer_sequence *minfer_conversation_sequence(const minfer_conversation *conversation);

// The following are refused like a change of the sequence, and for memory; then nothing has changed, but that an answer has ended.

// Adds a message: a JSON object of len bytes with a "role" ("user", "assistant", "system", "tool", …), mostly a text as "content", and what else the
// template knows ("tool_calls", …); with "left": true it is history only, as one that left a full context. What a message says never becomes
// a control token. Nothing is evaluated. Refused: what is no such object.
MINFER_API bool minfer_conversation_add(minfer_conversation *conversation, const char *message, size_t len,
                                        minfer_error *error);

// Begins the answer to the last message: the steps of the engine give it. Refused too: no message, or an answer as the last one; what the template
// refuses (with its words); messages that don't fit even when all older turns leave the context (MINFER_ERROR_LIMIT).
MINFER_API bool minfer_conversation_answer(minfer_conversation *conversation, minfer_error *error);

// Takes the last answer back and begins another, with other random draws. Refused too: no answer.
MINFER_API bool minfer_conversation_regenerate(minfer_conversation *conversation, minfer_error *error);

// Puts another question (a message of the role "user") in the place of the last one and of what followed it, and begins its answer.
MINFER_API bool minfer_conversation_edit(minfer_conversation *conversation, const char *message, size_t len,
                                         minfer_error *error);

// Puts another message in the place of the last one: an answer with its tool calls taken out of the text, say. Nothing is evaluated.
MINFER_API bool minfer_conversation_amend(minfer_conversation *conversation, const char *message, size_t len,
                                          minfer_error *error);

// Takes back the last question and what followed it. Refused too: no question.
MINFER_API bool minfer_conversation_undo(minfer_conversation *conversation, minfer_error *error);

// Forgets all messages but the system message at the beginning.
MINFER_API bool minfer_conversation_clear(minfer_conversation *conversation, minfer_error *error);

// Replaces the system message at the beginning, the tools and the template's variables (those of the options; len 0: none). They
// count from the next answer on.
MINFER_API bool minfer_conversation_set_system(minfer_conversation *conversation, const char *text, size_t len,
                                               minfer_error *error);
MINFER_API bool minfer_conversation_set_tools(minfer_conversation *conversation, const char *tools, size_t len,
                                              minfer_error *error);
MINFER_API bool minfer_conversation_set_variables(minfer_conversation *conversation, const char *variables, size_t len,
                                                  minfer_error *error);

// The history as a JSON array of messages, with what has come of an answer. Those that left a full context have "left": true.
MINFER_API bool minfer_conversation_messages(const minfer_conversation *conversation, char *out, size_t cap, size_t *n,
                                             minfer_error *error);

// What was done to messages that the template does not take as they are, in a sentence; NULL: nothing. Of the last rendering.
MINFER_API const char *minfer_conversation_notice(const minfer_conversation *conversation);

// What the last turn cost.
typedef struct minfer_turn_cost {
    size_t size;
    int32_t n_prompt;       // tokens of the prompt
    int32_t n_evaluated;    // of them to evaluate
    int32_t n_again;        // cached tokens that were dropped: what stands there in the prompt is evaluated
    int32_t n_shifted;      // tokens that left the context while the others were moved
    int32_t n_left;         // messages that left a full context
    char again_reason[256]; // why cached tokens were dropped; "" when none were
} minfer_turn_cost;

// Fills size bytes of *cost: sizeof *cost.
MINFER_API void minfer_conversation_get_cost(const minfer_conversation *conversation, minfer_turn_cost *cost, size_t size);

// ---- Sessions: a sequence on the disk. docs/sessions.md has the format and what may happen to a file. A sequence has one at a time; what
// ends the sequence ends it too.

// Begins a session of a sequence as it is. The file is locked from here on, before anything is written: an empty one takes the name where there is
// none, and a session that stands there is kept until the first commit. Refused: a sequence that has a session, a file that is no session
// (MINFER_ERROR_FORMAT), that can't be written (MINFER_ERROR_IO), that another process has (MINFER_ERROR_LIMIT), memory.
MINFER_API bool minfer_session_new(minfer_sequence *sequence, const char *path, minfer_error *error);

// Loads what was committed last into a sequence without tokens, without evaluating anything, and goes on with that file. All of it is verified before
// anything changes. Refused, by the field's name and both values: another model, rope, arithmetic, cell type, shape; damage
// (MINFER_ERROR_FORMAT); more tokens than the context holds, a cache without room, a file that another process has (MINFER_ERROR_LIMIT).
MINFER_API bool minfer_session_open(minfer_sequence *sequence, const char *path, minfer_error *error);

// The same for a damaged file: loads the last commit before the damage. The file stays as it is until the next commit, which replaces it.
MINFER_API bool minfer_session_recover(minfer_sequence *sequence, const char *path, minfer_error *error);

// Writes what is new since the last commit and n bytes of the caller's, and makes them durable. False with error (MINFER_ERROR_IO: disk full,
// read-only, a file that another program has put there, …): the file keeps the last commit, and a later one may succeed. A process that may meet a limit on file sizes should ignore SIGXFSZ.
MINFER_API bool minfer_session_commit(minfer_sequence *sequence, const void *state, size_t n, minfer_error *error);

// The caller's bytes of the commit that was loaded; NULL: none. They live until the session ends.
MINFER_API const void *minfer_session_state(const minfer_sequence *sequence, size_t *n);

// Ends a session; the sequence goes on without it.
MINFER_API void minfer_session_close(minfer_sequence *sequence);

// ---- Steps

typedef enum minfer_finish {
    MINFER_FINISH_NONE = 0,   // it goes on
    MINFER_FINISH_STOP = 1,   // an ending token or a stop text was generated
    MINFER_FINISH_LENGTH = 2, // max_tokens, or the context is full
    MINFER_FINISH_ERROR = 3,  // see `error`; the sequence can be used again, unless memory for its text was out
    // The constraint leads where no token of the vocabulary does: see `error`; the sequence can be used again.
    MINFER_FINISH_CONSTRAINT = 4
} minfer_finish;

typedef struct minfer_event {
    minfer_sequence *sequence;
    const char *
        text; // what can be said after this token: whole characters, maybe none; NUL-terminated, never NULL. Text that may begin a
    size_t
        text_len; // stop text waits until that is clear. Ending tokens and control tokens have no text, nor do models without a tokenizer
    const minfer_error *error; // MINFER_FINISH_ERROR, MINFER_FINISH_CONSTRAINT: why; else NULL
    int32_t token;             // the generated one; -1: none
    minfer_finish finish;
} minfer_event;

// Evaluates one batch: a row of every sequence that generates, then of prompts what n_batch leaves room for. Fills events[0 … *n-1],
// one for each sequence that got a token or ended; *n is 0 while only prompts were read and when there is nothing to do. `text` and
// `error` live until the next step and until their sequence changes or is freed. An incomplete character at an answer's end is left
// out. A stop text (looked for in the text with that of control tokens), of several the one that begins first, is not part of the text, but its tokens are of the sequence's. Bytes that no continuation could make UTF-8 pass as they are.
// Sequences are served in the order in which their turns were appended. Where the cache is full, those that came last give their cells back
// and go on later, with the same bytes; only what can't fit at all (beside cells that minfer_shift has moved) ends with MINFER_ERROR_LIMIT.
// A row of which an activation is not finite is cut off with the tokens behind it (MINFER_ERROR_NUMERIC).
// cap must be at least the number of the engine's sequences; a smaller one is refused (MINFER_ERROR_SPACE) and nothing is evaluated. When
// the step itself fails, false with error, the events say which sequences ended with it; none does with MINFER_ERROR_CANCELLED.
MINFER_API bool minfer_step(minfer_engine *engine, minfer_event *events, size_t cap, size_t *n, minfer_error *error);

// Whether there is nothing left to evaluate in any sequence. Any thread may ask.
MINFER_API bool minfer_idle(const minfer_engine *engine);

// Makes the step that runs, or the next one where none does, return false with MINFER_ERROR_CANCELLED within a few milliseconds. Nothing is
// lost: the step after it evaluates the same rows and gives the same bytes. Any thread may call it, and a signal's handler; not
// while the engine is freed.
MINFER_API void minfer_interrupt(minfer_engine *engine);

#ifdef __cplusplus
}
#endif

#endif
