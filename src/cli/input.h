// The text a command works on.
#ifndef MF_CLI_INPUT_H
#define MF_CLI_INPUT_H

#include "base/error.h"
#include "base/text.h"
#include "cli/options.h"

// The text by a word or -p, from a file, or from standard input when there is neither and it is no terminal. *storage
// (empty, freed by the caller) holds it where it was read. Gives an exit code; `what` names the text in the refusal.
int mf_input_text(const mf_options *o, const char *what, mf_buf *storage, mf_str *text, mf_error *err);

// Without the line end that a file or an echo leaves behind.
mf_str mf_input_chop(mf_str text);

#endif
