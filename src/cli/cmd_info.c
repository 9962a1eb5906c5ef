// minfer info: what is in a file and the memory it needs.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/info.h"
#include "cli/load.h"
#include "cli/terminal.h"

#define DEFAULT_CTX 4096

typedef struct type_sum {
    uint64_t tensors, parameters, bytes;
} type_sum;

typedef struct facts {
    mf_loaded loaded;
    type_sum by_type[MF_TYPE_LIMIT], all;
    bool has_plan;
    mf_memory_plan plan;
    mf_error refusal; // why minfer can't run the file
} facts;

static uint64_t elements(const mf_gguf_tensor *t) { return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]; }

static void add_up(facts *f) {
    for (size_t i = 0; i < mf_gguf_n_tensors(f->loaded.file); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(f->loaded.file, i);
        type_sum *sums[] = {&f->by_type[(unsigned)t->type < MF_TYPE_LIMIT ? t->type : 0], &f->all};
        for (int k = 0; k < 2; k++) sums[k]->tensors++, sums[k]->parameters += elements(t), sums[k]->bytes += t->size;
    }
}

static bool make_plan(facts *f, const mf_options *o, mf_error *err) {
    mf_engine_params params;
    if (!mf_engine_params_from(o, &params, err) || !mf_load_model(&f->loaded, err)) return false;
    int32_t most = f->loaded.model->hparams.n_ctx_train;
    if (o->ctx == MF_CTX_AUTO && !mf_load_auto_ctx(&f->loaded, &params, err)) return false;
    if (o->ctx != MF_CTX_AUTO) params.n_ctx = o->ctx ? o->ctx : DEFAULT_CTX;
    if (params.n_ctx > most) {
        if (o->ctx) mf_log(MF_LOG_NOTICE, "--ctx %d is more than the model's %d, which is used", o->ctx, most);
        params.n_ctx = most;
    }
    return mf_memory_plan_make(f->loaded.model, &f->loaded.devices, &params, false, &f->plan, err);
}

// ---- Text

// A name from the file, with spaces behind it up to `width` bytes.
static void add_name(mf_buf *out, mf_str name, size_t width) {
    size_t start = out->len;
    mf_buf_shown(out, name, false);
    while (!out->failed && out->len < start + width) mf_buf_char(out, ' ');
}

static void text_tensors(const facts *f, bool all, mf_buf *out) {
    mf_buf_text(out, all ? "\ntensors\n" : "\nkey tensors\n");
    for (size_t i = 0; i < mf_gguf_n_tensors(f->loaded.file); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(f->loaded.file, i);
        if (!all && !mf_info_is_key_tensor(t)) continue;
        mf_buf shape = {0};
        mf_info_shape_text(t, &shape);
        mf_buf_text(out, "  ");
        add_name(out, t->name, 34);
        mf_buf_printf(out, " %-8s %s\n", mf_type_name(t->type), shape.data ? shape.data : "");
        free(shape.data);
    }
}

static void text_sums(const facts *f, mf_buf *out) {
    char bytes[32];
    mf_buf_printf(out, "\nparameters  %" PRIu64 " in %" PRIu64 " tensors, %s\n", f->all.parameters, f->all.tensors,
                  mf_bytes_text(f->all.bytes, bytes));
    for (uint32_t type = 0; type < MF_TYPE_LIMIT; type++) {
        const type_sum *s = &f->by_type[type];
        if (!s->tensors) continue;
        mf_buf_printf(out, "  %-8s %12" PRIu64 " parameters, %5" PRIu64 " tensors, %s\n", mf_type_name(type), s->parameters,
                      s->tensors, mf_bytes_text(s->bytes, bytes));
    }
}

static void text_plan(const facts *f, mf_buf *out) {
    char a[32], b[32], c[32], d[32], e[32];
    const mf_memory_plan *p = &f->plan;
    uint64_t available = mf_memory_available();
    int32_t most = f->loaded.model->hparams.n_ctx_train,
            largest = mf_memory_largest_ctx(p, mf_memory_usable(available), most);
    mf_buf_printf(out, "\nmemory for --ctx %d  %s: weights %s, KV cache %s, activations %s\n", p->n_ctx,
                  mf_bytes_text(mf_memory_plan_total(p), a), mf_bytes_text(p->weights, b), mf_bytes_text(p->kv, c),
                  mf_bytes_text(p->activations, d));
    mf_buf_printf(out, "  %s are free, enough for --ctx %d of at most %d\n", mf_bytes_text(available, e), largest, most);
}

static void print_text(const facts *f, const mf_options *o, mf_buf *out) {
    const mf_gguf *file = f->loaded.file;
    char bytes[32];
    add_name(out, mf_str_of(f->loaded.path), 0);
    mf_buf_printf(out, ": GGUF version %" PRIu32 ", %s", mf_gguf_version(file),
                  mf_bytes_text(mf_gguf_file_size(file), bytes));
    if (mf_gguf_n_parts(file) > 1) mf_buf_printf(out, " in %" PRIu32 " parts", mf_gguf_n_parts(file));
    mf_buf_text(out, "\n\nmetadata\n");
    for (size_t i = 0; i < mf_gguf_n_values(file); i++) {
        const mf_gguf_value *v = mf_gguf_value_at(file, i);
        mf_buf_text(out, "  ");
        add_name(out, v->key, 42);
        mf_buf_char(out, ' ');
        mf_info_value_text(v, out);
        mf_buf_char(out, '\n');
    }
    text_tensors(f, o->verbose, out);
    text_sums(f, out);
    if (f->has_plan) text_plan(f, out);
}

