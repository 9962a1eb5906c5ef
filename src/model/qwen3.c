// Qwen3: as Qwen2 without biases, a norm over each head of q and k, and a head width of its own.
#include <stddef.h>

#include "model/arch.h"

static const mf_tensor_rule tensors[] = {
    {"attn_q_norm.weight", offsetof(mf_layer, attn_q_norm), MF_N_HEAD_DIM, MF_N_NONE, 0},
    {"attn_k_norm.weight", offsetof(mf_layer, attn_k_norm), MF_N_HEAD_DIM, MF_N_NONE, 0},
};

const mf_arch mf_arch_qwen3 = {
    .name = "qwen3",
    .interleaved_rope = false,
    .extra_tensors = tensors,
    .n_extra_tensors = sizeof tensors / sizeof tensors[0],
    .build = mf_decoder_build,
};
