// The quantized matmuls of the x86 rows. A few rows of activations stream the panels and unpack in registers; more rows unpack a
// piece of a panel into the first-level cache once and go over it in groups of rows. Both walk the blocks of a row in the same order
// with the same steps, so a row's result does not depend on its neighbours.
//
// The including file has chosen its vectors (vec256.h, vec512.h), has defined what unpack.h and finish.h ask for, and
//
//   GROUP                        most rows of activations that share a load of weights: 4 or 8
//   WORDS_32                     words that a block of 32 takes in the cache
//   void put_words(t, words, step, part, w)   puts the words of a step there
//   vec start_32(t, a, b), start_256(t, a, b, run)   what a sum begins with
//   vec add_products(t, cached, sum, w, x)   adds the products of a word of weights, from the cache or just unpacked, with 4 activations
//   vec whole_sum(t, a, b, sum)      a block's sum in 32 bits
//   vec add_scaled(total, sum, sc)   adds a run's sum times its scale
//
// and defines below it
//
//   ahead rows_32(t, tile, n_blocks, b0, a, n, acc, next)   n rows of activations times the blocks of a tile, the first of which is b0,
//                                                           with a read_ahead(&next) for each; next as it is then
#ifndef MF_BACKEND_CPU_X86_MATMUL_BODY_H
#define MF_BACKEND_CPU_X86_MATMUL_BODY_H

#include "backend/cpu/x86/finish.h"

#define PIECE       512  // values of a panel unpacked at a time
#define AHEAD       4096 // bytes that the streaming kernels prefetch ahead
#define STREAM_ROWS 4    // most rows that stream

// Ends a block of 32: its sums to acc.
MF_INLINE fvec finish_32(mf_type t, const mf_act32 *a, int64_t b, vec sum, fvec d, fvec m, fvec acc) {
    acc = fma_floats(mul_floats(d, floats_of(a->d[b])), to_floats(whole_sum(t, a, b, sum)), acc);
    if (has_min(t)) acc = fma_floats(m, floats_of(a->s[b]), acc);
    return acc;
}

// ---- Many rows: a piece of a panel in the cache --------------------------------------------------------------------------

// The next piece on its way into the cache: a share of it with each block of the piece at work, so that memory is read all the while.
typedef struct ahead {
    const uint8_t *at;
    int step; // bytes with each block
} ahead;

// Of what follows `done` values of a panel, for n_blocks blocks of each of n_groups groups of rows.
MF_INLINE ahead ahead_of(mf_type t, const uint8_t *panel, int64_t done, int n_blocks, int n_groups) {
    const mf_panel_shape s = mf_panel_shape_of(t);
    const int blocks = n_blocks * n_groups;
    return (ahead){panel + done / s.block_len * (s.head + s.body), (panel_bytes_of(t, PIECE) + blocks - 1) / blocks};
}

MF_INLINE void read_ahead(ahead *next) {
    for (int i = 0; i < next->step; i += 64) _mm_prefetch((const char *)next->at + i, _MM_HINT_T0);
    next->at += next->step;
}

typedef struct tile32 {
    _Alignas(64) uint8_t words[PIECE / 32][WORDS_32 * 64];
    fvec d[PIECE / 32][PARTS], m[PIECE / 32][PARTS];
} tile32;

typedef struct tile256 {
    _Alignas(64) uint8_t words[PIECE / 256][64 * 64];
    scales256 scales[PIECE / 256];
} tile256;

// n_words words of weights times those of n rows of activations: sum[row][part].
MF_INLINE void add_words(mf_type t, const uint8_t *words, int n_words, const int8_t *const *q, int n, vec (*sum)[PARTS]) {
    MF_UNROLL
    for (int i = 0; i < n_words; i++) {
        vec w[PARTS];
        MF_UNROLL
        for (int p = 0; p < PARTS; p++) {
            w[p] = load_part(words, i, p);
            MF_PIN(w[p]); // gcc would load it again for each row
        }
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            const vec x = broadcast_32(q[r] + 4 * i);
            MF_UNROLL
            for (int p = 0; p < PARTS; p++) sum[r][p] = add_products(t, true, sum[r][p], w[p], x);
        }
    }
}

// A group's outputs while it passes a tile: as values, which need not be in memory after each block.
MF_INLINE void load_rows(float (*acc)[MF_PANEL], int n, fvec (*out)[PARTS]) {
    MF_UNROLL
    for (int i = 0; i < n * PARTS; i++) out[i / PARTS][i % PARTS] = load_floats(acc[i / PARTS], i % PARTS);
}

