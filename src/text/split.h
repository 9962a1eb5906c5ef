// Runs a pre-tokenizer's splits over text.
#ifndef MF_TEXT_SPLIT_H
#define MF_TEXT_SPLIT_H

#include "base/error.h"
#include "base/text.h"
#include "text/pretokenizers.h"

typedef struct mf_splitter mf_splitter;

// Compiles the expressions. NULL with err: a pattern that PCRE2 refuses (a defect of the table), or memory.
mf_splitter *mf_splitter_new(const mf_pretokenizer *pre, mf_error *err);
void mf_splitter_free(mf_splitter *splitter); // NULL is fine

// What one run needs and changes: one a thread.
typedef struct mf_split_state mf_split_state;
mf_split_state *mf_split_state_new(const mf_splitter *splitter, mf_error *err);
void mf_split_state_free(mf_split_state *state); // NULL is fine

// Cuts `text`, which must be valid UTF-8, into words and hands them on in order; together they are the text. False with err
// when `word` returned false (err is its own) or a match failed.
bool mf_split_run(mf_split_state *state, mf_str text, bool (*word)(void *arg, mf_str word, mf_error *err), void *arg,
                  mf_error *err);

#endif
