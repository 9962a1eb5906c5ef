// The fuse pass: plain compositions become one node that gives the same bytes with fewer passes over memory and fewer barriers.
#include <stdlib.h>

#include "base/mem.h"
#include "graph/graph.h"

typedef struct fuser {
    mf_graph *g;
    int32_t *uses;     // per value: how many nodes read it (views included)
    int32_t *producer; // per value: the node that makes it, -1
    bool *gone;        // per node: merged into another
} fuser;

static mf_node *made_by(const fuser *f, mf_ref v, mf_op op) {
    if (v < 0 || f->producer[v] < 0 || f->gone[f->producer[v]]) return NULL;
    mf_node *n = &f->g->nodes.data[f->producer[v]];
    return n->op == op ? n : NULL;
}

static bool only_use(const fuser *f, mf_ref v) { return f->uses[v] == 1 && f->g->output != v; }

static void drop(fuser *f, const mf_node *n) { f->gone[n - f->g->nodes.data] = true; }

// mul(silu(gate), up) -> swiglu(gate, up)
static void swiglu(fuser *f, mf_node *n) {
    mf_node *silu = made_by(f, n->src[0], MF_OP_SILU);
    if (n->op != MF_OP_MUL || !silu || !only_use(f, silu->dst)) return;
    n->op = MF_OP_SWIGLU;
    n->src[0] = silu->src[0];
    drop(f, silu);
}

// quantize(swiglu(a, b)) -> swiglu_quantize(a, b)
static void swiglu_quantize(fuser *f, mf_node *n) {
    mf_node *s = made_by(f, n->src[0], MF_OP_SWIGLU);
    if (n->op != MF_OP_QUANTIZE || !s || !only_use(f, s->dst)) return;
    n->op = MF_OP_SWIGLU_QUANTIZE;
    n->src[0] = s->src[0], n->src[1] = s->src[1];
    drop(f, s);
}

// quantize(rms_norm(x)) -> norm_quantize(x)
static void norm_quantize(fuser *f, mf_node *n) {
    mf_node *norm = made_by(f, n->src[0], MF_OP_RMS_NORM);
    if (n->op != MF_OP_QUANTIZE || !norm || !only_use(f, norm->dst)) return;
    n->op = MF_OP_NORM_QUANTIZE;
    n->src[0] = norm->src[0];
    n->weight = norm->weight;
    n->u.eps = norm->u.eps;
    drop(f, norm);
}

// add(matmul(w, x), bias) -> matmul with a bias
static void matmul_bias(fuser *f, mf_node *n) {
    mf_node *m = made_by(f, n->src[0], MF_OP_MATMUL);
    if (n->op != MF_OP_ADD || !n->weight || !m || m->bias || m->src[1] >= 0 || !only_use(f, m->dst)) return;
    mf_node fused = *m;
    fused.bias = n->weight;
    fused.dst = n->dst;
    drop(f, m);
    *n = fused;
}

// add(x, matmul(w, y)), either way round -> matmul that adds x (an IEEE addition commutes)
static void matmul_add(fuser *f, mf_node *n) {
    if (n->op != MF_OP_ADD || n->weight) return;
    for (int side = 0; side < 2; side++) {
        mf_node *m = made_by(f, n->src[side], MF_OP_MATMUL);
        if (!m || m->src[1] >= 0 || !only_use(f, m->dst)) continue;
        mf_node fused = *m;
        fused.src[1] = n->src[1 - side];
        fused.dst = n->dst;
        drop(f, m);
        *n = fused;
        return;
    }
}

// kv_store(rope(k), v) -> rope_store(k, v)
static void rope_store(fuser *f, mf_node *n) {
    mf_node *rope = made_by(f, n->src[0], MF_OP_ROPE);
    if (n->op != MF_OP_KV_STORE || !rope || !only_use(f, rope->dst)) return;
    n->op = MF_OP_ROPE_STORE;
    n->src[0] = rope->src[0], n->src[2] = rope->src[1];
    n->u.rope = rope->u.rope;
    drop(f, rope);
}

static const struct {
    unsigned group;
    void (*apply)(fuser *, mf_node *);
} patterns[] = {
    {MF_FUSE_FFN, swiglu},      {MF_FUSE_FFN, swiglu_quantize}, {MF_FUSE_NORM, norm_quantize},
    {MF_FUSE_QKV, matmul_bias}, {MF_FUSE_ADD, matmul_add},      {MF_FUSE_QKV, rope_store},
};

static void index_graph(fuser *f) {
    mf_graph *g = f->g;
    for (size_t v = 0; v < g->values.len; v++) f->uses[v] = 0, f->producer[v] = -1;
    for (size_t i = 0; i < g->nodes.len; i++) {
        const mf_node *n = &g->nodes.data[i];
        if (f->gone[i]) continue;
        f->producer[n->dst] = (int32_t)i;
        for (int s = 0; s < MF_MAX_SRC; s++)
            if (n->src[s] >= 0) f->uses[n->src[s]]++;
    }
}

static void sweep(fuser *f) {
    mf_graph *g = f->g;
    size_t kept = 0;
    for (size_t i = 0; i < g->nodes.len; i++)
        if (!f->gone[i]) g->nodes.data[kept++] = g->nodes.data[i];
    g->nodes.len = kept;
}

bool mf_graph_fuse(mf_graph *g, unsigned what, mf_error *err) {
    fuser f = {g, mf_alloc(g->values.len, sizeof(int32_t)), mf_alloc(g->values.len, sizeof(int32_t)),
               mf_alloc(g->nodes.len, 1)};
    bool ok = f.uses && f.producer && f.gone;
    for (size_t p = 0; ok && p < sizeof patterns / sizeof patterns[0]; p++) {
        if (!(patterns[p].group & what)) continue;
        index_graph(&f);
        for (size_t i = 0; i < g->nodes.len; i++)
            if (!f.gone[i]) patterns[p].apply(&f, &g->nodes.data[i]);
    }
    if (ok) sweep(&f);
    free(f.uses);
    free(f.producer);
    free(f.gone);
    return ok || mf_fail_memory(err, 0, "the graph");
}
