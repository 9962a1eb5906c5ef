// A conversation that outlives the process: the history as JSON, the cells in a file beside it. Also minfer session info.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

#define STATE_VERSION 2

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
}

// The flag beats the history's system message.
static bool take_system(mf_chat *c, mf_error *err) {
    const char *given = c->o->system, *has = mf_conversation_system(&c->conversation);
    if (!given || (has && strcmp(given, has) == 0)) return true;
    return mf_conversation_set_system(&c->conversation, mf_str_of(given), err);
}

// Takes up the cells where they are those of the conversation; else the conversation is read again, into new ones.
static bool open_cells(mf_chat *c, bool known, const char *path, mf_error *err) {
    mf_error why = {0};
    if (known && access(path, F_OK) == 0) c->session = mf_session_open(c->sequence, path, &why);
    if (why.code == MF_ERR_FORMAT && (c->session = mf_session_recover(c->sequence, path, NULL)))
        mf_log(MF_LOG_NOTICE, "what was said later is read again: %s", why.text);
    if (c->session) return take_state(c), mf_session_writable(c->session, err);
    c->session = mf_session_new(c->sequence, path, err);
    if (c->session && why.code) mf_log(MF_LOG_NOTICE, "the conversation is read again: %s", why.text);
    return c->session != NULL;
}

bool mf_chat_session_open(mf_chat *c, mf_error *err) {
    const char *path = c->o->session;
    struct stat st;
    if (!mf_lock_take(&c->history, path, true, err)) return false;
    bool known = fstat(c->history.fd, &st) == 0 && st.st_size > 0;
    if (known && !mf_chat_load(c, path, err)) return false;
    mf_buf cells = {0};
    bool ok = cells_path(path, &cells, err) && open_cells(c, known, cells.data, err);
    free(cells.data);
    if (!ok || !known) return ok;
    c->conversation.changed = NULL;
    mf_log(MF_LOG_NOTICE, "%zu messages and %d evaluated tokens from %s", c->conversation.entries.len,
           mf_sequence_n_evaluated(c->sequence), path);
    return take_system(c, err);
}

static bool write_history(mf_chat *c, mf_error *err) {
    mf_buf text = {0};
    bool ok = mf_chat_history(c, &text, err) && mf_lock_write(&c->history, text.data, text.len, err);
    free(text.data);
    return ok;
}

bool mf_chat_session_commit(mf_chat *c, mf_error *err) {
    if (!write_history(c, err)) return false;
    state s = {.version = STATE_VERSION,
               .answer_start = c->conversation.answer_start,
               .seed_step = c->conversation.seed_step,
               .history = hash_history(&c->conversation)};
    return mf_session_commit(c->session, &s, sizeof s, err);
}

void mf_chat_session_close(mf_chat *c) {
    mf_session_close(c->session);
    mf_lock_release(&c->history);
}

// ---- minfer session info

static void print_text(const mf_session_info *i, mf_buf *out) {
    mf_buf_printf(out, "model        %016" PRIx64 "%016" PRIx64 " (rope %016" PRIx64 ")\n", i->fingerprint.word[0],
                  i->fingerprint.word[1], i->rope);
    mf_buf_printf(out, "arithmetic   version %" PRIu32 "\n", i->arithmetic);
    mf_buf_printf(out, "cells        %s, %" PRIu32 " layers of %" PRIu32 " heads of %" PRIu32 " channels\n",
                  mf_type_name((mf_type)i->cell_type), i->n_layer, i->n_head_kv, i->head_dim);
    mf_buf_printf(out, "tokens       %d, %d of them with cells%s\n", i->n_tokens, i->n_cells,
                  i->shifted ? "; a context shift moved some" : "");
    mf_buf_printf(out, "file         %" PRIu64 " bytes, %" PRIu64 " up to the last commit\n", i->size, i->committed);
    if (i->damaged) mf_buf_printf(out, "damage       at byte %" PRIu64 ", with commits behind it\n", i->damaged);
}

static void json_hex(mf_json_writer *w, const char *key, const uint64_t *words, size_t n) {
    char text[33] = "";
    for (size_t i = 0; i < n && i < 2; i++) snprintf(text + 16 * i, 17, "%016" PRIx64, words[i]);
    mf_json_add_text(w, key, text);
}

static void print_json(const mf_session_info *i, mf_buf *out) {
    mf_json_writer w = {.out = out, .indent = 2};
    mf_json_begin(&w, '{');
    json_hex(&w, "fingerprint", i->fingerprint.word, 2);
    json_hex(&w, "rope", &i->rope, 1);
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
    if (i->damaged) mf_json_add_int(&w, "damaged_byte", (int64_t)i->damaged);
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
    if (!ok || !info.damaged) return ok ? MF_EXIT_DONE : MF_EXIT_REFUSED;
    mf_fail(&err, MF_ERR_FORMAT, "%.200s: the session is damaged at byte %" PRIu64, o->second_word, info.damaged);
    return mf_cli_fail(&err);
}
