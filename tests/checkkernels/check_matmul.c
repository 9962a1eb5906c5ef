// Matmuls of every weight type, and the panels they read.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/panels.h"
#include "base/half.h"
#include "checkkernels/checkkernels.h"
#include "quant/blocks.h"

// A type as this test fills it: where its blocks have f16 scales, and what activations it takes.
typedef struct weight_type {
    mf_type type;
    const char *name;
    mf_format format;
    int n_halves;
    int half[2]; // offsets
} weight_type;

#define TYPE(NAME, name, format, n, d, m)                                \
    {                                                                    \
        MF_TYPE_##NAME, "matmul_" #name, MF_FORMAT_##format, n, { d, m } \
    }

static const weight_type types[] = {
    TYPE(Q4_1, q4_1, A8_32, 2, 0, 2),
    TYPE(Q8_0, q8_0, A8_32, 1, 0, 0),
    TYPE(Q4_0, q4_0, A8_32, 1, 0, 0),
    TYPE(Q5_0, q5_0, A8_32, 1, 0, 0),
    TYPE(Q5_1, q5_1, A8_32, 2, 0, 2),
    TYPE(IQ4_NL, iq4_nl, A8_32, 1, 0, 0),
    TYPE(IQ4_XS, iq4_xs, A8_32, 1, 0, 0),
    TYPE(Q4_K, q4_k, A8_256, 2, 0, 2),
    TYPE(Q6_K, q6_k, A8_256, 1, offsetof(mf_block_q6_k, d), 0),
    TYPE(Q5_K, q5_k, A8_256, 2, 0, 2),
    TYPE(Q2_K, q2_k, A8_256, 2, offsetof(mf_block_q2_k, d), offsetof(mf_block_q2_k, dmin)),
    TYPE(Q3_K, q3_k, A8_256, 1, offsetof(mf_block_q3_k, d), 0),
    TYPE(F32, f32, F32, 0, 0, 0),
    TYPE(F16, f16, F32, 0, 0, 0),
    TYPE(BF16, bf16, F32, 0, 0, 0),
};

#define N_TYPES ((int)(sizeof types / sizeof types[0]))

// ---- Input ---------------------------------------------------------------------------------------------------------------

typedef enum weight_kind {
    WEIGHT_PLAIN, // random bits, scales below 1
    WEIGHT_ONES,  // all bits set: the largest magnitudes of most fields
    WEIGHT_LOW,   // all bits clear, or all bytes 0x80: the other end
    WEIGHT_HUGE,  // random bits, scales of +-65504
    WEIGHT_TINY,  // subnormal and zero scales
    WEIGHT_KINDS,
} weight_kind;

static uint16_t random_scale(check *c, weight_kind kind) {
    const uint16_t sign = (uint16_t)(check_random(c) & 0x8000);
    if (kind == WEIGHT_HUGE) return sign | 0x7bff;
    if (kind == WEIGHT_TINY) return sign | (uint16_t)check_below(c, 4);
    return mf_f32_to_f16(check_uniform(c, -1, 1));
}

static void fill_float_weights(check *c, const weight_type *t, uint8_t *w, size_t n, weight_kind kind) {
    static const check_kind as[WEIGHT_KINDS] = {CHECK_PLAIN, CHECK_WIDE, CHECK_ZERO, CHECK_HUGE, CHECK_DENORMAL};
    for (size_t i = 0; i < n; i++) {
        float x;
        check_fill(c, &x, 1, as[kind]);
        const uint16_t half = t->type == MF_TYPE_F16 ? mf_f32_to_f16(x) : mf_f32_to_bf16(x);
        if (t->type == MF_TYPE_F32) memcpy(w + 4 * i, &x, 4);
        if (t->type != MF_TYPE_F32) memcpy(w + 2 * i, &half, 2);
    }
}

static void fill_weights(check *c, const weight_type *t, uint8_t *w, size_t n_values, weight_kind kind) {
    const mf_type_info *info = mf_type_info_of(t->type);
    if (info->block_len == 1) {
        fill_float_weights(c, t, w, n_values, kind);
        return;
    }
    for (size_t b = 0; b < n_values / info->block_len; b++, w += info->block_bytes) {
        const uint8_t low = check_below(c, 2) ? 0x80 : 0;
        for (uint32_t i = 0; i < info->block_bytes; i++) {
            w[i] = kind == WEIGHT_ONES ? 0xff : kind == WEIGHT_LOW ? low : (uint8_t)check_random(c);
        }
        for (int i = 0; i < t->n_halves; i++) {
            const uint16_t scale = random_scale(c, kind);
            memcpy(w + t->half[i], &scale, 2);
        }
    }
}

