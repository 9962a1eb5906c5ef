// Each operation on the CPU: how its work is cut into pieces, and the work. The cut may depend on the step and the threads; the bytes
// never do.
#include <inttypes.h>
#include <string.h>

#include "backend/cpu/device.h"
#include "base/real.h"
#include "quant/finite.h"

#define MATMUL_ROWS 128 // activation rows of a piece: they stay in the second-level cache while panels pass by

// ---- Values as rows

static int row_dim(const mf_value *v) {
    for (int i = 3; i > 0; i--)
        if (v->ne[i] < 0) return i;
    return 1;
}

static int64_t row_len(const mf_value *v) {
    int64_t n = 1;
    for (int i = 0; i < row_dim(v); i++) n *= v->ne[i];
    return n;
}

static size_t row_stride(const cpu_run *run, const mf_value *v) {
    if (v->format != MF_FORMAT_F32) return run->device->device.class->row_bytes(&run->device->device, v->format, v->ne[0]);
    return (size_t)v->nb[row_dim(v)];
}

static void *row_at(const cpu_run *run, mf_ref ref, int64_t row) {
    const mf_value *v = &run->program->values[ref];
    return (char *)mf_value_data(run->program, ref) + (size_t)row * row_stride(run, v);
}

static int32_t n_rows(const cpu_run *run, const mf_node *n) {
    mf_ref ref = n->op == MF_OP_KV_STORE || n->op == MF_OP_ROPE_STORE ? n->src[0] : n->dst;
    const mf_value *v = &run->program->values[ref];
    return (int32_t)mf_value_dim(v, row_dim(v), run->step);
}

// Whether the elements of a row follow each other.
static bool dense_rows(const mf_value *v) {
    int64_t expect = 4;
    for (int i = 0; i < row_dim(v); i++) {
        if (v->nb[i] != expect) return false;
        expect *= v->ne[i];
    }
    return true;
}

// ---- Planning

static void plan_matmul(const cpu_run *run, const mf_node *n, cpu_task *t) {
    const mf_weight *w = n->weight;
    int32_t rows = n_rows(run, n), panels = (int32_t)((w->n_out + MF_PANEL - 1) / MF_PANEL);
    if (rows == 0) return;
    t->row_chunks = (rows + MATMUL_ROWS - 1) / MATMUL_ROWS;
    t->rows_per_piece = (rows + t->row_chunks - 1) / t->row_chunks;
    int32_t want = 8 * mf_pool_size(run->device->pool); // pieces enough to even out the workers
    int32_t pieces = (want + t->row_chunks - 1) / t->row_chunks;
    t->panels_per_piece = (panels + pieces - 1) / pieces;
    if (t->panels_per_piece > 64) t->panels_per_piece = 64;
    int32_t per_chunk = (panels + t->panels_per_piece - 1) / t->panels_per_piece;
    t->n_pieces = per_chunk * t->row_chunks;
}

static void plan_rows(const cpu_run *run, const mf_node *n, cpu_task *t) {
    int32_t rows = n_rows(run, n), threads = mf_pool_size(run->device->pool);
    t->rows_per_piece = (rows + 8 * threads - 1) / (8 * threads);
    if (t->rows_per_piece < 1) t->rows_per_piece = 1;
    if (t->rows_per_piece > 16) t->rows_per_piece = 16;
    t->n_pieces = (rows + t->rows_per_piece - 1) / t->rows_per_piece;
}

bool mf_cpu_plan_node(const cpu_run *run, const mf_node *n, cpu_task *t, mf_error *err) {
    for (int i = 0; i < MF_MAX_SRC; i++) {
        if (n->src[i] < 0 || n->op == MF_OP_CONCAT) continue;
        const mf_value *v = &run->program->values[n->src[i]];
        if (v->format == MF_FORMAT_F32 && !dense_rows(v))
            return mf_fail(err, MF_ERR_INTERNAL,
                           "%s of '%s', whose rows are strided (%" PRId64 ", %" PRId64 ", %" PRId64 " bytes)",
                           mf_op_name(n->op), v->name, v->nb[0], v->nb[1], v->nb[2]);
    }
    if (n->op == MF_OP_MATMUL)
        plan_matmul(run, n, t);
    else if (n->op == MF_OP_ATTENTION)
        t->n_pieces = mf_cpu_attention_pieces(run, n);
    else
        plan_rows(run, n, t);
    return true;
}

// ---- Matmul

