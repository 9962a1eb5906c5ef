// Small models with random weights of any type, in memory, for tests. The same seed gives the same bytes on every machine.
#ifndef MF_TESTS_TINYMODEL_H
#define MF_TESTS_TINYMODEL_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "support/ggufcopy.h"

enum {
    TINYMODEL_VOCAB = 320,
    TINYMODEL_EMBD = 256,
    TINYMODEL_LAYERS = 2
};

typedef struct tinymodel {
    const char *arch;     // "llama", "qwen2", "qwen3" (with heads of 64 channels, the others 32)
    const mf_type *types; // of the layers' matrices, in turn
    size_t n_types;
    mf_type embd, head;
    bool tied;       // no head of its own
    mf_type vectors; // F32, F16, BF16
    uint64_t seed;
    bool biases; // on every matrix
} tinymodel;

// Every type that weights can have.
static const mf_type tinymodel_types[] = {MF_TYPE_F32,  MF_TYPE_F16,  MF_TYPE_BF16, MF_TYPE_Q4_0,   MF_TYPE_Q4_1,
                                          MF_TYPE_Q5_0, MF_TYPE_Q5_1, MF_TYPE_Q8_0, MF_TYPE_Q2_K,   MF_TYPE_Q3_K,
                                          MF_TYPE_Q4_K, MF_TYPE_Q5_K, MF_TYPE_Q6_K, MF_TYPE_IQ4_NL, MF_TYPE_IQ4_XS};
#define TINYMODEL_N_TYPES (sizeof tinymodel_types / sizeof tinymodel_types[0])

// Where a block's f16 scale and minimum are, the minimum for a scale of 1 that puts the middle of random bytes at 0, and their deviation
// then.
typedef struct tinymodel_scales {
    mf_type type;
    int d, m; // -1: none
    float minimum, deviation;
} tinymodel_scales;

static const tinymodel_scales tinymodel_scales_all[] = {
    {MF_TYPE_Q4_0, 0, -1, 0, 4.6F},     {MF_TYPE_Q4_1, 0, 2, -7.5F, 4.6F}, {MF_TYPE_Q5_0, 0, -1, 0, 9.2F},
    {MF_TYPE_Q5_1, 0, 2, -15.5F, 9.2F}, {MF_TYPE_Q8_0, 0, -1, 0, 74},      {MF_TYPE_Q2_K, 80, 82, 1.5F, 13},
    {MF_TYPE_Q3_K, 108, -1, 0, 42},     {MF_TYPE_Q4_K, 0, 2, 7.5F, 240},   {MF_TYPE_Q5_K, 0, 2, 15.5F, 480},
    {MF_TYPE_Q6_K, 208, -1, 0, 1360},   {MF_TYPE_IQ4_NL, 0, -1, 0, 66},    {MF_TYPE_IQ4_XS, 0, -1, 0, 1220},
};

static inline const tinymodel_scales *tinymodel_scales_of(mf_type type) {
    for (size_t i = 0; i < sizeof tinymodel_scales_all / sizeof tinymodel_scales_all[0]; i++)
        if (tinymodel_scales_all[i].type == type) return &tinymodel_scales_all[i];
    return NULL;
}

