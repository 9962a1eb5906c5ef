#include "cli/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backends.h"
#include "base/cpu.h"
#include "base/log.h"
#include "cli/flags.h"
#include "cli/info.h"
#include "cli/terminal.h"

#define DEFAULT_CTX 4096

void mf_unload(mf_loaded *l) {
    mf_engine_free(l->engine);
    mf_tokenizer_free(l->tokenizer);
    mf_model_free(l->model);
    mf_device_list_close(&l->devices);
    mf_gguf_close(l->file);
    *l = (mf_loaded){0};
}

// ---- The file

// Puts the file's name before a sentence that does not have it.
static bool name_file(const char *path, mf_error *err) {
    return strstr(err->text, path) ? false : mf_fail_prefix(err, "%.200s", path);
}

bool mf_load_file(mf_loaded *l, const char *path, mf_error *err) {
    l->path = path;
    l->file = mf_gguf_open(path, err);
    if (l->file) return true;
    return name_file(path, err);
}

// ---- The devices

// The best kernel row that no MINFER_NO_… variable rules out; NULL: the best of all.
static const char *row_by_environment(void) {
    static const struct {
        const char *variable, *rows; // beginnings of row names
    } rules[] = {{"MINFER_NO_AVX512", "avx512 amx"}, {"MINFER_NO_AVX2", "avx amx"}, {"MINFER_NO_NEON", "neon dotprod i8mm"}};
    bool ruled = false;
    for (const mf_kernels *const *k = mf_kernels_all(); *k; k++) {
        bool out = !(*k)->usable(mf_cpu_features_get());
        for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
            if (!mf_switch_on(rules[i].variable)) continue;
            ruled = true;
            for (const char *row = rules[i].rows; row; row = strchr(row, ' ')) {
                row += strspn(row, " ");
                out = out || strncmp((*k)->name, row, strcspn(row, " ")) == 0;
            }
        }
        if (!out) return ruled ? (*k)->name : NULL;
    }
    return NULL;
}

static const char *row_name(const mf_options *o) { return o->cpu && *o->cpu ? o->cpu : row_by_environment(); }

const mf_kernels *mf_kernel_row(const mf_options *o, mf_error *err) { return mf_kernels_choose(row_name(o), err); }

bool mf_devices_open(mf_device_list *list, const mf_options *o, mf_error *err) {
    mf_buf names = {0};
    for (size_t i = 0; i < o->backends.len; i++) mf_buf_printf(&names, "%s%s", i ? "," : "", o->backends.data[i]);
    size_t n;
    const mf_device_entry *known = mf_backends(&n);
    mf_device_options options = {.n_threads = o->threads, .cpu_row = row_name(o)};
    bool ok = names.failed ? mf_fail_memory(err, 0, "the names of backends")
                           : mf_device_list_open(list, known, n, names.data, &options, err);
    free(names.data);
    return ok;
}

bool mf_load_devices(mf_loaded *l, const mf_options *o, mf_error *err) { return mf_devices_open(&l->devices, o, err); }

// ---- Model and tokenizer

bool mf_load_model(mf_loaded *l, mf_error *err) {
    l->model = mf_model_new(l->file, err);
    return l->model || name_file(l->path, err);
}

bool mf_load_tokenizer(mf_loaded *l, const mf_options *o, mf_error *err) {
    mf_tokenizer_options options = {.pre = o->pre, .no_nfc = o->no_nfc};
    l->tokenizer = mf_tokenizer_new(l->file, &options, err);
    if (!l->tokenizer) return name_file(l->path, err);
    int32_t n = mf_tokenizer_n_vocab(l->tokenizer);
    if (l->model && n > l->model->hparams.n_vocab)
        return mf_fail(err, MF_ERR_FORMAT, "%.200s: the tokenizer has %d ids and the model only %d", l->path, n,
                       l->model->hparams.n_vocab);
    return true;
}

bool mf_load_for_answers(mf_loaded *l, const mf_options *o, const char *path, mf_engine_params *params, mf_error *err) {
    if (!mf_load_file(l, path, err)) return false;
    if (o->meta) mf_info_log_metadata(l->file);
    return mf_engine_params_from(o, params, err) && mf_load_devices(l, o, err) && mf_load_model(l, err) &&
           mf_load_tokenizer(l, o, err);
}

// ---- The engine

static const struct {
    const char *name;
    mf_type type;
} cache_types[] = {{"f16", MF_TYPE_F16}, {"f32", MF_TYPE_F32}, {"q8_0", MF_TYPE_Q8_0}};

