// Cases of rope, the cache and attention, for test_ops.c.
#ifndef TESTS_BACKEND_OP_CASES_KV_H
#define TESTS_BACKEND_OP_CASES_KV_H

#include "backend/op_reference.h"
#include "backend/op_rig.h"

#define HEAD_DIM  32
#define N_HEAD    6
#define N_HEAD_KV 2
#define KV_FLOATS (N_HEAD_KV * HEAD_DIM)

// Frequencies from a turn a position down to almost none.
static const double inv_freq[HEAD_DIM / 2] = {1.0,  0.56,   0.32,  0.18,  0.1,   0.056,  0.032,  0.018,
                                              0.01, 0.0056, 0.003, 0.002, 0.001, 0.0006, 0.0003, 0.0001};

static mf_rope_params rope_params(int32_t n_dims, bool interleaved) {
    return (mf_rope_params){.n_dims = n_dims, .interleaved = interleaved, .inv_freq = inv_freq, .magnitude = 1.25};
}

static void case_rope_table(rig *r, const mf_op_types *t) {
    (void)t;
    mf_rope_params p = rope_params(HEAD_DIM, false);
    for (int32_t i = 0; i < r->n_rows; i++) r->pos[i] = i * i * 997;
    const float *y = rig_run(r, mf_graph_rope_table(&r->g, &p, "y"), 0, MF_OP_ROPE_TABLE);
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int j = 0; j < HEAD_DIM; j++) {
            double angle = (double)r->pos[i] * inv_freq[j / 2];
            rig_near(r, i, j, y[i * HEAD_DIM + j], 1.25 * (j % 2 ? sin(angle) : cos(angle)), 1.25 * 0x1p-24);
        }
}

static void check_rope(rig *r, int32_t n_dims, bool interleaved) {
    double want[HEAD_DIM];
    rig_input x = rig_rows(r, 3 * HEAD_DIM);
    mf_rope_params p = rope_params(n_dims, interleaved);
    mf_ref table = mf_graph_rope_table(&r->g, &p, "table"), heads = mf_graph_heads(&r->g, x.ref, HEAD_DIM, "h");
    const float *y = rig_run(r, mf_graph_rope(&r->g, heads, table, &p, "y"), 0, MF_OP_ROPE);
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int h = 0; h < 3; h++) {
            ref_rope(rig_x(r, x, i) + h * HEAD_DIM, r->pos[i], inv_freq, 1.25, n_dims, HEAD_DIM, interleaved, want);
            for (int j = 0; j < HEAD_DIM; j++)
                rig_near(r, i, h * HEAD_DIM + j, y[(i * 3 + h) * HEAD_DIM + j], want[j], j < n_dims ? 2e-6 : 0);
        }
}

static void case_rope(rig *r, const mf_op_types *t) {
    (void)t;
    const int32_t rows = r->n_rows;
    for (int variant = 0; variant < 4;
         variant++) { // pairs side by side or half a head apart; the whole head or a part of it
        check_rope(r, variant & 2 ? HEAD_DIM / 2 : HEAD_DIM, variant & 1);
        rig_end(r);
        rig_begin(r, rows);
    }
}

// ---- The cache

#define CELLS  448
#define BLOCKS (CELLS / MF_KV_BLOCK)

// Blocks of two sequences, in no order and interleaved.
static const int32_t tables[2][BLOCKS] = {{9, 2, 13, 0, 6, 11, 4}, {3, 12, 1, 8, 5, 10, 7}};

static void open_cache(rig *r) {
    mf_error err = {0};
    mf_kv_params p = {.type = r->kv_type, .n_layer = 2, .n_head_kv = N_HEAD_KV, .head_dim = HEAD_DIM, .n_cells = 2 * CELLS};
    r->kv = mf_kv_new(&p, rig_device(r), &err);
    rig_require(r, r->kv != NULL, &err);
    r->table[0] = tables[0], r->table[1] = tables[1];
}

// What a cell gives back of a row of K or V: floats as they are, halves rounded, int8 as whole multiples of a half for each 32, which
// is also how many of K are mixed before and unmixed here.
static void cell_values(mf_type type, bool key, const double *x, double *want) {
    const bool bytes = type == MF_TYPE_Q8_0, mixed = bytes && key;
    for (int g = 0; g < KV_FLOATS; g += HEAD_DIM) {
        double amax = 0;
        for (int i = g; i < g + HEAD_DIM; i++) want[i] = x[i];
        if (mixed) ref_hadamard(want + g, HEAD_DIM);
        for (int i = g; i < g + HEAD_DIM; i++) amax = fmax(amax, fabs(want[i]));
        const double step = (double)mf_f16_to_f32(mf_f32_to_f16((float)amax / 127));
        for (int i = g; i < g + HEAD_DIM; i++) {
            if (type == MF_TYPE_F16) want[i] = (double)mf_f16_to_f32(mf_f32_to_f16((float)x[i]));
            if (bytes) want[i] = step > 0 ? step * nearbyint(want[i] / step) : 0;
        }
        if (mixed) ref_hadamard(want + g, HEAD_DIM);
    }
}

