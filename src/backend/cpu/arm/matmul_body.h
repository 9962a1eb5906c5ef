// The quantized matmuls of the Arm rows, over what the including file defines:
//
//   GROUP                          most rows of activations that share a load of weights (4)
//   arrange_words(words, n_words)  brings unpacked words (matmul_neon.h) into the order that add_words takes
//   add_words(words, n_words, q, n, sum)   n_words words of weights (a multiple of 4) times those of n rows of activations from q[row]
//                                  on, added to sum[row][quarter of the panel's rows]; bytes are signed, activations within ±127
//   MULTIPLY(sum, w, a), MULTIPLY_MACS     the instruction that does most of the work, and its multiply-adds
//
// A piece of a panel is unpacked into the first-level cache once (unpack_neon.c) and gone over in groups of rows of activations. The
// steps of a row are the same in every group, so its result does not depend on its neighbours.
#ifndef MF_BACKEND_CPU_ARM_MATMUL_BODY_H
#define MF_BACKEND_CPU_ARM_MATMUL_BODY_H

#include <arm_neon.h>
#include <string.h>

#include "backend/cpu/act.h"
#include "backend/cpu/arm/matmul_neon.h"
#include "backend/cpu/lanes.h"

#define PIECE    512 // values of a panel unpacked at a time
#define MAX_ROWS 64  // rows of activations that share an unpacked piece

// n rows of activations times n_blocks tiles, the first of which is block b0 of the row.
LANES_INLINE void rows_32(bool has_min, const mf_tile32 *tile, int n_blocks, int64_t b0, const mf_act32 *a, int n,
                          float (*acc)[MF_PANEL]) {
    for (int i = 0; i < n_blocks; i++, tile++) {
        const int8_t *q[GROUP];
        int32x4_t sum[GROUP][4];
        LANES_UNROLL
        for (int r = 0; r < n; r++) {
            q[r] = a[r].q + 32 * (b0 + i);
            LANES_UNROLL
            for (int v = 0; v < 4; v++) sum[r][v] = vdupq_n_s32(0);
        }
        add_words(tile->words, 8, q, n, sum);
        LANES_UNROLL
        for (int r = 0; r < n; r++) {
            const float d_a = a[r].d[b0 + i], s_a = a[r].s[b0 + i];
            LANES_UNROLL
            for (int v = 0; v < 4; v++) {
                float32x4_t out = vld1q_f32(acc[r] + 4 * v);
                out = vfmaq_f32(out, vmulq_n_f32(vld1q_f32(tile->d + 4 * v), d_a), vcvtq_f32_s32(sum[r][v]));
                if (has_min) out = vfmaq_n_f32(out, vld1q_f32(tile->m + 4 * v), s_a);
                vst1q_f32(acc[r] + 4 * v, out);
            }
        }
    }
}

// Ends a super-block of one row.
LANES_INLINE void finish_256(int n_mins, const mf_tile256 *tile, float d_a, const int16_t *asum, const int32x4_t *total,
                             float *acc) {
    LANES_UNROLL
    for (int v = 0; v < 4; v++) {
        float32x4_t out = vld1q_f32(acc + 4 * v);
        out = vfmaq_f32(out, vmulq_n_f32(vld1q_f32(tile->d + 4 * v), d_a), vcvtq_f32_s32(total[v]));
        if (n_mins > 0) {
            int32x4_t min = vdupq_n_s32(0);
            for (int j = 0; j < n_mins; j++) min = vmlal_n_s16(min, vld1_s16(tile->m[j] + 4 * v), asum[j]);
            out = vfmsq_f32(out, vmulq_n_f32(vld1q_f32(tile->dmin + 4 * v), d_a), vcvtq_f32_s32(min));
        }
        vst1q_f32(acc + 4 * v, out);
    }
}

