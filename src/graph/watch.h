// Inside of the graph room: running a program node by node, with a trace of its values and the time of its operations.
#ifndef MF_GRAPH_WATCH_H
#define MF_GRAPH_WATCH_H

#include "graph/graph.h"

typedef struct mf_watcher mf_watcher;

mf_watcher *mf_watcher_new(const mf_graph_watch *watch, mf_error *err);
void mf_watcher_free(mf_watcher *w); // NULL is fine

bool mf_watcher_run(mf_watcher *w, const mf_program *program, const mf_device_list *devices, const mf_step *step,
                    mf_error *err);

const mf_op_time *mf_watcher_timing(const mf_watcher *w); // NULL: not measured

#endif
