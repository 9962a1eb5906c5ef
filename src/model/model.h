// Models: hyperparameters and weights out of a GGUF file, and the graph of one step. One file an architecture builds its graph.
#ifndef MF_MODEL_MODEL_H
#define MF_MODEL_MODEL_H

#include "gguf/gguf.h"
#include "graph/graph.h"

typedef struct mf_arch mf_arch;

typedef struct mf_hparams {
    int32_t n_ctx_train; // the most tokens of a sequence: the trained context, or the one that rope is scaled to
    int32_t n_vocab, n_embd, n_layer, n_head, n_head_kv, head_dim, n_ff;
    float rms_eps;
    int32_t n_rot;    // channels of a head that rope turns
    float attn_scale; // 1 / sqrt(head_dim)
    int32_t window;   // cells that attention sees; 0: all of them
} mf_hparams;

// The weights of one layer; NULL where the architecture has none.
typedef struct mf_layer {
    mf_weight *attn_norm, *attn_q, *attn_k, *attn_v, *attn_q_bias, *attn_k_bias, *attn_v_bias, *attn_q_norm, *attn_k_norm,
        *attn_output, *attn_output_bias, *ffn_norm, *ffn_gate, *ffn_up, *ffn_down, *ffn_gate_bias, *ffn_up_bias,
        *ffn_down_bias;
} mf_layer;

typedef struct mf_model {
    const mf_arch *arch;
    const mf_gguf *file; // borrowed
    mf_hparams hparams;
    mf_rope_params rope;                          // inv_freq is owned by the model
    mf_rope_params rope_long;                     // longrope's, for contexts above n_ctx_orig; else inv_freq is NULL
    int32_t n_ctx_orig;                           // the context before rope was scaled
    mf_weight *token_embd, *output, *output_norm; // output == token_embd where they are tied
    mf_weight *output_bias;                       // NULL: none
    mf_layer *layers;                             // [n_layer]
    mf_weight *weights;                           // all of them
    size_t n_weights;
    mf_device *device;   // that prepared the weights; NULL before
    bool reads_file;     // some weights are read where they are mapped
    size_t weight_bytes; // memory the device took for them, and mapped bytes that stay in use
} mf_model;

// Called now and then while weights are prepared; false stops the load (MF_ERR_CANCELLED).
typedef bool mf_progress_fn(void *arg, double fraction);

// Reads the hyperparameters and finds every tensor by name, checking all shapes and types. The file must outlive the model.
// Refused by name: an unsupported architecture (with the supported ones), a missing or misshapen tensor (with both shapes), a
// hyperparameter that is missing, zero, negative, not finite or absurd, a rope scaling that is not supported, a tensor or a key's value
// that would change the computation and is no part of it.
mf_model *mf_model_new(const mf_gguf *file, mf_error *err);

// Lets the device prepare every weight; afterwards mapped pages that are not needed are dropped.
bool mf_model_prepare(mf_model *model, mf_device *device, mf_progress_fn *progress, void *arg, mf_error *err);

// False with err when weights are still read out of a file that was written to or cut since it was opened.
bool mf_model_check_file(const mf_model *model, mf_error *err);

// Bytes mf_model_prepare will make the process hold for the weights on this device.
size_t mf_model_weight_bytes(const mf_model *model, const mf_device *device);

void mf_model_free(mf_model *model); // NULL is fine

// The architecture's name ("llama").
const char *mf_model_arch(const mf_model *model);

// Parameters in all (elements of all tensors).
uint64_t mf_model_n_params(const mf_model *model);

// A number that differs between models with different contents: a hash of the architecture, all metadata, and all bytes of all tensors. It
// depends on nothing else. Large files are hashed once: their figure is kept in the user's cache folder (fingerprint.c). False with err:
// memory, no threads.
bool mf_model_fingerprint(const mf_model *model, mf_hash128 *out, mf_error *err);

// The rope of sequences of at most n_ctx cells. Only longrope has two: which of them is a property of the context that was asked for,
// never of how long a sequence has become, so that rows never change when later ones arrive.
const mf_rope_params *mf_model_rope(const mf_model *model, int32_t n_ctx);

// Builds the plain graph of one step into g (empty): token ids in, logits [n_vocab][OUTS] out. n_ctx: the most cells of one sequence.
// Pure: changes nothing of the model. Refused: a context beyond the window that the file's attention sees.
bool mf_model_build(const mf_model *model, int32_t n_ctx, mf_graph *g, mf_error *err);

#endif
