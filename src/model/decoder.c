// The decoder-only transformer of Llama, Qwen2 and Qwen3, top to bottom: mf_decoder_build at the end, its blocks before it. An
// architecture's own file says what is particular to it.
#include <stddef.h>

#include "model/arch.h"

const mf_tensor_rule mf_decoder_tensors[] = {
    {"attn_norm.weight", offsetof(mf_layer, attn_norm), MF_N_EMBD, MF_N_NONE, 0},
    {"attn_q.weight", offsetof(mf_layer, attn_q), MF_N_EMBD, MF_N_Q, 0},
    {"attn_k.weight", offsetof(mf_layer, attn_k), MF_N_EMBD, MF_N_KV, 0},
    {"attn_v.weight", offsetof(mf_layer, attn_v), MF_N_EMBD, MF_N_KV, 0},
    {"attn_output.weight", offsetof(mf_layer, attn_output), MF_N_Q, MF_N_EMBD, 0},
    {"ffn_norm.weight", offsetof(mf_layer, ffn_norm), MF_N_EMBD, MF_N_NONE, 0},
    {"ffn_gate.weight", offsetof(mf_layer, ffn_gate), MF_N_EMBD, MF_N_FF, 0},
    {"ffn_up.weight", offsetof(mf_layer, ffn_up), MF_N_EMBD, MF_N_FF, 0},
    {"ffn_down.weight", offsetof(mf_layer, ffn_down), MF_N_FF, MF_N_EMBD, 0},
    // Biases that some fine-tunes and conversions have (Granite code, Bielik).
    {"attn_output.bias", offsetof(mf_layer, attn_output_bias), MF_N_EMBD, MF_N_NONE, MF_TENSOR_OPTIONAL},
    {"ffn_gate.bias", offsetof(mf_layer, ffn_gate_bias), MF_N_FF, MF_N_NONE, MF_TENSOR_OPTIONAL},
    {"ffn_up.bias", offsetof(mf_layer, ffn_up_bias), MF_N_FF, MF_N_NONE, MF_TENSOR_OPTIONAL},
    {"ffn_down.bias", offsetof(mf_layer, ffn_down_bias), MF_N_EMBD, MF_N_NONE, MF_TENSOR_OPTIONAL},
};
const size_t mf_n_decoder_tensors = sizeof mf_decoder_tensors / sizeof mf_decoder_tensors[0];

static mf_ref project(mf_graph *g, const mf_weight *w, const mf_weight *bias, mf_ref x, const char *label) {
    return mf_graph_add_bias(g, mf_graph_matmul(g, w, x, label), bias, label);
}

static mf_ref head_norm(mf_graph *g, const mf_weight *w, float eps, mf_ref x, const char *label) {
    return w ? mf_graph_qk_norm(g, x, w, eps, label) : x;
}

// x + wo * attention(rope(wq n), rope(wk n), wv n) with n = norm(x); biases and per-head norms where the layer has them. In the last
// layer only the rows whose logits are wanted go on.
static mf_ref attention(mf_graph *g, const mf_model *m, const mf_layer *l, mf_ref x, mf_ref angles,
                        const mf_rope_params *rope) {
    const mf_hparams *h = &m->hparams;
    mf_ref n = mf_graph_rms_norm(g, x, l->attn_norm, h->rms_eps, "attn_norm");

    mf_ref q = mf_graph_heads(g, project(g, l->attn_q, l->attn_q_bias, n, "q"), h->head_dim, "q_heads");
    mf_ref k = mf_graph_heads(g, project(g, l->attn_k, l->attn_k_bias, n, "k"), h->head_dim, "k_heads");
    mf_ref v = mf_graph_heads(g, project(g, l->attn_v, l->attn_v_bias, n, "v"), h->head_dim, "v_heads");
    q = mf_graph_rope(g, head_norm(g, l->attn_q_norm, h->rms_eps, q, "q_norm"), angles, rope, "q_rope");
    k = mf_graph_rope(g, head_norm(g, l->attn_k_norm, h->rms_eps, k, "k_norm"), angles, rope, "k_rope");

    mf_ref stored = mf_graph_kv_store(g, k, v, "kv");
    mf_attention_params p = {
        .n_head = h->n_head, .n_head_kv = h->n_head_kv, .head_dim = h->head_dim, .scale = h->attn_scale};
    mf_ref a = mf_graph_attention(g, q, stored, &p, "attn");

    if (g->layer == h->n_layer - 1) {
        a = mf_graph_output_rows(g, a, "attn_rows");
        x = mf_graph_output_rows(g, x, "x_rows");
    }
    return mf_graph_add(g, x, project(g, l->attn_output, l->attn_output_bias, a, "attn_out"), "attn_residual");
}

// x + down(silu(gate n) * (up n)) with n = norm(x), and biases where the layer has them
static mf_ref ffn_swiglu(mf_graph *g, const mf_model *m, const mf_layer *l, mf_ref x) {
    mf_ref n = mf_graph_rms_norm(g, x, l->ffn_norm, m->hparams.rms_eps, "ffn_norm");
    mf_ref gate = mf_graph_silu(g, project(g, l->ffn_gate, l->ffn_gate_bias, n, "ffn_gate"), "ffn_silu");
    mf_ref up = project(g, l->ffn_up, l->ffn_up_bias, n, "ffn_up");
    mf_ref down = project(g, l->ffn_down, l->ffn_down_bias, mf_graph_mul(g, gate, up, "ffn_gated"), "ffn_down");
    return mf_graph_add(g, x, down, "ffn_residual");
}

// The logits: head * norm(x), and a bias where the model has one
static mf_ref head(mf_graph *g, const mf_model *m, mf_ref x) {
    g->layer = -1;
    x = mf_graph_rms_norm(g, x, m->output_norm, m->hparams.rms_eps, "output_norm");
    return project(g, m->output, m->output_bias, x, "logits");
}

mf_ref mf_decoder_build(const mf_model *m, const mf_rope_params *rope, mf_graph *g) {
    mf_ref angles = mf_graph_rope_table(g, rope, "rope_table");
    mf_ref x = mf_graph_get_rows(g, m->token_embd, "embedding");
    for (g->layer = 0; g->layer < m->hparams.n_layer; g->layer++) {
        const mf_layer *l = &m->layers[g->layer];
        x = attention(g, m, l, x, angles, rope);
        x = ffn_swiglu(g, m, l, x);
    }
    return head(g, m, x);
}
