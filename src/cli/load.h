// From a command line to a model that is ready: the file, the devices, the memory plan, the weights.
#ifndef MF_CLI_LOAD_H
#define MF_CLI_LOAD_H

#include "backend/cpu/kernels.h"
#include "cli/options.h"
#include "engine/memory.h"
#include "text/tokenizer.h"

// What a command has open. Zero-initialised is empty.
typedef struct mf_loaded {
    const char *path;
    mf_gguf *file;
    mf_device_list devices;
    mf_model *model;
    mf_tokenizer *tokenizer;
    mf_engine *engine;
} mf_loaded;

void mf_unload(mf_loaded *l);

// Each fills its part, with err on failure; what was opened before stays until mf_unload.
bool mf_load_file(mf_loaded *l, const char *path, mf_error *err);
bool mf_load_devices(mf_loaded *l, const mf_options *o, mf_error *err);
bool mf_load_model(mf_loaded *l, mf_error *err); // of the file
bool mf_load_tokenizer(mf_loaded *l, const mf_options *o, mf_error *err);
bool mf_load_engine(mf_loaded *l, const mf_engine_params *params, mf_error *err); // plans memory, prepares the weights

// The ids that end an answer.
bool mf_load_ends(const mf_loaded *l, mf_token_array *ends, mf_error *err);

// The kernel row that --cpu, or a MINFER_NO_… variable, or nothing asks for.
const mf_kernels *mf_kernel_row(const mf_options *o, mf_error *err);
bool mf_devices_open(mf_device_list *list, const mf_options *o, mf_error *err);

// The engine's parameters that flags set: batch, cells, fusions. False where --cache-type, -ctk and -ctv differ.
const char *mf_cache_type_name(mf_type type); // "q8_0"
bool mf_engine_params_from(const mf_options *o, mf_engine_params *params, mf_error *err);

// Sets n_ctx to what fits into the memory that is free (--ctx auto), before the weights are prepared.
bool mf_load_auto_ctx(const mf_loaded *l, mf_engine_params *params, mf_error *err);

// Sets n_ctx as --ctx asks; without it to 4,096, or to n_tokens where those are more. At most the model's maximum.
bool mf_load_ctx(const mf_loaded *l, const mf_options *o, int64_t n_tokens, mf_engine_params *params, mf_error *err);

// All that answers need but the engine, and the engine's parameters that flags set; logs the file's metadata where --meta asks for it.
bool mf_load_for_answers(mf_loaded *l, const mf_options *o, const char *path, mf_engine_params *params, mf_error *err);

void mf_log_kv(mf_kv_stats stats); // the cache's statistics, for --verbose

#endif
