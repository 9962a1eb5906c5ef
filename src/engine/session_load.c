// Reading sessions: everything in a file comes from outside and is checked before anything changes.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/version.h"
#include "engine/session_format.h"
#include "engine/state.h"

bool mf_session_identity_of(mf_engine *e, mf_session_identity *out, mf_error *err) {
    if (!e->fingerprinted && !mf_model_fingerprint(e->model, &e->fingerprint, err)) return false;
    e->fingerprinted = true;
    const mf_kv_view *v = mf_kv_view_of(e->kv);
    const mf_rope_params *rope = mf_model_rope(e->model, e->seq_cells);
    uint64_t turns = mf_hash(rope->inv_freq, (size_t)rope->n_dims / 2 * sizeof *rope->inv_freq, rope->interleaved);
    *out = (mf_session_identity){.fingerprint = e->fingerprint,
                                 .rope = mf_hash(&rope->magnitude, sizeof rope->magnitude, turns),
                                 .arithmetic = MF_ARITHMETIC_VERSION,
                                 .cell_type = (uint32_t)v->type,
                                 .n_layer = (uint32_t)v->n_layer,
                                 .n_head_kv = (uint32_t)v->n_head_kv,
                                 .head_dim = (uint32_t)v->head_dim,
                                 .block = MF_KV_BLOCK,
                                 .n_vocab = (uint32_t)e->model->hparams.n_vocab};
    return true;
}

// What an image holds.
typedef struct contents {
    mf_session_identity identity;
    mf_session_commit_head commit;
    const uint8_t *sampler; // the commit's bytes of the sampler
    size_t n_state;
    uint64_t end, damaged;
    mf_array(int32_t) tokens;
    mf_array(const uint8_t *) blocks; // where the bytes of each block are
    size_t block_bytes;               // 0: none was seen
} contents;

static void contents_free(contents *c) {
    free(c->tokens.data);
    free(c->blocks.data);
}

static bool bad(const char *what, mf_error *err) { return mf_fail(err, MF_ERR_FORMAT, "the session has %s", what); }

static bool take_tokens(contents *c, const mf_record *r, mf_error *err) {
    uint32_t head[2];
    memcpy(head, r->data, sizeof head);
    size_t n = (r->size - sizeof head) / sizeof(int32_t);
    if (head[1] != n || (r->size - sizeof head) % sizeof(int32_t) || head[0] > c->tokens.len || n > INT32_MAX - head[0])
        return bad("tokens that don't follow", err);
    if (!mf_array_reserve(&c->tokens, head[0] + n)) return mf_fail_memory(err, n * sizeof(int32_t), "a session's tokens");
    if (n) memcpy(c->tokens.data + head[0], r->data + sizeof head, n * sizeof(int32_t));
    c->tokens.len = head[0] + n;
    return true;
}

static bool take_block(contents *c, const mf_record *r, mf_error *err) {
    uint32_t head[2];
    memcpy(head, r->data, sizeof head);
    size_t bytes = r->size - sizeof head;
    if (head[0] > c->blocks.len || head[1] < 1 || head[1] > MF_KV_BLOCK || !bytes ||
        (c->block_bytes && bytes != c->block_bytes))
        return bad("a block that doesn't follow", err);
    c->block_bytes = bytes;
    if (head[0] == c->blocks.len && !mf_array_push(&c->blocks, NULL)) return mf_fail_memory(err, 0, "a session's blocks");
    c->blocks.data[head[0]] = r->data + sizeof head;
    return true;
}

static bool take_commit(contents *c, const mf_record *r, mf_error *err) {
    mf_session_commit_head *h = &c->commit;
    memcpy(h, r->data, sizeof *h);
    size_t rest = r->size - sizeof *h;
    if (h->n_sampler > rest) return bad("a commit of what is not there", err);
    c->sampler = r->data + sizeof *h;
    c->n_state = rest - h->n_sampler;
    uint64_t blocks = ((uint64_t)h->n_cells + MF_KV_BLOCK - 1) / MF_KV_BLOCK;
    if (h->n_tokens > c->tokens.len || h->n_cells > h->n_tokens || h->n_pure > h->n_cells || h->shifted > 1 ||
        h->n_prompt > h->n_tokens || h->n_generated > INT32_MAX || blocks > c->blocks.len || h->zero ||
        h->n_draws > INT64_MAX)
        return bad("a commit of what is not there", err);
    c->tokens.len = h->n_tokens, c->blocks.len = (size_t)blocks;
    return true;
}

