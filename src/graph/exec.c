// A graph with its plan and storage, and the one way to run it.
#include <stdlib.h>

#include "base/mem.h"
#include "graph/graph.h"
#include "graph/watch.h"

struct mf_graph_exec {
    mf_graph graph;
    mf_plan plan;
    mf_device_list devices; // borrowed; not closed here
    void *arena;
    size_t scratch;
    void **storage; // [n_values]
    mf_program program;
    int32_t max_rows, max_outs;
    mf_watcher *watcher; // NULL: not watched
};

static size_t scratch_bytes(const mf_program *program, const mf_device_list *devices) {
    size_t bytes = 0;
    for (int32_t d = 0; d < devices->n; d++) {
        const mf_device *device = devices->device[d];
        bytes += device->class->scratch_bytes(device, program);
    }
    return bytes;
}

bool mf_graph_exec_measure(const mf_graph *g, const mf_device_list *devices, int32_t max_rows, int32_t max_outs,
                           int32_t max_cells, size_t *bytes, mf_error *err) {
    mf_plan plan = {0};
    const bool ok = mf_graph_plan(g, devices, max_rows, max_outs, &plan, err);
    const mf_program program = {g->values.data, g->nodes.data, (int32_t)g->values.len, (int32_t)g->nodes.len, max_rows,
                                max_cells,      NULL};
    if (ok) *bytes = plan.bytes + scratch_bytes(&program, devices);
    mf_plan_free(&plan);
    return ok;
}

static bool reserve(mf_graph_exec *e, int32_t max_cells, mf_error *err) {
    mf_device *host = e->devices.device[e->devices.n - 1];
    e->arena = host->class->alloc(host, e->plan.bytes);
    e->storage = mf_alloc(e->graph.values.len, sizeof *e->storage);
    if (!e->arena || !e->storage) return mf_fail_memory(err, e->plan.bytes, "activations");
    for (size_t v = 0; v < e->graph.values.len; v++) e->storage[v] = (char *)e->arena + e->plan.offset[v];
    e->program = (mf_program){e->graph.values.data,
                              e->graph.nodes.data,
                              (int32_t)e->graph.values.len,
                              (int32_t)e->graph.nodes.len,
                              e->max_rows,
                              max_cells,
                              e->storage};
    for (int32_t d = 0; d < e->devices.n; d++) {
        mf_device *device = e->devices.device[d];
        if (!device->class->reserve(device, device->class->scratch_bytes(device, &e->program), err)) return false;
    }
    e->scratch = scratch_bytes(&e->program, &e->devices);
    return true;
}

mf_graph_exec *mf_graph_exec_new(mf_graph *g, const mf_device_list *devices, int32_t max_rows, int32_t max_outs,
                                 int32_t max_cells, mf_error *err) {
    mf_graph_exec *e = mf_alloc(1, sizeof *e);
    if (!e) {
        mf_graph_free(g);
        mf_fail_memory(err, sizeof *e, "the graph");
        return NULL;
    }
    e->graph = *g;
    *g = (mf_graph){0};
    e->devices = *devices;
    e->max_rows = max_rows, e->max_outs = max_outs;
    if (mf_graph_plan(&e->graph, devices, max_rows, max_outs, &e->plan, err) && reserve(e, max_cells, err)) return e;
    mf_graph_exec_free(e);
    return NULL;
}

void mf_graph_exec_free(mf_graph_exec *e) {
    if (!e) return;
    mf_device *host = e->devices.device[e->devices.n - 1];
    if (e->arena) host->class->release(host, e->arena, e->plan.bytes);
    mf_watcher_free(e->watcher);
    free(e->storage);
    mf_plan_free(&e->plan);
    mf_graph_free(&e->graph);
    free(e);
}

bool mf_graph_exec_run(mf_graph_exec *e, const mf_step *step, mf_error *err) {
    if (step->n_rows < 1 || step->n_rows > e->max_rows || step->n_outs < 0 || step->n_outs > e->max_outs)
        return mf_fail(err, MF_ERR_INTERNAL, "a step of %d rows and %d outputs; the graph holds %d and %d", step->n_rows,
                       step->n_outs, e->max_rows, e->max_outs);
    if (e->watcher) return mf_watcher_run(e->watcher, &e->program, &e->devices, step, err);
    for (int32_t first = 0; first < e->program.n_nodes;) { // spans of one device
        int32_t end = first + 1;
        while (end < e->program.n_nodes && e->program.nodes[end].device == e->program.nodes[first].device) end++;
        mf_device *device = e->devices.device[e->program.nodes[first].device];
        if (!device->class->run(device, &e->program, first, end - first, step, err)) return false;
        first = end;
    }
    return true;
}

const float *mf_graph_exec_output(const mf_graph_exec *e, int64_t *n) {
    *n = e->program.values[e->graph.output].ne[0];
    return mf_value_data(&e->program, e->graph.output);
}

size_t mf_graph_exec_bytes(const mf_graph_exec *e) { return e->plan.bytes + e->scratch; }

const mf_graph *mf_graph_exec_graph(const mf_graph_exec *e) { return &e->graph; }

bool mf_graph_exec_watch(mf_graph_exec *e, const mf_graph_watch *watch, mf_error *err) {
    mf_watcher *w = mf_watcher_new(watch, err);
    if (!w) return false;
    mf_watcher_free(e->watcher);
    e->watcher = w;
    return true;
}

const mf_op_time *mf_graph_exec_timing(const mf_graph_exec *e) { return e->watcher ? mf_watcher_timing(e->watcher) : NULL; }
