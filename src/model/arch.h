// What an architecture is: a row of the registry.
#ifndef MF_MODEL_ARCH_H
#define MF_MODEL_ARCH_H

#include "model/model.h"

#define MF_MAX_CTX (1 << 24) // tokens of a context, whatever a file says

enum { // mf_tensor_rule.flags
    MF_TENSOR_OPTIONAL = 1,
};

// Sizes a tensor's dimension can have, in terms of the hyperparameters.
typedef enum mf_extent {
    MF_N_NONE,
    MF_N_EMBD,
    MF_N_VOCAB,
    MF_N_Q,
    MF_N_KV,
    MF_N_HEAD_DIM,
    MF_N_FF
} mf_extent;

// A tensor of the file: where it goes, its name, its shape.
typedef struct mf_tensor_rule {
    const char *name;  // "attn_q.weight": blk.N. is put before it
    size_t field;      // offset of its mf_weight * in mf_layer
    mf_extent in, out; // row length and rows; out == MF_N_NONE: a vector
    unsigned flags;
} mf_tensor_rule;

struct mf_arch {
    const char *name;
    bool interleaved_rope;
    const mf_tensor_rule *extra_tensors; // of a layer, beside those that every architecture has (mf_decoder_tensors)
    size_t n_extra_tensors;
    const char *fallback_prefix; // keys are also read under this name (files of old converters); NULL: none
    mf_ref (*build)(const mf_model *model, const mf_rope_params *rope, mf_graph *g);
};

// All architectures, in alphabetical order.
const mf_arch *const *mf_archs(size_t *n);

extern const mf_arch mf_arch_llama, mf_arch_qwen2, mf_arch_qwen3;

// hparams.c
bool mf_hparams_read(mf_model *model, mf_error *err);

// The key "ARCH.suffix" as the file has it: under the architecture's own name, else under its fallback's. Returns buffer.
const char *mf_model_key(const mf_model *model, const char *suffix, char buffer[128]);

// rope.c: the inverse frequencies of rope with the file's scaling.
bool mf_rope_read(mf_model *model, mf_error *err);

// weights.c
bool mf_weights_bind(mf_model *model, mf_error *err);

// unread.c: refuses by name what the file says of the model and the model does not compute: keys whose value is not the one that changes
// nothing, and tensors (bound[i]: tensor i of the file has a weight). Keys that are not known at all are named in a notice.
bool mf_unread_keys_check(const mf_model *model, mf_error *err);
bool mf_unread_tensors_check(const mf_model *model, const bool *bound, mf_error *err);

// decoder.c: the transformer that the architectures share, and the tensors of its layers.
extern const mf_tensor_rule mf_decoder_tensors[];
extern const size_t mf_n_decoder_tensors;

mf_ref mf_decoder_build(const mf_model *model, const mf_rope_params *rope, mf_graph *g);

#endif
