// Inside of the public interface (include/minfer.h): a thin coat over the engine and the tokenizer. What is decided here is only
// ownership, the growth of structs, and what other threads and a program's own floating-point state may see and do. No lock is
// held while a callback runs.
#ifndef MF_API_API_H
#define MF_API_API_H

#include <minfer.h>

#include <pthread.h>
#include <stdatomic.h>

#include "api/stream.h"
#include "base/float_state.h"
#include "engine/engine.h"
#include "sample/grammar/constraint.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

struct minfer_model {
    mf_gguf *file;
    mf_device_list devices;
    mf_model *model;
    mf_tokenizer *tokenizer; // NULL: ids only
    mf_chat_template *chat;  // the file's chat template, or ChatML; NULL: see chat_error
    mf_error chat_error;     // why it can't be used, for who asks for it
    mf_token_array ends;     // tokens that end a text
    atomic_int users;        // the opener, the engines and the constraints
    pid_t process;           // that opened it and has its threads
    pthread_mutex_t vocab_lock;
    mf_grammar_vocab *vocab; // as constraints see it; NULL: none was asked for
};

struct minfer_constraint {
    minfer_model *model;
    mf_constraint *constraint; // sequences hold it beside the handle
};

struct minfer_engine {
    minfer_model *model;
    mf_engine *engine;
    minfer_sequence **sequences; // [max_sequences], NULL where free
    mf_engine_memory memory;
    int32_t max_sequences, n_sequences;
    bool stepping;       // inside a step, so inside its callbacks
    bool free_after;     // freed inside a step
    mf_float_state host; // of the thread that steps, for callbacks
    // What other threads may ask for, as of the last call that changed it.
    pthread_mutex_t published_lock;
    mf_kv_stats published;
    bool published_idle;
};

struct minfer_sequence {
    minfer_engine *owner;
    mf_sequence *sequence;
    struct mf_session *session; // NULL: none
    int32_t slot;               // in owner->sequences
    minfer_logits_fn *on_logits;
    void *arg;
    mf_token_array stop;               // copies of the options' and the model's ending tokens
    mf_array(char *) stop_texts;       // copies
    mf_stream stream;                  // its output is the last event's text
    minfer_conversation *conversation; // whose sequence it is; NULL: nobody's
    minfer_error error;
    bool failed;
    bool free_after; // freed inside a step
    // What other threads may ask for, as of the last call that changed it.
    atomic_int n_evaluated, n_cached;
    atomic_bool idle;
};

// ---- result.c

// Hands an error to the caller (who may not want it). Returns false.
bool mf_api_refuse(minfer_error *out, const mf_error *err);

// Refuses a NULL where something is needed, by its name.
bool mf_api_need(const void *pointer, const char *name, mf_error *err);

// A result of unknown length, as minfer.h says: count elements of `size` bytes.
bool mf_api_ids(const mf_token_array *ids, int32_t *out, size_t cap, size_t *n, mf_error *err);
bool mf_api_text(mf_str text, char *out, size_t cap, size_t *n, mf_error *err);

// ---- options.c

// Each gives the options as this version knows them: the defaults where NULL was given. False with err for a struct that its init
// function did not fill, or one of a later version that sets what is not known here.
bool mf_api_model_options(const minfer_model_options *given, minfer_model_options *own, mf_error *err);
bool mf_api_engine_options(const minfer_engine_options *given, minfer_engine_options *own, mf_error *err);
bool mf_api_sequence_options(const minfer_sequence_options *given, minfer_sequence_options *own, mf_error *err);
bool mf_api_conversation_options(const minfer_conversation_options *given, minfer_conversation_options *own, mf_error *err);
bool mf_api_sampling(const minfer_sampling *given, minfer_sampling *own, mf_error *err);

// Those given, or those of the file where NULL is.
bool mf_api_sampling_for(const minfer_model *model, const minfer_sampling *given, minfer_sampling *own, mf_error *err);

// The defaults with what the file says over them; false with err and the defaults where it says nonsense.
bool mf_api_file_sampling(const mf_gguf *file, minfer_sampling *own, mf_error *err);

// ---- model.c

// Refuses a forked child: it has none of the model's threads.
bool mf_api_check_process(const minfer_model *model, mf_error *err);

// One user more or less; the last one frees the model.
void mf_api_model_hold(minfer_model *model);
void mf_api_model_drop(minfer_model *model);

// ---- text.c

bool mf_api_need_tokenizer(const minfer_model *model, mf_error *err); // refuses a model without one, and NULL

// What messages are rendered with.
typedef struct mf_api_format {
    const minfer_model *model;
    const mf_chat_template *template;
    const mf_json *tools, *variables; // NULL: none
    const char *note;                 // out: what the rules for messages changed; NULL: nothing
} mf_api_format;

// An mf_chat_render_fn over an mf_api_format.
bool mf_api_render(void *format, const mf_chat_message *messages, size_t n, bool open_answer, mf_token_array *ids,
                   mf_error *err);

bool mf_api_encode(const minfer_model *model, const char *text, size_t len, unsigned flags, mf_token_array *ids,
                   mf_error *err);
bool mf_api_encode_chat(const minfer_model *model, const minfer_message *messages, size_t n, bool open_answer,
                        mf_token_array *ids, mf_error *err);

// ---- engine.c

// Lets other threads see an engine and its sequences as they are.
void mf_api_publish(minfer_engine *engine);

// ---- conversation.c

// Takes what an answer has said: the stream's output. False: memory is out.
bool mf_api_conversation_take(minfer_conversation *c, const mf_stream *stream);

// Whether the answer that its sequence gives is still to come into the history.
bool mf_api_conversation_answers(const minfer_conversation *c);

void mf_api_conversation_free(minfer_conversation *c); // not its sequence

// ---- sequence.c

minfer_sequence *mf_api_sequence_new(minfer_engine *engine, const minfer_sequence_options *options, mf_error *err);

// Refuses a sequence that can't be changed: NULL, failed, inside a step, or in a forked child.
bool mf_api_check_open(const minfer_sequence *s, mf_error *err);

// The same of one sequence.
void mf_api_publish_sequence(minfer_sequence *s);

#endif
