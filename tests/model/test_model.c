// Loading models: every refusal by name and value, tied heads, keys of old converters, rope's frequencies.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "model/model.h"
#include "support/ggufgen.h"

// What a case changes of a small file that is right.
typedef struct change {
    const char *arch;
    const char *drop_key, *drop_tensor;
    const char *u32_key;
    uint32_t u32_value;
    const char *f32_key;
    float f32_value;
    const char *tensor; // gets another shape or type
    uint64_t ne[2];
    uint32_t type;
    const char *key_prefix; // keys are written under this name instead of the architecture's
    const char *rope_type;
    bool untied;
    float long_factor, short_factor; // of rope_factors_*.weight; 0: left out
    uint32_t n_ctx_orig;             // 0: left out
    const char *real, *flag;         // a further key: a real, a bool
    double value;                    // of it
    const char *array;               // a further key of two integers, the second of which is 1
    const char *more;                // a further tensor of 4 values
} change;

static const char *prefix;

static const char *key(const char *suffix) {
    static char text[96];
    snprintf(text, sizeof text, "%s.%s", prefix, suffix);
    return text;
}

static void add_u32(ggufgen *g, const change *c, const char *suffix, uint32_t value) {
    if (c->drop_key && strcmp(c->drop_key, suffix) == 0) return;
    if (c->u32_key && strcmp(c->u32_key, suffix) == 0) value = c->u32_value;
    ggufgen_u32(g, key(suffix), value);
}

static void add_tensor(ggufgen *g, const change *c, const char *name, uint64_t in, uint64_t out) {
    if (c->drop_tensor && strcmp(c->drop_tensor, name) == 0) return;
    uint64_t ne[2] = {in, out};
    uint32_t type = MF_TYPE_F32;
    if (c->tensor && strcmp(c->tensor, name) == 0) ne[0] = c->ne[0], ne[1] = c->ne[1], type = c->type;
    size_t row = 0;
    if (!mf_type_row_bytes(type, ne[0], &row)) fail_msg("%s: row of %llu", name, (unsigned long long)ne[0]);
    size_t size = row * (ne[1] ? ne[1] : 1);
    uint8_t *zeros = calloc(1, size);
    ggufgen_tensor(g, name, type, ne[1] ? 2 : 1, ne, zeros, size);
    free(zeros);
}

static void add_layer(ggufgen *g, const change *c, int i) {
    static const struct {
        const char *name;
        uint64_t in, out;
    } tensors[] = {
        {"attn_norm.weight", 32, 0}, {"attn_q.weight", 32, 32},   {"attn_k.weight", 32, 16}, {"attn_v.weight", 32, 16},
        {"attn_q.bias", 32, 0},      {"attn_k.bias", 16, 0},      {"attn_v.bias", 16, 0},    {"attn_output.weight", 32, 32},
        {"ffn_norm.weight", 32, 0},  {"ffn_gate.weight", 32, 64}, {"ffn_up.weight", 32, 64}, {"ffn_down.weight", 64, 32},
    };
    for (size_t t = 0; t < sizeof tensors / sizeof tensors[0]; t++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s", i, tensors[t].name);
        add_tensor(g, c, name, tensors[t].in, tensors[t].out);
    }
}

static void add_factors(ggufgen *g, const char *name, float factor) {
    const float four[4] = {factor, factor, factor, factor};
    ggufgen_tensor(g, name, MF_TYPE_F32, 1, (const uint64_t[]){4}, four, sizeof four);
}

