// Chat templates: a conversation to the text a model was trained on, keeping which parts came from messages, so that what a
// person writes never becomes a control token.
#ifndef MF_TEXT_CHAT_TEMPLATE_H
#define MF_TEXT_CHAT_TEMPLATE_H

#include "text/tokenizer.h"

typedef struct mf_chat_message {
    mf_str role, content;
} mf_chat_message;

// The rendered conversation: for mf_tokenizer_encode_spans, without MF_ENCODE_ADD_SPECIAL (a template writes its own BOS).
// Spans that came from messages have parse_control = false. Freed with free(p.data); the texts point into the messages and the
// template.
typedef mf_array(mf_text_span) mf_chat_prompt;

typedef struct mf_chat_template mf_chat_template;
struct mf_chat_template {
    const char *name;
    // Appends the conversation to *out, and with generation_prompt the opening of the assistant's turn behind it. False with
    // err when memory is out or the template refuses the messages (an empty role); *out is then to be freed all the same.
    bool (*render)(const mf_chat_template *self, const mf_chat_message *messages, size_t n, bool generation_prompt,
                   mf_chat_prompt *out, mf_error *err);
};

// ChatML: <|im_start|>role\ncontent<|im_end|>\n for each message, then <|im_start|>assistant\n. It adds no system message.
const mf_chat_template *mf_chat_template_chatml(void);

#endif
