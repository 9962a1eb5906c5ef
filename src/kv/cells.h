// How a cell's K and V stand in a block, for every type of cell: where the elements are (device/op.h has the picture) and the reference
// of reading and writing them.
#ifndef MF_KV_CELLS_H
#define MF_KV_CELLS_H

#include "device/op.h"

#define MF_KV_GROUP    32  // channels that share a scale in q8_0 cells
#define MF_KV_HADAMARD 256 // most channels of K that they mix

// Whether cells of this type can hold heads of this width: q8_0 takes multiples of 32.
static inline bool mf_kv_width_fits(mf_type type, int32_t head_dim) {
    return type != MF_TYPE_Q8_0 || head_dim % MF_KV_GROUP == 0;
}

// Bytes of one element, scales aside.
static inline size_t mf_kv_element_bytes(mf_type type) { return type == MF_TYPE_F32 ? 4 : type == MF_TYPE_F16 ? 2 : 1; }

// Scales of K (or of V) in the part of one (layer, block, head).
static inline size_t mf_kv_n_scales(mf_type type, int32_t head_dim) {
    return type == MF_TYPE_Q8_0 ? (size_t)head_dim / MF_KV_GROUP * MF_KV_BLOCK : 0;
}

// Bytes of K (or of V) in a part.
static inline size_t mf_kv_half_bytes(mf_type type, int32_t head_dim) {
    return MF_KV_BLOCK * mf_kv_element_bytes(type) * (size_t)head_dim + mf_kv_n_scales(type, head_dim) * sizeof(uint16_t);
}

// The part of one (layer, block, head): K, with V at kv->v_offset.
static inline uint8_t *mf_kv_part(const mf_kv_view *kv, int32_t layer, int32_t block, int32_t head) {
    return kv->base + (size_t)layer * kv->layer_stride + (size_t)block * kv->block_stride + (size_t)head * kv->head_stride;
}

// The element of channel d of `slot` in K, counted from the start of the part; in V it is slot * head_dim + d.
static inline size_t mf_kv_k_index(int32_t head_dim, int32_t slot, int32_t d) {
    return ((size_t)(slot / MF_KV_LANES) * (size_t)head_dim + (size_t)d) * MF_KV_LANES + (size_t)(slot % MF_KV_LANES);
}

// The scales of q8_0 cells, halves, behind the elements of K or V (`half` is where those begin), and the one of channel d of `slot`.
static inline uint16_t *mf_kv_scales(const mf_kv_view *kv, const uint8_t *half) {
    return (uint16_t *)(half + (size_t)MF_KV_BLOCK * (size_t)kv->head_dim);
}

static inline size_t mf_kv_scale_index(int32_t slot, int32_t d) {
    return (size_t)(d / MF_KV_GROUP) * MF_KV_BLOCK + (size_t)slot;
}

// Channels that K's q8_0 cells mix: the largest power of two that divides head_dim, within the limit.
static inline int32_t mf_kv_hadamard_width(int32_t head_dim) {
    int32_t n = head_dim & -head_dim;
    return n < MF_KV_HADAMARD ? n : MF_KV_HADAMARD;
}

// The orthonormal Walsh-Hadamard transform of each mf_kv_hadamard_width channels of a head, in place: K of q8_0 cells and the query
// vectors that meet it are mixed so, lest a few large channels set the scale of their neighbours. It is its own inverse.
void mf_kv_hadamard(float *x, int32_t head_dim);

// The half scale and the bytes of 32 values, as docs/arithmetic.md defines q8_0 cells.
uint16_t mf_kv_quantize(const float *x, int8_t *q);

// One cell of a head as floats, [head_dim], as attention reads them: q8_0 cells' K is mixed. part: mf_kv_part's.
void mf_kv_read_k(const mf_kv_view *kv, const uint8_t *part, int32_t slot, float *out);
void mf_kv_read_v(const mf_kv_view *kv, const uint8_t *part, int32_t slot, float *out);

// Its first n channels: of q8_0 cells whole groups of 32, of K (which is mixed here) whole mf_kv_hadamard_width.
void mf_kv_write_k(const mf_kv_view *kv, uint8_t *part, int32_t slot, int32_t n, const float *x);
void mf_kv_write_v(const mf_kv_view *kv, uint8_t *part, int32_t slot, int32_t n, const float *x);

// The bytes of one cell of a head, K and V, from one part's slot to another's.
void mf_kv_copy_cell(const mf_kv_view *kv, const uint8_t *from, int32_t from_slot, uint8_t *to, int32_t to_slot);

#endif