static bool read_image(contents *c, const uint8_t *image, size_t size, mf_error *err) {
    mf_record r;
    uint64_t at = 0;
    if (!mf_journal_check(image, size, &c->end, &c->damaged, err)) return false;
    if (!mf_journal_next(image, c->end, &at, &r) || r.kind != MF_RECORD_IDENTITY || r.size != sizeof c->identity)
        return bad("no identity at its start", err);
    memcpy(&c->identity, r.data, sizeof c->identity);
    while (mf_journal_next(image, c->end, &at, &r)) {
        bool ok = r.kind == MF_RECORD_TOKENS   ? take_tokens(c, &r, err)
                  : r.kind == MF_RECORD_BLOCK  ? take_block(c, &r, err)
                  : r.kind == MF_RECORD_COMMIT ? take_commit(c, &r, err)
                                               : mf_fail(err, MF_ERR_FORMAT, "the session has a record of kind %u", r.kind);
        if (!ok) return false;
    }
    return true;
}

static void fill_info(const contents *c, size_t size, mf_session_info *out) {
    const mf_session_identity *i = &c->identity;
    *out = (mf_session_info){.fingerprint = i->fingerprint,
                             .rope = i->rope,
                             .arithmetic = i->arithmetic,
                             .cell_type = i->cell_type,
                             .n_layer = i->n_layer,
                             .n_head_kv = i->n_head_kv,
                             .head_dim = i->head_dim,
                             .n_vocab = i->n_vocab,
                             .n_tokens = (int32_t)c->commit.n_tokens,
                             .n_cells = (int32_t)c->commit.n_cells,
                             .shifted = c->commit.shifted,
                             .n_state = c->n_state,
                             .committed = c->end,
                             .size = size,
                             .damaged = c->damaged};
}

bool mf_session_info_read(const char *path, mf_session_info *out, mf_error *err) {
    mf_file_map map;
    contents c = {0};
    if (!mf_file_map_open(&map, path, err)) return false;
    bool ok = read_image(&c, map.data, map.size, err) || mf_fail_prefix(err, "%.200s", path);
    if (ok) fill_info(&c, map.size, out);
    contents_free(&c);
    mf_file_map_close(&map);
    return ok;
}

// ---- Into a sequence

static bool same(const char *field, uint64_t got, uint64_t want, mf_error *err) {
    return got == want ||
           mf_fail(err, MF_ERR_ARGUMENT, "the session's %s is %" PRIu64 "; here it is %" PRIu64, field, got, want);
}

static bool same_fingerprint(mf_hash128 got, mf_hash128 want, mf_error *err) {
    return (got.word[0] == want.word[0] && got.word[1] == want.word[1]) ||
           mf_fail(err, MF_ERR_ARGUMENT,
                   "the session's model fingerprint is %016" PRIx64 "%016" PRIx64 "; here it is %016" PRIx64 "%016" PRIx64,
                   got.word[0], got.word[1], want.word[0], want.word[1]);
}

static bool check_identity(const mf_session_identity *got, mf_engine *e, mf_error *err) {
    mf_session_identity want;
    if (!mf_session_identity_of(e, &want, err)) return false;
    if (got->cell_type != want.cell_type)
        return mf_fail(err, MF_ERR_ARGUMENT, "the session's cells are %s; here they are %s", mf_type_name(got->cell_type),
                       mf_type_name(want.cell_type));
    return same("arithmetic version", got->arithmetic, want.arithmetic, err) &&
           same("number of layers", got->n_layer, want.n_layer, err) &&
           same("number of KV heads", got->n_head_kv, want.n_head_kv, err) &&
           same("head width", got->head_dim, want.head_dim, err) && same("block size", got->block, want.block, err) &&
           same("vocabulary", got->n_vocab, want.n_vocab, err) &&
           same_fingerprint(got->fingerprint, want.fingerprint, err) && same("rope", got->rope, want.rope, err);
}

