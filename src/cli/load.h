// From a command line to a model that is ready: the file, the devices, the memory plan, the weights.
#ifndef MF_CLI_LOAD_H
#define MF_CLI_LOAD_H

#include "backend/cpu/kernels.h"
#include "cli/options.h"
#include "engine/engine.h"
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
bool mf_load_file(mf_loaded *l, const char *path, mf_error *err); // names such as hf:… are refused
bool mf_load_devices(mf_loaded *l, const mf_options *o, mf_error *err);
bool mf_load_model(mf_loaded *l, mf_error *err); // of the file
bool mf_load_tokenizer(mf_loaded *l, const mf_options *o, mf_error *err);
bool mf_load_engine(mf_loaded *l, const mf_engine_params *params, mf_error *err); // plans memory, prepares the weights

// The kernel row that --cpu, or a MINFER_NO_… variable, or nothing asks for.
const mf_kernels *mf_kernel_row(const mf_options *o, mf_error *err);
bool mf_devices_open(mf_device_list *list, const mf_options *o, mf_error *err);

// The engine's parameters that flags set: batch, cells, fusions. False where --cache-type, -ctk and -ctv differ.
bool mf_engine_params_from(const mf_options *o, mf_engine_params *params, mf_error *err);

typedef struct mf_memory_plan {
    size_t weights, kv, activations; // bytes
    int32_t n_ctx;
} mf_memory_plan;

bool mf_memory_plan_make(const mf_loaded *l, const mf_engine_params *params, mf_memory_plan *plan, mf_error *err);
size_t mf_memory_plan_total(const mf_memory_plan *plan);

// The largest context, in whole blocks and at most n_max, with which the plan fits into `available` bytes; 0: none.
int32_t mf_memory_largest_ctx(const mf_memory_plan *plan, uint64_t available, int32_t n_max);

// Refuses a plan that does not fit, with its numbers and the largest context that does.
bool mf_memory_check(const mf_memory_plan *plan, uint64_t available, int32_t n_max, mf_error *err);

// "1.4 GB", "612 MB": powers of 1000.
const char *mf_bytes_text(uint64_t bytes, char out[32]);

#endif
