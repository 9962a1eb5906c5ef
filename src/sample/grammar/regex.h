// Regular expressions as trees, and the automata with free moves that they come to on the way to a mf_dfa.
#ifndef MF_SAMPLE_GRAMMAR_REGEX_H
#define MF_SAMPLE_GRAMMAR_REGEX_H

#include "base/arena.h"
#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "sample/grammar/charset.h"

typedef enum mf_re_kind {
    MF_RE_EMPTY,
    MF_RE_CHARS,
    MF_RE_SEQUENCE, // a, then b
    MF_RE_CHOICE,   // a or b
    MF_RE_REPEAT,   // a, min to max times
    MF_RE_BEGIN,    // ^
    MF_RE_END,      // $
} mf_re_kind;

typedef struct mf_re {
    mf_re_kind kind;
    mf_charset chars;
    struct mf_re *a, *b;
    uint32_t min, max; // max UINT32_MAX: no bound
} mf_re;

// NULL with err, as mf_dfa_of_regex has it.
mf_re *mf_re_parse(mf_arena *arena, mf_str pattern, mf_error *err);

#endif
