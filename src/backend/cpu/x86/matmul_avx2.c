// Quantized matmuls on AVX2 (matmul_body.h). Products of bytes are summed in 16 bits, so words are small enough for the 16-bit sum of a
// run, but for those of the wide types, whose bytes are signed. Offsets come with the activations' `start` (act.h), which also keeps
// Q5_1's sums within 16 bits; types with smaller offsets than that are raised by the difference.
#include <string.h>

#include "backend/cpu/act.h"
#include "backend/cpu/quantize.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/x86/float_avx2.h"
#include "backend/cpu/x86/vec256.h"

#define GROUP    4
#define WORDS_32 16

// Weights of 8 bits, whose sums take 32. In the cache they are 16-bit pairs: the even bytes of the 8 words, then the odd ones.
MF_INLINE bool is_wide(mf_type t) { return t == MF_TYPE_Q8_0 || t == MF_TYPE_IQ4_NL || t == MF_TYPE_IQ4_XS; }

MF_INLINE bool has_start(mf_type t) {
    return t == MF_TYPE_Q4_0 || t == MF_TYPE_Q5_0 || t == MF_TYPE_Q5_1 || t == MF_TYPE_Q3_K || t == MF_TYPE_Q6_K;
}

// ---- For unpack.h --------------------------------------------------------------------------------------------------------

MF_INLINE vec from_signed(vec v) { return v; }

MF_INLINE vec raised(mf_type t, vec v) {
    const int by = t == MF_TYPE_Q4_0 ? MF_ACT32_OFFSET - 8 : t == MF_TYPE_Q3_K ? MF_ACT256_OFFSET - 4 : 0;
    return by ? _mm256_add_epi8(v, bytes_of(by)) : v;
}

MF_INLINE int offset_of(mf_type t) {
    (void)t;
    return 0;
}

// Those whose sum fits 16 bits.
MF_INLINE int run_words(mf_type t) { return t == MF_TYPE_Q4_K ? 8 : 4; }

// As 16-bit pairs (sc, sc).
MF_INLINE void put_scale(__m128i bytes, vec out[PARTS]) {
    const __m256i both = _mm256_broadcastsi128_si256(bytes);
    const __m256i pick = _mm256_setr_epi8(-1, 0, -1, 0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3, //
                                          -1, 4, -1, 4, -1, 5, -1, 5, -1, 6, -1, 6, -1, 7, -1, 7);
    const __m256i next = _mm256_set1_epi16(0x0800);
    out[0] = _mm256_srai_epi16(_mm256_shuffle_epi8(both, pick), 8);
    out[1] = _mm256_srai_epi16(_mm256_shuffle_epi8(both, _mm256_add_epi8(pick, next)), 8);
}

// ---- For matmul_body.h ---------------------------------------------------------------------------------------------------

// The even and the odd bytes of each word as 16-bit pairs.
MF_INLINE vec even_bytes(vec v) { return _mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8); }
MF_INLINE vec odd_bytes(vec v) { return _mm256_srai_epi16(v, 8); }

MF_INLINE void put_words(mf_type t, uint8_t *words, int step, int part, const vec w[4]) {
    MF_UNROLL
    for (int i = 0; i < words_a_step(t); i++) {
        const int word = word_index(t, step, i);
        store_part(words, word, part, is_wide(t) ? even_bytes(w[i]) : w[i]);
        if (is_wide(t)) store_part(words, word + 8, part, odd_bytes(w[i]));
    }
}

MF_INLINE vec start_32(mf_type t, const mf_act32 *a, int64_t b) {
    return has_start(t) ? broadcast_32(a->start + 2 * b) : vec_zero();
}

MF_INLINE vec start_256(mf_type t, const mf_act256 *a, int64_t b, int run) {
    return has_start(t) ? broadcast_32(a->start + 32 * b + 2 * run) : vec_zero();
}

MF_INLINE vec add_pairs(vec sum, vec w, vec x) { return add_ints(sum, mul_pairs(w, x)); }

