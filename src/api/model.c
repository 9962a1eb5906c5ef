// Models: the file, its tokenizer, the devices and the prepared weights behind one handle.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "backend/backends.h"
#include "base/mem.h"

static void free_model(minfer_model *m) {
    mf_tokenizer_free(m->tokenizer);
    mf_chat_template_free(m->chat);
    mf_model_free(m->model);
    mf_device_list_close(&m->devices);
    mf_gguf_close(m->file);
    mf_grammar_vocab_free(m->vocab);
    pthread_mutex_destroy(&m->vocab_lock);
    free(m->ends.data);
    free(m);
}

bool mf_api_check_process(const minfer_model *m, mf_error *err) {
    return m->process == getpid() ||
           mf_fail(err, MF_ERR_UNSUPPORTED,
                   "process %ld opened the model; a forked child (%ld) has none of its threads and must open it itself",
                   (long)m->process, (long)getpid());
}

void mf_api_model_hold(minfer_model *m) { atomic_fetch_add(&m->users, 1); }

void mf_api_model_drop(minfer_model *m) {
    if (atomic_fetch_sub(&m->users, 1) == 1) free_model(m);
}

// A chat template that can't be used only matters to who asks for a conversation.
static bool open_chat(minfer_model *m, mf_error *err) {
    bool own;
    m->chat = mf_chat_template_of_file(m->file, NULL, false, &own, &m->chat_error);
    if (!m->chat) return m->chat_error.code != MF_ERR_MEMORY || mf_fail(err, MF_ERR_MEMORY, "%s", m->chat_error.text);
    if (own || (mf_tokenizer_find(m->tokenizer, MF_STR("<|im_start|>")) >= 0 &&
                mf_tokenizer_find(m->tokenizer, MF_STR("<|im_end|>")) >= 0))
        return true;
    mf_chat_template_free(m->chat);
    m->chat = NULL;
    mf_fail(&m->chat_error, MF_ERR_UNSUPPORTED,
            "the model has no chat template, and no <|im_start|> and <|im_end|> tokens for ChatML");
    return true;
}

static bool open_tokenizer(minfer_model *m, mf_error *err) {
    if (!mf_gguf_find(m->file, "tokenizer.ggml.model")) return true;
    m->tokenizer = mf_tokenizer_new(m->file, NULL, err);
    if (!m->tokenizer) return false;
    int32_t n = mf_tokenizer_n_vocab(m->tokenizer), n_model = m->model->hparams.n_vocab;
    if (n > n_model) return mf_fail(err, MF_ERR_FORMAT, "the tokenizer has %d ids and the model only %d", n, n_model);
    for (int32_t id = 0; id < n; id++)
        if (mf_tokenizer_is_eog(m->tokenizer, id) && !mf_array_push(&m->ends, id))
            return mf_fail_memory(err, m->ends.len * sizeof id, "the ending tokens");
    return open_chat(m, err);
}

static bool open_file(minfer_model *m, const char *path, const minfer_model_options *o, mf_error *err) {
    m->file = mf_gguf_open(path, err);
    if (!m->file) return err->code == MF_ERR_IO ? false : mf_fail_prefix(err, "%.200s", path);
    bool ok = (m->model = mf_model_new(m->file, err)) && (o->ids_only || open_tokenizer(m, err));
    return ok || mf_fail_prefix(err, "%.200s", path);
}

// The caller's progress function, which runs in the caller's floating-point state.
typedef struct progress {
    minfer_progress_fn *fn;
    void *arg;
    mf_float_state *host;
} progress;

static bool report(void *arg, double fraction) {
    progress *p = arg;
    mf_float_leave(p->host);
    bool go_on = p->fn(p->arg, fraction);
    *p->host = mf_float_enter();
    return go_on;
}

static bool prepare(minfer_model *m, const minfer_model_options *o, mf_float_state *host, mf_error *err) {
    size_t n;
    const mf_device_entry *known = mf_backends(&n);
    progress p = {o->progress, o->progress_arg, host};
    mf_device_options options = {.n_threads = o->n_threads, .cpu_row = o->cpu};
    if (o->n_threads < 0)
        return mf_fail(err, MF_ERR_ARGUMENT, "the number of threads is %d; it must be 0 or more", o->n_threads);
    return mf_device_list_open(&m->devices, known, n, o->backends, &options, err) &&
           mf_model_prepare(m->model, m->devices.device[0], o->progress ? report : NULL, &p, err);
}

static minfer_model *open_model(const char *path, const minfer_model_options *options, mf_float_state *host, mf_error *err) {
    minfer_model_options o;
    if (!mf_api_need(path, "the path", err) || !mf_api_model_options(options, &o, err)) return NULL;
    minfer_model *m = mf_alloc(1, sizeof *m);
    if (!m || pthread_mutex_init(&m->vocab_lock, NULL) != 0) {
        free(m);
        return mf_fail_memory(err, sizeof *m, "the model"), NULL;
    }
    m->process = getpid();
    atomic_init(&m->users, 1);
    if (open_file(m, path, &o, err) && prepare(m, &o, host, err)) return m;
    free_model(m);
    return NULL;
}

minfer_model *minfer_model_open(const char *path, const minfer_model_options *options, minfer_error *error) {
    mf_error err = {0};
    mf_float_state host = mf_float_enter();
    minfer_model *m = open_model(path, options, &host, &err);
    mf_float_leave(&host);
    if (!m) mf_api_refuse(error, &err);
    return m;
}

void minfer_model_close(minfer_model *model) {
    if (model) mf_api_model_drop(model);
}

const char *minfer_model_architecture(const minfer_model *model) { return mf_model_arch(model->model); }

const char *minfer_model_device(const minfer_model *model) {
    const mf_device *device = model->devices.device[0];
    return device->class->describe(device);
}

int32_t minfer_model_n_vocab(const minfer_model *model) { return model->model->hparams.n_vocab; }
int32_t minfer_model_n_ctx_train(const minfer_model *model) { return model->model->hparams.n_ctx_train; }
int32_t minfer_model_n_embd(const minfer_model *model) { return model->model->hparams.n_embd; }
int32_t minfer_model_n_layer(const minfer_model *model) { return model->model->hparams.n_layer; }
uint64_t minfer_model_n_params(const minfer_model *model) { return mf_model_n_params(model->model); }
bool minfer_model_has_tokenizer(const minfer_model *model) { return model->tokenizer != NULL; }

static bool metadata(const minfer_model *model, const char *key, char *out, size_t cap, size_t *n, mf_error *err) {
    if (!mf_api_need(model, "the model", err) || !mf_api_need(key, "the key", err)) return false;
    if (!mf_gguf_find(model->file, key))
        return mf_fail(err, (mf_code)MINFER_ERROR_NOT_FOUND, "the file has no key '%.200s'", key);
    mf_str text = {0};
    return mf_gguf_get_str(model->file, key, &text, err) && mf_api_text(text, out, cap, n, err);
}

bool minfer_model_metadata(const minfer_model *model, const char *key, char *out, size_t cap, size_t *n,
                           minfer_error *error) {
    mf_error err = {0};
    return metadata(model, key, out, cap, n, &err) || mf_api_refuse(error, &err);
}
