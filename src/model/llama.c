// Llama 2 and 3, Mistral, SmolLM2: grouped-query attention with interleaved rope, SwiGLU, RMS norms before each.
#include <stddef.h>

#include "model/arch.h"

static const mf_tensor_rule tensors[] = {
    {"attn_q.bias", offsetof(mf_layer, attn_q_bias), MF_N_Q, MF_N_NONE, MF_TENSOR_OPTIONAL},
    {"attn_k.bias", offsetof(mf_layer, attn_k_bias), MF_N_KV, MF_N_NONE, MF_TENSOR_OPTIONAL},
    {"attn_v.bias", offsetof(mf_layer, attn_v_bias), MF_N_KV, MF_N_NONE, MF_TENSOR_OPTIONAL},
};

const mf_arch mf_arch_llama = {
    .name = "llama",
    .interleaved_rope = true,
    .extra_tensors = tensors,
    .n_extra_tensors = sizeof tensors / sizeof tensors[0],
    .build = mf_decoder_build,
};