// Activation rows: the kinds of floats, then +-1 in patterns that make the largest sums.
#define ACT_KINDS (CHECK_SPECIAL + 2)

static void fill_act(check *c, float *x, size_t n, int kind) {
    if (kind < CHECK_SPECIAL) {
        check_fill(c, x, n, (check_kind)kind);
        return;
    }
    for (size_t i = 0; i < n; i++) x[i] = kind == CHECK_SPECIAL ? 1 : -1;
}

typedef struct problem {
    const weight_type *t;
    mf_matrix file, panels;
    uint8_t *act;
    size_t act_stride;
    int n_rows;
} problem;

static void make_weights(check *c, problem *p, const weight_type *t, int64_t n_in, int64_t n_out, weight_kind kind) {
    size_t row_bytes = 0;
    mf_type_row_bytes(t->type, (uint64_t)n_in, &row_bytes);
    uint8_t *rows = check_buffer(c, row_bytes * (size_t)n_out);
    fill_weights(c, t, rows, (size_t)(n_in * n_out), kind);
    const int64_t n_panels = (n_out + MF_PANEL - 1) / MF_PANEL;
    const size_t panel_bytes = mf_panel_bytes(t->type, n_in);
    uint8_t *panels = check_buffer(c, panel_bytes * (size_t)n_panels);
    for (int64_t i = 0; i < n_panels; i++) mf_panel_pack(t->type, rows, n_in, n_out, i, panels + (size_t)i * panel_bytes);
    p->t = t;
    p->file = (mf_matrix){t->type, n_in, n_out, rows, row_bytes};
    p->panels = (mf_matrix){t->type, n_in, n_out, panels, panel_bytes};
}

static void make_act(check *c, problem *p, int n_rows, int kind) {
    const int64_t n_in = p->file.n_in;
    float *x = check_float_buffer(c, (size_t)n_in);
    p->n_rows = n_rows;
    p->act_stride = mf_act_row_bytes(p->t->format, n_in);
    p->act = check_buffer(c, p->act_stride * (size_t)n_rows);
    for (int r = 0; r < n_rows; r++) {
        uint8_t *row = p->act + (size_t)r * p->act_stride;
        fill_act(c, x, (size_t)n_in, kind < 0 ? r % ACT_KINDS : kind);
        if (p->t->format == MF_FORMAT_F32) memcpy(row, x, (size_t)n_in * sizeof(float));
        if (p->t->format == MF_FORMAT_A8_32) c->ref->quantize_32(x, row, n_in);
        if (p->t->format == MF_FORMAT_A8_256) c->ref->quantize_256(x, row, n_in);
    }
}

// ---- Checks --------------------------------------------------------------------------------------------------------------

#define UNTOUCHED (-12345.678f)

static void compare(check *c, const problem *p, int panel0, int panel1, const char *what) {
    const size_t stride = (size_t)p->file.n_out + 3, n = stride * (size_t)p->n_rows;
    float *ref = check_float_buffer(c, n), *got = check_float_buffer(c, n);
    for (size_t i = 0; i < n; i++) ref[i] = got[i] = UNTOUCHED;
    const mf_matrix *w = c->row->panels ? &p->panels : &p->file;
    c->ref->matmul[p->t->type](&p->file, p->act, p->act_stride, p->n_rows, panel0, panel1, ref, stride);
    c->row->matmul[p->t->type](w, p->act, p->act_stride, p->n_rows, panel0, panel1, got, stride);
    check_floats(c, ref, got, n, "%s, n_in %d, n_out %d, %d rows, panels %d to %d", what, (int)p->file.n_in,
                 (int)p->file.n_out, p->n_rows, panel0, panel1);
}

