// Quantized matmuls on AVX2. One or two rows of activations stream the panels and unpack in registers; more rows unpack a
// piece of a panel into the first-level cache once and go over it in groups of rows. Both walk the blocks of a row in the
// same order with the same steps, so a row's result does not depend on its neighbours.
#include "backend/cpu/rows.h"

#include <string.h>

#include "backend/cpu/quantize.h"
#include "backend/cpu/x86/float_avx2.h"
#include "backend/cpu/x86/matmul_job.h"

#include "backend/cpu/x86/unpack_avx2.h"

#define GROUP 4    // rows of activations that share a load of weights
#define PIECE 512  // values of a panel unpacked at a time
#define AHEAD 4096 // bytes that the streaming kernels prefetch ahead

// ---- The activations' side -----------------------------------------------------------------------------------------------

MF_INLINE __m256i broadcast_32(const void *p) { return _mm256_set1_epi32(load_32(p)); }

// Adds products to sums: of bytes in 16 bits, or, where `wide`, of 16-bit numbers in 32.
MF_INLINE __m256i add_products(bool wide, __m256i sum, __m256i w, __m256i a) {
    if (wide) sum = _mm256_add_epi32(sum, _mm256_madd_epi16(w, a));
    if (!wide) sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, a));
    MF_PIN(sum);
    return sum;
}

// The even and the odd bytes of each word as 16-bit pairs.
MF_INLINE __m256i even_bytes(__m256i v) { return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8); }
MF_INLINE __m256i odd_bytes(__m256i v) { return _mm256_srai_epi16(v, 8); }

// Ends a block of 32: its sums to acc.
MF_INLINE __m256 finish_32(mf_type t, const mf_act32 *a, int64_t b, __m256i sum, __m256 d, __m256 m, __m256 acc) {
    if (!is_wide(t)) sum = _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
    if (t == MF_TYPE_Q5_1) { // has no offset: takes back what its sum began with
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(broadcast_32(a->start + 2 * b), _mm256_set1_epi16(-1)));
    }
    acc = _mm256_fmadd_ps(_mm256_mul_ps(d, _mm256_set1_ps(a->d[b])), _mm256_cvtepi32_ps(sum), acc);
    if (has_min(t)) acc = _mm256_fmadd_ps(m, _mm256_set1_ps(a->s[b]), acc);
    return acc;
}

// Ends a super-block.
MF_INLINE __m256 finish_256(mf_type t, const mf_act256 *a, int64_t b, __m256i sum, const scales256 *s, int half,
                            __m256 acc) {
    const __m256 d_a = _mm256_set1_ps(a->d[b]);
    acc = _mm256_fmadd_ps(_mm256_mul_ps(s->d[half], d_a), _mm256_cvtepi32_ps(sum), acc);
    if (!has_min(t)) return acc;
    const int pairs = t == MF_TYPE_Q2_K ? 8 : 4;
    const int16_t *asum = t == MF_TYPE_Q2_K ? a->asum + 16 * b : a->asum32 + 8 * b;
    __m256i min = _mm256_setzero_si256();
    MF_UNROLL
    for (int i = 0; i < pairs; i++)
        min = _mm256_add_epi32(min, _mm256_madd_epi16(s->m[i][half], broadcast_32(asum + 2 * i)));
    return _mm256_fnmadd_ps(_mm256_mul_ps(s->dmin[half], d_a), _mm256_cvtepi32_ps(min), acc);
}

// ---- Many rows: a piece of a panel in the cache --------------------------------------------------------------------------

// words: [word][half of the rows][32 bytes]. Wide types: the even bytes of the 8 words as 16-bit pairs, then the odd ones.
typedef struct tile32 {
    uint8_t words[PIECE / 32][2 * 8 * 64];
    __m256 d[PIECE / 32][2], m[PIECE / 32][2];
} tile32;

typedef struct tile256 {
    uint8_t words[PIECE / 256][64 * 64];
    scales256 scales[PIECE / 256];
} tile256;

MF_INLINE void put_word(uint8_t *words, int word, int half, __m256i v) {
    _mm256_store_si256((__m256i *)(words + 64 * word + 32 * half), v);
}

MF_INLINE void put_words(mf_type t, uint8_t *words, int step, int half, const __m256i w[4]) {
    MF_UNROLL
    for (int i = 0; i < words_a_step(t); i++) {
        const int word = word_index(t, step, i);
        put_word(words, word, half, is_wide(t) ? even_bytes(w[i]) : w[i]);
        if (is_wide(t)) put_word(words, word + 8, half, odd_bytes(w[i]));
    }
}

// Bytes of a panel from one piece to the next.
MF_INLINE int piece_bytes(mf_type t) { return panel_bytes_of(t, PIECE); }

