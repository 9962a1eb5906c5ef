// The vocabulary of a tokenizer as constraints see it.
#ifndef MF_API_VOCAB_H
#define MF_API_VOCAB_H

#include "sample/grammar/vocab.h"
#include "text/tokenizer.h"

// n_model: the ids that the model has logits for; those that the tokenizer doesn't have are never allowed. NULL with err: memory.
mf_grammar_vocab *mf_vocab_of_tokenizer(const mf_tokenizer *t, int32_t n_model, mf_error *err);

#endif
