// Structs that can grow: their first member is the size the caller knows.
#include <string.h>

#include "api/api.h"
#include "api/sampling_keys.h"

#define MOST_BYTES 4096 // of a struct that an init function filled: more is garbage

// Puts the defaults into as much of the caller's struct as both sides know; the rest is 0.
static void init(void *out, size_t size, const void *defaults, size_t known) {
    memset(out, 0, size);
    memcpy(out, defaults, size < known ? size : known);
    if (size >= sizeof size) memcpy(out, &size, sizeof size);
}

// Puts the caller's fields over the defaults in *own. `first` is the struct's size in the first version that had it.
static bool take(void *own, size_t known, size_t first, const void *given, const char *name, mf_error *err) {
    if (!given) return true;
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < first || size > MOST_BYTES)
        return mf_fail(err, MF_ERR_ARGUMENT, "a %s has size %zu: it was not filled by %s_init", name, size, name);
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)given)[i])
            return mf_fail(err, MF_ERR_UNSUPPORTED,
                           "a %s of %zu bytes sets something that this version of the library, which knows %zu, can't do",
                           name, size, known);
    memcpy(own, given, size < known ? size : known);
    memcpy(own, &known, sizeof known);
    return true;
}

static const minfer_model_options model_defaults = {.size = sizeof model_defaults};
static const minfer_engine_options engine_defaults = {
    .size = sizeof engine_defaults, .max_sequences = 1, .n_batch = 512, .prefix_cache = true, .kv_share = true};
static const minfer_conversation_options conversation_defaults = {
    .size = sizeof conversation_defaults, .max_tokens = -1, .n_reserve = -1, .shift = true};
static const minfer_sequence_options sequence_defaults = {.size = sizeof sequence_defaults, .max_tokens = -1};

static minfer_sampling sampling_of(mf_sampler_params p) {
    return (minfer_sampling){.size = sizeof(minfer_sampling),
                             .seed = p.seed,
                             .temp = p.temp,
                             .top_k = p.top_k,
                             .top_p = p.top_p,
                             .min_p = p.min_p,
                             .typical = p.typical,
                             .top_n_sigma = p.top_n_sigma,
                             .xtc_probability = p.xtc_probability,
                             .xtc_threshold = p.xtc_threshold,
                             .repeat_penalty = p.repeat_penalty,
                             .frequency_penalty = p.frequency_penalty,
                             .presence_penalty = p.presence_penalty,
                             .repeat_last_n = p.repeat_last_n,
                             .dry_multiplier = p.dry_multiplier,
                             .dry_base = p.dry_base,
                             .dry_allowed_length = p.dry_allowed_length,
                             .dry_penalty_last_n = p.dry_penalty_last_n,
                             .mirostat = p.mirostat,
                             .mirostat_tau = p.mirostat_tau,
                             .mirostat_eta = p.mirostat_eta,
                             .mirostat_m = p.mirostat_m};
}

static minfer_sampling sampling_defaults(void) {
    mf_sampler_params p;
    mf_sampler_params_init(&p);
    return sampling_of(p);
}

void minfer_model_options_init(minfer_model_options *options, size_t size) {
    init(options, size, &model_defaults, sizeof model_defaults);
}

void minfer_engine_options_init(minfer_engine_options *options, size_t size) {
    init(options, size, &engine_defaults, sizeof engine_defaults);
}

void minfer_sequence_options_init(minfer_sequence_options *options, size_t size) {
    init(options, size, &sequence_defaults, sizeof sequence_defaults);
}

void minfer_conversation_options_init(minfer_conversation_options *options, size_t size) {
    init(options, size, &conversation_defaults, sizeof conversation_defaults);
}

void minfer_sampling_init(minfer_sampling *sampling, size_t size) {
    minfer_sampling defaults = sampling_defaults();
    init(sampling, size, &defaults, sizeof defaults);
}

bool mf_api_file_sampling(const mf_gguf *file, minfer_sampling *own, mf_error *err) {
    static const mf_sampling_keys_ask all = {0};
    mf_sampler_params p;
    mf_sampler_params_init(&p);
    bool ok = mf_sampling_keys_read(file, &p, &all, err);
    *own = ok ? sampling_of(p) : sampling_defaults();
    return ok;
}

bool minfer_model_sampling(const minfer_model *model, minfer_sampling *sampling, size_t size, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    minfer_sampling own = sampling_defaults();
    bool ok = mf_api_need(sampling, "the sampling", &err) && mf_api_need(model, "the model", &err);
    ok = ok && mf_api_file_sampling(model->file, &own, &err);
    if (sampling) init(sampling, size, &own, sizeof own);
    return ok || mf_api_refuse(error, &err);
}

// The sizes of version 0.1 are today's.

bool mf_api_model_options(const minfer_model_options *given, minfer_model_options *own, mf_error *err) {
    *own = model_defaults;
    return take(own, sizeof *own, sizeof *own, given, "minfer_model_options", err);
}

bool mf_api_engine_options(const minfer_engine_options *given, minfer_engine_options *own, mf_error *err) {
    *own = engine_defaults;
    return take(own, sizeof *own, sizeof *own, given, "minfer_engine_options", err);
}

bool mf_api_sequence_options(const minfer_sequence_options *given, minfer_sequence_options *own, mf_error *err) {
    *own = sequence_defaults;
    return take(own, sizeof *own, sizeof *own, given, "minfer_sequence_options", err);
}

bool mf_api_conversation_options(const minfer_conversation_options *given, minfer_conversation_options *own, mf_error *err) {
    *own = conversation_defaults;
    return take(own, sizeof *own, sizeof *own, given, "minfer_conversation_options", err);
}

bool mf_api_sampling_for(const minfer_model *model, const minfer_sampling *given, minfer_sampling *own, mf_error *err) {
    return given ? mf_api_sampling(given, own, err) : mf_api_file_sampling(model->file, own, err);
}

bool mf_api_sampling(const minfer_sampling *given, minfer_sampling *own, mf_error *err) {
    *own = sampling_defaults();
    return take(own, sizeof *own, sizeof *own, given, "minfer_sampling", err);
}