static uint8_t *make(const change *c, size_t *size) {
    ggufgen g;
    ggufgen_init(&g);
    const char *arch = c->arch ? c->arch : "qwen2";
    prefix = c->key_prefix ? c->key_prefix : arch;
    if (!c->drop_key || strcmp(c->drop_key, "general.architecture") != 0) ggufgen_str(&g, "general.architecture", arch);
    add_u32(&g, c, "block_count", 2);
    add_u32(&g, c, "context_length", 128);
    add_u32(&g, c, "embedding_length", 32);
    add_u32(&g, c, "feed_forward_length", 64);
    add_u32(&g, c, "attention.head_count", 4);
    add_u32(&g, c, "attention.head_count_kv", 2);
    if (c->u32_key && strncmp(c->u32_key, "rope.", 5) == 0) add_u32(&g, c, c->u32_key, 0);
    if (c->u32_key &&
        (strcmp(c->u32_key, "attention.value_length") == 0 || strcmp(c->u32_key, "attention.sliding_window") == 0))
        add_u32(&g, c, c->u32_key, 0);
    if (!c->drop_key || strcmp(c->drop_key, "attention.layer_norm_rms_epsilon") != 0)
        ggufgen_f32(&g, key("attention.layer_norm_rms_epsilon"),
                    c->f32_key && strcmp(c->f32_key, "attention.layer_norm_rms_epsilon") == 0 ? c->f32_value : 1e-6F);
    if (c->f32_key && strncmp(c->f32_key, "rope.", 5) == 0) ggufgen_f32(&g, key(c->f32_key), c->f32_value);
    if (c->n_ctx_orig) ggufgen_u32(&g, key("rope.scaling.original_context_length"), c->n_ctx_orig);
    if (c->real) ggufgen_f32(&g, key(c->real), (float)c->value);
    if (c->flag) ggufgen_bool(&g, key(c->flag), c->value != 0);
    if (c->array) ggufgen_array(&g, key(c->array), MF_GGUF_I32, 2, (const int32_t[]){0, 1}, 8);
    if (c->more) add_tensor(&g, c, c->more, 4, 0);
    if (c->rope_type) ggufgen_str(&g, key("rope.scaling.type"), c->rope_type);
    add_tensor(&g, c, "token_embd.weight", 32, 10);
    add_tensor(&g, c, "output_norm.weight", 32, 0);
    if (c->untied) add_tensor(&g, c, "output.weight", 32, 10);
    if (c->tensor && strcmp(c->tensor, "rope_freqs.weight") == 0) add_tensor(&g, c, "rope_freqs.weight", 4, 0);
    if (c->long_factor != 0) add_factors(&g, "rope_factors_long.weight", c->long_factor);
    if (c->short_factor != 0) add_factors(&g, "rope_factors_short.weight", c->short_factor);
    for (int i = 0; i < 2; i++) add_layer(&g, c, i);
    uint8_t *bytes = ggufgen_finish(&g, size);
    ggufgen_free(&g);
    return bytes;
}

typedef struct loaded {
    uint8_t *bytes;
    mf_gguf *file;
    mf_model *model;
} loaded;

static loaded load(const change *c, mf_error *err) {
    loaded l = {0};
    size_t size;
    l.bytes = make(c, &size);
    l.file = mf_gguf_open_memory(l.bytes, size, err);
    if (!l.file) fail_msg("%s", err->text);
    l.model = mf_model_new(l.file, err);
    return l;
}

static void unload(loaded *l) {
    mf_model_free(l->model);
    mf_gguf_close(l->file);
    free(l->bytes);
}

static void a_right_file_loads(void **state) {
    (void)state;
    mf_error err = {0};
    loaded l = load(&(change){0}, &err);
    if (!l.model) fail_msg("%s", err.text);
    assert_int_equal(l.model->hparams.head_dim, 8);
    assert_ptr_equal(l.model->output, l.model->token_embd);
    assert_string_equal(mf_model_arch(l.model), "qwen2");
    assert_int_equal(mf_model_n_params(l.model),
                     10 * 32 + 32 + 2 * (64 + 32 * 32 * 2 + 32 * 16 * 2 + 32 + 32 + 3 * 32 * 64));
    mf_graph g;
    assert_true(mf_model_build(l.model, 128, &g, &err));
    assert_int_equal(g.values.data[g.output].ne[0], 10);
    mf_graph_free(&g);
    mf_hash128 print, other;
    assert_true(mf_model_fingerprint(l.model, &print, &err));
    unload(&l);

    l = load(&(change){.untied = true}, &err);
    assert_ptr_not_equal(l.model->output, l.model->token_embd);
    assert_true(mf_model_fingerprint(l.model, &other, &err));
    assert_memory_not_equal(&print, &other, sizeof print);
    unload(&l);

    l = load(&(change){.key_prefix = "llama"}, &err); // as old converters wrote Qwen2
    assert_non_null(l.model);
    unload(&l);
}

