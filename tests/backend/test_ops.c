// The table operation x type x backend: every cell that a backend says it supports runs in a graph of its own, on every kernel row this
// machine has, and is compared with a reference in double precision. A supported cell without a case is a failure.
#include "backend/backends.h"
#include "backend/cpu/kernels.h"
#include "backend/op_cases_kv.h"
#include "backend/op_reference.h"
#include "backend/op_rig.h"
#include "backend/op_rows.h"

#define EPS 1e-5F

// ---- Rows

static void case_get_rows(rig *r, const mf_op_types *t) {
    if (!t->has_weight) {
        rig_input x = rig_rows(r, 96);
        for (int32_t i = 0; i < r->n_rows; i += 2) r->out_row[r->n_outs++] = i;
        const float *y = rig_run(r, mf_graph_output_rows(&r->g, x.ref, "y"), 0, MF_OP_GET_ROWS);
        for (int32_t o = 0; o < r->n_outs; o++) assert_memory_equal(y + o * 96, rig_x(r, x, r->out_row[o]), 96 * sizeof *y);
        return;
    }
    // A matrix may be an embedding alone, or the head too (then devices keep it in their own layout). Both decode to the bit.
    unsigned uses = r->n_rows % 2 ? MF_USE_GATHER : MF_USE_GATHER | MF_USE_MATMUL;
    mf_weight *w = rig_weight(r, t->weight, 512, RIG_TOKENS, uses);
    const float *y = rig_run(r, mf_graph_get_rows(&r->g, w, "y"), 0, MF_OP_GET_ROWS);
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int64_t j = 0; j < 512; j++) rig_near(r, i, j, y[i * 512 + j], (double)rig_weight_row(r, w, r->token[i])[j], 0);
}

static void case_rms_norm(rig *r, const mf_op_types *t) {
    double want[100];
    rig_input x = rig_rows(r, 100);
    mf_weight *w = rig_vector(r, t->weight, 100);
    const float *y = rig_run(r, mf_graph_rms_norm(&r->g, x.ref, w, EPS, "y"), 0, MF_OP_RMS_NORM);
    for (int32_t i = 0; i < r->n_rows; i++) {
        ref_rms_norm(rig_x(r, x, i), rig_weight_row(r, w, 0), 100, (double)EPS, want);
        for (int j = 0; j < 100; j++) rig_near(r, i, j, y[i * 100 + j], want[j], 2e-6 * fabs(want[j]));
    }
}

static void case_qk_norm(rig *r, const mf_op_types *t) {
    double want[32];
    rig_input x = rig_rows(r, 96);
    mf_weight *w = rig_vector(r, t->weight, 32);
    const float *y =
        rig_run(r, mf_graph_qk_norm(&r->g, mf_graph_heads(&r->g, x.ref, 32, "h"), w, EPS, "y"), 0, MF_OP_QK_NORM);
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int h = 0; h < 3; h++) {
            ref_rms_norm(rig_x(r, x, i) + 32 * h, rig_weight_row(r, w, 0), 32, (double)EPS, want);
            for (int j = 0; j < 32; j++) rig_near(r, i, 32 * h + j, y[i * 96 + 32 * h + j], want[j], 2e-6 * fabs(want[j]));
        }
}

// ---- Matmul

#define N_OUT 37 // not a whole number of panels
#define N_IN  512

typedef struct matmul_case {
    rig_input x, residual;
    const mf_weight *w, *bias;
    mf_format format;
} matmul_case;

// One row: against the sums over activations as they are quantized, closely; against the plain ones, within what half a step of
// each activation can do.
static void check_matmul_row(rig *r, const matmul_case *m, int32_t row, const float *y) {
    double q[N_IN], step[N_IN];
    const float *x = rig_x(r, m->x, row);
    if (m->format == MF_FORMAT_F32)
        for (int k = 0; k < N_IN; k++) q[k] = (double)x[k], step[k] = 0;
    else
        ref_int8(x, N_IN, m->format == MF_FORMAT_A8_32 ? 32 : 256, q, step);
    for (int n = 0; n < N_OUT; n++) {
        const float *w = rig_weight_row(r, m->w, n);
        double sum = 0, plain = 0, size = 0, loss = 0;
        for (int k = 0; k < N_IN; k++) {
            sum += (double)w[k] * q[k], plain += (double)w[k] * (double)x[k];
            size += fabs((double)w[k] * q[k]), loss += fabs((double)w[k]) * step[k] / 2;
        }
        double more = (m->bias ? (double)rig_weight_row(r, m->bias, 0)[n] : 0) +
                      (m->residual.w ? (double)rig_x(r, m->residual, row)[n] : 0);
        double tolerance = 4e-6 * (size + fabs(more)) + 1e-6;
        rig_near(r, row, n, y[n], sum + more, tolerance);
        rig_near(r, row, n, y[n], plain + more, 1.001 * loss + tolerance);
    }
}