MF_INLINE void unpack_32(mf_type t, const uint8_t *panel, int64_t b0, int n_blocks, tile32 *tile) {
    for (int b = 0; b < n_blocks; b++) {
        const block32 at = block32_at(t, panel, b0 + b);
        prefetch(at.qs + piece_bytes(t), 512 / words_a_step(t));
        prefetch(at.head + piece_bytes(t), 1);
        block32_scales(t, &at, tile->d[b], tile->m[b]);
        MF_UNROLL
        for (int step = 0; step < 8 / words_a_step(t); step++) {
            MF_UNROLL
            for (int h = 0; h < 2; h++) {
                __m256i w[4];
                block32_words(t, &at, step, h, w);
                put_words(t, tile->words[b], step, h, w);
            }
        }
    }
}

MF_INLINE void unpack_256(mf_type t, const uint8_t *panel, int64_t b0, int n_blocks, tile256 *tile) {
    const mf_panel_shape s = mf_panel_shape_of(t);
    for (int b = 0; b < n_blocks; b++) {
        const uint8_t *body = panel + mf_panel_body(s, b0 + b);
        prefetch(body + piece_bytes(t), s.body);
        prefetch(panel + mf_panel_head(s, b0 + b) + piece_bytes(t), 1);
        block256_scales(t, panel + mf_panel_head(s, b0 + b), body, &tile->scales[b]);
        for (int step = 0; step < 64 / words_a_step(t); step++) {
            MF_UNROLL
            for (int h = 0; h < 2; h++) {
                __m256i w[4];
                block256_words(t, body, step, h, w);
                put_words(t, tile->words[b], step, h, w);
            }
        }
    }
}

// n_words words of weights (two vectors each) times those of n rows of activations: sum[row][vector].
MF_INLINE void add_words(bool wide, const uint8_t *words, int n_words, const int8_t *const *q, int n, __m256i (*sum)[2]) {
    MF_UNROLL
    for (int i = 0; i < n_words; i++) {
        __m256i w[2];
        MF_UNROLL
        for (int h = 0; h < 2; h++) {
            w[h] = _mm256_load_si256((const __m256i *)(words + 64 * i + 32 * h));
            MF_PIN(w[h]); // gcc would load it again for each row
        }
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            const __m256i a = broadcast_32(q[r] + 4 * i);
            MF_UNROLL
            for (int h = 0; h < 2; h++) sum[r][h] = add_products(wide, sum[r][h], w[h], a);
        }
    }
}

// Activations of a piece for the wide types: of each block the even, then the odd bytes of its words.
typedef struct wide_act {
    __m256i pairs[GROUP][PIECE / 32][2];
} wide_act;

// n rows of activations times the blocks of a tile, the first of which is block b0 of the row.
MF_INLINE void rows_32(mf_type t, const tile32 *tile, int n_blocks, int64_t b0, const mf_act32 *a, int n,
                       float (*acc)[MF_PANEL]) {
    wide_act wide;
    for (int b = 0; is_wide(t) && b < n_blocks; b++) {
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            const __m256i v = _mm256_loadu_si256((const __m256i *)(a[r].q + 32 * (b0 + b)));
            wide.pairs[r][b][0] = even_bytes(v);
            wide.pairs[r][b][1] = odd_bytes(v);
        }
    }
    for (int b = 0; b < n_blocks; b++) {
        __m256i sum[GROUP][2];
        const int8_t *q[GROUP];
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            q[r] = is_wide(t) ? (const int8_t *)wide.pairs[r][b] : a[r].q + 32 * (b0 + b);
            sum[r][0] = sum[r][1] = has_start(t) ? broadcast_32(a[r].start + 2 * (b0 + b)) : _mm256_setzero_si256();
        }
        add_words(is_wide(t), tile->words[b], is_wide(t) ? 16 : 8, q, n, sum);
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            __m256 out[2];
            MF_UNROLL
            for (int h = 0; h < 2; h++) {
                out[h] =
                    finish_32(t, &a[r], b0 + b, sum[r][h], tile->d[b][h], tile->m[b][h], _mm256_load_ps(acc[r] + 8 * h));
            }
            _mm256_store_ps(acc[r], out[0]);
            _mm256_store_ps(acc[r] + 8, out[1]);
        }
    }
}