static double read_cell(const mf_kv_view *v, int32_t layer, int32_t block, int32_t slot, int i, bool value) {
    const uint8_t *part = v->base + (size_t)layer * v->layer_stride + (size_t)block * v->block_stride +
                          (size_t)(i / HEAD_DIM) * v->head_stride + (value ? v->v_offset : 0);
    size_t d = (size_t)(i % HEAD_DIM), s = (size_t)slot;
    size_t at = value ? s * HEAD_DIM + d : (s / MF_KV_LANES * HEAD_DIM + d) * MF_KV_LANES + s % MF_KV_LANES;
    if (v->type == MF_TYPE_F32) return (double)((const float *)part)[at];
    return (double)mf_f16_to_f32(((const uint16_t *)part)[at]);
}

// The cells of the step's rows, where op.h says they lie.
static void check_cells(rig *r, rig_input k, rig_input v) {
    const mf_kv_view *view = mf_kv_view_of(r->kv);
    double x[KV_FLOATS], want[KV_FLOATS];
    if (view->type != MF_TYPE_F32 && view->type != MF_TYPE_F16) return; // packed: attention's case reads them
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int value = 0; value < 2; value++) {
            int32_t block = r->table[r->seq[i]][r->cell[i] / MF_KV_BLOCK], slot = r->cell[i] % MF_KV_BLOCK;
            for (int j = 0; j < KV_FLOATS; j++) x[j] = r->stored[i] ? 0 : (double)rig_x(r, value ? v : k, i)[j];
            cell_values(view->type, !value, x, want);
            for (int j = 0; j < KV_FLOATS; j++)
                rig_near(r, i, j, (float)read_cell(view, 1, block, slot, j, value), want[j], 0);
        }
}

// Rows over two sequences, some behind a block's end, the last one marked as stored already.
static void spread_rows(rig *r) {
    for (int32_t i = 0; i < r->n_rows; i++) {
        r->seq[i] = i >= r->n_rows / 2;
        r->cell[i] = r->seq[i] ? i : 60 + i;
    }
    if (r->n_rows > 2) r->stored[r->n_rows - 1] = 1;
}

static void case_kv_store(rig *r, const mf_op_types *t) {
    (void)t;
    open_cache(r);
    spread_rows(r);
    r->g.layer = 1;
    rig_input k = rig_rows(r, KV_FLOATS), v = rig_rows(r, KV_FLOATS), q = rig_rows(r, N_HEAD * HEAD_DIM);
    mf_attention_params p = {.n_head = N_HEAD, .n_head_kv = N_HEAD_KV, .head_dim = HEAD_DIM, .scale = 0.2F};
    mf_ref stored = mf_graph_kv_store(&r->g, mf_graph_heads(&r->g, k.ref, HEAD_DIM, "k"),
                                      mf_graph_heads(&r->g, v.ref, HEAD_DIM, "v"), "kv");
    rig_run(r, mf_graph_attention(&r->g, mf_graph_heads(&r->g, q.ref, HEAD_DIM, "q"), stored, &p, "y"), 0, MF_OP_KV_STORE);
    check_cells(r, k, v);
}

// ---- Attention, over a history written by earlier steps

typedef struct history {
    double k[2][CELLS][KV_FLOATS], v[2][CELLS][KV_FLOATS]; // by sequence and cell
} history;

typedef struct attention_case {
    rig_input q, k, v;
    mf_attention_params p;
    bool rope; // K and q turn; K is stored by one node with that
    history *past;
} attention_case;

static void turn(const attention_case *c, const float *x, int heads, int32_t pos, double *out) {
    for (int h = 0; h < heads; h++)
        if (c->rope)
            ref_rope(x + h * HEAD_DIM, pos, inv_freq, 1.25, HEAD_DIM, HEAD_DIM, false, out + h * HEAD_DIM);
        else
            for (int j = 0; j < HEAD_DIM; j++) out[h * HEAD_DIM + j] = (double)x[h * HEAD_DIM + j];
}

static void remember(rig *r, const attention_case *c) {
    double k[KV_FLOATS], v[KV_FLOATS];
    for (int32_t i = 0; i < r->n_rows; i++) {
        turn(c, rig_x(r, c->k, i), N_HEAD_KV, r->pos[i], k);
        for (int j = 0; j < KV_FLOATS; j++) v[j] = (double)rig_x(r, c->v, i)[j];
        cell_values(r->kv_type, true, k, c->past->k[r->seq[i]][r->cell[i]]);
        cell_values(r->kv_type, false, v, c->past->v[r->seq[i]][r->cell[i]]);
    }
}

