// A conversation's history as JSON: {"minfer_session": 1, "model": …, "seed": …, "messages": [{"role", "content"}, …]}. Messages that
// left a full context have "left": true. "draws" is the index of the next random draw: a conversation never uses one twice.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/chat.h"

#define FORMAT_VERSION 1
#define FILE_MAX       (64u << 20)

static void write_message(mf_json_writer *w, const mf_chat_entry *e) {
    mf_json_begin(w, '{');
    mf_json_add_text(w, "role", e->role);
    mf_json_add_text(w, "content", e->content);
    if (e->left) {
        mf_json_key(w, "left");
        mf_json_bool(w, true);
    }
    mf_json_end(w, '}');
}

bool mf_chat_history(const mf_chat *c, mf_buf *text, mf_error *err) {
    mf_json_writer w = {.out = text, .indent = 2};
    mf_json_begin(&w, '{');
    mf_json_add_int(&w, "minfer_session", FORMAT_VERSION);
    mf_json_add_text(&w, "model", c->loaded.path);
    mf_json_add_int(&w, "seed", (int64_t)c->conversation.params.seed);
    mf_json_add_int(&w, "regenerated", (int64_t)c->conversation.seed_step);
    mf_json_add_int(&w, "draws", (int64_t)mf_sequence_n_draws(c->sequence));
    mf_json_key(&w, "messages");
    mf_json_begin(&w, '[');
    for (size_t i = 0; i < c->conversation.entries.len; i++) write_message(&w, &c->conversation.entries.data[i]);
    mf_json_end(&w, ']');
    mf_json_end(&w, '}');
    mf_buf_char(text, '\n');
    return !text->failed || mf_fail_memory(err, text->len, "the history");
}

bool mf_chat_save(mf_chat *c, const char *path, mf_error *err) {
    mf_buf text = {0};
    bool ok = mf_chat_history(c, &text, err) && (mf_lock_is(&c->history, path) // the session's own: its lock stays with it
                                                     ? mf_lock_write(&c->history, text.data, text.len, err)
                                                     : mf_file_write_private(path, text.data, text.len, err));
    free(text.data);
    return ok;
}

static bool is_role(mf_str role) {
    return mf_str_is(role, "system") || mf_str_is(role, "user") || mf_str_is(role, "assistant");
}

static bool read_message(mf_conversation *to, const mf_json *m, size_t i, const char *path, mf_error *err) {
    const mf_json *role = mf_json_get(m, "role"), *content = mf_json_get(m, "content"), *left = mf_json_get(m, "left");
    if (!role || role->kind != MF_JSON_STRING || !is_role(role->text))
        return mf_fail(err, MF_ERR_FORMAT, "%.200s: message %zu has no role \"system\", \"user\" or \"assistant\"", path, i);
    if (!content || content->kind != MF_JSON_STRING || memchr(content->text.ptr, 0, content->text.len))
        return mf_fail(err, MF_ERR_FORMAT, "%.200s: message %zu has no text as its content", path, i);
    if (mf_str_is(role->text, "system") && i > 0)
        return mf_fail(err, MF_ERR_FORMAT, "%.200s: message %zu is a system message behind others", path, i);
    char name[16];
    memcpy(name, role->text.ptr, role->text.len);
    name[role->text.len] = 0;
    if (!mf_conversation_add(to, name, content->text, err)) return false;
    to->entries.data[to->entries.len - 1].left = left && left->kind == MF_JSON_BOOL && left->boolean;
    return true;
}

// A count that may be missing.
static bool read_count(const mf_json *root, const char *key, int64_t *out, const char *path, mf_error *err) {
    const mf_json *count = mf_json_get(root, key);
    *out = 0;
    return !count || (mf_json_i64(count, out) && *out >= 0) ||
           mf_fail(err, MF_ERR_FORMAT, "%.200s: \"%s\" is no count", path, key);
}

static bool read_history(mf_conversation *to, const mf_json *root, int64_t *draws, const char *path, mf_error *err) {
    int64_t version = 0, step;
    const mf_json *mark = mf_json_get(root, "minfer_session"), *messages = mf_json_get(root, "messages");
    if (!mark || !mf_json_i64(mark, &version) || !messages || messages->kind != MF_JSON_ARRAY)
        return mf_fail(err, MF_ERR_FORMAT, "%.200s is no history of a conversation", path);
    if (version != FORMAT_VERSION)
        return mf_fail(err, MF_ERR_UNSUPPORTED, "%.200s has version %" PRId64 " of the history; this minfer reads %d", path,
                       version, FORMAT_VERSION);
    if (!read_count(root, "regenerated", &step, path, err) || !read_count(root, "draws", draws, path, err)) return false;
    to->seed_step = (uint64_t)step;
    size_t i = 0;
    for (const mf_json *m = messages->child; m; m = m->next)
        if (!read_message(to, m, i++, path, err)) return false;
    return true;
}

bool mf_chat_is_history(const char *path) {
    mf_buf text = {0};
    mf_arena arena = {0};
    mf_error ignored = {0};
    bool read = mf_file_read(path, FILE_MAX, &text, &ignored);
    const mf_json *root = read ? mf_json_parse(&arena, (mf_str){text.data, text.len}, &ignored) : NULL;
    bool is = root && mf_json_get(root, "minfer_session");
    mf_arena_free(&arena);
    free(text.data);
    return is;
}

bool mf_chat_load(mf_chat *c, const char *path, mf_error *err) {
    mf_buf text = {0};
    if (!mf_file_read_text(path, FILE_MAX, &text, err)) return false;
    mf_arena arena = {0};
    mf_conversation loaded;
    mf_conversation_init(&loaded, &c->conversation.params);
    mf_error parse = {0};
    int64_t draws;
    const mf_json *root = mf_json_parse(&arena, (mf_str){text.data, text.len}, &parse);
    bool ok =
        root ? read_history(&loaded, root, &draws, path, err) : mf_fail(err, parse.code, "%.200s: %.250s", path, parse.text);
    mf_arena_free(&arena);
    free(text.data);
    if (!ok) {
        mf_conversation_free(&loaded);
        return false;
    }
    mf_conversation_free(&c->conversation);
    c->conversation = loaded;
    c->conversation.changed = "another history was loaded";
    mf_sampler_set_seed(mf_sequence_sampler(c->sequence), loaded.params.seed + loaded.seed_step);
    mf_sequence_set_draws(c->sequence, (uint64_t)draws);
    return true;
}
