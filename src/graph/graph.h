// The graph: a pure description of one step, built by a model, changed by passes (graph to graph, each in a file of its own), laid
// out by the planner and run. Rows, positions, block tables are data of a step under a capacity, never structure.
#ifndef MF_GRAPH_GRAPH_H
#define MF_GRAPH_GRAPH_H

#include "base/array.h"
#include "base/text.h"
#include "device/device.h"
#include "device/registry.h"

typedef struct mf_graph {
    mf_array(mf_value) values;
    mf_array(mf_node) nodes; // in an order that respects their sources
    mf_ref output;           // the value the step is for (logits), [n][MF_DIM_OUTS]
    int32_t layer;           // what the builder stamps on nodes
    bool failed;             // sticky: after the first failure builder calls return -1
    mf_error error;
} mf_graph;

void mf_graph_free(mf_graph *g); // a zero-initialised graph is empty and ready

// ---- Builder. Each call appends one node (plain operations only: fused ones come from the fuse pass) and returns its value.
// Shapes are checked; a mismatch, or memory running out, makes the graph failed with the reason and all further calls return -1.
// `label` names the value in dumps and errors ("attn_out"; the layer is put before it).

mf_ref mf_graph_get_rows(mf_graph *g, const mf_weight *w, const char *label); // [n_in][ROWS], by the step's tokens
mf_ref mf_graph_output_rows(mf_graph *g, mf_ref x, const char *label);        // [n][ROWS] -> [n][OUTS]
mf_ref mf_graph_rms_norm(mf_graph *g, mf_ref x, const mf_weight *w, float eps, const char *label);
mf_ref mf_graph_qk_norm(mf_graph *g, mf_ref x, const mf_weight *w, float eps,
                        const char *label);                                           // x: [head_dim][heads][ROWS]
mf_ref mf_graph_matmul(mf_graph *g, const mf_weight *w, mf_ref x, const char *label); // [n_in][R] -> [n_out][R]
mf_ref mf_graph_add(mf_graph *g, mf_ref a, mf_ref b, const char *label);
mf_ref mf_graph_add_bias(mf_graph *g, mf_ref a, const mf_weight *bias, const char *label); // bias == NULL: a itself
mf_ref mf_graph_mul(mf_graph *g, mf_ref a, mf_ref b, const char *label);
mf_ref mf_graph_scale(mf_graph *g, mf_ref a, float scale, const char *label);
mf_ref mf_graph_silu(mf_graph *g, mf_ref a, const char *label);
mf_ref mf_graph_gelu(mf_graph *g, mf_ref a, const char *label);
mf_ref mf_graph_softmax(mf_graph *g, mf_ref a, const char *label);
mf_ref mf_graph_concat(mf_graph *g, mf_ref a, mf_ref b, const char *label); // along the innermost dimension
mf_ref mf_graph_rope_table(mf_graph *g, const mf_rope_params *rope, const char *label);
mf_ref mf_graph_rope(mf_graph *g, mf_ref x, mf_ref table, const mf_rope_params *rope,
                     const char *label);                                      // x: [head_dim][heads][ROWS]
mf_ref mf_graph_kv_store(mf_graph *g, mf_ref k, mf_ref v, const char *label); // both [head_dim][heads_kv][ROWS]
mf_ref mf_graph_attention(mf_graph *g, mf_ref q, mf_ref stored, const mf_attention_params *p,
                          const char *label); // -> [n_head*head_dim][ROWS]

// Views share storage. heads: [n][R] -> [head_dim][n/head_dim][R]. columns: elements [first, first + n) of each row.
mf_ref mf_graph_heads(mf_graph *g, mf_ref x, int64_t head_dim, const char *label);
mf_ref mf_graph_columns(mf_graph *g, mf_ref x, int64_t first, int64_t n, const char *label);
mf_ref mf_graph_permute(mf_graph *g, mf_ref x, const int axes[4],
                        const char *label); // dimension i of the result is axes[i] of x

// ---- Passes. Each returns false with err and leaves the graph to be freed.

// Puts a quantize node before matmuls whose weights take int8 activations; matmuls of one value share it.
bool mf_graph_lower(mf_graph *g, mf_error *err);

