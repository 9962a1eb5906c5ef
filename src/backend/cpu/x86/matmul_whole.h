// The end of a file of quantized matmuls, shared by the instruction sets: the including file has defined GROUP, MAX_ROWS and stream_32,
// stream_256, piece_32 and piece_256 in its own vectors. Gives matmul_TYPE for every quantized type.
// A panel times n rows of activations: acc[row][weight row].
MF_INLINE void panel_32(mf_type t, const job *c, const uint8_t *panel, int32_t row, int n, float (*acc)[MF_PANEL]) {
    if (n == 1) {
        stream_32(t, c, panel, row, 1, acc);
    } else if (n == 2) {
        stream_32(t, c, panel, row, 2, acc);
    } else {
        memset(acc, 0, (size_t)n * sizeof acc[0]);
        piece_32(t, c, panel, row, n, acc);
    }
}

MF_INLINE void panel_256(mf_type t, const job *c, const uint8_t *panel, int32_t row, int n, float (*acc)[MF_PANEL]) {
    if (n == 1) {
        stream_256(t, c, panel, row, 1, acc);
    } else if (n == 2) {
        stream_256(t, c, panel, row, 2, acc);
    } else {
        memset(acc, 0, (size_t)n * sizeof acc[0]);
        piece_256(t, c, panel, row, n, acc);
    }
}

MF_INLINE void matmul(mf_type t, const job *c, int32_t n_rows, int32_t panel0, int32_t panel1) {
    const bool super = mf_panel_shape_of(t).block_len == 256 && t != MF_TYPE_IQ4_XS;
    const int block = rows_a_block(c->act_stride, GROUP);
    for (int32_t row = 0; row < n_rows; row += block) {
        const int n = n_rows - row < block ? n_rows - row : block;
        for (int32_t p = panel0; p < panel1; p++) {
            const uint8_t *panel = (const uint8_t *)c->w->data + (size_t)p * c->w->stride;
            _Alignas(64) float acc[MAX_ROWS][MF_PANEL];
            if (super) panel_256(t, c, panel, row, n, acc);
            if (!super) panel_32(t, c, panel, row, n, acc);
            store_rows(c, p, row, n, acc);
        }
    }
}

#define MATMUL(name, type)                                                                                            \
    static void matmul_##name(const mf_matrix *w, const void *act, size_t act_stride, int32_t n_rows, int32_t panel0, \
                              int32_t panel1, float *dst, size_t dst_stride) {                                        \
        const job c = {w, act, act_stride, dst, dst_stride};                                                          \
        matmul(type, &c, n_rows, panel0, panel1);                                                                     \
    }

MATMUL(q4_0, MF_TYPE_Q4_0)
MATMUL(q4_1, MF_TYPE_Q4_1)
MATMUL(q5_0, MF_TYPE_Q5_0)
MATMUL(q5_1, MF_TYPE_Q5_1)
MATMUL(q8_0, MF_TYPE_Q8_0)
MATMUL(iq4_nl, MF_TYPE_IQ4_NL)
MATMUL(iq4_xs, MF_TYPE_IQ4_XS)
MATMUL(q2_k, MF_TYPE_Q2_K)
MATMUL(q3_k, MF_TYPE_Q3_K)
MATMUL(q4_k, MF_TYPE_Q4_K)
MATMUL(q5_k, MF_TYPE_Q5_K)
MATMUL(q6_k, MF_TYPE_Q6_K)
