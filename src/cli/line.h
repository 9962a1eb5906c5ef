// Reading what a person types: with line editing and a history on a terminal, plain lines otherwise.
#ifndef MF_CLI_LINE_H
#define MF_CLI_LINE_H

#include "base/error.h"
#include "base/text.h"

typedef struct mf_line_reader mf_line_reader;

typedef enum mf_line_end {
    MF_LINE_ENTERED,
    MF_LINE_CANCELLED, // Ctrl-C: what was typed is dropped
    MF_LINE_EOF,
} mf_line_end;

// history: a file that lines are remembered in (NULL: none); it and its folder are made when needed, with access for the owner alone.
// NULL with err when memory is out.
mf_line_reader *mf_line_reader_new(const char *history, mf_error *err);
void mf_line_reader_free(mf_line_reader *r); // writes the history

bool mf_line_terminal(const mf_line_reader *r); // whether a person types: standard input and output are terminals

// Where a line is pasted and not typed: what stands there is text, whatever it looks like.
typedef struct mf_line_pasted {
    bool begin, end;
} mf_line_pasted;

// Appends a line without its line end (LF or CR LF) to *out; *pasted may be NULL. prompt is shown on a terminal only. A pasted text is
// one line, line ends and all; its NULs become U+FFFD. Without a terminal a byte order mark before the first line is left out, and what
// a line has over the limit of *out is passed over.
mf_line_end mf_line_read(mf_line_reader *r, const char *prompt, mf_buf *out, mf_line_pasted *pasted);

// Puts a text into the line that is read next, to be edited (on a terminal).
void mf_line_prefill(mf_line_reader *r, mf_str text);

// Remembers a text.
void mf_line_remember(mf_line_reader *r, const char *text);

// The file of a person's history: $XDG_STATE_HOME or ~/.local/state, then minfer/history. False without a home.
bool mf_line_history_path(mf_buf *out);

#endif
