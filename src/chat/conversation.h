// A conversation over one sequence of an engine: messages in, and of the prompt only what the cache does not hold is evaluated.
//
// Before each turn the whole conversation is rendered and encoded, and compared with the sequence's tokens by what they say
// (chat/align.h): the ids that were generated are kept, and evaluation starts at the first token that differs. Templates that only
// append cost a turn its own tokens; others cost what they changed. Texts are kept as UTF-8: bytes that are not, and NUL, become
// U+FFFD, so that a history is the same after it was written to a file and read again.
#ifndef MF_CHAT_CONVERSATION_H
#define MF_CHAT_CONVERSATION_H

#include "engine/engine.h"
#include "text/chat_template.h"

typedef struct mf_chat_entry {
    char *role, *content; // owned
    bool left;            // it left a full context: part of the history, not of the prompt
    char *json;           // owned; the whole message, where it has other members than these; else NULL
} mf_chat_entry;

// Renders and encodes messages; with open_answer the opening of the assistant's turn stands behind them. Appends to *ids.
typedef bool mf_chat_render_fn(void *arg, const mf_chat_message *messages, size_t n, bool open_answer, mf_token_array *ids,
                               mf_error *err);

typedef struct mf_conversation_params {
    const mf_tokenizer *tokenizer;
    mf_sequence *sequence; // empty or as a session left it; has a sampler; nobody else changes it
    int32_t n_ctx;         // cells of the sequence
    int32_t n_keep;        // tokens at the beginning that never leave, beside the system message
    int32_t n_reserve;     // cells that are kept free for an answer when a turn begins
    uint64_t seed;         // the sampler's; a regenerated answer gets the next one
    bool shift;            // on overflow move the cells that stay; else evaluate them again
    mf_chat_render_fn *render;
    void *render_arg;
} mf_conversation_params;

// What the last turn cost.
typedef struct mf_turn_cost {
    int32_t n_prompt;       // tokens of the prompt
    int32_t n_evaluated;    // of them evaluated
    int32_t n_again;        // cached tokens that were dropped: what stands there in the prompt is evaluated
    int32_t n_shifted;      // tokens that left the context by a shift
    int32_t n_left;         // messages that left the context
    char again_reason[160]; // why cells were dropped; "" when none were
} mf_turn_cost;

typedef struct mf_conversation {
    mf_conversation_params params;
    mf_array(mf_chat_entry) entries; // a system message, if any, is the first
    uint64_t seed_step;              // times a turn was regenerated
    mf_turn_cost cost;
    const char *changed;  // why the sequence holds other turns than the messages say; NULL: it does not
    int32_t answer_start; // tokens before the answer that is the last message, or is being generated; -1: there is none
} mf_conversation;

void mf_conversation_init(mf_conversation *c, const mf_conversation_params *params);
void mf_conversation_free(mf_conversation *c); // not the sequence

// Adds a message without evaluating anything (a history that is loaded). False: memory.
bool mf_conversation_add(mf_conversation *c, const char *role, mf_str content, mf_error *err);

// The same with a message as a JSON object of a role and what the template makes of the rest (tool_calls, …); with "left": true it
// is one that left a full context. MF_ERR_FORMAT: no JSON; MF_ERR_ARGUMENT: no object, or one without a role.
bool mf_conversation_add_json(mf_conversation *c, mf_str message, mf_error *err);

// Puts such a message in the place of the last one. MF_ERR_ARGUMENT: there is none.
bool mf_conversation_amend(mf_conversation *c, mf_str message, mf_error *err);

// Replaces the system message; a text whose pointer is NULL removes it, and an empty one is an empty message. It counts from the next
// turn on.
bool mf_conversation_set_system(mf_conversation *c, mf_str text, mf_error *err);
const char *mf_conversation_system(const mf_conversation *c); // NULL: none

// Begins a turn: adds the user's message and puts into the sequence what it lacks, so that the engine's steps give the answer. On
// failure the conversation is as it was. MF_ERR_LIMIT: the message does not fit even when all older turns leave.
bool mf_conversation_ask(mf_conversation *c, mf_str text, mf_error *err);

// The same for the messages that are there: prepares the answer to the last one. MF_ERR_ARGUMENT: there is none, or it is an answer.
bool mf_conversation_begin(mf_conversation *c, mf_error *err);

// Ends a turn: the answer's text, as far as it came.
bool mf_conversation_answered(mf_conversation *c, mf_str text, mf_error *err);

// Takes the last answer back and prepares another: one row is evaluated. MF_ERR_ARGUMENT: there is no answer.
bool mf_conversation_regenerate(mf_conversation *c, mf_error *err);

// Takes back the last question and what followed it; nothing is evaluated. MF_ERR_ARGUMENT: there is none.
bool mf_conversation_undo(mf_conversation *c, mf_error *err);

// Begins the last turn again with another question, which takes the place of the old one and its answer; on failure these stay.
// MF_ERR_ARGUMENT: there is no question.
bool mf_conversation_edit(mf_conversation *c, mf_str text, mf_error *err);
bool mf_conversation_edit_json(mf_conversation *c, mf_str message, mf_error *err);

// The last question; NULL: none.
const char *mf_conversation_last_question(const mf_conversation *c);

// Forgets everything but the system message.
void mf_conversation_clear(mf_conversation *c);

// The tokens that the conversation takes up in the context. Where the sequence still holds other turns (after a clear, an undo, a new
// system message) it is rendered to count them; -1 where the template refuses that, and only the next turn will tell.
int32_t mf_conversation_n_tokens(const mf_conversation *c);

#endif
