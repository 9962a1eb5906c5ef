// Writing sessions.
#include "engine/session.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "engine/session_format.h"
#include "engine/state.h"

#define SLACK (1 << 20) // bytes out of date that are not worth a rewrite

struct mf_session {
    mf_sequence *seq;
    char *path;
    mf_journal journal;
    void *state; // of the commit that was loaded
    size_t n_state;
    mf_session_identity identity;
    uint8_t *block;   // one block's bytes
    mf_buf tail;      // of a commit: the sampler's bytes and the caller's
    mf_error refusal; // why the file that was loaded can't be written
};

static mf_session *make(mf_sequence *seq, const char *path, mf_error *err) {
    if (seq->session) return mf_fail(err, MF_ERR_ARGUMENT, "the sequence has a session already"), NULL;
    mf_session *s = mf_alloc(1, sizeof *s);
    if (!s) return mf_fail_memory(err, sizeof *s, "a session"), NULL;
    size_t n = mf_kv_block_bytes(seq->engine->kv);
    *s = (mf_session){.seq = seq, .path = mf_copy_text(path, strlen(path)), .block = mf_alloc(n, 1)};
    if (s->path && s->block) {
        seq->session = s;
        return s;
    }
    mf_fail_memory(err, n, "a session");
    mf_session_close(s);
    return NULL;
}

void mf_session_close(mf_session *s) {
    if (!s) return;
    if (s->seq->session == s) s->seq->session = NULL;
    mf_journal_close(&s->journal);
    free(s->path);
    free(s->state);
    free(s->block);
    free(s->tail.data);
    free(s);
}

mf_session *mf_session_new(mf_sequence *seq, const char *path, mf_error *err) {
    mf_session *s = make(seq, path, err);
    if (!s) return NULL;
    seq->saved_tokens = seq->saved_cells = 0;
    if (mf_journal_open(&s->journal, path, true, err) && mf_session_identity_of(seq->engine, &s->identity, err)) return s;
    mf_session_close(s);
    return NULL;
}

// Loads an image and keeps the caller's bytes of it.
static bool load(mf_session *s, const mf_file_map *map, bool recover, mf_session_info *info, mf_error *err) {
    if (!mf_session_load(s->seq, map->data, map->size, recover, info, err)) return mf_fail_prefix(err, "%.200s", s->path);
    s->n_state = info->n_state;
    if (!info->n_state) return true;
    s->state = mf_alloc(info->n_state, 1);
    if (!s->state) return mf_fail_memory(err, info->n_state, "a session's state");
    mf_record r;
    for (uint64_t at = 0; mf_journal_next(map->data, info->committed, &at, &r);) // they end the last commit
        if (r.end == info->committed) memcpy(s->state, r.data + r.size - s->n_state, s->n_state);
    return true;
}

static bool open_and_load(mf_session *s, bool recover, mf_error *err) {
    mf_file_map map;
    mf_session_info info;
    if (!mf_journal_open(&s->journal, s->path, false, &s->refusal) && s->refusal.code != MF_ERR_IO) {
        if (err) *err = s->refusal;
        return false;
    }
    if (!mf_session_identity_of(s->seq->engine, &s->identity, err) || !mf_file_map_open(&map, s->path, err)) return false;
    bool ok = load(s, &map, recover, &info, err);
    mf_file_map_close(&map);
    if (ok && s->journal.open && !info.damaged) mf_journal_continue(&s->journal, info.committed, info.size);
    return ok;
}

static mf_session *open_session(mf_sequence *seq, const char *path, bool recover, mf_error *err) {
    if (seq->tokens.len)
        return mf_fail(err, MF_ERR_ARGUMENT, "a session is loaded into a sequence of %zu tokens", seq->tokens.len), NULL;
    mf_session *s = make(seq, path, err);
    if (!s || open_and_load(s, recover, err)) return s;
    if (seq->tokens.len) mf_sequence_truncate(seq, 0);
    mf_session_close(s);
    return NULL;
}

mf_session *mf_session_open(mf_sequence *seq, const char *path, mf_error *err) {
    return open_session(seq, path, false, err);
}

mf_session *mf_session_recover(mf_sequence *seq, const char *path, mf_error *err) {
    return open_session(seq, path, true, err);
}

