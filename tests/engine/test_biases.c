// Biases on every matrix: logits of tiny models with them against a forward pass in double, written here from the definition, on every
// kernel row that runs here.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "backend/cpu/kernels.h"
#include "engine/logits.h"
#include "support/tinymodel.h"

enum {
    EMBD = TINYMODEL_EMBD,
    VOCAB = TINYMODEL_VOCAB,
    HEADS = 8,
    KV_HEADS = 2,
    HEAD = 32,
    ROWS = 70
};

// Element i of a layer's tensor; a tensor that is not there is 0.
static double at(const mf_gguf *file, const char *name, size_t i) {
    const mf_gguf_tensor *t = mf_gguf_find_tensor(file, name);
    float x = 0;
    if (t) memcpy(&x, t->data + i * sizeof x, sizeof x);
    return x;
}

static const char *named(int layer, const char *name) {
    static char text[4][64];
    static int turn;
    char *out = text[turn++ % 4];
    if (layer >= 0)
        snprintf(out, sizeof text[0], "blk.%d.%s", layer, name);
    else
        snprintf(out, sizeof text[0], "%s", name);
    return out;
}

// y = W x + b
static void project(const mf_gguf *file, int layer, const char *matrix, const double *x, size_t n_in, double *y,
                    size_t n_out) {
    char weight[48], bias[48];
    snprintf(weight, sizeof weight, "%s.weight", matrix);
    snprintf(bias, sizeof bias, "%s.bias", matrix);
    const char *w = named(layer, weight), *b = named(layer, bias);
    if (!mf_gguf_find_tensor(file, w)) w = "token_embd.weight"; // a tied head
    const float *rows = (const float *)(const void *)mf_gguf_find_tensor(file, w)->data;
    for (size_t o = 0; o < n_out; o++) {
        y[o] = at(file, b, o);
        for (size_t i = 0; i < n_in; i++) y[o] += (double)rows[o * n_in + i] * x[i];
    }
}

static void norm(const mf_gguf *file, int layer, const char *name, const double *x, double *y) {
    double sum = 0;
    for (int i = 0; i < EMBD; i++) sum += x[i] * x[i];
    for (int i = 0; i < EMBD; i++) y[i] = x[i] / sqrt(sum / EMBD + 1e-5) * at(file, named(layer, name), (size_t)i);
}

static void turn(double *heads, int n_heads, int position, bool interleaved) {
    for (int h = 0; h < n_heads; h++) {
        for (int i = 0; i < HEAD / 2; i++) {
            double *a = heads + h * HEAD + (interleaved ? 2 * i : i), *b = interleaved ? a + 1 : a + HEAD / 2;
            const double angle = position * pow(10000, -2.0 * i / HEAD), x = *a, y = *b;
            *a = x * cos(angle) - y * sin(angle);
            *b = x * sin(angle) + y * cos(angle);
        }
    }
}

// The attention of one row over the cells before it and its own.
static void attend(const double *q, double (*k)[KV_HEADS * HEAD], double (*v)[KV_HEADS * HEAD], int position, double *out) {
    for (int h = 0; h < HEADS; h++) {
        const int kv = h / (HEADS / KV_HEADS) * HEAD;
        double score[ROWS], most = -1e300, sum = 0;
        for (int c = 0; c <= position; c++) {
            score[c] = 0;
            for (int i = 0; i < HEAD; i++) score[c] += q[h * HEAD + i] * k[c][kv + i] / sqrt(HEAD);
            if (score[c] > most) most = score[c];
        }
        for (int c = 0; c <= position; c++) sum += score[c] = exp(score[c] - most);
        for (int i = 0; i < HEAD; i++) {
            out[h * HEAD + i] = 0;
            for (int c = 0; c <= position; c++) out[h * HEAD + i] += score[c] / sum * v[c][kv + i];
        }
    }
}

