#define _GNU_SOURCE // memmem

#include "cli/prompt.h"

#include <stdlib.h>

#include "base/log.h"
#include "text/chat_template.h"

static bool has_chatml(const mf_tokenizer *t) {
    return mf_tokenizer_find(t, MF_STR("<|im_start|>")) >= 0 && mf_tokenizer_find(t, MF_STR("<|im_end|>")) >= 0;
}

// A file's own template that is something else than ChatML is worth a word.
static bool note_template(const mf_loaded *l, mf_error *err) {
    mf_str own = {0};
    if (!mf_gguf_get_str(l->file, "tokenizer.chat_template", &own, err)) return false;
    if (own.len && !memmem(own.ptr, own.len, "<|im_start|>", 12))
        mf_log(MF_LOG_NOTICE,
               "the model's own chat template is not ChatML; ChatML is used (--raw takes the prompt as it is)");
    return true;
}

static bool render(const mf_loaded *l, const mf_options *o, mf_str text, mf_token_array *ids, mf_error *err) {
    if (!has_chatml(l->tokenizer))
        return mf_fail(
            err, MF_ERR_UNSUPPORTED,
            "%.200s has no <|im_start|> and <|im_end|> tokens, and ChatML is the only chat template of this version; "
            "--raw continues the prompt as it is",
            l->path);
    if (!note_template(l, err)) return false;
    mf_chat_message messages[2];
    size_t n = 0;
    if (o->system) messages[n++] = (mf_chat_message){MF_STR("system"), mf_str_of(o->system)};
    messages[n++] = (mf_chat_message){MF_STR("user"), text};
    const mf_chat_template *template = mf_chat_template_chatml();
    mf_chat_prompt prompt = {0};
    bool ok = template->render(template, messages, n, true, &prompt, err) &&
              mf_tokenizer_encode_spans(l->tokenizer, prompt.data, prompt.len, 0, ids, err);
    free(prompt.data);
    return ok;
}

bool mf_prompt_ids(const mf_loaded *l, const mf_options *o, mf_str text, mf_token_array *ids, mf_error *err) {
    if (text.len == 0) return mf_fail(err, MF_ERR_ARGUMENT, "the prompt is empty");
    if (!o->raw) return render(l, o, text, ids, err);
    if (!mf_tokenizer_encode(l->tokenizer, text, MF_ENCODE_ADD_SPECIAL | MF_ENCODE_PARSE_CONTROL, ids, err)) return false;
    return ids->len > 0 || mf_fail(err, MF_ERR_ARGUMENT, "the prompt has no tokens: the vocabulary knows none of its bytes");
}
