// Quantized matmuls on AVX-512 VNNI. As on AVX2 (matmul_avx2.c), one or two rows of activations stream the panels, and more
// rows unpack a piece of a panel into the cache and go over it in groups of rows; a word of 16 rows is one vector here and
// its products one instruction.
#include <string.h>

#include "backend/cpu/quantize.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/x86/float_avx512.h"
#include "backend/cpu/x86/matmul_job.h"
#include "backend/cpu/x86/unpack_avx512.h"

#define GROUP 8    // rows of activations that share a load of weights
#define PIECE 512  // values of a panel unpacked at a time
#define AHEAD 4096 // bytes that the streaming kernels prefetch ahead

MF_INLINE __m512i broadcast_32(const void *p) { return _mm512_set1_epi32(load_32(p)); }

// What a sum of values of a type begins with, for activations that sum to asum.
MF_INLINE __m512i start_of(mf_type t, int32_t asum) {
    return offset_of(t) ? _mm512_set1_epi32(-offset_of(t) * asum) : _mm512_setzero_si512();
}

// Ends a block of 32.
MF_INLINE __m512 finish_32(mf_type t, const mf_act32 *a, int64_t b, __m512i sum, __m512 d, __m512 m, __m512 acc) {
    acc = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(a->d[b])), _mm512_cvtepi32_ps(sum), acc);
    if (has_min(t)) acc = _mm512_fmadd_ps(m, _mm512_set1_ps(a->s[b]), acc);
    return acc;
}

// Ends a super-block.
MF_INLINE __m512 finish_256(mf_type t, const mf_act256 *a, int64_t b, __m512i sum, const scales256 *s, __m512 acc) {
    const __m512 d_a = _mm512_set1_ps(a->d[b]);
    acc = _mm512_fmadd_ps(_mm512_mul_ps(s->d, d_a), _mm512_cvtepi32_ps(sum), acc);
    if (!has_min(t)) return acc;
    const int pairs = t == MF_TYPE_Q2_K ? 8 : 4;
    const int16_t *asum = t == MF_TYPE_Q2_K ? a->asum + 16 * b : a->asum32 + 8 * b;
    __m512i min = _mm512_setzero_si512();
    MF_UNROLL
    for (int i = 0; i < pairs; i++) min = _mm512_dpwssd_epi32(min, s->m[i], broadcast_32(asum + 2 * i));
    return _mm512_fnmadd_ps(_mm512_mul_ps(s->dmin, d_a), _mm512_cvtepi32_ps(min), acc);
}

// The sum of the j-th run of a super-block's activations.
MF_INLINE int32_t run_asum(mf_type t, const mf_act256 *a, int64_t b, int j) {
    return run_words(t) == 8 ? a->asum32[8 * b + j] : a->asum[16 * b + j];
}

// ---- Many rows: a piece of a panel in the cache --------------------------------------------------------------------------

typedef struct tile32 {
    __m512i words[PIECE / 32][8];
    __m512 d[PIECE / 32], m[PIECE / 32];
} tile32;

typedef struct tile256 {
    __m512i words[PIECE / 256][64];
    scales256 scales[PIECE / 256];
} tile256;

// Bytes of a panel from one piece to the next.
MF_INLINE int piece_bytes(mf_type t) { return panel_bytes_of(t, PIECE); }

MF_INLINE void unpack_32(mf_type t, const uint8_t *panel, int64_t b0, int n_blocks, tile32 *tile) {
    for (int b = 0; b < n_blocks; b++) {
        const block32 at = block32_at(t, panel, b0 + b);
        prefetch(at.qs + piece_bytes(t), 512 / words_a_step(t));
        prefetch(at.head + piece_bytes(t), 1);
        block32_scales(t, &at, &tile->d[b], &tile->m[b]);
        MF_UNROLL
        for (int step = 0; step < 8 / words_a_step(t); step++) {
            __m512i w[4];
            block32_words(t, &at, step, w);
            MF_UNROLL
            for (int i = 0; i < words_a_step(t); i++) tile->words[b][word_index(t, step, i)] = w[i];
        }
    }
}