static inline uint64_t tinymodel_draw(uint64_t *state) { // splitmix64
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static inline float tinymodel_uniform(uint64_t *state) { return (float)(tinymodel_draw(state) >> 40) / 16777216.0F; }

// Deviation 1, roughly normal.
static inline float tinymodel_normal(uint64_t *state) {
    float sum = -6;
    for (int i = 0; i < 12; i++) sum += tinymodel_uniform(state);
    return sum;
}

static inline void tinymodel_put_half(uint8_t *at, float value) {
    const uint16_t bits = mf_f32_to_f16(value);
    memcpy(at, &bits, sizeof bits);
}

static inline void tinymodel_put_float(uint8_t *at, mf_type type, float value) {
    const uint16_t bits = mf_f32_to_bf16(value);
    if (type == MF_TYPE_F32) memcpy(at, &value, sizeof value);
    if (type == MF_TYPE_F16) tinymodel_put_half(at, value);
    if (type == MF_TYPE_BF16) memcpy(at, &bits, sizeof bits);
}

// n values of the deviation; blocks of random bytes with scales that differ by up to three times and in sign.
static inline void tinymodel_fill(uint8_t *data, mf_type type, size_t n, float middle, float deviation, uint64_t *random) {
    const mf_type_info *info = mf_type_info_of(type);
    const tinymodel_scales *s = tinymodel_scales_of(type);
    for (size_t i = 0; i < n / info->block_len; i++, data += info->block_bytes) {
        if (!s) {
            tinymodel_put_float(data, type, middle + deviation * tinymodel_normal(random));
            continue;
        }
        for (size_t b = 0; b < info->block_bytes; b++) data[b] = (uint8_t)(tinymodel_draw(random) >> 56);
        float d =
            deviation / s->deviation * (0.5F + tinymodel_uniform(random)) * (tinymodel_draw(random) >> 63 ? -1.0F : 1.0F);
        tinymodel_put_half(data + s->d, d);
        if (s->m >= 0) tinymodel_put_half(data + s->m, d * s->minimum);
    }
}

static inline void tinymodel_add(ggufgen *g, const char *name, mf_type type, uint64_t in, uint64_t out, float middle,
                                 float deviation, uint64_t *random) {
    size_t row = 0;
    const uint64_t ne[2] = {in, out};
    if (!mf_type_row_bytes(type, in, &row)) exit(1);
    uint8_t *data = calloc(out, row);
    if (!data) exit(1);
    tinymodel_fill(data, type, in * out, middle, deviation, random);
    ggufgen_tensor(g, name, type, out > 1 ? 2 : 1, ne, data, row * out);
    free(data);
}

static inline float tinymodel_inverse_root(float x) {
    float y = 1;
    for (int i = 0; i < 40; i++) y = 0.5F * (y + x / y);
    return 1 / y;
}

typedef struct tinymodel_rule { // a tensor of a layer
    const char *name;
    uint64_t in, out;
    bool matrix;
    float middle, spread; // of a matrix: times 1 / sqrt(in)
} tinymodel_rule;

static inline void tinymodel_add_layer(ggufgen *g, const tinymodel *m, int layer, size_t *turn, uint64_t *random) {
    const bool qwen2 = strcmp(m->arch, "qwen2") == 0, qwen3 = strcmp(m->arch, "qwen3") == 0;
    const uint64_t embd = TINYMODEL_EMBD, head = qwen3 ? 64 : 32, q = 8 * head, kv = 2 * head;
    const tinymodel_rule rules[] = {
        {"attn_norm.weight", embd, 1, false, 1, 0.2F},
        {"ffn_norm.weight", embd, 1, false, 1, 0.2F},
        {"attn_q.weight", embd, q, true, 0, 1.5F},
        {"attn_k.weight", embd, kv, true, 0, 1.5F},
        {"attn_v.weight", embd, kv, true, 0, 1},
        {"attn_output.weight", q, embd, true, 0, 1},
        {"ffn_gate.weight", embd, 256, true, 0, 1.2F},
        {"ffn_up.weight", embd, 256, true, 0, 1.2F},
        {"ffn_down.weight", 256, embd, true, 0, 1},
        {"attn_q.bias", qwen2 || m->biases ? q : 0, 1, false, 0, 0.5F},
        {"attn_k.bias", qwen2 || m->biases ? kv : 0, 1, false, 0, 0.5F},
        {"attn_v.bias", qwen2 || m->biases ? kv : 0, 1, false, 0, 0.5F},
        {"attn_output.bias", m->biases ? embd : 0, 1, false, 0, 0.5F},
        {"ffn_gate.bias", m->biases ? 256 : 0, 1, false, 0, 0.5F},
        {"ffn_up.bias", m->biases ? 256 : 0, 1, false, 0, 0.5F},
        {"ffn_down.bias", m->biases ? embd : 0, 1, false, 0, 0.5F},
        {"attn_q_norm.weight", qwen3 ? head : 0, 1, false, 1.3F, 0.3F},
        {"attn_k_norm.weight", qwen3 ? head : 0, 1, false, 1.3F, 0.3F},
    };
    for (const tinymodel_rule *r = rules; r < rules + sizeof rules / sizeof rules[0]; r++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.%s", layer, r->name);
        if (r->in == 0) continue;
        if (r->matrix)
            tinymodel_add(g, name, m->types[(*turn)++ % m->n_types], r->in, r->out, 0,
                          r->spread * tinymodel_inverse_root((float)r->in), random);
        else
            tinymodel_add(g, name, m->vectors, r->in, 1, r->middle, r->spread, random);
    }
}

static inline void tinymodel_add_keys(ggufgen *g, const char *arch) {
    const struct {
        const char *suffix;
        uint32_t value;
    } keys[] = {{"block_count", TINYMODEL_LAYERS}, {"context_length", 1024},      {"embedding_length", TINYMODEL_EMBD},
                {"feed_forward_length", 256},      {"attention.head_count", 8},   {"attention.head_count_kv", 2},
                {"attention.key_length", 64},      {"attention.value_length", 64}};
    char key[64];
    ggufgen_str(g, "general.architecture", arch);
    for (size_t i = 0; i < (strcmp(arch, "qwen3") == 0 ? 8 : 6); i++) {
        snprintf(key, sizeof key, "%s.%s", arch, keys[i].suffix);
        ggufgen_u32(g, key, keys[i].value);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", arch);
    ggufgen_f32(g, key, 1e-5F);
}

// The file, freed with free().
static inline uint8_t *tinymodel_make(const tinymodel *m, size_t *size) {
    ggufgen g;
    ggufgen_init(&g);
    tinymodel_add_keys(&g, m->arch);
    uint64_t random = m->seed;
    size_t turn = 0;
    const float spread = 2 * tinymodel_inverse_root(TINYMODEL_EMBD);
    tinymodel_add(&g, "token_embd.weight", m->embd, TINYMODEL_EMBD, TINYMODEL_VOCAB, 0, spread, &random);
    tinymodel_add(&g, "output_norm.weight", m->vectors, TINYMODEL_EMBD, 1, 1, 0.2F, &random);
    if (!m->tied) tinymodel_add(&g, "output.weight", m->head, TINYMODEL_EMBD, TINYMODEL_VOCAB, 0, spread, &random);
    if (m->biases) tinymodel_add(&g, "output.bias", m->vectors, TINYMODEL_VOCAB, 1, 0, 1, &random);
    for (int i = 0; i < TINYMODEL_LAYERS; i++) tinymodel_add_layer(&g, m, i, &turn, &random);
    uint8_t *bytes = ggufgen_finish(&g, size);
    ggufgen_free(&g);
    return bytes;
}

// The same file with every tensor decoded to F32.
static inline uint8_t *tinymodel_floats(const mf_gguf *file, size_t *size) {
    ggufgen g;
    ggufgen_init(&g);
    ggufcopy_values(&g, file);
    for (size_t i = 0; i < mf_gguf_n_tensors(file); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(file, i);
        const size_t n = t->ne[0] * t->ne[1];
        float *values = malloc(n * sizeof *values);
        if (!values) exit(1);
        mf_type_info_of(t->type)->decode(t->data, values, n);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
        ggufgen_tensor(&g, name, MF_TYPE_F32, t->n_dims, t->ne, values, n * sizeof *values);
        free(values);
    }
    uint8_t *bytes = ggufgen_finish(&g, size);
    ggufgen_free(&g);
    return bytes;
}

// Doubles the scale of every `every`th block of a tensor in a file that is being read; the tensor is of a quantized type.
static inline void tinymodel_damage(const mf_gguf *file, const char *tensor, size_t every) {
    const mf_gguf_tensor *t = mf_gguf_find_tensor(file, tensor);
    const mf_type_info *info = mf_type_info_of(t->type);
    const tinymodel_scales *s = tinymodel_scales_of(t->type);
    for (size_t at = 0; at < t->size; at += every * info->block_bytes) {
        uint8_t *d = (uint8_t *)t->data + at + s->d;
        uint16_t bits;
        memcpy(&bits, d, sizeof bits);
        tinymodel_put_half(d, 2 * mf_f16_to_f32(bits));
    }
}

#endif
