// From the prompt's text to the ids that are evaluated.
#ifndef MF_CLI_PROMPT_H
#define MF_CLI_PROMPT_H

#include "cli/load.h"
#include "text/chat_template.h"
#include "text/reasoning.h"

// The chat template that the flags choose, else the file's own, else ChatML with a notice (refused where the vocabulary has no
// tokens for it). `tools`: the conversation has tools. NULL with err.
mf_chat_template *mf_prompt_template(const mf_loaded *l, const mf_options *o, bool tools, mf_error *err);

// The marks between which the model thinks, as the template that answers are made with has them.
const mf_reasoning_marks *mf_prompt_marks(const mf_loaded *l, const mf_options *o);

// The JSON of --chat-template-kwargs, in the arena; *out is NULL where it was not given. Refused: what is no object.
bool mf_prompt_variables(const mf_options *o, mf_arena *arena, const mf_json **out, mf_error *err);

// Appends the ids of the prompt: with --raw the text as it is (control tokens' text becomes those tokens, and BOS is put
// before it where the file asks and the text has none; never EOS behind it), else one user message, after the system message where there is one, in the chat template.
// Refused: an empty prompt, and what mf_prompt_template and the template refuse.
bool mf_prompt_ids(const mf_loaded *l, const mf_options *o, mf_str text, mf_token_array *ids, mf_error *err);

// What a conversation's prompts are rendered with.
typedef struct mf_prompt_source {
    const mf_loaded *loaded;
    const mf_options *options;
    mf_chat_template *template; // freed by the owner
    bool noted;                 // what the chat rules changed has been said
} mf_prompt_source;

// An mf_chat_render_fn (chat/conversation.h) over an mf_prompt_source.
bool mf_prompt_messages(void *source, const mf_chat_message *messages, size_t n, bool open_answer, mf_token_array *ids,
                        mf_error *err);

#endif
