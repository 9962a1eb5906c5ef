#include "chat/conversation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "chat/prompt.h"

void mf_conversation_init(mf_conversation *c, const mf_conversation_params *params) {
    *c = (mf_conversation){.params = *params, .answer_start = -1};
}

static void free_entry(mf_chat_entry *e) {
    free(e->role);
    free(e->content);
    free(e->json);
    *e = (mf_chat_entry){0};
}

static void drop_entries(mf_conversation *c, size_t n) {
    while (c->entries.len > n) free_entry(&c->entries.data[--c->entries.len]);
}

void mf_conversation_free(mf_conversation *c) {
    drop_entries(c, 0);
    free(c->entries.data);
    *c = (mf_conversation){0};
}

static char *copy_utf8(mf_str text) {
    mf_buf out = {0};
    for (size_t at = 0; at < text.len;) {
        uint32_t cp;
        int n = mf_utf8_decode(text.ptr + at, text.len - at, &cp);
        bool good = n > 0 && cp != 0;
        if (good)
            mf_buf_add(&out, text.ptr + at, (size_t)n);
        else
            mf_buf_text(&out, "\xEF\xBF\xBD");
        at += good ? (size_t)n : 1;
    }
    if (!out.failed && out.data) return out.data;
    free(out.data);
    return out.failed ? NULL : mf_copy_text("", 0);
}

static bool make_entry(mf_chat_entry *e, const char *role, mf_str content, mf_error *err) {
    *e = (mf_chat_entry){mf_copy_text(role, strlen(role)), copy_utf8(content), false, NULL};
    if (e->role && e->content) return true;
    free_entry(e);
    return mf_fail_memory(err, content.len, "a message");
}

// Takes the entry over, also on failure.
static bool push_entry(mf_conversation *c, mf_chat_entry e, mf_error *err) {
    if (mf_array_push(&c->entries, e)) return true;
    free_entry(&e);
    return mf_fail_memory(err, sizeof e, "a message");
}

bool mf_conversation_add(mf_conversation *c, const char *role, mf_str content, mf_error *err) {
    mf_chat_entry e;
    return make_entry(&e, role, content, err) && push_entry(c, e, err);
}

static const mf_json *text_in(const mf_json *message, const char *key) {
    const mf_json *value = mf_json_get(message, key);
    return value && value->kind == MF_JSON_STRING && !memchr(value->text.ptr, 0, value->text.len) ? value : NULL;
}

static bool entry_of_json(mf_chat_entry *e, const mf_json *message, mf_str source, mf_error *err) {
    const mf_json *role = text_in(message, "role"), *content = text_in(message, "content"),
                  *left = mf_json_get(message, "left");
    if (message->kind != MF_JSON_OBJECT || !role || role->text.len == 0)
        return mf_fail(err, MF_ERR_ARGUMENT, "a message is a JSON object with a role");
    mf_buf name = {0};
    mf_buf_str(&name, role->text);
    bool ok = !name.failed || mf_fail_memory(err, role->text.len, "a message");
    ok = ok && make_entry(e, name.data, content ? content->text : MF_STR(""), err);
    free(name.data);
    if (ok) e->left = left && left->kind == MF_JSON_BOOL && left->boolean;
    if (!ok || (content && message->count == (left ? 3 : 2))) return ok;
    while (source.len && strchr(" \t\r\n", source.ptr[source.len - 1])) source.len--;
    e->json = mf_copy_text(source.ptr + message->offset, source.len - message->offset);
    if (e->json) return true;
    free_entry(e);
    return mf_fail_memory(err, source.len, "a message");
}

bool mf_conversation_add_json(mf_conversation *c, mf_str message, mf_error *err) {
    mf_arena arena = {0};
    mf_chat_entry e;
    const mf_json *root = mf_json_parse(&arena, message, err);
    bool ok = root ? entry_of_json(&e, root, message, err) : mf_fail_prefix(err, "a message");
    mf_arena_free(&arena);
    return ok && push_entry(c, e, err);
}

bool mf_conversation_amend(mf_conversation *c, mf_str message, mf_error *err) {
    size_t n = c->entries.len;
    if (n == 0) return mf_fail(err, MF_ERR_ARGUMENT, "there is no message to amend");
    if (!mf_conversation_add_json(c, message, err)) return false;
    free_entry(&c->entries.data[n - 1]);
    c->entries.data[n - 1] = c->entries.data[n];
    c->entries.len = n;
    c->changed = "a message was amended";
    return true;
}

static bool is_role(const mf_chat_entry *e, const char *role) { return strcmp(e->role, role) == 0; }

static bool has_system(const mf_conversation *c) { return c->entries.len > 0 && is_role(&c->entries.data[0], "system"); }

const char *mf_conversation_system(const mf_conversation *c) { return has_system(c) ? c->entries.data[0].content : NULL; }

bool mf_conversation_set_system(mf_conversation *c, mf_str text, mf_error *err) {
    mf_chat_entry e = {0};
    bool given = text.ptr != NULL;
    if (given && (!make_entry(&e, "system", text, err) || !mf_array_reserve(&c->entries, c->entries.len + 1)))
        return free_entry(&e), mf_fail_memory(err, text.len, "the system message");
    if (has_system(c)) {
        free_entry(&c->entries.data[0]);
        memmove(c->entries.data, c->entries.data + 1, --c->entries.len * sizeof e);
    }
    if (given) {
        memmove(c->entries.data + 1, c->entries.data, c->entries.len++ * sizeof e);
        c->entries.data[0] = e;
    }
    c->changed = "the system message changed";
    return true;
}

bool mf_conversation_ask(mf_conversation *c, mf_str text, mf_error *err) {
    size_t before = c->entries.len;
    if (!mf_conversation_add(c, "user", text, err)) return false;
    if (mf_conversation_begin(c, err)) return true;
    drop_entries(c, before);
    return false;
}