// One query head: softmax of the scores over the cells it sees, then the mean of their values.
static void attend(const rig *r, const attention_case *c, const double *q, int32_t row, int head, double *out) {
    double score[CELLS], weight[CELLS];
    int kv = head / (N_HEAD / N_HEAD_KV) * HEAD_DIM, last = r->cell[row];
    int first = c->p.window && last - c->p.window + 1 > 0 ? last - c->p.window + 1 : 0;
    for (int cell = first; cell <= last; cell++) {
        double s = 0;
        for (int d = 0; d < HEAD_DIM; d++) s += q[d] * (double)c->p.scale * c->past->k[r->seq[row]][cell][kv + d];
        score[cell - first] = c->p.softcap > 0 ? (double)c->p.softcap * tanh(s / (double)c->p.softcap) : s;
    }
    ref_softmax(score, last - first + 1, weight);
    for (int d = 0; d < HEAD_DIM; d++) {
        out[d] = 0;
        for (int cell = first; cell <= last; cell++) out[d] += weight[cell - first] * c->past->v[r->seq[row]][cell][kv + d];
    }
}

static void check_attention(rig *r, const attention_case *c, const float *y) {
    double q[N_HEAD * HEAD_DIM], want[HEAD_DIM];
    double tolerance = r->kv_type == MF_TYPE_F32 ? 1e-5 : r->kv_type == MF_TYPE_F16 ? (c->rope ? 4e-3 : 1e-5) : 0.02;
    for (int32_t i = 0; i < r->n_rows; i++) {
        turn(c, rig_x(r, c->q, i), N_HEAD, r->pos[i], q);
        for (int h = 0; h < N_HEAD; h++) {
            attend(r, c, q + h * HEAD_DIM, i, h, want);
            for (int d = 0; d < HEAD_DIM; d++)
                rig_near(r, i, h * HEAD_DIM + d, y[(i * N_HEAD + h) * HEAD_DIM + d], want[d], tolerance);
        }
    }
}

// The rows of a step: most go on from sequence 0's past0 cells, some from sequence 1's past1.
static int32_t place_rows(rig *r, int32_t n_rows, int32_t past0, int32_t past1) {
    r->n_rows = n_rows;
    int32_t first = n_rows - n_rows / 8;
    for (int32_t i = 0; i < n_rows; i++) {
        r->seq[i] = i >= first;
        r->cell[i] = i < first ? past0 + i : past1 + i - first;
        r->pos[i] = r->cell[i];
        r->token[i] = 1 + (i * 7 + past0) % (RIG_TOKENS - 1);
    }
    return first;
}

static void attention_variant(rig *r, mf_attention_params p, bool rope, int32_t rows) {
    if (rows == RIG_ROWS) return; // the steps of the history are that long
    open_cache(r);
    r->g.layer = 1;
    attention_case c = {rig_rows(r, N_HEAD * HEAD_DIM), rig_rows(r, KV_FLOATS), rig_rows(r, KV_FLOATS), p, rope, NULL};
    c.past = rig_alloc(r, 1, sizeof *c.past);
    mf_ref q = mf_graph_heads(&r->g, c.q.ref, HEAD_DIM, "q"), k = mf_graph_heads(&r->g, c.k.ref, HEAD_DIM, "k");
    if (rope) {
        mf_rope_params turning = rope_params(HEAD_DIM, false);
        mf_ref table = mf_graph_rope_table(&r->g, &turning, "table");
        q = mf_graph_rope(&r->g, q, table, &turning, "q_rope"), k = mf_graph_rope(&r->g, k, table, &turning, "k_rope");
    }
    mf_ref stored = mf_graph_kv_store(&r->g, k, mf_graph_heads(&r->g, c.v.ref, HEAD_DIM, "v"), "kv");
    rig_compile(r, mf_graph_attention(&r->g, q, stored, &p, "y"), MF_FUSE_ALL, rope ? MF_OP_ROPE_STORE : MF_OP_ATTENTION,
                false);
    int32_t past0 = 0, past1 = 0;
    while (past0 < 290) { // over a split's end, in chunks
        int32_t first = place_rows(r, RIG_ROWS, past0, past1);
        remember(r, &c);
        check_attention(r, &c, rig_step(r));
        past0 += first, past1 += RIG_ROWS - first;
    }
    place_rows(r, rows, past0, past1);
    remember(r, &c);
    check_attention(r, &c, rig_step(r));
}

static void case_attention(rig *r, const mf_op_types *t) {
    (void)t;
    static const struct {
        float softcap;
        int32_t window;
    } variants[] = {{0, 0}, {5, 0}, {0, 50}};
    const int32_t rows = r->n_rows;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        mf_attention_params p = {N_HEAD, N_HEAD_KV, HEAD_DIM, 0.1F, variants[i].softcap, variants[i].window};
        attention_variant(r, p, false, rows);
        rig_end(r);
        rig_begin(r, rows);
    }
}

static void case_rope_store(rig *r, const mf_op_types *t) {
    (void)t;
    attention_variant(r, (mf_attention_params){N_HEAD, N_HEAD_KV, HEAD_DIM, 0.1F, 0, 0}, true, r->n_rows);
}

#endif
