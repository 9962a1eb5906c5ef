// The reference attention against softmax(q k^T * scale) v computed the plain way in double precision; its stores, merge and
// finish on the way.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels.h"
#include "base/half.h"
#include "base/real.h"
#include "kv/cells.h"

typedef struct shape {
    mf_type type;
    int32_t head_dim, n_group, n_rows, last, window;
    float softcap;
} shape;

enum {
    HEADS = 2,
    KV_HEAD = 1,
    LAYERS = 2,
    LAYER = 1,
    MAX_BLOCKS = 32
};

typedef struct scene {
    mf_kv_view kv;
    int32_t table[MAX_BLOCKS], cell[MF_ATTENTION_ROWS];
    float *q, *k, *v; // k, v: [cell][HEADS][head_dim], as the cache holds them, but K as it was before it was mixed
    uint64_t random;
} scene;

static const mf_kernels *scalar(void) {
    mf_error err;
    const mf_kernels *k = mf_kernels_choose("scalar", &err);
    assert_non_null(k);
    return k;
}

// [-1, 1), by a 64-bit linear congruence (Knuth's MMIX constants).
static float draw(scene *s) {
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (float)(s->random >> 40) * 0x1p-23f - 1.0f;
}

static float *draw_floats(scene *s, size_t n, float size) {
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) x[i] = size * draw(s);
    return x;
}

// The Walsh-Hadamard transform of n channels, a power of two, but for the factor: that of either half, then their sums and differences.
static void mix(float *x, int32_t n) {
    if (n == 1) return;
    mix(x, n / 2), mix(x + n / 2, n / 2);
    for (int32_t i = 0; i < n / 2; i++) {
        float low = x[i], high = x[i + n / 2];
        x[i] = low + high, x[i + n / 2] = low - high;
    }
}

static void mix_head(const shape *sh, float *x) {
    int32_t n = sh->head_dim & -sh->head_dim;
    for (int32_t d = 0; d < sh->head_dim && sh->type == MF_TYPE_Q8_0; d++) {
        if (d % n == 0) mix(x + d, n);
        x[d] = x[d] * (1 / sqrtf((float)n));
    }
}

// What the cache gives back of one head's channels: q8_0 by this test's own arithmetic, in double.
static void round_cell(const shape *sh, float *x) {
    for (int32_t d = 0; d < sh->head_dim && sh->type == MF_TYPE_F16; d++) x[d] = mf_f16_to_f32(mf_f32_to_f16(x[d]));
    for (int32_t g = 0; g < sh->head_dim && sh->type == MF_TYPE_Q8_0; g += 32) {
        float amax = 0;
        for (int32_t d = g; d < g + 32; d++) amax = fabsf(x[d]) > amax ? fabsf(x[d]) : amax;
        double scale = (double)mf_f16_to_f32(mf_f32_to_f16(amax / 127));
        for (int32_t d = g; d < g + 32; d++) x[d] = (float)(scale * nearbyint((double)x[d] / scale));
    }
}

static void store_cells(scene *s, const shape *sh) {
    size_t n = HEADS * (size_t)sh->head_dim;
    for (int32_t c = 0; c <= sh->last; c++) {
        float *k = s->k + (size_t)c * n, *v = s->v + (size_t)c * n;
        scalar()->kv_store(&s->kv, LAYER, s->table[c / MF_KV_BLOCK], c % MF_KV_BLOCK, k, v);
        for (size_t i = 0; i < n; i += (size_t)sh->head_dim) {
            mix_head(sh, k + i), round_cell(sh, k + i), mix_head(sh, k + i);
            round_cell(sh, v + i);
        }
    }
}

static void make_scene(scene *s, const shape *sh) {
    *s = (scene){.random = (uint64_t)sh->last * 1000 + (uint64_t)sh->head_dim};
    int32_t blocks = sh->last / MF_KV_BLOCK + 1;
    size_t part = mf_kv_half_bytes(sh->type, sh->head_dim);
    s->kv = (mf_kv_view){.type = sh->type,
                         .n_layer = LAYERS,
                         .n_head_kv = HEADS,
                         .head_dim = sh->head_dim,
                         .layer_stride = HEADS * 2 * part,
                         .block_stride = LAYERS * HEADS * 2 * part,
                         .head_stride = 2 * part,
                         .v_offset = part};
    assert_true(blocks <= MAX_BLOCKS);
    s->kv.base = malloc((size_t)blocks * s->kv.block_stride);
    assert_non_null(s->kv.base);
    memset(s->kv.base, 0xff, (size_t)blocks * s->kv.block_stride); // NaN wherever no cell is stored
    for (int32_t i = 0; i < blocks; i++) s->table[i] = blocks - 1 - i;
    for (int32_t r = 0; r < sh->n_rows; r++) s->cell[r] = sh->last - (sh->n_rows - 1 - r);
    size_t n = (size_t)(sh->last + 1) * HEADS * (size_t)sh->head_dim;
    s->k = draw_floats(s, n, 2.0f);
    s->v = draw_floats(s, n, 1.0f);
    s->q = draw_floats(s, (size_t)(sh->n_rows * sh->n_group) * (size_t)sh->head_dim, 2.0f);
    store_cells(s, sh);
}