MF_INLINE void keep_rows(float (*acc)[MF_PANEL], int n, fvec (*out)[PARTS]) {
    MF_UNROLL
    for (int i = 0; i < n * PARTS; i++) store_floats(acc[i / PARTS], i % PARTS, out[i / PARTS][i % PARTS]);
}

MF_INLINE ahead rows_32(mf_type t, const tile32 *tile, int n_blocks, int64_t b0, const mf_act32 *a, int n,
                        float (*acc)[MF_PANEL], ahead next);

// The end of rows_32's steps for one of the blocks.
MF_INLINE void finish_rows_32(mf_type t, const tile32 *tile, int b, int64_t b0, const mf_act32 *a, int n, vec (*sum)[PARTS],
                              fvec (*out)[PARTS]) {
    MF_UNROLL
    for (int i = 0; i < n * PARTS; i++) {
        const int r = i / PARTS, p = i % PARTS;
        out[r][p] = finish_32(t, &a[r], b0 + b, sum[r][p], tile->d[b][p], tile->m[b][p], out[r][p]);
    }
}

MF_INLINE ahead rows_256(mf_type t, const tile256 *tile, int n_blocks, int64_t b0, const mf_act256 *a, int n,
                         float (*acc)[MF_PANEL], ahead next) {
    const int run = run_words(t);
    fvec out[GROUP][PARTS];
    load_rows(acc, n, out);
    for (int b = 0; b < n_blocks; b++) {
        const scales256 *s = &tile->scales[b];
        vec total[GROUP][PARTS];
        MF_UNROLL
        for (int i = 0; i < n * PARTS; i++) total[i / PARTS][i % PARTS] = vec_zero();
        for (int j = 0; j < 64 / run; j++) {
            read_ahead(&next);
            vec sum[GROUP][PARTS];
            const int8_t *q[GROUP];
            MF_UNROLL
            for (int r = 0; r < n; r++) {
                q[r] = a[r].q + 256 * (b0 + b) + 4 * run * j;
                MF_UNROLL
                for (int p = 0; p < PARTS; p++) sum[r][p] = start_256(t, &a[r], b0 + b, j);
            }
            add_words(t, tile->words[b] + 64 * run * j, run, q, n, sum);
            MF_UNROLL
            for (int r = 0; r < n; r++) {
                MF_UNROLL
                for (int p = 0; p < PARTS; p++) total[r][p] = add_scaled(total[r][p], sum[r][p], s->sc[j][p]);
            }
        }
        MF_UNROLL
        for (int i = 0; i < n * PARTS; i++) {
            const int r = i / PARTS, p = i % PARTS;
            out[r][p] = finish_256(t, &a[r], b0 + b, total[r][p], s, p, out[r][p]);
        }
    }
    keep_rows(acc, n, out);
    return next;
}

MF_INLINE void unpack_32(mf_type t, const uint8_t *panel, int64_t b0, int n_blocks, tile32 *tile) {
    for (int b = 0; b < n_blocks; b++) {
        const block32 at = block32_at(t, panel, b0 + b);
        block32_scales(t, &at, tile->d[b], tile->m[b]);
        MF_UNROLL
        for (int step = 0; step < 8 / words_a_step(t); step++) {
            MF_UNROLL
            for (int p = 0; p < PARTS; p++) {
                vec w[4];
                block32_words(t, &at, step, p, w);
                put_words(t, tile->words[b], step, p, w);
            }
        }
    }
}

MF_INLINE void unpack_256(mf_type t, const uint8_t *panel, int64_t b0, int n_blocks, tile256 *tile) {
    const mf_panel_shape s = mf_panel_shape_of(t);
    for (int b = 0; b < n_blocks; b++) {
        const uint8_t *head = panel + mf_panel_head(s, b0 + b), *body = panel + mf_panel_body(s, b0 + b);
        block256_scales(t, head, body, &tile->scales[b]);
        for (int step = 0; step < 64 / words_a_step(t); step++) {
            MF_UNROLL
            for (int p = 0; p < PARTS; p++) {
                vec w[4];
                block256_words(t, body, step, p, w);
                put_words(t, tile->words[b], step, p, w);
            }
        }
    }
}

