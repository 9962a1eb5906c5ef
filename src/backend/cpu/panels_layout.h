// Where things are in a panel. A block of a panel holds one block of each of 16 rows, its fields transposed:
//   f16 scales           [16 rows]
//   packed 6-bit scales  [byte of the file's field][16 rows]
//   packed weights       [word of 4 bytes of the file's field][16 rows][4]
// so a vector of 64 bytes (or two of 32) holds 4 neighbouring values (or nibbles) of each row, and it takes the same shifts
// and masks as the file's bytes to unpack them. Blocks follow each other by ascending k. Where a block has but one f16
// scale, the scales of two blocks stand in front of both, to keep every other field on a boundary of 64 bytes. Floats are
// [k][16 rows].
//
// The fifth bits of Q5_0 and Q5_1 (a 32-bit word a row) are reordered: bit j of byte i belongs to value 4 j + i.
#ifndef MF_BACKEND_CPU_PANELS_LAYOUT_H
#define MF_BACKEND_CPU_PANELS_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quant/types.h"

// Bytes of a panel block: `head` of f16 scales, then `body`; of a pair of blocks: two heads, then two bodies.
typedef struct mf_panel_shape {
    int16_t block_len, head, body;
    bool paired;
} mf_panel_shape;

// Offsets in a body, in bytes.
#define MF_PANEL_Q5_QS      64
#define MF_PANEL_Q2_K_QS    256
#define MF_PANEL_Q3_K_HMASK 192
#define MF_PANEL_Q3_K_QS    704
#define MF_PANEL_Q4_K_QS    192
#define MF_PANEL_Q5_K_QH    192
#define MF_PANEL_Q5_K_QS    704
#define MF_PANEL_Q6_K_QL    256
#define MF_PANEL_Q6_K_QH    2304
#define MF_PANEL_IQ4_XS_LOW 32
#define MF_PANEL_IQ4_XS_QS  96

// The quantized types; body is 0 for others.
static inline mf_panel_shape mf_panel_shape_of(mf_type type) {
    switch (type) {
    case MF_TYPE_Q4_0:
    case MF_TYPE_IQ4_NL: return (mf_panel_shape){32, 32, 256, true};
    case MF_TYPE_Q4_1: return (mf_panel_shape){32, 64, 256, false};
    case MF_TYPE_Q5_0: return (mf_panel_shape){32, 32, 320, true};
    case MF_TYPE_Q5_1: return (mf_panel_shape){32, 64, 320, false};
    case MF_TYPE_Q8_0: return (mf_panel_shape){32, 32, 512, true};
    case MF_TYPE_Q2_K: return (mf_panel_shape){256, 64, 1280, false};
    case MF_TYPE_Q3_K: return (mf_panel_shape){256, 32, 1728, true};
    case MF_TYPE_Q4_K: return (mf_panel_shape){256, 64, 2240, false};
    case MF_TYPE_Q5_K: return (mf_panel_shape){256, 64, 2752, false};
    case MF_TYPE_Q6_K: return (mf_panel_shape){256, 32, 3328, true};
    case MF_TYPE_IQ4_XS: return (mf_panel_shape){256, 32, 2144, false};
    default: return (mf_panel_shape){1, 0, 0, false};
    }
}

// Offset of block b's scales and of its body in a panel.
static inline size_t mf_panel_head(mf_panel_shape s, int64_t b) {
    const size_t i = (size_t)b, head = (size_t)s.head, body = (size_t)s.body;
    return s.paired ? i / 2 * 2 * (head + body) + i % 2 * head : i * (head + body);
}

static inline size_t mf_panel_body(mf_panel_shape s, int64_t b) {
    const size_t i = (size_t)b, head = (size_t)s.head, body = (size_t)s.body;
    return s.paired ? i / 2 * 2 * (head + body) + 2 * head + i % 2 * body : i * (head + body) + head;
}

#endif
