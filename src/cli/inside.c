#include "cli/inside.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/log.h"

static bool save(const char *path, mf_buf *text, bool made, mf_error *err) {
    bool ok = made && !text->failed ? mf_file_write(path, text->data, text->len, err)
                                    : mf_fail_memory(err, text->len, "the graph");
    free(text->data);
    return ok;
}

bool mf_inside_dump(const mf_loaded *l, const mf_options *o, mf_error *err) {
    const mf_graph *g = mf_engine_graph(l->engine);
    mf_buf dot = {0}, json = {0};
    if (o->dump_dot) {
        if (!save(o->dump_dot, &dot, mf_graph_dot(g, &l->devices, &dot), err)) return false;
        mf_log(MF_LOG_NOTICE, "Graph DOT exported to %s (%zu nodes)", o->dump_dot, g->nodes.len);
    }
    if (o->dump_json) {
        if (!save(o->dump_json, &json, mf_graph_json(g, &l->devices, "prefill", &json), err)) return false;
        mf_log(MF_LOG_NOTICE, "Graph JSON exported to %s (%zu nodes, prefill)", o->dump_json, g->nodes.len);
    }
    return true;
}

void mf_inside_timing(const mf_loaded *l) {
    const mf_op_time *time = l->engine ? mf_engine_op_timing(l->engine) : NULL;
    if (!time) return;
    mf_buf table = {0};
    mf_op_time_table(time, &table);
    if (!table.failed) fputs(table.data, stderr);
    free(table.data);
}
