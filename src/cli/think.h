// Colour on a terminal: a model's thinking is dimmed.
#ifndef MF_CLI_THINK_H
#define MF_CLI_THINK_H

#include "cli/options.h"
#include "cli/terminal.h"

// What stands between <think> and </think>, tags included, in the stream of an answer. Zero-initialised it passes text through.
typedef struct mf_think {
    bool color;
    bool hide; // what is thought is left out
    bool inside;
    bool skip_space; // the empty lines behind what was hidden go too
    char held[16];   // the beginning of what may be a tag
    size_t n_held;
} mf_think;

// Whether text is coloured: --color (or MINFER_COLOR) where it says always or never, else only on a terminal where NO_COLOR is not set.
bool mf_think_wanted(const mf_options *o);

// Writes text with the terminal's codes in it. False when it can't be written.
bool mf_think_write(mf_think *t, mf_output *out, mf_str text);

// Writes what was held back and leaves the terminal as it was.
bool mf_think_end(mf_think *t, mf_output *out);

#endif