static void case_matmul(rig *r, const mf_op_types *t) {
    for (int variant = 0; variant < 4; variant++) { // with a bias, with a residual, with both; fused into one node
        matmul_case m = {.x = rig_rows(r, N_IN), .format = t->src};
        m.w = rig_weight(r, t->weight, N_IN, N_OUT, MF_USE_MATMUL);
        mf_ref y = mf_graph_matmul(&r->g, m.w, m.x.ref, "y");
        if (variant & 1) m.bias = rig_vector(r, MF_TYPE_F32, N_OUT), y = mf_graph_add_bias(&r->g, y, m.bias, "biased");
        if (variant & 2) m.residual = rig_rows(r, N_OUT), y = mf_graph_add(&r->g, m.residual.ref, y, "sum");
        const float *out = rig_run(r, y, MF_FUSE_ALL, MF_OP_MATMUL);
        assert_int_equal(rig_made_by(mf_graph_exec_graph(r->exec), MF_OP_ADD), -1);
        for (int32_t row = 0; row < r->n_rows; row++) check_matmul_row(r, &m, row, out + row * N_OUT);
        int32_t rows = r->n_rows;
        rig_end(r);
        rig_begin(r, rows);
    }
}

// ---- Element by element

static void case_add(rig *r, const mf_op_types *t) {
    rig_input a = rig_rows(r, 75), b = {0};
    const mf_weight *bias = NULL;
    mf_ref sum;
    if (t->has_weight)
        bias = rig_vector(r, t->weight, 75), sum = mf_graph_add_bias(&r->g, a.ref, bias, "y");
    else
        b = rig_rows(r, 75), sum = mf_graph_add(&r->g, a.ref, b.ref, "y");
    const float *y = rig_run(r, sum, 0, MF_OP_ADD);
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int j = 0; j < 75; j++) {
            double other = (double)(bias ? rig_weight_row(r, bias, 0)[j] : rig_x(r, b, i)[j]);
            rig_near(r, i, j, y[i * 75 + j], (double)(float)((double)rig_x(r, a, i)[j] + other), 0);
        }
}

static void case_mul(rig *r, const mf_op_types *t) {
    (void)t;
    rig_input a = rig_rows(r, 75), b = rig_rows(r, 75);
    const float *y = rig_run(r, mf_graph_mul(&r->g, a.ref, b.ref, "y"), 0, MF_OP_MUL);
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int j = 0; j < 75; j++)
            rig_near(r, i, j, y[i * 75 + j], (double)(float)((double)rig_x(r, a, i)[j] * (double)rig_x(r, b, i)[j]), 0);
}

static void case_scale(rig *r, const mf_op_types *t) {
    (void)t;
    rig_input a = rig_rows(r, 75);
    const float *y = rig_run(r, mf_graph_scale(&r->g, a.ref, 0.3F, "y"), 0, MF_OP_SCALE);
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int j = 0; j < 75; j++)
            rig_near(r, i, j, y[i * 75 + j], (double)(float)((double)rig_x(r, a, i)[j] * (double)0.3F), 0);
}

static void check_unary(rig *r, rig_input a, const float *y, double (*f)(double)) {
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int j = 0; j < 75; j++) {
            double want = f((double)rig_x(r, a, i)[j]);
            rig_near(r, i, j, y[i * 75 + j], want, 1e-6 * fabs(want) + 3e-7);
        }
}

static void case_silu(rig *r, const mf_op_types *t) {
    (void)t;
    rig_input a = rig_rows(r, 75);
    check_unary(r, a, rig_run(r, mf_graph_silu(&r->g, a.ref, "y"), 0, MF_OP_SILU), ref_silu);
}

static void case_gelu(rig *r, const mf_op_types *t) {
    (void)t;
    rig_input a = rig_rows(r, 75);
    check_unary(r, a, rig_run(r, mf_graph_gelu(&r->g, a.ref, "y"), 0, MF_OP_GELU), ref_gelu);
}