enum {                // what mf_graph_fuse may do; same bytes with or without
    MF_FUSE_NORM = 1, // rms_norm + quantize
    MF_FUSE_FFN = 2,  // silu + mul, swiglu + quantize
    MF_FUSE_QKV = 4,  // matmul + bias, rope + kv_store
    MF_FUSE_ADD = 8,  // matmul + residual
    MF_FUSE_ALL = 15,
};
bool mf_graph_fuse(mf_graph *g, unsigned what, mf_error *err);

// Gives each node the first device of the list that supports it; refuses the graph naming the node that none supports.
bool mf_graph_assign(mf_graph *g, const mf_device_list *devices, mf_type kv_type, mf_error *err);

// Orders nodes into groups whose members do not depend on each other: one barrier a group.
bool mf_graph_schedule(mf_graph *g, mf_error *err);

// What the planner decided: an offset for the storage of every root value, so that values alive together do not overlap.
typedef struct mf_plan {
    size_t *offset; // [n_values]; of roots
    size_t bytes;   // of the whole arena
    size_t naive;   // what it would be without sharing
} mf_plan;

// Lays out storage for steps of up to max_rows rows and max_outs output rows.
bool mf_graph_plan(const mf_graph *g, const mf_device_list *devices, int32_t max_rows, int32_t max_outs, mf_plan *plan,
                   mf_error *err);
void mf_plan_free(mf_plan *plan);

// ---- Running

typedef struct mf_graph_exec mf_graph_exec; // a graph with its plan and storage

// Takes the graph over (also on failure): plans, allocates. NULL with err.
mf_graph_exec *mf_graph_exec_new(mf_graph *g, const mf_device_list *devices, int32_t max_rows, int32_t max_outs,
                                 int32_t max_cells, mf_error *err);
void mf_graph_exec_free(mf_graph_exec *exec);

// The bytes that mf_graph_exec_bytes would say, with nothing allocated.
bool mf_graph_exec_measure(const mf_graph *g, const mf_device_list *devices, int32_t max_rows, int32_t max_outs,
                           int32_t max_cells, size_t *bytes, mf_error *err);

// Runs the step; allocates nothing. The output is at mf_graph_exec_output until the next run: n_outs rows of *n floats.
bool mf_graph_exec_run(mf_graph_exec *exec, const mf_step *step, mf_error *err);
const float *mf_graph_exec_output(const mf_graph_exec *exec, int64_t *n);

size_t mf_graph_exec_bytes(const mf_graph_exec *exec); // arena and device scratch
const mf_graph *mf_graph_exec_graph(const mf_graph_exec *exec);

// ---- Seeing inside

// The graph as it is (after the passes: as it runs), appended to out: DOT for graphviz, one box a node in a cluster for each layer; JSON
// with one line a node, `kind` saying what it is a graph of ("prefill"). Dimensions that depend on the step are "rows" and "outs".
// devices may be NULL. False when memory is out.
bool mf_graph_dot(const mf_graph *g, const mf_device_list *devices, mf_buf *out);
bool mf_graph_json(const mf_graph *g, const mf_device_list *devices, const char *kind, mf_buf *out);

typedef struct mf_graph_watch {
    const char *trace_dir;  // NULL: no trace
    const char *dump_dir;   // NULL: no values
    const char *dump_names; // with commas between; NULL: all values
    bool timing;
} mf_graph_watch;

// From here on nodes run one by one and each is watched; same bytes, slower. A run that is not watched pays nothing. With a trace,
// every run writes trace_dir/step-000001.jsonl and so on (the folder is made if it is missing): a line for the step, then one for each
// node with its value's shape, min, max, mean, l2, count of values that are not finite, and first values. With dump_dir, every run
// writes dump_dir/step-000001/NAME.npy for each value of those names ("attn_out" is that of every layer), as NumPy reads it: floats, a row of the
// step behind another. With timing, each node's time
// is added to its operation's. False with err: the folder can't be made or written, or memory is out.
bool mf_graph_exec_watch(mf_graph_exec *exec, const mf_graph_watch *watch, mf_error *err);

typedef struct mf_op_time {
    double seconds;
    uint64_t calls; // nodes run
} mf_op_time;

// Time by operation [MF_OP_COUNT] over all runs; NULL when it is not measured. Lives as long as exec.
const mf_op_time *mf_graph_exec_timing(const mf_graph_exec *exec);

// The same as a table for people, the slowest operation first; operations that did not run are left out.
void mf_op_time_table(const mf_op_time time[MF_OP_COUNT], mf_buf *out);

#endif
