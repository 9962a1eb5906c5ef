// Logits of the tiny models against transformers' float32 forward pass (tests/oracle/tiny_models.py), on every kernel row that runs
// here. Where weights are quantized the reference rounds activations to bytes as the engine does, so its rows agree to the rounding of
// float32 too, but where that rounding tips an activation to the next byte: such a row is about a hundredth off.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels.h"
#include "base/file.h"
#include "engine/logits.h"

#define CLOSE 1e-4 // of rows in which no activation was tipped

typedef struct distance {
    double most;
    int n_close, n;
} distance;

static distance distance_of(fixture *f, const char *name, mf_type cells) {
    mf_error err = {0};
    char path[512];
    snprintf(path, sizeof path, MF_FIXTURES "/tiny/%s.logits.bin", name);
    mf_buf expected = {0};
    assert_true(mf_file_read(path, 1 << 26, &expected, &err));
    uint32_t head[2];
    memcpy(head, expected.data, sizeof head);
    int32_t n_vocab = (int32_t)head[0];
    assert_int_equal(n_vocab, f->model->hparams.n_vocab);
    static const char *const ids[2] = {"short", "long"};
    distance all = {0};
    for (uint32_t sequence = 0; sequence < 2; sequence++) {
        int32_t list[MOST_IDS];
        char name_of[512];
        snprintf(name_of, sizeof name_of, MF_FIXTURES "/tiny/%s.ids.txt", ids[sequence]);
        int32_t n = fixture_ids(name_of, list, MOST_IDS);
        float *rows = n > 0 ? logits_of(f, list, n, MOST_IDS, cells, &err) : NULL;
        if (!rows) fail_msg("%s", err.text);
        const char *at = expected.data + sizeof head;
        for (uint32_t i = 0; i < head[1]; i++, at += 8 + (size_t)n_vocab * 4) {
            uint32_t where[2];
            memcpy(where, at, sizeof where);
            if (where[0] != sequence) continue;
            float *want = malloc((size_t)n_vocab * sizeof(float));
            memcpy(want, at + 8, (size_t)n_vocab * sizeof(float));
            double d = logits_distance(rows + (size_t)where[1] * (size_t)n_vocab, want, n_vocab);
            if (!(d < all.most)) all.most = d;
            all.n_close += d < CLOSE;
            all.n++;
            free(want);
        }
        free(rows);
    }
    free(expected.data);
    return all;
}

// bound: of the worst row with f32 cells; n_close: rows that are close then; bound_f16: of the worst row with f16 cells.
static void check(const char *name, double bound, int n_close, double bound_f16) {
    char path[512];
    snprintf(path, sizeof path, MF_FIXTURES "/tiny/%s.gguf", name);
    for (const mf_kernels *const *k = mf_kernels_all(); *k; k++) {
        if (!(*k)->usable(mf_cpu_features_get())) continue;
        fixture f;
        mf_error err = {0};
        if (!fixture_open(&f, path, (*k)->name, 2, &err)) fail_msg("%s", err.text);
        distance f32 = distance_of(&f, name, MF_TYPE_F32), f16 = distance_of(&f, name, MF_TYPE_F16);
        print_message("%-12s %-8s f32 cells %.2e, %d of %d rows close; f16 cells %.2e\n", name, (*k)->name, f32.most,
                      f32.n_close, f32.n, f16.most);
        assert_true(f32.most < bound);
        assert_true(f32.n_close >= n_close);
        assert_true(f16.most < bound_f16);
        fixture_close(&f);
    }
}

static void llama_f32(void **state) { (void)state, check("llama-f32", 1e-4, 13, 1e-2); }
static void llama3_f16(void **state) { (void)state, check("llama3-f16", 1e-4, 13, 1e-2); }
static void qwen2_f32(void **state) { (void)state, check("qwen2-f32", 1e-4, 13, 1e-2); }
static void qwen3_f16(void **state) { (void)state, check("qwen3-f16", 1e-4, 13, 1e-2); }
static void llama_mix(void **state) { (void)state, check("llama-mix", 2e-2, 6, 4e-2); }
static void qwen2_mix(void **state) { (void)state, check("qwen2-mix", 2e-2, 12, 4e-2); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_f32), cmocka_unit_test(llama3_f16), cmocka_unit_test(qwen2_f32),
        cmocka_unit_test(qwen3_f16), cmocka_unit_test(llama_mix),  cmocka_unit_test(qwen2_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
