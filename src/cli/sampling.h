// The sampler's config out of flags, the file and the defaults.
#ifndef MF_CLI_SAMPLING_H
#define MF_CLI_SAMPLING_H

#include "cli/options.h"
#include "gguf/gguf.h"
#include "text/tokenizer.h"

// A config with the arrays it borrows.
typedef struct mf_sampling {
    mf_sampler_params params;
    mf_array(int32_t) ids; // of the DRY breakers, one after the other
    mf_array(mf_token_run) breakers;
    mf_array(mf_breaker_text) texts; // of those that are texts
    mf_array(mf_logit_bias) biases;
} mf_sampling;

// Flags beat the file's general.sampling.* keys, which beat the defaults; keys that are used are printed, and so is a random
// seed. eog, n_eog: tokens that --ignore-eos rules out. n_vocab is the model's. False with err for nonsense. Freed in any
// case.
bool mf_sampling_make(mf_sampling *s, const mf_options *o, const mf_gguf *file, const mf_tokenizer *tokenizer,
                      const int32_t *eog, size_t n_eog, int32_t n_vocab, mf_error *err);
void mf_sampling_free(mf_sampling *s);

#endif
