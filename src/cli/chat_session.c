// A conversation that outlives the process: the history as JSON, the cells in a file beside it. Also minfer session info.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "cli/chat.h"
#include "cli/commands.h"
#include "quant/types.h"

// What a commit says of the conversation, beside the history.
typedef struct state {
    uint32_t version;
    int32_t answer_start;
    uint64_t seed_step;
    uint64_t history; // a hash of the messages
    float mirostat;   // the sampler's estimate
    uint32_t zero;
} state;

static uint64_t hash_history(const mf_conversation *c) {
    uint64_t hash = 0;
    for (size_t i = 0; i < c->entries.len; i++) {
        const mf_chat_entry *e = &c->entries.data[i];
        hash = mf_hash(e->role, strlen(e->role), hash);
        hash = mf_hash(e->content, strlen(e->content), hash);
    }
    return hash;
}

#define STATE_VERSION 1

static bool cells_path(const char *session, mf_buf *out, mf_error *err) {
    mf_buf_printf(out, "%s.kv", session);
    return !out->failed || mf_fail_memory(err, strlen(session), "a file's name");
}

static void take_state(mf_chat *c) {
    size_t n;
    const void *bytes = mf_session_state(c->session, &n);
    state s;
    if (n != sizeof s) return;
    memcpy(&s, bytes, sizeof s);
    // The answer can be generated again from its own row only where the history is that of the cells.
    if (s.version == STATE_VERSION && s.seed_step == c->conversation.seed_step &&
        s.history == hash_history(&c->conversation))
        c->conversation.answer_start = s.answer_start;
    if (s.version == STATE_VERSION && isfinite(s.mirostat))
        mf_sampler_set_mirostat(mf_sequence_sampler(c->sequence), s.mirostat);
}

// Whether a session was refused because another process writes it, and not because it is too long.
static bool is_in_use(const mf_chat *c, const char *cells, const mf_error *why) {
    mf_session_info info;
    return why->code == MF_ERR_LIMIT && mf_session_info_read(cells, &info, NULL) &&
           info.n_tokens <= c->conversation.params.n_ctx;
}

// The flag beats the history's system message.
static bool take_system(mf_chat *c, mf_error *err) {
    const char *given = c->o->system, *has = mf_conversation_system(&c->conversation);
    if (!given || strcmp(given, has ? has : "") == 0) return true;
    return mf_conversation_set_system(&c->conversation, mf_str_of(given), err);
}

bool mf_chat_session_open(mf_chat *c, mf_error *err) {
    const char *path = c->o->session;
    bool known = access(path, F_OK) == 0;
    if (known && !mf_chat_load(c, path, err)) return false;
    mf_buf cells = {0};
    if (!cells_path(path, &cells, err)) return free(cells.data), false;
    mf_error why = {0};
    if (known && access(cells.data, F_OK) == 0) {
        c->session = mf_session_open(c->sequence, cells.data, &why);
        if (c->session)
            take_state(c);
        else if (is_in_use(c, cells.data, &why))
            return free(cells.data), *err = why, false;
        else
            mf_log(MF_LOG_NOTICE, "the conversation is read again: %s", why.text);
    }
    if (!c->session) c->session = mf_session_new(c->sequence, cells.data, err);
    if (c->session && known) {
        c->conversation.changed = NULL;
        mf_log(MF_LOG_NOTICE, "%zu messages and %d evaluated tokens from %s", c->conversation.entries.len,
               mf_sequence_n_evaluated(c->sequence), path);
    }
    free(cells.data);
    return c->session && (!known || take_system(c, err));
}

bool mf_chat_session_commit(mf_chat *c, mf_error *err) {
    if (!mf_chat_save(c, c->o->session, err)) return false;
    state s = {.version = STATE_VERSION,
               .answer_start = c->conversation.answer_start,
               .seed_step = c->conversation.seed_step,
               .history = hash_history(&c->conversation),
               .mirostat = mf_sampler_mirostat(mf_sequence_sampler(c->sequence))};
    return mf_session_commit(c->session, &s, sizeof s, err);
}

// ---- minfer session info

static void print_text(const mf_session_info *i, mf_buf *out) {
    mf_buf_printf(out, "model        %016" PRIx64 " (rope %016" PRIx64 ")\n", i->fingerprint, i->rope);
    mf_buf_printf(out, "arithmetic   version %" PRIu32 "\n", i->arithmetic);
    mf_buf_printf(out, "cells        %s, %" PRIu32 " layers of %" PRIu32 " heads of %" PRIu32 " channels\n",
                  mf_type_name((mf_type)i->cell_type), i->n_layer, i->n_head_kv, i->head_dim);
    mf_buf_printf(out, "tokens       %d, %d of them with cells%s\n", i->n_tokens, i->n_cells,
                  i->shifted ? "; a context shift moved some" : "");
    mf_buf_printf(out, "file         %" PRIu64 " bytes, %" PRIu64 " up to the last commit\n", i->size, i->committed);
}

static void json_hex(mf_json_writer *w, const char *key, uint64_t value) {
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, value);
    mf_json_add_text(w, key, text);
}

static void print_json(const mf_session_info *i, mf_buf *out) {
    mf_json_writer w = {.out = out, .indent = 2};
    mf_json_begin(&w, '{');
    json_hex(&w, "fingerprint", i->fingerprint);
    json_hex(&w, "rope", i->rope);
    mf_json_add_int(&w, "arithmetic", i->arithmetic);
    mf_json_add_text(&w, "cell_type", mf_type_name((mf_type)i->cell_type));
    mf_json_add_int(&w, "n_layer", i->n_layer);
    mf_json_add_int(&w, "n_head_kv", i->n_head_kv);
    mf_json_add_int(&w, "head_dim", i->head_dim);
    mf_json_add_int(&w, "n_vocab", i->n_vocab);
    mf_json_add_int(&w, "n_tokens", i->n_tokens);
    mf_json_add_int(&w, "n_cells", i->n_cells);
    mf_json_key(&w, "shifted");
    mf_json_bool(&w, i->shifted);
    mf_json_add_int(&w, "committed_bytes", (int64_t)i->committed);
    mf_json_add_int(&w, "file_bytes", (int64_t)i->size);
    mf_json_end(&w, '}');
    mf_buf_char(out, '\n');
}

// The cells' file of what was named: FILE.kv where the history was.
static bool read_info(const char *path, mf_session_info *info, mf_error *err) {
    mf_buf cells = {0};
    size_t len = strlen(path);
    bool direct = len > 3 && strcmp(path + len - 3, ".kv") == 0;
    bool ok = direct ? mf_session_info_read(path, info, err)
                     : cells_path(path, &cells, err) && mf_session_info_read(cells.data, info, err);
    free(cells.data);
    return ok;
}

int mf_command_session(mf_options *o) {
    mf_error err = {0};
    if (!o->word || strcmp(o->word, "info") != 0 || !o->second_word) {
        mf_fail(&err, MF_ERR_ARGUMENT, "minfer session info FILE is what there is");
        return mf_cli_fail(&err), MF_EXIT_USAGE;
    }
    mf_session_info info;
    if (!read_info(o->second_word, &info, &err)) return mf_cli_fail(&err);
    mf_buf text = {0};
    mf_output out = {0};
    if (o->json)
        print_json(&info, &text);
    else
        print_text(&info, &text);
    bool ok = mf_output_buf(&out, &text);
    free(text.data);
    return ok ? MF_EXIT_DONE : MF_EXIT_REFUSED;
}
