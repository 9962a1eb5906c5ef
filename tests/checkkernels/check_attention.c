// Attention: every row of the table against the reference, and the promises of docs/arithmetic.md about pieces: they may be cut by
// rows and by splits without a changed bit.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "checkkernels/checkkernels.h"
#include "kv/cells.h"

typedef struct shape {
    mf_type type;
    int32_t head_dim, n_group, n_rows, last; // last: the last row's cell
    int32_t window;
    float softcap;
    check_kind kind;
} shape;

typedef struct scene {
    mf_kv_view kv;
    mf_attention_piece piece;
    int32_t table[64], cell[MF_ATTENTION_ROWS];
    size_t state_floats; // of the whole piece
} scene;

enum {
    HEADS = 2,
    LAYERS = 2,
    SPLIT_BLOCKS = MF_ATTENTION_SPLIT / MF_KV_BLOCK
};

static int32_t splits_of(int32_t cell) { return cell / MF_ATTENTION_SPLIT + 1; }

// A cache whose blocks lie in random order, all NaN but for the cells of the sequence.
static void make_cache(check *c, scene *s, const shape *sh) {
    int32_t n_blocks = sh->last / MF_KV_BLOCK + 1, head_dim = sh->head_dim;
    size_t part = mf_kv_half_bytes(sh->type, head_dim);
    s->kv = (mf_kv_view){.type = sh->type,
                         .n_layer = LAYERS,
                         .n_head_kv = HEADS,
                         .head_dim = head_dim,
                         .head_stride = 2 * part,
                         .v_offset = part};
    s->kv.layer_stride = HEADS * s->kv.head_stride;
    s->kv.block_stride = LAYERS * s->kv.layer_stride;
    size_t bytes = (size_t)(n_blocks + 1) * s->kv.block_stride;
    s->kv.base = check_buffer(c, bytes);
    memset(s->kv.base, 0xff, bytes);
    for (int32_t i = 0; i < n_blocks; i++) s->table[i] = i;
    for (int32_t i = n_blocks - 1; i > 0; i--) {
        int32_t j = check_below(c, i + 1), t = s->table[i];
        s->table[i] = s->table[j];
        s->table[j] = t;
    }
    for (int32_t i = 0; i < n_blocks; i++) s->table[i]++; // block 0 is nobody's
    size_t n = HEADS * (size_t)head_dim;
    float *k = check_float_buffer(c, n), *v = check_float_buffer(c, n);
    for (int32_t cell = 0; cell <= sh->last; cell++) {
        check_fill(c, k, n, sh->kind);
        check_fill(c, v, n, sh->kind);
        c->ref->kv_store(&s->kv, 1, s->table[cell / MF_KV_BLOCK], cell % MF_KV_BLOCK, k, v);
    }
}

static void make_scene(check *c, scene *s, const shape *sh) {
    make_cache(c, s, sh);
    size_t queries = (size_t)(sh->n_rows * sh->n_group), head_dim = (size_t)sh->head_dim;
    size_t stride = (size_t)sh->n_group * head_dim + 5;
    float *q = check_float_buffer(c, (size_t)sh->n_rows * stride);
    check_fill(c, q, (size_t)sh->n_rows * stride, sh->kind);
    // Mostly neighbouring cells, as in a prefill; sometimes far apart.
    for (int32_t r = sh->n_rows - 1, cell = sh->last; r >= 0; r--) {
        s->cell[r] = cell;
        int32_t step = check_below(c, 8) ? 1 : check_below(c, 300);
        cell = cell > step ? cell - step : 0;
    }
    s->state_floats = queries * (head_dim + 2);
    s->piece = (mf_attention_piece){
        .kv = &s->kv,
        .table = s->table,
        .layer = 1,
        .kv_head = check_below(c, HEADS),
        .n_rows = sh->n_rows,
        .n_group = sh->n_group,
        .q = q,
        .q_stride = stride,
        .cell = s->cell,
        .split0 = 0,
        .split1 = splits_of(sh->last),
        .scale = 1.0f / sqrtf((float)head_dim),
        .softcap = sh->softcap,
        .window = sh->window,
        .scratch = check_float_buffer(c, mf_attention_scratch_floats(sh->n_group, sh->head_dim)),
    };
}

