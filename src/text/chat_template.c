#define _GNU_SOURCE // memmem

#include "text/chat_template.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "text/chat_rules.h"
#include "text/turn_marks.h"

#define KEY "tokenizer.chat_template"

enum {
    MOST_FILE = 1 << 20
};

struct mf_chat_template {
    mf_jinja *jinja;
};

// ---- Where templates come from

mf_chat_template *mf_chat_template_new(mf_str source, mf_error *err) {
    mf_jinja *jinja = mf_jinja_new(source, err);
    if (!jinja) {
        mf_fail_prefix(err, "chat template");
        return NULL;
    }
    mf_chat_template *t = mf_alloc(1, sizeof *t);
    if (!t) {
        mf_jinja_free(jinja);
        mf_fail_memory(err, sizeof *t, "the chat template");
        return NULL;
    }
    t->jinja = jinja;
    const char *missing = mf_jinja_missing(jinja);
    if (missing) mf_log(MF_LOG_NOTICE, "chat template: %s; a conversation that reaches it will be refused", missing);
    return t;
}

mf_chat_template *mf_chat_template_chatml(mf_error *err) {
    static const char source[] = "{% for message in messages %}<|im_start|>{{ message.role }}\n"
                                 "{{ message.content }}<|im_end|>\n"
                                 "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
                                 "{{ '' }}{% endif %}";
    return mf_chat_template_new(MF_STR(source), err);
}

// The names of the file's variants, with commas between.
static void list_variants(const mf_gguf *file, mf_buf *out) {
    for (size_t i = 0; i < mf_gguf_n_values(file); i++) {
        mf_str key = mf_gguf_value_at(file, i)->key, prefix = MF_STR(KEY ".");
        if (!mf_str_starts(key, prefix)) continue;
        if (out->len) mf_buf_text(out, ", ");
        mf_buf_add(out, key.ptr + prefix.len, key.len - prefix.len);
    }
}

// The text under a key; *there is false where the file has no such key.
static bool file_text(const mf_gguf *file, const char *name, mf_str *out, bool *there, mf_error *err) {
    char key[160];
    snprintf(key, sizeof key, name ? KEY ".%.100s" : KEY, name);
    *there = mf_gguf_find(file, key) != NULL;
    return !*there || mf_gguf_get_str(file, key, out, err);
}

static mf_chat_template *no_variant(const mf_gguf *file, const char *name, mf_error *err) {
    mf_buf names = {0};
    list_variants(file, &names);
    mf_fail(err, MF_ERR_ARGUMENT, "the model has no chat template '%.60s'; its variants: %.200s", name,
            names.len ? names.data : "none");
    free(names.data);
    return NULL;
}

mf_chat_template *mf_chat_template_of_file(const mf_gguf *file, const char *name, bool tools, bool *own, mf_error *err) {
    mf_str source = {0};
    bool there = false;
    *own = true;
    if (name && strcmp(name, "default") != 0) {
        if (!file_text(file, name, &source, &there, err)) return NULL;
        return there ? mf_chat_template_new(source, err) : no_variant(file, name, err);
    }
    if (!name && tools && !file_text(file, "tool_use", &source, &there, err)) return NULL;
    if (!there && !file_text(file, NULL, &source, &there, err)) return NULL;
    if (!there && !file_text(file, "default", &source, &there, err)) return NULL;
    *own = there;
    return there ? mf_chat_template_new(source, err) : mf_chat_template_chatml(err);
}

mf_chat_template *mf_chat_template_choose(const mf_gguf *file, const char *given, mf_error *err) {
    bool own, there = false;
    mf_str source;
    if (strstr(given, "{%") || strstr(given, "{{")) return mf_chat_template_new(mf_str_of(given), err);
    if (strcmp(given, "chatml") == 0) return mf_chat_template_chatml(err);
    if (file && strcmp(given, "default") != 0 && !file_text(file, given, &source, &there, err)) return NULL;
    if (there || (file && strcmp(given, "default") == 0)) return mf_chat_template_of_file(file, given, false, &own, err);
    if (access(given, F_OK) != 0 && file) return no_variant(file, given, err);
    mf_buf text = {0};
    mf_chat_template *t = NULL;
    if (mf_file_read_text(given, MOST_FILE, &text, err)) t = mf_chat_template_new((mf_str){text.data, text.len}, err);
    free(text.data);
    return t;
}