// How many rows to take together: fewer kinds of groups than sizes, so that a group at the end may have less rows than it works on. The
// others repeat its last one, and what comes out of them is not looked at.
MF_INLINE int group_of(int left) { return GROUP == 8 && left > 4 ? 8 : left > 2 ? 4 : 2; }

MF_INLINE const char *act_row(const job *c, int32_t row, int i, int left) {
    return c->act + (size_t)(row + (i < left ? i : left - 1)) * c->act_stride;
}

MF_INLINE void piece_32(mf_type t, const job *c, const uint8_t *panel, int32_t row0, int n_rows, float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    tile32 tile;
    for (int64_t b0 = 0; b0 < n_in / 32; b0 += PIECE / 32) {
        const int n_blocks = n_in / 32 - b0 < PIECE / 32 ? (int)(n_in / 32 - b0) : PIECE / 32;
        ahead next = ahead_of(t, panel, 32 * (b0 + n_blocks), n_blocks, (n_rows + GROUP - 1) / GROUP);
        unpack_32(t, panel, b0, n_blocks, &tile);
        for (int r = 0, n; r < n_rows; r += n) {
            mf_act32 a[GROUP];
            n = group_of(n_rows - r);
            for (int i = 0; i < n; i++) a[i] = mf_act32_of(act_row(c, row0 + r, i, n_rows - r), n_in);
            if (GROUP == 8 && n == 8) next = rows_32(t, &tile, n_blocks, b0, a, GROUP, acc + r, next);
            if (n == 4) next = rows_32(t, &tile, n_blocks, b0, a, 4, acc + r, next);
            if (n == 2) next = rows_32(t, &tile, n_blocks, b0, a, 2, acc + r, next);
        }
    }
}

MF_INLINE void piece_256(mf_type t, const job *c, const uint8_t *panel, int32_t row0, int n_rows, float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    tile256 tile;
    for (int64_t b0 = 0; b0 < n_in / 256; b0 += PIECE / 256) {
        const int n_blocks = n_in / 256 - b0 < PIECE / 256 ? (int)(n_in / 256 - b0) : PIECE / 256;
        ahead next = ahead_of(t, panel, 256 * (b0 + n_blocks), n_blocks * 64 / run_words(t), (n_rows + GROUP - 1) / GROUP);
        unpack_256(t, panel, b0, n_blocks, &tile);
        for (int r = 0, n; r < n_rows; r += n) {
            mf_act256 a[GROUP];
            n = group_of(n_rows - r);
            for (int i = 0; i < n; i++) a[i] = mf_act256_of(act_row(c, row0 + r, i, n_rows - r), n_in);
            if (GROUP == 8 && n == 8) next = rows_256(t, &tile, n_blocks, b0, a, GROUP, acc + r, next);
            if (n == 4) next = rows_256(t, &tile, n_blocks, b0, a, 4, acc + r, next);
            if (n == 2) next = rows_256(t, &tile, n_blocks, b0, a, 2, acc + r, next);
        }
    }
}

// ---- A few rows: streaming -----------------------------------------------------------------------------------------------

// A part of block b, as `at` says, for n rows of activations: its sums to acc[row].
MF_INLINE void stream_block_32(mf_type t, const block32 *at, int64_t b, int part, const mf_act32 *a, int n, fvec d, fvec m,
                               float (*acc)[MF_PANEL]) {
    vec sum[STREAM_ROWS];
    MF_UNROLL
    for (int r = 0; r < n; r++) sum[r] = start_32(t, &a[r], b);
    MF_UNROLL
    for (int step = 0; step < 8 / words_a_step(t); step++) {
        vec w[4];
        block32_words(t, at, step, part, w);
        MF_UNROLL
        for (int i = 0; i < words_a_step(t); i++) {
            MF_UNROLL
            for (int r = 0; r < n; r++) {
                const vec x = broadcast_32(a[r].q + 32 * b + 4 * word_index(t, step, i));
                sum[r] = add_products(t, false, sum[r], w[i], x);
            }
        }
    }
    MF_UNROLL
    for (int r = 0; r < n; r++) {
        store_floats(acc[r], part, finish_32(t, &a[r], b, sum[r], d, m, load_floats(acc[r], part)));
    }
}

