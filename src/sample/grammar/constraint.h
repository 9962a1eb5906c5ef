// A constraint: what an answer may say. Compiled once from a grammar or a JSON Schema, then shared by any number of sequences and
// threads; where a sequence stands in it is a number. docs/constrained.md has the grammars.
#ifndef MF_SAMPLE_GRAMMAR_CONSTRAINT_H
#define MF_SAMPLE_GRAMMAR_CONSTRAINT_H

#include "base/error.h"
#include "base/text.h"
#include "sample/grammar/vocab.h"

typedef struct mf_constraint mf_constraint;

// Text before the constrained one that stays free: a model's thought. It ends with `close`; `open` begins it, unless it is open already
// (then it must come; else it may). Marks are texts, or control tokens of that name. Up to 20 white-space characters behind it belong to
// no one.
typedef struct mf_free_text {
    const char *open, *close;
    bool is_open;
} mf_free_text;

// free_text NULL: none. vocab: borrowed, must outlive the constraint; NULL: only texts can be checked. NULL with err: what the grammar has that is wrong
// (MF_ERR_FORMAT, MF_ERR_ARGUMENT), not understood (MF_ERR_UNSUPPORTED) or too large (MF_ERR_LIMIT).
mf_constraint *mf_constraint_of_gbnf(mf_str grammar, const mf_grammar_vocab *vocab, const mf_free_text *free_text,
                                     mf_error *err);

typedef struct mf_schema_options {
    bool any_order;    // declared properties may come in any order
    bool closed;       // objects that declare properties take no others unless the schema says so
    bool strict_oneof; // oneOf is refused where its branches can't be told apart
} mf_schema_options;

mf_constraint *mf_constraint_of_schema(mf_str schema, const mf_schema_options *options, const mf_grammar_vocab *vocab,
                                       const mf_free_text *free_text, mf_error *err);

mf_constraint *mf_constraint_hold(mf_constraint *c); // one user more; returns it
void mf_constraint_drop(mf_constraint *c);           // one less; NULL is fine

// ---- Places. Each that a function gives must be dropped.

typedef uint32_t mf_constraint_place;

mf_constraint_place mf_constraint_start(mf_constraint *c);
void mf_constraint_drop_place(mf_constraint *c, mf_constraint_place place);
mf_constraint_place mf_constraint_copy_place(mf_constraint *c, mf_constraint_place place);

// Where a token leads; the place it came from stays. False with err: the token is not allowed there (MF_ERR_ARGUMENT), memory. An ending
// token leads nowhere: the place stays the same.
bool mf_constraint_advance(mf_constraint *c, mf_constraint_place place, int32_t token, mf_constraint_place *to,
                           mf_error *err);

// Whether an answer may end there.
bool mf_constraint_final(mf_constraint *c, mf_constraint_place place);

int32_t mf_constraint_vocab_size(const mf_constraint *c);         // ids; 0: there is no vocabulary
bool mf_constraint_is_end(const mf_constraint *c, int32_t token); // one that ends an answer

// The tokens that are allowed at a place: a bit for each of the vocabulary's, in words of 64. Held by whoever got it.
typedef struct mf_token_mask {
    _Atomic uint32_t users;
    uint32_t n_allowed;
    uint64_t words[];
} mf_token_mask;

// Ending tokens are allowed where the answer may end. The caller drops the mask. NULL with err: memory, a grammar too ambiguous.
mf_token_mask *mf_constraint_mask(mf_constraint *c, mf_constraint_place place, mf_error *err);

void mf_token_mask_drop(mf_token_mask *mask); // NULL is fine

// A mask's words without the ending tokens.
void mf_constraint_without_ends(const mf_constraint *c, const uint64_t *words, uint64_t *out);

// Fails with the sentence for an answer that no token can go on: its last bytes, and the bytes that could follow.
bool mf_constraint_fail_stuck(mf_constraint *c, mf_constraint_place place, const int32_t *tokens, size_t n, mf_error *err);

// The bytes that every way to go on from there begins with, at most cap; 0 where there is a choice or the answer may end.
size_t mf_constraint_forced(mf_constraint *c, mf_constraint_place place, char *out, size_t cap);

typedef enum mf_check {
    MF_CHECK_ACCEPTED,
    MF_CHECK_INCOMPLETE,
    MF_CHECK_REJECTED,
    MF_CHECK_FAILED // with err: memory, a grammar too ambiguous
} mf_check;

// Holds a text against a constraint. *at: the first byte after which nothing could complete it, where it is rejected.
mf_check mf_constraint_check(mf_constraint *c, mf_str text, size_t *at, mf_error *err);

#endif
