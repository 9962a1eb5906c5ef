// The paged store: blocks, tables, references, copy on write, refusals.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kv/kv.h"
#include "kv/memory.h"

static const mf_kv_params small = {MF_TYPE_F16, 2, 3, 16, 10 * MF_KV_BLOCK};

static mf_kv *open_small(void) {
    mf_error err = {0};
    mf_kv *kv = mf_kv_new(&small, &memory, &err);
    if (!kv) fail_msg("%s", err.text);
    return kv;
}

static uint8_t *block_at(const mf_kv *kv, int32_t layer, int32_t block) {
    const mf_kv_view *v = mf_kv_view_of(kv);
    return v->base + (size_t)layer * v->layer_stride + (size_t)block * v->block_stride;
}

static void layout(void **state) {
    (void)state;
    size_t bytes;
    mf_error err = {0};
    assert_true(mf_kv_bytes(&small, &bytes, &err));
    assert_int_equal(bytes, 10 * MF_KV_BLOCK * 2 * 3 * 16 * 2 * 2); // cells x layers x heads x channels x (K, V) x 2 bytes
    mf_kv *kv = open_small();
    const mf_kv_view *v = mf_kv_view_of(kv);
    assert_int_equal(v->v_offset, MF_KV_BLOCK * 16 * 2);
    assert_int_equal(v->head_stride, 2 * v->v_offset);
    assert_int_equal(mf_kv_free_blocks(kv), 10);
    mf_kv_free(kv);
    mf_kv_params bytes8 = small;
    bytes8.type = MF_TYPE_Q8_0, bytes8.head_dim = 64;
    assert_true(mf_kv_bytes(&bytes8, &bytes, &err));
    assert_int_equal(bytes, 10 * MF_KV_BLOCK * 2 * 3 * 2 * (64 + 2 * 2)); // a byte a channel, a half for each 32
}

static void refusals(void **state) {
    (void)state;
    mf_error err = {0};
    mf_kv_params p = small;
    size_t bytes;
    p.type = MF_TYPE_Q4_0;
    assert_null(mf_kv_new(&p, &memory, &err));
    assert_non_null(strstr(err.text, "Q4_0"));
    p = small, p.type = MF_TYPE_Q8_0, p.head_dim = 80;
    assert_null(mf_kv_new(&p, &memory, &err));
    assert_non_null(strstr(err.text, "multiple of 32 channels, not of 80"));
    p = small, p.n_cells = 0;
    assert_false(mf_kv_bytes(&p, &bytes, &err));
    assert_int_equal(err.code, MF_ERR_ARGUMENT);
    p = small, p.n_cells = INT32_MAX, p.n_layer = INT32_MAX, p.head_dim = INT32_MAX;
    assert_false(mf_kv_bytes(&p, &bytes, &err));
    assert_int_equal(err.code, MF_ERR_LIMIT);
}

static void grow_and_shrink(void **state) {
    (void)state;
    mf_kv *kv = open_small();
    mf_error err = {0};
    mf_kv_table t = {0};
    assert_true(mf_kv_extend(kv, &t, 1, &err));
    assert_int_equal(t.blocks.len, 1);
    assert_true(mf_kv_extend(kv, &t, MF_KV_BLOCK, &err));
    assert_int_equal(t.blocks.len, 1);
    assert_true(mf_kv_extend(kv, &t, MF_KV_BLOCK + 1, &err));
    assert_int_equal(t.blocks.len, 2);
    assert_int_equal(mf_kv_stats_get(kv).blocks_used, 2);
    mf_kv_truncate(kv, &t, MF_KV_BLOCK);
    assert_int_equal(t.blocks.len, 1);
    assert_int_equal(t.n_cells, MF_KV_BLOCK);
    mf_kv_release(kv, &t);
    assert_int_equal(mf_kv_stats_get(kv).blocks_used, 0);
    mf_kv_free(kv);
}

