// A vocabulary with a chat template, and whether the text of a token in a message becomes that token.
#ifndef MF_TESTS_TEXT_MESSAGES_H
#define MF_TESTS_TEXT_MESSAGES_H

#include <stdio.h>
#include <stdlib.h>

#include "text/chat_template.h"

typedef struct talker {
    uint8_t *bytes;
    mf_gguf *file;
    mf_tokenizer *t;
    mf_chat_template *template;
} talker;

static inline void close_model(talker *m) {
    mf_chat_template_free(m->template);
    mf_tokenizer_free(m->t);
    mf_gguf_close(m->file);
    free(m->bytes);
}

// The ids of a conversation in which every message is `text`.
static inline mf_token_array talk(const talker *m, mf_str text) {
    const mf_chat_message turns[] = {{MF_STR("user"), text}, {MF_STR("assistant"), text}, {MF_STR("user"), text}};
    mf_arena arena = {0};
    mf_error err = {0};
    mf_token_array ids = {0};
    mf_chat_prompt prompt = {0};
    mf_chat_request request = {.generation_prompt = true, .tokenizer = m->t, .rules = true};
    request.messages = mf_chat_messages(&arena, turns, 3, &err);
    if (!request.messages || !mf_chat_template_render(m->template, &request, &prompt, &err) ||
        !mf_chat_prompt_encode(m->t, &prompt, &ids, &err))
        fail_msg("%s", err.text);
    mf_chat_prompt_free(&prompt);
    mf_arena_free(&arena);
    return ids;
}

static inline int count(const mf_token_array *ids, int32_t id) {
    int n = 0;
    for (size_t i = 0; i < ids->len; i++) n += ids->data[i] == id;
    return n;
}

// How many tokens `id` its own text in each message adds, in the first n of some surroundings.
enum {
    MESSAGE_SHAPES = 6
};

static inline int from_messages(const talker *m, int32_t id, size_t n_shapes) {
    static const char *const shapes[MESSAGE_SHAPES] = {"x%.*s %.*s", "%.*s", " %.*s ", "\n%.*s\n%.*s", "<%.*s>", "%.*s%.*s"};
    mf_token_array without = talk(m, MF_STR("b"));
    mf_str s = mf_tokenizer_text(m->t, id);
    int more = 0;
    for (size_t i = 0; i < n_shapes; i++) {
        char text[400];
        int n = snprintf(text, sizeof text, shapes[i], (int)s.len, s.ptr, (int)s.len, s.ptr);
        mf_token_array with = talk(m, (mf_str){text, (size_t)n});
        more += count(&with, id) - count(&without, id);
        free(with.data);
    }
    free(without.data);
    return more;
}

// Every control token and every ending one, and those of `marks`.
static inline void none_from_messages(const talker *m, const char *const *marks, size_t n_marks, size_t n_shapes) {
    for (int32_t id = 0; id < mf_tokenizer_n_vocab(m->t); id++) {
        bool must = mf_tokenizer_type(m->t, id) == MF_TOKEN_CONTROL || mf_tokenizer_is_eog(m->t, id);
        for (size_t i = 0; i < n_marks; i++) must = must || mf_str_is(mf_tokenizer_text(m->t, id), marks[i]);
        mf_str s = mf_tokenizer_text(m->t, id);
        if (must && s.len && from_messages(m, id, n_shapes) != 0)
            fail_msg("'%.*s' in a message became token %d", (int)s.len, s.ptr, id);
    }
}

#endif
