#include "device/op.h"

static const char *const op_names[MF_OP_COUNT] = {
    [MF_OP_GET_ROWS] = "get_rows",
    [MF_OP_RMS_NORM] = "rms_norm",
    [MF_OP_QK_NORM] = "qk_norm",
    [MF_OP_MATMUL] = "matmul",
    [MF_OP_ADD] = "add",
    [MF_OP_MUL] = "mul",
    [MF_OP_SCALE] = "scale",
    [MF_OP_SILU] = "silu",
    [MF_OP_GELU] = "gelu",
    [MF_OP_SOFTMAX] = "softmax",
    [MF_OP_ROPE_TABLE] = "rope_table",
    [MF_OP_ROPE] = "rope",
    [MF_OP_KV_STORE] = "kv_store",
    [MF_OP_ATTENTION] = "attention",
    [MF_OP_QUANTIZE] = "quantize",
    [MF_OP_CONCAT] = "concat",
    [MF_OP_VIEW] = "view",
    [MF_OP_RESHAPE] = "reshape",
    [MF_OP_PERMUTE] = "permute",
    [MF_OP_SWIGLU] = "swiglu",
    [MF_OP_ROPE_STORE] = "rope_store",
    [MF_OP_NORM_QUANTIZE] = "norm_quantize",
    [MF_OP_SWIGLU_QUANTIZE] = "swiglu_quantize",
};

const char *mf_op_name(mf_op op) { return op >= 0 && op < MF_OP_COUNT ? op_names[op] : "?"; }

static const char *const format_names[MF_FORMAT_COUNT] = {
    [MF_FORMAT_F32] = "f32",
    [MF_FORMAT_A8_32] = "a8_32",
    [MF_FORMAT_A8_256] = "a8_256",
};

const char *mf_format_name(mf_format format) { return format >= 0 && format < MF_FORMAT_COUNT ? format_names[format] : "?"; }

mf_format mf_format_for_weight(mf_type type) {
    switch (type) {
    case MF_TYPE_F32:
    case MF_TYPE_F16:
    case MF_TYPE_BF16: return MF_FORMAT_F32;
    case MF_TYPE_Q2_K:
    case MF_TYPE_Q3_K:
    case MF_TYPE_Q4_K:
    case MF_TYPE_Q5_K:
    case MF_TYPE_Q6_K: return MF_FORMAT_A8_256;
    default: return MF_FORMAT_A8_32;
    }
}
