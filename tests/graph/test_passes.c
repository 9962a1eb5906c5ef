// The builder's checks and each pass, on graphs made by hand, over a device that runs nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"

static bool supports_all(const mf_device *device, mf_op op, const mf_op_types *types) {
    (void)device;
    (void)op;
    return !types->has_weight || types->weight != MF_TYPE_Q2_K;
}

static size_t row_bytes(const mf_device *device, mf_format format, int64_t n) {
    (void)device;
    return format == MF_FORMAT_F32 ? (size_t)n * 4 : (size_t)n * 2;
}

static const mf_device_class paper_class = {.name = "paper", .supports = supports_all, .row_bytes = row_bytes};
static mf_device paper = {&paper_class};
static const mf_device_list devices = {{&paper}, 1};

static mf_weight matrix(const char *name, mf_type type, int64_t in, int64_t out) {
    return (mf_weight){.name = name, .type = type, .n_in = in, .n_out = out};
}

static int count(const mf_graph *g, mf_op op) {
    int n = 0;
    for (size_t i = 0; i < g->nodes.len; i++) n += g->nodes.data[i].op == op;
    return n;
}

// A layer in small: norm, q and k, rope, store, attention, projection with a residual, gated feed-forward.
static mf_graph layer(mf_weight w[8]) {
    static const double freq[8] = {1, 0.5, 0.25, 0.125, 1, 1, 1, 1};
    w[0] = matrix("embd", MF_TYPE_Q8_0, 64, 100), w[1] = matrix("norm", MF_TYPE_F32, 64, 1),
    w[2] = matrix("q", MF_TYPE_Q4_0, 64, 64);
    w[3] = matrix("kv", MF_TYPE_Q4_0, 64, 32), w[4] = matrix("bias", MF_TYPE_F32, 32, 1),
    w[5] = matrix("out", MF_TYPE_Q8_0, 64, 64);
    w[6] = matrix("gate", MF_TYPE_Q4_0, 64, 128), w[7] = matrix("down", MF_TYPE_F16, 128, 64);
    mf_rope_params rope = {.n_dims = 16, .inv_freq = freq, .magnitude = 1};
    mf_attention_params attention = {.n_head = 4, .n_head_kv = 2, .head_dim = 16, .scale = 0.25F};
    mf_graph g = {.layer = -1, .output = -1};
    mf_ref table = mf_graph_rope_table(&g, &rope, "table"), x = mf_graph_get_rows(&g, &w[0], "x");
    g.layer = 0;
    mf_ref n = mf_graph_rms_norm(&g, x, &w[1], 1e-5F, "n");
    mf_ref q = mf_graph_heads(&g, mf_graph_matmul(&g, &w[2], n, "q"), 16, "q_heads");
    mf_ref k = mf_graph_heads(&g, mf_graph_add_bias(&g, mf_graph_matmul(&g, &w[3], n, "k"), &w[4], "k"), 16, "k_heads");
    mf_ref v = mf_graph_heads(&g, mf_graph_matmul(&g, &w[3], n, "v"), 16, "v_heads");
    mf_ref stored = mf_graph_kv_store(&g, mf_graph_rope(&g, k, table, &rope, "k_rope"), v, "kv");
    mf_ref a = mf_graph_attention(&g, mf_graph_rope(&g, q, table, &rope, "q_rope"), stored, &attention, "a");
    x = mf_graph_add(&g, x, mf_graph_matmul(&g, &w[5], a, "o"), "x1");
    mf_ref gate = mf_graph_silu(&g, mf_graph_matmul(&g, &w[6], x, "gate"), "silu");
    mf_ref down = mf_graph_matmul(&g, &w[7], mf_graph_mul(&g, gate, mf_graph_matmul(&g, &w[6], x, "up"), "gated"), "down");
    g.output = mf_graph_output_rows(&g, mf_graph_add(&g, x, down, "x2"), "rows");
    if (g.failed) fail_msg("%s", g.error.text);
    return g;
}

