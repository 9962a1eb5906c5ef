// Loading models: every refusal by name and value, tied heads, keys of old converters, rope's frequencies.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
    if (c->u32_key && strcmp(c->u32_key, "attention.value_length") == 0) add_u32(&g, c, c->u32_key, 0);
    if (!c->drop_key || strcmp(c->drop_key, "attention.layer_norm_rms_epsilon") != 0)
        ggufgen_f32(&g, key("attention.layer_norm_rms_epsilon"),
                    c->f32_key && strcmp(c->f32_key, "attention.layer_norm_rms_epsilon") == 0 ? c->f32_value : 1e-6F);
    if (c->f32_key && strncmp(c->f32_key, "rope.", 5) == 0) ggufgen_f32(&g, key(c->f32_key), c->f32_value);
    if (c->n_ctx_orig) ggufgen_u32(&g, key("rope.scaling.original_context_length"), c->n_ctx_orig);
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
    uint64_t print = mf_model_fingerprint(l.model);
    unload(&l);

    l = load(&(change){.untied = true}, &err);
    assert_ptr_not_equal(l.model->output, l.model->token_embd);
    assert_true(mf_model_fingerprint(l.model) != print);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_right_file_loads),
        cmocka_unit_test(refusals_name_the_thing_and_the_value),
        cmocka_unit_test(rope_scalings),
        cmocka_unit_test(rope_keys),
        cmocka_unit_test(longrope_goes_by_the_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
