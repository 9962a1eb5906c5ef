// The sampling defaults that a model's file can bring: its general.sampling.* keys.
#ifndef MF_API_SAMPLING_KEYS_H
#define MF_API_SAMPLING_KEYS_H

#include "gguf/gguf.h"
#include "sample/sampler.h"

// What the reader of the keys asks and tells. NULL members: every value is used, nothing is told.
typedef struct mf_sampling_keys_ask {
    bool (*wanted)(void *arg, const char *field); // whether the file's value for a field of the params ("top_k") is used
    void (*used)(void *arg, const char *field, const char *value); // it is, and here as text
    void *arg;
} mf_sampling_keys_ask;

// Puts the file's values over *params. False with err: a key of another kind, a number that does not fit. Whether the values make sense
// is for mf_sampler_params_check.
bool mf_sampling_keys_read(const mf_gguf *file, mf_sampler_params *params, const mf_sampling_keys_ask *ask, mf_error *err);

#endif