static void run_matmul(const cpu_run *run, const mf_node *n, const cpu_task *t, int32_t piece) {
    const mf_kernels *k = run->device->k;
    const cpu_matrix *m = n->weight->prepared;
    int32_t rows = n_rows(run, n), panels = (int32_t)((n->weight->n_out + MF_PANEL - 1) / MF_PANEL);
    int32_t per_chunk = t->n_pieces / t->row_chunks;
    int32_t row0 = piece / per_chunk * t->rows_per_piece, p0 = piece % per_chunk * t->panels_per_piece;
    int32_t count = rows - row0 < t->rows_per_piece ? rows - row0 : t->rows_per_piece;
    int32_t p1 = p0 + t->panels_per_piece < panels ? p0 + t->panels_per_piece : panels;
    if (count <= 0 || p1 <= p0) return;
    const mf_value *dst = &run->program->values[n->dst];
    float *out = row_at(run, n->dst, row0);
    size_t stride = (size_t)dst->nb[1] / sizeof(float);
    k->matmul[n->weight->type](&m->matrix, row_at(run, n->src[0], row0), row_stride(run, &run->program->values[n->src[0]]),
                               count, p0, p1, out, stride);
    int64_t first = (int64_t)p0 * MF_PANEL,
            end = (int64_t)p1 * MF_PANEL < n->weight->n_out ? (int64_t)p1 * MF_PANEL : n->weight->n_out;
    for (int32_t r = 0; r < count && (n->bias || n->src[1] >= 0); r++) {
        float *y = out + (size_t)r * stride + first;
        if (n->bias) k->add(y, (const float *)n->bias->prepared + first, y, end - first);
        if (n->src[1] >= 0) k->add(y, (const float *)row_at(run, n->src[1], row0 + r) + first, y, end - first);
    }
}

// ---- Operations on one row

typedef struct row_call {
    const cpu_run *run;
    const mf_node *node;
    const mf_kernels *k;
    int32_t row;
    const float *a, *b; // rows of the sources that there are
    float *out;
    int64_t n;      // of a
    float *scratch; // as long as a row of a
} row_call;