MF_INLINE void rows_256(mf_type t, const tile256 *tile, int n_blocks, int64_t b0, const mf_act256 *a, int n,
                        float (*acc)[MF_PANEL]) {
    const int run = run_words(t);
    for (int b = 0; b < n_blocks; b++) {
        __m256i total[GROUP][2];
        MF_UNROLL
        for (int r = 0; r < n; r++) total[r][0] = total[r][1] = _mm256_setzero_si256();
        for (int j = 0; j < 64 / run; j++) {
            __m256i sum[GROUP][2];
            const int8_t *q[GROUP];
            MF_UNROLL
            for (int r = 0; r < n; r++) {
                q[r] = a[r].q + 256 * (b0 + b) + 4 * run * j;
                sum[r][0] = sum[r][1] =
                    has_start(t) ? broadcast_32(a[r].start + 32 * (b0 + b) + 2 * j) : _mm256_setzero_si256();
            }
            add_words(false, tile->words[b] + 64 * run * j, run, q, n, sum);
            MF_UNROLL
            for (int r = 0; r < n; r++) {
                MF_UNROLL
                for (int h = 0; h < 2; h++) {
                    total[r][h] = _mm256_add_epi32(total[r][h], _mm256_madd_epi16(sum[r][h], tile->scales[b].sc[j][h]));
                }
            }
        }
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            __m256 out[2];
            MF_UNROLL
            for (int h = 0; h < 2; h++) {
                out[h] = finish_256(t, &a[r], b0 + b, total[r][h], &tile->scales[b], h, _mm256_load_ps(acc[r] + 8 * h));
            }
            _mm256_store_ps(acc[r], out[0]);
            _mm256_store_ps(acc[r] + 8, out[1]);
        }
    }
}

// How many of `left` rows to take together: never a lone one behind a full group.
MF_INLINE int group_of(int left) { return left == 5 ? 3 : left < GROUP ? left : GROUP; }

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
            if (n == 4) rows_32(t, &tile, n_blocks, b0, a, 4, acc + r);
            if (n == 3) rows_32(t, &tile, n_blocks, b0, a, 3, acc + r);
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
            if (n == 4) rows_256(t, &tile, n_blocks, b0, a, 4, acc + r);
            if (n == 3) rows_256(t, &tile, n_blocks, b0, a, 3, acc + r);
            if (n == 2) rows_256(t, &tile, n_blocks, b0, a, 2, acc + r);
            if (n == 1) rows_256(t, &tile, n_blocks, b0, a, 1, acc + r);
        }
    }
}

// ---- One or two rows: streaming ------------------------------------------------------------------------------------------

#define STREAM_ROWS 2

// Adds the products of signed bytes, -128 among the weights, to 32-bit sums.
MF_INLINE __m256i add_signed_products(__m256i sum, __m256i w, __m256i a) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

// Half of block b, as `at` says, for n rows of activations: its sums to out[row].
MF_INLINE void stream_block_32(mf_type t, const block32 *at, int64_t b, int half, const mf_act32 *a, int n, __m256 d,
                               __m256 m, __m256 *out) {
    __m256i sum[STREAM_ROWS];
    MF_UNROLL
    for (int r = 0; r < n; r++) sum[r] = has_start(t) ? broadcast_32(a[r].start + 2 * b) : _mm256_setzero_si256();
    MF_UNROLL
    for (int step = 0; step < 8 / words_a_step(t); step++) {
        __m256i w[4];
        block32_words(t, at, step, half, w);
        MF_UNROLL
        for (int i = 0; i < words_a_step(t); i++) {
            MF_UNROLL
            for (int r = 0; r < n; r++) {
                const __m256i x = broadcast_32(a[r].q + 32 * b + 4 * word_index(t, step, i));
                sum[r] = is_wide(t) ? add_signed_products(sum[r], w[i], x) : add_products(false, sum[r], w[i], x);
            }
        }
    }
    MF_UNROLL
    for (int r = 0; r < n; r++) out[r] = finish_32(t, &a[r], b, sum[r], d, m, out[r]);
}

MF_INLINE void stream_32(mf_type t, const job *c, const uint8_t *panel, int32_t row, int n, float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    mf_act32 a[STREAM_ROWS];
    __m256 low[STREAM_ROWS], high[STREAM_ROWS];
    MF_UNROLL
    for (int r = 0; r < n; r++) {
        a[r] = mf_act32_of(c->act + (size_t)(row + r) * c->act_stride, n_in);
        low[r] = high[r] = _mm256_setzero_ps();
    }
    for (int64_t b = 0; b < n_in / 32; b++) {
        const block32 at = block32_at(t, panel, b);
        prefetch(at.qs + AHEAD, 512 / words_a_step(t));
        prefetch(at.head + AHEAD, 1);
        __m256 d[2], m[2];
        block32_scales(t, &at, d, m);
        stream_block_32(t, &at, b, 0, a, n, d[0], m[0], low);
        stream_block_32(t, &at, b, 1, a, n, d[1], m[1], high);
    }
    MF_UNROLL
    for (int r = 0; r < n; r++) {
        _mm256_store_ps(acc[r], low[r]);
        _mm256_store_ps(acc[r] + 8, high[r]);
    }
}

