// A graph of a few operations over one device, for tests: random weights, rows whose activations are known, the passes, a run.
#ifndef TESTS_BACKEND_OP_RIG_H
#define TESTS_BACKEND_OP_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/half.h"
#include "graph/graph.h"
#include "kv/kv.h"
#include "quant/finite.h"

#define RIG_TOKENS  48
#define RIG_ROWS    40
#define RIG_WEIGHTS 12

typedef struct rig {
    mf_device_list devices; // the one under test
    char context[160];      // what is being tested, for messages
    uint64_t random;
    mf_arena arena;
    mf_graph g;
    mf_weight weights[RIG_WEIGHTS];
    float *decoded[RIG_WEIGHTS];
    int n_weights;
    mf_graph_exec *exec;
    mf_graph_watch watch; // set before rig_run: how the run is watched
    mf_type kv_type;
    mf_kv *kv;
    int32_t n_rows, n_outs;
    int32_t token[RIG_ROWS], pos[RIG_ROWS], cell[RIG_ROWS], seq[RIG_ROWS], out_row[RIG_ROWS], row_error[RIG_ROWS];
    uint8_t stored[RIG_ROWS];
    const int32_t *table[2];
} rig;

static inline mf_device *rig_device(const rig *r) { return r->devices.device[0]; }

static inline void *rig_alloc(rig *r, size_t n, size_t size) {
    void *p = mf_arena_alloc(&r->arena, n, size);
    assert_non_null(p);
    return p;
}

// Uniform in [low, high).
static inline float rig_random(rig *r, double low, double high) {
    r->random = r->random * 6364136223846793005U + 1442695040888963407U;
    return (float)(low + (high - low) * (double)(r->random >> 32) * 0x1p-32);
}

// Starts a case of n_rows rows, each of a random token; token 0, whose activations are all zero, is among them where there are several.
static inline void rig_begin(rig *r, int32_t n_rows) {
    r->g = (mf_graph){.layer = -1, .output = -1};
    r->n_weights = 0;
    r->n_rows = n_rows, r->n_outs = 0;
    for (int32_t i = 0; i < n_rows; i++) {
        r->token[i] = i == 1 ? 0 : 1 + (int32_t)rig_random(r, 0, RIG_TOKENS - 1);
        r->pos[i] = i * 37, r->cell[i] = i, r->seq[i] = 0, r->stored[i] = 0, r->row_error[i] = 0;
    }
}

static inline void rig_end(rig *r) {
    mf_graph_exec_free(r->exec);
    r->exec = NULL;
    mf_graph_free(&r->g);
    for (int i = 0; i < r->n_weights; i++) rig_device(r)->class->weight_release(rig_device(r), &r->weights[i]);
    r->n_weights = 0;
    mf_kv_free(r->kv);
    r->kv = NULL;
    mf_arena_free(&r->arena);
}

static inline void rig_fill_scale(rig *r, uint8_t *block, int at, double low) {
    if (at < 0) return;
    uint16_t half = mf_f32_to_f16(rig_random(r, low, 0.02));
    memcpy(block + at, &half, sizeof half);
}

static inline void rig_fill_block(rig *r, mf_type type, uint8_t *block) {
    const mf_type_info *info = mf_type_info_of(type);
    float x = rig_random(r, -1, 1);
    uint16_t half = type == MF_TYPE_F16 ? mf_f32_to_f16(x) : mf_f32_to_bf16(x);
    if (type == MF_TYPE_F32) memcpy(block, &x, sizeof x);
    if (type == MF_TYPE_F16 || type == MF_TYPE_BF16) memcpy(block, &half, sizeof half);
    if (info->block_len == 1) return;
    for (uint32_t i = 0; i < info->block_bytes; i++) block[i] = (uint8_t)rig_random(r, 0, 256);
    int scales[2];
    if (!mf_scales_of(type, scales)) fail_msg("no scales are known for blocks of %s", info->name);
    rig_fill_scale(r, block, scales[0], -0.02);
    rig_fill_scale(r, block, scales[1], 0);
}

// A random weight, not yet prepared: rig_run does that.
static inline mf_weight *rig_weight(rig *r, mf_type type, int64_t n_in, int64_t n_out, unsigned uses) {
    assert_true(r->n_weights < RIG_WEIGHTS);
    const mf_type_info *info = mf_type_info_of(type);
    size_t blocks = (size_t)(n_in * n_out) / info->block_len;
    uint8_t *file = rig_alloc(r, blocks, info->block_bytes);
    for (size_t b = 0; b < blocks; b++) rig_fill_block(r, type, file + b * info->block_bytes);
    float *decoded = rig_alloc(r, (size_t)(n_in * n_out), sizeof *decoded);
    info->decode(file, decoded, (size_t)(n_in * n_out));
    r->decoded[r->n_weights] = decoded;
    mf_weight *w = &r->weights[r->n_weights++];
    *w = (mf_weight){.name = "w", .type = type, .n_in = n_in, .n_out = n_out, .file = file, .uses = uses};
    w->file_bytes = blocks * info->block_bytes;
    return w;
}