static void check_type(check *c, const weight_type *t) {
    if (!check_begin(c, t->name)) return;
    const int block = t->format == MF_FORMAT_A8_256 || t->type == MF_TYPE_IQ4_XS ? 256 : t->format == MF_FORMAT_F32 ? 1 : 32;
    // Every count of rows, of mixed kinds; K ragged against the blocks, pairs of blocks and pieces of the kernels.
    for (int rows = 1; rows <= 17; rows++) {
        problem p;
        make_weights(c, &p, t, block == 1 ? 5 + 3 * rows : block * (1 + rows % 5), 40,
                     rows % 2 ? WEIGHT_PLAIN : WEIGHT_HUGE);
        make_act(c, &p, rows, -1);
        compare(c, &p, 0, 3, "each count of rows");
        check_free_buffers(c);
    }
    static const int long_k[] = {1, 15, 16, 17, 33, 50};
    for (size_t i = 0; i < sizeof long_k / sizeof long_k[0]; i++) {
        problem p;
        make_weights(c, &p, t, block == 256 ? 256 * (1 + long_k[i] / 8) : block * long_k[i], 17 + (int)i, WEIGHT_PLAIN);
        make_act(c, &p, i % 2 ? 1 : 33, CHECK_PLAIN);
        compare(c, &p, 0, 2, "long rows");
        compare(c, &p, 1, 2, "the last panel");
        check_free_buffers(c);
    }
    // Counts about those of a tile, of mixed kinds.
    static const int tiled[] = {31, 32, 47, 48, 64, 79};
    for (size_t i = 0; i < sizeof tiled / sizeof tiled[0]; i++) {
        problem p;
        make_weights(c, &p, t, block == 1 ? 21 : block * (1 + (int)i % 3), 20, (weight_kind)(i % WEIGHT_KINDS));
        make_act(c, &p, tiled[i], -1);
        compare(c, &p, 0, 2, "counts about a tile's");
        check_free_buffers(c);
    }
    // Extremes of both sides.
    for (int weights = 0; weights < WEIGHT_KINDS; weights++) {
        for (int act = 0; act < ACT_KINDS; act++) {
            problem p;
            make_weights(c, &p, t, block == 1 ? 37 : 512, 1 + act * 5, (weight_kind)weights);
            static const int counts[] = {1, 3, 5, 32};
            for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
                make_act(c, &p, counts[i], act);
                compare(c, &p, 0, (1 + act * 5 + MF_PANEL - 1) / MF_PANEL, "extremes");
            }
            check_free_buffers(c);
        }
    }
    problem p;
    make_weights(c, &p, t, block == 1 ? 200 : 256, 16, WEIGHT_PLAIN);
    make_act(c, &p, 205, CHECK_PLAIN);
    compare(c, &p, 0, 1, "many rows");
    make_weights(c, &p, t, block == 1 ? 50 : 256, 150, WEIGHT_PLAIN);
    for (int rows = 1; rows <= 3; rows++) {
        make_act(c, &p, rows, CHECK_PLAIN);
        compare(c, &p, 0, 10, "many outputs");
        compare(c, &p, 3, 9, "some of many outputs");
    }
    check_end(c);
}

// The panels give back the file's values; they do not depend on the row of the table.
static void check_panel_rows(check *c) {
    if (!check_begin(c, "panel_row")) return;
    for (int i = 0; i < N_TYPES; i++) {
        const int n_out = 35;
        for (int blocks = 1; blocks <= 3; blocks++) {
            problem p;
            const int64_t n_in = (int64_t)blocks * (mf_type_info_of(types[i].type)->block_len == 1 ? 19 : 256);
            make_weights(c, &p, &types[i], n_in, n_out, WEIGHT_PLAIN);
            float *ref = check_float_buffer(c, (size_t)n_in), *got = check_float_buffer(c, (size_t)n_in);
            for (int64_t row = 0; row < n_out; row++) {
                mf_type_info_of(types[i].type)
                    ->decode((const uint8_t *)p.file.data + (size_t)row * p.file.stride, ref, (size_t)n_in);
                mf_panel_row(&p.panels, row, got);
                check_floats(c, ref, got, (size_t)n_in, "%s, row %d", types[i].name, (int)row);
            }
            check_free_buffers(c);
        }
    }
    check_end(c);
}

void check_matmul(check *c) {
    if (c->row == c->ref) check_panel_rows(c);
    for (int i = 0; i < N_TYPES; i++) {
        if (c->row->matmul[types[i].type]) check_type(c, &types[i]);
    }
}

// ---- Speed ---------------------------------------------------------------------------------------------------------------

// Each timed call takes the next panels of a matrix, so that short calls (the shortest of many is the answer) still find the
// weights of large matrices in memory, not in a cache.
typedef struct job {
    const check *c;
    const problem *p;
    float *dst;
    int32_t panel, step;
} job;

