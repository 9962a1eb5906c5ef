// The planner: storage for every root value, so that values that are alive together do not overlap. Lifetimes are in groups: a value
// lives from the group that makes it to the last group that reads it or a view of it.
#include <stdlib.h>

#include "base/mem.h"
#include "graph/graph.h"

#define ALIGN 64

typedef struct span {
    mf_ref root;
    int32_t first, last; // groups
    size_t bytes, offset;
} span;

static bool value_bytes(const mf_graph *g, const mf_device_list *devices, const mf_node *maker, mf_ref root,
                        const int32_t max[2], size_t *bytes) {
    const mf_value *v = &g->values.data[root];
    const mf_device *d = devices->device[maker->device];
    size_t total = d->class->row_bytes(d, v->format, v->ne[0]);
    for (int i = 1; i < 4; i++) {
        int64_t n = v->ne[i] == MF_DIM_ROWS ? max[0] : v->ne[i] == MF_DIM_OUTS ? max[1] : v->ne[i];
        if (!mf_mul_size(total, (size_t)n, &total)) return false;
    }
    if (total > SIZE_MAX / 4) return false;
    *bytes = mf_align_up(total, ALIGN);
    return true;
}

// One span per root that has bytes, in the order they are made.
static bool lifetimes(const mf_graph *g, const mf_device_list *devices, const int32_t max[2], span *spans, size_t *n_spans,
                      int32_t *index) {
    for (size_t v = 0; v < g->values.len; v++) index[v] = -1;
    *n_spans = 0;
    for (size_t i = 0; i < g->nodes.len; i++) {
        const mf_node *n = &g->nodes.data[i];
        span s = {.root = n->dst, .first = n->group, .last = n->group};
        if (!value_bytes(g, devices, n, n->dst, max, &s.bytes)) return false;
        index[n->dst] = (int32_t)*n_spans;
        spans[(*n_spans)++] = s;
        for (int j = 0; j < MF_MAX_SRC; j++) {
            if (n->src[j] < 0) continue;
            int32_t k = index[g->values.data[n->src[j]].root];
            if (k >= 0 && spans[k].last < n->group) spans[k].last = n->group;
        }
    }
    if (g->output >= 0) spans[index[g->values.data[g->output].root]].last = INT32_MAX;
    return true;
}

static int larger_first(const void *a, const void *b) {
    const span *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x->root < y->root ? -1 : x->root > y->root;
}

static int lower_first(const void *a, const void *b) {
    const span *const *x = a, *const *y = b;
    return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

// Places span i in the lowest gap among the placed spans that live at the same time.
static void place(span *spans, size_t i, const span **live) {
    size_t n = 0;
    for (size_t j = 0; j < i; j++)
        if (spans[j].first <= spans[i].last && spans[i].first <= spans[j].last) live[n++] = &spans[j];
    qsort(live, n, sizeof *live, lower_first);
    size_t at = 0;
    for (size_t j = 0; j < n; j++) {
        if (live[j]->offset >= at + spans[i].bytes) break;
        size_t end = live[j]->offset + live[j]->bytes;
        if (end > at) at = end;
    }
    spans[i].offset = at;
}

bool mf_graph_plan(const mf_graph *g, const mf_device_list *devices, int32_t max_rows, int32_t max_outs, mf_plan *plan,
                   mf_error *err) {
    *plan = (mf_plan){.offset = mf_alloc(g->values.len, sizeof *plan->offset)};
    span *spans = mf_alloc(g->nodes.len, sizeof *spans);
    const span **live = mf_alloc(g->nodes.len, sizeof *live);
    int32_t *index = mf_alloc(g->values.len, sizeof *index);
    size_t n_spans = 0;
    bool memory = plan->offset && spans && live && index;
    bool sizes = memory && lifetimes(g, devices, (int32_t[2]){max_rows, max_outs}, spans, &n_spans, index);
    if (sizes) {
        qsort(spans, n_spans, sizeof *spans, larger_first);
        for (size_t i = 0; i < n_spans; i++) {
            place(spans, i, live);
            plan->offset[spans[i].root] = spans[i].offset;
            plan->naive += spans[i].bytes;
            if (spans[i].offset + spans[i].bytes > plan->bytes) plan->bytes = spans[i].offset + spans[i].bytes;
        }
    }
    free(spans);
    free(live);
    free(index);
    if (sizes) return true;
    mf_plan_free(plan);
    if (!memory) return mf_fail_memory(err, 0, "the plan");
    return mf_fail(err, MF_ERR_LIMIT, "activations for %d rows and %d output rows overflow", max_rows, max_outs);
}

void mf_plan_free(mf_plan *plan) {
    free(plan->offset);
    *plan = (mf_plan){0};
}