static void full_is_all_or_nothing(void **state) {
    (void)state;
    mf_kv *kv = open_small();
    mf_error err = {0};
    mf_kv_table a = {0}, b = {0};
    assert_true(mf_kv_extend(kv, &a, 8 * MF_KV_BLOCK, &err));
    assert_false(mf_kv_extend(kv, &b, 3 * MF_KV_BLOCK, &err));
    assert_int_equal(err.code, MF_ERR_LIMIT);
    assert_non_null(strstr(err.text, "3 more blocks"));
    assert_int_equal(b.blocks.len, 0);
    assert_true(mf_kv_extend(kv, &b, 2 * MF_KV_BLOCK, &err));
    mf_kv_release(kv, &a);
    mf_kv_release(kv, &b);
    assert_int_equal(mf_kv_free_blocks(kv), 10);
    mf_kv_free(kv);
}

static void shared_blocks_are_copied_before_a_write(void **state) {
    (void)state;
    mf_kv *kv = open_small();
    mf_error err = {0};
    mf_kv_table a = {0}, b = {0};
    assert_true(mf_kv_extend(kv, &a, 100, &err));
    size_t stride = mf_kv_view_of(kv)->block_stride;
    for (int32_t l = 0; l < 2; l++)
        for (size_t i = 0; i < 2; i++) memset(block_at(kv, l, a.blocks.data[i]), 10 * l + (int)i + 1, stride);
    assert_true(mf_kv_share(kv, &a, 100, &b, &err));
    assert_int_equal(mf_kv_stats_get(kv).blocks_shared, 2);
    assert_int_equal(mf_kv_stats_get(kv).blocks_used, 2);
    assert_int_equal(mf_kv_blocks_needed(kv, &b, 100, 101), 1);
    assert_true(mf_kv_extend(kv, &b, 101, &err)); // writes behind cell 99: the second block becomes its own
    assert_int_equal(b.blocks.data[0], a.blocks.data[0]);
    assert_int_not_equal(b.blocks.data[1], a.blocks.data[1]);
    for (int32_t l = 0; l < 2; l++)
        assert_memory_equal(block_at(kv, l, a.blocks.data[1]), block_at(kv, l, b.blocks.data[1]), stride);
    assert_int_equal(mf_kv_stats_get(kv).copies, 1);
    assert_int_equal(mf_kv_stats_get(kv).blocks_shared, 1);
    mf_kv_release(kv, &a);
    assert_int_equal(mf_kv_stats_get(kv).blocks_used, 2);
    assert_int_equal(mf_kv_stats_get(kv).blocks_shared, 0);
    mf_kv_release(kv, &b);
    mf_kv_free(kv);
}

// Room beside other tables: blocks that several hold count once, and a block that is written must be one's own.
static void room_beside_others(void **state) {
    (void)state;
    mf_kv *kv = open_small();
    mf_error err = {0};
    mf_kv_table a = {0}, b = {0}, c = {0}, own = {0};
    const mf_kv_table *others[] = {&a, &b, &c, &own};
    assert_true(mf_kv_extend(kv, &a, 4 * MF_KV_BLOCK, &err));
    assert_true(mf_kv_share(kv, &a, 4 * MF_KV_BLOCK, &b, &err)); // the same four
    assert_true(mf_kv_extend(kv, &c, 2 * MF_KV_BLOCK, &err));
    assert_true(mf_kv_fits_beside(kv, &own, 4 * MF_KV_BLOCK, 0, others, 4));
    assert_false(mf_kv_fits_beside(kv, &own, 4 * MF_KV_BLOCK + 1, 0, others, 4));
    assert_false(mf_kv_fits_beside(kv, &own, 4 * MF_KV_BLOCK, 1, others, 4));
    assert_true(mf_kv_fits_beside(kv, &own, 3 * MF_KV_BLOCK, 1, others, 4));
    assert_true(mf_kv_fits_beside(kv, &own, 6 * MF_KV_BLOCK, 0, others, 2)); // without c
    assert_true(mf_kv_share(kv, &a, 100, &own, &err));
    assert_true(mf_kv_fits_beside(kv, &own, 5 * MF_KV_BLOCK, 0, others, 3));
    assert_false(mf_kv_fits_beside(kv, &own, 5 * MF_KV_BLOCK + 1, 0, others, 3)); // its second block is to be copied
    assert_true(mf_kv_fits_beside(kv, &own, 8 * MF_KV_BLOCK, 0, others + 2, 1));  // it has it alone then
    assert_false(mf_kv_fits_beside(kv, &own, 8 * MF_KV_BLOCK + 1, 0, others + 2, 1));
    mf_kv_release(kv, &a), mf_kv_release(kv, &b), mf_kv_release(kv, &c), mf_kv_release(kv, &own);
    mf_kv_free(kv);
}