// ---- JSON

static void json_tensors(const facts *f, mf_json_writer *w) {
    mf_json_key(w, "tensors");
    mf_json_begin(w, '[');
    for (size_t i = 0; i < mf_gguf_n_tensors(f->loaded.file); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(f->loaded.file, i);
        mf_json_begin(w, '{');
        mf_json_key(w, "name");
        mf_json_string(w, t->name);
        mf_json_add_text(w, "type", mf_type_name(t->type));
        mf_json_key(w, "shape");
        mf_json_begin(w, '[');
        for (uint32_t d = 0; d < t->n_dims; d++) mf_json_int(w, (int64_t)t->ne[d]);
        mf_json_end(w, ']');
        mf_json_add_int(w, "bytes", t->size);
        mf_json_end(w, '}');
    }
    mf_json_end(w, ']');
}

static void json_types(const facts *f, mf_json_writer *w) {
    mf_json_key(w, "types");
    mf_json_begin(w, '{');
    for (uint32_t type = 0; type < MF_TYPE_LIMIT; type++) {
        if (!f->by_type[type].tensors) continue;
        mf_json_key(w, mf_type_name(type));
        mf_json_begin(w, '{');
        mf_json_add_int(w, "tensors", f->by_type[type].tensors);
        mf_json_add_int(w, "parameters", f->by_type[type].parameters);
        mf_json_add_int(w, "bytes", f->by_type[type].bytes);
        mf_json_end(w, '}');
    }
    mf_json_end(w, '}');
}

static void json_memory(const facts *f, mf_json_writer *w) {
    mf_json_key(w, "memory");
    if (!f->has_plan) {
        mf_json_null(w);
        return;
    }
    uint64_t available = mf_memory_available();
    int32_t most = f->loaded.model->hparams.n_ctx_train;
    mf_json_begin(w, '{');
    mf_json_add_int(w, "n_ctx", (uint64_t)f->plan.n_ctx);
    mf_json_add_int(w, "weights", f->plan.weights);
    mf_json_add_int(w, "kv", f->plan.kv);
    mf_json_add_int(w, "activations", f->plan.activations);
    mf_json_add_int(w, "total", mf_memory_plan_total(&f->plan));
    mf_json_add_int(w, "available", available);
    mf_json_add_int(w, "largest_n_ctx", (uint64_t)mf_memory_largest_ctx(&f->plan, mf_memory_usable(available), most));
    mf_json_add_int(w, "n_ctx_train", (uint64_t)most);
    mf_json_end(w, '}');
}

static void print_json(const facts *f, mf_buf *out) {
    const mf_gguf *file = f->loaded.file;
    mf_json_writer w = {.out = out, .indent = 1};
    mf_json_begin(&w, '{');
    mf_json_add_text(&w, "file", f->loaded.path);
    mf_json_add_int(&w, "version", mf_gguf_version(file));
    mf_json_add_int(&w, "bytes", mf_gguf_file_size(file));
    mf_json_add_int(&w, "parts", mf_gguf_n_parts(file));
    mf_json_key(&w, "metadata");
    mf_json_begin(&w, '{');
    for (size_t i = 0; i < mf_gguf_n_values(file); i++) {
        mf_json_key_str(&w, mf_gguf_value_at(file, i)->key);
        mf_info_value_json(mf_gguf_value_at(file, i), &w);
    }
    mf_json_end(&w, '}');
    mf_json_add_int(&w, "parameters", f->all.parameters);
    json_types(f, &w);
    json_tensors(f, &w);
    json_memory(f, &w);
    mf_json_key(&w, "refusal");
    if (f->has_plan)
        mf_json_null(&w);
    else
        mf_json_string(&w, mf_str_of(f->refusal.text));
    mf_json_end(&w, '}');
    mf_buf_char(out, '\n');
}

int mf_command_info(mf_options *o) {
    mf_error err = {0};
    const char *path = mf_cli_model(o, &err);
    if (!path) return mf_cli_fail(&err), MF_EXIT_USAGE;
    facts f = {0};
    mf_buf text = {0};
    mf_output out = {0};
    bool ok = mf_load_file(&f.loaded, path, &err) && mf_load_devices(&f.loaded, o, &err);
    if (ok) {
        add_up(&f);
        f.has_plan = make_plan(&f, o, &f.refusal);
        if (o->json)
            print_json(&f, &text);
        else
            print_text(&f, o, &text);
        ok = mf_output_buf(&out, &text);
        if (!f.has_plan) mf_log(MF_LOG_NOTICE, "minfer can't run this file: %s", f.refusal.text);
    }
    free(text.data);
    mf_unload(&f.loaded);
    return ok ? MF_EXIT_DONE : err.code == MF_OK ? MF_EXIT_REFUSED : mf_cli_fail(&err);
}