static void refusals_name_the_thing_and_the_value(void **state) {
    (void)state;
    static const struct {
        change c;
        const char *sentence;
    } cases[] = {
        {{.arch = "mamba"}, "unsupported architecture 'mamba'; supported: llama, qwen2, qwen3"},
        {{.drop_key = "general.architecture"}, "general.architecture is missing"},
        {{.drop_key = "block_count"}, "qwen2.block_count is missing"},
        {{.drop_key = "context_length"}, "qwen2.context_length is missing"},
        {{.drop_key = "embedding_length"}, "qwen2.embedding_length is missing"},
        {{.drop_key = "feed_forward_length"}, "qwen2.feed_forward_length is missing"},
        {{.drop_key = "attention.head_count"}, "qwen2.attention.head_count is missing"},
        {{.drop_key = "attention.layer_norm_rms_epsilon"}, "layer_norm_rms_epsilon is missing"},
        {{.u32_key = "block_count", .u32_value = 0}, "qwen2.block_count is 0; it must be 1 to 1024"},
        {{.u32_key = "block_count", .u32_value = 4000000000U}, "qwen2.block_count is 4000000000"},
        {{.u32_key = "block_count", .u32_value = 3}, "the tensor blk.2.attn_norm.weight is missing"},
        {{.u32_key = "context_length", .u32_value = 1U << 30}, "context_length is 1073741824"},
        {{.u32_key = "embedding_length", .u32_value = 0}, "embedding_length is 0"},
        {{.u32_key = "embedding_length", .u32_value = 64},
         "the tensor token_embd.weight is [32, 10, 1]; [64, 10] was expected"},
        {{.u32_key = "attention.head_count", .u32_value = 2000}, "head_count is 2000"},
        {{.u32_key = "attention.head_count_kv", .u32_value = 3}, "4 attention heads can't share 3 KV heads evenly"},
        {{.u32_key = "attention.value_length", .u32_value = 16}, "K heads of 8 and V heads of 16"},
        {{.u32_key = "rope.dimension_count", .u32_value = 10}, "rope turns 10 of 8"},
        {{.u32_key = "rope.dimension_count", .u32_value = 7}, "rope turns 7 of 8"},
        {{.f32_key = "attention.layer_norm_rms_epsilon", .f32_value = -1}, "layer_norm_rms_epsilon is -1"},
        {{.f32_key = "attention.layer_norm_rms_epsilon", .f32_value = __builtin_nanf("")}, "layer_norm_rms_epsilon is"},
        {{.f32_key = "rope.freq_base", .f32_value = 0}, "rope.freq_base is 0; it must be positive"},
        {{.f32_key = "rope.freq_base", .f32_value = 1, .rope_type = "yarn"}, "rope.freq_base is 1; it must be above 1"},
        {{.f32_key = "rope.freq_base", .f32_value = 0.5F}, "rope.freq_base is 0.5; it must be above 1"},
        {{.f32_key = "rope.freq_base", .f32_value = __builtin_inff()}, "rope.freq_base is inf"},
        {{.f32_key = "rope.freq_base", .f32_value = __builtin_nanf("")}, "rope.freq_base is"},
        {{.f32_key = "rope.scaling.factor", .f32_value = 9e11F, .rope_type = "yarn"},
         "rope.scaling.factor is 9e+11: 128 tokens become"},
        {{.f32_key = "rope.scaling.factor", .f32_value = 1e12F}, "rope.scaling.factor is 1e+12"},
        {{.real = "attention.scale", .value = 0.5}, "qwen2.attention.scale is 0.5, which this version does not compute"},
        {{.real = "logit_scale", .value = 0.0625}, "qwen2.logit_scale is 0.0625"},
        {{.real = "logit_scale", .value = __builtin_nan("")}, "qwen2.logit_scale is"},
        {{.real = "embedding_scale", .value = 12}, "qwen2.embedding_scale is 12"},
        {{.real = "residual_scale", .value = 0.22}, "qwen2.residual_scale is 0.22"},
        {{.flag = "attention.causal", .value = 0}, "qwen2.attention.causal is 0"},
        {{.real = "attn_logit_softcapping", .value = 50}, "attn_logit_softcapping is 50"},
        {{.real = "final_logit_softcapping", .value = 30}, "final_logit_softcapping is 30, which this"},
        {{.real = "expert_count", .value = 8}, "expert_count is 8"},
        {{.real = "attention.max_alibi_bias", .value = 8}, "max_alibi_bias is 8"},
        {{.real = "attention.clamp_kqv", .value = 6}, "clamp_kqv is 6"},
        {{.flag = "use_parallel_residual", .value = 1}, "use_parallel_residual is 1"},
        {{.real = "pooling_type", .value = 3}, "pooling_type is 3"},
        {{.array = "rope.dimension_sections"}, "rope.dimension_sections is 1"},
        {{.real = "expert_count", .value = 8, .key_prefix = "llama"}, "llama.expert_count is 8"},
        {{.more = "blk.1.attn_sinks.weight"}, "the tensor blk.1.attn_sinks.weight is no part of a qwen2 model"},
        {{.more = "blk.0.attn_norm.bias"}, "the tensor blk.0.attn_norm.bias is no part"},
        {{.more = "blk.0.attn_q.scale"}, "the tensor blk.0.attn_q.scale is no part"},
        {{.more = "blk.2.attn_q.bias"},
         "the tensor blk.2.attn_q.bias is of a layer beyond the 2 that qwen2.block_count says"},
        {{.more = "blk.999999999999.attn_q.bias"}, "the tensor blk.999999999999.attn_q.bias is no part"},
        {{.more = "blk.0.ffn_gate.bias"}, "the tensor blk.0.ffn_gate.bias is [4, 1, 1]; [64, 1] was expected"},
        {{.more = "output.bias"}, "the tensor output.bias is [4, 1, 1]; [10, 1] was expected"},
        {{.more = "output_norm.bias"}, "the tensor output_norm.bias is no part"},
        {{.more = "attn_rot_embd"}, "the tensor attn_rot_embd is no part"},
        {{.f32_key = "rope.scaling.factor", .f32_value = __builtin_inff()}, "rope.scaling.factor is inf"},
        {{.rope_type = "dynamic"}, "rope.scaling.type is 'dynamic'; supported: none, linear, yarn, longrope"},
        {{.rope_type = "longrope"}, "'longrope' and the tensor rope_factors_long.weight is missing"},
        {{.rope_type = "longrope", .long_factor = 4}, "'longrope' and the tensor rope_factors_short.weight is missing"},
        {{.rope_type = "longrope", .long_factor = -4, .short_factor = 1}, "rope_factors_long.weight[0] is -4"},
        {{.rope_type = "longrope", .long_factor = 4, .short_factor = __builtin_nanf("")}, "rope_factors_short.weight[0] is"},
        {{.rope_type = "yarn", .long_factor = 4},
         "rope_factors_long.weight is for a rope.scaling.type of 'longrope', which is 'yarn'"},
        {{.short_factor = 4}, "rope_factors_short.weight is for a rope.scaling.type of 'longrope', which is 'linear'"},
        {{.u32_key = "rope.scaling.original_context_length", .u32_value = 0}, "original_context_length is 0"},
        {{.drop_tensor = "token_embd.weight"}, "the tensor token_embd.weight is missing"},
        {{.drop_tensor = "output_norm.weight"}, "the tensor output_norm.weight is missing"},
        {{.drop_tensor = "blk.1.ffn_down.weight"}, "the tensor blk.1.ffn_down.weight is missing"},
        {{.drop_tensor = "blk.0.attn_q.bias"}, "the tensor blk.0.attn_q.bias is missing"},
        {{.tensor = "blk.1.attn_k.weight", .ne = {32, 32}, .type = MF_TYPE_F32},
         "the tensor blk.1.attn_k.weight is [32, 32, 1]; [32, 16] was expected"},
        {{.tensor = "blk.0.attn_norm.weight", .ne = {32, 0}, .type = MF_TYPE_Q8_0}, "attn_norm.weight is of type Q8_0"},
        {{.tensor = "blk.0.attn_q.weight", .ne = {32, 32}, .type = 39}, "attn_q.weight is of type MXFP4"},
        {{.tensor = "rope_freqs.weight", .ne = {5, 0}, .type = MF_TYPE_F32}, "rope_freqs.weight is F32 of 5; F32 of 4"},
        {{.tensor = "rope_freqs.weight", .ne = {4, 0}, .type = MF_TYPE_F32}, "rope_freqs.weight[0] is 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mf_error err = {0};
        loaded l = load(&cases[i].c, &err);
        if (l.model || !strstr(err.text, cases[i].sentence))
            fail_msg("'%s' expected, got '%s'", cases[i].sentence, err.text);
        unload(&l);
    }
}

// Linear scaling divides every frequency; YaRN keeps the fast ones, divides the slow ones and enlarges the magnitude.
static void rope_scalings(void **state) {
    (void)state;
    mf_error err = {0};
    loaded plain = load(&(change){0}, &err),
           linear = load(&(change){.rope_type = "linear", .f32_key = "rope.scaling.factor", .f32_value = 4}, &err);
    loaded yarn = load(&(change){.rope_type = "yarn", .f32_key = "rope.scaling.factor", .f32_value = 4}, &err);
    const double *p = plain.model->rope.inv_freq, *l = linear.model->rope.inv_freq, *y = yarn.model->rope.inv_freq;
    assert_true(p[0] == 1.0);
    for (int i = 0; i < 4; i++) assert_true(l[i] == p[i] / 4);
    assert_true(y[3] <= p[3] / 4 * 1.0001 && y[3] >= p[3] / 4 * 0.9999);
    assert_true(y[0] > p[0] / 4);
    assert_true(yarn.model->rope.magnitude > 1.138 && yarn.model->rope.magnitude < 1.139); // 1 + 0.1 ln 4
    unload(&plain);
    unload(&linear);
    unload(&yarn);
}

// A factor without a type is linear; attn_factor counts whatever the type; YaRN's own magnitude goes before the usual one.
static void rope_keys(void **state) {
    (void)state;
    mf_error err = {0};
    loaded plain = load(&(change){0}, &err),
           untyped = load(&(change){.f32_key = "rope.scaling.factor", .f32_value = 2}, &err),
           oldest = load(&(change){.f32_key = "rope.scale_linear", .f32_value = 2}, &err),
           none = load(&(change){.rope_type = "none", .f32_key = "rope.scaling.factor", .f32_value = 2}, &err),
           attn = load(&(change){.f32_key = "rope.scaling.attn_factor", .f32_value = 1.5F}, &err),
           yarn = load(&(change){.rope_type = "yarn", .f32_key = "rope.scaling.yarn_attn_factor", .f32_value = 1.25F}, &err);
    for (int i = 0; i < 4; i++) {
        const double p = plain.model->rope.inv_freq[i];
        assert_true(untyped.model->rope.inv_freq[i] == p / 2 && oldest.model->rope.inv_freq[i] == p / 2);
        assert_true(none.model->rope.inv_freq[i] == p);
    }
    assert_true(attn.model->rope.magnitude == 1.5 && yarn.model->rope.magnitude == 1.25);
    loaded *all[] = {&plain, &untyped, &oldest, &none, &attn, &yarn};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) unload(all[i]);
}

