// Every rope scaling against transformers' float32 forward pass (tests/oracle/rope_scalings.py), on every kernel row that runs here: the
// tiny models with keys and tensors added.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels.h"
#include "base/file.h"
#include "engine/logits.h"
#include "support/ggufcopy.h"

typedef struct reader {
    mf_buf bytes;
    size_t at;
} reader;

static const char *take(reader *r, size_t n) {
    assert_true(n <= r->bytes.len - r->at);
    r->at += n;
    return r->bytes.data + r->at - n;
}

static uint32_t take_u32(reader *r) {
    uint32_t n;
    memcpy(&n, take(r, sizeof n), sizeof n);
    return n;
}

typedef struct scaled { // a case: its model's file with the scaling, and the logits that are expected
    const char *name;
    int32_t n_ctx, sequence, n_vocab;
    uint8_t *file;
    size_t size;
} scaled;

static void take_key(reader *r, ggufgen *g) {
    const char *key = take(r, 56);
    const uint32_t kind = take_u32(r);
    const char *value = take(r, 16);
    if (kind == MF_GGUF_STRING)
        ggufgen_str(g, key, value);
    else
        ggufgen_value(g, mf_str_of(key), kind, value, 4);
}

static scaled take_case(reader *r) {
    scaled c = {.name = take(r, 24)};
    char path[512];
    snprintf(path, sizeof path, MF_FIXTURES "/tiny/%s.gguf", take(r, 16));
    mf_error err = {0};
    mf_gguf *model = mf_gguf_open(path, &err);
    if (!model) fail_msg("%s", err.text);
    c.n_ctx = (int32_t)take_u32(r);
    ggufgen g;
    ggufgen_init(&g);
    ggufcopy_values(&g, model);
    for (uint32_t n = take_u32(r); n > 0; n--) take_key(r, &g);
    ggufcopy_tensors(&g, model);
    for (uint32_t n = take_u32(r); n > 0; n--) {
        const char *name = take(r, 32);
        const uint64_t len = take_u32(r);
        ggufgen_tensor(&g, name, MF_TYPE_F32, 1, &len, take(r, 4 * len), 4 * len);
    }
    c.file = ggufgen_finish(&g, &c.size);
    ggufgen_free(&g);
    mf_gguf_close(model);
    c.sequence = (int32_t)take_u32(r);
    c.n_vocab = (int32_t)take_u32(r);
    return c;
}

static float *evaluate(const scaled *c, const char *row) {
    char path[512];
    snprintf(path, sizeof path, MF_FIXTURES "/tiny/%s.ids.txt", c->sequence ? "long" : "short");
    int32_t ids[MOST_IDS], n = fixture_ids(path, ids, MOST_IDS);
    mf_error err = {0};
    fixture f;
    if (!fixture_of(&f, mf_gguf_open_memory(c->file, c->size, &err), row, 2, &err)) fail_msg("%s: %s", c->name, err.text);
    assert_int_equal(f.model->hparams.n_vocab, c->n_vocab);
    float *rows = logits_of(&f, ids, n, c->n_ctx, MF_TYPE_F32, &err);
    if (!rows) fail_msg("%s: %s", c->name, err.text);
    fixture_close(&f);
    return rows;
}

static void check_case(reader *r, const scaled *c) {
    const size_t row_bytes = (size_t)c->n_vocab * sizeof(float);
    const uint32_t n_rows = take_u32(r);
    const char *expected = take(r, n_rows * (4 + row_bytes));
    float *want = malloc(row_bytes);
    assert_non_null(want);
    for (const mf_kernels *const *k = mf_kernels_all(); *k; k++) {
        if (!(*k)->usable(mf_cpu_features_get())) continue;
        float *rows = evaluate(c, (*k)->name);
        double worst = 0;
        for (uint32_t i = 0; i < n_rows; i++) {
            uint32_t row;
            memcpy(&row, expected + i * (4 + row_bytes), 4);
            memcpy(want, expected + i * (4 + row_bytes) + 4, row_bytes);
            double d = logits_distance(rows + (size_t)row * (size_t)c->n_vocab, want, c->n_vocab);
            if (!(d < worst)) worst = d;
        }
        print_message("%-20s %-8s %.2e\n", c->name, (*k)->name, worst);
        assert_true(worst < 1e-4);
        free(rows);
    }
    free(want);
}

static void scalings(void **state) {
    (void)state;
    reader r = {0};
    mf_error err = {0};
    assert_true(mf_file_read(MF_FIXTURES "/rope_scalings.bin", 1 << 20, &r.bytes, &err));
    take(&r, 72);
    for (uint32_t n = take_u32(&r); n > 0; n--) {
        scaled c = take_case(&r);
        check_case(&r, &c);
        free(c.file);
    }
    assert_int_equal(r.at, r.bytes.len);
    free(r.bytes.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(scalings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
