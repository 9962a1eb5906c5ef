// The fixed parts of a session's records (docs/sessions.md).
#ifndef MF_ENGINE_SESSION_FORMAT_H
#define MF_ENGINE_SESSION_FORMAT_H

#include "engine/journal.h"
#include "engine/session.h"

typedef struct mf_session_identity {
    mf_hash128 fingerprint;
    uint64_t rope;
    uint32_t arithmetic, cell_type, n_layer, n_head_kv, head_dim, block, n_vocab, zero;
} mf_session_identity;

typedef struct mf_session_commit_head { // the sampler's bytes follow, then the caller's
    uint32_t n_tokens, n_cells, n_pure, shifted, n_prompt, n_generated, n_sampler, zero;
    uint64_t n_draws;
} mf_session_commit_head;

_Static_assert(sizeof(mf_session_identity) == 56 && sizeof(mf_session_commit_head) == 40, "as the journal knows them");

// What sessions of this engine are for. The model is hashed once an engine. False with err: memory.
bool mf_session_identity_of(mf_engine *engine, mf_session_identity *out, mf_error *err);

// session_load.c: an image's last commit into a sequence; with `recover` of a damaged one the last commit before the damage.
bool mf_session_load(mf_sequence *seq, const uint8_t *image, size_t size, bool recover, mf_session_info *out, mf_error *err);

#endif
