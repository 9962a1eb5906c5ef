// Matmuls of the K types for many rows of activations on AMX: tiles of 16 rows of activations times 16 rows of weights. The scales of the
// sub-blocks go into the weights first, so that a super-block is one exact sum of products without a step of its own for each scale: a
// weight times its scale is a number of 9 to 14 bits, taken as one or two bytes. A super-block is unpacked and split once for up to
// AMX_ROWS rows; few rows and rows beyond whole tiles go to AVX-512.
//
// Tile instructions are written out: compilers' intrinsics differ in what they say about memory.
#include <string.h>

#include "backend/cpu/rows.h"
#include "backend/cpu/x86/matmul_avx512.h"
#include "backend/cpu/x86/vec512.h"

#define FEW_ROWS  32            // below, tiles do not gain
#define AMX_ROWS  256           // rows of activations that share an unpacked super-block
#define AMX_BLOCK (1024 * 1024) // about so many bytes of them: half of a second-level cache
#define TILE      16            // rows of a tile, of 64 bytes each
#define GROUP     (2 * TILE)    // rows of activations that share a load of weights

// ---- For unpack.h and finish.h -------------------------------------------------------------------------------------------

MF_INLINE vec from_signed(vec v) { return v; }

MF_INLINE vec raised(mf_type t, vec v) {
    (void)t;
    return v;
}

MF_INLINE int offset_of(mf_type t) {
    (void)t;
    return 0;
}

MF_INLINE int run_words(mf_type t) { return t == MF_TYPE_Q4_K || t == MF_TYPE_Q5_K ? 8 : 4; }

// As 16-bit pairs (sc, sc).
MF_INLINE void put_scale(__m128i bytes, vec out[PARTS]) { bytes_to_pairs(bytes, bytes, out); }

MF_INLINE vec add_pairs(vec sum, vec w, vec x) { return _mm512_dpwssd_epi32(sum, w, x); }

#include "backend/cpu/x86/finish.h"

// ---- Tiles ---------------------------------------------------------------------------------------------------------------

// What LDTILECFG reads (Intel SDM, "Tile configuration").
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

