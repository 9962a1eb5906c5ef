#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

void mf_graph_free(mf_graph *g) {
    free(g->values.data);
    free(g->nodes.data);
    *g = (mf_graph){0};
}

static mf_ref refuse(mf_graph *g, mf_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));
static mf_ref refuse(mf_graph *g, mf_code code, const char *format, ...) {
    if (!g->failed) {
        char text[400];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
        mf_fail(&g->error, code, "graph: %s", text);
        g->failed = true;
    }
    return -1;
}

static const mf_value *value(const mf_graph *g, mf_ref v) { return &g->values.data[v]; }

static bool valid(mf_graph *g, mf_ref v) {
    if (!g->failed && (v < 0 || (size_t)v >= g->values.len)) refuse(g, MF_ERR_INTERNAL, "no value %d", v);
    return !g->failed;
}

static bool same_shape(const mf_value *a, const mf_value *b) { return memcmp(a->ne, b->ne, sizeof a->ne) == 0; }

// Strides of a value whose elements follow each other. A dimension that depends on the step is the outermost.
static void contiguous(mf_value *v) {
    int64_t step = 4;
    for (int i = 0; i < 4; i++) {
        v->nb[i] = step;
        if (v->ne[i] > 0) step *= v->ne[i];
    }
}

static mf_ref add_value(mf_graph *g, mf_value v, const char *label) {
    if (g->failed) return -1;
    if (g->layer >= 0)
        snprintf(v.name, sizeof v.name, "blk.%d.%s", g->layer, label);
    else
        snprintf(v.name, sizeof v.name, "%s", label);
    if (v.root < 0) v.root = (mf_ref)g->values.len;
    if (!mf_array_push(&g->values, v)) return refuse(g, MF_ERR_MEMORY, "out of memory");
    return (mf_ref)g->values.len - 1;
}

static mf_ref add_node(mf_graph *g, mf_node n, mf_value v, const char *label) {
    n.dst = add_value(g, v, label);
    n.layer = g->layer;
    if (g->failed) return -1;
    if (!mf_array_push(&g->nodes, n)) return refuse(g, MF_ERR_MEMORY, "out of memory");
    return n.dst;
}

static mf_value fresh(const int64_t ne[4]) {
    mf_value v = {.format = MF_FORMAT_F32, .ne = {ne[0], ne[1], ne[2], ne[3]}, .root = -1};
    contiguous(&v);
    return v;
}

static mf_node node(mf_op op, mf_ref a, mf_ref b) { return (mf_node){.op = op, .dst = -1, .src = {a, b, -1}}; }

mf_ref mf_graph_get_rows(mf_graph *g, const mf_weight *w, const char *label) {
    mf_node n = node(MF_OP_GET_ROWS, -1, -1);
    n.weight = w;
    return add_node(g, n, fresh((int64_t[4]){w->n_in, MF_DIM_ROWS, 1, 1}), label);
}

mf_ref mf_graph_output_rows(mf_graph *g, mf_ref x, const char *label) {
    if (!valid(g, x)) return -1;
    const mf_value *v = value(g, x);
    if (v->ne[1] != MF_DIM_ROWS) return refuse(g, MF_ERR_INTERNAL, "output rows of '%s', which has none", v->name);
    return add_node(g, node(MF_OP_GET_ROWS, x, -1), fresh((int64_t[4]){v->ne[0], MF_DIM_OUTS, 1, 1}), label);
}

static mf_ref norm(mf_graph *g, mf_node n, mf_ref x, const mf_weight *w, const char *label) {
    if (!valid(g, x)) return -1;
    const mf_value *v = value(g, x);
    if (w->n_in != v->ne[0])
        return refuse(g, MF_ERR_INTERNAL, "%s '%s': weight of %" PRId64 " for rows of %" PRId64, mf_op_name(n.op), label,
                      w->n_in, v->ne[0]);
    n.weight = w;
    return add_node(g, n, fresh(v->ne), label);
}

mf_ref mf_graph_rms_norm(mf_graph *g, mf_ref x, const mf_weight *w, float eps, const char *label) {
    mf_node n = node(MF_OP_RMS_NORM, x, -1);
    n.u.eps = eps;
    return norm(g, n, x, w, label);
}

