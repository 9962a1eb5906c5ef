// What the CPU runs: one case an operation, and an operation without one does not compile. docs/support.md is made from it.
#include "backend/cpu/device.h"

#pragma GCC diagnostic error "-Wswitch"

static bool cell_type(mf_type type) { return type == MF_TYPE_F32 || type == MF_TYPE_F16 || type == MF_TYPE_Q8_0; }

static bool decodable(mf_type type) {
    const mf_type_info *info = mf_type_info_of(type);
    return info && info->decode;
}

static bool vector_type(mf_type type) { return type == MF_TYPE_F32 || type == MF_TYPE_F16 || type == MF_TYPE_BF16; }

static bool int8_format(mf_format format) { return format == MF_FORMAT_A8_32 || format == MF_FORMAT_A8_256; }

static bool matmul_type(const cpu_device *d, mf_type type) { return (unsigned)type < MF_TYPE_LIMIT && d->k->matmul[type]; }

bool mf_cpu_supports(const mf_device *device, mf_op op, const mf_op_types *t) {
    const bool from_f32 = t->src == MF_FORMAT_F32, plain = from_f32 && t->dst == MF_FORMAT_F32;
    const bool to_int8 = from_f32 && int8_format(t->dst), vector = t->has_weight && vector_type(t->weight);
    switch (op) {
    case MF_OP_GET_ROWS: return plain && (!t->has_weight || decodable(t->weight));
    case MF_OP_MATMUL:
        return t->has_weight && matmul_type((const cpu_device *)device, t->weight) &&
               t->src == mf_format_for_weight(t->weight) && t->dst == MF_FORMAT_F32;
    case MF_OP_RMS_NORM:
    case MF_OP_QK_NORM: return plain && vector;
    case MF_OP_ADD: return plain && (!t->has_weight || vector);
    case MF_OP_KV_STORE:
    case MF_OP_ROPE_STORE:
    case MF_OP_ATTENTION: return plain && cell_type(t->kv);
    case MF_OP_QUANTIZE:
    case MF_OP_SWIGLU_QUANTIZE: return to_int8;
    case MF_OP_NORM_QUANTIZE: return to_int8 && vector;
    case MF_OP_MUL:
    case MF_OP_SCALE:
    case MF_OP_SILU:
    case MF_OP_GELU:
    case MF_OP_SOFTMAX:
    case MF_OP_ROPE_TABLE:
    case MF_OP_ROPE:
    case MF_OP_CONCAT:
    case MF_OP_VIEW:
    case MF_OP_RESHAPE:
    case MF_OP_PERMUTE:
    case MF_OP_SWIGLU: return plain;
    case MF_OP_COUNT: return false;
    }
    return false;
}
