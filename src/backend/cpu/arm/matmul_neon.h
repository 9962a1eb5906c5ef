// What the Arm matmuls share: blocks of a panel unpacked to signed bytes. A word is 4 neighbouring values of each of the panel's 16
// rows, 64 bytes: [16 rows][4]. Offsets are taken off here, so that a dot needs no correction: all values are within -128 … 127.
#ifndef MF_BACKEND_CPU_ARM_MATMUL_NEON_H
#define MF_BACKEND_CPU_ARM_MATMUL_NEON_H

#include "backend/cpu/kernels.h"

#define MF_WORD_BYTES 64

// 32 values of 16 rows that share a scale each.
typedef struct mf_tile32 {
    int8_t words[8 * MF_WORD_BYTES];
    float d[MF_PANEL], m[MF_PANEL]; // m only where the type has one
} mf_tile32;

// A super-block of 256 values of 16 rows; sc and m: [sub-block][row].
typedef struct mf_tile256 {
    int8_t words[64 * MF_WORD_BYTES];
    int32_t sc[16][MF_PANEL];
    int16_t m[16][MF_PANEL];
    float d[MF_PANEL], dmin[MF_PANEL];
} mf_tile256;

typedef struct mf_unpacker {
    int sub_block; // values that share a scale; 0: a type without panels of bytes
    bool has_min;
    // Block b of a panel. Of the two, the one that goes with the type's activations (A8_32, A8_256) is set.
    void (*block32)(const uint8_t *panel, int64_t b, mf_tile32 *out);
    void (*block256)(const uint8_t *panel, int64_t b, mf_tile256 *out);
} mf_unpacker;

const mf_unpacker *mf_unpacker_of(mf_type type);

// F32, F16 and BF16.
mf_matmul_fn mf_matmul_float_neon;

// Every quantized type with the dot product instructions.
mf_matmul_fn mf_matmul_quantized_dotprod;

#endif