static void run_job(void *arg) {
    job *j = arg;
    const mf_matrix *w = j->c->row->panels ? &j->p->panels : &j->p->file;
    j->c->row->matmul[w->type](w, j->p->act, j->p->act_stride, j->p->n_rows, j->panel, j->panel + j->step, j->dst,
                               (size_t)w->n_out);
    j->panel += j->step;
    if ((int64_t)(j->panel + j->step) * MF_PANEL > w->n_out) j->panel = 0;
}

typedef struct peak_job {
    const mf_kernels *row;
    uint64_t n;
    uint32_t sink;
} peak_job;

static void run_peak(void *arg) {
    peak_job *j = arg;
    j->n = j->row->int8_peak(200000, &j->sink);
}

static double int8_peak(const check *c) {
    peak_job j = {c->row, 0, 1};
    const double seconds = check_time(run_peak, &j);
    return (double)j.n / seconds;
}

#define READ_BYTES  ((size_t)192 << 20) // beyond the caches
#define CHUNK_BYTES ((size_t)2 << 20)   // of a timed call

typedef struct read_job {
    const uint64_t *words;
    size_t at;
    uint64_t sum;
} read_job;

static void run_read(void *arg) {
    read_job *j = arg;
    const uint64_t *words = j->words + j->at / 8;
    uint64_t sum[8] = {0};
    for (size_t i = 0; i < CHUNK_BYTES / 8; i += 8) {
        for (int k = 0; k < 8; k++) sum[k] += words[i + k];
        __builtin_prefetch(words + i + 512);
    }
    for (int k = 0; k < 8; k++) j->sum += sum[k];
    j->at = (j->at + CHUNK_BYTES) % READ_BYTES;
}

// Bytes a second that one core reads.
static double bandwidth(check *c) {
    uint64_t *words = check_buffer(c, READ_BYTES);
    for (size_t i = 0; i < READ_BYTES / 8; i++) words[i] = i;
    read_job j = {words, 0, 0};
    const double seconds = check_time(run_read, &j);
    check_free_buffers(c);
    return (double)CHUNK_BYTES / seconds + (double)(j.sum == 1);
}

#define BENCH_K 2048

static void bench_type(check *c, const weight_type *t, double peak, double read) {
    static const int rows[] = {1, 2, 3, 4, 8, 16, 32, 512};
    size_t row_bytes = 0;
    mf_type_row_bytes(t->type, BENCH_K, &row_bytes);
    if (!check_begin(c, t->name)) return;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (c->row == c->ref && rows[i] > 8) continue;
        const size_t panel_bytes = row_bytes * MF_PANEL;
        const bool few = rows[i] <= 32;
        const int32_t step = few ? (int32_t)(CHUNK_BYTES / panel_bytes) + 1 : 4;
        const int64_t n_out = (few ? (int64_t)(READ_BYTES / 2 / panel_bytes) : step) * MF_PANEL;
        problem p;
        make_weights(c, &p, t, BENCH_K, n_out, WEIGHT_PLAIN);
        make_act(c, &p, rows[i], CHECK_PLAIN);
        job j = {c, &p, check_float_buffer(c, (size_t)(rows[i] * n_out)), 0, step};
        const double seconds = check_time(run_job, &j), bytes = (double)panel_bytes * step / seconds;
        const double macs = (double)BENCH_K * MF_PANEL * step * rows[i] / seconds;
        printf("%-8s %-14s %3d rows: %7.2f GMAC/s, %3.0f %% of the int8 peak; %6.2f GB/s, %3.0f %% of reading\n",
               c->row->name, t->name, rows[i], macs * 1e-9, macs / peak * 100, bytes * 1e-9, bytes / read * 100);
        fflush(stdout);
        check_free_buffers(c);
    }
}

void bench_matmul(check *c) {
    c->name = "matmul";
    const double peak = int8_peak(c), read = bandwidth(c);
    printf("%-8s int8 peak %.1f GMAC/s, reading %.1f GB/s, one core; rows of %d\n", c->row->name, peak * 1e-9, read * 1e-9,
           BENCH_K);
    for (int i = 0; i < N_TYPES; i++) {
        if (c->row->matmul[types[i].type]) bench_type(c, &types[i], peak, read);
    }
}