mf_ref mf_graph_qk_norm(mf_graph *g, mf_ref x, const mf_weight *w, float eps, const char *label) {
    mf_node n = node(MF_OP_QK_NORM, x, -1);
    n.u.qk_norm.eps = eps;
    n.u.qk_norm.head_dim = (int32_t)w->n_in;
    return norm(g, n, x, w, label);
}

mf_ref mf_graph_matmul(mf_graph *g, const mf_weight *w, mf_ref x, const char *label) {
    if (!valid(g, x)) return -1;
    const mf_value *v = value(g, x);
    if (v->ne[0] != w->n_in || v->ne[2] != 1)
        return refuse(g, MF_ERR_INTERNAL, "matmul '%s': %s takes rows of %" PRId64 ", not %" PRId64, label, w->name, w->n_in,
                      v->ne[0]);
    mf_node n = node(MF_OP_MATMUL, x, -1);
    n.weight = w;
    return add_node(g, n, fresh((int64_t[4]){w->n_out, v->ne[1], 1, 1}), label);
}

static mf_ref binary(mf_graph *g, mf_op op, mf_ref a, mf_ref b, const char *label) {
    if (!valid(g, a) || !valid(g, b)) return -1;
    if (!same_shape(value(g, a), value(g, b)))
        return refuse(g, MF_ERR_INTERNAL, "%s '%s': the shapes differ", mf_op_name(op), label);
    return add_node(g, node(op, a, b), fresh(value(g, a)->ne), label);
}

static mf_ref unary(mf_graph *g, mf_node n, const char *label) {
    if (!valid(g, n.src[0])) return -1;
    return add_node(g, n, fresh(value(g, n.src[0])->ne), label);
}

mf_ref mf_graph_add(mf_graph *g, mf_ref a, mf_ref b, const char *label) { return binary(g, MF_OP_ADD, a, b, label); }
mf_ref mf_graph_mul(mf_graph *g, mf_ref a, mf_ref b, const char *label) { return binary(g, MF_OP_MUL, a, b, label); }

mf_ref mf_graph_add_bias(mf_graph *g, mf_ref a, const mf_weight *bias, const char *label) {
    if (!bias || !valid(g, a)) return a;
    if (bias->n_in != value(g, a)->ne[0])
        return refuse(g, MF_ERR_INTERNAL, "add '%s': a bias of %" PRId64 " for rows of %" PRId64, label, bias->n_in,
                      value(g, a)->ne[0]);
    mf_node n = node(MF_OP_ADD, a, -1);
    n.weight = bias;
    return unary(g, n, label);
}

mf_ref mf_graph_scale(mf_graph *g, mf_ref a, float scale, const char *label) {
    mf_node n = node(MF_OP_SCALE, a, -1);
    n.u.scale = scale;
    return unary(g, n, label);
}

mf_ref mf_graph_silu(mf_graph *g, mf_ref a, const char *label) { return unary(g, node(MF_OP_SILU, a, -1), label); }
mf_ref mf_graph_gelu(mf_graph *g, mf_ref a, const char *label) { return unary(g, node(MF_OP_GELU, a, -1), label); }
mf_ref mf_graph_softmax(mf_graph *g, mf_ref a, const char *label) { return unary(g, node(MF_OP_SOFTMAX, a, -1), label); }

mf_ref mf_graph_concat(mf_graph *g, mf_ref a, mf_ref b, const char *label) {
    if (!valid(g, a) || !valid(g, b)) return -1;
    const mf_value *x = value(g, a), *y = value(g, b);
    if (memcmp(x->ne + 1, y->ne + 1, 3 * sizeof x->ne[0]) != 0 || x->ne[0] < 0 || y->ne[0] < 0)
        return refuse(g, MF_ERR_INTERNAL, "concat '%s': the shapes differ", label);
    return add_node(g, node(MF_OP_CONCAT, a, b), fresh((int64_t[4]){x->ne[0] + y->ne[0], x->ne[1], x->ne[2], x->ne[3]}),
                    label);
}

mf_ref mf_graph_rope_table(mf_graph *g, const mf_rope_params *rope, const char *label) {
    mf_node n = node(MF_OP_ROPE_TABLE, -1, -1);
    n.u.rope = *rope;
    return add_node(g, n, fresh((int64_t[4]){rope->n_dims, MF_DIM_ROWS, 1, 1}), label);
}