static void nothing_fragments(void **state) {
    (void)state;
    mf_kv *kv = open_small();
    mf_error err = {0};
    mf_kv_table t[10] = {0};
    for (int i = 0; i < 10; i++) assert_true(mf_kv_extend(kv, &t[i], MF_KV_BLOCK, &err));
    for (int i = 0; i < 10; i += 2) mf_kv_release(kv, &t[i]);
    mf_kv_table wide = {0};
    assert_true(mf_kv_extend(kv, &wide, 5 * MF_KV_BLOCK, &err)); // any free block serves
    mf_kv_release(kv, &wide);
    for (int i = 1; i < 10; i += 2) mf_kv_release(kv, &t[i]);
    mf_kv_free(kv);
}

static void put(int32_t *tokens, int32_t first, int32_t n) {
    for (int32_t i = 0; i < n; i++) tokens[i] = first + i;
}

// Two tables that evaluated the same tokens side by side: the second one's blocks are not those of the index. Cut back and filled with
// something else, what follows stands behind the first block, not in its place.
static void equal_blocks_keep_their_place(void **state) {
    (void)state;
    mf_kv *kv = open_small();
    mf_error err = {0};
    mf_kv_table a = {0}, b = {0}, c = {0};
    int32_t tokens[3 * MF_KV_BLOCK];
    put(tokens, 0, 3 * MF_KV_BLOCK);
    assert_true(mf_kv_extend(kv, &a, 2 * MF_KV_BLOCK, &err) && mf_kv_extend(kv, &b, 2 * MF_KV_BLOCK, &err));
    mf_kv_index(kv, &a, tokens);
    mf_kv_index(kv, &b, tokens);
    mf_kv_truncate(kv, &b, MF_KV_BLOCK);
    put(tokens + MF_KV_BLOCK, 5000, MF_KV_BLOCK);
    assert_true(mf_kv_extend(kv, &b, 2 * MF_KV_BLOCK, &err));
    mf_kv_index(kv, &b, tokens);
    assert_true(mf_kv_match(kv, tokens + MF_KV_BLOCK, MF_KV_BLOCK, &c, &err));
    assert_int_equal(c.n_cells, 0); // nothing begins with 5000
    assert_true(mf_kv_match(kv, tokens, 2 * MF_KV_BLOCK, &c, &err));
    assert_int_equal(c.n_cells, 2 * MF_KV_BLOCK);
    assert_int_equal(c.blocks.data[1], b.blocks.data[1]);
    mf_kv_release(kv, &a), mf_kv_release(kv, &b), mf_kv_release(kv, &c);
    mf_kv_free(kv);
}

