// Times masks for bench/grammar: constraint_bench MODEL. The first line of output is the vocabulary, {"prepared_us": …, "tokens": [hexadecimal
// bytes…], "control": [ids], "ends": [ids]}; then each line of input, {"schema": text, "text": a JSON text that it allows}, is answered
// by {"compiled_us": …, "ids": the text's tokens, "masks_us": one before each token and behind the last} or {"error": …}.
#include <stdio.h>
#include <stdlib.h>

#include "api/vocab.h"
#include "base/clock.h"
#include "sample/grammar/constraint.h"
#include "support/json_lines.h"

typedef struct bench {
    mf_tokenizer *tokenizer;
    mf_grammar_vocab *vocab;
} bench;

static double microseconds(uint64_t since) { return mf_clock_seconds(since, mf_clock_ns()) * 1e6; }

static void ids_where(mf_json_writer *w, const char *key, const mf_grammar_vocab *v, bool ends) {
    mf_json_key(w, key);
    mf_json_begin(w, '[');
    for (int32_t id = 0; id < v->n; id++)
        if (ends ? v->tokens[id].ends : !v->tokens[id].text) mf_json_int(w, id);
    mf_json_end(w, ']');
}

static void print_vocabulary(const mf_grammar_vocab *v, double prepared) {
    mf_buf line = {0}, hex = {0};
    mf_json_writer w = {.out = &line};
    mf_json_begin(&w, '{');
    mf_json_add_real(&w, "prepared_us", prepared);
    mf_json_key(&w, "tokens");
    mf_json_begin(&w, '[');
    for (int32_t id = 0; id < v->n; id++) {
        hex.len = 0;
        for (size_t i = 0; i < v->tokens[id].name.len; i++) mf_buf_printf(&hex, "%02x", (uint8_t)v->tokens[id].name.ptr[i]);
        mf_json_string(&w, (mf_str){hex.data ? hex.data : "", hex.len});
    }
    mf_json_end(&w, ']');
    ids_where(&w, "control", v, false);
    ids_where(&w, "ends", v, true);
    json_line_end(&w);
    free(hex.data);
}

// The times of the masks along a text; false with err where the text leaves the constraint.
static bool walk(mf_constraint *c, const mf_token_array *ids, mf_json_writer *w, mf_error *err) {
    mf_constraint_place at = mf_constraint_start(c), to;
    bool ok = true;
    mf_json_key(w, "masks_us");
    mf_json_begin(w, '[');
    for (size_t i = 0; ok && i <= ids->len; i++) {
        uint64_t start = mf_clock_ns();
        mf_token_mask *mask = mf_constraint_mask(c, at, err);
        mf_json_real(w, microseconds(start));
        mf_token_mask_drop(mask);
        ok = mask != NULL;
        if (!ok || i == ids->len || !(ok = mf_constraint_advance(c, at, ids->data[i], &to, err))) continue;
        mf_constraint_drop_place(c, at);
        at = to;
    }
    mf_json_end(w, ']');
    mf_constraint_drop_place(c, at);
    return ok;
}

static void answer(void *context, const mf_json *line, mf_json_writer *w) {
    const bench *b = context;
    mf_error err = {0};
    mf_token_array ids = {0};
    const mf_json *schema = mf_json_get(line, "schema"), *text = mf_json_get(line, "text");
    uint64_t start = mf_clock_ns();
    mf_constraint *c = schema ? mf_constraint_of_schema(schema->text, NULL, b->vocab, NULL, &err) : NULL;
    mf_json_add_real(w, "compiled_us", microseconds(start));
    bool ok = c && text && mf_tokenizer_encode(b->tokenizer, text->text, MF_ENCODE_PLAIN, &ids, &err);
    mf_json_key(w, "ids");
    mf_json_begin(w, '[');
    for (size_t i = 0; i < ids.len; i++) mf_json_int(w, ids.data[i]);
    mf_json_end(w, ']');
    if (!ok || !walk(c, &ids, w, &err)) json_line_error(w, &err);
    mf_constraint_drop(c);
    free(ids.data);
}

int main(int argc, char **argv) {
    mf_error err = {0};
    mf_gguf *file = argc == 2 ? mf_gguf_open(argv[1], &err) : NULL;
    bench b = {.tokenizer = file ? mf_tokenizer_new(file, NULL, &err) : NULL};
    uint64_t start = mf_clock_ns();
    b.vocab = b.tokenizer ? mf_vocab_of_tokenizer(b.tokenizer, mf_tokenizer_n_vocab(b.tokenizer), &err) : NULL;
    const bool ok = b.vocab != NULL;
    if (ok) {
        print_vocabulary(b.vocab, microseconds(start));
        json_lines(answer, &b);
    } else {
        fprintf(stderr, "constraint_bench MODEL: %s\n", err.text);
    }
    mf_grammar_vocab_free(b.vocab);
    mf_tokenizer_free(b.tokenizer);
    mf_gguf_close(file);
    return ok ? 0 : 1;
}