static void open_tiles(void) {
    tile_config config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = 64;
        config.rows[i] = TILE;
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

static void close_tiles(void) { __asm__ volatile("tilerelease"); }

#define TILE_ZERO(to) __asm__ volatile("tilezero %%tmm" #to : :)
#define TILE_LOAD(to, from, stride) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #to : : "r"(from), "r"((size_t)(stride)) : "memory")
#define TILE_STORE(from, to) __asm__ volatile("tilestored %%tmm" #from ", (%0,%1,1)" : : "r"(to), "r"((size_t)64) : "memory")
// sum += a * w: bytes of a are signed, those of w unsigned or signed.
#define TILE_DOT_UNSIGNED(sum, a, w) __asm__ volatile("tdpbsud %%tmm" #w ", %%tmm" #a ", %%tmm" #sum : :)
#define TILE_DOT_SIGNED(sum, a, w)   __asm__ volatile("tdpbssd %%tmm" #w ", %%tmm" #a ", %%tmm" #sum : :)

// ---- Weights times scales ------------------------------------------------------------------------------------------------

// How the products of weights and scales are kept: Q2_K's (0 … 45) as unsigned bytes, Q3_K's (-124 … 128) as signed bytes after
// negation, others in two bytes, an unsigned and a signed one.
MF_INLINE bool is_negated(mf_type t) { return t == MF_TYPE_Q3_K; }
MF_INLINE bool has_high(mf_type t) { return t != MF_TYPE_Q2_K && t != MF_TYPE_Q3_K; }

// How far unpacked words stand above the type's values.
MF_INLINE int words_above(mf_type t) { return t == MF_TYPE_Q3_K ? 4 : t == MF_TYPE_Q6_K ? 32 : 0; }

typedef struct scaled256 {
    _Alignas(64) uint8_t low[64 * 64];
    _Alignas(64) uint8_t high[64 * 64];
    scales256 scales;
} scaled256;

MF_INLINE void put_scaled(mf_type t, scaled256 *to, int word, vec w) {
    const vec above = _mm512_set1_epi16((short)words_above(t));
    vec sc = to->scales.sc[word / run_words(t)][0];
    if (is_negated(t)) sc = _mm512_sub_epi16(vec_zero(), sc);
    const vec even = _mm512_mullo_epi16(_mm512_sub_epi16(_mm512_and_si512(w, _mm512_set1_epi16(255)), above), sc);
    const vec odd = _mm512_mullo_epi16(_mm512_sub_epi16(SHIFT_RIGHT(w, 8), above), sc);
    const __mmask64 odd_bytes = 0xaaaaaaaaaaaaaaaa;
    store_part(to->low, word, 0, _mm512_mask_blend_epi8(odd_bytes, even, SHIFT_LEFT(odd, 8)));
    if (has_high(t)) store_part(to->high, word, 0, _mm512_mask_blend_epi8(odd_bytes, SHIFT_RIGHT(even, 8), odd));
}

MF_INLINE void unpack_scaled(mf_type t, const uint8_t *panel, int64_t b, scaled256 *to) {
    const mf_panel_shape s = mf_panel_shape_of(t);
    const uint8_t *head = panel + mf_panel_head(s, b), *body = panel + mf_panel_body(s, b);
    prefetch(body + s.body, s.body);
    block256_scales(t, head, body, &to->scales);
    for (int step = 0; step < 64 / words_a_step(t); step++) {
        vec w[4];
        block256_words(t, body, step, 0, w);
        MF_UNROLL
        for (int i = 0; i < words_a_step(t); i++) put_scaled(t, to, word_index(t, step, i), w[i]);
    }
}

// ---- A group of rows -----------------------------------------------------------------------------------------------------

typedef struct sums256 {
    _Alignas(64) int32_t low[GROUP][MF_PANEL];
    _Alignas(64) int32_t high[GROUP][MF_PANEL];
} sums256;

// One or two tiles of rows of activations, from q on, times a super-block.
MF_INLINE void multiply(mf_type t, const scaled256 *w, const int8_t *q, size_t stride, int n_tiles, sums256 *out) {
    const bool second = n_tiles > 1;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    MF_UNROLL
    for (int c = 0; c < 4; c++) { // 64 values
        TILE_LOAD(4, q + 64 * c, stride);
        TILE_LOAD(6, w->low + 16 * 64 * c, 64);
        if (is_negated(t)) TILE_DOT_SIGNED(0, 4, 6);
        if (!is_negated(t)) TILE_DOT_UNSIGNED(0, 4, 6);
        if (has_high(t)) {
            TILE_LOAD(7, w->high + 16 * 64 * c, 64);
            TILE_DOT_SIGNED(2, 4, 7);
        }
        if (second) {
            TILE_LOAD(5, q + TILE * stride + 64 * c, stride);
            if (is_negated(t)) TILE_DOT_SIGNED(1, 5, 6);
            if (!is_negated(t)) TILE_DOT_UNSIGNED(1, 5, 6);
            if (has_high(t)) TILE_DOT_SIGNED(3, 5, 7);
        }
    }
    TILE_STORE(0, out->low[0]);
    if (second) TILE_STORE(1, out->low[TILE]);
    if (has_high(t)) TILE_STORE(2, out->high[0]);
    if (has_high(t) && second) TILE_STORE(3, out->high[TILE]);
}

MF_INLINE void finish(mf_type t, const scaled256 *w, const sums256 *sums, const char *act, size_t stride, int64_t n_in,
                      int64_t b, int n, float (*acc)[MF_PANEL]) {
    for (int r = 0; r < n; r++) {
        const mf_act256 a = mf_act256_of(act + (size_t)r * stride, n_in);
        vec sum = _mm512_load_si512(sums->low[r]);
        if (is_negated(t)) sum = sub_ints(vec_zero(), sum);
        if (has_high(t)) sum = add_ints(sum, _mm512_slli_epi32(_mm512_load_si512(sums->high[r]), 8));
        store_floats(acc[r], 0, finish_256(t, &a, b, sum, &w->scales, 0, load_floats(acc[r], 0)));
    }
}

// ---- The whole -----------------------------------------------------------------------------------------------------------

// A panel times n rows of activations, a multiple of TILE. The tiles of a group are multiplied while the sums of the one before are
// turned to floats.
MF_INLINE void panel_rows(mf_type t, const job *c, const uint8_t *panel, int32_t row0, int n, float (*acc)[MF_PANEL]) {
    const int64_t n_in = c->w->n_in;
    const char *act = c->act + (size_t)row0 * c->act_stride;
    scaled256 w;
    sums256 sums[2];
    memset(acc, 0, (size_t)n * sizeof acc[0]);
    for (int64_t b = 0; b < n_in / 256; b++) {
        unpack_scaled(t, panel, b, &w);
        for (int r = 0; r < n + GROUP; r += GROUP) {
            const int which = r / GROUP % 2, before = r - GROUP, left = n - before;
            const int8_t *q = (const int8_t *)act + (size_t)r * c->act_stride + 256 * b;
            if (r + GROUP <= n) multiply(t, &w, q, c->act_stride, 2, &sums[which]);
            if (r + TILE == n) multiply(t, &w, q, c->act_stride, 1, &sums[which]);
            if (before < 0) continue;
            finish(t, &w, &sums[!which], act + (size_t)before * c->act_stride, c->act_stride, n_in, b,
                   left < GROUP ? left : GROUP, acc + before);
        }
    }
}

MF_INLINE void matmul(mf_type t, const job *c, int32_t n_rows, int32_t panel0, int32_t panel1) {
    const int32_t n_tiled = n_rows < FEW_ROWS ? 0 : n_rows / TILE * TILE;
    const int block = rows_within(AMX_BLOCK, AMX_ROWS, c->act_stride, GROUP);
    if (n_tiled > 0) open_tiles();
    for (int32_t row = 0; row < n_tiled; row += block) {
        const int n = n_tiled - row < block ? n_tiled - row : block;
        for (int32_t p = panel0; p < panel1; p++) {
            _Alignas(64) float acc[AMX_ROWS][MF_PANEL];
            panel_rows(t, c, (const uint8_t *)c->w->data + (size_t)p * c->w->stride, row, n, acc);
            store_rows(c, p, row, n, acc);
        }
    }
    if (n_tiled > 0) close_tiles();
    if (n_tiled < n_rows) {
        mf_matmul_of_avx512(t)(c->w, c->act + (size_t)n_tiled * c->act_stride, c->act_stride, n_rows - n_tiled, panel0,
                               panel1, c->dst + (size_t)n_tiled * c->dst_stride, c->dst_stride);
    }
}

MATMUL(static, matmul_q2_k, MF_TYPE_Q2_K)
MATMUL(static, matmul_q3_k, MF_TYPE_Q3_K)
MATMUL(static, matmul_q4_k, MF_TYPE_Q4_K)
MATMUL(static, matmul_q5_k, MF_TYPE_Q5_K)
MATMUL(static, matmul_q6_k, MF_TYPE_Q6_K)

static uint64_t int8_peak(uint64_t rounds, uint32_t *sink) {
    _Alignas(64) uint8_t bytes[TILE * 64];
    _Alignas(64) int32_t sum[TILE * TILE] = {0};
    memset(bytes, (int)(*sink & 63), sizeof bytes);
    open_tiles();
    TILE_LOAD(5, bytes, 64);
    TILE_LOAD(6, bytes, 64);
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (uint64_t n = 0; n < rounds; n++) {
        TILE_DOT_UNSIGNED(0, 5, 6);
        TILE_DOT_UNSIGNED(1, 5, 6);
        TILE_DOT_UNSIGNED(2, 5, 6);
        TILE_DOT_UNSIGNED(3, 5, 6);
    }
    TILE_STORE(0, sum);
    close_tiles();
    *sink += (uint32_t)sum[0];
    return rounds * 4 * TILE * TILE * 64;
}

void mf_matmul_amx(mf_kernels *k) {
    k->matmul[MF_TYPE_Q2_K] = matmul_q2_k;
    k->matmul[MF_TYPE_Q3_K] = matmul_q3_k;
    k->matmul[MF_TYPE_Q4_K] = matmul_q4_k;
    k->matmul[MF_TYPE_Q5_K] = matmul_q5_k;
    k->matmul[MF_TYPE_Q6_K] = matmul_q6_k;
    k->int8_peak = int8_peak;
}
