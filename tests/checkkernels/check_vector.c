// Norms, softmax, elementwise kernels, rope, the stores into the cache and the sampler's kernels.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkkernels/checkkernels.h"
#include "kv/cells.h"

// Every shape of a row: all lengths around the sixteen lanes, then long ones.
static const int64_t long_rows[] = {127, 128, 576, 1000, 4864, 9999};
enum {
    SHORT_ROWS = 70,
    ROWS = SHORT_ROWS + sizeof long_rows / sizeof *long_rows
};

static int64_t row_length(int i) { return i < SHORT_ROWS ? i + 1 : long_rows[i - SHORT_ROWS]; }

// Activations as they are near the interesting places of exp: around ±87, ±88.7 and 0.
static void fill_exponents(check *c, float *x, size_t n) {
    static const float near[] = {0.0f, -87.0f, 88.72283f, -88.72283f, 87.0f, 88.0f, -104.0f, 0.34657359f};
    for (size_t i = 0; i < n; i++) {
        float at = near[check_below(c, (int)(sizeof near / sizeof *near))];
        x[i] = check_below(c, 2) ? at + check_uniform(c, -1e-4f, 1e-4f) : check_uniform(c, -110.0f, 110.0f);
    }
}

enum {
    KINDS = CHECK_KINDS + 1
};

static void fill(check *c, float *x, size_t n, int kind) {
    if (kind == CHECK_KINDS)
        fill_exponents(c, x, n);
    else
        check_fill(c, x, n, (check_kind)kind);
}

static const char *kind_name(int kind) { return kind == CHECK_KINDS ? "exponents" : check_kind_name((check_kind)kind); }

// A function of one row (b is NULL where it takes none): unlike signatures behind one.
typedef void row_fn(const mf_kernels *k, const float *a, const float *b, float *out, int64_t n);

static void run_norm(const mf_kernels *k, const float *a, const float *b, float *out, int64_t n) {
    k->rms_norm(a, b, out, n, 1e-6f);
}
static void run_softmax(const mf_kernels *k, const float *a, const float *b, float *out, int64_t n) {
    (void)b;
    k->softmax(a, out, n);
}
static void run_add(const mf_kernels *k, const float *a, const float *b, float *out, int64_t n) { k->add(a, b, out, n); }
static void run_mul(const mf_kernels *k, const float *a, const float *b, float *out, int64_t n) { k->mul(a, b, out, n); }
static void run_scale(const mf_kernels *k, const float *a, const float *b, float *out, int64_t n) {
    k->scale(a, b[0], out, n);
}
static void run_silu(const mf_kernels *k, const float *a, const float *b, float *out, int64_t n) {
    (void)b;
    k->silu(a, out, n);
}
static void run_gelu(const mf_kernels *k, const float *a, const float *b, float *out, int64_t n) {
    (void)b;
    k->gelu(a, out, n);
}
static void run_swiglu(const mf_kernels *k, const float *a, const float *b, float *out, int64_t n) {
    k->swiglu(a, b, out, n);
}

static const struct row_case {
    const char *name;
    row_fn *run;
} row_cases[] = {
    {"rms_norm", run_norm}, {"softmax", run_softmax}, {"add", run_add},   {"mul", run_mul},
    {"scale", run_scale},   {"silu", run_silu},       {"gelu", run_gelu}, {"swiglu", run_swiglu},
};
enum {
    ROW_CASES = sizeof row_cases / sizeof *row_cases
};

// Into a buffer of its own, then in place over a, then over b.
static void check_row(check *c, const struct row_case *f, int64_t n, int kind) {
    size_t size = (size_t)n;
    float *a = check_float_buffer(c, size), *b = check_float_buffer(c, size);
    float *ref = check_float_buffer(c, size), *got = check_float_buffer(c, size);
    fill(c, a, size, kind);
    fill(c, b, size, kind);
    f->run(c->ref, a, b, ref, n);
    f->run(c->row, a, b, got, n);
    check_floats(c, ref, got, size, "n %lld, %s", (long long)n, kind_name(kind));
    memcpy(got, a, size * sizeof *a);
    f->run(c->row, got, b, got, n);
    check_floats(c, ref, got, size, "n %lld, %s, in place", (long long)n, kind_name(kind));
    if (f->run != run_add && f->run != run_mul && f->run != run_swiglu) return;
    f->run(c->row, a, b, b, n);
    check_floats(c, ref, b, size, "n %lld, %s, over the second", (long long)n, kind_name(kind));
}

static void check_rows(check *c) {
    for (int i = 0; i < ROW_CASES; i++) {
        if (!check_begin(c, row_cases[i].name)) continue;
        for (int shape = 0; shape < ROWS; shape++) {
            for (int kind = 0; kind < KINDS; kind++) {
                check_row(c, &row_cases[i], row_length(shape), kind);
                check_free_buffers(c);
            }
        }
        check_end(c);
    }
}

// The exp that the elementwise kernels share, through silu: every exponent and many fractions.
static void check_exp(check *c) {
    if (!check_begin(c, "exp (bit patterns)")) return;
    enum {
        STEP = 9973,
        N = 4096
    };
    float *x = check_float_buffer(c, N), *ref = check_float_buffer(c, N), *got = check_float_buffer(c, N);
    uint32_t bits = (uint32_t)check_below(c, STEP);
    for (int round = 0; round < 105; round++) {
        for (int i = 0; i < N; i++, bits += STEP) memcpy(&x[i], &bits, 4);
        c->ref->silu(x, ref, N);
        c->row->silu(x, got, N);
        check_floats(c, ref, got, N, "from bits %08x", bits);
    }
    check_end(c);
}