MF_INLINE vec add_products(mf_type t, bool cached, vec sum, vec w, vec x) {
    vec products;
    // Signed bytes, -128 among the weights. In C: in assembly two and four rows are slower, unlike those of IQ4 below.
    if (!cached && t == MF_TYPE_Q8_0) {
        const vec pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
        return add_pairs(sum, pairs, _mm256_set1_epi16(1));
    }
    // As one piece: gcc would copy the sums of several rows about.
    if (!cached && is_wide(t)) {
        __asm__("vpsignb %2, %3, %1\n\tvpmaddubsw %1, %4, %1\n\tvpmaddwd %5, %1, %1\n\tvpaddd %1, %0, %0"
                : "+x"(sum), "=&x"(products)
                : "x"(w), "x"(x), "x"(_mm256_abs_epi8(w)), "x"(_mm256_set1_epi16(1)));
        return sum;
    }
    if (!cached) {
        __asm__("vpmaddubsw %2, %3, %1\n\tvpaddw %1, %0, %0" : "+x"(sum), "=&x"(products) : "x"(x), "x"(w));
        return sum;
    }
    sum = is_wide(t) ? add_pairs(sum, w, x) : _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x));
    MF_PIN(sum);
    return sum;
}

MF_INLINE vec add_scaled(vec total, vec sum, vec sc) { return add_pairs(total, sum, sc); }

MF_INLINE vec whole_sum(mf_type t, const mf_act32 *a, int64_t b, vec sum) {
    if (!is_wide(t)) sum = mul_pairs(sum, _mm256_set1_epi16(1));
    // Q5_1 has no offset: takes back what its sum began with.
    if (t == MF_TYPE_Q5_1) sum = add_pairs(sum, broadcast_32(a->start + 2 * b), _mm256_set1_epi16(-1));
    return sum;
}

#include "backend/cpu/x86/matmul_body.h"

// Activations of a piece for the wide types: of each block the even, then the odd bytes of its words.
typedef struct wide_act {
    vec pairs[GROUP][PIECE / 32][2];
} wide_act;

MF_INLINE ahead rows_32(mf_type t, const tile32 *tile, int n_blocks, int64_t b0, const mf_act32 *a, int n,
                        float (*acc)[MF_PANEL], ahead next) {
    fvec out[GROUP][PARTS];
    load_rows(acc, n, out);
    wide_act wide;
    for (int b = 0; is_wide(t) && b < n_blocks; b++) {
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            const vec v = _mm256_loadu_si256((const __m256i *)(a[r].q + 32 * (b0 + b)));
            wide.pairs[r][b][0] = even_bytes(v);
            wide.pairs[r][b][1] = odd_bytes(v);
        }
    }
    for (int b = 0; b < n_blocks; b++) {
        read_ahead(&next);
        vec sum[GROUP][PARTS];
        const int8_t *q[GROUP];
        MF_UNROLL
        for (int r = 0; r < n; r++) {
            q[r] = is_wide(t) ? (const int8_t *)wide.pairs[r][b] : a[r].q + 32 * (b0 + b);
            sum[r][0] = sum[r][1] = start_32(t, &a[r], b0 + b);
        }
        add_words(t, tile->words[b], is_wide(t) ? 16 : 8, q, n, sum);
        finish_rows_32(t, tile, b, b0, a, n, sum, out);
    }
    keep_rows(acc, n, out);
    return next;
}

#define CHAINS 10

static uint64_t int8_peak(uint64_t rounds, uint32_t *sink) {
    const vec w = bytes_of((int)(*sink & 63));
    vec sum[CHAINS];
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
    for (int i = 1; i < CHAINS; i++) sum[0] = xor_bits(sum[0], sum[i]);
    *sink += (uint32_t)first_int(sum[0]);
    return rounds * CHAINS * 32;
}

void mf_matmul_avx2(mf_kernels *k) {
    fill_quantized(k);
    k->panels = true;
    k->quantize_32 = mf_quantize_32_avx2;
    k->quantize_256 = mf_quantize_256_avx2;
    k->int8_peak = int8_peak;
    k->matmul[MF_TYPE_F32] = mf_matmul_f32_avx2;
    k->matmul[MF_TYPE_F16] = mf_matmul_f16_avx2;
    k->matmul[MF_TYPE_BF16] = mf_matmul_bf16_avx2;
}
