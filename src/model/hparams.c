// Hyperparameters: read, defaulted, bounded. No loop or allocation elsewhere is sized by a number that did not pass here.
#include <inttypes.h>
#include <stdio.h>

#include "model/arch.h"

#define MAX_LAYERS 1024
#define MAX_WIDTH  (1 << 20)
#define MAX_HEADS  1024

const char *mf_model_key(const mf_model *m, const char *suffix, char buffer[128]) {
    snprintf(buffer, 128, "%s.%s", m->arch->name, suffix);
    if (!mf_gguf_find(m->file, buffer) && m->arch->fallback_prefix) {
        char other[128];
        snprintf(other, sizeof other, "%s.%s", m->arch->fallback_prefix, suffix);
        if (mf_gguf_find(m->file, other)) snprintf(buffer, 128, "%s", other);
    }
    return buffer;
}

// A whole number in [1, max]; `fallback` when the key is absent (0: it is required).
static bool count(const mf_model *m, const char *suffix, uint32_t max, int32_t fallback, int32_t *out, mf_error *err) {
    char key[128];
    mf_model_key(m, suffix, key);
    uint32_t value = (uint32_t)fallback;
    if (!mf_gguf_find(m->file, key) && fallback == 0) return mf_fail(err, MF_ERR_FORMAT, "the key %s is missing", key);
    if (!mf_gguf_get_u32(m->file, key, &value, err)) return false;
    if (value < 1 || value > max)
        return mf_fail(err, MF_ERR_FORMAT, "%s is %" PRIu32 "; it must be 1 to %" PRIu32, key, value, max);
    *out = (int32_t)value;
    return true;
}

// KV heads can be an array with an entry for each layer; it is taken when all are the same.
static bool kv_heads(const mf_model *m, const mf_hparams *h, int32_t *out, mf_error *err) {
    char key[128];
    mf_model_key(m, "attention.head_count_kv", key);
    const mf_gguf_value *v = mf_gguf_find(m->file, key);
    if (!v || v->kind != MF_GGUF_ARRAY) return count(m, "attention.head_count_kv", MAX_HEADS, h->n_head, out, err);
    if (v->item == MF_GGUF_STRING || v->item == MF_GGUF_ARRAY || v->count == 0)
        return mf_fail(err, MF_ERR_FORMAT, "%s is no array of numbers", key);
    int64_t first = mf_gguf_int_at(v, 0);
    for (uint64_t i = 1; i < v->count; i++)
        if (mf_gguf_int_at(v, i) != first)
            return mf_fail(err, MF_ERR_UNSUPPORTED, "%s differs between layers (%" PRId64 ", %" PRId64 ")", key, first,
                           mf_gguf_int_at(v, i));
    if (first < 1 || first > MAX_HEADS)
        return mf_fail(err, MF_ERR_FORMAT, "%s is %" PRId64 "; it must be 1 to %d", key, first, MAX_HEADS);
    *out = (int32_t)first;
    return true;
}

static bool vocabulary(mf_model *m, mf_error *err) {
    const mf_gguf_tensor *t = mf_gguf_find_tensor(m->file, "token_embd.weight");
    if (!t) return mf_fail(err, MF_ERR_FORMAT, "the tensor token_embd.weight is missing");
    if (t->ne[1] < 1 || t->ne[1] > (1U << 24))
        return mf_fail(err, MF_ERR_FORMAT, "token_embd.weight has %" PRIu64 " rows", t->ne[1]);
    m->hparams.n_vocab = (int32_t)t->ne[1];
    return true;
}

bool mf_hparams_read(mf_model *m, mf_error *err) {
    mf_hparams *h = &m->hparams;
    if (!count(m, "block_count", MAX_LAYERS, 0, &h->n_layer, err) ||
        !count(m, "context_length", MF_MAX_CTX, 0, &h->n_ctx_train, err) ||
        !count(m, "embedding_length", MAX_WIDTH, 0, &h->n_embd, err) ||
        !count(m, "feed_forward_length", MAX_WIDTH, 0, &h->n_ff, err) ||
        !count(m, "attention.head_count", MAX_HEADS, 0, &h->n_head, err) || !kv_heads(m, h, &h->n_head_kv, err) ||
        !vocabulary(m, err))
        return false;
    if (h->n_head % h->n_head_kv)
        return mf_fail(err, MF_ERR_FORMAT, "%d attention heads can't share %d KV heads evenly", h->n_head, h->n_head_kv);
    int32_t v_dim;
    if (!count(m, "attention.key_length", 4096, h->n_embd / h->n_head, &h->head_dim, err) ||
        !count(m, "attention.value_length", 4096, h->head_dim, &v_dim, err) ||
        !count(m, "rope.dimension_count", 4096, h->head_dim, &h->n_rot, err))
        return false;
    if (v_dim != h->head_dim)
        return mf_fail(err, MF_ERR_UNSUPPORTED, "K heads of %d and V heads of %d channels", h->head_dim, v_dim);
    if (h->n_rot > h->head_dim || h->n_rot % 2)
        return mf_fail(err, MF_ERR_FORMAT, "rope turns %d of %d channels of a head", h->n_rot, h->head_dim);
    char key[128];
    mf_model_key(m, "attention.layer_norm_rms_epsilon", key);
    if (!mf_gguf_find(m->file, key)) return mf_fail(err, MF_ERR_FORMAT, "the key %s is missing", key);
    if (!mf_gguf_get_f32(m->file, key, &h->rms_eps, err)) return false;
    if (!(h->rms_eps >= 0 && h->rms_eps < 1)) return mf_fail(err, MF_ERR_FORMAT, "%s is %g", key, (double)h->rms_eps);
    uint32_t window = 0;
    if (!mf_gguf_get_u32(m->file, mf_model_key(m, "attention.sliding_window", key), &window, err)) return false;
    h->window = window < MF_MAX_CTX ? (int32_t)window : 0; // beyond every context: as without one
    h->attn_scale = 1.0F / __builtin_sqrtf((float)h->head_dim);
    return true;
}
