// Chat templates: a conversation to the text a model was trained on, keeping which parts came from messages, so that what a
// person writes never becomes a control token. docs/chat_templates.md has the rules.
#ifndef MF_TEXT_CHAT_TEMPLATE_H
#define MF_TEXT_CHAT_TEMPLATE_H

#include "base/json.h"
#include "text/jinja/jinja.h"
#include "text/tokenizer.h"

// A compiled template. Immutable: any number of threads may use one at the same time.
typedef struct mf_chat_template mf_chat_template;

// Compiles a template. NULL with err: line, column and what is refused.
mf_chat_template *mf_chat_template_new(mf_str source, mf_error *err);

// ChatML: <|im_start|>role\ncontent<|im_end|>\n for each message, then <|im_start|>assistant\n. It adds no system message.
mf_chat_template *mf_chat_template_chatml(mf_error *err);

// The template of a model file: `tokenizer.chat_template`, or the variant `name` (`tokenizer.chat_template.NAME`); with name NULL
// and `tools`, the variant tool_use where the file has one. *own is false where the file has no template at all and this is
// ChatML. NULL with err: no such variant (with the list), a template that is refused.
mf_chat_template *mf_chat_template_of_file(const mf_gguf *file, const char *name, bool tools, bool *own, mf_error *err);

// What a person gave for a template: "chatml", a variant's name, a path, or the template itself (a text with {% or {{). `file`
// may be NULL.
mf_chat_template *mf_chat_template_choose(const mf_gguf *file, const char *given, mf_error *err);

void mf_chat_template_free(mf_chat_template *t); // NULL is fine
mf_str mf_chat_template_source(const mf_chat_template *t);

// A message of a role and a text, or, where json is not empty, of all the members of that JSON object.
typedef struct mf_chat_message {
    mf_str role, content, json;
} mf_chat_message;

// Such messages as the JSON that rendering takes, in the arena (the texts are borrowed). NULL with err: an empty role, what is no JSON, no
// memory.
mf_json *mf_chat_messages(mf_arena *arena, const mf_chat_message *messages, size_t n, mf_error *err);

typedef struct mf_chat_request {
    const mf_json *messages;          // an array of objects
    const mf_json *tools, *documents; // NULL: None in the template
    const mf_json *variables;         // an object, whose members beat everything else; NULL: none
    bool generation_prompt;           // open the assistant's turn
    const mf_tokenizer *tokenizer;    // where bos_token, eos_token, unk_token and pad_token come from; NULL: nowhere
    const char *bos, *eos;            // over those; NULL: not given
    // What conversations and servers use on top of plain rendering: members of messages that are null are left out; reasoning
    // is found under its three names; the role developer becomes system where the template does not know it; late system
    // messages go into the first one where the template refuses them.
    bool rules;
    const mf_jinja_options *options; // NULL: the defaults
} mf_chat_request;

typedef struct mf_chat_prompt {
    mf_jinja_output output;
    mf_array(mf_text_span) spans;   // of the output: those that came from messages have parse_control = false
    const char *note;               // what the rules changed, to be said; NULL: nothing
    const mf_chat_template *source; // borrowed; NULL: the spans are made by hand
} mf_chat_prompt;

// Renders into *out, which is to be freed in any case. False with err where the template refuses the conversation (its own words)
// or can't be rendered (line and expression).
bool mf_chat_template_render(const mf_chat_template *t, const mf_chat_request *request, mf_chat_prompt *out, mf_error *err);
void mf_chat_prompt_free(mf_chat_prompt *prompt);

// Appends the prompt's ids. BOS is put before them where the file asks for one and the template wrote none: never two. Neither a control
// token nor a token that opens or closes turns (turn_marks.h) comes out of a message.
bool mf_chat_prompt_encode(const mf_tokenizer *t, const mf_chat_prompt *prompt, mf_token_array *ids, mf_error *err);

// Appends what a text becomes inside a message of the template (NULL: none is known).
bool mf_chat_text_encode(const mf_tokenizer *t, const mf_chat_template *source, mf_str text, mf_token_array *ids,
                         mf_error *err);

#endif
