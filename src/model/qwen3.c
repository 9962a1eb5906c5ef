// Qwen3: as Qwen2 without biases, a norm over each head of q and k, and a head width of its own.
#include <stddef.h>

#include "model/arch.h"

static const mf_tensor_rule tensors[] = {
    {"attn_norm.weight", offsetof(mf_layer, attn_norm), MF_N_EMBD, MF_N_NONE, 0},
    {"attn_q.weight", offsetof(mf_layer, attn_q), MF_N_EMBD, MF_N_Q, 0},
    {"attn_k.weight", offsetof(mf_layer, attn_k), MF_N_EMBD, MF_N_KV, 0},
    {"attn_v.weight", offsetof(mf_layer, attn_v), MF_N_EMBD, MF_N_KV, 0},
    {"attn_q_norm.weight", offsetof(mf_layer, attn_q_norm), MF_N_HEAD_DIM, MF_N_NONE, 0},
    {"attn_k_norm.weight", offsetof(mf_layer, attn_k_norm), MF_N_HEAD_DIM, MF_N_NONE, 0},
    {"attn_output.weight", offsetof(mf_layer, attn_output), MF_N_Q, MF_N_EMBD, 0},
    {"ffn_norm.weight", offsetof(mf_layer, ffn_norm), MF_N_EMBD, MF_N_NONE, 0},
    {"ffn_gate.weight", offsetof(mf_layer, ffn_gate), MF_N_EMBD, MF_N_FF, 0},
    {"ffn_up.weight", offsetof(mf_layer, ffn_up), MF_N_EMBD, MF_N_FF, 0},
    {"ffn_down.weight", offsetof(mf_layer, ffn_down), MF_N_FF, MF_N_EMBD, 0},
};

static mf_ref build(const mf_model *m, mf_graph *g) {
    mf_ref angles = mf_graph_rope_table(g, &m->rope, "rope_table");
    mf_ref x = mf_graph_get_rows(g, m->token_embd, "embedding");
    for (g->layer = 0; g->layer < m->hparams.n_layer; g->layer++) {
        const mf_layer *l = &m->layers[g->layer];
        x = mf_block_attention(g, m, l, x, angles);
        x = mf_block_ffn_swiglu(g, m, l, x);
    }
    return mf_block_head(g, m, x);
}

const mf_arch mf_arch_qwen3 = {
    .name = "qwen3",
    .interleaved_rope = false,
    .layer_tensors = tensors,
    .n_layer_tensors = sizeof tensors / sizeof tensors[0],
    .build = build,
};