void mf_chat_template_free(mf_chat_template *t) {
    if (!t) return;
    mf_jinja_free(t->jinja);
    free(t);
}

mf_str mf_chat_template_source(const mf_chat_template *t) { return mf_jinja_source(t->jinja); }

// ---- Rendering

static mf_json *text_node(mf_arena *arena, mf_str text) {
    mf_json *node = mf_arena_alloc(arena, 1, sizeof *node);
    if (node) *node = (mf_json){.kind = MF_JSON_STRING, .text = text};
    return node;
}

typedef mf_array(mf_jinja_var) var_list;

static bool add_token(var_list *vars, mf_arena *arena, const char *name, const char *given, const mf_tokenizer *t,
                      int32_t id) {
    if (!given && (!t || id < 0)) return true;
    mf_json *node = text_node(arena, given ? mf_str_of(given) : mf_tokenizer_text(t, id));
    return node && mf_array_push(vars, ((mf_jinja_var){mf_str_of(name), node, false}));
}

static bool add_tokens(var_list *vars, mf_arena *arena, const mf_chat_request *r) {
    const mf_tokenizer *t = r->tokenizer;
    return add_token(vars, arena, "bos_token", r->bos, t, t ? mf_tokenizer_bos(t) : -1) &&
           add_token(vars, arena, "eos_token", r->eos, t, t ? mf_tokenizer_eos(t) : -1) &&
           add_token(vars, arena, "unk_token", NULL, t, t ? mf_tokenizer_unk(t) : -1) &&
           add_token(vars, arena, "pad_token", NULL, t, t ? mf_tokenizer_pad(t) : -1);
}

// Everything a template can see; later ones of a name beat earlier ones.
static bool add_variables(var_list *vars, mf_arena *arena, const mf_chat_request *r, const mf_json *messages) {
    static const mf_json none = {.kind = MF_JSON_NULL}, yes = {.kind = MF_JSON_BOOL, .boolean = true},
                         no = {.kind = MF_JSON_BOOL};
    bool ok =
        add_tokens(vars, arena, r) && mf_array_push(vars, ((mf_jinja_var){MF_STR("messages"), messages, true})) &&
        mf_array_push(vars, ((mf_jinja_var){MF_STR("tools"), r->tools ? r->tools : &none, true})) &&
        mf_array_push(vars, ((mf_jinja_var){MF_STR("documents"), r->documents ? r->documents : &none, true})) &&
        mf_array_push(vars, ((mf_jinja_var){MF_STR("add_generation_prompt"), r->generation_prompt ? &yes : &no, false}));
    for (const mf_json *v = r->variables ? r->variables->child : NULL; ok && v; v = v->next)
        ok = mf_array_push(vars, ((mf_jinja_var){v->key, v, true}));
    return ok;
}

static bool render_once(const mf_chat_template *t, const mf_chat_request *r, mf_arena *arena, const mf_json *messages,
                        mf_jinja_output *out, mf_error *err) {
    var_list vars = {0};
    bool ok = add_variables(&vars, arena, r, messages) ? mf_jinja_render(t->jinja, vars.data, vars.len, r->options, out, err)
                                                       : mf_fail_memory(err, 0, "the conversation");
    free(vars.data);
    return ok;
}

static bool check_request(const mf_chat_request *r, mf_error *err) {
    if (!r->messages || r->messages->kind != MF_JSON_ARRAY)
        return mf_fail(err, MF_ERR_ARGUMENT, "the messages are not a list");
    size_t i = 1;
    for (const mf_json *m = r->messages->child; m; m = m->next, i++)
        if (m->kind != MF_JSON_OBJECT) return mf_fail(err, MF_ERR_ARGUMENT, "message %zu is not an object", i);
    if (r->variables && r->variables->kind != MF_JSON_OBJECT)
        return mf_fail(err, MF_ERR_ARGUMENT, "the template's variables are not an object");
    return true;
}

