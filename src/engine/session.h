// A sequence on the disk: its tokens, its cells and some bytes of the caller's, committed as often as wanted, each time only what is new.
// After a crash the file holds the last commit. docs/sessions.md has the format.
#ifndef MF_ENGINE_SESSION_H
#define MF_ENGINE_SESSION_H

#include "engine/engine.h"

typedef struct mf_session mf_session;

// What is in a session's file.
typedef struct mf_session_info {
    mf_hash128 fingerprint; // of the model (mf_model_fingerprint)
    uint64_t rope;          // of its rope frequencies
    uint32_t arithmetic;
    uint32_t cell_type; // an mf_type
    uint32_t n_layer, n_head_kv, head_dim, n_vocab;
    int32_t n_tokens, n_cells; // tokens, and how many of them have their cells in it
    bool shifted;              // some of the cells were moved by a context shift
    size_t n_state;            // bytes of the caller's
    uint64_t committed, size;  // bytes up to the last commit; of the file
    uint64_t damaged; // the first byte that is wrong (0: none is); what is said above is of the last commit before it
} mf_session_info;

// Reads and verifies all of a session's file. False with err, by name: what is not a session, another version, damage before the first
// commit.
bool mf_session_info_read(const char *path, mf_session_info *out, mf_error *err);

// A session for a sequence, which has one at most and closes it when it is freed. The file is locked from here on, before anything is
// written: an empty one takes the name where there is none, and what stands there is kept until the first commit. Refused: a file that is
// no session, one in use by another process or sequence (MF_ERR_LIMIT), one that can't be written (MF_ERR_IO).
mf_session *mf_session_new(mf_sequence *seq, const char *path, mf_error *err);

// Loads what was committed last into a sequence without tokens and goes on with that file. All of the file is verified before anything
// changes. Refused, with the field and both values: another model, rope, arithmetic, cell type or shape; more tokens than the context
// holds; damage; a cache without room. The sequence goes on as if it had never been interrupted, its sampler too; tokens without cells (the
// last one generated) are evaluated with the next append. Its blocks are never shared with others: what a file says of its cells can't be
// checked. A file that can't be written is loaded all the same; a commit then says so.
mf_session *mf_session_open(mf_sequence *seq, const char *path, mf_error *err);

// The same for a damaged file: loads the last commit before the damage. The file stays as it is until the next commit, which replaces it.
mf_session *mf_session_recover(mf_sequence *seq, const char *path, mf_error *err);

// The caller's bytes of the last commit that was loaded (NULL and 0: none). They live as long as the session.
const void *mf_session_state(const mf_session *session, size_t *n);

// Writes what has changed since the last commit, and n bytes of the caller's (a sampler's or a conversation's state), and makes them
// durable. False with err (disk full, read-only, another program has replaced the file): the file keeps the last commit, and a later
// commit may succeed. A file of which more than half is out of date is written anew beside the old one and put in its place.
bool mf_session_commit(mf_session *session, const void *state, size_t n, mf_error *err);

// Whether commits can be written, as far as that is known before. False with err: the reason they will give.
bool mf_session_writable(const mf_session *session, mf_error *err);

void mf_session_close(mf_session *session); // NULL is fine; the sequence stays

// The committed state of an image of a session's file, loaded into a sequence without tokens: what mf_session_open does with a file.
bool mf_session_load_image(mf_sequence *seq, const uint8_t *image, size_t size, mf_session_info *out, mf_error *err);

#endif
