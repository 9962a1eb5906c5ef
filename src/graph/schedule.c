// The schedule pass: nodes are put into groups; the members of a group do not depend on each other, so a device runs them together
// with one barrier behind. The order of nodes stays one that respects their sources.
#include <stdlib.h>

#include "base/mem.h"
#include "graph/graph.h"

// The earliest group a node can be in: behind the groups of everything it reads.
static int32_t earliest(const mf_graph *g, const int32_t *group_of_root, const mf_node *n) {
    int32_t group = 0;
    for (int s = 0; s < MF_MAX_SRC; s++) {
        if (n->src[s] < 0) continue;
        int32_t made = group_of_root[g->values.data[n->src[s]].root];
        if (made + 1 > group) group = made + 1;
    }
    return group;
}

static bool is_view(mf_op op) { return op == MF_OP_VIEW || op == MF_OP_RESHAPE || op == MF_OP_PERMUTE; }

// Stable counting sort of the nodes by group.
static bool reorder(mf_graph *g, int32_t n_groups) {
    size_t *start = mf_alloc((size_t)n_groups + 1, sizeof *start);
    mf_node *sorted = mf_alloc(g->nodes.len, sizeof *sorted);
    bool ok = start && sorted;
    if (ok) {
        for (size_t i = 0; i < g->nodes.len; i++) start[g->nodes.data[i].group + 1]++;
        for (int32_t j = 0; j < n_groups; j++) start[j + 1] += start[j];
        for (size_t i = 0; i < g->nodes.len; i++) sorted[start[g->nodes.data[i].group]++] = g->nodes.data[i];
        free(g->nodes.data);
        g->nodes.data = sorted;
        g->nodes.cap = g->nodes.len;
        sorted = NULL;
    }
    free(start);
    free(sorted);
    return ok;
}

bool mf_graph_schedule(mf_graph *g, mf_error *err) {
    int32_t *group_of_root = mf_alloc(g->values.len, sizeof *group_of_root);
    if (!group_of_root) return mf_fail_memory(err, g->values.len * sizeof *group_of_root, "the graph");
    int32_t last = 0;
    size_t kept = 0;
    for (size_t i = 0; i < g->nodes.len; i++) {
        mf_node n = g->nodes.data[i];
        if (is_view(n.op)) continue; // no work: the values say it all
        n.group = earliest(g, group_of_root, &n);
        group_of_root[n.dst] = n.group;
        if (n.group > last) last = n.group;
        g->nodes.data[kept++] = n;
    }
    g->nodes.len = kept;
    free(group_of_root);
    return reorder(g, last + 1) || mf_fail_memory(err, g->nodes.len * sizeof(mf_node), "the graph");
}