// Steps first to first + run of super-block b for n rows, the halves from half0 on: words_a_step sub-blocks at once, added
// to total.
MF_INLINE void stream_run(mf_type t, const uint8_t *body, int first, int half0, int halves, const mf_act256 *a, int n,
                          int64_t b, const scales256 *s, __m256i (*total)[2]) {
    const int words = words_a_step(t), run = run_words(t);
    __m256i sum[4][STREAM_ROWS][2];
    MF_UNROLL
    for (int i = 0; i < words; i++) {
        const int j = word_index(t, first, i) / run;
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            sum[i][r][0] = has_start(t) ? broadcast_32(a[r].start + 32 * b + 2 * j) : _mm256_setzero_si256();
            sum[i][r][1] = sum[i][r][0];
        }
    }
    MF_UNROLL
    for (int k = 0; k < run; k++) {
        MF_UNROLL
        for (int h = half0; h < half0 + halves; h++) {
            __m256i w[4];
            block256_words(t, body, first + k, h, w);
            MF_UNROLL
            for (int i = 0; i < words; i++) {
                MF_UNROLL
                for (int r = 0; r < n; r++) {
                    const __m256i x = broadcast_32(a[r].q + 256 * b + 4 * word_index(t, first + k, i));
                    sum[i][r][h] = add_products(false, sum[i][r][h], w[i], x);
                }
            }
        }
    }
    MF_UNROLL
    for (int i = 0; i < words; i++) {
        MF_UNROLL
        for (int h = half0; h < half0 + halves; h++) {
            const __m256i sc = s->sc[word_index(t, first, i) / run][h];
            MF_UNROLL
            for (int r = 0; r < n; r++) total[r][h] = _mm256_add_epi32(total[r][h], _mm256_madd_epi16(sum[i][r][h], sc));
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
        _mm256_store_ps(acc[r], _mm256_setzero_ps());
        _mm256_store_ps(acc[r] + 8, _mm256_setzero_ps());
    }
    for (int64_t b = 0; b < n_in / 256; b++) {
        const uint8_t *head = panel + mf_panel_head(shape, b), *body = panel + mf_panel_body(shape, b);
        scales256 s;
        prefetch(head + AHEAD, 1);
        prefetch(body + AHEAD, qs_offset(t));
        block256_scales(t, head, body, &s);
        __m256i total[STREAM_ROWS][2];
        MF_UNROLL
        for (int r = 0; r < n; r++) total[r][0] = total[r][1] = _mm256_setzero_si256();
        for (int step = 0; step < steps; step += run) {
            prefetch(body + AHEAD + qs_offset(t) + step / run * share, share);
            if (n * words_a_step(t) <= 4) { // both halves' sums fit the registers
                stream_run(t, body, step, 0, 2, a, n, b, &s, total);
            } else {
                stream_run(t, body, step, 0, 1, a, n, b, &s, total);
                stream_run(t, body, step, 1, 1, a, n, b, &s, total);
            }
        }
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            _mm256_store_ps(acc[r], finish_256(t, &a[r], b, total[r][0], &s, 0, _mm256_load_ps(acc[r])));
            _mm256_store_ps(acc[r] + 8, finish_256(t, &a[r], b, total[r][1], &s, 1, _mm256_load_ps(acc[r] + 8)));
        }
    }
}

// ---- The whole -----------------------------------------------------------------------------------------------------------

#include "backend/cpu/x86/matmul_whole.h"

#define CHAINS 10

static uint64_t int8_peak(uint64_t rounds, uint32_t *sink) {
    const __m256i w = _mm256_set1_epi8((char)(*sink & 63));
    __m256i sum[CHAINS];
    MF_UNROLL
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm256_set1_epi16((short)i);
    for (uint64_t n = 0; n < rounds; n++) {
        MF_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = _mm256_add_epi16(sum[i], _mm256_maddubs_epi16(w, sum[i]));
            MF_PIN(sum[i]);
        }
    }
    MF_UNROLL
    for (int i = 1; i < CHAINS; i++) sum[0] = _mm256_xor_si256(sum[0], sum[i]);
    *sink += (uint32_t)_mm256_extract_epi32(sum[0], 0);
    return rounds * CHAINS * 32;
}

void mf_matmul_avx2(mf_kernels *k) {
    k->panels = true;
    k->quantize_32 = mf_quantize_32_avx2;
    k->quantize_256 = mf_quantize_256_avx2;
    k->int8_peak = int8_peak;
    k->matmul[MF_TYPE_F32] = mf_matmul_f32_avx2;
    k->matmul[MF_TYPE_F16] = mf_matmul_f16_avx2;
    k->matmul[MF_TYPE_BF16] = mf_matmul_bf16_avx2;
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
