// Packing rows of a file into panels, and reading a row back.
#include "backend/cpu/panels.h"

#include <string.h>

#include "backend/cpu/panels_layout.h"
#include "base/mem.h"
#include "quant/blocks.h"

// A field of a file's block, in the order in which the panel's block holds them (heads first). unit: how many bytes stay
// together.
typedef struct field {
    uint8_t offset, bytes, unit;
    bool fifth_bits;
} field;

#define FIELD(type, name, unit) \
    { offsetof(mf_block_##type, name), sizeof(((mf_block_##type *)0)->name), unit, false }
#define FIFTH_BITS(type) \
    { offsetof(mf_block_##type, qh), 4, 4, true }
#define MAX_FIELDS 5

static const field fields[MF_TYPE_LIMIT][MAX_FIELDS] = {
    [MF_TYPE_Q4_0] = {FIELD(q4_0, d, 2), FIELD(q4_0, qs, 4)},
    [MF_TYPE_IQ4_NL] = {FIELD(iq4_nl, d, 2), FIELD(iq4_nl, qs, 4)},
    [MF_TYPE_Q4_1] = {FIELD(q4_1, d, 2), FIELD(q4_1, m, 2), FIELD(q4_1, qs, 4)},
    [MF_TYPE_Q5_0] = {FIELD(q5_0, d, 2), FIFTH_BITS(q5_0), FIELD(q5_0, qs, 4)},
    [MF_TYPE_Q5_1] = {FIELD(q5_1, d, 2), FIELD(q5_1, m, 2), FIFTH_BITS(q5_1), FIELD(q5_1, qs, 4)},
    [MF_TYPE_Q8_0] = {FIELD(q8_0, d, 2), FIELD(q8_0, qs, 4)},
    [MF_TYPE_Q2_K] = {FIELD(q2_k, d, 2), FIELD(q2_k, dmin, 2), FIELD(q2_k, scales, 1), FIELD(q2_k, qs, 4)},
    [MF_TYPE_Q3_K] = {FIELD(q3_k, d, 2), FIELD(q3_k, scales, 1), FIELD(q3_k, hmask, 4), FIELD(q3_k, qs, 4)},
    [MF_TYPE_Q4_K] = {FIELD(q4_k, d, 2), FIELD(q4_k, dmin, 2), FIELD(q4_k, scales, 1), FIELD(q4_k, qs, 4)},
    [MF_TYPE_Q5_K] = {FIELD(q5_k, d, 2), FIELD(q5_k, dmin, 2), FIELD(q5_k, scales, 1), FIELD(q5_k, qh, 4),
                      FIELD(q5_k, qs, 4)},
    [MF_TYPE_Q6_K] = {FIELD(q6_k, d, 2), FIELD(q6_k, scales, 1), FIELD(q6_k, ql, 4), FIELD(q6_k, qh, 4)},
    [MF_TYPE_IQ4_XS] = {FIELD(iq4_xs, d, 2), FIELD(iq4_xs, scales_h, 1), FIELD(iq4_xs, scales_l, 1), FIELD(iq4_xs, qs, 4)},
};

#define MAX_BLOCK_BYTES 256

// Bytes of a value of the float types; 0 for others.
static size_t float_bytes(mf_type type) {
    return type == MF_TYPE_F32 ? 4 : type == MF_TYPE_F16 || type == MF_TYPE_BF16 ? 2 : 0;
}

size_t mf_panel_bytes(mf_type type, int64_t n_in) {
    const mf_panel_shape s = mf_panel_shape_of(type);
    if (s.body == 0) return mf_align_up((size_t)n_in * MF_PANEL * float_bytes(type), 64);
    const int64_t blocks = n_in / s.block_len;
    return s.paired ? mf_panel_head(s, blocks + blocks % 2) - (size_t)(blocks % 2 * s.body) : mf_panel_head(s, blocks);
}

// Bit i of the file's word belongs to value i; in the panel's it is bit i / 4 of byte i % 4.
static uint32_t spread_bits(uint32_t word) {
    uint32_t out = 0;
    for (int j = 0; j < 8; j++) out |= ((word >> 4 * j & 15) * 0x00204081u & 0x01010101u) << j;
    return out;
}

static uint32_t gather_bits(uint32_t word) {
    uint32_t out = 0;
    for (int i = 0; i < 32; i++) out |= (word >> (8 * (i % 4) + i / 4) & 1) << i;
    return out;
}

// Copies a field of n units of one row to or from its places in the panel, 16 units apart.
static inline void put_words(uint8_t *to, const uint8_t *from, int n) {
    for (int i = 0; i < n; i++) memcpy(to + 64 * i, from + 4 * i, 4);
}

static void put_field(uint8_t *to, const uint8_t *from, field f, int row) {
    if (f.fifth_bits) {
        uint32_t word;
        memcpy(&word, from, 4);
        word = spread_bits(word);
        memcpy(to + 4 * row, &word, 4);
    } else if (f.unit == 4) {
        put_words(to + 4 * row, from, f.bytes / 4);
    } else if (f.unit == 2) {
        memcpy(to + 2 * row, from, 2);
    } else {
        for (int i = 0; i < f.bytes; i++) to[MF_PANEL * i + row] = from[i];
    }
}

static void get_field(uint8_t *to, const uint8_t *from, field f, int row) {
    for (int i = 0; i < f.bytes / f.unit; i++) memcpy(to + i * f.unit, from + (i * MF_PANEL + row) * f.unit, f.unit);
    if (f.fifth_bits) {
        uint32_t word;
        memcpy(&word, to, 4);
        word = gather_bits(word);
        memcpy(to, &word, 4);
    }
}

// The place of field i of block b; fields are placed one after the other, those of the head before those of the body.
static size_t field_place(mf_panel_shape s, int64_t b, size_t place) {
    return place < (size_t)s.head ? mf_panel_head(s, b) + place : mf_panel_body(s, b) + place - (size_t)s.head;
}

static void pack_floats(size_t size, const uint8_t *rows, size_t row_bytes, int n_rows, int64_t n_in, uint8_t *out) {
    for (int64_t k = 0; k < n_in; k++) {
        for (int r = 0; r < n_rows; r++) {
            memcpy(out + ((size_t)k * MF_PANEL + (size_t)r) * size, rows + (size_t)r * row_bytes + (size_t)k * size, size);
        }
    }
}

void mf_panel_pack(mf_type type, const void *file_rows, int64_t n_in, int64_t n_out, int64_t p, void *out) {
    size_t row_bytes;
    if (!mf_type_row_bytes(type, (uint64_t)n_in, &row_bytes)) return;
    const int64_t first = p * MF_PANEL, left = n_out - first;
    const int n_rows = left < MF_PANEL ? (int)left : MF_PANEL;
    const uint8_t *rows = (const uint8_t *)file_rows + (size_t)first * row_bytes;
    uint8_t *panel = out;
    if (n_rows < MF_PANEL) memset(panel, 0, mf_panel_bytes(type, n_in));
    const size_t size = float_bytes(type);
    if (size == 4) pack_floats(4, rows, row_bytes, n_rows, n_in, panel);
    if (size == 2) pack_floats(2, rows, row_bytes, n_rows, n_in, panel);
    if (size) return;
    const mf_panel_shape s = mf_panel_shape_of(type);
    const size_t block_bytes = mf_type_info_of(type)->block_bytes;
    for (int64_t b = 0; b < n_in / s.block_len; b++) {
        size_t place = 0;
        for (const field *f = fields[type]; f < fields[type] + MAX_FIELDS && f->bytes; f++) {
            uint8_t *to = panel + field_place(s, b, place);
            const uint8_t *from = rows + (size_t)b * block_bytes + f->offset;
            for (int r = 0; r < n_rows; r++) put_field(to, from + (size_t)r * row_bytes, *f, r);
            place += (size_t)f->bytes * MF_PANEL;
        }
    }
}

void mf_panel_row(const mf_matrix *w, int64_t row, float *out) {
    const mf_type_info *info = mf_type_info_of(w->type);
    const uint8_t *panel = (const uint8_t *)w->data + (size_t)(row / MF_PANEL) * w->stride;
    const int lane = (int)(row % MF_PANEL);
    const size_t size = float_bytes(w->type);
    if (size) {
        for (int64_t k = 0; k < w->n_in; k++) info->decode(panel + ((size_t)k * MF_PANEL + (size_t)lane) * size, out + k, 1);
        return;
    }
    const mf_panel_shape s = mf_panel_shape_of(w->type);
    for (int64_t b = 0; b < w->n_in / s.block_len; b++) {
        uint8_t block[MAX_BLOCK_BYTES];
        size_t place = 0;
        for (const field *f = fields[w->type]; f < fields[w->type] + MAX_FIELDS && f->bytes; f++) {
            get_field(block + f->offset, panel + field_place(s, b, place), *f, lane);
            place += (size_t)f->bytes * MF_PANEL;
        }
        info->decode(block, out + b * s.block_len, (size_t)s.block_len);
    }
}
