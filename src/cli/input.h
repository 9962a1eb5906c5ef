// The text a command works on.
#ifndef MF_CLI_INPUT_H
#define MF_CLI_INPUT_H

#include "base/error.h"
#include "base/text.h"
#include "cli/options.h"

// Reads a text of at most `limit` bytes from a file, or from standard input for "-": then, after a second without a byte, a line of the log says
// that `what` is waited for.
bool mf_input_read(const char *path, size_t limit, const char *what, mf_buf *out, mf_error *err);

// The text by a word or -p, from a file, or from standard input when there is neither and it is a file, a pipe or a socket. *storage
// (empty, freed by the caller) holds it where it was read. Gives an exit code; `what` names the text in the refusal.
int mf_input_text(const mf_options *o, const char *what, mf_buf *storage, mf_str *text, mf_error *err);

// The prompt that is answered: such a text, without the line end that a file or an echo leaves behind. What a file or pipe on standard input has
// beside a word or -p stands behind it, with a blank line between; beside -f it is refused. Gives an exit code.
int mf_input_prompt(const mf_options *o, mf_buf *storage, mf_str *text, mf_error *err);

// Without the line end that a file or an echo leaves behind.
mf_str mf_input_chop(mf_str text);

#endif
