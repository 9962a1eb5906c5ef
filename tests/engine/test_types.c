// Every architecture with every weight type: logits against the same model with its weights decoded to F32. Float types must give the
// same bytes, and so must embeddings of any type; quantized matmuls differ by the rounding of their activations to 8 bits, and the bounds
// are tight enough that a doubled scale in a part of one matrix passes them.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine/logits.h"
#include "support/tinymodel.h"

static const char *const archs[] = {"llama", "qwen2", "qwen3"};
#define N_ARCHS (sizeof archs / sizeof archs[0])
#define N_IDS   40

static float *evaluate(const uint8_t *bytes, size_t size) {
    int32_t ids[N_IDS];
    for (int32_t i = 0; i < N_IDS; i++) ids[i] = (i * 37 + i * i) % TINYMODEL_VOCAB;
    mf_error err = {0};
    fixture f;
    if (!fixture_of(&f, mf_gguf_open_memory(bytes, size, &err), NULL, 1, &err)) fail_msg("%s", err.text);
    float *rows = logits_of(&f, ids, N_IDS, 64, MF_TYPE_F32, &err);
    if (!rows) fail_msg("%s", err.text);
    fixture_close(&f);
    return rows;
}

typedef struct pair { // a model, and its twin of decoded weights
    uint8_t *bytes, *twin_bytes;
    size_t size, twin_size;
    mf_gguf *file;
    float *twin; // logits
} pair;

static pair pair_of(const tinymodel *m) {
    pair p = {0};
    mf_error err = {0};
    p.bytes = tinymodel_make(m, &p.size);
    p.file = mf_gguf_open_memory(p.bytes, p.size, &err);
    if (!p.file) fail_msg("%s", err.text);
    p.twin_bytes = tinymodel_floats(p.file, &p.twin_size);
    p.twin = evaluate(p.twin_bytes, p.twin_size);
    return p;
}

static void pair_free(pair *p) {
    mf_gguf_close(p->file);
    free(p->bytes);
    free(p->twin_bytes);
    free(p->twin);
}

// The mean over the rows, so that one unlucky row does not widen the bound.
static double mean_distance(const pair *p) {
    float *rows = evaluate(p->bytes, p->size);
    double sum = 0;
    for (int i = 0; i < N_IDS; i++)
        sum += logits_distance(rows + (size_t)i * TINYMODEL_VOCAB, p->twin + (size_t)i * TINYMODEL_VOCAB, TINYMODEL_VOCAB);
    free(rows);
    return sum / N_IDS;
}

static void same_bytes(const tinymodel *m, const char *what) {
    pair p = pair_of(m);
    float *rows = evaluate(p.bytes, p.size);
    if (memcmp(rows, p.twin, sizeof *rows * N_IDS * TINYMODEL_VOCAB) != 0)
        fail_msg("%s of %s in %s: other logits than with decoded weights", what, mf_type_name(m->embd), m->arch);
    free(rows);
    pair_free(&p);
}

static bool is_float(mf_type type) { return mf_type_info_of(type)->block_len == 1; }

static void check_type(const char *arch, mf_type type, bool tied) {
    const tinymodel m = {arch, &type, 1, type, type, tied, MF_TYPE_F32, 1000 + type};
    if (is_float(type)) {
        same_bytes(&m, "weights");
        return;
    }
    pair p = pair_of(&m);
    const double right = mean_distance(&p);
    tinymodel_damage(p.file, "blk.0.attn_v.weight", 8);
    const double wrong = mean_distance(&p);
    print_message("%s %-6s %-6s %.2e, with doubled scales %.2e\n", arch, mf_type_name(type), tied ? "tied" : "untied", right,
                  wrong);
    assert_true(right < 8e-2);
    assert_true(wrong > 16e-2);
    pair_free(&p);
}

static void every_architecture_with_every_type(void **state) {
    (void)state;
    for (size_t a = 0; a < N_ARCHS; a++)
        for (size_t t = 0; t < TINYMODEL_N_TYPES; t++) check_type(archs[a], tinymodel_types[t], (a + t) % 2);
}

static const mf_type f32 = MF_TYPE_F32;

static void embeddings_decode_exactly(void **state) {
    (void)state;
    for (size_t t = 0; t < TINYMODEL_N_TYPES; t++)
        same_bytes(&(tinymodel){"llama", &f32, 1, tinymodel_types[t], MF_TYPE_F32, false, MF_TYPE_F32, 2000 + t},
                   "embeddings");
}

static void vectors_of_halves(void **state) {
    (void)state;
    static const mf_type halves[] = {MF_TYPE_F16, MF_TYPE_BF16};
    for (size_t a = 0; a < N_ARCHS; a++)
        for (size_t i = 0; i < 2; i++)
            same_bytes(&(tinymodel){archs[a], &f32, 1, MF_TYPE_F32, MF_TYPE_F32, true, halves[i], 3000}, "vectors");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture_with_every_type),
        cmocka_unit_test(embeddings_decode_exactly),
        cmocka_unit_test(vectors_of_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
