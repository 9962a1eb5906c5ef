#define _GNU_SOURCE // memmem

#include "text/turn_marks.h"

#include <ctype.h>
#include <stdlib.h>

bool mf_may_mark_turns(const mf_tokenizer *t, int32_t id) {
    if (mf_tokenizer_type(t, id) != MF_TOKEN_USER_DEFINED) return false;
    mf_str text = mf_tokenizer_text(t, id);
    for (size_t i = 0; i < text.len && text.len > 1; i++)
        if (isascii(text.ptr[i]) && ispunct(text.ptr[i])) return true;
    return false;
}

// The two texts of a pair like <x> and </x>, [X] and [/X], of which `text` is one. False: it is none, or the other is no token. Where
// memory is out one of them has failed.
static bool pair_of(const mf_tokenizer *t, mf_str text, mf_buf *open, mf_buf *close) {
    open->len = close->len = 0;
    if (text.len < 3 || (text.ptr[0] != '<' && text.ptr[0] != '[')) return false;
    bool closes = text.ptr[1] == '/';
    mf_str name = {text.ptr + 1 + closes, text.len - 1 - closes};
    mf_buf_char(open, text.ptr[0]);
    mf_buf_str(open, name);
    mf_buf_char(close, text.ptr[0]);
    mf_buf_char(close, '/');
    mf_buf_str(close, name);
    const mf_buf *other = closes ? open : close;
    return open->failed || close->failed || mf_tokenizer_find(t, (mf_str){other->data, other->len}) >= 0;
}

// Whether text of a message stands between the two somewhere.
static bool encloses(const mf_chat_prompt *p, const mf_buf *open, const mf_buf *close) {
    mf_str text = {p->output.text.data, p->output.text.len};
    for (size_t at = 0; at < text.len;) {
        const char *from = memmem(text.ptr + at, text.len - at, open->data, open->len);
        if (!from) return false;
        at = (size_t)(from - text.ptr) + open->len;
        const char *to = memmem(text.ptr + at, text.len - at, close->data, close->len);
        if (!to) return false;
        for (size_t i = 0; i < p->spans.len; i++) {
            const mf_text_span *s = &p->spans.data[i];
            if (!s->parse_control && s->text.ptr >= from && s->text.ptr < to) return true;
        }
    }
    return false;
}

static bool is_turn_mark(const mf_tokenizer *t, const mf_chat_prompt *p, int32_t id, bool *is, mf_error *err) {
    *is = mf_may_mark_turns(t, id);
    if (!*is) return true;
    mf_buf open = {0}, close = {0};
    bool pair = pair_of(t, mf_tokenizer_text(t, id), &open, &close), ok = !open.failed && !close.failed;
    *is = ok && (!pair || encloses(p, &open, &close));
    free(open.data);
    free(close.data);
    return ok || mf_fail_memory(err, 0, "the marks of turns");
}

static bool has(const mf_token_array *ids, int32_t id) {
    for (size_t i = 0; i < ids->len; i++)
        if (ids->data[i] == id) return true;
    return false;
}

// The marks in what the template itself wrote.
static bool collect(const mf_tokenizer *t, const mf_chat_prompt *p, mf_token_array *marks, mf_error *err) {
    mf_token_array ids = {0};
    bool ok = true;
    for (size_t i = 0; i < p->spans.len && ok; i++)
        if (p->spans.data[i].parse_control)
            ok = mf_tokenizer_encode_spans(t, &p->spans.data[i], 1, MF_ENCODE_CONTINUED, &ids, err);
    for (size_t i = 0; i < ids.len && ok; i++) {
        bool is = false;
        ok = has(marks, ids.data[i]) || is_turn_mark(t, p, ids.data[i], &is, err);
        if (is) ok = mf_array_push(marks, ids.data[i]) || mf_fail_memory(err, sizeof(int32_t), "the marks of turns");
    }
    free(ids.data);
    return ok;
}

// Renders some turns whose texts are no tokens of interest.
static bool render_turns(const mf_tokenizer *t, const mf_chat_template *template, bool system, mf_chat_prompt *out,
                         mf_error *err) {
    static const mf_chat_message turns[] = {{.role = MF_STR("system"), .content = MF_STR("a")},
                                            {.role = MF_STR("user"), .content = MF_STR("b")},
                                            {.role = MF_STR("assistant"), .content = MF_STR("c")},
                                            {.role = MF_STR("user"), .content = MF_STR("d")}};
    mf_arena arena = {0};
    mf_chat_request request = {.tokenizer = t, .rules = true};
    request.messages = mf_chat_messages(&arena, turns + !system, 4 - !system, err);
    bool ok = request.messages && mf_chat_template_render(template, &request, out, err);
    mf_arena_free(&arena);
    return ok;
}

bool mf_turn_marks(const mf_tokenizer *t, const mf_chat_prompt *prompt, mf_token_array *marks, mf_error *err) {
    for (int system = 1; system >= 0; system--) {
        mf_chat_prompt turns = {0};
        mf_error refusal = {0};
        bool rendered = render_turns(t, prompt->source, system, &turns, &refusal);
        bool ok = rendered && collect(t, &turns, marks, err);
        mf_chat_prompt_free(&turns);
        if (rendered) return ok;
        if (refusal.code == MF_ERR_MEMORY) return mf_fail(err, MF_ERR_MEMORY, "%s", refusal.text);
    }
    return collect(t, prompt, marks, err);
}