// sub: values of a sub-block.
LANES_INLINE void rows_256(int sub, bool has_min, const mf_tile256 *tile, int n_blocks, int64_t b0, const mf_act256 *a,
                           int n, float (*acc)[MF_PANEL]) {
    const int n_subs = 256 / sub;
    for (int64_t b = b0; b < b0 + n_blocks; b++, tile++) {
        int32x4_t total[GROUP][4];
        LANES_UNROLL
        for (int r = 0; r < n; r++) {
            LANES_UNROLL
            for (int v = 0; v < 4; v++) total[r][v] = vdupq_n_s32(0);
        }
        for (int j = 0; j < n_subs; j++) {
            const int8_t *q[GROUP];
            int32x4_t sum[GROUP][4];
            LANES_UNROLL
            for (int r = 0; r < n; r++) {
                q[r] = a[r].q + 256 * b + sub * j;
                LANES_UNROLL
                for (int v = 0; v < 4; v++) sum[r][v] = vdupq_n_s32(0);
            }
            add_words(tile->words + sub / 4 * MF_WORD_BYTES * j, sub / 4, q, n, sum);
            LANES_UNROLL
            for (int r = 0; r < n; r++) {
                LANES_UNROLL
                for (int v = 0; v < 4; v++) total[r][v] = vmlaq_s32(total[r][v], sum[r][v], vld1q_s32(tile->sc[j] + 4 * v));
            }
        }
        LANES_UNROLL
        for (int r = 0; r < n; r++) {
            const int16_t *asum = sub == 16 ? a[r].asum + 16 * b : a[r].asum32 + 8 * b;
            finish_256(has_min ? n_subs : 0, tile, a[r].d[b], asum, total[r], acc[r]);
        }
    }
}

// ---- Pieces of a panel -------------------------------------------------------------------------------------------------------

typedef struct job {
    const mf_matrix *w;
    const mf_unpacker *unpack;
    const char *act;
    size_t act_stride;
    float *dst;
    size_t dst_stride;
} job;

static const void *act_row(const job *c, int32_t row) { return c->act + (size_t)row * c->act_stride; }

static void piece_32(const job *c, const uint8_t *panel, int32_t row0, int n_rows, float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    const bool has_min = c->unpack->has_min;
    mf_tile32 tile[PIECE / 32];
    for (int64_t b0 = 0; b0 < n_in / 32; b0 += PIECE / 32) {
        const int n_blocks = n_in / 32 - b0 < PIECE / 32 ? (int)(n_in / 32 - b0) : PIECE / 32;
        for (int i = 0; i < n_blocks; i++) {
            c->unpack->block32(panel, b0 + i, &tile[i]);
            arrange_words(tile[i].words, 8);
        }
        for (int r = 0, n; r < n_rows; r += n) {
            mf_act32 a[GROUP];
            n = n_rows - r < GROUP ? n_rows - r : GROUP;
            for (int i = 0; i < n; i++) a[i] = mf_act32_of(act_row(c, row0 + r + i), n_in);
            if (n == 4) rows_32(has_min, tile, n_blocks, b0, a, 4, acc + r);
            if (n == 3) rows_32(has_min, tile, n_blocks, b0, a, 3, acc + r);
            if (n == 2) rows_32(has_min, tile, n_blocks, b0, a, 2, acc + r);
            if (n == 1) rows_32(has_min, tile, n_blocks, b0, a, 1, acc + r);
        }
    }
}

// One group of rows, for a constant size of sub-blocks.
LANES_INLINE void group_256(int sub, bool has_min, const mf_tile256 *tile, int n_blocks, int64_t b0, const mf_act256 *a,
                            int n, float (*acc)[MF_PANEL]) {
    if (n == 4) rows_256(sub, has_min, tile, n_blocks, b0, a, 4, acc);
    if (n == 3) rows_256(sub, has_min, tile, n_blocks, b0, a, 3, acc);
    if (n == 2) rows_256(sub, has_min, tile, n_blocks, b0, a, 2, acc);
    if (n == 1) rows_256(sub, has_min, tile, n_blocks, b0, a, 1, acc);
}