static void builder_refuses_wrong_shapes(void **state) {
    (void)state;
    mf_weight e = matrix("embd", MF_TYPE_F32, 64, 10), w = matrix("w", MF_TYPE_F32, 32, 8);
    mf_graph g = {.layer = 3, .output = -1};
    mf_ref x = mf_graph_get_rows(&g, &e, "x");
    assert_int_equal(mf_graph_matmul(&g, &w, x, "y"), -1);
    assert_true(g.failed);
    assert_non_null(strstr(g.error.text, "rows of 32, not 64"));
    assert_int_equal(mf_graph_silu(&g, x, "z"), -1); // sticky
    mf_graph_free(&g);

    g = (mf_graph){.layer = -1, .output = -1};
    x = mf_graph_get_rows(&g, &e, "x");
    assert_int_equal(mf_graph_heads(&g, x, 48, "heads"), -1);
    assert_non_null(strstr(g.error.text, "64 in heads of 48"));
    mf_graph_free(&g);

    g = (mf_graph){.layer = -1, .output = -1};
    x = mf_graph_get_rows(&g, &e, "x");
    assert_int_equal(mf_graph_columns(&g, x, 60, 8, "c"), -1);
    mf_graph_free(&g);

    g = (mf_graph){.layer = -1, .output = -1};
    x = mf_graph_get_rows(&g, &e, "x");
    assert_int_equal(mf_graph_permute(&g, x, (int[4]){0, 0, 2, 3}, "p"), -1);
    assert_int_equal(mf_graph_scale(&g, 99, 2, "s"), -1);
    mf_graph_free(&g);
}

static void views_share_storage(void **state) {
    (void)state;
    mf_weight e = matrix("embd", MF_TYPE_F32, 64, 10);
    mf_graph g = {.layer = -1, .output = -1};
    mf_ref x = mf_graph_get_rows(&g, &e, "x"), c = mf_graph_columns(&g, x, 16, 32, "c"), h = mf_graph_heads(&g, c, 16, "h");
    mf_ref p = mf_graph_permute(&g, h, (int[4]){1, 0, 2, 3}, "p");
    const mf_value *v = g.values.data;
    assert_int_equal(v[p].root, x);
    assert_int_equal(v[h].offset, 64);
    assert_int_equal(v[h].nb[2], 64 * 4);
    assert_int_equal(v[p].ne[0], 2);
    assert_int_equal(v[p].nb[0], 64);
    mf_graph_free(&g);
}

static void lowering_shares_the_quantized_form(void **state) {
    (void)state;
    mf_weight w[8];
    mf_error err = {0};
    mf_graph g = layer(w);
    assert_true(mf_graph_lower(&g, &err));
    assert_int_equal(count(&g, MF_OP_QUANTIZE), 3); // for q, k and v together; for o; for gate and up together
    for (size_t i = 0; i < g.nodes.len; i++) {
        const mf_node *n = &g.nodes.data[i];
        if (n->op == MF_OP_MATMUL) assert_int_equal(g.values.data[n->src[0]].format, mf_format_for_weight(n->weight->type));
    }
    mf_graph_free(&g);
}

static void fusing_leaves_no_plain_composition(void **state) {
    (void)state;
    mf_weight w[8];
    mf_error err = {0};
    mf_graph g = layer(w);
    assert_true(mf_graph_lower(&g, &err) && mf_graph_fuse(&g, MF_FUSE_ALL, &err));
    assert_int_equal(count(&g, MF_OP_ADD), 0);
    assert_int_equal(count(&g, MF_OP_SILU) + count(&g, MF_OP_MUL), 0);
    assert_int_equal(count(&g, MF_OP_SWIGLU), 1);
    assert_int_equal(count(&g, MF_OP_NORM_QUANTIZE), 1);
    assert_int_equal(count(&g, MF_OP_RMS_NORM), 0);
    assert_int_equal(count(&g, MF_OP_ROPE_STORE), 1);
    assert_int_equal(count(&g, MF_OP_ROPE), 1);
    mf_graph_free(&g);
    g = layer(w);
    size_t plain = g.nodes.len;
    assert_true(mf_graph_fuse(&g, 0, &err));
    assert_int_equal(g.nodes.len, plain);
    mf_graph_free(&g);
}

static void a_value_used_twice_is_not_fused_away(void **state) {
    (void)state;
    mf_weight e = matrix("embd", MF_TYPE_F32, 64, 10);
    mf_error err = {0};
    mf_graph g = {.layer = -1, .output = -1};
    mf_ref x = mf_graph_get_rows(&g, &e, "x"), s = mf_graph_silu(&g, x, "s");
    g.output = mf_graph_add(&g, mf_graph_mul(&g, s, x, "m"), s, "y");
    assert_true(mf_graph_fuse(&g, MF_FUSE_ALL, &err));
    assert_int_equal(count(&g, MF_OP_SILU), 1);
    assert_int_equal(count(&g, MF_OP_MUL), 1);
    mf_graph_free(&g);
}

