#include "api/sampling_keys.h"

#include <stdio.h>

static const struct {
    const char *key, *field;
    bool integer;
    bool off; // below 0 it is off, which is 0 here: as llama.cpp has it
    size_t offset;
} keys[] = {
    {"general.sampling.temp", "temp", false, true, offsetof(mf_sampler_params, temp)},
    {"general.sampling.top_k", "top_k", true, false, offsetof(mf_sampler_params, top_k)},
    {"general.sampling.top_p", "top_p", false, false, offsetof(mf_sampler_params, top_p)},
    {"general.sampling.min_p", "min_p", false, true, offsetof(mf_sampler_params, min_p)},
    {"general.sampling.xtc_probability", "xtc_probability", false, true, offsetof(mf_sampler_params, xtc_probability)},
    {"general.sampling.xtc_threshold", "xtc_threshold", false, false, offsetof(mf_sampler_params, xtc_threshold)},
    {"general.sampling.penalty_last_n", "repeat_last_n", true, false, offsetof(mf_sampler_params, repeat_last_n)},
    {"general.sampling.penalty_repeat", "repeat_penalty", false, false, offsetof(mf_sampler_params, repeat_penalty)},
    {"general.sampling.mirostat", "mirostat", true, false, offsetof(mf_sampler_params, mirostat)},
    {"general.sampling.mirostat_tau", "mirostat_tau", false, false, offsetof(mf_sampler_params, mirostat_tau)},
    {"general.sampling.mirostat_eta", "mirostat_eta", false, false, offsetof(mf_sampler_params, mirostat_eta)},
};

// -1 is taken as it is: whether it means something is for mf_sampler_params_check.
static bool read_integer(const mf_gguf *file, const char *key, int32_t *out, mf_error *err) {
    const mf_gguf_value *v = mf_gguf_find(file, key);
    bool is_signed = v->kind == MF_GGUF_I8 || v->kind == MF_GGUF_I16 || v->kind == MF_GGUF_I32 || v->kind == MF_GGUF_I64;
    uint32_t whole = 0;
    if (is_signed && mf_gguf_int_at(v, 0) == -1) return *out = -1, true;
    if (!mf_gguf_get_u32(file, key, &whole, err)) return false;
    if (whole > INT32_MAX) return mf_fail(err, MF_ERR_FORMAT, "%s is %u", key, whole);
    *out = (int32_t)whole;
    return true;
}

static bool read_key(const mf_gguf *file, size_t i, mf_sampler_params *p, char value[32], mf_error *err) {
    void *field = (char *)p + keys[i].offset;
    if (keys[i].integer) {
        if (!read_integer(file, keys[i].key, field, err)) return false;
        snprintf(value, 32, "%d", *(int32_t *)field);
        return true;
    }
    float real = 0;
    if (!mf_gguf_get_f32(file, keys[i].key, &real, err)) return false;
    if (keys[i].off && real < 0) real = 0;
    *(float *)field = real;
    snprintf(value, 32, "%g", (double)real);
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
