#include "text/chat_rules.h"

#include <stdlib.h>

#include "text/chat_template.h"

static const mf_str system_role = {"system", 6};

static mf_json *copy_node(mf_arena *arena, const mf_json *node) {
    mf_json *copy = mf_arena_alloc(arena, 1, sizeof *copy);
    if (!copy) return NULL;
    *copy = *node;
    copy->next = NULL;
    return copy;
}

// An array or object without its members.
static mf_json *empty_copy(mf_arena *arena, const mf_json *node) {
    mf_json *copy = copy_node(arena, node);
    if (!copy) return NULL;
    copy->child = NULL;
    copy->count = 0;
    return copy;
}

static bool add_member(mf_json *parent, mf_json **last, mf_json *member) {
    if (!member) return false;
    if (*last)
        (*last)->next = member;
    else
        parent->child = member;
    *last = member;
    parent->count++;
    return true;
}

static bool has_role(const mf_json *message, const char *role) {
    const mf_json *value = mf_json_get(message, "role");
    return value && value->kind == MF_JSON_STRING && mf_str_is(value->text, role);
}

static const mf_json *find_reasoning(const mf_json *message) {
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const mf_json *value = mf_json_get(message, names[i]);
        if (value && value->kind != MF_JSON_NULL) return value;
    }
    return NULL;
}

static bool add_named(mf_arena *arena, mf_json *message, mf_json **last, const mf_json *value, const char *name) {
    mf_json *copy = copy_node(arena, value);
    if (copy) copy->key = mf_str_of(name);
    return add_member(message, last, copy);
}

static mf_json *rule_message(mf_arena *arena, const mf_json *message, bool developer, bool *changed) {
    mf_json *copy = empty_copy(arena, message), *last = NULL;
    const mf_json *reasoning = find_reasoning(message);
    if (!copy) return NULL;
    for (const mf_json *m = message->child; m; m = m->next) {
        if (m->kind == MF_JSON_NULL || (reasoning && mf_str_is(m->key, "reasoning_content"))) continue;
        mf_json *member = copy_node(arena, m);
        if (!add_member(copy, &last, member)) return NULL;
        bool renamed =
            developer && mf_str_is(m->key, "role") && m->kind == MF_JSON_STRING && mf_str_is(m->text, "developer");
        if (renamed) member->text = system_role;
        *changed = *changed || renamed;
    }
    if (!reasoning) return copy;
    const mf_json *thinking = mf_json_get(message, "thinking");
    if ((!thinking || thinking->kind == MF_JSON_NULL) && !add_named(arena, copy, &last, reasoning, "thinking")) return NULL;
    return add_named(arena, copy, &last, reasoning, "reasoning_content") ? copy : NULL;
}

mf_json *mf_chat_rules_apply(mf_arena *arena, const mf_json *messages, bool developer, bool *changed) {
    mf_json *copy = empty_copy(arena, messages), *last = NULL;
    for (const mf_json *m = messages->child; copy && m; m = m->next)
        if (!add_member(copy, &last, rule_message(arena, m, developer, changed))) return NULL;
    return copy;
}

bool mf_chat_rules_late_system(const mf_json *messages) {
    for (const mf_json *m = messages->child; m; m = m->next)
        if (m != messages->child && has_role(m, "system")) return true;
    return false;
}

static bool join_systems(const mf_json *messages, mf_buf *out) {
    for (const mf_json *m = messages->child; m; m = m->next) {
        if (!has_role(m, "system")) continue;
        const mf_json *content = mf_json_get(m, "content");
        if (!content || content->kind != MF_JSON_STRING) return false;
        if (out->len && content->text.len) mf_buf_text(out, "\n\n");
        mf_buf_str(out, content->text);
    }
    return !out->failed;
}

mf_json *mf_chat_rules_merge(mf_arena *arena, const mf_json *messages) {
    mf_buf text = {0};
    bool ok = join_systems(messages, &text);
    char *kept = ok ? mf_arena_copy(arena, text.data, text.len) : NULL;
    size_t len = text.len;
    free(text.data);
    mf_json *copy = kept ? empty_copy(arena, messages) : NULL, *last = NULL;
    const mf_chat_message first = {.role = system_role, .content = {kept, len}};
    mf_json *list = copy ? mf_chat_messages(arena, &first, 1, NULL) : NULL;
    if (!list || !add_member(copy, &last, list->child)) return NULL;
    for (const mf_json *m = messages->child; m; m = m->next)
        if (!has_role(m, "system") && !add_member(copy, &last, copy_node(arena, m))) return NULL;
    return copy;
}

// ---- Plain messages

static mf_json *text_member(mf_arena *arena, const char *key, mf_str text) {
    mf_json *node = mf_arena_alloc(arena, 1, sizeof *node);
    if (node) *node = (mf_json){.kind = MF_JSON_STRING, .key = mf_str_of(key), .text = text.ptr ? text : MF_STR("")};
    return node;
}

static mf_json *message_of(mf_arena *arena, const mf_chat_message *m, mf_error *err) {
    static const mf_json object = {.kind = MF_JSON_OBJECT};
    if (m->json.len) return mf_json_parse(arena, m->json, err);
    mf_json *message = empty_copy(arena, &object), *member = NULL;
    if (message && add_member(message, &member, text_member(arena, "role", m->role)) &&
        add_member(message, &member, text_member(arena, "content", m->content)))
        return message;
    return mf_fail_memory(err, 3 * sizeof(mf_json), "the conversation"), NULL;
}

mf_json *mf_chat_messages(mf_arena *arena, const mf_chat_message *messages, size_t n, mf_error *err) {
    static const mf_json array = {.kind = MF_JSON_ARRAY};
    mf_json *list = empty_copy(arena, &array), *last = NULL;
    if (!list) return mf_fail_memory(err, sizeof *list, "the conversation"), NULL;
    for (size_t i = 0; i < n; i++) {
        if (!messages[i].json.len && messages[i].role.len == 0)
            return mf_fail(err, MF_ERR_ARGUMENT, "message %zu has no role", i + 1), NULL;
        if (!add_member(list, &last, message_of(arena, &messages[i], err))) return NULL;
    }
    return list;
}
