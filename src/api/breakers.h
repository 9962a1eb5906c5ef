// DRY's sequence breakers that are given as text: what each token of a vocabulary does for one.
#ifndef MF_API_BREAKERS_H
#define MF_API_BREAKERS_H

#include "sample/sampler.h"
#include "text/tokenizer.h"

// Makes a breaker of a text, control tokens taken for what they are written. out->tokens is freed with free(). False with err, and
// nothing to free: a text of no bytes or of more than MF_SAMPLER_BREAKER_TEXT_MAX, no memory.
bool mf_breaker_make(const mf_tokenizer *t, mf_str text, mf_breaker_text *out, mf_error *err);

#endif