// Of blocks that nobody holds, those go first that were used least recently.
static void the_least_recently_used_goes_first(void **state) {
    (void)state;
    mf_kv *kv = open_small();
    mf_error err = {0};
    int32_t tokens[3][MF_KV_BLOCK];
    mf_kv_table t = {0}, wide = {0};
    for (int i = 0; i < 3; i++) {
        put(tokens[i], 1000 * i, MF_KV_BLOCK);
        assert_true(mf_kv_extend(kv, &t, MF_KV_BLOCK, &err));
        mf_kv_index(kv, &t, tokens[i]);
        mf_kv_truncate(kv, &t, 0);
    }
    assert_true(mf_kv_match(kv, tokens[0], MF_KV_BLOCK, &t, &err)); // used again
    mf_kv_truncate(kv, &t, 0);
    assert_true(mf_kv_extend(kv, &wide, 9 * MF_KV_BLOCK, &err)); // two of the three must go
    static const int32_t left[] = {MF_KV_BLOCK, 0, 0};
    for (int i = 2; i >= 0; i--) {
        assert_true(mf_kv_match(kv, tokens[i], MF_KV_BLOCK, &t, &err));
        assert_int_equal(t.n_cells, left[i]);
        mf_kv_truncate(kv, &t, 0);
    }
    mf_kv_release(kv, &t), mf_kv_release(kv, &wide);
    mf_kv_free(kv);
}

// Without sharing, what is known is copied; without room for copies it is not taken.
static void copies_instead_of_references(void **state) {
    (void)state;
    mf_kv_params p = small;
    mf_error err = {0};
    p.copies = true;
    mf_kv *kv = mf_kv_new(&p, &memory, &err);
    assert_non_null(kv);
    mf_kv_table a = {0}, b = {0}, c = {0};
    int32_t tokens[4 * MF_KV_BLOCK];
    put(tokens, 0, 4 * MF_KV_BLOCK);
    assert_true(mf_kv_extend(kv, &a, 4 * MF_KV_BLOCK, &err));
    size_t stride = mf_kv_view_of(kv)->block_stride;
    for (int32_t l = 0; l < 2; l++)
        for (int32_t i = 0; i < 4; i++) memset(block_at(kv, l, a.blocks.data[i]), 10 * l + i + 1, stride);
    mf_kv_index(kv, &a, tokens);
    assert_true(mf_kv_match(kv, tokens, 4 * MF_KV_BLOCK, &b, &err));
    assert_int_equal(b.n_cells, 4 * MF_KV_BLOCK);
    for (int32_t i = 0; i < 4; i++) {
        assert_int_not_equal(a.blocks.data[i], b.blocks.data[i]);
        assert_memory_equal(block_at(kv, 1, a.blocks.data[i]), block_at(kv, 1, b.blocks.data[i]), stride);
    }
    assert_int_equal(mf_kv_stats_get(kv).blocks_shared, 0);
    assert_int_equal(mf_kv_stats_get(kv).copies, 0); // none before a write
    assert_true(mf_kv_match(kv, tokens, 4 * MF_KV_BLOCK, &c, &err));
    assert_int_equal(c.n_cells, 2 * MF_KV_BLOCK); // two blocks are left
    mf_kv_release(kv, &c);
    assert_false(mf_kv_share(kv, &a, 3 * MF_KV_BLOCK, &c, &err));
    assert_int_equal(err.code, MF_ERR_LIMIT);
    assert_int_equal(mf_kv_free_blocks(kv), 2);
    mf_kv_release(kv, &a), mf_kv_release(kv, &b);
    assert_int_equal(mf_kv_free_blocks(kv), 10);
    mf_kv_free(kv);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),
        cmocka_unit_test(refusals),
        cmocka_unit_test(grow_and_shrink),
        cmocka_unit_test(full_is_all_or_nothing),
        cmocka_unit_test(shared_blocks_are_copied_before_a_write),
        cmocka_unit_test(room_beside_others),
        cmocka_unit_test(nothing_fragments),
        cmocka_unit_test(the_least_recently_used_goes_first),
        cmocka_unit_test(equal_blocks_keep_their_place),
        cmocka_unit_test(copies_instead_of_references),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
