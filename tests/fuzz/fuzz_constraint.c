// Any bytes as a grammar, a JSON Schema or a pattern (told by the first byte), with a small vocabulary. What is refused is refused with a
// sentence; in what is not, masks are what taking each token says, and forced bytes are the only ones.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "sample/grammar/constraint.h"

#define MAX_BYTES  2048 // longer ones only take longer
#define MAX_PLACES 6

static mf_grammar_vocab *make_vocab(void) {
    static const char *const words[] = {"true", "\"a\"", "{\"",           "\": ",           "], ", "  ",    "12",
                                        "0.5",  "abc",   "\xc3\xa9",      "\xe2\x82\xac\"", "\\n", "\\u00", "\xf0\x9f",
                                        "ab\"", "-1e",   "\xef\xbf\xbfzz"};
    static char bytes[256];
    mf_grammar_token list[2 + 256 + sizeof words / sizeof *words] = {{MF_STR("<end>"), false, true},
                                                                     {MF_STR("<tool>"), false, false}};
    int32_t n = 2;
    for (int b = 0; b < 256; b++) {
        bytes[b] = (char)b;
        list[n++] = (mf_grammar_token){{&bytes[b], 1}, true, false};
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        list[n++] = (mf_grammar_token){mf_str_of(words[i]), true, false};
    return mf_grammar_vocab_new(list, n, NULL);
}

static mf_constraint *constraint_of(const uint8_t *data, size_t size, const mf_grammar_vocab *vocab, mf_error *err) {
    static const mf_free_text thought = {"<think>", "</think>", false};
    const mf_free_text *free_text = data[0] & 0x80 ? &thought : NULL;
    const mf_schema_options options = {data[0] & 8, data[0] & 16, data[0] & 32};
    mf_str text = {(const char *)data + 1, size - 1};
    if (data[0] % 4 == 0) return mf_constraint_of_gbnf(text, vocab, free_text, err);
    if (data[0] % 4 != 1) return mf_constraint_of_schema(text, &options, vocab, free_text, err);
    mf_buf schema = {0};
    mf_json_writer w = {.out = &schema};
    mf_json_begin(&w, '{');
    mf_json_add_text(&w, "type", "string");
    mf_json_key(&w, "pattern");
    mf_json_string(&w, text);
    mf_json_end(&w, '}');
    mf_constraint *c = mf_constraint_of_schema((mf_str){schema.data, schema.len}, &options, vocab, free_text, err);
    free(schema.data);
    return c;
}

static void check_forced(mf_constraint *c, mf_constraint_place at, mf_str name) {
    char forced[8];
    size_t n = mf_constraint_forced(c, at, forced, sizeof forced);
    if (n > name.len) n = name.len;
    if (n && memcmp(forced, name.ptr, n) != 0) abort();
}

// Walks by the input's bytes.
static void check_places(mf_constraint *c, const mf_grammar_vocab *v, const uint8_t *data, size_t size) {
    mf_constraint_place at = mf_constraint_start(c), to;
    for (size_t step = 0; step < MAX_PLACES; step++) {
        mf_error err = {0};
        int32_t allowed[512], n = 0;
        mf_token_mask *mask = mf_constraint_mask(c, at, &err);
        if (!mask && err.code == MF_OK) abort();
        for (int32_t id = 0; id < v->n && mask; id++) {
            mf_error why = {0};
            bool taken = mf_constraint_advance(c, at, id, &to, &why);
            if (!taken && why.code == MF_ERR_LIMIT) break; // too ambiguous behind this one
            if (taken != (mask->words[id / 64] >> id % 64 & 1)) abort();
            if (!taken) continue;
            mf_constraint_drop_place(c, to);
            if (v->tokens[id].text) check_forced(c, at, v->tokens[id].name);
            if (!v->tokens[id].ends) allowed[n++] = id;
        }
        mf_token_mask_drop(mask);
        if (n == 0) break;
        if (!mf_constraint_advance(c, at, allowed[data[step % size] % n], &to, &err)) break;
        mf_constraint_drop_place(c, at);
        at = to;
    }
    mf_constraint_drop_place(c, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static mf_grammar_vocab *vocab;
    if (!vocab) vocab = make_vocab();
    if (!vocab || size == 0 || size > MAX_BYTES) return 0;
    mf_error err = {0};
    mf_constraint *c = constraint_of(data, size, vocab, &err);
    if (!c) {
        if (err.code == MF_OK || !err.text[0]) abort();
        return 0;
    }
    check_places(c, vocab, data, size);
    size_t at = 0;
    mf_error why = {0};
    mf_check result = mf_constraint_check(c, (mf_str){(const char *)data, size}, &at, &why);
    if (result == MF_CHECK_FAILED ? why.code == MF_OK : at >= size) abort();
    mf_constraint_drop(c);
    return 0;
}
