// The assign pass: each node gets the first device of the list that supports it.
#include "graph/graph.h"

static mf_op_types types_of(const mf_graph *g, const mf_node *n, mf_type kv_type) {
    mf_op_types t = {.dst = g->values.data[n->dst].format, .kv = kv_type};
    if (n->src[0] >= 0) t.src = g->values.data[n->src[0]].format;
    if (n->weight) t.has_weight = true, t.weight = n->weight->type;
    return t;
}

bool mf_graph_assign(mf_graph *g, const mf_device_list *devices, mf_type kv_type, mf_error *err) {
    for (size_t i = 0; i < g->nodes.len; i++) {
        mf_node *n = &g->nodes.data[i];
        mf_op_types t = types_of(g, n, kv_type);
        int32_t d = 0;
        while (d < devices->n && !devices->device[d]->class->supports(devices->device[d], n->op, &t)) d++;
        if (d == devices->n)
            return mf_fail(err, MF_ERR_UNSUPPORTED, "no backend runs %s '%s' (weights %s, cells %s)", mf_op_name(n->op),
                           g->values.data[n->dst].name, t.has_weight ? mf_type_name(t.weight) : "none",
                           mf_type_name(kv_type));
        n->device = (uint8_t)d;
    }
    return true;
}
