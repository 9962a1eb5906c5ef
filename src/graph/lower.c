// The lowering pass: matmuls with quantized weights take int8 activations, so a quantize node is put before them.
#include <stdlib.h>

#include "base/mem.h"
#include "graph/graph.h"

// The quantized form of each value, if it has one already: found[value * MF_FORMAT_COUNT + format], -1 where none.
typedef struct lowering {
    mf_graph *g;
    mf_ref *found;
    mf_array(mf_node) out;
} lowering;

static bool quantized(lowering *l, mf_ref x, mf_format format, int32_t layer, mf_ref *q) {
    mf_ref *slot = &l->found[(size_t)x * MF_FORMAT_COUNT + format];
    if (*slot < 0) {
        mf_value v = l->g->values.data[x];
        v.format = format;
        v.root = (mf_ref)l->g->values.len;
        v.offset = 0;
        mf_node n = {.op = MF_OP_QUANTIZE, .dst = v.root, .src = {x, -1, -1}, .layer = layer};
        if (!mf_array_push(&l->g->values, v) || !mf_array_push(&l->out, n)) return false;
        *slot = v.root;
    }
    *q = *slot;
    return true;
}

bool mf_graph_lower(mf_graph *g, mf_error *err) {
    size_t n_values = g->values.len;
    lowering l = {.g = g, .found = mf_alloc(n_values, MF_FORMAT_COUNT * sizeof(mf_ref))};
    bool ok = l.found != NULL;
    for (size_t i = 0; ok && i < n_values * MF_FORMAT_COUNT; i++) l.found[i] = -1;
    for (size_t i = 0; ok && i < g->nodes.len; i++) {
        mf_node n = g->nodes.data[i];
        if (n.op == MF_OP_MATMUL) {
            mf_format format = mf_format_for_weight(n.weight->type);
            if (format != MF_FORMAT_F32) ok = quantized(&l, n.src[0], format, n.layer, &n.src[0]);
        }
        ok = ok && mf_array_push(&l.out, n);
    }
    free(l.found);
    if (!ok) {
        free(l.out.data);
        return mf_fail_memory(err, 0, "the graph");
    }
    free(g->nodes.data);
    g->nodes.data = l.out.data, g->nodes.len = l.out.len, g->nodes.cap = l.out.cap;
    return true;
}
