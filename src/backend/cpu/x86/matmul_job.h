// What the x86 matmuls share, whatever their vectors: a call's arguments, its blocking over rows, and where a type's words
// are. A word is the 4 neighbouring values of each of a panel's 16 rows.
#ifndef MF_BACKEND_CPU_X86_MATMUL_JOB_H
#define MF_BACKEND_CPU_X86_MATMUL_JOB_H

#include <immintrin.h>
#include <string.h>

#include "backend/cpu/kernels.h"
#include "backend/cpu/panels_layout.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MF_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MF_SANITIZED 1
#endif
#endif

// MF_INLINE functions are copied into each type's kernel, MF_UNROLL loops are over vectors in registers. Checked builds do
// without either: with a check at each load they would compile for minutes.
#if defined(MF_SANITIZED)
#define MF_INLINE static inline
#define MF_UNROLL
#elif defined(__clang__)
#define MF_INLINE static inline __attribute__((always_inline))
#define MF_UNROLL _Pragma("clang loop unroll(full)")
#else
#define MF_INLINE static inline __attribute__((always_inline))
#define MF_UNROLL _Pragma("GCC unroll 16")
#endif

// Keeps a vector in a register and the compiler from regrouping the sum it holds.
#define MF_PIN(v) __asm__("" : "+v"(v))

// ---- Calls ---------------------------------------------------------------------------------------------------------------

typedef struct job {
    const mf_matrix *w;
    const char *act;
    size_t act_stride;
    float *dst;
    size_t dst_stride;
} job;

// Rows of activations to take before going to the next panel, in whole groups: about `bytes` of them, at most max_rows.
static inline int rows_within(size_t bytes, int max_rows, size_t act_stride, int group) {
    const size_t rows = bytes / (act_stride ? act_stride : 1) / (size_t)group * (size_t)group;
    return rows < 4 * (size_t)group ? 4 * group : rows > (size_t)max_rows ? max_rows : (int)rows;
}

#define MAX_ROWS 96 // of such a block where it fits 256 KB

static inline int rows_a_block(size_t act_stride, int group) { return rows_within(256 * 1024, MAX_ROWS, act_stride, group); }

static inline void store_rows(const job *c, int32_t panel, int32_t row0, int n_rows, float (*acc)[MF_PANEL]) {
    const int64_t first = (int64_t)panel * MF_PANEL, left = c->w->n_out - first;
    const size_t n = left < MF_PANEL ? (size_t)left : MF_PANEL;
    for (int r = 0; r < n_rows; r++) memcpy(c->dst + (size_t)(row0 + r) * c->dst_stride + first, acc[r], n * sizeof(float));
}

// A function of the table that runs `matmul` of a constant type.
#define MATMUL(linkage, function, type)                                                                           \
    linkage void function(const mf_matrix *w, const void *act, size_t act_stride, int32_t n_rows, int32_t panel0, \
                          int32_t panel1, float *dst, size_t dst_stride) {                                        \
        const job c = {w, act, act_stride, dst, dst_stride};                                                      \
        matmul(type, &c, n_rows, panel0, panel1);                                                                 \
    }

MF_INLINE int32_t load_32(const void *p) {
    int32_t v;
    memcpy(&v, p, 4);
    return v;
}

MF_INLINE void prefetch(const uint8_t *p, int bytes) {
    MF_UNROLL
    for (int i = 0; i < bytes; i += 64) _mm_prefetch((const char *)p + i, _MM_HINT_T0);
}

// Bytes of a panel that hold n values of each row.
MF_INLINE int panel_bytes_of(mf_type t, int n) {
    const mf_panel_shape s = mf_panel_shape_of(t);
    return n / s.block_len * (s.head + s.body);
}

// ---- Types ---------------------------------------------------------------------------------------------------------------

MF_INLINE bool has_min(mf_type t) {
    return t == MF_TYPE_Q4_1 || t == MF_TYPE_Q5_1 || t == MF_TYPE_Q2_K || t == MF_TYPE_Q4_K || t == MF_TYPE_Q5_K;
}

// Words that come out of one step of unpacking.
MF_INLINE int words_a_step(mf_type t) {
    return t == MF_TYPE_Q8_0 ? 1 : t == MF_TYPE_Q2_K || t == MF_TYPE_Q3_K || t == MF_TYPE_Q6_K ? 4 : 2;
}

// Which word of its block (of the 8 of 32 values, of the 64 of 256) is the i-th of a step.
MF_INLINE int word_index(mf_type t, int step, int i) {
    switch (t) {
    case MF_TYPE_Q8_0: return step;
    case MF_TYPE_Q4_K:
    case MF_TYPE_Q5_K: return step / 8 * 16 + i * 8 + step % 8;
    case MF_TYPE_Q2_K:
    case MF_TYPE_Q3_K:
    case MF_TYPE_Q6_K: return step / 8 * 32 + i * 8 + step % 8;
    default: return step + 4 * i;
    }
}

// Where block b (of 32 values) of a panel has its parts.
typedef struct block32 {
    const uint8_t *head, *body, *qs;
    int group; // IQ4_XS: which of the super-block's
} block32;

MF_INLINE block32 block32_at(mf_type t, const uint8_t *panel, int64_t b) {
    const mf_panel_shape s = mf_panel_shape_of(t);
    const int64_t block = t == MF_TYPE_IQ4_XS ? b / 8 : b;
    block32 at = {panel + mf_panel_head(s, block), panel + mf_panel_body(s, block), NULL, (int)(b % 8)};
    at.qs = at.body;
    if (t == MF_TYPE_Q5_0 || t == MF_TYPE_Q5_1) at.qs += MF_PANEL_Q5_QS;
    if (t == MF_TYPE_IQ4_XS) at.qs += MF_PANEL_IQ4_XS_QS + 256 * at.group;
    return at;
}

// Offset of the packed weights in a body.
MF_INLINE int qs_offset(mf_type t) {
    switch (t) {
    case MF_TYPE_Q2_K: return MF_PANEL_Q2_K_QS;
    case MF_TYPE_Q3_K: return MF_PANEL_Q3_K_QS;
    case MF_TYPE_Q4_K: return MF_PANEL_Q4_K_QS;
    case MF_TYPE_Q5_K: return MF_PANEL_Q5_K_QS;
    default: return MF_PANEL_Q6_K_QL;
    }
}

#endif
