#include "api/sampling_keys.h"

#include <stdio.h>

static const struct {
    const char *key, *field;
    bool integer;
    size_t offset;
} keys[] = {
    {"general.sampling.temp", "temp", false, offsetof(mf_sampler_params, temp)},
    {"general.sampling.top_k", "top_k", true, offsetof(mf_sampler_params, top_k)},
    {"general.sampling.top_p", "top_p", false, offsetof(mf_sampler_params, top_p)},
    {"general.sampling.min_p", "min_p", false, offsetof(mf_sampler_params, min_p)},
    {"general.sampling.xtc_probability", "xtc_probability", false, offsetof(mf_sampler_params, xtc_probability)},
    {"general.sampling.xtc_threshold", "xtc_threshold", false, offsetof(mf_sampler_params, xtc_threshold)},
    {"general.sampling.penalty_last_n", "repeat_last_n", true, offsetof(mf_sampler_params, repeat_last_n)},
    {"general.sampling.penalty_repeat", "repeat_penalty", false, offsetof(mf_sampler_params, repeat_penalty)},
    {"general.sampling.mirostat", "mirostat", true, offsetof(mf_sampler_params, mirostat)},
    {"general.sampling.mirostat_tau", "mirostat_tau", false, offsetof(mf_sampler_params, mirostat_tau)},
    {"general.sampling.mirostat_eta", "mirostat_eta", false, offsetof(mf_sampler_params, mirostat_eta)},
};

static bool read_key(const mf_gguf *file, size_t i, mf_sampler_params *p, char value[32], mf_error *err) {
    void *field = (char *)p + keys[i].offset;
    uint32_t whole = 0;
    float real = 0;
    if (!keys[i].integer) {
        if (!mf_gguf_get_f32(file, keys[i].key, &real, err)) return false;
        *(float *)field = real;
        snprintf(value, 32, "%g", (double)real);
        return true;
    }
    if (!mf_gguf_get_u32(file, keys[i].key, &whole, err)) return false;
    if (whole > INT32_MAX) return mf_fail(err, MF_ERR_FORMAT, "%s is %u", keys[i].key, whole);
    *(int32_t *)field = (int32_t)whole;
    snprintf(value, 32, "%u", whole);
    return true;
}

bool mf_sampling_keys_read(const mf_gguf *file, mf_sampler_params *params, const mf_sampling_keys_ask *ask, mf_error *err) {
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        char value[32];
        if (!mf_gguf_find(file, keys[i].key) || (ask->wanted && !ask->wanted(ask->arg, keys[i].field))) continue;
        if (!read_key(file, i, params, value, err)) return false;
        if (ask->used) ask->used(ask->arg, keys[i].field, value);
    }
    return true;
}
