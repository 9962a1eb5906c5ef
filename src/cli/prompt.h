// From the prompt's text to the ids that are evaluated.
#ifndef MF_CLI_PROMPT_H
#define MF_CLI_PROMPT_H

#include "cli/load.h"

// Appends the ids of the prompt: with --raw the text as it is (control tokens' text becomes those tokens, and BOS is put
// before it where the file asks), else one user message, after the system message where there is one, in the model's chat
// template. Refused: an empty prompt, a model without ChatML's tokens unless --raw.
bool mf_prompt_ids(const mf_loaded *l, const mf_options *o, mf_str text, mf_token_array *ids, mf_error *err);

#endif
