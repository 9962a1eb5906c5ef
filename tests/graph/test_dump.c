// Graphs as DOT and JSON: both parsed again, by a reader of DOT's grammar here and by base/json.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "graph/graph.h"

static bool supports_all(const mf_device *device, mf_op op, const mf_op_types *types) {
    (void)device;
    (void)op;
    (void)types;
    return true;
}

static const mf_device_class paper_class = {.name = "paper", .supports = supports_all};
static mf_device paper = {&paper_class};
static const mf_device_list devices = {{&paper}, 1};

static const double freq[8] = {1, 0.5, 0.25, 0.125, 0.1, 0.05, 0.02, 0.01};

// A name as a hostile file may have it: a quote, a backslash, a line break, bytes that are not UTF-8.
static const char hostile_name[] = "w\"];\\evil\n\xff";

static mf_weight weights[4] = {
    {.name = "embd", .type = MF_TYPE_Q8_0, .n_in = 64, .n_out = 100},
    {.name = "norm", .type = MF_TYPE_F32, .n_in = 64, .n_out = 1},
    {.name = hostile_name, .type = MF_TYPE_Q4_0, .n_in = 64, .n_out = 32},
    {.name = "bias", .type = MF_TYPE_F32, .n_in = 32, .n_out = 1},
};

// Two layers of: norm, q and k with a bias and rope, store, attention. Behind all passes.
static mf_graph compiled(void) {
    mf_error err = {0};
    mf_rope_params rope = {.n_dims = 16, .inv_freq = freq, .magnitude = 1};
    mf_attention_params attention = {.n_head = 2, .n_head_kv = 2, .head_dim = 16, .scale = 0.25F, .window = 7};
    mf_graph g = {.layer = -1, .output = -1};
    mf_ref table = mf_graph_rope_table(&g, &rope, "table"), x = mf_graph_get_rows(&g, &weights[0], "x"), a = -1;
    for (g.layer = 0; g.layer < 2; g.layer++) {
        mf_ref n = mf_graph_rms_norm(&g, x, &weights[1], 0x1p-10F, "n");
        mf_ref q = mf_graph_add_bias(&g, mf_graph_matmul(&g, &weights[2], n, "q"), &weights[3], "q");
        mf_ref h = mf_graph_rope(&g, mf_graph_heads(&g, q, 16, "heads"), table, &rope, "k_rope");
        mf_ref v = mf_graph_heads(&g, mf_graph_columns(&g, x, 32, 32, "v"), 16, "v_heads");
        a = mf_graph_attention(&g, mf_graph_heads(&g, q, 16, "q_heads"), mf_graph_kv_store(&g, h, v, "kv"), &attention, "a");
    }
    g.layer = -1;
    g.output = mf_graph_output_rows(&g, a, "rows");
    if (g.failed) fail_msg("%s", g.error.text);
    if (!mf_graph_lower(&g, &err) || !mf_graph_fuse(&g, MF_FUSE_ALL, &err) ||
        !mf_graph_assign(&g, &devices, MF_TYPE_F16, &err) || !mf_graph_schedule(&g, &err))
        fail_msg("%s", err.text);
    return g;
}

// ---- DOT's grammar, as much of it as is needed to accept or refuse a file: statements of nodes, edges, attributes and subgraphs.

typedef struct dot {
    const char *at;
    char token[512]; // "" at the end; a quoted text with its opening quote
    int nodes, edges, clusters;
} dot;

static void next(dot *d) {
    size_t n = 0;
    while (*d->at == ' ' || *d->at == '\n') d->at++;
    if (*d->at == '"') {
        do {
            if (*d->at == '\\' && d->at[1]) d->token[n++] = *d->at++;
            assert_true(*d->at && n + 2 < sizeof d->token);
            assert_true((unsigned char)*d->at >= ' ');
            d->token[n++] = *d->at++;
        } while (*d->at != '"');
        d->at++;
    } else if (strncmp(d->at, "->", 2) == 0) {
        d->token[n++] = *d->at++, d->token[n++] = *d->at++;
    } else if (*d->at) {
        do d->token[n++] = *d->at++;
        while (strchr("abcdefghijklmnopqrstuvwxyz_0123456789", d->token[n - 1]) && *d->at &&
               !strchr(" \n{}[];,=-\"", *d->at));
    }
    d->token[n] = 0;
}

static bool is(const dot *d, const char *token) { return strcmp(d->token, token) == 0; }

static void expect(dot *d, const char *token) {
    if (!is(d, token)) fail_msg("DOT: '%s' where '%s' should be", d->token, token);
    next(d);
}

static void identifier(dot *d) {
    char c = d->token[0];
    if (!(c == '"' || c == '_' || (c >= 'a' && c <= 'z'))) fail_msg("DOT: '%s' is no identifier", d->token);
    next(d);
}

static void attributes(dot *d) {
    expect(d, "[");
    while (!is(d, "]")) {
        identifier(d);
        expect(d, "=");
        identifier(d);
        if (is(d, ",")) next(d);
    }
    next(d);
}

