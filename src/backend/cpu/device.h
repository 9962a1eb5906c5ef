// Inside of the CPU device, shared by its files.
#ifndef MF_BACKEND_CPU_DEVICE_H
#define MF_BACKEND_CPU_DEVICE_H

#include <pthread.h>

#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "base/pool.h"

// A tile of attention: query rows of one sequence that follow each other.
typedef struct cpu_tile {
    int32_t first_row, n_rows;
} cpu_tile;

// One node's work in a step.
typedef struct cpu_task {
    int32_t n_pieces;
    int32_t rows_per_piece;
    int32_t panels_per_piece, row_chunks; // matmul
} cpu_task;

// Nodes that run side by side, with a barrier behind them.
typedef struct cpu_group {
    int32_t first_node, n_pieces;
    bool alone; // one worker's business: too little to share
} cpu_group;

// Working memory for the steps of a program; laid out again when another program runs.
typedef struct cpu_scratch {
    char *memory;
    size_t bytes;
    const mf_program *program; // whose layout this is
    cpu_task *tasks;           // [nodes]
    cpu_group *groups;         // [nodes]
    int *counters;             // [threads][nodes]: how many pieces of each group were taken from a worker's stretch
    cpu_tile *tiles;           // [rows]
    float *worker;             // [threads][worker_floats]
    size_t worker_floats;
    float *split_state; // attention split over workers: [row][kv head][split] states
    int *split_done;    // [row][kv head]
    int32_t max_splits, split_rows, n_head_kv;
} cpu_scratch;

typedef struct cpu_region cpu_region;

typedef struct cpu_device {
    mf_device device;
    const mf_kernels *k;
    mf_pool *pool;
    cpu_region *regions; // of matrices
    char description[96];
    pthread_mutex_t turn; // held by whoever uses the pool and the working memory for steps
    cpu_scratch scratch;
} cpu_device;

// What weight_prepare makes of a matrix.
typedef struct cpu_matrix {
    mf_matrix matrix;
    bool panels; // matrix.data is the store's, not the file's
} cpu_matrix;

// One step's run over a span of nodes.
typedef struct cpu_run {
    cpu_device *device;
    const mf_program *program;
    const mf_step *step;
    int32_t n_groups;
    int32_t n_tiles;
    bool split; // attention's splits are pieces of their own
    int32_t n_splits;
    bool stopped; // by an interrupt: set by one worker before the others pass a barrier
} cpu_run;

// support.c
bool mf_cpu_supports(const mf_device *device, mf_op op, const mf_op_types *types);

// weights.c
size_t mf_cpu_weight_bytes(const mf_device *device, const mf_weight *weight);
bool mf_cpu_weight_prepare(mf_device *device, mf_weight *weight, bool *mapped_in_use, mf_error *err);
void mf_cpu_weight_release(mf_device *device, mf_weight *weight);
void mf_cpu_weight_row(const mf_weight *weight, int64_t row, float *out);

// store.c: memory for matrices, NULL when there is none. The last matrix that is released from a region gives it back to the system.
void *mf_cpu_store_alloc(cpu_device *device, size_t bytes);
void mf_cpu_store_release(cpu_device *device, void *matrix);

// exec.c
size_t mf_cpu_scratch_bytes(const mf_device *device, const mf_program *program);
bool mf_cpu_reserve(mf_device *device, size_t bytes, mf_error *err);
bool mf_cpu_run_span(mf_device *device, const mf_program *program, int32_t first, int32_t count, const mf_step *step,
                     mf_error *err);

// nodes.c: how a node's work is cut, and the work.
bool mf_cpu_plan_node(const cpu_run *run, const mf_node *node, cpu_task *task, mf_error *err);
void mf_cpu_run_piece(const cpu_run *run, const mf_node *node, const cpu_task *task, int32_t piece, int worker);

// attention_run.c
void mf_cpu_plan_attention(cpu_run *run);
void mf_cpu_attention_piece(const cpu_run *run, const mf_node *node, int32_t piece, int worker);
int32_t mf_cpu_attention_pieces(const cpu_run *run, const mf_node *node);

// measure.c
bool mf_cpu_measure(mf_device *device, mf_device_limits *out, mf_error *err);

void *mf_cpu_alloc(mf_device *device, size_t bytes);
void mf_cpu_release(mf_device *device, void *ptr, size_t bytes);

#endif