MF_INLINE void unpack_256(mf_type t, const uint8_t *panel, int64_t b0, int n_blocks, tile256 *tile) {
    const mf_panel_shape s = mf_panel_shape_of(t);
    for (int b = 0; b < n_blocks; b++) {
        const uint8_t *head = panel + mf_panel_head(s, b0 + b), *body = panel + mf_panel_body(s, b0 + b);
        prefetch(body + piece_bytes(t), s.body);
        prefetch(head + piece_bytes(t), 1);
        block256_scales(t, head, body, &tile->scales[b]);
        for (int step = 0; step < 64 / words_a_step(t); step++) {
            __m512i w[4];
            block256_words(t, body, step, w);
            MF_UNROLL
            for (int i = 0; i < words_a_step(t); i++) tile->words[b][word_index(t, step, i)] = w[i];
        }
    }
}

// n_words words of weights times those of n rows of activations.
MF_INLINE void add_words(const __m512i *words, int n_words, const int8_t *const *q, int n, __m512i *sum) {
    MF_UNROLL
    for (int i = 0; i < n_words; i++) {
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            sum[r] = _mm512_dpbusd_epi32(sum[r], words[i], broadcast_32(q[r] + 4 * i));
            MF_PIN(sum[r]);
        }
    }
}

// n rows of activations times the blocks of a tile, the first of which is block b0 of the row.
MF_INLINE void rows_32(mf_type t, const tile32 *tile, int n_blocks, int64_t b0, const mf_act32 *a, int n,
                       float (*acc)[MF_PANEL]) {
    for (int b = 0; b < n_blocks; b++) {
        __m512i sum[GROUP];
        const int8_t *q[GROUP];
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            q[r] = a[r].q + 32 * (b0 + b);
            sum[r] = start_of(t, a[r].asum[b0 + b]);
        }
        add_words(tile->words[b], 8, q, n, sum);
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            const __m512 in = _mm512_load_ps(acc[r]);
            _mm512_store_ps(acc[r], finish_32(t, &a[r], b0 + b, sum[r], tile->d[b], tile->m[b], in));
        }
    }
}

MF_INLINE void rows_256(mf_type t, const tile256 *tile, int n_blocks, int64_t b0, const mf_act256 *a, int n,
                        float (*acc)[MF_PANEL]) {
    const int run = run_words(t);
    for (int b = 0; b < n_blocks; b++) {
        __m512i total[GROUP];
        MF_UNROLL
        for (int r = 0; r < n; r++) total[r] = _mm512_setzero_si512();
        for (int j = 0; j < 64 / run; j++) {
            __m512i sum[GROUP];
            const int8_t *q[GROUP];
            MF_UNROLL
            for (int r = 0; r < n; r++) {
                q[r] = a[r].q + 256 * (b0 + b) + 4 * run * j;
                sum[r] = start_of(t, run_asum(t, &a[r], b0 + b, j));
            }
            add_words(tile->words[b] + run * j, run, q, n, sum);
            MF_UNROLL
            for (int r = 0; r < n; r++) {
                total[r] = _mm512_add_epi32(total[r], _mm512_mullo_epi32(sum[r], tile->scales[b].sc[j]));
            }
        }
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            const __m512 in = _mm512_load_ps(acc[r]);
            _mm512_store_ps(acc[r], finish_256(t, &a[r], b0 + b, total[r], &tile->scales[b], in));
        }
    }
}

// How many of `left` rows to take together.
MF_INLINE int group_of(int left) { return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1; }

MF_INLINE void piece_32(mf_type t, const job *c, const uint8_t *panel, int32_t row0, int n_rows, float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    tile32 tile;
    for (int64_t b0 = 0; b0 < n_in / 32; b0 += PIECE / 32) {
        const int n_blocks = n_in / 32 - b0 < PIECE / 32 ? (int)(n_in / 32 - b0) : PIECE / 32;
        unpack_32(t, panel, b0, n_blocks, &tile);
        for (int r = 0, n; r < n_rows; r += n) {
            mf_act32 a[GROUP];
            n = group_of(n_rows - r);
            for (int i = 0; i < n; i++) a[i] = mf_act32_of(c->act + (size_t)(row0 + r + i) * c->act_stride, n_in);
            if (n == 8) rows_32(t, &tile, n_blocks, b0, a, 8, acc + r);
            if (n == 4) rows_32(t, &tile, n_blocks, b0, a, 4, acc + r);
            if (n == 2) rows_32(t, &tile, n_blocks, b0, a, 2, acc + r);
            if (n == 1) rows_32(t, &tile, n_blocks, b0, a, 1, acc + r);
        }
    }
}

