// What a model and its engine need, held against what is free: the plan, its refusal, and the context that fits.
#ifndef MF_ENGINE_MEMORY_H
#define MF_ENGINE_MEMORY_H

#include "engine/engine.h"

typedef struct mf_memory_plan {
    size_t weights, kv, activations; // bytes that are still to be allocated
    int32_t n_ctx;
} mf_memory_plan;

// The plan of an engine with these parameters. Weights that are in memory already (`prepared`) count as nothing.
bool mf_memory_plan_make(const mf_model *model, const mf_device_list *devices, const mf_engine_params *params, bool prepared,
                         mf_memory_plan *plan, mf_error *err);
size_t mf_memory_plan_total(const mf_memory_plan *plan);

// How many of so many free bytes a plan may take: a part of them stays free, for what no plan counts and for the rest of the machine.
uint64_t mf_memory_usable(uint64_t available);

// The largest context, in whole blocks and at most n_max, with which the plan fits into `available` bytes; 0: none.
int32_t mf_memory_largest_ctx(const mf_memory_plan *plan, uint64_t available, int32_t n_max);

// The most cells an engine for this many sequences can use: each has at most the model's maximum.
int32_t mf_memory_most_ctx(const mf_model *model, int32_t n_seqs);

// Refuses a plan that does not fit into the usable part, with its numbers and the largest context, at most n_max, that does.
bool mf_memory_check(const mf_memory_plan *plan, uint64_t available, int32_t n_max, mf_error *err);

// Sets params->n_ctx to as many cells as fit into `available` bytes less a sixteenth, at most the model's maximum for each of the
// sequences. Refused as by mf_memory_check where not a single block fits.
bool mf_memory_auto_ctx(const mf_model *model, const mf_device_list *devices, mf_engine_params *params, bool prepared,
                        uint64_t available, mf_error *err);

// "1.4 GB", "612 MB": powers of 1000.
const char *mf_bytes_text(uint64_t bytes, char out[32]);

#endif