static void check_rope_shape(check *c, int32_t n_head, int32_t head_dim, int32_t n_dims, bool interleaved, check_kind kind) {
    size_t n = (size_t)n_head * (size_t)head_dim;
    float *x = check_float_buffer(c, n), *table = check_float_buffer(c, (size_t)n_dims);
    float *ref = check_float_buffer(c, n), *got = check_float_buffer(c, n);
    check_fill(c, x, n, kind);
    check_fill(c, table, (size_t)n_dims, CHECK_PLAIN);
    c->ref->rope(x, table, ref, n_head, head_dim, n_dims, interleaved);
    c->row->rope(x, table, got, n_head, head_dim, n_dims, interleaved);
    const char *order = interleaved ? "interleaved" : "halves";
    check_floats(c, ref, got, n, "%d heads of %d, %d turn, %s, %s", n_head, head_dim, n_dims, order, check_kind_name(kind));
    c->ref->rope(x, table, x, n_head, head_dim, n_dims, interleaved);
    check_floats(c, ref, x, n, "%d heads of %d, %d turn, %s, reference in place", n_head, head_dim, n_dims, order);
    check_fill(c, x, n, kind);
    c->ref->rope(x, table, ref, n_head, head_dim, n_dims, interleaved);
    c->row->rope(x, table, x, n_head, head_dim, n_dims, interleaved);
    check_floats(c, ref, x, n, "%d heads of %d, %d turn, %s, in place", n_head, head_dim, n_dims, order);
    check_free_buffers(c);
}

static void check_rope(check *c) {
    if (!check_begin(c, "rope")) return;
    static const int32_t dims[] = {2, 4, 16, 30, 32, 34, 64, 66, 80, 96, 128, 256};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        for (int kind = 0; kind < CHECK_KINDS; kind++) {
            for (int order = 0; order < 2; order++) {
                check_rope_shape(c, 3, dims[i], dims[i], order, (check_kind)kind);
                check_rope_shape(c, 2, dims[i] + 2 * check_below(c, 20), dims[i], order, (check_kind)kind);
            }
        }
    }
    check_end(c);
}

static void check_store_shape(check *c, mf_type type, int32_t n_head, int32_t head_dim, check_kind kind) {
    size_t half = mf_kv_half_bytes(type, head_dim);
    mf_kv_view kv = {
        .type = type, .n_layer = 2, .n_head_kv = n_head, .head_dim = head_dim, .v_offset = half, .head_stride = 2 * half};
    kv.layer_stride = (size_t)n_head * kv.head_stride;
    kv.block_stride = 2 * kv.layer_stride;
    size_t bytes = 3 * kv.block_stride, n = (size_t)n_head * (size_t)head_dim;
    uint8_t *ref = check_buffer(c, bytes), *got = check_buffer(c, bytes);
    float *k = check_float_buffer(c, n), *v = check_float_buffer(c, n);
    for (int i = 0; i < 6; i++) {
        int32_t layer = check_below(c, 2), block = check_below(c, 3), slot = i < 2 ? 63 * i : check_below(c, MF_KV_BLOCK);
        check_fill(c, k, n, kind);
        check_fill(c, v, n, kind);
        kv.base = ref;
        c->ref->kv_store(&kv, layer, block, slot, k, v);
        kv.base = got;
        c->row->kv_store(&kv, layer, block, slot, k, v);
    }
    check_bytes(c, ref, got, bytes, "type %d, %d heads of %d, %s", (int)type, n_head, head_dim, check_kind_name(kind));
    check_free_buffers(c);
}

static void check_store(check *c) {
    if (!check_begin(c, "kv_store")) return;
    static const int32_t dims[] = {2, 14, 16, 18, 64, 80, 96, 100, 128, 256, 512};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        for (int kind = 0; kind < CHECK_KINDS; kind++) {
            check_store_shape(c, MF_TYPE_F16, 1 + check_below(c, 3), dims[i], (check_kind)kind);
            check_store_shape(c, MF_TYPE_F32, 1 + check_below(c, 3), dims[i], (check_kind)kind);
            if (mf_kv_width_fits(MF_TYPE_Q8_0, dims[i]))
                check_store_shape(c, MF_TYPE_Q8_0, 1 + check_below(c, 3), dims[i], (check_kind)kind);
        }
    }
    check_end(c);
}

void check_vector(check *c) {
    check_rows(c);
    check_exp(c);
    check_rope(c);
    check_store(c);
}

typedef struct row_bench {
    const mf_kernels *k;
    row_fn *run;
    const float *a, *b;
    float *out;
    int64_t n;
} row_bench;

static void run_row_bench(void *arg) {
    const row_bench *b = arg;
    b->run(b->k, b->a, b->b, b->out, b->n);
}

void bench_vector(check *c) {
    enum {
        N = 4096
    };
    for (int i = 0; i < ROW_CASES; i++) {
        if (!check_begin(c, row_cases[i].name)) continue;
        float *a = check_float_buffer(c, N), *b = check_float_buffer(c, N), *out = check_float_buffer(c, N);
        check_fill(c, a, N, CHECK_PLAIN);
        check_fill(c, b, N, CHECK_PLAIN);
        row_bench bench = {c->row, row_cases[i].run, a, b, out, N};
        double seconds = check_time(run_row_bench, &bench);
        printf("  %-10s %8.3f ns an element (%d elements)\n", row_cases[i].name, seconds * 1e9 / N, (int)N);
        check_end(c);
    }
}
