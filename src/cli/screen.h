// Text that is not the program's own, on a terminal.
#ifndef MF_CLI_SCREEN_H
#define MF_CLI_SCREEN_H

#include "base/text.h"
#include "cli/terminal.h"

// Text as it comes, in pieces of any size. Zero-initialised is ready.
typedef struct mf_screen {
    char held[4]; // an incomplete character, or a carriage return
    size_t n_held;
} mf_screen;

// Appends the text with pictures of control characters (U+2400 and on; U+FFFD for C1 and for bytes that are no characters), so that
// nothing in it commands the terminal. Line ends (CR LF as LF) and tabs stay.
void mf_screen_text(mf_screen *s, mf_str text, mf_buf *out);

// Appends what was held back.
void mf_screen_end(mf_screen *s, mf_buf *out);

// Prints a whole text: on a terminal in that form, unless it is to be `raw`, and elsewhere as it is. False as mf_output_buf.
bool mf_screen_print(mf_output *out, const mf_buf *text, bool raw);

#endif
