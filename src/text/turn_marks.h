// Which of a vocabulary's user-defined tokens a chat template opens and closes turns with. Some files give such tokens that type
// instead of "control"; what a person writes must not become them, while other user-defined tokens (<think>, runs of spaces) do come
// out of a message, as in transformers.
#ifndef MF_TEXT_TURN_MARKS_H
#define MF_TEXT_TURN_MARKS_H

#include "text/chat_template.h"

// Whether a token may be such a mark: user-defined, and with more than letters, digits and white space.
bool mf_may_mark_turns(const mf_tokenizer *t, int32_t id);

// Appends the marks of prompt->source, found by rendering a small conversation, or where the template refuses that, in `prompt` itself.
// Two tokens like <think> and </think> with no message between are marks inside an answer, not of turns. False with err: no memory.
bool mf_turn_marks(const mf_tokenizer *t, const mf_chat_prompt *prompt, mf_token_array *marks, mf_error *err);

#endif
