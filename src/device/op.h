// The operations of the graph and everything a device needs to run them: values, nodes with their whole payload, and the
// run-time data of one step. Pure data; building and passes are in graph/.
#ifndef MF_DEVICE_OP_H
#define MF_DEVICE_OP_H

#include <stdatomic.h>

#include "base/error.h"
#include "quant/types.h"

typedef enum mf_op {
    MF_OP_GET_ROWS,   // dst[r] = weight row of token[r]; without a weight: dst[o] = src[out_row[o]]
    MF_OP_RMS_NORM,   // dst = x / rms(x) * weight, over a whole row
    MF_OP_QK_NORM,    // the same over each head of a row
    MF_OP_MATMUL,     // dst[r][n] = sum_k weight[n][k] * src[r][k]
    MF_OP_ADD,        // dst = a + b; b is a value of the same shape or a weight vector (a bias) for every row
    MF_OP_MUL,        // dst = a * b
    MF_OP_SCALE,      // dst = a * scale
    MF_OP_SILU,       // dst = a / (1 + exp(-a))
    MF_OP_GELU,       // the tanh form
    MF_OP_SOFTMAX,    // over a row
    MF_OP_ROPE_TABLE, // dst[r][2i], dst[r][2i+1] = cos, sin of pos[r] * inv_freq[i]
    MF_OP_ROPE,       // rotates each head of a row by the table
    MF_OP_KV_STORE,   // writes a row's K and V heads into its cell of a layer's cache; dst is a token without bytes
    MF_OP_ATTENTION, // softmax(q k^T * scale) v over the cells of the row's sequence up to its own; src: q, the store's token
    MF_OP_QUANTIZE,  // dst (A8_32 or A8_256) = src (F32)
    MF_OP_CONCAT,    // dst row = a's row, then b's row
    MF_OP_VIEW,      // no work: another shape or part of the same storage
    MF_OP_RESHAPE,   // no work
    MF_OP_PERMUTE,   // no work
    MF_OP_SWIGLU,    // fused: dst = silu(a) * b
    MF_OP_ROPE_STORE,      // fused: rope of K, then kv_store
    MF_OP_NORM_QUANTIZE,   // fused: rms_norm, then quantize
    MF_OP_SWIGLU_QUANTIZE, // fused: swiglu, then quantize
    MF_OP_COUNT,
} mf_op;

// The name as the docs and dumps write it: "rms_norm".
const char *mf_op_name(mf_op op);

// How a value's rows are stored. A8_32 and A8_256 are the int8 activations of docs/arithmetic.md: their rows are opaque to all
// but the device, which tells their size.
typedef enum mf_format {
    MF_FORMAT_F32,
    MF_FORMAT_A8_32,
    MF_FORMAT_A8_256,
    MF_FORMAT_COUNT
} mf_format;

const char *mf_format_name(mf_format format);

// The activation format that a matmul with weights of this type takes (F32 for F32, F16 and BF16 weights).
mf_format mf_format_for_weight(mf_type type);

#define MF_DIM_ROWS (-1) // as many as the step has rows
#define MF_DIM_OUTS (-2) // as many as the step has output rows
#define MF_MAX_SRC  3

typedef int32_t mf_ref; // a value of a graph by number; -1 is none

// A value: up to four dimensions, innermost first. At most one dimension is MF_DIM_ROWS or MF_DIM_OUTS, and strides never
// depend on it.
typedef struct mf_value {
    mf_format format;
    int64_t ne[4];
    int64_t nb[4];  // bytes from one element to the next along each dimension
    mf_ref root;    // the value whose storage this is (itself unless it is a view)
    int64_t offset; // bytes from the start of that storage
    char name[40];  // "blk.3.attn_out" (for dumps and errors)
} mf_value;

enum { // mf_weight.uses, a set
    MF_USE_MATMUL = 1,
    MF_USE_GATHER = 2,
    MF_USE_VECTOR = 4, // a norm weight, a bias, rope factors: float vectors
};