// n rows, of which the first n_real are there.
MF_INLINE void stream_32(mf_type t, const job *c, const uint8_t *panel, int32_t row, int n, int n_real,
                         float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    mf_act32 a[STREAM_ROWS];
    MF_UNROLL
    for (int r = 0; r < n; r++) {
        a[r] = mf_act32_of(act_row(c, row, r, n_real), n_in);
        MF_UNROLL
        for (int p = 0; p < PARTS; p++) store_floats(acc[r], p, fvec_zero());
    }
    for (int64_t b = 0; b < n_in / 32; b++) {
        const block32 at = block32_at(t, panel, b);
        prefetch(at.qs + AHEAD, 512 / words_a_step(t));
        prefetch(at.head + AHEAD, 1);
        fvec d[PARTS], m[PARTS];
        block32_scales(t, &at, d, m);
        MF_UNROLL
        for (int p = 0; p < PARTS; p++) stream_block_32(t, &at, b, p, a, n, d[p], m[p], acc);
    }
}

// Steps first to first + run of super-block b for n rows, the parts from part0 on: words_a_step sub-blocks at once, added to
// total.
MF_INLINE void stream_run(mf_type t, const uint8_t *body, int first, int part0, int n_parts, const mf_act256 *a, int n,
                          int64_t b, const scales256 *s, vec (*total)[PARTS]) {
    const int words = words_a_step(t), run = run_words(t);
    vec sum[4][STREAM_ROWS][PARTS];
    MF_UNROLL
    for (int i = 0; i < words; i++) {
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            MF_UNROLL
            for (int p = part0; p < part0 + n_parts; p++) {
                sum[i][r][p] = start_256(t, &a[r], b, word_index(t, first, i) / run);
            }
        }
    }
    MF_UNROLL
    for (int k = 0; k < run; k++) {
        MF_UNROLL
        for (int p = part0; p < part0 + n_parts; p++) {
            vec w[4];
            block256_words(t, body, first + k, p, w);
            MF_UNROLL
            for (int i = 0; i < words; i++) {
                MF_UNROLL
                for (int r = 0; r < n; r++) {
                    const vec x = broadcast_32(a[r].q + 256 * b + 4 * word_index(t, first + k, i));
                    sum[i][r][p] = add_products(t, false, sum[i][r][p], w[i], x);
                }
            }
        }
    }
    MF_UNROLL
    for (int i = 0; i < words; i++) {
        MF_UNROLL
        for (int p = part0; p < part0 + n_parts; p++) {
            const vec sc = s->sc[word_index(t, first, i) / run][p];
            MF_UNROLL
            for (int r = 0; r < n; r++) total[r][p] = add_scaled(total[r][p], sum[i][r][p], sc);
        }
    }
}

MF_INLINE void stream_256(mf_type t, const job *c, const uint8_t *panel, int32_t row, int n, float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    const mf_panel_shape shape = mf_panel_shape_of(t);
    const int steps = 64 / words_a_step(t), run = run_words(t), share = (shape.body - qs_offset(t)) / (steps / run);
    mf_act256 a[STREAM_ROWS];
    MF_UNROLL
    for (int r = 0; r < n; r++) {
        a[r] = mf_act256_of(c->act + (size_t)(row + r) * c->act_stride, n_in);
        MF_UNROLL
        for (int p = 0; p < PARTS; p++) store_floats(acc[r], p, fvec_zero());
    }
    for (int64_t b = 0; b < n_in / 256; b++) {
        const uint8_t *head = panel + mf_panel_head(shape, b), *body = panel + mf_panel_body(shape, b);
        scales256 s;
        prefetch(head + AHEAD, 1);
        prefetch(body + AHEAD, qs_offset(t));
        block256_scales(t, head, body, &s);
        vec total[STREAM_ROWS][PARTS];
        MF_UNROLL
        for (int i = 0; i < n * PARTS; i++) total[i / PARTS][i % PARTS] = vec_zero();
        for (int step = 0; step < steps; step += run) {
            prefetch(body + AHEAD + qs_offset(t) + step / run * share, share);
            if (words_a_step(t) == 2) { // all parts' sums fit the registers
                stream_run(t, body, step, 0, PARTS, a, n, b, &s, total);
            } else {
                MF_UNROLL
                for (int p = 0; p < PARTS; p++) stream_run(t, body, step, p, 1, a, n, b, &s, total);
            }
        }
        MF_UNROLL
        for (int i = 0; i < n * PARTS; i++) {
            const int r = i / PARTS, p = i % PARTS;
            store_floats(acc[r], p, finish_256(t, &a[r], b, total[r][p], &s, p, load_floats(acc[r], p)));
        }
    }
}