static void case_softmax(rig *r, const mf_op_types *t) {
    (void)t;
    double x[75], want[75];
    rig_input a = rig_rows(r, 75);
    const float *y = rig_run(r, mf_graph_softmax(&r->g, a.ref, "y"), 0, MF_OP_SOFTMAX);
    for (int32_t i = 0; i < r->n_rows; i++) {
        for (int j = 0; j < 75; j++) x[j] = (double)rig_x(r, a, i)[j];
        ref_softmax(x, 75, want);
        for (int j = 0; j < 75; j++) rig_near(r, i, j, y[i * 75 + j], want[j], 2e-6 * want[j]);
    }
}

static mf_ref gated(rig *r, rig_input gate, rig_input up) {
    return mf_graph_mul(&r->g, mf_graph_silu(&r->g, gate.ref, "silu"), up.ref, "gated");
}

static void case_swiglu(rig *r, const mf_op_types *t) {
    (void)t;
    rig_input gate = rig_rows(r, 75), up = rig_rows(r, 75);
    const float *y = rig_run(r, gated(r, gate, up), MF_FUSE_FFN, MF_OP_SWIGLU);
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int j = 0; j < 75; j++) {
            double want = ref_silu((double)rig_x(r, gate, i)[j]) * (double)rig_x(r, up, i)[j];
            rig_near(r, i, j, y[i * 75 + j], want, 1e-6 * fabs(want) + 1e-6);
        }
}

// ---- To int8. The quantized value itself is read back, from before a matmul of a type that takes it.

typedef void row_reference(rig *r, const void *arg, int32_t row, double *want);

// Activations as rig_rows, multiplied by 4 in a node of their own, where a large number overflows.
static rig_input growing_rows(rig *r) {
    rig_input x = rig_rows(r, N_IN);
    x.ref = mf_graph_scale(&r->g, x.ref, 4, "grown");
    for (int64_t i = 0; i < N_IN * RIG_TOKENS; i++) r->decoded[x.w - r->weights][i] *= 4;
    return x;
}

// The first node that is not finite in the rows of one token is reported there; the other rows have none.
static void check_report(rig *r, float value, int32_t node) {
    const int32_t bad = r->token[r->n_rows - 1];
    ((float *)r->weights[0].file)[bad * N_IN + 3] = value;
    memset(r->row_error, 0, sizeof r->row_error);
    rig_step(r);
    for (int32_t i = 0; i < r->n_rows; i++) assert_int_equal(r->row_error[i], r->token[i] == bad ? node + 1 : 0);
}

static void check_infinite_row(rig *r) {
    const mf_graph *g = mf_graph_exec_graph(r->exec);
    int32_t output = 0, gathered = 0;
    while (g->nodes.data[output].dst != g->output) output++;
    while (g->nodes.data[gathered].weight != &r->weights[0]) gathered++;
    check_report(r, 3e38F, output);
    check_report(r, INFINITY, gathered);
}

// x comes from the first weight of the rig.
static void check_int8(rig *r, const mf_op_types *t, mf_ref x, mf_op op, row_reference *reference, const void *arg) {
    mf_type type = t->dst == MF_FORMAT_A8_32 ? MF_TYPE_Q8_0 : MF_TYPE_Q6_K;
    const mf_device *d = rig_device(r);
    if (!d->class->decode_row) {
        print_message("SKIP %s: its int8 rows are opaque\n", r->context);
        return;
    }
    rig_compile(r, mf_graph_matmul(&r->g, rig_weight(r, type, N_IN, N_OUT, MF_USE_MATMUL), x, "y"), MF_FUSE_ALL, op, true);
    const char *rows = rig_step(r);
    const int group = t->dst == MF_FORMAT_A8_32 ? 32 : 256;
    double want[N_IN];
    float got[N_IN];
    for (int32_t i = 0; i < r->n_rows; i++) {
        assert_int_equal(r->row_error[i], 0);
        reference(r, arg, i, want);
        d->class->decode_row(d, t->dst, rows + (size_t)i * d->class->row_bytes(d, t->dst, N_IN), N_IN, got);
        for (int g = 0; g < N_IN; g += group) {
            double amax = 0;
            for (int j = g; j < g + group; j++) amax = fmax(amax, fabs(want[j]));
            // Half a step, and the float's own error: it may fall on the other side of a tie.
            for (int j = g; j < g + group; j++) rig_near(r, i, j, got[j], want[j], amax / 127 * 0.501 + 2e-6 * amax);
        }
    }
    check_infinite_row(r);
}

