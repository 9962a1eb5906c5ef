// What the flags say of what an answer may say.
#ifndef MF_CLI_CONSTRAIN_H
#define MF_CLI_CONSTRAIN_H

#include "cli/load.h"
#include "sample/grammar/constraint.h"
#include "text/reasoning.h"

// A constraint with its vocabulary. Zero-initialised is none.
typedef struct mf_constrained {
    mf_grammar_vocab *vocab;
    mf_constraint *constraint;
} mf_constrained;

bool mf_constrain_wanted(const mf_options *o);

// Compiles what --grammar, --json-schema or --json-object ask for; none leaves *out empty. l: for its vocabulary; NULL: only texts will be
// checked. marks: of the model's thoughts, which stay free; NULL: it has none. open: answers begin inside a thought. False with err: what
// is wrong with it, by line and column or by JSON pointer. Freed in any case.
bool mf_constrain_make(mf_constrained *out, const mf_options *o, const mf_loaded *l, const mf_reasoning_marks *marks,
                       bool open, mf_error *err);
void mf_constrain_drop(mf_constrained *c);

#endif