static void assign_refuses_what_no_device_runs(void **state) {
    (void)state;
    mf_weight e = matrix("embd", MF_TYPE_F32, 64, 10), w = matrix("w", MF_TYPE_Q2_K, 64, 8);
    mf_error err = {0};
    mf_graph g = {.layer = 7, .output = -1};
    g.output = mf_graph_matmul(&g, &w, mf_graph_get_rows(&g, &e, "x"), "y");
    assert_false(mf_graph_assign(&g, &devices, MF_TYPE_F16, &err));
    assert_non_null(strstr(err.text, "matmul 'blk.7.y'"));
    assert_non_null(strstr(err.text, "Q2_K"));
    mf_graph_free(&g);
}

static void groups_are_independent_and_in_order(void **state) {
    (void)state;
    mf_weight w[8];
    mf_error err = {0};
    mf_graph g = layer(w);
    assert_true(mf_graph_lower(&g, &err) && mf_graph_fuse(&g, MF_FUSE_ALL, &err) && mf_graph_schedule(&g, &err));
    for (size_t i = 0; i < g.nodes.len; i++) {
        const mf_node *n = &g.nodes.data[i];
        if (i) assert_true(n->group == n[-1].group || n->group == n[-1].group + 1);
        for (int s = 0; s < MF_MAX_SRC; s++)
            for (size_t j = 0; n->src[s] >= 0 && j < g.nodes.len; j++)
                if (g.nodes.data[j].dst == g.values.data[n->src[s]].root) assert_true(g.nodes.data[j].group < n->group);
    }
    mf_graph_free(&g);
}

// Any two values that live in the same group have storage apart.
static void planned_storage_does_not_overlap(void **state) {
    (void)state;
    mf_weight w[8];
    mf_error err = {0};
    mf_graph g = layer(w);
    mf_plan plan;
    assert_true(mf_graph_lower(&g, &err) && mf_graph_fuse(&g, MF_FUSE_ALL, &err) && mf_graph_schedule(&g, &err));
    assert_true(mf_graph_plan(&g, &devices, 32, 4, &plan, &err));
    assert_true(plan.bytes < plan.naive);
    for (size_t i = 0; i < g.nodes.len; i++)
        for (size_t j = i + 1; j < g.nodes.len; j++) {
            mf_ref a = g.nodes.data[i].dst, b = g.nodes.data[j].dst;
            int32_t last_a = g.nodes.data[i].group, first_b = g.nodes.data[j].group;
            for (size_t n = 0; n < g.nodes.len; n++)
                for (int s = 0; s < MF_MAX_SRC; s++)
                    if (g.nodes.data[n].src[s] >= 0 && g.values.data[g.nodes.data[n].src[s]].root == a &&
                        g.nodes.data[n].group > last_a)
                        last_a = g.nodes.data[n].group;
            if (a == g.values.data[g.output].root) last_a = INT32_MAX;
            if (last_a < first_b) continue;
            size_t rows_a = g.values.data[a].ne[1] == MF_DIM_OUTS ? 4 : 32,
                   rows_b = g.values.data[b].ne[1] == MF_DIM_OUTS ? 4 : 32;
            size_t size_a = row_bytes(&paper, g.values.data[a].format, g.values.data[a].ne[0]) * rows_a;
            size_t size_b = row_bytes(&paper, g.values.data[b].format, g.values.data[b].ne[0]) * rows_b;
            if (size_a == 0 || size_b == 0) continue;
            assert_true(plan.offset[a] + size_a <= plan.offset[b] || plan.offset[b] + size_b <= plan.offset[a]);
        }
    mf_plan_free(&plan);
    mf_graph_free(&g);
}

static void a_plan_that_overflows_is_refused(void **state) {
    (void)state;
    mf_weight e = matrix("embd", MF_TYPE_F32, INT64_MAX / 8, 10);
    mf_error err = {0};
    mf_plan plan;
    mf_graph g = {.layer = -1, .output = -1};
    g.output = mf_graph_get_rows(&g, &e, "x");
    assert_true(mf_graph_schedule(&g, &err));
    assert_false(mf_graph_plan(&g, &devices, 1 << 20, 1, &plan, &err));
    assert_int_equal(err.code, MF_ERR_LIMIT);
    mf_graph_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(builder_refuses_wrong_shapes),         cmocka_unit_test(views_share_storage),
        cmocka_unit_test(lowering_shares_the_quantized_form),   cmocka_unit_test(fusing_leaves_no_plain_composition),
        cmocka_unit_test(a_value_used_twice_is_not_fused_away), cmocka_unit_test(assign_refuses_what_no_device_runs),
        cmocka_unit_test(groups_are_independent_and_in_order),  cmocka_unit_test(planned_storage_does_not_overlap),
        cmocka_unit_test(a_plan_that_overflows_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