mf_ref mf_graph_rope(mf_graph *g, mf_ref x, mf_ref table, const mf_rope_params *rope, const char *label) {
    if (!valid(g, x) || !valid(g, table)) return -1;
    const mf_value *v = value(g, x);
    if (rope->n_dims <= 0 || rope->n_dims % 2 || rope->n_dims > v->ne[0] || v->ne[2] != MF_DIM_ROWS)
        return refuse(g, MF_ERR_INTERNAL, "rope '%s': %d of %" PRId64 " channels", label, rope->n_dims, v->ne[0]);
    mf_node n = node(MF_OP_ROPE, x, table);
    n.u.rope = *rope;
    return add_node(g, n, fresh(v->ne), label);
}

mf_ref mf_graph_kv_store(mf_graph *g, mf_ref k, mf_ref v, const char *label) {
    if (!valid(g, k) || !valid(g, v)) return -1;
    if (!same_shape(value(g, k), value(g, v)) || value(g, k)->ne[2] != MF_DIM_ROWS)
        return refuse(g, MF_ERR_INTERNAL, "kv_store '%s': K and V of different shapes", label);
    return add_node(g, node(MF_OP_KV_STORE, k, v), fresh((int64_t[4]){0, 1, 1, 1}), label);
}

mf_ref mf_graph_attention(mf_graph *g, mf_ref q, mf_ref stored, const mf_attention_params *p, const char *label) {
    if (!valid(g, q) || !valid(g, stored)) return -1;
    const mf_value *v = value(g, q);
    if (v->ne[0] != p->head_dim || v->ne[1] != p->n_head || p->n_head_kv <= 0 || p->n_head % p->n_head_kv)
        return refuse(g, MF_ERR_INTERNAL, "attention '%s': q of %" PRId64 " x %" PRId64 " for %d heads of %d", label,
                      v->ne[0], v->ne[1], p->n_head, p->head_dim);
    mf_node n = node(MF_OP_ATTENTION, q, stored);
    n.u.attention = *p;
    return add_node(g, n, fresh((int64_t[4]){(int64_t)p->n_head * p->head_dim, v->ne[2], 1, 1}), label);
}

static mf_ref view(mf_graph *g, mf_op op, mf_ref x, mf_value v, const char *label) {
    v.root = value(g, x)->root;
    return add_node(g, node(op, x, -1), v, label);
}

mf_ref mf_graph_heads(mf_graph *g, mf_ref x, int64_t head_dim, const char *label) {
    if (!valid(g, x)) return -1;
    mf_value v = *value(g, x);
    if (head_dim <= 0 || v.ne[0] % head_dim || v.ne[2] != 1 || v.nb[0] != 4)
        return refuse(g, MF_ERR_INTERNAL, "heads '%s': rows of %" PRId64 " in heads of %" PRId64, label, v.ne[0], head_dim);
    mf_value h = v;
    h.ne[0] = head_dim, h.ne[1] = v.ne[0] / head_dim, h.ne[2] = v.ne[1];
    h.nb[1] = head_dim * 4, h.nb[2] = v.nb[1], h.nb[3] = v.nb[1];
    return view(g, MF_OP_RESHAPE, x, h, label);
}

mf_ref mf_graph_columns(mf_graph *g, mf_ref x, int64_t first, int64_t n, const char *label) {
    if (!valid(g, x)) return -1;
    mf_value v = *value(g, x);
    if (first < 0 || n <= 0 || first + n > v.ne[0])
        return refuse(g, MF_ERR_INTERNAL, "columns '%s': [%" PRId64 ", %" PRId64 ") of %" PRId64, label, first, first + n,
                      v.ne[0]);
    v.offset += first * v.nb[0];
    v.ne[0] = n;
    return view(g, MF_OP_VIEW, x, v, label);
}

mf_ref mf_graph_permute(mf_graph *g, mf_ref x, const int axes[4], const char *label) {
    if (!valid(g, x)) return -1;
    mf_value v = *value(g, x), p = v;
    unsigned seen = 0;
    for (int i = 0; i < 4; i++) {
        if (axes[i] < 0 || axes[i] > 3) return refuse(g, MF_ERR_INTERNAL, "permute '%s': axis %d", label, axes[i]);
        seen |= 1U << axes[i];
        p.ne[i] = v.ne[axes[i]], p.nb[i] = v.nb[axes[i]];
    }
    if (seen != 15) return refuse(g, MF_ERR_INTERNAL, "permute '%s': an axis twice", label);
    return view(g, MF_OP_PERMUTE, x, p, label);
}
