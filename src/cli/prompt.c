#include "cli/prompt.h"

#include <stdlib.h>

#include "base/log.h"
#include "cli/terminal.h"

static bool has_chatml(const mf_tokenizer *t) {
    return mf_tokenizer_find(t, MF_STR("<|im_start|>")) >= 0 && mf_tokenizer_find(t, MF_STR("<|im_end|>")) >= 0;
}

// The template's variables are those of every prompt: what is wrong with them is said before the first.
static bool check_variables(const mf_options *o, mf_error *err) {
    mf_arena arena = {0};
    const mf_json *variables;
    bool ok = mf_prompt_variables(o, &arena, &variables, err);
    mf_arena_free(&arena);
    return ok;
}

mf_chat_template *mf_prompt_template(const mf_loaded *l, const mf_options *o, bool tools, mf_error *err) {
    if (!check_variables(o, err)) return NULL;
    if (o->chat_template) return mf_chat_template_choose(l->file, o->chat_template, err);
    bool own;
    mf_chat_template *t = mf_chat_template_of_file(l->file, NULL, tools, &own, err);
    if (!t || own) return t;
    if (has_chatml(l->tokenizer)) {
        mf_log(MF_LOG_NOTICE, "the model has no chat template: ChatML is used (--raw takes the prompt as it is)");
        return t;
    }
    mf_chat_template_free(t);
    mf_fail(
        err, MF_ERR_UNSUPPORTED,
        "%.200s has no chat template and no <|im_start|> and <|im_end|> tokens for ChatML; --raw continues the prompt as "
        "it is, --chat-template gives a template",
        l->path);
    return NULL;
}

const mf_reasoning_marks *mf_prompt_marks(const mf_loaded *l, const mf_options *o) {
    bool own;
    mf_error refused = {0}; // a template that is refused was so before, or (--raw) is not used
    mf_chat_template *t = o->chat_template ? mf_chat_template_choose(l->file, o->chat_template, &refused)
                                           : mf_chat_template_of_file(l->file, NULL, false, &own, &refused);
    const mf_reasoning_marks *marks = mf_reasoning_marks_of(t ? mf_chat_template_source(t) : (mf_str){0});
    mf_chat_template_free(t);
    return marks;
}

bool mf_prompt_variables(const mf_options *o, mf_arena *arena, const mf_json **out, mf_error *err) {
    *out = NULL;
    if (!o->template_kwargs) return true;
    *out = mf_json_parse(arena, mf_str_of(o->template_kwargs), err);
    if (!*out) return mf_fail_prefix(err, "--chat-template-kwargs");
    return (*out)->kind == MF_JSON_OBJECT || mf_fail(err, MF_ERR_ARGUMENT, "--chat-template-kwargs takes a JSON object");
}

static bool interrupted(void *arg) {
    (void)arg;
    return mf_interrupted();
}

bool mf_prompt_messages(void *source, const mf_chat_message *messages, size_t n, bool open_answer, mf_token_array *ids,
                        mf_error *err) {
    mf_prompt_source *s = source;
    mf_arena arena = {0};
    static const mf_jinja_options options = {.now = -1, .stop = interrupted};
    mf_chat_request request = {
        .generation_prompt = open_answer, .tokenizer = s->loaded->tokenizer, .rules = true, .options = &options};
    request.messages = mf_chat_messages(&arena, messages, n, err);
    mf_chat_prompt prompt = {0};
    bool ok = request.messages && mf_prompt_variables(s->options, &arena, &request.variables, err) &&
              mf_chat_template_render(s->template, &request, &prompt, err) &&
              mf_chat_prompt_encode(s->loaded->tokenizer, &prompt, ids, err);
    if (ok && prompt.note && !s->noted) mf_log(MF_LOG_NOTICE, "%s", prompt.note);
    s->noted |= ok && prompt.note;
    mf_chat_prompt_free(&prompt);
    mf_arena_free(&arena);
    return ok;
}

static bool render(const mf_loaded *l, const mf_options *o, mf_str text, mf_token_array *ids, mf_error *err) {
    mf_prompt_source source = {l, o, mf_prompt_template(l, o, false, err), false};
    mf_chat_message messages[2];
    size_t n = 0;
    if (o->system) messages[n++] = (mf_chat_message){.role = MF_STR("system"), .content = mf_str_of(o->system)};
    messages[n++] = (mf_chat_message){.role = MF_STR("user"), .content = text};
    bool ok = source.template && mf_prompt_messages(&source, messages, n, true, ids, err);
    mf_chat_template_free(source.template);
    return ok;
}

bool mf_prompt_ids(const mf_loaded *l, const mf_options *o, mf_str text, mf_token_array *ids, mf_error *err) {
    if (text.len == 0) return mf_fail(err, MF_ERR_ARGUMENT, "the prompt is empty");
    bool ok = o->raw ? mf_tokenizer_encode(l->tokenizer, text, MF_ENCODE_ADD_BOS | MF_ENCODE_PARSE_CONTROL, ids, err)
                     : render(l, o, text, ids, err);
    return ok && (ids->len > 0 || mf_fail(err, MF_ERR_ARGUMENT,
                                          o->raw ? "the prompt has no tokens: the vocabulary knows none of its bytes"
                                                 : "the chat template makes an empty text of the conversation"));
}