MF_INLINE void piece_256(mf_type t, const job *c, const uint8_t *panel, int32_t row0, int n_rows, float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    tile256 tile;
    for (int64_t b0 = 0; b0 < n_in / 256; b0 += PIECE / 256) {
        const int n_blocks = n_in / 256 - b0 < PIECE / 256 ? (int)(n_in / 256 - b0) : PIECE / 256;
        unpack_256(t, panel, b0, n_blocks, &tile);
        for (int r = 0, n; r < n_rows; r += n) {
            mf_act256 a[GROUP];
            n = group_of(n_rows - r);
            for (int i = 0; i < n; i++) a[i] = mf_act256_of(c->act + (size_t)(row0 + r + i) * c->act_stride, n_in);
            if (n == 8) rows_256(t, &tile, n_blocks, b0, a, 8, acc + r);
            if (n == 4) rows_256(t, &tile, n_blocks, b0, a, 4, acc + r);
            if (n == 2) rows_256(t, &tile, n_blocks, b0, a, 2, acc + r);
            if (n == 1) rows_256(t, &tile, n_blocks, b0, a, 1, acc + r);
        }
    }
}

// ---- One or two rows: streaming ------------------------------------------------------------------------------------------

#define STREAM_ROWS 2

MF_INLINE void stream_32(mf_type t, const job *c, const uint8_t *panel, int32_t row, int n, float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    mf_act32 a[STREAM_ROWS];
    __m512 out[STREAM_ROWS];
    MF_UNROLL
    for (int r = 0; r < n; r++) {
        a[r] = mf_act32_of(c->act + (size_t)(row + r) * c->act_stride, n_in);
        out[r] = _mm512_setzero_ps();
    }
    for (int64_t b = 0; b < n_in / 32; b++) {
        const block32 at = block32_at(t, panel, b);
        prefetch(at.qs + AHEAD, 512 / words_a_step(t));
        prefetch(at.head + AHEAD, 1);
        __m512 d, m;
        block32_scales(t, &at, &d, &m);
        __m512i sum[STREAM_ROWS][2]; // two sums a row, which do not wait for each other
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            sum[r][0] = start_of(t, a[r].asum[b]);
            sum[r][1] = _mm512_setzero_si512();
        }
        MF_UNROLL
        for (int step = 0; step < 8 / words_a_step(t); step++) {
            __m512i w[4];
            block32_words(t, &at, step, w);
            MF_UNROLL
            for (int i = 0; i < words_a_step(t); i++) {
                const int which = (words_a_step(t) == 1 ? step : i) % 2;
                MF_UNROLL
                for (int r = 0; r < n; r++) {
                    const __m512i x = broadcast_32(a[r].q + 32 * b + 4 * word_index(t, step, i));
                    sum[r][which] = _mm512_dpbusd_epi32(sum[r][which], w[i], x);
                }
            }
        }
        MF_UNROLL
        for (int r = 0; r < n; r++) out[r] = finish_32(t, &a[r], b, _mm512_add_epi32(sum[r][0], sum[r][1]), d, m, out[r]);
    }
    MF_UNROLL
    for (int r = 0; r < n; r++) _mm512_store_ps(acc[r], out[r]);
}

// Steps first to first + run of super-block b for n rows: words_a_step sub-blocks at once, added to total[row].
MF_INLINE void stream_run(mf_type t, const uint8_t *body, int first, const mf_act256 *a, int n, int64_t b,
                          const scales256 *s, __m512i *total) {
    const int words = words_a_step(t), run = run_words(t);
    __m512i sum[4][STREAM_ROWS];
    MF_UNROLL
    for (int i = 0; i < words; i++) {
        MF_UNROLL
        for (int r = 0; r < n; r++) sum[i][r] = start_of(t, run_asum(t, &a[r], b, word_index(t, first, i) / run));
    }
    MF_UNROLL
    for (int k = 0; k < run; k++) {
        __m512i w[4];
        block256_words(t, body, first + k, w);
        MF_UNROLL
        for (int i = 0; i < words; i++) {
            MF_UNROLL
            for (int r = 0; r < n; r++) {
                const __m512i x = broadcast_32(a[r].q + 256 * b + 4 * word_index(t, first + k, i));
                sum[i][r] = _mm512_dpbusd_epi32(sum[i][r], w[i], x);
            }
        }
    }
    MF_UNROLL
    for (int i = 0; i < words; i++) {
        const __m512i sc = s->sc[word_index(t, first, i) / run];
        MF_UNROLL
        for (int r = 0; r < n; r++) total[r] = _mm512_add_epi32(total[r], _mm512_mullo_epi32(sum[i][r], sc));
    }
}

