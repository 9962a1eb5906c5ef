// One row an operation: which of mf_op_types' members mean something to it. The support table and the table of tests are made from it,
// and an operation without a row does not compile.
#ifndef TESTS_BACKEND_OP_ROWS_H
#define TESTS_BACKEND_OP_ROWS_H

#include "device/device.h"

typedef enum op_weight {
    WEIGHT_NONE,
    WEIGHT_MAYBE,
    WEIGHT_ALWAYS
} op_weight;

typedef struct op_row {
    op_weight weight;
    bool kv; // reads or writes cells
} op_row;

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wswitch"
static inline op_row op_row_of(mf_op op) {
    switch (op) {
    case MF_OP_GET_ROWS:
    case MF_OP_ADD: return (op_row){WEIGHT_MAYBE, false};
    case MF_OP_RMS_NORM:
    case MF_OP_QK_NORM:
    case MF_OP_MATMUL:
    case MF_OP_NORM_QUANTIZE: return (op_row){WEIGHT_ALWAYS, false};
    case MF_OP_KV_STORE:
    case MF_OP_ATTENTION:
    case MF_OP_ROPE_STORE: return (op_row){WEIGHT_NONE, true};
    case MF_OP_MUL:
    case MF_OP_SCALE:
    case MF_OP_SILU:
    case MF_OP_GELU:
    case MF_OP_SOFTMAX:
    case MF_OP_ROPE_TABLE:
    case MF_OP_ROPE:
    case MF_OP_QUANTIZE:
    case MF_OP_CONCAT:
    case MF_OP_VIEW:
    case MF_OP_RESHAPE:
    case MF_OP_PERMUTE:
    case MF_OP_SWIGLU:
    case MF_OP_SWIGLU_QUANTIZE: return (op_row){WEIGHT_NONE, false};
    case MF_OP_COUNT: break;
    }
    return (op_row){WEIGHT_NONE, false};
}
#pragma GCC diagnostic pop

static const mf_type op_cell_types[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0}; // of the cache
#define OP_CELL_TYPES (sizeof op_cell_types / sizeof op_cell_types[0])

static inline bool op_is_weight_type(uint32_t type) {
    const mf_type_info *info = mf_type_info_of(type);
    return info && info->decode;
}

#define OP_MAX_CELLS ((size_t)MF_FORMAT_COUNT * MF_FORMAT_COUNT * (MF_TYPE_LIMIT + 1))

// Every combination of formats, weight and cell types that may be asked about an operation. Returns how many.
static inline size_t op_cells(mf_op op, mf_op_types cells[OP_MAX_CELLS]) {
    op_row row = op_row_of(op);
    size_t n = 0;
    for (int src = 0; src < MF_FORMAT_COUNT; src++)
        for (int dst = 0; dst < MF_FORMAT_COUNT; dst++) {
            mf_op_types t = {.src = (mf_format)src, .dst = (mf_format)dst, .kv = MF_TYPE_F16};
            if (row.weight != WEIGHT_ALWAYS && !row.kv) cells[n++] = t;
            for (size_t k = 0; row.kv && k < OP_CELL_TYPES; k++) {
                t.kv = op_cell_types[k];
                cells[n++] = t;
            }
            t.has_weight = true;
            for (uint32_t w = 0; row.weight != WEIGHT_NONE && w < MF_TYPE_LIMIT; w++) {
                t.weight = (mf_type)w;
                if (op_is_weight_type(w)) cells[n++] = t;
            }
        }
    return n;
}

#endif