static float *run_piece(check *c, const mf_kernels *k, const mf_attention_piece *piece, size_t state_floats) {
    mf_attention_piece p = *piece;
    p.state = check_float_buffer(c, state_floats);
    memset(p.state, 0x55, state_floats * sizeof *p.state);
    memset(p.scratch, 0xff, mf_attention_scratch_floats(p.n_group, p.kv->head_dim) * sizeof *p.scratch);
    k->attention(&p);
    return p.state;
}

static void describe(char *out, size_t size, const shape *s) {
    snprintf(out, size, "%s, head_dim %d, group %d, %d rows, last cell %d, window %d, softcap %g, %s", mf_type_name(s->type),
             s->head_dim, s->n_group, s->n_rows, s->last, s->window, (double)s->softcap, check_kind_name(s->kind));
}

// The first split alone or a few, then the others one by one, merged in order.
static void check_cut_by_splits(check *c, const scene *s, const float *whole, const char *what) {
    int32_t n = s->piece.split1, queries = s->piece.n_rows * s->piece.n_group;
    mf_attention_piece p = s->piece;
    p.split1 = n > 1 ? 1 + check_below(c, n - 1) : 1;
    float *state = run_piece(c, c->row, &p, s->state_floats);
    while (p.split1 < n) {
        p.split0 = p.split1++;
        float *later = run_piece(c, c->row, &p, s->state_floats);
        c->row->attention_merge(state, later, queries, s->kv.head_dim);
    }
    check_floats(c, whole, state, s->state_floats, "%s, cut by splits", what);
}

static void check_cut_by_rows(check *c, const scene *s, const float *whole, const char *what) {
    size_t row_floats = s->state_floats / (size_t)s->piece.n_rows;
    for (int32_t r = 0; r < s->piece.n_rows;) {
        mf_attention_piece p = s->piece;
        p.n_rows = 1 + check_below(c, s->piece.n_rows - r);
        p.q += (size_t)r * p.q_stride;
        p.cell += r;
        size_t floats = (size_t)p.n_rows * row_floats;
        float *part = run_piece(c, c->row, &p, floats);
        check_floats(c, whole + (size_t)r * row_floats, part, floats, "%s, rows from %d alone", what, r);
        r += p.n_rows;
    }
}

static void check_shape(check *c, const shape *sh) {
    scene s;
    char what[200];
    describe(what, sizeof what, sh);
    make_scene(c, &s, sh);
    float *ref = run_piece(c, c->ref, &s.piece, s.state_floats), *got = run_piece(c, c->row, &s.piece, s.state_floats);
    check_floats(c, ref, got, s.state_floats, "%s", what);
    if (sh->kind == CHECK_PLAIN)
        for (size_t i = 0; i < s.state_floats; i++)
            if (!check_true(c, isfinite(got[i]), "%s: not finite at %zu", what, i)) break;
    check_cut_by_splits(c, &s, got, what);
    check_cut_by_rows(c, &s, got, what);
    mf_attention_piece p = s.piece;
    p.split0 = check_below(c, p.split1);
    ref = run_piece(c, c->ref, &p, s.state_floats), got = run_piece(c, c->row, &p, s.state_floats);
    check_floats(c, ref, got, s.state_floats, "%s, splits from %d", what, p.split0);
    check_free_buffers(c);
}

void check_attention(check *c) {
    if (!check_begin(c, "attention")) return;
    static const int32_t dims[] = {16, 64, 80, 96, 128, 256, 2, 30, 100};
    static const int32_t windows[] = {0, 0, 0, 1, 7, 64, 100, 513};
    static const mf_type types[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0, MF_TYPE_Q8_0};
    enum {
        DIMS = sizeof dims / sizeof *dims,
        WINDOWS = sizeof windows / sizeof *windows,
        SHAPES = 180,
        QUICK_SHAPES = 45
    };
    for (int i = 0; i < (c->quick ? QUICK_SHAPES : SHAPES); i++) {
        shape sh = {
            .type = types[check_below(c, 4)],
            .head_dim = dims[i % DIMS],
            .n_group = 1 + check_below(c, 8),
            .n_rows = 1 + check_below(c, MF_ATTENTION_ROWS),
            .last = check_below(c, check_below(c, 4) ? 80 : 1500),
            .window = windows[check_below(c, WINDOWS)],
            .softcap = check_below(c, 4) ? 0.0f : 30.0f,
            .kind = check_below(c, 2) ? CHECK_PLAIN : (check_kind)check_below(c, CHECK_KINDS),
        };
        if (!mf_kv_width_fits(sh.type, sh.head_dim)) sh.type = MF_TYPE_F16;
        if (sh.head_dim * sh.n_group * sh.n_rows > 2048) sh.last %= 400;
        check_shape(c, &sh);
    }
    check_end(c);
}

