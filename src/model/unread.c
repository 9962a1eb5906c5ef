// What a file says beside what a model reads of it. A key or a tensor that changes the computation and is not part of it is refused by
// name: the text would be wrong without a sign of it.
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "model/arch.h"

// The value of a key that changes nothing, where it depends on the model's shape.
typedef bool neutral_fn(const mf_hparams *h, double value);

static bool usual_scale(const mf_hparams *h, double v) {
    const double ratio = v / (double)h->attn_scale;
    return v == 0 || (ratio > 1 - 1e-6 && ratio < 1 + 1e-6);
}

static bool same_width(const mf_hparams *h, double v) { return v == 0 || v == h->n_embd; }

// Keys under the architecture's name. Without a neutral value they are read elsewhere, or change nothing whatever they say.
typedef struct key_rule {
    const char *suffix;
    int n_neutral;
    double neutral[2];
    neutral_fn *fn;
} key_rule;

#define READ(suffix) \
    { suffix, 0, {0}, NULL }
#define ONLY(suffix, value) \
    { suffix, 1, {value}, NULL }
#define EITHER(suffix, a, b) \
    { suffix, 2, {a, b}, NULL }
#define WHERE(suffix, fn) \
    { suffix, 0, {0}, fn }

static const key_rule rules[] = {
    READ("block_count"),
    READ("context_length"),
    READ("embedding_length"),
    READ("feed_forward_length"),
    READ("attention.head_count"),
    READ("attention.head_count_kv"),
    READ("attention.key_length"),
    READ("attention.value_length"),
    READ("attention.layer_norm_rms_epsilon"),
    READ("attention.sliding_window"),
    READ("rope.dimension_count"),
    READ("rope.freq_base"),
    READ("rope.scale_linear"),
    READ("rope.scaling.type"),
    READ("rope.scaling.factor"),
    READ("rope.scaling.attn_factor"),
    READ("rope.scaling.original_context_length"),
    READ("rope.scaling.yarn_attn_factor"),
    READ("rope.scaling.yarn_beta_fast"),
    READ("rope.scaling.yarn_beta_slow"),
    // Of no weight: the vocabulary's size is the embedding's, the rest belongs to what is refused where it counts.
    READ("vocab_size"),
    READ("tensor_data_layout"),
    READ("rope.scaling.finetuned"),
    READ("attention.layer_norm_epsilon"),
    READ("attention.sliding_window_pattern"),
    READ("attention.key_length_swa"),
    READ("attention.value_length_swa"),
    READ("rope.dimension_count_swa"),
    READ("rope.freq_base_swa"),
    WHERE("attention.scale", usual_scale),
    WHERE("embedding_length_out", same_width),
    EITHER("attention.output_scale", 1, 0),
    EITHER("logit_scale", 1, 0),
    EITHER("embedding_scale", 1, 0),
    EITHER("residual_scale", 1, 0),
    EITHER("rope.scaling.alpha", 1, 0),
    EITHER("rope.scaling.yarn_ext_factor", 1, -1),
    ONLY("rope.scaling.yarn_log_multiplier", 0),
    ONLY("rope.dimension_sections", 0),
    ONLY("attention.causal", 1),
    ONLY("attn_logit_softcapping", 0),
    ONLY("final_logit_softcapping", 0),
    ONLY("router_logit_softcapping", 0),
    ONLY("attention.max_alibi_bias", 0),
    ONLY("attention.clamp_kqv", 0),
    ONLY("attention.temperature_scale", 0),
    ONLY("attention.temperature_length", 0),
    ONLY("attention.relative_buckets_count", 0),
    ONLY("attention.shared_kv_layers", 0),
    ONLY("attention.q_lora_rank", 0),
    ONLY("attention.kv_lora_rank", 0),
    ONLY("attention.key_length_mla", 0),
    ONLY("attention.value_length_mla", 0),
    ONLY("use_parallel_residual", 0),
    ONLY("pooling_type", 0),
    ONLY("expert_count", 0),
    ONLY("expert_used_count", 0),
    ONLY("expert_shared_count", 0),
    ONLY("expert_group_count", 0),
    ONLY("expert_group_used_count", 0),
    ONLY("expert_feed_forward_length", 0),
    ONLY("expert_shared_feed_forward_length", 0),
    EITHER("expert_weights_scale", 0, 1),
    ONLY("expert_weights_norm", 0),
    ONLY("expert_gating_func", 0),
    ONLY("leading_dense_block_count", 0),
    ONLY("moe_every_n_layers", 0),
    ONLY("interleave_moe_layer_step", 0),
    ONLY("nextn_predict_layers", 0),
    ONLY("n_deepstack_layers", 0),
    ONLY("embedding_length_per_layer_input", 0),
    ONLY("activation_sparsity_scale", 0),
    ONLY("full_attention_interval", 0),
    ONLY("token_shift_count", 0),
    ONLY("rescale_every_n_layers", 0),
    ONLY("swin_norm", 0),
    ONLY("swiglu_clamp_exp", 0),
    ONLY("swiglu_clamp_shexp", 0),
    ONLY("decoder_block_count", 0),
};

static const key_rule *rule_of(mf_str suffix) {
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (mf_str_is(suffix, rules[i].suffix)) return &rules[i];
    return NULL;
}

static bool neutral(const key_rule *r, const mf_hparams *h, double value) {
    if (r->fn) return r->fn(h, value);
    for (int i = 0; i < r->n_neutral; i++)
        if (!(value < r->neutral[i] || value > r->neutral[i]) && value == value) return true;
    return false;
}