// The messages as the rules have them, then, where the template raises, with late system messages merged.
static bool render_by_rules(const mf_chat_template *t, const mf_chat_request *r, mf_arena *arena, mf_chat_prompt *out,
                            mf_error *err) {
    bool developer = !memmem(mf_chat_template_source(t).ptr, mf_chat_template_source(t).len, "developer", 9);
    bool changed = false;
    mf_json *messages = mf_chat_rules_apply(arena, r->messages, developer, &changed);
    if (!messages) return mf_fail_memory(err, 0, "the conversation");
    if (changed) out->note = "the template does not know the role developer: it is given as system";
    if (render_once(t, r, arena, messages, &out->output, err)) return true;
    if (!out->output.raised || !mf_chat_rules_late_system(messages)) return false;
    mf_json *merged = mf_chat_rules_merge(arena, messages);
    if (!merged) return false; // what the template said stays
    mf_jinja_output again;
    mf_error second = {0};
    if (!render_once(t, r, arena, merged, &again, &second)) {
        mf_jinja_output_free(&again);
        return false;
    }
    mf_jinja_output_free(&out->output);
    out->output = again;
    out->note = "the template refuses a system message that is not the first: its text was put into the first one";
    if (err) *err = (mf_error){0};
    return true;
}

static bool make_spans(mf_chat_prompt *out, mf_error *err) {
    mf_str text = {out->output.text.data ? out->output.text.data : "", out->output.text.len};
    size_t at = 0;
    for (size_t i = 0; i <= out->output.marks.len; i++) {
        bool last = i == out->output.marks.len;
        size_t from = last ? text.len : out->output.marks.data[i].from, to = last ? text.len : out->output.marks.data[i].to;
        bool ok = (at == from || mf_array_push(&out->spans, ((mf_text_span){{text.ptr + at, from - at}, true}))) &&
                  (from == to || mf_array_push(&out->spans, ((mf_text_span){{text.ptr + from, to - from}, false})));
        if (!ok) return mf_fail_memory(err, text.len, "the rendered conversation");
        at = to;
    }
    return true;
}

bool mf_chat_template_render(const mf_chat_template *t, const mf_chat_request *request, mf_chat_prompt *out, mf_error *err) {
    mf_error own = {0};
    mf_arena arena = {0};
    *out = (mf_chat_prompt){.source = t};
    if (!err) err = &own;
    bool ok = check_request(request, err) &&
              (request->rules ? render_by_rules(t, request, &arena, out, err)
                              : render_once(t, request, &arena, request->messages, &out->output, err)) &&
              make_spans(out, err);
    mf_arena_free(&arena);
    return ok || mf_fail_prefix(err, "chat template");
}

void mf_chat_prompt_free(mf_chat_prompt *prompt) {
    mf_jinja_output_free(&prompt->output);
    free(prompt->spans.data);
    *prompt = (mf_chat_prompt){0};
}

// Whether one of the ids from `first` on may mark a turn.
static bool may_need_guard(const mf_tokenizer *t, const mf_chat_prompt *prompt, const mf_token_array *ids, size_t first) {
    for (size_t i = first; i < ids->len && prompt->source; i++)
        if (mf_may_mark_turns(t, ids->data[i])) return true;
    return false;
}

static bool encode(const mf_tokenizer *t, const mf_chat_prompt *prompt, unsigned flags, mf_token_array *ids, mf_error *err) {
    size_t before = ids->len;
    if (!mf_tokenizer_encode_spans(t, prompt->spans.data, prompt->spans.len, flags, ids, err)) return false;
    if (!may_need_guard(t, prompt, ids, before)) return true;
    mf_token_array marks = {0};
    ids->len = before;
    bool ok = mf_turn_marks(t, prompt, &marks, err) &&
              mf_tokenizer_encode_guarded(t, prompt->spans.data, prompt->spans.len, &marks, flags, ids, err);
    free(marks.data);
    return ok;
}

bool mf_chat_prompt_encode(const mf_tokenizer *t, const mf_chat_prompt *prompt, mf_token_array *ids, mf_error *err) {
    return encode(t, prompt, MF_ENCODE_ADD_BOS, ids, err);
}

bool mf_chat_text_encode(const mf_tokenizer *t, const mf_chat_template *source, mf_str text, mf_token_array *ids,
                         mf_error *err) {
    mf_chat_prompt prompt = {.source = source};
    bool ok = mf_array_push(&prompt.spans, ((mf_text_span){text, false})) ? encode(t, &prompt, 0, ids, err)
                                                                          : mf_fail_memory(err, 0, "the text");
    free(prompt.spans.data);
    return ok;
}