static void piece_256(const job *c, const uint8_t *panel, int32_t row0, int n_rows, float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    const bool has_min = c->unpack->has_min;
    mf_tile256 tile[PIECE / 256];
    for (int64_t b0 = 0; b0 < n_in / 256; b0 += PIECE / 256) {
        const int n_blocks = n_in / 256 - b0 < PIECE / 256 ? (int)(n_in / 256 - b0) : PIECE / 256;
        for (int i = 0; i < n_blocks; i++) {
            c->unpack->block256(panel, b0 + i, &tile[i]);
            arrange_words(tile[i].words, 64);
        }
        for (int r = 0, n; r < n_rows; r += n) {
            mf_act256 a[GROUP];
            n = n_rows - r < GROUP ? n_rows - r : GROUP;
            for (int i = 0; i < n; i++) a[i] = mf_act256_of(act_row(c, row0 + r + i), n_in);
            if (c->unpack->sub_block == 16) group_256(16, has_min, tile, n_blocks, b0, a, n, acc + r);
            if (c->unpack->sub_block == 32) group_256(32, has_min, tile, n_blocks, b0, a, n, acc + r);
        }
    }
}

// ---- The whole ---------------------------------------------------------------------------------------------------------------

static void matmul(const mf_matrix *w, const void *act, size_t act_stride, int32_t n_rows, int32_t panel0, int32_t panel1,
                   float *dst, size_t dst_stride) {
    const job c = {w, mf_unpacker_of(w->type), act, act_stride, dst, dst_stride};
    for (int32_t row = 0; row < n_rows; row += MAX_ROWS) {
        const int n = n_rows - row < MAX_ROWS ? n_rows - row : MAX_ROWS;
        for (int32_t p = panel0; p < panel1; p++) {
            const uint8_t *panel = (const uint8_t *)w->data + (size_t)p * w->stride;
            const int64_t first = (int64_t)p * MF_PANEL, left = w->n_out - first;
            const size_t n_store = left < MF_PANEL ? (size_t)left : MF_PANEL;
            float acc[MAX_ROWS][MF_PANEL];
            memset(acc, 0, (size_t)n * sizeof acc[0]);
            if (c.unpack->block32) piece_32(&c, panel, row, n, acc);
            if (c.unpack->block256) piece_256(&c, panel, row, n, acc);
            for (int r = 0; r < n; r++)
                memcpy(dst + (size_t)(row + r) * dst_stride + first, acc[r], n_store * sizeof(float));
        }
    }
}

#define CHAINS 16

static uint64_t int8_peak(uint64_t rounds, uint32_t *sink) {
    const int8x16_t w = vdupq_n_s8((int8_t)(*sink & 63)), a = vdupq_n_s8((int8_t)(*sink >> 6 & 63));
    int32x4_t sum[CHAINS];
    LANES_UNROLL
    for (int i = 0; i < CHAINS; i++) sum[i] = vdupq_n_s32(i);
    for (uint64_t n = 0; n < rounds; n++) {
        LANES_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = MULTIPLY(sum[i], w, a);
            __asm__("" : "+w"(sum[i])); // the compiler must not make one multiplication of the rounds
        }
    }
    LANES_UNROLL
    for (int i = 1; i < CHAINS; i++) sum[0] = veorq_s32(sum[0], sum[i]);
    *sink += (uint32_t)vgetq_lane_s32(sum[0], 0);
    return rounds * CHAINS * MULTIPLY_MACS;
}

static void fill_quantized(mf_kernels *k, mf_matmul_fn *fn) {
    for (int type = 0; type < MF_TYPE_LIMIT; type++) {
        if (mf_unpacker_of((mf_type)type)->sub_block) k->matmul[type] = fn;
    }
    k->int8_peak = int8_peak;
}

#endif
