// An answer's text on its way out: what a model thinks is dimmed or hidden, and nothing in it commands the terminal.
#ifndef MF_CLI_THINK_H
#define MF_CLI_THINK_H

#include "cli/options.h"
#include "cli/screen.h"
#include "cli/terminal.h"
#include "text/reasoning.h"

typedef struct mf_think {
    mf_reasoning reasoning;
    bool color;      // thoughts are dimmed
    bool hide;       // thoughts are left out
    bool pictures;   // control characters become pictures
    bool skip_space; // the empty lines behind what was hidden go too
    bool dimmed;
    bool cut; // at the end: a thought was not ended
    mf_screen screen;
    mf_buf thought, answer; // all of them, where thoughts are hidden
    mf_buf line;            // what goes out next
} mf_think;

// Whether text is coloured: --color (or MINFER_COLOR) where it says always or never, else only on a terminal where NO_COLOR is not set.
bool mf_think_wanted(const mf_options *o);

// Begins an answer as the options say; `open`: the prompt ends with the mark that opens a thought.
void mf_think_init(mf_think *t, const mf_options *o, const mf_reasoning_marks *marks, bool open);
void mf_think_free(mf_think *t);

// Writes text with the terminal's codes in it; with out NULL it is only taken apart. False when it can't be written or memory is out.
bool mf_think_write(mf_think *t, mf_output *out, mf_str text);

// Writes what was held back and leaves the terminal as it was.
bool mf_think_end(mf_think *t, mf_output *out);

#endif
