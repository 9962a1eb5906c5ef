// The tensor types: one row a type. Numbers and bit layouts are GGUF's (ggml's).
#ifndef MF_QUANT_TYPES_H
#define MF_QUANT_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum mf_type {
    MF_TYPE_F32 = 0,
    MF_TYPE_F16 = 1,
    MF_TYPE_Q4_0 = 2,
    MF_TYPE_Q4_1 = 3,
    MF_TYPE_Q5_0 = 6,
    MF_TYPE_Q5_1 = 7,
    MF_TYPE_Q8_0 = 8,
    MF_TYPE_Q2_K = 10,
    MF_TYPE_Q3_K = 11,
    MF_TYPE_Q4_K = 12,
    MF_TYPE_Q5_K = 13,
    MF_TYPE_Q6_K = 14,
    MF_TYPE_IQ4_NL = 20,
    MF_TYPE_IQ4_XS = 23,
    MF_TYPE_BF16 = 30,
} mf_type;

#define MF_TYPE_LIMIT 64 // type numbers in a file are below this; the table has holes

typedef struct mf_type_info {
    const char *name;     // as people write it: "Q4_K"
    uint32_t block_len;   // values in a block; a row's length is a multiple of it
    uint32_t block_bytes; // bytes of a block
    // Decodes n values (a multiple of block_len) exactly as ggml's dequantize_row does. NULL: the type is known by name
    // only (its tensors are refused as weights).
    void (*decode)(const void *blocks, float *out, size_t n);
} mf_type_info;

// NULL for a number without a row.
const mf_type_info *mf_type_info_of(uint32_t type);

// "Q4_K", or "type 99" for an unknown number (a static string or one of a small table).
const char *mf_type_name(uint32_t type);

// Bytes of a row of n values; false when n is not a multiple of the block or the size overflows. The type must be known.
bool mf_type_row_bytes(uint32_t type, uint64_t n, size_t *bytes);

#endif