static bool check_contents(const contents *c, const mf_sequence *s, bool recover, mf_error *err) {
    mf_engine *e = s->engine;
    if (s->tokens.len)
        return mf_fail(err, MF_ERR_ARGUMENT, "a session is loaded into a sequence of %zu tokens", s->tokens.len);
    if (!check_identity(&c->identity, e, err)) return false;
    if (c->damaged && !recover)
        return mf_fail(err, MF_ERR_FORMAT, "the session is damaged at byte %" PRIu64 "; %u tokens were committed before it",
                       c->damaged, c->commit.n_tokens);
    if (c->commit.n_tokens > (uint32_t)e->seq_cells + 1 || c->commit.n_cells > (uint32_t)e->seq_cells)
        return mf_fail(err, MF_ERR_LIMIT, "the session has %u tokens; the context holds %d", c->commit.n_tokens,
                       e->seq_cells);
    if (c->blocks.len && c->block_bytes != mf_kv_block_bytes(e->kv))
        return mf_fail(err, MF_ERR_FORMAT, "the session's blocks have %zu bytes, not %zu", c->block_bytes,
                       mf_kv_block_bytes(e->kv));
    for (size_t i = 0; i < c->tokens.len; i++)
        if (c->tokens.data[i] < 0 || c->tokens.data[i] >= e->model->hparams.n_vocab)
            return mf_fail(err, MF_ERR_FORMAT, "token %zu of the session is %d; the vocabulary has %d ids", i,
                           c->tokens.data[i], e->model->hparams.n_vocab);
    return true;
}

// The history is that of the tokens, unless the saved one says otherwise: after a shift it has tokens that are gone.
static bool restore_sampler(mf_sampler *s, const contents *c, mf_error *err) {
    mf_sampler_reset(s);
    for (size_t i = 0; i < c->tokens.len; i++) mf_sampler_accept(s, c->tokens.data[i]);
    if (!c->commit.n_sampler || mf_sampler_load(s, c->sampler, c->commit.n_sampler, err)) return true;
    mf_sampler_reset(s);
    return false;
}

static bool restore(mf_sequence *s, const contents *c, mf_error *err) {
    mf_kv *kv = s->engine->kv;
    int32_t n_cells = (int32_t)c->commit.n_cells;
    if (s->sampler && !restore_sampler(s->sampler, c, err)) return false;
    mf_kv_truncate(kv, &s->table, 0);
    while (mf_kv_blocks_needed(kv, &s->table, 0, n_cells) > mf_kv_free_blocks(kv) && mf_room_widen(s))
        ;
    if (!mf_kv_extend(kv, &s->table, n_cells, err)) {
        if (s->sampler) mf_sampler_reset(s->sampler);
        return false;
    }
    s->table.loaded = n_cells > 0;
    for (size_t i = 0; i < c->blocks.len; i++) mf_kv_load_block(kv, &s->table, (int32_t)i, c->blocks.data[i]);
    s->table.shifted = c->commit.shifted;
    s->table.n_pure = (int32_t)c->commit.n_pure;
    if (c->tokens.len) memcpy(s->tokens.data, c->tokens.data, c->tokens.len * sizeof(int32_t));
    s->tokens.len = c->tokens.len;
    s->n_evaluated = n_cells;
    s->n_prompt = (int32_t)c->commit.n_prompt;
    s->n_generated = (int32_t)c->commit.n_generated;
    mf_sequence_set_draws(s, c->commit.n_draws);
    s->n_cached = 0;
    s->active = false;
    s->saved_tokens = (int32_t)c->tokens.len, s->saved_cells = n_cells;
    return true;
}

bool mf_session_load(mf_sequence *seq, const uint8_t *image, size_t size, bool recover, mf_session_info *out,
                     mf_error *err) {
    contents c = {0};
    bool ok = read_image(&c, image, size, err) && check_contents(&c, seq, recover, err) && restore(seq, &c, err);
    if (ok) fill_info(&c, size, out);
    contents_free(&c);
    return ok;
}

bool mf_session_load_image(mf_sequence *seq, const uint8_t *image, size_t size, mf_session_info *out, mf_error *err) {
    return mf_session_load(seq, image, size, false, out, err);
}
