// Qwen2, Qwen2.5, DeepSeek-R1-Distill-Qwen: as Llama, with biases on q, k and v and rope over the two halves of a head.
#include <stddef.h>

#include "model/arch.h"

static const mf_tensor_rule tensors[] = {
    {"attn_q.bias", offsetof(mf_layer, attn_q_bias), MF_N_Q, MF_N_NONE, 0},
    {"attn_k.bias", offsetof(mf_layer, attn_k_bias), MF_N_KV, MF_N_NONE, 0},
    {"attn_v.bias", offsetof(mf_layer, attn_v_bias), MF_N_KV, MF_N_NONE, 0},
};

const mf_arch mf_arch_qwen2 = {
    .name = "qwen2",
    .interleaved_rope = false,
    .extra_tensors = tensors,
    .n_extra_tensors = sizeof tensors / sizeof tensors[0],
    .fallback_prefix = "llama",
    .build = mf_decoder_build,
};