static void reference(const mf_gguf *file, bool interleaved, const int32_t *ids, float *logits) {
    static double k[TINYMODEL_LAYERS][ROWS][KV_HEADS * HEAD], v[TINYMODEL_LAYERS][ROWS][KV_HEADS * HEAD];
    for (int r = 0; r < ROWS; r++) {
        double x[EMBD], n[EMBD], q[EMBD], a[EMBD], y[EMBD], gate[EMBD], up[EMBD], out[VOCAB];
        for (int i = 0; i < EMBD; i++) x[i] = at(file, "token_embd.weight", (size_t)(ids[r] * EMBD + i));
        for (int l = 0; l < TINYMODEL_LAYERS; l++) {
            norm(file, l, "attn_norm.weight", x, n);
            project(file, l, "attn_q", n, EMBD, q, EMBD);
            project(file, l, "attn_k", n, EMBD, k[l][r], KV_HEADS * HEAD);
            project(file, l, "attn_v", n, EMBD, v[l][r], KV_HEADS * HEAD);
            turn(q, HEADS, r, interleaved);
            turn(k[l][r], KV_HEADS, r, interleaved);
            attend(q, k[l], v[l], r, a);
            project(file, l, "attn_output", a, EMBD, y, EMBD);
            for (int i = 0; i < EMBD; i++) x[i] += y[i];
            norm(file, l, "ffn_norm.weight", x, n);
            project(file, l, "ffn_gate", n, EMBD, gate, 256);
            project(file, l, "ffn_up", n, EMBD, up, 256);
            for (int i = 0; i < 256; i++) up[i] *= gate[i] / (1 + exp(-gate[i]));
            project(file, l, "ffn_down", up, 256, y, EMBD);
            for (int i = 0; i < EMBD; i++) x[i] += y[i];
        }
        norm(file, -1, "output_norm.weight", x, n);
        project(file, -1, "output", n, EMBD, out, VOCAB);
        for (int i = 0; i < VOCAB; i++) logits[r * VOCAB + i] = (float)out[i];
    }
}

static void check(const char *arch, bool tied) {
    static const mf_type f32 = MF_TYPE_F32;
    const tinymodel m = {.arch = arch, .types = &f32, .n_types = 1, .tied = tied, .biases = true, .seed = 11};
    size_t size;
    uint8_t *bytes = tinymodel_make(&m, &size);
    int32_t ids[ROWS];
    for (int i = 0; i < ROWS; i++) ids[i] = (i * 37 + 5) % VOCAB;
    float *want = calloc((size_t)ROWS * VOCAB, sizeof *want);
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open_memory(bytes, size, &err);
    assert_non_null(want);
    if (!file) fail_msg("%s", err.text);
    reference(file, strcmp(arch, "llama") == 0, ids, want);
    mf_gguf_close(file);
    for (const mf_kernels *const *row = mf_kernels_all(); *row; row++) {
        if (!(*row)->usable(mf_cpu_features_get())) continue;
        fixture f;
        if (!fixture_of(&f, mf_gguf_open_memory(bytes, size, &err), (*row)->name, 2, &err)) fail_msg("%s", err.text);
        float *got = logits_of(&f, ids, ROWS, 128, MF_TYPE_F32, &err);
        if (!got) fail_msg("%s", err.text);
        double worst = 0;
        for (int r = 0; r < ROWS; r++) {
            const double d = logits_distance(got + r * VOCAB, want + r * VOCAB, VOCAB);
            if (!(d < worst)) worst = d;
        }
        print_message("%-6s %-8s %.2e\n", arch, (*row)->name, worst);
        assert_true(worst < 1e-4);
        free(got);
        fixture_close(&f);
    }
    free(want);
    free(bytes);
}

static void llama(void **state) { (void)state, check("llama", false); }
static void llama_tied(void **state) { (void)state, check("llama", true); }
static void qwen2(void **state) { (void)state, check("qwen2", false); }

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(llama), cmocka_unit_test(llama_tied), cmocka_unit_test(qwen2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