const void *mf_session_state(const mf_session *s, size_t *n) {
    *n = s->n_state;
    return s->state;
}

// ---- A commit

// Bytes of a file that holds the sequence as it is.
static uint64_t whole_size(const mf_session *s) {
    uint64_t blocks = (uint64_t)(s->seq->n_evaluated + MF_KV_BLOCK - 1) / MF_KV_BLOCK;
    return blocks * mf_kv_block_bytes(s->seq->engine->kv) + s->seq->tokens.len * sizeof(int32_t);
}

static bool append_tokens(mf_session *s, mf_error *err) {
    const mf_sequence *q = s->seq;
    uint32_t first = (uint32_t)q->saved_tokens, head[2] = {first, (uint32_t)q->tokens.len - first};
    return head[1] == 0 || mf_journal_append(&s->journal, MF_RECORD_TOKENS, head, sizeof head, q->tokens.data + first,
                                             head[1] * sizeof(int32_t), err);
}

static bool append_blocks(mf_session *s, mf_error *err) {
    const mf_sequence *q = s->seq;
    const mf_kv *kv = q->engine->kv;
    for (int32_t i = q->saved_cells / MF_KV_BLOCK; i * MF_KV_BLOCK < q->n_evaluated; i++) {
        int32_t n = q->n_evaluated - i * MF_KV_BLOCK < MF_KV_BLOCK ? q->n_evaluated - i * MF_KV_BLOCK : MF_KV_BLOCK;
        if (q->saved_cells == i * MF_KV_BLOCK + n) break; // all of it is there
        uint32_t head[2] = {(uint32_t)i, (uint32_t)n};
        mf_kv_save_block(kv, &q->table, i, n, s->block);
        if (!mf_journal_append(&s->journal, MF_RECORD_BLOCK, head, sizeof head, s->block, mf_kv_block_bytes(kv), err))
            return false;
    }
    return true;
}

bool mf_session_writable(const mf_session *s, mf_error *err) {
    if (s->refusal.code && err) *err = s->refusal;
    return !s->refusal.code;
}

static bool begin(mf_session *s, mf_error *err) {
    bool appends;
    if (!mf_session_writable(s, err) || !mf_journal_ready(&s->journal, &appends, err)) return false;
    if (appends && s->journal.end <= 2 * whole_size(s) + SLACK) return true;
    s->seq->saved_tokens = s->seq->saved_cells = 0;
    return mf_journal_create(&s->journal, err) &&
           mf_journal_append(&s->journal, MF_RECORD_IDENTITY, &s->identity, sizeof s->identity, NULL, 0, err);
}

static bool append_commit(mf_session *s, const void *state, size_t n, mf_error *err) {
    const mf_sequence *q = s->seq;
    s->tail.len = 0;
    if (q->sampler) mf_sampler_save(q->sampler, &s->tail);
    mf_session_commit_head head = {.n_tokens = (uint32_t)q->tokens.len,
                                   .n_cells = (uint32_t)q->n_evaluated,
                                   .n_pure = (uint32_t)(q->table.shifted ? q->table.n_pure : q->n_evaluated),
                                   .shifted = q->table.shifted,
                                   .n_prompt = (uint32_t)q->n_prompt,
                                   .n_generated = (uint32_t)q->n_generated,
                                   .n_sampler = (uint32_t)s->tail.len,
                                   .n_draws = q->n_draws};
    mf_buf_add(&s->tail, state, n);
    if (!s->tail.failed) return mf_journal_commit(&s->journal, &head, sizeof head, s->tail.data, s->tail.len, err);
    free(s->tail.data);
    s->tail = (mf_buf){0};
    mf_journal_rewind(&s->journal);
    return mf_fail_memory(err, n, "a session's state");
}

bool mf_session_commit(mf_session *s, const void *state, size_t n, mf_error *err) {
    mf_sequence *q = s->seq;
    if (begin(s, err) && append_tokens(s, err) && append_blocks(s, err) && append_commit(s, state, n, err)) {
        q->saved_tokens = (int32_t)q->tokens.len;
        q->saved_cells = q->n_evaluated;
        return true;
    }
    if (s->journal.temporary) mf_journal_abandon(&s->journal);
    return false;
}