static void plain_row(rig *r, const void *arg, int32_t row, double *want) {
    const rig_input *x = arg;
    for (int j = 0; j < N_IN; j++) want[j] = (double)rig_x(r, *x, row)[j];
}

static void case_quantize(rig *r, const mf_op_types *t) {
    rig_input x = growing_rows(r);
    check_int8(r, t, x.ref, MF_OP_QUANTIZE, plain_row, &x);
}

typedef struct norm_arg {
    rig_input x;
    const mf_weight *w;
} norm_arg;

static void norm_row(rig *r, const void *arg, int32_t row, double *want) {
    const norm_arg *a = arg;
    ref_rms_norm(rig_x(r, a->x, row), rig_weight_row(r, a->w, 0), N_IN, (double)EPS, want);
}

static void case_norm_quantize(rig *r, const mf_op_types *t) {
    norm_arg a = {.x = growing_rows(r)};
    a.w = rig_vector(r, t->weight, N_IN);
    check_int8(r, t, mf_graph_rms_norm(&r->g, a.x.ref, a.w, EPS, "n"), MF_OP_NORM_QUANTIZE, norm_row, &a);
}

static void gated_row(rig *r, const void *arg, int32_t row, double *want) {
    const rig_input *x = arg;
    for (int j = 0; j < N_IN; j++) want[j] = ref_silu((double)rig_x(r, x[0], row)[j]) * (double)rig_x(r, x[1], row)[j];
}

static void case_swiglu_quantize(rig *r, const mf_op_types *t) {
    rig_input x[2];
    for (int i = 0; i < 2; i++) x[i] = growing_rows(r);
    check_int8(r, t, gated(r, x[0], x[1]), MF_OP_SWIGLU_QUANTIZE, gated_row, x);
}

// ---- Shapes. Views do no work: what reads them shows them.

static void case_view(rig *r, const mf_op_types *t) {
    (void)t;
    rig_input x = rig_rows(r, 75);
    const float *y = rig_run(r, mf_graph_scale(&r->g, mf_graph_columns(&r->g, x.ref, 5, 33, "v"), 1, "y"), 0, MF_OP_VIEW);
    for (int32_t i = 0; i < r->n_rows; i++) assert_memory_equal(y + i * 33, rig_x(r, x, i) + 5, 33 * sizeof *y);
}

static void case_reshape(rig *r, const mf_op_types *t) {
    (void)t;
    rig_input x = rig_rows(r, 96);
    const float *y = rig_run(r, mf_graph_scale(&r->g, mf_graph_heads(&r->g, x.ref, 24, "h"), 1, "y"), 0, MF_OP_RESHAPE);
    for (int32_t i = 0; i < r->n_rows; i++) assert_memory_equal(y + i * 96, rig_x(r, x, i), 96 * sizeof *y);
}

// [24][4][rows] with its first two dimensions exchanged, then [3][24][rows], along the innermost.
static void case_concat(rig *r, const mf_op_types *t) {
    (void)t;
    rig_input a = rig_rows(r, 96), b = rig_rows(r, 72);
    mf_ref turned = mf_graph_permute(&r->g, mf_graph_heads(&r->g, a.ref, 24, "h"), (int[4]){1, 0, 2, 3}, "p");
    mf_ref y = mf_graph_concat(&r->g, turned, mf_graph_heads(&r->g, b.ref, 3, "b"), "y");
    const float *out = rig_run(r, y, 0, MF_OP_CONCAT);
    for (int32_t i = 0; i < r->n_rows; i++)
        for (int h = 0; h < 24; h++)
            for (int j = 0; j < 7; j++) {
                double want = (double)(j < 4 ? rig_x(r, a, i)[j * 24 + h] : rig_x(r, b, i)[h * 3 + j - 4]);
                rig_near(r, i, h * 7 + j, out[i * 168 + h * 7 + j], want, 0);
            }
}

static void case_permute(rig *r, const mf_op_types *t) { case_concat(r, t); }

// ---- The table

typedef void op_case(rig *r, const mf_op_types *t);

