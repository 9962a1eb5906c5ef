// The quantized matmuls with VNNI (matmul_body.h), which sums products of bytes in 32 bits. The including file has chosen its vectors
// and defines
//
//   GROUP, CHAINS        most rows that share a load of weights; sums that hide the instructions' latency
//   DOT_BYTES(s, w, x)   vpdpbusd: s plus the products of the unsigned bytes of w with the signed ones of x, in 32 bits
//   DOT_PAIRS(s, w, x)   vpdpwssd
//
// Words are unsigned bytes, a constant above the values: any will do, for the sums are exact. It is taken off with the sum of the
// activations: at the start of a block of 32, at the end of a super-block (weighed with the scales: one product for 32 values).
#ifndef MF_BACKEND_CPU_X86_MATMUL_VNNI_H
#define MF_BACKEND_CPU_X86_MATMUL_VNNI_H

#include "backend/cpu/act.h"

#define WORDS_32 8

// ---- For unpack.h --------------------------------------------------------------------------------------------------------

MF_INLINE vec from_signed(vec v) { return xor_bits(v, bytes_of(128)); }

MF_INLINE vec raised(mf_type t, vec v) {
    (void)t;
    return v;
}

MF_INLINE int offset_of(mf_type t) {
    switch (t) {
    case MF_TYPE_Q3_K: return 4;
    case MF_TYPE_Q4_0: return 8;
    case MF_TYPE_Q5_0: return 16;
    case MF_TYPE_Q6_K: return 32;
    case MF_TYPE_Q8_0:
    case MF_TYPE_IQ4_NL:
    case MF_TYPE_IQ4_XS: return 128;
    default: return 0;
    }
}

MF_INLINE int run_words(mf_type t) { return t == MF_TYPE_Q4_K || t == MF_TYPE_Q5_K ? 8 : 4; }

MF_INLINE void put_scale(__m128i bytes, vec out[PARTS]) { bytes_to_ints(bytes, out); }

// ---- For matmul_body.h ---------------------------------------------------------------------------------------------------

MF_INLINE void put_words(mf_type t, uint8_t *words, int step, int part, const vec w[4]) {
    MF_UNROLL
    for (int i = 0; i < words_a_step(t); i++) store_part(words, word_index(t, step, i), part, w[i]);
}

// asum as the low number of a 16-bit pair: it is within 32 * 127.
MF_INLINE vec start_32(mf_type t, const mf_act32 *a, int64_t b) {
    return offset_of(t) ? mul_pairs(broadcast_32(a->asum + b), pairs_of(-offset_of(t), 0)) : vec_zero();
}

MF_INLINE vec start_256(mf_type t, const mf_act256 *a, int64_t b, int run) {
    (void)t, (void)a, (void)b, (void)run;
    return vec_zero();
}

MF_INLINE vec add_pairs(vec sum, vec w, vec x) { return DOT_PAIRS(sum, w, x); }

MF_INLINE vec add_products(mf_type t, bool cached, vec sum, vec w, vec x) {
    (void)t, (void)cached;
    sum = DOT_BYTES(sum, w, x);
    MF_PIN(sum);
    return sum;
}

MF_INLINE vec add_scaled(vec total, vec sum, vec sc) { return add_ints(total, mul_ints(sum, sc)); }

MF_INLINE vec whole_sum(mf_type t, const mf_act32 *a, int64_t b, vec sum) {
    (void)t, (void)a, (void)b;
    return sum;
}

#include "backend/cpu/x86/matmul_body.h"

MF_INLINE ahead rows_32(mf_type t, const tile32 *tile, int n_blocks, int64_t b0, const mf_act32 *a, int n,
                        float (*acc)[MF_PANEL], ahead next) {
    fvec out[GROUP][PARTS];
    load_rows(acc, n, out);
    for (int b = 0; b < n_blocks; b++) {
        read_ahead(&next);
        vec sum[GROUP][PARTS];
        const int8_t *q[GROUP];
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            q[r] = a[r].q + 32 * (b0 + b);
            MF_UNROLL
            for (int p = 0; p < PARTS; p++) sum[r][p] = start_32(t, &a[r], b0 + b);
        }
        add_words(t, tile->words[b], 8, q, n, sum);
        finish_rows_32(t, tile, b, b0, a, n, sum, out);
    }
    keep_rows(acc, n, out);
    return next;
}

static uint64_t int8_peak(uint64_t rounds, uint32_t *sink) {
    const vec w = bytes_of((int)(*sink & 63)), x = bytes_of((int)(*sink & 7));
    vec sum[CHAINS];
    MF_UNROLL
    for (int i = 0; i < CHAINS; i++) sum[i] = ints_of(i);
    for (uint64_t n = 0; n < rounds; n++) {
        MF_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            sum[i] = DOT_BYTES(sum[i], w, x);
            MF_PIN(sum[i]);
        }
    }
    MF_UNROLL
    for (int i = 1; i < CHAINS; i++) sum[0] = xor_bits(sum[0], sum[i]);
    *sink += (uint32_t)first_int(sum[0]);
    return rounds * CHAINS * sizeof(vec);
}

#endif
