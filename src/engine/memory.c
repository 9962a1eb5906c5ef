#include "engine/memory.h"

#include <stdio.h>

bool mf_memory_plan_make(const mf_model *model, const mf_device_list *devices, const mf_engine_params *params, bool prepared,
                         mf_memory_plan *plan, mf_error *err) {
    mf_engine_memory memory;
    if (!mf_engine_plan(model, devices, params, &memory, err)) return false;
    size_t weights = prepared ? 0 : mf_model_weight_bytes(model, devices->device[0]);
    *plan = (mf_memory_plan){weights, memory.kv, memory.activations, params->n_ctx};
    return true;
}

size_t mf_memory_plan_total(const mf_memory_plan *plan) { return plan->weights + plan->kv + plan->activations; }

uint64_t mf_memory_usable(uint64_t available) { return available - available / 32; }

int32_t mf_memory_largest_ctx(const mf_memory_plan *plan, uint64_t available, int32_t n_max) {
    uint64_t fixed = (uint64_t)plan->weights + plan->activations,
             blocks = ((uint64_t)plan->n_ctx + MF_KV_BLOCK - 1) / MF_KV_BLOCK;
    if (available <= fixed || blocks == 0 || plan->kv < blocks) return 0;
    uint64_t cells = (available - fixed) / (plan->kv / blocks) * MF_KV_BLOCK;
    return cells > (uint64_t)n_max ? n_max : (int32_t)cells;
}

int32_t mf_memory_most_ctx(const mf_model *model, int32_t n_seqs) {
    int64_t most = (int64_t)model->hparams.n_ctx_train * n_seqs;
    return most > INT32_MAX - MF_KV_BLOCK ? INT32_MAX - MF_KV_BLOCK : (int32_t)most;
}

bool mf_memory_check(const mf_memory_plan *plan, uint64_t available, int32_t n_max, mf_error *err) {
    const uint64_t free = mf_memory_usable(available);
    if (mf_memory_plan_total(plan) <= free) return true;
    char total[32], weights[32], kv[32], activations[32], usable[32], have[32];
    char held[48] = "", advice[80] = "no context would fit";
    int32_t largest = mf_memory_largest_ctx(plan, free, n_max);
    if (largest > 0) snprintf(advice, sizeof advice, "the largest context (--ctx) that fits is %d", largest);
    if (plan->weights) snprintf(held, sizeof held, "weights %s, ", mf_bytes_text(plan->weights, weights));
    return mf_fail(
        err, MF_ERR_MEMORY,
        "this needs %s (%sKV cache %s for a context of %d, activations %s), and a plan may take %s of %s that are free; %s",
        mf_bytes_text(mf_memory_plan_total(plan), total), held, mf_bytes_text(plan->kv, kv), plan->n_ctx,
        mf_bytes_text(plan->activations, activations), mf_bytes_text(free, usable), mf_bytes_text(available, have), advice);
}

bool mf_memory_auto_ctx(const mf_model *model, const mf_device_list *devices, mf_engine_params *params, bool prepared,
                        uint64_t available, mf_error *err) {
    int32_t n_max = mf_memory_most_ctx(model, params->max_seqs), window = model->hparams.window;
    if (window && window < n_max) n_max = window;
    const uint64_t room = available - available / 16; // what is free changes until the engine is made
    mf_memory_plan plan;
    for (;; n_max /= 2) { // a very large context needs more than cells: with a half of it something may fit
        params->n_ctx = n_max;
        if (!mf_memory_plan_make(model, devices, params, prepared, &plan, err)) return false;
        if (mf_memory_plan_total(&plan) <= room) return true;
        params->n_ctx = mf_memory_largest_ctx(&plan, room, n_max);
        if (params->n_ctx > 0) return true;
        if (n_max <= MF_KV_BLOCK) return mf_memory_check(&plan, room, n_max, err);
    }
}

const char *mf_bytes_text(uint64_t bytes, char out[32]) {
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 999.5 && unit + 1 < sizeof units / sizeof units[0]; unit++) value /= 1000;
    snprintf(out, 32, value < 9.95 && unit > 0 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return out;
}