static void statements(dot *d, int depth) {
    assert_true(depth < 3);
    expect(d, "{");
    while (!is(d, "}")) {
        bool subgraph = is(d, "subgraph"), defaults = is(d, "node");
        if (subgraph) next(d), d->clusters++;
        identifier(d);
        if (subgraph) {
            statements(d, depth + 1);
            continue;
        }
        if (is(d, "="))
            next(d), identifier(d);
        else if (is(d, "->"))
            next(d), identifier(d), d->edges++;
        else
            d->nodes += !defaults;
        if (is(d, "[")) attributes(d);
        expect(d, ";");
    }
    next(d);
}

static void dot_keeps_the_grammar(void **state) {
    (void)state;
    mf_graph g = compiled();
    mf_buf text = {0};
    assert_true(mf_graph_dot(&g, &devices, &text));
    dot d = {.at = text.data};
    next(&d);
    expect(&d, "digraph");
    identifier(&d);
    statements(&d, 0);
    assert_true(is(&d, ""));
    assert_int_equal(d.nodes, g.nodes.len + 1); // and the output
    assert_int_equal(d.clusters, 2);
    int sources = 1;
    for (size_t i = 0; i < g.nodes.len; i++)
        for (int s = 0; s < MF_MAX_SRC; s++) sources += g.nodes.data[i].src[s] >= 0;
    assert_int_equal(d.edges, sources);
    assert_non_null(strstr(text.data, "rope_store\\nblk.1.kv"));
    assert_non_null(strstr(text.data, "matmul\\nblk.0.q\\n32 x rows f32\\nw\\\"];\\\\evil?"));
    assert_non_null(strstr(text.data, "Q4_0 64 x 32\\nbias bias F32 32 x 1\\npaper, group"));
    free(text.data);
    mf_graph_free(&g);
}

static int64_t integer(const mf_json *object, const char *key) {
    int64_t value;
    assert_true(mf_json_i64(mf_json_get(object, key), &value));
    return value;
}

static bool text_is(const mf_json *object, const char *key, const char *want) {
    const mf_json *v = mf_json_get(object, key);
    return v && v->kind == MF_JSON_STRING && mf_str_is(v->text, want);
}

static void json_says_what_the_graph_says(void **state) {
    (void)state;
    mf_graph g = compiled();
    mf_buf text = {0};
    mf_error err = {0};
    mf_arena arena = {0};
    assert_true(mf_graph_json(&g, &devices, "prefill", &text));
    const mf_json *json = mf_json_parse(&arena, (mf_str){text.data, text.len}, &err);
    if (!json) fail_msg("%s", err.text);
    assert_true(text_is(json, "kind", "prefill"));
    assert_int_equal(integer(json, "n_nodes"), g.nodes.len);
    assert_int_equal(integer(json, "output"), g.output);
    assert_int_equal(integer(json, "n_groups"), g.nodes.data[g.nodes.len - 1].group + 1);
    const mf_json *n = mf_json_get(json, "nodes")->child;
    for (size_t i = 0; i < g.nodes.len; i++, n = n->next) {
        const mf_node *node = &g.nodes.data[i];
        const mf_json *dst = mf_json_get(n, "dst"), *src = mf_json_get(n, "src");
        assert_true(text_is(n, "op", mf_op_name(node->op)) && text_is(n, "device", "paper"));
        assert_true(text_is(dst, "name", g.values.data[node->dst].name));
        assert_int_equal(integer(n, "group"), node->group);
        size_t sources = 0;
        for (const mf_json *s = src->child; s; s = s->next) assert_int_equal(integer(s, "value"), node->src[sources++]);
        assert_int_equal(src->count, sources);
        if (node->op == MF_OP_ATTENTION) {
            assert_int_equal(integer(mf_json_get(n, "params"), "window"), 7);
            assert_true(mf_str_is(mf_json_get(dst, "shape")->child->next->text, "rows"));
            assert_int_equal(integer(src->child, "view_of"), g.values.data[node->src[0]].root);
        }
        if (node->op == MF_OP_MATMUL) {
            assert_true(text_is(mf_json_get(n, "weight"), "name", "w\"];\\evil\n\xef\xbf\xbd"));
            assert_true(text_is(mf_json_get(n, "weight"), "type", "Q4_0") &&
                        text_is(mf_json_get(n, "bias"), "name", "bias"));
        }
        if (node->op == MF_OP_GET_ROWS && !node->weight)
            assert_true(mf_str_is(mf_json_get(dst, "shape")->child->next->text, "outs"));
    }
    assert_null(n);
    mf_arena_free(&arena);
    free(text.data);
    mf_graph_free(&g);
}

static void a_full_buffer_is_reported(void **state) {
    (void)state;
    mf_graph g = compiled();
    mf_buf dot_text = {.limit = 100}, json_text = {.limit = 100};
    assert_false(mf_graph_dot(&g, &devices, &dot_text));
    assert_false(mf_graph_json(&g, &devices, "prefill", &json_text));
    free(dot_text.data);
    free(json_text.data);
    mf_graph_free(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dot_keeps_the_grammar),
        cmocka_unit_test(json_says_what_the_graph_says),
        cmocka_unit_test(a_full_buffer_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