static void free_scene(scene *s) {
    free(s->kv.base);
    free(s->q);
    free(s->k);
    free(s->v);
}

static double larger(double a, double b) { return a > b ? a : b; }

// out[d] of one query vector that sees the cells first … last.
static void naive(const scene *s, const shape *sh, const float *q, int32_t first, int32_t last, double *out) {
    size_t head_dim = (size_t)sh->head_dim;
    double *score = malloc(((size_t)last + 1) * sizeof *score), largest = -INFINITY, sum = 0;
    assert_non_null(score);
    for (int32_t c = first; c <= last; c++) {
        const float *k = s->k + ((size_t)c * HEADS + KV_HEAD) * head_dim;
        score[c] = 0;
        for (size_t d = 0; d < head_dim; d++) score[c] += (double)q[d] * k[d];
        score[c] /= sqrt((double)head_dim);
        if (sh->softcap > 0) score[c] = sh->softcap * (1 - 2 / (mf_exp64(2 * score[c] / sh->softcap) + 1));
        largest = larger(largest, score[c]);
    }
    for (size_t d = 0; d < head_dim; d++) out[d] = 0;
    for (int32_t c = first; c <= last; c++) {
        const float *v = s->v + ((size_t)c * HEADS + KV_HEAD) * head_dim;
        double p = mf_exp64(score[c] - largest);
        sum += p;
        for (size_t d = 0; d < head_dim; d++) out[d] += p * v[d];
    }
    for (size_t d = 0; d < head_dim; d++) out[d] /= sum;
    free(score);
}

static void compare(const scene *s, const shape *sh, const float *states) {
    size_t head_dim = (size_t)sh->head_dim;
    double *want = malloc(head_dim * sizeof *want);
    float *out = malloc(head_dim * sizeof *out);
    assert_true(want && out);
    for (int32_t i = 0; i < sh->n_rows * sh->n_group; i++) {
        int32_t last = s->cell[i / sh->n_group], first = sh->window && last >= sh->window ? last - sh->window + 1 : 0;
        naive(s, sh, s->q + (size_t)i * head_dim, first, last, want);
        mf_attention_finish(states + (size_t)i * (head_dim + 2), out, sh->head_dim);
        double error = 0, size = 0;
        for (size_t d = 0; d < head_dim; d++) {
            error = larger(error, fabs(out[d] - want[d]));
            size = larger(size, fabs(want[d]));
            assert_true(isfinite(out[d]));
        }
        if (!(error < 1e-5 * size)) fail_msg("head_dim %d, cell %d: error %g of %g", sh->head_dim, last, error, size);
    }
    free(want);
    free(out);
}

static void check_shape(const shape *sh) {
    scene s;
    make_scene(&s, sh);
    size_t head_dim = (size_t)sh->head_dim, floats = (size_t)(sh->n_rows * sh->n_group) * (head_dim + 2);
    mf_attention_piece p = {
        .kv = &s.kv,
        .table = s.table,
        .layer = LAYER,
        .kv_head = KV_HEAD,
        .n_rows = sh->n_rows,
        .n_group = sh->n_group,
        .q = s.q,
        .q_stride = (size_t)sh->n_group * head_dim,
        .cell = s.cell,
        .split1 = sh->last / MF_ATTENTION_SPLIT + 1,
        .scale = 1.0f / sqrtf((float)head_dim),
        .softcap = sh->softcap,
        .window = sh->window,
        .state = malloc(floats * sizeof(float)),
        .scratch = malloc(mf_attention_scratch_floats(sh->n_group, sh->head_dim) * sizeof(float)),
    };
    assert_true(p.state && p.scratch);
    scalar()->attention(&p);
    compare(&s, sh, p.state);
    free(p.state);
    free(p.scratch);
    free_scene(&s);
}

static void test_plain(void **state) {
    (void)state;
    static const int32_t lasts[] = {0, 1, 15, 16, 63, 64, 255, 256, 300, 1100};
    static const int32_t dims[] = {2, 16, 64, 80, 96, 128};
    for (size_t i = 0; i < sizeof lasts / sizeof *lasts; i++)
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
            shape f32 = {.type = MF_TYPE_F32, .head_dim = dims[d], .n_group = 2, .n_rows = 1, .last = lasts[i]};
            shape f16 = f32;
            f16.type = MF_TYPE_F16;
            check_shape(&f32);
            check_shape(&f16);
            f16.type = MF_TYPE_Q8_0;
            if (mf_kv_width_fits(MF_TYPE_Q8_0, dims[d])) check_shape(&f16);
        }
}