const char *mf_cache_type_name(mf_type type) {
    for (size_t i = 0; i < sizeof cache_types / sizeof cache_types[0]; i++)
        if (cache_types[i].type == type) return cache_types[i].name;
    return "?";
}

bool mf_engine_params_from(const mf_options *o, mf_engine_params *params, mf_error *err) {
    const char *given[] = {o->cache_type, o->cache_type_k, o->cache_type_v}, *type = NULL;
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        if (!given[i]) continue;
        if (type && strcmp(type, given[i]) != 0)
            return mf_fail(err, MF_ERR_UNSUPPORTED, "the KV cache has one number format: %s and %s are both given", type,
                           given[i]);
        type = given[i];
    }
    mf_engine_params_init(params);
    params->n_batch = o->batch;
    for (size_t i = 0; type && i < sizeof cache_types / sizeof cache_types[0]; i++) // one of the flag's choices
        if (strcmp(cache_types[i].name, type) == 0) params->kv_type = cache_types[i].type;
    params->fuse = MF_FUSE_ALL & ~o->no_fuse;
    params->prefix_cache = !o->no_prefix_cache;
    params->kv_share = !o->no_kv_share;
    params->populate = o->populate;
    params->trace_dir = o->trace;
    params->dump_dir = o->dump_dir;
    params->dump_names = o->dump_names;
    if (o->dump_dir) params->fuse = 0; // a fused operation has no values inside
    if (o->dump_names && !o->dump_dir) return mf_fail(err, MF_ERR_ARGUMENT, "--dump-names needs --dump-values DIR");
    params->op_timing = o->op_timing;
    return true;
}

static bool on_progress(void *arg, double fraction) {
    mf_progress_update(arg, fraction);
    return !mf_interrupted();
}

bool mf_load_engine(mf_loaded *l, const mf_engine_params *params, mf_error *err) {
    mf_memory_plan plan;
    if (!mf_memory_plan_make(l->model, &l->devices, params, false, &plan, err)) return false;
    char bytes[32];
    mf_log(MF_LOG_DEBUG, "memory: %s planned", mf_bytes_text(mf_memory_plan_total(&plan), bytes));
    if (!mf_memory_check(&plan, mf_memory_available(), l->model->hparams.n_ctx_train, err)) return false;
    mf_progress progress;
    mf_progress_begin(&progress, "loading");
    bool ok = mf_model_prepare(l->model, l->devices.device[0], on_progress, &progress, err);
    mf_progress_end(&progress);
    return ok && (l->engine = mf_engine_new(l->model, &l->devices, params, err));
}

bool mf_load_auto_ctx(const mf_loaded *l, mf_engine_params *params, mf_error *err) {
    if (!mf_memory_auto_ctx(l->model, &l->devices, params, false, mf_memory_available(), err)) return false;
    mf_log(MF_LOG_DEBUG, "--ctx auto is %d", params->n_ctx);
    return true;
}

bool mf_load_ctx(const mf_loaded *l, const mf_options *o, int64_t n_tokens, mf_engine_params *params, mf_error *err) {
    int64_t most = l->model->hparams.n_ctx_train, want = n_tokens > DEFAULT_CTX ? n_tokens : DEFAULT_CTX;
    if (o->ctx == MF_CTX_AUTO) return mf_load_auto_ctx(l, params, err);
    if (o->ctx > most) mf_log(MF_LOG_NOTICE, "--ctx %d is more than the model's %" PRId64 ", which is used", o->ctx, most);
    if (o->ctx) want = o->ctx;
    const int32_t window = l->model->hparams.window;
    if (!o->ctx && window && want > window) want = window;
    params->n_ctx = (int32_t)(want < most ? want : most);
    return true;
}

void mf_log_kv(mf_kv_stats s) {
    char bytes[32];
    mf_log(MF_LOG_DEBUG,
           "KV cache: %d blocks of %d cells (%s), %d used, %d shared, %d cached; %" PRIu64 " copies on write, %" PRIu64
           " tokens from the prefix cache",
           s.blocks_total, MF_KV_BLOCK, mf_bytes_text(s.bytes, bytes), s.blocks_used, s.blocks_shared, s.blocks_cached,
           s.copies, s.hit_cells);
}

bool mf_load_ends(const mf_loaded *l, mf_token_array *ends, mf_error *err) {
    const mf_tokenizer *t = l->tokenizer;
    for (int32_t id = 0; id < mf_tokenizer_n_vocab(t); id++)
        if (mf_tokenizer_is_eog(t, id) && !mf_array_push(ends, id)) return mf_fail_memory(err, 0, "the ending tokens");
    return true;
}
