// Any template over two conversations that differ in their characters of private use alone, which are control tokens of a small
// vocabulary. The template can't write such a character, so each one in a rendering is a person's: it must be marked, must never
// become a token, and what stands outside the marks must be the same for both.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "text/chat_template.h"
#include "text/tiny_vocab.h"

#define A "\xEE\x80\x81"
#define B "\xEE\x80\x82"
#define C "\xEE\x80\x83"
#define D "\xEE\x84\x81"
#define E "\xEE\x84\x82"
#define F "\xEE\x84\x83"
#define TALK(a, b, c)                                                                                                     \
    "{\"messages\": [{\"role\": \"system\", \"content\": \"" a "<b>\\t" b "\"}, {\"role\": \"user\", \"content\": \" " c  \
    "," a " x\\r\\n" b "\"}, {\"role\": \"assistant\", \"content\": null, \"" c "k\": \"" a                               \
    "\", \"tool_calls\": [{\"name\": \"" b "\", \"arguments\": {\"" a "\": [1, 60, \"" c "\", true]}}]}, {\"role\": \"" a \
    "u\", \"content\": [{\"type\": \"text\", \"text\": \"" b "%5s%%{}{0:" a ">9}\"}]}], \"tools\": [{\"name\": \"" c      \
    "f\", \"n\": 12345678901234567890}], \"variables\": {\"x\": {\"a\": [\"" c "\"]}, \"y\": 2.5}}"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static mf_tokenizer *tokenizer;
static int32_t first_control;
static mf_json *talks[2];

static void make(void) {
    mf_log_set_level(MF_LOG_ERROR);
    static const char *const texts[] = {A, B, C, D, E, F}, *const sources[] = {TALK(A, B, C), TALK(D, E, F)};
    static tiny_vocab v;
    static mf_arena arena;
    mf_error err = {0};
    size_t size;
    tiny_bpe(&v);
    first_control = (int32_t)v.n;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) tiny_add(&v, texts[i], MF_TOKEN_CONTROL, 0);
    uint8_t *bytes = tiny_build(&v, &size);
    static mf_gguf *file; // kept: the tokenizer points into it
    file = mf_gguf_open_memory(bytes, size, &err);
    tokenizer = file ? mf_tokenizer_new(file, NULL, &err) : NULL;
    for (int i = 0; i < 2; i++) talks[i] = mf_json_parse(&arena, mf_str_of(sources[i]), &err);
    if (tokenizer && talks[0] && talks[1]) return;
    fprintf(stderr, "%s\n", err.text);
    abort();
}

// What stands outside the marks, a '#' for each piece inside; false where the conversation is refused.
static bool unmarked(const mf_chat_template *t, const mf_json *talk, mf_buf *out) {
    static const mf_jinja_options options = {.now = 1735689600, .steps = 20000000};
    mf_chat_request request = {.messages = mf_json_get(talk, "messages"),
                               .tools = mf_json_get(talk, "tools"),
                               .variables = mf_json_get(talk, "variables"),
                               .tokenizer = tokenizer,
                               .rules = true,
                               .options = &options};
    mf_chat_prompt prompt;
    mf_token_array ids = {0};
    mf_error err = {0};
    bool ok = mf_chat_template_render(t, &request, &prompt, &err);
    for (size_t i = 0; ok && i < prompt.spans.len; i++) {
        const mf_text_span *s = &prompt.spans.data[i];
        if (!s->parse_control)
            mf_buf_char(out, '#');
        else
            mf_buf_str(out, s->text);
    }
    if (out->len && memchr(out->data, 0xEE, out->len)) abort();
    if (ok && prompt.output.text.len < 100000 && mf_chat_prompt_encode(tokenizer, &prompt, &ids, &err))
        for (size_t i = 0; i < ids.len; i++)
            if (ids.data[i] >= first_control) abort();
    free(ids.data);
    mf_chat_prompt_free(&prompt);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!tokenizer) make();
    // Characters of private use begin with that byte, and a template has no other way to write one but an escape.
    if (size > 4096 || (size && (memchr(data, 0xEE, size) || memchr(data, '\\', size)))) return 0;
    mf_error err = {0};
    mf_chat_template *t = mf_chat_template_new((mf_str){(const char *)data, size}, &err);
    if (!t) return 0;
    mf_buf texts[2] = {{0}};
    bool first = unmarked(t, talks[0], &texts[0]), second = unmarked(t, talks[1], &texts[1]);
    bool same = first == second && texts[0].len == texts[1].len &&
                (texts[0].len == 0 || memcmp(texts[0].data, texts[1].data, texts[0].len) == 0);
    if (!same) abort();
    free(texts[0].data);
    free(texts[1].data);
    mf_chat_template_free(t);
    return 0;
}
