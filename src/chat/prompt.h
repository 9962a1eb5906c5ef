// Bringing a conversation's sequence to the prompt of its next answer.
#ifndef MF_CHAT_PROMPT_H
#define MF_CHAT_PROMPT_H

#include "chat/conversation.h"

// Renders the conversation, whose last message is the user's, and puts into the sequence what it lacks; the oldest turns leave where
// it would not fit. Fills c->cost. On failure nothing has changed, but for cells that a later turn evaluates again.
bool mf_prompt_prepare(mf_conversation *c, mf_error *err);

// The tokens of the conversation as it stands, without the opening of an answer; -1 where the template refuses it.
int32_t mf_prompt_count(const mf_conversation *c);

#endif
