// A model's thinking apart from its answer, in text as it comes.
//
// An answer may begin with a thought: the template's last words open it, or a mark that is the first thing the model says (behind white
// space at most). It ends with the closing mark. All that follows is the answer, whatever it says: a mark in it is text.
#ifndef MF_TEXT_REASONING_H
#define MF_TEXT_REASONING_H

#include "base/text.h"

typedef struct mf_reasoning_marks {
    const char *open, *close;
} mf_reasoning_marks;

// The marks of a model family, found by one of them in its chat template; those of a text that has none are <think> and </think>.
const mf_reasoning_marks *mf_reasoning_marks_of(mf_str template_text);

typedef enum mf_reasoning_state {
    MF_REASONING_BEGINS, // white space, and maybe the beginning of the opening mark
    MF_REASONING_THINKS,
    MF_REASONING_ANSWERS,
} mf_reasoning_state;

typedef struct mf_reasoning {
    const mf_reasoning_marks *marks;
    mf_reasoning_state state;
    mf_buf held;     // what may become a mark
    size_t n_spaces; // white space that the answer begins with
    mf_buf thought,
        answer; // what came since the caller took it (by setting their lengths to 0): the thought with its marks, then the answer
} mf_reasoning;

// Begins an answer. `open`: the prompt ends with the opening mark.
void mf_reasoning_init(mf_reasoning *r, const mf_reasoning_marks *marks, bool open);
void mf_reasoning_free(mf_reasoning *r);

// Takes text. Where memory is out, one of the three buffers says so.
void mf_reasoning_text(mf_reasoning *r, mf_str text);

// Ends the text: what was held back goes where it belongs. False when a thought was not ended.
bool mf_reasoning_end(mf_reasoning *r);

// A whole thought without its marks and the white space around it.
mf_str mf_reasoning_inner(const mf_reasoning_marks *marks, mf_str thought);

#endif
