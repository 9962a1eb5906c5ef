#include "quant/types.h"

#include "base/mem.h"
#include "quant/decode.h"

// Rows without a decoder are known by name and size, so that files with such tensors can be listed and refused by name.
// Q4_0_4_4 to Q4_0_8_8 and IQ4_NL_4_4 to IQ4_NL_8_8 are interleaved forms that ggml has withdrawn. A number without a row
// has its name only (block_len 0).
static const mf_type_info rows[MF_TYPE_LIMIT] = {
    [MF_TYPE_F32] = {"F32", 1, 4, mf_decode_f32},
    [MF_TYPE_F16] = {"F16", 1, 2, mf_decode_f16},
    [MF_TYPE_Q4_0] = {"Q4_0", 32, 18, mf_decode_q4_0},
    [MF_TYPE_Q4_1] = {"Q4_1", 32, 20, mf_decode_q4_1},
    [4] = {.name = "type 4"},
    [5] = {.name = "type 5"},
    [MF_TYPE_Q5_0] = {"Q5_0", 32, 22, mf_decode_q5_0},
    [MF_TYPE_Q5_1] = {"Q5_1", 32, 24, mf_decode_q5_1},
    [MF_TYPE_Q8_0] = {"Q8_0", 32, 34, mf_decode_q8_0},
    [9] = {"Q8_1", 32, 36, NULL},
    [MF_TYPE_Q2_K] = {"Q2_K", 256, 84, mf_decode_q2_k},
    [MF_TYPE_Q3_K] = {"Q3_K", 256, 110, mf_decode_q3_k},
    [MF_TYPE_Q4_K] = {"Q4_K", 256, 144, mf_decode_q4_k},
    [MF_TYPE_Q5_K] = {"Q5_K", 256, 176, mf_decode_q5_k},
    [MF_TYPE_Q6_K] = {"Q6_K", 256, 210, mf_decode_q6_k},
    [15] = {"Q8_K", 256, 292, NULL},
    [16] = {"IQ2_XXS", 256, 66, NULL},
    [17] = {"IQ2_XS", 256, 74, NULL},
    [18] = {"IQ3_XXS", 256, 98, NULL},
    [19] = {"IQ1_S", 256, 50, NULL},
    [MF_TYPE_IQ4_NL] = {"IQ4_NL", 32, 18, mf_decode_iq4_nl},
    [21] = {"IQ3_S", 256, 110, NULL},
    [22] = {"IQ2_S", 256, 82, NULL},
    [MF_TYPE_IQ4_XS] = {"IQ4_XS", 256, 136, mf_decode_iq4_xs},
    [24] = {"I8", 1, 1, NULL},
    [25] = {"I16", 1, 2, NULL},
    [26] = {"I32", 1, 4, NULL},
    [27] = {"I64", 1, 8, NULL},
    [28] = {"F64", 1, 8, NULL},
    [29] = {"IQ1_M", 256, 56, NULL},
    [MF_TYPE_BF16] = {"BF16", 1, 2, mf_decode_bf16},
    [31] = {"Q4_0_4_4", 32, 18, NULL},
    [32] = {"Q4_0_4_8", 32, 18, NULL},
    [33] = {"Q4_0_8_8", 32, 18, NULL},
    [34] = {"TQ1_0", 256, 54, NULL},
    [35] = {"TQ2_0", 256, 66, NULL},
    [36] = {"IQ4_NL_4_4", 32, 18, NULL},
    [37] = {"IQ4_NL_4_8", 32, 18, NULL},
    [38] = {"IQ4_NL_8_8", 32, 18, NULL},
    [39] = {"MXFP4", 32, 17, NULL},
    [40] = {"NVFP4", 64, 36, NULL},
    [41] = {"Q1_0", 128, 18, NULL},
    [42] = {"Q2_0", 64, 18, NULL},
    [43] = {.name = "type 43"},
    [44] = {.name = "type 44"},
    [45] = {.name = "type 45"},
    [46] = {.name = "type 46"},
    [47] = {.name = "type 47"},
    [48] = {.name = "type 48"},
    [49] = {.name = "type 49"},
    [50] = {.name = "type 50"},
    [51] = {.name = "type 51"},
    [52] = {.name = "type 52"},
    [53] = {.name = "type 53"},
    [54] = {.name = "type 54"},
    [55] = {.name = "type 55"},
    [56] = {.name = "type 56"},
    [57] = {.name = "type 57"},
    [58] = {.name = "type 58"},
    [59] = {.name = "type 59"},
    [60] = {.name = "type 60"},
    [61] = {.name = "type 61"},
    [62] = {.name = "type 62"},
    [63] = {.name = "type 63"},
};

const mf_type_info *mf_type_info_of(uint32_t type) {
    return type < MF_TYPE_LIMIT && rows[type].block_len > 0 ? &rows[type] : NULL;
}

const char *mf_type_name(uint32_t type) { return type < MF_TYPE_LIMIT ? rows[type].name : "unknown type"; }

bool mf_type_row_bytes(uint32_t type, uint64_t n, size_t *bytes) {
    const mf_type_info *info = mf_type_info_of(type);
    if (!info || n % info->block_len != 0) return false;
    const uint64_t blocks = n / info->block_len;
    return blocks <= SIZE_MAX && mf_mul_size((size_t)blocks, info->block_bytes, bytes);
}
