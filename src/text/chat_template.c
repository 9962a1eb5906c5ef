#include "text/chat_template.h"

static bool add(mf_chat_prompt *out, mf_str text, bool from_message) {
    if (text.len == 0) return true;
    return mf_array_push(out, ((mf_text_span){text, !from_message}));
}

static bool render_chatml(const mf_chat_template *self, const mf_chat_message *messages, size_t n, bool generation_prompt,
                          mf_chat_prompt *out, mf_error *err) {
    for (size_t i = 0; i < n; i++) {
        const mf_chat_message *m = &messages[i];
        if (m->role.len == 0)
            return mf_fail(err, MF_ERR_ARGUMENT, "%s template: message %zu has no role", self->name, i + 1);
        bool ok = add(out, MF_STR("<|im_start|>"), false) && add(out, m->role, true) && add(out, MF_STR("\n"), false) &&
                  add(out, m->content, true) && add(out, MF_STR("<|im_end|>\n"), false);
        if (!ok) return mf_fail_memory(err, n * 5 * sizeof(mf_text_span), "the rendered conversation");
    }
    if (generation_prompt && !add(out, MF_STR("<|im_start|>assistant\n"), false))
        return mf_fail_memory(err, sizeof(mf_text_span), "the rendered conversation");
    return true;
}

static const mf_chat_template chatml = {"chatml", render_chatml};

const mf_chat_template *mf_chat_template_chatml(void) { return &chatml; }