// Holds a key's value, or every element of an array, against its rule.
static bool check_value(const key_rule *r, const mf_hparams *h, const mf_gguf_value *v, mf_error *err) {
    if (!r->fn && r->n_neutral == 0) return true;
    const int shown = v->key.len > 96 ? 96 : (int)v->key.len;
    if (v->item == MF_GGUF_STRING || v->item == MF_GGUF_ARRAY)
        return mf_fail(err, MF_ERR_FORMAT, "%.*s is no number", shown, v->key.ptr);
    for (uint64_t i = 0; i < v->count; i++) {
        const double x = mf_gguf_real_at(v, i);
        if (neutral(r, h, x)) continue;
        const double without = r->fn ? 0 : r->neutral[0];
        return mf_fail(err, MF_ERR_UNSUPPORTED, "%.*s is %g, which this version does not compute (%g would change nothing)",
                       shown, v->key.ptr, x, without);
    }
    return true;
}

#define MOST_NAMED 8

// The keys that no rule knows, in one line.
static void report_unknown(const mf_model *m, const mf_str *named, uint64_t n) {
    mf_buf line = {0};
    for (uint64_t i = 0; i < n && i < MOST_NAMED; i++)
        mf_buf_printf(&line, "%s%.*s", i ? ", " : "", named[i].len > 96 ? 96 : (int)named[i].len, named[i].ptr);
    if (n > MOST_NAMED) mf_buf_printf(&line, " and %" PRIu64 " more", n - MOST_NAMED);
    if (n && !line.failed)
        mf_log(MF_LOG_NOTICE, "the file says of its %s model what this version does not know and leaves out: %s",
               m->arch->name, line.data);
    free(line.data);
}

// What follows "NAME." in a key; an empty text where the key does not begin so.
static mf_str behind(mf_str key, const char *name) {
    const size_t n = name ? strlen(name) : 0;
    const bool starts = n && key.len > n && memcmp(key.ptr, name, n) == 0 && key.ptr[n] == '.';
    return starts ? (mf_str){key.ptr + n + 1, key.len - n - 1} : (mf_str){0};
}

bool mf_unread_keys_check(const mf_model *m, mf_error *err) {
    mf_str named[MOST_NAMED];
    uint64_t n_unknown = 0;
    for (size_t i = 0; i < mf_gguf_n_values(m->file); i++) {
        const mf_gguf_value *v = mf_gguf_value_at(m->file, i);
        mf_str suffix = behind(v->key, m->arch->name);
        if (suffix.len == 0) suffix = behind(v->key, m->arch->fallback_prefix);
        if (suffix.len == 0) continue;
        const key_rule *r = rule_of(suffix);
        if (r && !check_value(r, &m->hparams, v, err)) return false;
        if (r) continue;
        if (n_unknown < MOST_NAMED) named[n_unknown] = v->key;
        n_unknown++;
    }
    report_unknown(m, named, n_unknown);
    return true;
}

// Tensors that no weight is bound to and that may be there: rope.c reads them, or they repeat what the keys say of rope. A name with
// "blk." in front is of any layer.
static const char *const harmless[] = {"rope_freqs.weight",       "rope_factors_long.weight", "rope_factors_short.weight",
                                       "blk.attn_rot_embd",       "blk.attn_rot_embd.weight", "blk.attn.rope.freqs",
                                       "blk.attn_rot_embd.freqs", "blk.rope_freqs.weight"};

// Splits "blk.12.attn_q.weight"; *layer is -1 for what is not of a layer.
static mf_str layer_of(mf_str name, int64_t *layer) {
    *layer = -1;
    if (!mf_str_starts(name, MF_STR("blk."))) return name;
    const char *digits = name.ptr + 4, *end = name.ptr + name.len;
    int64_t n = 0;
    const char *p = digits;
    for (; p < end && p < digits + 9 && *p >= '0' && *p <= '9'; p++) n = n * 10 + (*p - '0');
    if (p == digits || p == end || *p != '.') return name;
    *layer = n;
    return (mf_str){p + 1, (size_t)(end - p - 1)};
}

static bool is_harmless(mf_str rest, int64_t layer) {
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++) {
        const mf_str known = mf_str_of(harmless[i]), in_layer = behind(known, "blk");
        if (mf_str_eq(rest, layer >= 0 ? in_layer : known)) return true;
    }
    return false;
}

bool mf_unread_tensors_check(const mf_model *m, const bool *bound, mf_error *err) {
    for (size_t i = 0; i < mf_gguf_n_tensors(m->file); i++) {
        if (bound[i]) continue;
        const mf_str name = mf_gguf_tensor_at(m->file, i)->name;
        int64_t layer;
        const mf_str rest = layer_of(name, &layer);
        const int shown = name.len > 96 ? 96 : (int)name.len;
        if (layer >= m->hparams.n_layer)
            return mf_fail(err, MF_ERR_UNSUPPORTED, "the tensor %.*s is of a layer beyond the %d that %s.block_count says",
                           shown, name.ptr, m->hparams.n_layer, m->arch->name);
        if (!is_harmless(rest, layer))
            return mf_fail(err, MF_ERR_UNSUPPORTED, "the tensor %.*s is no part of a %s model as this version computes it",
                           shown, name.ptr, m->arch->name);
    }
    return true;
}