// Reports that the row's activation is not finite. What follows from it is not either: the first node in the graph's order stays.
static void report_row(const row_call *c) {
    const mf_value *dst = &c->run->program->values[c->node->dst];
    const mf_step *step = c->run->step;
    // Rows of the output keep their own numbers only before the last layer's rows are picked.
    int32_t *at = &step->row_error[dst->ne[row_dim(dst)] == MF_DIM_OUTS ? step->out_row[c->row] : c->row];
    const int32_t number = (int32_t)(c->node - c->run->program->nodes) + 1;
    int32_t known = __atomic_load_n(at, __ATOMIC_RELAXED);
    while ((known == 0 || known > number) &&
           !__atomic_compare_exchange_n(at, &known, number, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static void quantize_row(const row_call *c, const float *x, int64_t n) {
    const mf_value *dst = &c->run->program->values[c->node->dst];
    bool finite = dst->format == MF_FORMAT_A8_32 ? c->k->quantize_32(x, c->out, n) : c->k->quantize_256(x, c->out, n);
    if (!finite) report_row(c);
}

static void do_get_rows(const row_call *c) {
    const mf_weight *w = c->node->weight;
    if (w) {
        mf_cpu_weight_row(w, c->run->step->token[c->row], c->out);
        // The weights of a matrix that is only gathered are not read before.
        if (!mf_all_finite(MF_TYPE_F32, c->out, (size_t)w->n_in)) report_row(c);
    } else {
        memcpy(c->out, row_at(c->run, c->node->src[0], c->run->step->out_row[c->row]), (size_t)c->n * sizeof(float));
    }
}

static void do_rms_norm(const row_call *c) {
    c->k->rms_norm(c->a, c->node->weight->prepared, c->out, c->n, c->node->u.eps);
    if (!mf_all_finite(MF_TYPE_F32, c->out, (size_t)c->n)) report_row(c); // float weights have no quantized rows, which tell
}

static void do_qk_norm(const row_call *c) {
    int32_t d = c->node->u.qk_norm.head_dim;
    for (int64_t h = 0; h < c->n; h += d)
        c->k->rms_norm(c->a + h, c->node->weight->prepared, c->out + h, d, c->node->u.qk_norm.eps);
}

static void do_add(const row_call *c) { c->k->add(c->a, c->node->weight ? c->node->weight->prepared : c->b, c->out, c->n); }
static void do_mul(const row_call *c) { c->k->mul(c->a, c->b, c->out, c->n); }
static void do_scale(const row_call *c) { c->k->scale(c->a, c->node->u.scale, c->out, c->n); }
static void do_silu(const row_call *c) { c->k->silu(c->a, c->out, c->n); }
static void do_gelu(const row_call *c) { c->k->gelu(c->a, c->out, c->n); }
static void do_softmax(const row_call *c) { c->k->softmax(c->a, c->out, c->n); }
static void do_swiglu(const row_call *c) { c->k->swiglu(c->a, c->b, c->out, c->n); }
static void do_quantize(const row_call *c) { quantize_row(c, c->a, c->n); }

static void do_norm_quantize(const row_call *c) {
    c->k->rms_norm(c->a, c->node->weight->prepared, c->scratch, c->n, c->node->u.eps);
    quantize_row(c, c->scratch, c->n);
}

static void do_swiglu_quantize(const row_call *c) {
    c->k->swiglu(c->a, c->b, c->scratch, c->n);
    quantize_row(c, c->scratch, c->n);
}

static void do_rope_table(const row_call *c) {
    const mf_rope_params *rope = &c->node->u.rope;
    for (int32_t i = 0; i < rope->n_dims / 2; i++) {
        double sin_value, cos_value;
        mf_sincos64((double)c->run->step->pos[c->row] * rope->inv_freq[i], &sin_value, &cos_value);
        c->out[2 * i] = (float)(cos_value * rope->magnitude);
        c->out[2 * i + 1] = (float)(sin_value * rope->magnitude);
    }
}

static void rope_row(const row_call *c, const float *table, float *out) {
    const mf_value *x = &c->run->program->values[c->node->src[0]];
    c->k->rope(c->a, table, out, (int32_t)x->ne[1], (int32_t)x->ne[0], c->node->u.rope.n_dims, c->node->u.rope.interleaved);
}

static void do_rope(const row_call *c) { rope_row(c, c->b, c->out); }

static void store_row(const row_call *c, const float *k) {
    const mf_step *step = c->run->step;
    if (step->stored[c->row]) return;
    int32_t cell = step->cell[c->row];
    int32_t block = step->table[step->seq[c->row]][cell / MF_KV_BLOCK];
    c->k->kv_store(step->kv, c->node->layer, block, cell % MF_KV_BLOCK, k, c->b);
}

static void do_kv_store(const row_call *c) { store_row(c, c->a); }

static void do_rope_store(const row_call *c) {
    rope_row(c, row_at(c->run, c->node->src[2], c->row), c->scratch);
    store_row(c, c->scratch);
}

// Copies any strides: what a permuted source is good for.
static void copy_strided(const cpu_run *run, mf_ref ref, int32_t row, float *out, int64_t n_out0) {
    const mf_value *v = &run->program->values[ref];
    int d = row_dim(v);
    const char *base = (const char *)mf_value_data(run->program, ref) + row * v->nb[d];
    int64_t ne2 = d > 2 ? v->ne[2] : 1, ne1 = d > 1 ? v->ne[1] : 1;
    for (int64_t k = 0; k < ne2; k++)
        for (int64_t j = 0; j < ne1; j++)
            for (int64_t i = 0; i < v->ne[0]; i++)
                memcpy(&out[(k * ne1 + j) * n_out0 + i],
                       base + i * v->nb[0] + j * v->nb[1] * (d > 1) + k * v->nb[2] * (d > 2), sizeof(float));
}

static void do_concat(const row_call *c) {
    const mf_value *values = c->run->program->values;
    int64_t n_out0 = values[c->node->dst].ne[0];
    copy_strided(c->run, c->node->src[0], c->row, c->out, n_out0);
    copy_strided(c->run, c->node->src[1], c->row, c->out + values[c->node->src[0]].ne[0], n_out0);
}

static void (*const row_ops[MF_OP_COUNT])(const row_call *) = {
    [MF_OP_GET_ROWS] = do_get_rows,
    [MF_OP_RMS_NORM] = do_rms_norm,
    [MF_OP_QK_NORM] = do_qk_norm,
    [MF_OP_ADD] = do_add,
    [MF_OP_MUL] = do_mul,
    [MF_OP_SCALE] = do_scale,
    [MF_OP_SILU] = do_silu,
    [MF_OP_GELU] = do_gelu,
    [MF_OP_SOFTMAX] = do_softmax,
    [MF_OP_ROPE_TABLE] = do_rope_table,
    [MF_OP_ROPE] = do_rope,
    [MF_OP_KV_STORE] = do_kv_store,
    [MF_OP_QUANTIZE] = do_quantize,
    [MF_OP_CONCAT] = do_concat,
    [MF_OP_SWIGLU] = do_swiglu,
    [MF_OP_ROPE_STORE] = do_rope_store,
    [MF_OP_NORM_QUANTIZE] = do_norm_quantize,
    [MF_OP_SWIGLU_QUANTIZE] = do_swiglu_quantize,
};

static void run_rows(const cpu_run *run, const mf_node *n, const cpu_task *t, int32_t piece, int worker) {
    const mf_value *values = run->program->values;
    int32_t rows = n_rows(run, n), first = piece * t->rows_per_piece;
    int32_t end = first + t->rows_per_piece < rows ? first + t->rows_per_piece : rows;
    bool by_row = !(n->op == MF_OP_GET_ROWS); // its source's rows are not the result's
    row_call c = {.run = run,
                  .node = n,
                  .k = run->device->k,
                  .scratch = run->device->scratch.worker + (size_t)worker * run->device->scratch.worker_floats};
    c.n = n->src[0] >= 0 ? row_len(&values[n->src[0]]) : row_len(&values[n->dst]);
    for (c.row = first; c.row < end; c.row++) {
        if (by_row && n->src[0] >= 0) c.a = row_at(run, n->src[0], c.row);
        if (by_row && n->src[1] >= 0) c.b = row_at(run, n->src[1], c.row);
        c.out = row_at(run, n->dst, c.row);
        row_ops[n->op](&c);
    }
}

void mf_cpu_run_piece(const cpu_run *run, const mf_node *n, const cpu_task *t, int32_t piece, int worker) {
    if (n->op == MF_OP_MATMUL)
        run_matmul(run, n, t, piece);
    else if (n->op == MF_OP_ATTENTION)
        mf_cpu_attention_piece(run, n, piece, worker);
    else
        run_rows(run, n, t, piece, worker);
}