bool mf_conversation_begin(mf_conversation *c, mf_error *err) {
    if (c->entries.len == 0 || is_role(&c->entries.data[c->entries.len - 1], "assistant"))
        return mf_fail(err, MF_ERR_ARGUMENT, "there is no message to answer");
    if (!mf_prompt_prepare(c, err)) return false;
    c->answer_start = mf_sequence_n_tokens(c->params.sequence);
    return true;
}

bool mf_conversation_answered(mf_conversation *c, mf_str text, mf_error *err) {
    mf_sequence_stop(c->params.sequence);
    return mf_conversation_add(c, "assistant", text, err);
}

static size_t last_with_role(const mf_conversation *c, const char *role) {
    size_t i = c->entries.len;
    while (i > 0 && (c->entries.data[i - 1].left || !is_role(&c->entries.data[i - 1], role))) i--;
    return i; // one behind it; 0: none
}

// mf_prompt_prepare of the first n messages.
static bool prepare_first(mf_conversation *c, size_t n, mf_error *err) {
    size_t all = c->entries.len;
    c->entries.len = n;
    bool ok = mf_prompt_prepare(c, err);
    c->entries.len = all;
    return ok;
}

bool mf_conversation_regenerate(mf_conversation *c, mf_error *err) {
    mf_sequence *s = c->params.sequence;
    size_t question = c->entries.len; // what was answered, with all before it: also a tool's result
    while (question > 0 && is_role(&c->entries.data[question - 1], "assistant")) question--;
    if (question == c->entries.len || last_with_role(c, "user") == 0)
        return mf_fail(err, MF_ERR_ARGUMENT, "there is no answer to generate again");
    if (c->answer_start < 1 || c->answer_start > mf_sequence_n_tokens(s)) { // the history came from a file
        if (!prepare_first(c, question, err)) return false;
    } else {
        // The last row of the prompt is evaluated again: its logits are what the answer starts from.
        int32_t last = mf_sequence_tokens(s)[c->answer_start - 1];
        mf_sequence_truncate(s, c->answer_start - 1);
        if (!mf_sequence_append(s, &last, 1, err)) return false;
        c->cost = (mf_turn_cost){.n_prompt = c->answer_start, .n_evaluated = c->answer_start - mf_sequence_n_evaluated(s)};
    }
    drop_entries(c, question);
    c->answer_start = mf_sequence_n_tokens(s);
    mf_sampler_set_seed(mf_sequence_sampler(s), c->params.seed + ++c->seed_step);
    return true;
}

bool mf_conversation_undo(mf_conversation *c, mf_error *err) {
    size_t question = last_with_role(c, "user");
    if (question == 0) return mf_fail(err, MF_ERR_ARGUMENT, "there is nothing to take back");
    drop_entries(c, question - 1);
    c->cost = (mf_turn_cost){0};
    c->changed = "a turn was taken back";
    mf_sequence_stop(c->params.sequence);
    c->answer_start = -1; // the next turn finds by itself how far the cells agree
    return true;
}

// Puts the last message, which was just added, in the place of the last question before it and of what followed that.
static bool replace_question(mf_conversation *c, size_t question, mf_error *err) {
    size_t n = c->entries.len - 1;
    mf_chat_entry *at = c->entries.data + question - 1, asked = c->entries.data[n];
    size_t behind = (n + 1 - question) * sizeof asked; // the old question and what followed it
    memmove(at + 1, at, behind);
    *at = asked;
    mf_sequence_stop(c->params.sequence);
    const char *changed = c->changed;
    c->changed = "a question was edited";
    bool ok = prepare_first(c, question, err);
    if (ok) {
        c->answer_start = mf_sequence_n_tokens(c->params.sequence);
    } else {
        c->changed = changed;
        memmove(at, at + 1, behind);
        c->entries.data[n] = asked;
    }
    drop_entries(c, ok ? question : n);
    return ok;
}

static size_t question_to_edit(const mf_conversation *c, mf_error *err) {
    size_t question = last_with_role(c, "user");
    if (question == 0) mf_fail(err, MF_ERR_ARGUMENT, "there is no question to edit");
    return question;
}

bool mf_conversation_edit(mf_conversation *c, mf_str text, mf_error *err) {
    size_t question = question_to_edit(c, err);
    return question && mf_conversation_add(c, "user", text, err) && replace_question(c, question, err);
}

bool mf_conversation_edit_json(mf_conversation *c, mf_str message, mf_error *err) {
    size_t question = question_to_edit(c, err);
    if (!question || !mf_conversation_add_json(c, message, err)) return false;
    if (is_role(&c->entries.data[c->entries.len - 1], "user")) return replace_question(c, question, err);
    drop_entries(c, c->entries.len - 1);
    return mf_fail(err, MF_ERR_ARGUMENT, "a question is a message of the role user");
}

const char *mf_conversation_last_question(const mf_conversation *c) {
    size_t i = last_with_role(c, "user");
    return i ? c->entries.data[i - 1].content : NULL;
}

void mf_conversation_clear(mf_conversation *c) {
    drop_entries(c, has_system(c) ? 1 : 0);
    c->cost = (mf_turn_cost){0};
    c->changed = "the conversation was cleared";
    mf_sequence_stop(c->params.sequence);
    c->answer_start = -1;
}

int32_t mf_conversation_n_tokens(const mf_conversation *c) {
    int32_t held = mf_sequence_n_tokens(c->params.sequence);
    bool empty = true;
    for (size_t i = 0; i < c->entries.len && empty; i++) empty = c->entries.data[i].left;
    if (empty) return 0;
    return held > 0 && !c->changed ? held : mf_prompt_count(c);
}