// Calls go through the layers of a cache that no processor holds, as the steps of a model do.
typedef struct attention_bench {
    const mf_kernels *k;
    mf_attention_piece piece;
} attention_bench;

static void run_bench(void *arg) {
    attention_bench *b = arg;
    b->piece.layer = (b->piece.layer + 1) % b->piece.kv->n_layer;
    b->k->attention(&b->piece);
}

static void bench_shape(check *c, const char *name, mf_type type, int32_t head_dim, int32_t n_group, int32_t n_rows,
                        int32_t cells) {
    int32_t n_blocks = cells / MF_KV_BLOCK, table[64], cell[MF_ATTENTION_ROWS];
    size_t part = mf_kv_half_bytes(type, head_dim), cache = (size_t)1 << 26;
    mf_kv_view kv = {.type = type,
                     .n_head_kv = 1,
                     .head_dim = head_dim,
                     .head_stride = 2 * part,
                     .v_offset = part,
                     .layer_stride = 2 * part};
    kv.n_layer = (int32_t)(cache / kv.layer_stride) / n_blocks;
    kv.block_stride = (size_t)kv.n_layer * kv.layer_stride;
    kv.base = check_buffer(c, (size_t)n_blocks * kv.block_stride);
    memset(kv.base, 0x2e, (size_t)n_blocks * kv.block_stride); // small numbers
    for (int32_t i = 0; i < n_blocks; i++) table[i] = i;
    for (int32_t r = 0; r < n_rows; r++) cell[r] = cells - n_rows + r;
    size_t queries = (size_t)(n_rows * n_group), stride = (size_t)n_group * (size_t)head_dim;
    float *q = check_float_buffer(c, queries * (size_t)head_dim);
    check_fill(c, q, queries * (size_t)head_dim, CHECK_PLAIN);
    attention_bench bench = {
        .k = c->row,
        .piece = {.kv = &kv,
                  .table = table,
                  .n_rows = n_rows,
                  .n_group = n_group,
                  .q = q,
                  .q_stride = stride,
                  .cell = cell,
                  .split1 = splits_of(cells - 1),
                  .scale = 1.0f / sqrtf((float)head_dim),
                  .state = check_float_buffer(c, queries * (size_t)(head_dim + 2)),
                  .scratch = check_float_buffer(c, mf_attention_scratch_floats(n_group, head_dim))},
    };
    double seconds = check_time(run_bench, &bench);
    double products = (double)head_dim * (double)cells;
    printf("  attention %-7s %s, head_dim %3d, group %d, %5d cells: %7.1f GFLOP/s, %6.2f GB/s of cells\n", name,
           mf_type_name(type), head_dim, n_group, cells, 4 * (double)queries * products / seconds * 1e-9,
           2 * (double)part * (double)n_blocks / seconds * 1e-9);
    check_free_buffers(c);
}

void bench_attention(check *c) {
    if (!check_begin(c, "attention")) return;
    static const int32_t groups[] = {1, 3, 7};
    static const int32_t dims[] = {64, 128, 256};
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
            for (int t = 0; t < 2; t++) {
                bench_shape(c, "prefill", t ? MF_TYPE_Q8_0 : MF_TYPE_F16, dims[d], groups[g], MF_ATTENTION_ROWS, 512);
                bench_shape(c, "decode", t ? MF_TYPE_Q8_0 : MF_TYPE_F16, dims[d], groups[g], 1, 4096);
            }
        }
    }
    check_end(c);
}
