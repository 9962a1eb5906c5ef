// Binding: every tensor the architecture names is found in the file, its shape checked, and given to the device.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/arch.h"

static int64_t extent(const mf_hparams *h, mf_extent e) {
    switch (e) {
    case MF_N_EMBD: return h->n_embd;
    case MF_N_VOCAB: return h->n_vocab;
    case MF_N_Q: return (int64_t)h->n_head * h->head_dim;
    case MF_N_KV: return (int64_t)h->n_head_kv * h->head_dim;
    case MF_N_HEAD_DIM: return h->head_dim;
    case MF_N_FF: return h->n_ff;
    case MF_N_NONE: break;
    }
    return 1;
}

static bool shape_matches(const mf_gguf_tensor *t, int64_t in, int64_t out) {
    return t->ne[0] == (uint64_t)in && t->ne[1] == (uint64_t)out && t->ne[2] == 1 && t->ne[3] == 1;
}

// Types that an architecture's weights can be: those with a decoder; vectors only plain floats.
static bool type_usable(const mf_gguf_tensor *t, bool vector) {
    if (vector) return t->type == MF_TYPE_F32 || t->type == MF_TYPE_F16 || t->type == MF_TYPE_BF16;
    const mf_type_info *info = mf_type_info_of(t->type);
    return info && info->decode;
}

typedef struct binder {
    mf_model *m;
    bool *bound; // [tensors of the file] has a weight
} binder;

static bool bind(const binder *b, const char *name, int64_t in, int64_t out, unsigned uses, bool optional, mf_weight **slot,
                 mf_error *err) {
    mf_model *m = b->m;
    const mf_gguf_tensor *t = mf_gguf_find_tensor(m->file, name);
    if (!t) return optional || mf_fail(err, MF_ERR_FORMAT, "the tensor %s is missing", name);
    if (!shape_matches(t, in, out))
        return mf_fail(err, MF_ERR_FORMAT,
                       "the tensor %s is [%" PRIu64 ", %" PRIu64 ", %" PRIu64 "]; [%" PRId64 ", %" PRId64 "] was expected",
                       name, t->ne[0], t->ne[1], t->ne[2], in, out);
    if (!type_usable(t, (uses & MF_USE_VECTOR) != 0))
        return mf_fail(err, MF_ERR_UNSUPPORTED, "the tensor %s is of type %s, which is not supported there", name,
                       mf_type_name(t->type));
    mf_weight *w = &m->weights[m->n_weights++];
    *w = (mf_weight){.name = mf_copy_text(name, strlen(name)),
                     .type = t->type,
                     .n_in = in,
                     .n_out = out,
                     .file = t->data,
                     .file_bytes = t->size,
                     .uses = uses};
    if (!w->name) return mf_fail_memory(err, strlen(name), "a tensor's name");
    *slot = w;
    b->bound[t - mf_gguf_tensor_at(m->file, 0)] = true;
    return true;
}

static bool bind_layer(const binder *b, int32_t i, const mf_tensor_rule *rules, size_t n, mf_error *err) {
    mf_model *m = b->m;
    for (const mf_tensor_rule *r = rules; r < rules + n; r++) {
        char name[96];
        snprintf(name, sizeof name, "blk.%d.%s", i, r->name);
        mf_weight **slot = (mf_weight **)((char *)&m->layers[i] + r->field);
        unsigned uses = r->out == MF_N_NONE ? MF_USE_VECTOR : MF_USE_MATMUL;
        int64_t in = extent(&m->hparams, r->in), out = extent(&m->hparams, r->out);
        if (!bind(b, name, in, out, uses, r->flags & MF_TENSOR_OPTIONAL, slot, err)) return false;
    }
    return true;
}

static bool bind_all(const binder *b, mf_error *err) {
    mf_model *m = b->m;
    const mf_hparams *h = &m->hparams;
    size_t most = 4 + (size_t)h->n_layer * (mf_n_decoder_tensors + m->arch->n_extra_tensors);
    m->weights = mf_alloc(most, sizeof *m->weights);
    m->layers = mf_alloc((size_t)h->n_layer, sizeof *m->layers);
    if (!m->weights || !m->layers) return mf_fail_memory(err, most * sizeof *m->weights, "the weights");
    if (!bind(b, "token_embd.weight", h->n_embd, h->n_vocab, MF_USE_GATHER, false, &m->token_embd, err) ||
        !bind(b, "output_norm.weight", h->n_embd, 1, MF_USE_VECTOR, false, &m->output_norm, err) ||
        !bind(b, "output.weight", h->n_embd, h->n_vocab, MF_USE_MATMUL, true, &m->output, err) ||
        !bind(b, "output.bias", h->n_vocab, 1, MF_USE_VECTOR, true, &m->output_bias, err))
        return false;
    if (!m->output) { // tied: one matrix, gathered and multiplied
        m->output = m->token_embd;
        m->token_embd->uses |= MF_USE_MATMUL;
    }
    for (int32_t i = 0; i < h->n_layer; i++)
        if (!bind_layer(b, i, mf_decoder_tensors, mf_n_decoder_tensors, err) ||
            !bind_layer(b, i, m->arch->extra_tensors, m->arch->n_extra_tensors, err))
            return false;
    return true;
}

bool mf_weights_bind(mf_model *m, mf_error *err) {
    const size_t n = mf_gguf_n_tensors(m->file);
    const binder b = {m, mf_alloc(n, sizeof(bool))};
    if (!b.bound) return mf_fail_memory(err, n, "the weights");
    const bool ok = bind_all(&b, err) && mf_unread_tensors_check(m, b.bound, err);
    free(b.bound);
    return ok;
}

size_t mf_model_weight_bytes(const mf_model *m, const mf_device *device) {
    size_t total = 0;
    for (size_t i = 0; i < m->n_weights; i++) {
        size_t bytes = device->class->weight_bytes(device, &m->weights[i]);
        total += bytes ? bytes : m->weights[i].file_bytes;
    }
    return total;
}

bool mf_model_prepare(mf_model *m, mf_device *device, mf_progress_fn *progress, void *arg, mf_error *err) {
    uint64_t done = 0, all = 0;
    for (size_t i = 0; i < m->n_weights; i++) all += m->weights[i].file_bytes;
    m->device = device;
    m->weight_bytes = mf_model_weight_bytes(m, device);
    for (size_t i = 0; i < m->n_weights; i++) {
        mf_weight *w = &m->weights[i];
        bool mapped_in_use = true;
        if (!device->class->weight_prepare(device, w, &mapped_in_use, err)) return false;
        m->reads_file |= mapped_in_use;
        if (!mapped_in_use) mf_gguf_drop(m->file, mf_gguf_find_tensor(m->file, w->name));
        done += w->file_bytes;
        if (progress && !progress(arg, all ? (double)done / (double)all : 1))
            return mf_fail(err, MF_ERR_CANCELLED, "loading was stopped");
    }
    return mf_gguf_check_files(m->file, err);
}

bool mf_model_check_file(const mf_model *m, mf_error *err) { return !m->reads_file || mf_gguf_check_files(m->file, err); }
