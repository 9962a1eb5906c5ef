// Finite automata over characters: what patterns, formats, bounds of numbers and sets of names come to. Deterministic, complete up to a
// dead state, without states that accept nothing.
#ifndef MF_SAMPLE_GRAMMAR_DFA_H
#define MF_SAMPLE_GRAMMAR_DFA_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"
#include "sample/grammar/charset.h"

#define MF_DFA_DEAD       UINT32_MAX
#define MF_DFA_MAX_STATES 20000
#define MF_DFA_MAX_CELLS  (4U << 20) // states times classes

// State 0 is the start. Characters from bounds[c] to the next bound are class c; the last ends with the last character.
typedef struct mf_dfa {
    uint32_t n, n_classes;
    const uint32_t *bounds; // [n_classes]
    const uint32_t *next;   // [n][n_classes]
    const bool *accepts;    // [n]
    uint32_t work;          // what it took to make: moves looked at
} mf_dfa;

// A regular expression as ECMA-262 has it with the flag u: whole says that it must match all of a text, else some part (anchors are
// understood). NULL with err: MF_ERR_FORMAT with the place, MF_ERR_UNSUPPORTED (look-around, back-references, \b), MF_ERR_LIMIT.
const mf_dfa *mf_dfa_of_regex(mf_arena *arena, mf_str pattern, bool whole, mf_error *err);

// Some texts, each UTF-8.
const mf_dfa *mf_dfa_of_texts(mf_arena *arena, const mf_str *texts, size_t n, mf_error *err);

// Whole numbers in decimal (with -, without needless zeros) that are a multiple of m > 0.
const mf_dfa *mf_dfa_of_multiples(mf_arena *arena, uint32_t m, mf_error *err);

const mf_dfa *mf_dfa_intersect(mf_arena *arena, const mf_dfa *a, const mf_dfa *b, mf_error *err);
const mf_dfa *mf_dfa_complement(mf_arena *arena, const mf_dfa *a, mf_error *err);

bool mf_dfa_empty(const mf_dfa *a); // accepts nothing

// Whether a text of min to max characters is accepted; true also where it would take too long to tell.
bool mf_dfa_accepts_length(const mf_dfa *a, uint32_t min, uint32_t max);
bool mf_dfa_accepts(const mf_dfa *a, mf_str text);
uint32_t mf_dfa_step(const mf_dfa *a, uint32_t state, uint32_t cp);

#endif