static void test_causal_rows(void **state) {
    (void)state;
    shape sh = {.type = MF_TYPE_F16, .head_dim = 64, .n_group = 3, .n_rows = MF_ATTENTION_ROWS, .last = 259};
    check_shape(&sh);
}

static void test_window(void **state) {
    (void)state;
    static const int32_t windows[] = {1, 5, 64, 256, 300, 700, 5000};
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        shape sh = {.type = MF_TYPE_F16, .head_dim = 32, .n_group = 1, .n_rows = 4, .last = 770, .window = windows[i]};
        check_shape(&sh);
    }
}

static void test_softcap(void **state) {
    (void)state;
    static const float caps[] = {0.5f, 5.0f, 50.0f};
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
        shape sh = {.type = MF_TYPE_F32, .head_dim = 64, .n_group = 1, .n_rows = 2, .last = 400, .softcap = caps[i]};
        check_shape(&sh);
    }
}

static void test_merge(void **state) {
    (void)state;
    // An empty state on either side leaves the other as it is.
    float empty[] = {7, 0, 7, 7}, some[] = {1.5f, 2, 3, -4}, a[4];
    memcpy(a, some, sizeof a);
    scalar()->attention_merge(a, empty, 1, 2);
    assert_memory_equal(a, some, sizeof a);
    memcpy(a, empty, sizeof a);
    scalar()->attention_merge(a, some, 1, 2);
    assert_memory_equal(a, some, sizeof a);
    // M' = 2.5, the weights exp(-1) and 1.
    float later[] = {2.5f, 1, 10, 20};
    scalar()->attention_merge(a, later, 1, 2);
    assert_float_equal(a[0], 2.5f, 0);
    assert_float_equal(a[1], 2 * mf_exp64(-1.0) + 1, 1e-6);
    assert_float_equal(a[2], 3 * mf_exp64(-1.0) + 10, 1e-5);
    assert_float_equal(a[3], -4 * mf_exp64(-1.0) + 20, 1e-5);
    float out[2];
    mf_attention_finish(a, out, 2);
    assert_float_equal(out[0], a[2] / a[1], 1e-5);
    assert_float_equal(out[1], a[3] / a[1], 1e-5);
}

// The corners of q8_0 cells: nothing, scales too small for a half, values that have no scale.
static void test_quantize(void **state) {
    (void)state;
    float x[32] = {0};
    int8_t q[32];
    assert_int_equal(mf_kv_quantize(x, q), 0);
    x[3] = -254, x[4] = 1, x[5] = 3, x[6] = 254;
    assert_int_equal(mf_kv_quantize(x, q), mf_f32_to_f16(2));
    assert_int_equal(q[3], -127);
    assert_int_equal(q[4], 0); // ties to even
    assert_int_equal(q[5], 2);
    assert_int_equal(q[6], 127);
    x[3] = x[6] = 0, x[4] = 1e-6F, x[5] = 1e-7F;
    assert_int_equal(mf_kv_quantize(x, q), 0); // the scale rounds to zero
    assert_int_equal(q[4], 0);
    x[4] = 1.3e-5F; // a subnormal scale that was rounded down: bytes end at 127
    assert_int_equal(mf_kv_quantize(x, q), 2);
    assert_int_equal(q[4], 109);
    x[4] = 1.1e-5F;
    assert_int_equal(mf_kv_quantize(x, q), 1);
    assert_int_equal(q[4], 127);
    const float none[] = {NAN, INFINITY, -INFINITY, 1e7F};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        x[9] = none[i];
        assert_int_equal(mf_kv_quantize(x, q), 0x7e00);
        assert_int_equal(q[4], 0);
    }
}

// Channel i of the transform of channel j alone: 1 / sqrt(n), less than nothing where i and j have an odd number of bits in common.
static void test_hadamard(void **state) {
    (void)state;
    static const int32_t dims[][2] = {{32, 32}, {64, 64}, {96, 32}, {128, 128}, {192, 64}, {256, 256}, {512, 256}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        int32_t head_dim = dims[i][0], n = dims[i][1];
        for (int32_t j = 0; j < head_dim; j++) {
            float x[512] = {0};
            x[j] = 1;
            mf_kv_hadamard(x, head_dim);
            for (int32_t d = 0; d < head_dim; d++) {
                double want = d / n != j / n ? 0 : (__builtin_parity((unsigned)(d % n & j % n)) ? -1 : 1) / sqrt(n);
                assert_float_equal(x[d], want, 1e-7);
            }
            mf_kv_hadamard(x, head_dim);
            for (int32_t d = 0; d < head_dim; d++) assert_float_equal(x[d], d == j, 1e-6);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),    cmocka_unit_test(test_causal_rows), cmocka_unit_test(test_window),
        cmocka_unit_test(test_softcap),  cmocka_unit_test(test_merge),       cmocka_unit_test(test_quantize),
        cmocka_unit_test(test_hadamard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
