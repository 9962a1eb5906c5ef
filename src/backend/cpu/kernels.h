// The kernel table of the CPU device: one row a level of instruction sets, filled once at start-up. Every function follows
// docs/arithmetic.md to the bit; the scalar row is the reference.
#ifndef MF_BACKEND_CPU_KERNELS_H
#define MF_BACKEND_CPU_KERNELS_H

#include "base/cpu.h"
#include "device/op.h"

#define MF_PANEL 16 // weight rows in a panel

// A weight matrix as kernels read it. data is in panels (layout: backend/cpu/panels.h), or rows of the file for the scalar row.
typedef struct mf_matrix {
    mf_type type;
    int64_t n_in, n_out;
    const void *data;
    size_t stride; // bytes from one panel (or, for the scalar row, from one row) to the next
} mf_matrix;

// Outputs [16*panel0, min(16*panel1, n_out)) of n_rows rows. act: rows of the format that goes with the type, act_stride bytes
// apart; dst[r][n] is dst_stride floats apart and is written only at the outputs named.
typedef void mf_matmul_fn(const mf_matrix *w, const void *act, size_t act_stride, int32_t n_rows, int32_t panel0,
                          int32_t panel1, float *dst, size_t dst_stride);

// A piece of attention: the query rows [0, n_rows) of one sequence against splits [split0, split1) of 256 cells, for the
// n_group query heads that share KV head `kv_head`.
typedef struct mf_attention_piece {
    const mf_kv_view *kv;
    const int32_t *table; // the sequence's blocks
    int32_t layer, kv_head;
    int32_t n_rows, n_group;
    const float *q; // row r, head g of the group at q + r * q_stride + g * head_dim (floats)
    size_t q_stride;
    const int32_t *cell; // [n_rows] the last cell each row sees, ascending
    int32_t split0, split1;
    float scale, softcap;
    int32_t window;
    // Where the merged result of these splits goes. State (row r, head g) at state + (r * n_group + g) * (head_dim + 2): M, L,
    // then O. A row that sees no cell of these splits gets L = 0 and nothing else.
    float *state;
    float *scratch; // mf_attention_scratch_floats() floats of this worker
} mf_attention_piece;

#define MF_ATTENTION_SPLIT 256 // cells
#define MF_ATTENTION_ROWS  8   // most query rows of a piece

typedef struct mf_kernels {
    const char *name; // "scalar", "avx2", …
    bool (*usable)(const mf_cpu_features *features);

    // One row of activations to int8; false when it is not finite. n is a multiple of 32 (256).
    bool (*quantize_32)(const float *x, void *row, int64_t n);
    bool (*quantize_256)(const float *x, void *row, int64_t n);

    mf_matmul_fn *matmul[MF_TYPE_LIMIT]; // by weight type; NULL: not in this row
    bool panels;                         // matrices are in panels, not in the file's rows

    // out[i] = (x[i] * r) * w[i]
    void (*rms_norm)(const float *x, const float *w, float *out, int64_t n, float eps);
    void (*softmax)(const float *x, float *out, int64_t n);
    void (*add)(const float *a, const float *b, float *out, int64_t n);
    void (*mul)(const float *a, const float *b, float *out, int64_t n);
    void (*scale)(const float *a, float scale, float *out, int64_t n);
    void (*silu)(const float *a, float *out, int64_t n);
    void (*gelu)(const float *a, float *out, int64_t n);
    void (*swiglu)(const float *gate, const float *up, float *out, int64_t n);

    // Rotates n_head heads of head_dim channels, of which the first n_dims turn; table: n_dims/2 pairs (cos, sin).
    void (*rope)(const float *x, const float *table, float *out, int32_t n_head, int32_t head_dim, int32_t n_dims,
                 bool interleaved);

    // Writes one row's K and V ([n_head_kv][head_dim] floats each) of a layer into slot (0-63) of a block.
    void (*kv_store)(const mf_kv_view *kv, int32_t layer, int32_t block, int32_t slot, const float *k, const float *v);

    void (*attention)(const mf_attention_piece *piece);

    // Merges n attention states (M, L, O; head_dim + 2 floats each) of later splits, b, into those at a: docs/arithmetic.md, step 4.
    // A state with L = 0 is empty.
    void (*attention_merge)(float *a, const float *b, int32_t n, int32_t head_dim);

    // Runs this row's best int8 multiply-add instructions on registers for `rounds` rounds and returns the multiply-adds done.
    // *sink keeps the result alive.
    uint64_t (*int8_peak)(uint64_t rounds, uint32_t *sink);
} mf_kernels;

// out[d] = O[d] * (1 / L) of a state.
void mf_attention_finish(const float *state, float *out, int32_t head_dim);

size_t mf_attention_scratch_floats(int32_t n_group, int32_t head_dim);

// Bytes of a row of n activations in a format; the parts of an int8 row are in backend/cpu/act.h. Rounded up to 64 bytes, plus
// 64 so that rows of a power of two do not meet in one cache set.
size_t mf_act_row_bytes(mf_format format, int64_t n);

// The activations that an int8 row stands for: scale * q.
void mf_act_decode(mf_format format, const void *row, int64_t n, float *out);

// The rows of the table, best first, NULL-terminated; each has every function (a higher row takes over what it does not do better).
const mf_kernels *const *mf_kernels_all(void);

// The row to use: `name` (NULL or "": the best that is usable). An unknown or unusable name is refused with the usable ones.
const mf_kernels *mf_kernels_choose(const char *name, mf_error *err);

#endif
