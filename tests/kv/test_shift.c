// The context shift: what is kept keeps its bytes, what moves is turned by the reference rotation, what others hold is not touched.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kv/cells.h"
#include "kv/kv.h"
#include "kv/memory.h"

enum {
    HEAD_DIM = 96, // q8_0 cells mix 32 at a time
    LAYERS = 2,
    HEADS = 2,
    BLOCKS = 8
};

static const double inv_freq[HEAD_DIM / 2] = {1.0,  0.7,  0.5,  0.36, 0.25, 0.18,  0.13,
                                              0.09, 0.06, 0.05, 0.03, 0.02, 0.016, 0.01};

static const mf_type types[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
enum {
    TYPES = sizeof types / sizeof types[0]
};

static mf_kv *open_kv(mf_type type) {
    mf_error err = {0};
    mf_kv_params p = {
        .type = type, .n_layer = LAYERS, .n_head_kv = HEADS, .head_dim = HEAD_DIM, .n_cells = BLOCKS * MF_KV_BLOCK};
    mf_kv *kv = mf_kv_new(&p, &memory, &err);
    if (!kv) fail_msg("%s", err.text);
    return kv;
}

static uint8_t *part_of(const mf_kv *kv, const mf_kv_table *t, int32_t layer, int32_t head, int32_t cell) {
    return mf_kv_part(mf_kv_view_of(kv), layer, t->blocks.data[cell / MF_KV_BLOCK], head);
}

// Any numbers that tell cells, layers, heads and channels apart.
static float value(int32_t layer, int32_t head, int32_t cell, int32_t d) {
    return (float)sin(0.37 * d + 1.7 * cell + 5.1 * head + 11.3 * layer) * (1 + (float)(cell % 5));
}

static void write_cells(const mf_kv *kv, mf_kv_table *t, int32_t first, int32_t n) {
    float x[HEAD_DIM];
    for (int32_t c = first; c < first + n; c++)
        for (int32_t l = 0; l < LAYERS; l++)
            for (int32_t h = 0; h < HEADS; h++) {
                for (int32_t d = 0; d < HEAD_DIM; d++) x[d] = value(l, h, c, d);
                mf_kv_write_k(mf_kv_view_of(kv), part_of(kv, t, l, h, c), c % MF_KV_BLOCK, HEAD_DIM, x);
                for (int32_t d = 0; d < HEAD_DIM; d++) x[d] = value(l, h, c, d + 100);
                mf_kv_write_v(mf_kv_view_of(kv), part_of(kv, t, l, h, c), c % MF_KV_BLOCK, HEAD_DIM, x);
            }
}

// Every cell of a table as attention reads it: [cell][layer][head][K, V][channel].
static float *read_cells(const mf_kv *kv, const mf_kv_table *t) {
    float *all = malloc((size_t)t->n_cells * LAYERS * HEADS * 2 * HEAD_DIM * sizeof *all), *out = all;
    assert_non_null(all);
    for (int32_t c = 0; c < t->n_cells; c++)
        for (int32_t l = 0; l < LAYERS; l++)
            for (int32_t h = 0; h < HEADS; h++, out += 2 * HEAD_DIM) {
                mf_kv_read_k(mf_kv_view_of(kv), part_of(kv, t, l, h, c), c % MF_KV_BLOCK, out);
                mf_kv_read_v(mf_kv_view_of(kv), part_of(kv, t, l, h, c), c % MF_KV_BLOCK, out + HEAD_DIM);
            }
    return all;
}

// The largest error that writing x again brings.
static double tolerance(mf_type type, const float *x) {
    double amax = 0;
    for (int32_t d = 0; d < HEAD_DIM; d++) amax = fmax(amax, fabs((double)x[d]));
    return type == MF_TYPE_F32 ? amax * 1e-6 : type == MF_TYPE_F16 ? amax * 0x1p-11 : amax * (0.502 / 127 + 0.0005);
}

static void check_moved(mf_type type, const mf_rope_params *rope, int32_t n_discard, const float *before,
                        const float *after) {
    double want[HEAD_DIM];
    float k[HEAD_DIM];
    int32_t half = rope->n_dims / 2, rounded = rope->n_dims; // the others keep their bytes
    memcpy(k, before, sizeof k);
    if (type == MF_TYPE_Q8_0) mf_kv_hadamard(k, HEAD_DIM), rounded = (rounded + 31) / 32 * 32;
    for (int32_t d = 0; d < HEAD_DIM; d++) want[d] = (double)k[d];
    for (int32_t i = 0; i < half; i++) {
        int32_t i0 = rope->interleaved ? 2 * i : i, i1 = rope->interleaved ? i0 + 1 : i + half;
        double angle = -n_discard * inv_freq[i];
        want[i0] = (double)k[i0] * cos(angle) - (double)k[i1] * sin(angle);
        want[i1] = (double)k[i1] * cos(angle) + (double)k[i0] * sin(angle);
    }
    for (int32_t d = 0; d < HEAD_DIM; d++) k[d] = (float)want[d];
    if (type == MF_TYPE_Q8_0) mf_kv_hadamard(k, HEAD_DIM);
    for (int32_t d = 0; d < HEAD_DIM; d++) {
        bool same = d < rounded ? fabs((double)after[d] - (double)k[d]) <= tolerance(type, k) : after[d] == before[d];
        if (!same) fail_msg("channel %d of type %d is %g, not %g", d, (int)type, (double)after[d], (double)k[d]);
    }
}

static void shift_and_check(mf_type type, int32_t n_cells, int32_t n_keep, int32_t n_discard, int32_t n_dims,
                            bool interleaved) {
    mf_kv *kv = open_kv(type);
    mf_error err = {0};
    mf_kv_table t = {0};
    mf_rope_params rope = {.n_dims = n_dims, .interleaved = interleaved, .inv_freq = inv_freq, .magnitude = 1.3};
    assert_true(mf_kv_extend(kv, &t, n_cells, &err));
    write_cells(kv, &t, 0, n_cells);
    float *before = read_cells(kv, &t);
    if (!mf_kv_shift(kv, &t, n_keep, n_discard, &rope, &err)) fail_msg("%s", err.text);
    assert_int_equal(t.n_cells, n_cells - n_discard);
    assert_int_equal(t.blocks.len, (t.n_cells + MF_KV_BLOCK - 1) / MF_KV_BLOCK);
    assert_int_equal(mf_kv_stats_get(kv).blocks_used, t.blocks.len);
    assert_int_equal(t.shifted, n_keep + n_discard < n_cells);
    float *after = read_cells(kv, &t);
    const size_t cell = LAYERS * HEADS * 2 * HEAD_DIM;
    assert_memory_equal(before, after, (size_t)n_keep * cell * sizeof *after);
    for (int32_t c = n_keep; c < t.n_cells; c++)
        for (size_t p = 0; p < cell; p += 2 * HEAD_DIM) {
            const float *from = before + (size_t)(c + n_discard) * cell + p, *to = after + (size_t)c * cell + p;
            check_moved(type, &rope, n_discard, from, to);
            assert_memory_equal(from + HEAD_DIM, to + HEAD_DIM, HEAD_DIM * sizeof *to); // V
        }
    free(before), free(after);
    mf_kv_release(kv, &t);
    assert_int_equal(mf_kv_free_blocks(kv), BLOCKS);
    mf_kv_free(kv);
}

static void cells_move(void **state) {
    (void)state;
    static const int32_t cases[][3] = {{300, 0, 128}, {300, 70, 100}, {512, 64, 128}, {512, 10, 128},
                                       {512, 0, 500}, {512, 63, 129}, {130, 1, 64},   {200, 100, 100}};
    for (int t = 0; t < TYPES; t++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            for (int32_t n_dims = 20; n_dims <= HEAD_DIM; n_dims += n_dims == 20 ? 12 : 32)
                shift_and_check(types[t], cases[i][0], cases[i][1], cases[i][2], n_dims, i % 2);
}

static void others_keep_their_cells(void **state) {
    (void)state;
    mf_rope_params rope = {.n_dims = HEAD_DIM, .inv_freq = inv_freq, .magnitude = 1};
    for (int i = 0; i < TYPES; i++) {
        mf_kv *kv = open_kv(types[i]);
        mf_error err = {0};
        mf_kv_table a = {0}, b = {0};
        assert_true(mf_kv_extend(kv, &a, 250, &err));
        write_cells(kv, &a, 0, 250);
        assert_true(mf_kv_share(kv, &a, 250, &b, &err));
        float *before = read_cells(kv, &b);
        assert_true(mf_kv_shift(kv, &a, 70, 64, &rope, &err));
        float *after = read_cells(kv, &b);
        assert_memory_equal(before, after, 250 * LAYERS * HEADS * 2 * HEAD_DIM * sizeof *after);
        assert_int_equal(a.blocks.data[0], b.blocks.data[0]); // the head stays shared
        assert_int_equal(mf_kv_stats_get(kv).blocks_shared, 1);
        assert_int_equal(mf_kv_stats_get(kv).copies, 0);
        free(before), free(after);
        mf_kv_release(kv, &a), mf_kv_release(kv, &b);
        mf_kv_free(kv);
    }
}

static void moved_blocks_are_not_indexed(void **state) {
    (void)state;
    mf_rope_params rope = {.n_dims = HEAD_DIM, .inv_freq = inv_freq, .magnitude = 1};
    mf_kv *kv = open_kv(MF_TYPE_F16);
    mf_error err = {0};
    mf_kv_table a = {0}, b = {0};
    int32_t tokens[512];
    for (int32_t i = 0; i < 512; i++) tokens[i] = i;
    assert_true(mf_kv_extend(kv, &a, 400, &err));
    mf_kv_index(kv, &a, tokens);
    assert_true(mf_kv_shift(kv, &a, 100, 130, &rope, &err));
    for (int32_t i = 100; i < 270; i++) tokens[i] = i + 130;
    mf_kv_index(kv, &a, tokens);
    assert_int_equal(a.n_indexed, 1);
    assert_true(mf_kv_match(kv, tokens, 270, &b, &err));
    assert_int_equal(b.n_cells, 64); // the head alone
    mf_kv_release(kv, &b);
    assert_true(mf_kv_share(kv, &a, 200, &b, &err)); // what is shared of it stays unindexed
    mf_kv_index(kv, &b, tokens);
    assert_int_equal(b.n_indexed, 1);
    mf_kv_release(kv, &b);
    mf_kv_truncate(kv, &a, 100); // what was moved is gone: the table is as good as new
    assert_false(a.shifted);
    assert_true(mf_kv_extend(kv, &a, 200, &err));
    mf_kv_index(kv, &a, tokens);
    assert_int_equal(a.n_indexed, 3);
    mf_kv_release(kv, &a);
    mf_kv_free(kv);
}

// Of two shifts the one that begins first says which cells are as they were.
static void a_second_shift_may_begin_before_the_first(void **state) {
    (void)state;
    mf_rope_params rope = {.n_dims = HEAD_DIM, .inv_freq = inv_freq, .magnitude = 1};
    static const int32_t keep[][3] = {{150, 70, 70}, {70, 150, 70}};
    for (int i = 0; i < 2; i++) {
        mf_kv *kv = open_kv(MF_TYPE_F16);
        mf_error err = {0};
        mf_kv_table a = {0};
        assert_true(mf_kv_extend(kv, &a, 330, &err));
        assert_true(mf_kv_shift(kv, &a, keep[i][0], 20, &rope, &err) && mf_kv_shift(kv, &a, keep[i][1], 20, &rope, &err));
        assert_true(a.shifted);
        assert_int_equal(a.n_pure, keep[i][2]);
        mf_kv_release(kv, &a);
        mf_kv_free(kv);
    }
}

static void a_shift_is_whole_or_refused(void **state) {
    (void)state;
    mf_rope_params rope = {.n_dims = HEAD_DIM, .inv_freq = inv_freq, .magnitude = 1};
    mf_kv *kv = open_kv(MF_TYPE_F16);
    mf_error err = {0};
    mf_kv_table a = {0}, b = {0};
    assert_true(mf_kv_extend(kv, &a, BLOCKS * MF_KV_BLOCK, &err));
    static const int32_t ranges[][2] = {{-1, 5}, {0, 0}, {0, -3}, {0, 513}, {500, 13}, {INT32_MAX, 1}, {1, INT32_MAX}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        assert_false(mf_kv_shift(kv, &a, ranges[i][0], ranges[i][1], &rope, &err));
        assert_int_equal(err.code, MF_ERR_ARGUMENT);
    }
    assert_false(mf_kv_shift(kv, &a, 10, 40, &rope, &err)); // not a block comes free, and none is
    assert_int_equal(err.code, MF_ERR_LIMIT);
    assert_int_equal(a.n_cells, 512);
    assert_false(a.shifted);
    assert_true(mf_kv_share(kv, &a, 512, &b, &err));
    assert_false(mf_kv_shift(kv, &a, 0, 256, &rope, &err));      // what is dropped stays with the other
    assert_true(mf_kv_shift(kv, &a, 512 - 64, 64, &rope, &err)); // nothing moves: a cut
    assert_int_equal(a.blocks.len, 7);
    mf_kv_release(kv, &b);
    mf_kv_release(kv, &a);
    assert_int_equal(mf_kv_free_blocks(kv), BLOCKS);
    mf_kv_free(kv);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(cells_move), cmocka_unit_test(others_keep_their_cells),
                                       cmocka_unit_test(moved_blocks_are_not_indexed),
                                       cmocka_unit_test(a_second_shift_may_begin_before_the_first),
                                       cmocka_unit_test(a_shift_is_whole_or_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