// A weight: rows of the file, and what the device made of them (mf_device's weight_prepare).
typedef struct mf_weight {
    const char *name;
    mf_type type;
    int64_t n_in, n_out; // row length, number of rows (a vector has n_out = 1)
    const void *file;    // n_out rows in the file's layout
    size_t file_bytes;
    unsigned uses;
    void *prepared; // the device's own; of a vector: n_in floats
} mf_weight;

typedef struct mf_rope_params {
    int32_t n_dims;         // channels of a head that turn (even)
    bool interleaved;       // pairs (2i, 2i+1) rather than (i, i + n_dims/2)
    const double *inv_freq; // [n_dims/2] radians per position; owned by the model
    double magnitude;       // cos and sin are multiplied by it (1 without YaRN)
} mf_rope_params;

typedef struct mf_attention_params {
    int32_t n_head, n_head_kv, head_dim; // K and V heads are of the same width
    float scale;
    float softcap;  // 0: none
    int32_t window; // 0: all cells; else only the last `window` of them
} mf_attention_params;

typedef struct mf_node {
    mf_op op;
    mf_ref dst;
    mf_ref src[MF_MAX_SRC];
    const mf_weight *weight;
    const mf_weight
        *bias;     // MATMUL, set by the fuse pass: added after the sum; then src[1], where there is one, is added too
    int32_t layer; // -1 outside the layers
    union {
        float eps;   // RMS_NORM, NORM_QUANTIZE
        float scale; // SCALE
        struct {
            float eps;
            int32_t head_dim;
        } qk_norm;
        mf_rope_params rope; // ROPE, ROPE_TABLE, ROPE_STORE
        mf_attention_params attention;
    } u;
    uint8_t device; // index into the assigned devices
    int32_t group;  // nodes of one group are independent: a device may run them together, with one barrier behind
} mf_node;

#define MF_KV_BLOCK 64 // cells in a KV block
#define MF_KV_LANES 16 // cells that stand side by side in K

// Where the cache is. The part of one (layer, block, head) is K as [64/16][head_dim][16] elements (16 cells side by side for each
// channel), then V as [64][head_dim]. Q8_0: signed bytes, with scales (halves) as [head_dim/32][64] behind K and behind V.
typedef struct mf_kv_view {
    uint8_t *base;
    mf_type type; // F32, F16 or Q8_0
    int32_t n_layer, n_head_kv, head_dim;
    size_t layer_stride, block_stride, head_stride, v_offset; // bytes
} mf_kv_view;

// One step's data. Rows of one sequence stand together, in ascending cells.
typedef struct mf_step {
    int32_t n_rows, n_outs;
    const int32_t *token;   // [n_rows]
    const int32_t *pos;     // [n_rows] rope position
    const int32_t *cell;    // [n_rows] the row's cell in its sequence: block table[cell / 64], slot cell % 64
    const int32_t *seq;     // [n_rows] the row's table
    const uint8_t *stored;  // [n_rows] the row's K and V stand in its cell already (and may be shared): they are not written
    const int32_t *out_row; // [n_outs] ascending
    const int32_t *const *table; // [sequences] block numbers
    const mf_kv_view *kv;
    int32_t *row_error; // [n_rows] number + 1 of the first node where a row's activation is not finite; else untouched (0)
    const atomic_bool *interrupt; // once it is true, which it stays, the run may give up (MF_ERR_CANCELLED); NULL: never
} mf_step;

// What a device runs: a compiled graph. storage[v] is the address of value v's storage (of roots; others go through their root).
typedef struct mf_program {
    const mf_value *values;
    const mf_node *nodes;
    int32_t n_values, n_nodes;
    int32_t max_rows, max_cells; // what it was laid out for
    void *const *storage;
} mf_program;

static inline void *mf_value_data(const mf_program *p, mf_ref v) {
    return (char *)p->storage[p->values[v].root] + p->values[v].offset;
}

// Elements along dimension i in this step.
static inline int64_t mf_value_dim(const mf_value *v, int i, const mf_step *step) {
    return v->ne[i] == MF_DIM_ROWS ? step->n_rows : v->ne[i] == MF_DIM_OUTS ? step->n_outs : v->ne[i];
}

#endif
