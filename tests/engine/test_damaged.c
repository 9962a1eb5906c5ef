// Weights that are not finite: refused by tensor and place while they are loaded, whatever their type and the kernel row; rows that are
// only gathered when they are used. An activation that overflows is reported by the first node that sees it.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/logits.h"
#include "support/tinymodel.h"

typedef struct made {
    uint8_t *bytes;
    size_t size;
    mf_gguf *file;
} made;

static made make(const tinymodel *m) {
    made x = {0};
    mf_error err = {0};
    x.bytes = tinymodel_make(m, &x.size);
    x.file = mf_gguf_open_memory(x.bytes, x.size, &err);
    if (!x.file) fail_msg("%s", err.text);
    return x;
}

static void drop(made *x) {
    mf_gguf_close(x->file);
    free(x->bytes);
}

// Puts an infinity or a NaN into block (or value) `block` of a row: in its scale, or in its minimum.
static void damage(const made *x, const char *name, int64_t row, int64_t block, bool minimum, bool nan) {
    const mf_gguf_tensor *t = mf_gguf_find_tensor(x->file, name);
    const tinymodel_scales *s = tinymodel_scales_of(t->type);
    const mf_type_info *info = mf_type_info_of(t->type);
    size_t row_bytes = 0;
    if (!mf_type_row_bytes(t->type, t->ne[0], &row_bytes)) fail();
    uint8_t *at = (uint8_t *)t->data + (size_t)row * row_bytes + (size_t)block * info->block_bytes;
    const float value = nan ? __builtin_nanf("") : -__builtin_inff();
    if (s)
        tinymodel_put_half(at + (minimum ? s->m : s->d), value);
    else
        tinymodel_put_float(at, t->type, value);
}

static void refused(const made *x, const char *row, const char *tensor, const char *what, int64_t place, int64_t row_of) {
    mf_error err = {0};
    fixture f;
    char want[200];
    snprintf(want, sizeof want, "the tensor %s is damaged: %s %lld of row %lld is not a finite number", tensor, what,
             (long long)place, (long long)row_of);
    if (fixture_of(&f, mf_gguf_open_memory(x->bytes, x->size, &err), row, 2, &err)) fail_msg("%s: loaded", want);
    assert_string_equal(err.text, want);
}

static void every_type(void **state) {
    (void)state;
    for (size_t i = 0; i < TINYMODEL_N_TYPES; i++) {
        const mf_type type = tinymodel_types[i];
        const tinymodel m = {"llama", &type, 1, MF_TYPE_F32, type, false, MF_TYPE_F32, 5, false};
        const tinymodel_scales *s = tinymodel_scales_of(type);
        const char *what = s ? "the scale of block" : "value";
        const int64_t last = 256 / mf_type_info_of(type)->block_len - 1;
        for (int minimum = 0; minimum < (s && s->m >= 0 ? 2 : 1); minimum++) {
            made x = make(&m);
            damage(&x, "blk.1.ffn_up.weight", 201, last, minimum != 0, i % 2);
            refused(&x, NULL, "blk.1.ffn_up.weight", what, last, 201);
            refused(&x, "scalar", "blk.1.ffn_up.weight", what, last, 201);
            damage(&x, "blk.1.ffn_up.weight", 7, 0, minimum != 0, true); // the first place is named
            refused(&x, NULL, "blk.1.ffn_up.weight", what, 0, 7);
            drop(&x);
        }
    }
}

static void vectors_and_heads(void **state) {
    (void)state;
    const mf_type type = MF_TYPE_Q4_K, vectors[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_BF16};
    for (int i = 0; i < 3; i++) {
        const tinymodel m = {"llama", &type, 1, MF_TYPE_Q8_0, MF_TYPE_Q6_K, false, vectors[i], 5, true};
        static const char *const names[] = {"output_norm.weight", "blk.0.attn_norm.weight", "blk.1.ffn_gate.bias"};
        for (int n = 0; n < 3; n++) {
            made x = make(&m);
            damage(&x, names[n], 0, 255, false, n % 2);
            refused(&x, NULL, names[n], "value", 255, 0);
            drop(&x);
        }
        made x = make(&m);
        damage(&x, "output.weight", TINYMODEL_VOCAB - 1, 0, false, false);
        refused(&x, NULL, "output.weight", "the scale of block", 0, TINYMODEL_VOCAB - 1);
        drop(&x);
    }
    const tinymodel tied = {"llama", &type, 1, MF_TYPE_Q8_0, MF_TYPE_Q8_0, true, MF_TYPE_F32, 5, false};
    made x = make(&tied);
    damage(&x, "token_embd.weight", 9, 3, false, false);
    refused(&x, NULL, "token_embd.weight", "the scale of block", 3, 9);
    refused(&x, "scalar", "token_embd.weight", "the scale of block", 3, 9);
    drop(&x);
}

// Runs three tokens; the sentence with which they end, empty when they don't.
static mf_error run(const made *x, const char *row, int32_t last) {
    mf_error err = {0};
    fixture f;
    if (!fixture_of(&f, mf_gguf_open_memory(x->bytes, x->size, &err), row, 2, &err)) fail_msg("%s", err.text);
    const int32_t ids[3] = {1, 2, last};
    free(logits_of(&f, ids, 3, 64, MF_TYPE_F16, &err));
    fixture_close(&f);
    return err;
}

static void gathered_rows(void **state) {
    (void)state;
    const mf_type type = MF_TYPE_Q4_K, embeddings[] = {MF_TYPE_Q8_0, MF_TYPE_F16};
    static const char *const rows[] = {NULL, "scalar"};
    for (int i = 0; i < 4; i++) {
        const tinymodel m = {"llama", &type, 1, embeddings[i / 2], MF_TYPE_Q6_K, false, MF_TYPE_F32, 5, false};
        made x = make(&m);
        damage(&x, "token_embd.weight", 9, 3, false, i % 2);
        assert_int_equal(run(&x, rows[i % 2], 3).code, MF_OK);
        const mf_error err = run(&x, rows[i % 2], 9);
        assert_string_equal(err.text, "token 2: an activation is not finite (get_rows of token_embd.weight into embedding)");
        drop(&x);
    }
}

// The norm of a layer makes its matmuls overflow, and with them everything behind: the sentence names that layer.
static void the_first_node_is_named(void **state) {
    (void)state;
    const mf_type type = MF_TYPE_Q4_K;
    for (int layer = 0; layer < 2; layer++) {
        const tinymodel m = {"llama", &type, 1, MF_TYPE_Q8_0, MF_TYPE_Q6_K, false, MF_TYPE_F32, 5, false};
        made x = make(&m);
        char name[40], want[100];
        snprintf(name, sizeof name, "blk.%d.ffn_norm.weight", layer);
        snprintf(want, sizeof want, "an activation is not finite (swiglu_quantize into blk.%d.", layer);
        const mf_gguf_tensor *t = mf_gguf_find_tensor(x.file, name);
        for (int i = 0; i < TINYMODEL_EMBD; i++) {
            const float large = 1e37F;
            memcpy((uint8_t *)t->data + (size_t)i * 4, &large, 4);
        }
        const mf_error err = run(&x, NULL, 3);
        if (!strstr(err.text, want)) fail_msg("'%s' expected, got '%s'", want, err.text);
        drop(&x);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_type), cmocka_unit_test(vectors_and_heads),
                                       cmocka_unit_test(gathered_rows), cmocka_unit_test(the_first_node_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