// ---- The whole -----------------------------------------------------------------------------------------------------------

// A panel times n rows of activations: acc[row][weight row]. A few rows stream the panel; for more it pays to unpack it once.
MF_INLINE void panel_32(mf_type t, const job *c, const uint8_t *panel, int32_t row, int n, float (*acc)[MF_PANEL]) {
    if (n == 1) {
        stream_32(t, c, panel, row, 1, 1, acc);
    } else if (n == 2) {
        stream_32(t, c, panel, row, 2, 2, acc);
    } else if (n <= 4) {
        stream_32(t, c, panel, row, 4, n, acc);
    } else {
        memset(acc, 0, (size_t)(n + GROUP - 1) / GROUP * GROUP * sizeof acc[0]);
        piece_32(t, c, panel, row, n, acc);
    }
}

MF_INLINE void panel_256(mf_type t, const job *c, const uint8_t *panel, int32_t row, int n, float (*acc)[MF_PANEL]) {
    if (n == 1) {
        stream_256(t, c, panel, row, 1, acc);
    } else if (n == 2) {
        stream_256(t, c, panel, row, 2, acc);
    } else {
        memset(acc, 0, (size_t)(n + GROUP - 1) / GROUP * GROUP * sizeof acc[0]);
        piece_256(t, c, panel, row, n, acc);
    }
}

MF_INLINE void matmul(mf_type t, const job *c, int32_t n_rows, int32_t panel0, int32_t panel1) {
    const bool super = mf_panel_shape_of(t).block_len == 256 && t != MF_TYPE_IQ4_XS;
    const int block = rows_a_block(c->act_stride, GROUP);
    for (int32_t row = 0; row < n_rows; row += block) {
        const int n = n_rows - row < block ? n_rows - row : block;
        for (int32_t p = panel0; p < panel1; p++) {
            const uint8_t *panel = (const uint8_t *)c->w->data + (size_t)p * c->w->stride;
            _Alignas(64) float acc[MAX_ROWS][MF_PANEL];
            if (super) panel_256(t, c, panel, row, n, acc);
            if (!super) panel_32(t, c, panel, row, n, acc);
            store_rows(c, p, row, n, acc);
        }
    }
}

MATMUL(static, matmul_q4_0, MF_TYPE_Q4_0)
MATMUL(static, matmul_q4_1, MF_TYPE_Q4_1)
MATMUL(static, matmul_q5_0, MF_TYPE_Q5_0)
MATMUL(static, matmul_q5_1, MF_TYPE_Q5_1)
MATMUL(static, matmul_q8_0, MF_TYPE_Q8_0)
MATMUL(static, matmul_iq4_nl, MF_TYPE_IQ4_NL)
MATMUL(static, matmul_iq4_xs, MF_TYPE_IQ4_XS)
MATMUL(static, matmul_q2_k, MF_TYPE_Q2_K)
MATMUL(static, matmul_q3_k, MF_TYPE_Q3_K)
MATMUL(static, matmul_q4_k, MF_TYPE_Q4_K)
MATMUL(static, matmul_q5_k, MF_TYPE_Q5_K)
MATMUL(static, matmul_q6_k, MF_TYPE_Q6_K)

static mf_matmul_fn *const matmuls[MF_TYPE_LIMIT] = {
    [MF_TYPE_Q4_0] = matmul_q4_0,     [MF_TYPE_Q4_1] = matmul_q4_1, [MF_TYPE_Q5_0] = matmul_q5_0,
    [MF_TYPE_Q5_1] = matmul_q5_1,     [MF_TYPE_Q8_0] = matmul_q8_0, [MF_TYPE_IQ4_NL] = matmul_iq4_nl,
    [MF_TYPE_IQ4_XS] = matmul_iq4_xs, [MF_TYPE_Q2_K] = matmul_q2_k, [MF_TYPE_Q3_K] = matmul_q3_k,
    [MF_TYPE_Q4_K] = matmul_q4_k,     [MF_TYPE_Q5_K] = matmul_q5_k, [MF_TYPE_Q6_K] = matmul_q6_k,
};

static void fill_quantized(mf_kernels *k) {
    for (int t = 0; t < MF_TYPE_LIMIT; t++) {
        if (matmuls[t]) k->matmul[t] = matmuls[t];
    }
}

#endif