MF_INLINE void stream_256(mf_type t, const job *c, const uint8_t *panel, int32_t row, int n, float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    const mf_panel_shape shape = mf_panel_shape_of(t);
    const int steps = 64 / words_a_step(t), run = run_words(t), share = (shape.body - qs_offset(t)) / (steps / run);
    mf_act256 a[STREAM_ROWS];
    __m512 out[STREAM_ROWS];
    MF_UNROLL
    for (int r = 0; r < n; r++) {
        a[r] = mf_act256_of(c->act + (size_t)(row + r) * c->act_stride, n_in);
        out[r] = _mm512_setzero_ps();
    }
    for (int64_t b = 0; b < n_in / 256; b++) {
        const uint8_t *head = panel + mf_panel_head(shape, b), *body = panel + mf_panel_body(shape, b);
        scales256 s;
        prefetch(head + AHEAD, 1);
        prefetch(body + AHEAD, qs_offset(t));
        block256_scales(t, head, body, &s);
        __m512i total[STREAM_ROWS];
        MF_UNROLL
        for (int r = 0; r < n; r++) total[r] = _mm512_setzero_si512();
        for (int step = 0; step < steps; step += run) {
            prefetch(body + AHEAD + qs_offset(t) + step / run * share, share);
            stream_run(t, body, step, a, n, b, &s, total);
        }
        MF_UNROLL
        for (int r = 0; r < n; r++) out[r] = finish_256(t, &a[r], b, total[r], &s, out[r]);
    }
    MF_UNROLL
    for (int r = 0; r < n; r++) _mm512_store_ps(acc[r], out[r]);
}

// ---- The whole -----------------------------------------------------------------------------------------------------------

#include "backend/cpu/x86/matmul_whole.h"

#define CHAINS 16

static uint64_t int8_peak(uint64_t rounds, uint32_t *sink) {
    const __m512i w = _mm512_set1_epi8((char)(*sink & 63)), a = _mm512_set1_epi8((char)(*sink & 7));
    __m512i sum[CHAINS];
    MF_UNROLL
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_set1_epi32(i);
    for (uint64_t n = 0; n < rounds; n++) {
        MF_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = _mm512_dpbusd_epi32(sum[i], w, a);
            MF_PIN(sum[i]);
        }
    }
    MF_UNROLL
    for (int i = 1; i < CHAINS; i++) sum[0] = _mm512_xor_si512(sum[0], sum[i]);
    *sink += (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(sum[0]));
    return rounds * CHAINS * 64;
}

void mf_matmul_avx512(mf_kernels *k) {
    k->panels = true;
    k->quantize_32 = mf_quantize_32_avx512;
    k->quantize_256 = mf_quantize_256_avx512;
    k->int8_peak = int8_peak;
    k->matmul[MF_TYPE_F32] = mf_matmul_f32_avx512;
    k->matmul[MF_TYPE_F16] = mf_matmul_f16_avx512;
    k->matmul[MF_TYPE_BF16] = mf_matmul_bf16_avx512;
    k->matmul[MF_TYPE_Q4_0] = matmul_q4_0;
    k->matmul[MF_TYPE_Q4_1] = matmul_q4_1;
    k->matmul[MF_TYPE_Q5_0] = matmul_q5_0;
    k->matmul[MF_TYPE_Q5_1] = matmul_q5_1;
    k->matmul[MF_TYPE_Q8_0] = matmul_q8_0;
    k->matmul[MF_TYPE_IQ4_NL] = matmul_iq4_nl;
    k->matmul[MF_TYPE_IQ4_XS] = matmul_iq4_xs;
    k->matmul[MF_TYPE_Q2_K] = matmul_q2_k;
    k->matmul[MF_TYPE_Q3_K] = matmul_q3_k;
    k->matmul[MF_TYPE_Q4_K] = matmul_q4_k;
    k->matmul[MF_TYPE_Q5_K] = matmul_q5_k;
    k->matmul[MF_TYPE_Q6_K] = matmul_q6_k;
}