static op_case *const cases[MF_OP_COUNT] = {
    [MF_OP_GET_ROWS] = case_get_rows,
    [MF_OP_RMS_NORM] = case_rms_norm,
    [MF_OP_QK_NORM] = case_qk_norm,
    [MF_OP_MATMUL] = case_matmul,
    [MF_OP_ADD] = case_add,
    [MF_OP_MUL] = case_mul,
    [MF_OP_SCALE] = case_scale,
    [MF_OP_SILU] = case_silu,
    [MF_OP_GELU] = case_gelu,
    [MF_OP_SOFTMAX] = case_softmax,
    [MF_OP_ROPE_TABLE] = case_rope_table,
    [MF_OP_ROPE] = case_rope,
    [MF_OP_KV_STORE] = case_kv_store,
    [MF_OP_ATTENTION] = case_attention,
    [MF_OP_QUANTIZE] = case_quantize,
    [MF_OP_CONCAT] = case_concat,
    [MF_OP_VIEW] = case_view,
    [MF_OP_RESHAPE] = case_reshape,
    [MF_OP_PERMUTE] = case_permute,
    [MF_OP_SWIGLU] = case_swiglu,
    [MF_OP_ROPE_STORE] = case_rope_store,
    [MF_OP_NORM_QUANTIZE] = case_norm_quantize,
    [MF_OP_SWIGLU_QUANTIZE] = case_swiglu_quantize,
};

static const int32_t row_counts[] = {1, 7, RIG_ROWS};

typedef struct target { // a device under test
    char name[48];
    mf_device *device;
} target;

static target targets[16];
static int n_targets;

static void run_cell(const target *on, mf_op op, const mf_op_types *t) {
    if (!cases[op]) fail_msg("%s supports %s, which has no case here", on->name, mf_op_name(op));
    for (size_t i = 0; i < sizeof row_counts / sizeof row_counts[0]; i++) {
        rig r = {.devices = {{on->device}, 1}};
        snprintf(r.context, sizeof r.context, "%.30s %.20s (%.8s to %.8s, weight %.8s, cells %.8s), %d rows", on->name,
                 mf_op_name(op), mf_format_name(t->src), mf_format_name(t->dst),
                 t->has_weight ? mf_type_name(t->weight) : "none", mf_type_name(t->kv), row_counts[i]);
        rig_begin(&r, row_counts[i]);
        r.kv_type = t->kv;
        cases[op](&r, t);
        rig_end(&r);
    }
}

static void every_supported_cell_agrees_with_its_reference(void **state) {
    const mf_op op = *(const mf_op *)*state;
    mf_op_types cells[OP_MAX_CELLS];
    size_t n = op_cells(op, cells);
    for (int on = 0; on < n_targets; on++) {
        int ran = 0;
        for (size_t i = 0; i < n; i++) {
            if (!targets[on].device->class->supports(targets[on].device, op, &cells[i])) continue;
            run_cell(&targets[on], op, &cells[i]);
            ran++;
        }
        print_message("%-15s %s: %d cells\n", mf_op_name(op), targets[on].name, ran);
    }
}

// ---- What this machine has

static void add_target(const mf_device_class *class, const char *row) {
    mf_error err = {0};
    target *t = &targets[n_targets];
    snprintf(t->name, sizeof t->name, "%s%s%s", class->name, row ? "/" : "", row ? row : "");
    t->device = class->open(&(mf_device_options){2, row}, &err);
    if (t->device)
        n_targets++;
    else
        print_message("SKIP %s: %s\n", t->name, err.text);
}

static int open_targets(void **state) {
    (void)state;
    size_t n;
    const mf_device_entry *known = mf_backends(&n);
    for (size_t i = 0; i < n; i++) {
        if (!known[i].class)
            print_message("SKIP %s: not compiled into this program\n", known[i].name);
        else if (strcmp(known[i].name, "cpu") != 0)
            add_target(known[i].class, NULL);
        else
            for (const mf_kernels *const *k = mf_kernels_all(); *k; k++) add_target(known[i].class, (*k)->name);
    }
    return 0;
}

static int close_targets(void **state) {
    (void)state;
    for (int i = 0; i < n_targets; i++) targets[i].device->class->close(targets[i].device);
    return 0;
}

int main(void) {
    static mf_op ops[MF_OP_COUNT];
    static struct CMUnitTest tests[MF_OP_COUNT];
    for (int i = 0; i < MF_OP_COUNT; i++) {
        ops[i] = (mf_op)i;
        tests[i] =
            (struct CMUnitTest){mf_op_name(ops[i]), every_supported_cell_agrees_with_its_reference, NULL, NULL, &ops[i]};
    }
    return cmocka_run_group_tests(tests, open_targets, close_targets);
}
