// The quantizers of activations.
#include <stdio.h>
#include <string.h>

#include "checkkernels/checkkernels.h"

typedef bool quantize_fn(const float *x, void *row, int64_t n);

// Values that sit on the definition's corners: ties of the rounding, the largest magnitude in each place, the tiny bound.
static void fill_corner(check *c, float *x, size_t n, int which) {
    const float tiny = 0x1p-120f, under = 0x1.fffffep-121f;
    for (size_t i = 0; i < n; i++) {
        const float sign = check_random(c) & 1 ? -1.0f : 1.0f;
        switch (which) {
        case 0: x[i] = sign * ((float)check_below(c, 127) + 0.5f); break; // ties once a 127 is there
        case 1: x[i] = sign * 0x1.fffffep127f; break;
        case 2: x[i] = sign * (check_below(c, 2) ? tiny : under); break;
        case 3: x[i] = sign * under; break;
        default: x[i] = check_below(c, 32) ? 0 : sign; break;
        }
        if (which == 0 && i % 32 == 5) x[i] = 127;
    }
}

#define CORNERS 5

static void check_one(check *c, quantize_fn *ref, quantize_fn *got, mf_format format, const float *x, int64_t n,
                      const char *kind) {
    const size_t bytes = mf_act_row_bytes(format, n);
    uint8_t *a = check_buffer(c, bytes), *b = check_buffer(c, bytes);
    const bool finite = ref(x, a, n);
    check_true(c, got(x, b, n) == finite, "n %d, %s: finite or not", (int)n, kind);
    check_bytes(c, a, b, bytes, "n %d, %s", (int)n, kind);
}

static void check_format(check *c, const char *name, quantize_fn *ref, quantize_fn *got, mf_format format, int group) {
    if (!check_begin(c, name)) return;
    const int counts[] = {1, 2, 3, 7, 19};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const int64_t n = (int64_t)counts[i] * group;
        for (int kind = 0; kind < CHECK_KINDS; kind++) {
            float *x = check_float_buffer(c, (size_t)n);
            check_fill(c, x, (size_t)n, (check_kind)kind);
            check_one(c, ref, got, format, x, n, check_kind_name((check_kind)kind));
        }
        for (int corner = 0; corner < CORNERS; corner++) {
            float *x = check_float_buffer(c, (size_t)n);
            fill_corner(c, x, (size_t)n, corner);
            check_one(c, ref, got, format, x, n, "corner");
        }
        check_free_buffers(c);
    }
    check_end(c);
}

void check_quantize(check *c) {
    check_format(c, "quantize_32", c->ref->quantize_32, c->row->quantize_32, MF_FORMAT_A8_32, 32);
    check_format(c, "quantize_256", c->ref->quantize_256, c->row->quantize_256, MF_FORMAT_A8_256, 256);
}

// ---- Speed ---------------------------------------------------------------------------------------------------------------

#define BENCH_VALUES 4096

typedef struct job {
    quantize_fn *fn;
    const float *x;
    void *row;
} job;

static void run_job(void *arg) {
    const job *j = arg;
    for (int i = 0; i < 100; i++) j->fn(j->x, j->row, BENCH_VALUES);
}

static void bench_one(check *c, const char *name, quantize_fn *fn, mf_format format) {
    if (!check_begin(c, name)) return;
    float *x = check_float_buffer(c, BENCH_VALUES);
    check_fill(c, x, BENCH_VALUES, CHECK_PLAIN);
    job j = {fn, x, check_buffer(c, mf_act_row_bytes(format, BENCH_VALUES))};
    const double seconds = check_time(run_job, &j) / 100;
    printf("%-8s %-16s %8.2f ns a value\n", c->row->name, name, seconds / BENCH_VALUES * 1e9);
    check_free_buffers(c);
}

void bench_quantize(check *c) {
    bench_one(c, "quantize_32", c->row->quantize_32, MF_FORMAT_A8_32);
    bench_one(c, "quantize_256", c->row->quantize_256, MF_FORMAT_A8_256);
}