static inline mf_weight *rig_vector(rig *r, mf_type type, int64_t n) { return rig_weight(r, type, n, 1, MF_USE_VECTOR); }

// A weight's row as floats.
static inline const float *rig_weight_row(const rig *r, const mf_weight *w, int64_t row) {
    return r->decoded[w - r->weights] + row * w->n_in;
}

// Activations: a row of n values for each token, spread over some magnitudes.
typedef struct rig_input {
    mf_ref ref;
    const mf_weight *w;
} rig_input;

static inline rig_input rig_rows(rig *r, int64_t n) {
    mf_weight *w = rig_weight(r, MF_TYPE_F32, n, RIG_TOKENS, MF_USE_GATHER);
    float *x = r->decoded[w - r->weights];
    for (int64_t t = 0; t < RIG_TOKENS; t++)
        for (int64_t i = 0; i < n; i++) x[t * n + i] *= t == 0 ? 0.0F : t % 3 == 0 ? 0.05F : 4.0F;
    memcpy((void *)w->file, x, w->file_bytes);
    return (rig_input){mf_graph_get_rows(&r->g, w, "x"), w};
}

// The activations of a step's row.
static inline const float *rig_x(const rig *r, rig_input in, int32_t row) { return rig_weight_row(r, in.w, r->token[row]); }

static inline void rig_require(const rig *r, bool ok, const mf_error *err) {
    if (!ok) fail_msg("%s: %s", r->context, err->text);
}

// Fails unless |got - want| <= tolerance (0: the same number).
static inline void rig_near(const rig *r, int32_t row, int64_t i, float got, double want, double tolerance) {
    double off = (double)got - want;
    if (!(off <= tolerance && off >= -tolerance))
        fail_msg("%s: row %d, element %d is %.9g, not %.9g (within %.3g)", r->context, row, (int)i, (double)got, want,
                 tolerance);
}

static inline mf_ref rig_made_by(const mf_graph *g, mf_op op) {
    for (size_t i = 0; i < g->nodes.len; i++)
        if (g->nodes.data[i].op == op) return g->nodes.data[i].dst;
    return -1;
}

// Passes, plan, weights. `must`: an operation that has to be there after lowering and fusing; whole: its value becomes the output.
static inline void rig_compile(rig *r, mf_ref output, unsigned fuse, mf_op must, bool whole) {
    mf_error err = {0};
    r->g.output = output;
    rig_require(r, !r->g.failed, &r->g.error);
    rig_require(r, mf_graph_lower(&r->g, &err) && mf_graph_fuse(&r->g, fuse, &err), &err);
    mf_ref made = rig_made_by(&r->g, must);
    if (made < 0) fail_msg("%s: no %s is in the graph", r->context, mf_op_name(must));
    if (whole) r->g.output = made;
    rig_require(r, mf_graph_assign(&r->g, &r->devices, r->kv_type, &err) && mf_graph_schedule(&r->g, &err), &err);
    for (int i = 0; i < r->n_weights; i++) {
        bool mapped;
        rig_require(r, rig_device(r)->class->weight_prepare(rig_device(r), &r->weights[i], &mapped, &err), &err);
    }
    r->exec = mf_graph_exec_new(&r->g, &r->devices, RIG_ROWS, RIG_ROWS, 1024, &err);
    rig_require(r, r->exec != NULL, &err);
    if (r->watch.trace_dir || r->watch.timing) rig_require(r, mf_graph_exec_watch(r->exec, &r->watch, &err), &err);
}

static inline const void *rig_step(rig *r) {
    mf_error err = {0};
    mf_step step = {.n_rows = r->n_rows,
                    .n_outs = r->n_outs,
                    .token = r->token,
                    .pos = r->pos,
                    .cell = r->cell,
                    .seq = r->seq,
                    .stored = r->stored,
                    .out_row = r->out_row,
                    .table = r->table,
                    .kv = r->kv ? mf_kv_view_of(r->kv) : NULL,
                    .row_error = r->row_error};
    int64_t n;
    rig_require(r, mf_graph_exec_run(r->exec, &step, &err), &err);
    return mf_graph_exec_output(r->exec, &n);
}

static inline const float *rig_run(rig *r, mf_ref output, unsigned fuse, mf_op must) {
    rig_compile(r, output, fuse, must, false);
    return rig_step(r);
}

#endif