// Which of the two sets of divisors is taken depends on the context alone.
static void longrope_goes_by_the_context(void **state) {
    (void)state;
    mf_error err = {0};
    loaded plain = load(&(change){0}, &err);
    loaded l = load(&(change){.rope_type = "longrope", .long_factor = 4, .short_factor = 2, .n_ctx_orig = 64}, &err);
    if (!l.model) fail_msg("%s", err.text);
    for (int i = 0; i < 4; i++) {
        const double p = plain.model->rope.inv_freq[i];
        assert_true(mf_model_rope(l.model, 64)->inv_freq[i] == p / 2);
        assert_true(mf_model_rope(l.model, 65)->inv_freq[i] == p / 4);
        assert_true(mf_model_rope(plain.model, 1000)->inv_freq[i] == p);
    }
    mf_graph g;
    assert_true(mf_model_build(l.model, 65, &g, &err));
    assert_ptr_equal(g.nodes.data[0].u.rope.inv_freq, l.model->rope_long.inv_freq);
    mf_graph_free(&g);
    unload(&l);
    unload(&plain);
}

// Keys that say what is done anyway, and tensors that repeat what rope's keys say.
static void what_changes_nothing_loads(void **state) {
    (void)state;
    static const change cases[] = {
        {.real = "attention.scale", .value = 0.35355338}, // 1 / sqrt(8)
        {.real = "attention.scale", .value = 0},
        {.real = "logit_scale", .value = 1},
        {.real = "embedding_scale", .value = 0},
        {.flag = "attention.causal", .value = 1},
        {.real = "final_logit_softcapping", .value = 0},
        {.real = "expert_count", .value = 0},
        {.flag = "use_parallel_residual", .value = 0},
        {.real = "vocab_size", .value = 99},
        {.more = "blk.1.attn_rot_embd"},
        {.more = "blk.0.attn.rope.freqs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mf_error err = {0};
        loaded l = load(&cases[i], &err);
        if (!l.model) fail_msg("%s", err.text);
        unload(&l);
    }
}

static void keep_line(void *arg, int level, const char *line) {
    assert_int_equal(level, MF_LOG_NOTICE);
    mf_buf_text(arg, line);
}

// What is not known at all is named.
static void unknown_keys_are_named(void **state) {
    (void)state;
    mf_buf log = {0};
    mf_error err = {0};
    mf_log_set_sink(keep_line, &log);
    loaded known = load(&(change){.real = "logit_scale", .value = 1}, &err);
    assert_int_equal(log.len, 0);
    loaded l = load(&(change){.real = "attention.flux", .value = 3, .flag = "warp\x1b[2J"}, &err);
    mf_log_set_sink(NULL, NULL);
    if (!l.model) fail_msg("%s", err.text);
    assert_string_equal(log.data, "the file says of its qwen2 model what this version does not know and leaves out: "
                                  "qwen2.attention.flux, qwen2.warp?[2J");
    free(log.data);
    unload(&known);
    unload(&l);
}

// A window is as good as none within it.
static void a_window_bounds_the_context(void **state) {
    (void)state;
    mf_error err = {0};
    const uint32_t cases[][2] = {{64, 64}, {0, 128}, {4000000000U, 128}};
    for (size_t i = 0; i < 3; i++) {
        loaded l = load(&(change){.u32_key = "attention.sliding_window", .u32_value = cases[i][0]}, &err);
        if (!l.model) fail_msg("%s", err.text);
        mf_graph g;
        assert_true(mf_model_build(l.model, (int32_t)cases[i][1], &g, &err));
        mf_graph_free(&g);
        if (cases[i][0] == 64) {
            assert_false(mf_model_build(l.model, 65, &g, &err));
            assert_string_equal(err.text,
                                "qwen2.attention.sliding_window is 64 and the context 65: attention over a window is "
                                "not supported; the largest context (--ctx) is 64");
        }
        unload(&l);
    }
}

// Linear scaling and YaRN lift the most tokens of a sequence; nothing else does, and nothing lowers it.
static void scaled_rope_stretches_the_context(void **state) {
    (void)state;
    static const struct {
        change c;
        int32_t most;
    } cases[] = {
        {{0}, 128},
        {{.rope_type = "yarn", .f32_key = "rope.scaling.factor", .f32_value = 4}, 512},
        {{.rope_type = "yarn", .f32_key = "rope.scaling.factor", .f32_value = 4, .n_ctx_orig = 100}, 400},
        {{.rope_type = "yarn", .f32_key = "rope.scaling.factor", .f32_value = 4, .n_ctx_orig = 16}, 128},
        {{.rope_type = "linear", .f32_key = "rope.scaling.factor", .f32_value = 2.5F}, 320},
        {{.f32_key = "rope.scale_linear", .f32_value = 2}, 256},
        {{.f32_key = "rope.scaling.factor", .f32_value = 0.5F}, 128},
        {{.n_ctx_orig = 1024}, 128},
        {{.rope_type = "none", .f32_key = "rope.scaling.factor", .f32_value = 4}, 128},
        {{.rope_type = "longrope", .f32_key = "rope.scaling.factor", .f32_value = 4, .long_factor = 4, .short_factor = 2},
         128},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mf_error err = {0};
        loaded l = load(&cases[i].c, &err);
        if (!l.model) fail_msg("%s", err.text);
        assert_int_equal(l.model->hparams.n_ctx_train, cases[i].most);
        unload(&l);
    }
}

// A base just above 1 makes YaRN's borders larger than any integer.
static void extreme_bases_stay_numbers(void **state) {
    (void)state;
    static const float bases[] = {1.0000001F, 1.01F, 9e11F};
    for (size_t i = 0; i < 3; i++) {
        mf_error err = {0};
        loaded l = load(&(change){.rope_type = "yarn", .f32_key = "rope.freq_base", .f32_value = bases[i]}, &err);
        if (!l.model) fail_msg("%s", err.text);
        for (int k = 0; k < 4; k++) assert_true(l.model->rope.inv_freq[k] > 0 && l.model->rope.inv_freq[k] <= 1);
        unload(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_file_loads),
        cmocka_unit_test(refusals_name_the_thing_and_the_value),
        cmocka_unit_test(rope_scalings),
        cmocka_unit_test(rope_keys),
        cmocka_unit_test(longrope_goes_by_the_context),
        cmocka_unit_test(what_changes_nothing_loads),
        cmocka_unit_test(unknown_keys_are_named),
        cmocka_unit_test(a_window_bounds_the_context),
        cmocka_unit_test(scaled_rope_stretches_the_context),
        cmocka_unit_test(extreme_bases_stay_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
