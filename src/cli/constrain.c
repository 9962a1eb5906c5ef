#include "cli/constrain.h"

#include <stdlib.h>
#include <string.h>

#include "api/vocab.h"
#include "base/file.h"

#define MOST_BYTES (16 << 20) // of a grammar or a schema

bool mf_constrain_wanted(const mf_options *o) {
    return o->grammar || o->grammar_file || o->json_schema || o->json_schema_file || o->json_object;
}

// The value of a flag that takes a file's name or the text itself.
static bool text_of(const char *value, bool is_text, mf_buf *storage, mf_str *out, mf_error *err) {
    *out = mf_str_of(value);
    if (is_text) return true;
    if (!mf_file_read(value, MOST_BYTES, storage, err)) return false;
    *out = (mf_str){storage->data ? storage->data : "", storage->len};
    return true;
}

static bool looks_like_schema(const char *value) {
    value += strspn(value, " \t\r\n");
    return *value == '{' || strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
}

static mf_constraint *constraint_of(const mf_options *o, const mf_grammar_vocab *vocab, const mf_free_text *free_text,
                                    mf_error *err) {
    const mf_schema_options schema = {o->schema_any_order, o->schema_closed, o->strict_oneof};
    mf_buf storage = {0};
    mf_str text;
    mf_constraint *c = NULL;
    const char *grammar = o->grammar ? o->grammar : o->grammar_file,
               *json = o->json_schema ? o->json_schema : o->json_schema_file;
    if (o->json_object) {
        c = mf_constraint_of_schema(MF_STR("{\"type\":\"object\"}"), NULL, vocab, free_text, err);
    } else if (grammar) {
        if (text_of(grammar, o->grammar && strstr(grammar, "::="), &storage, &text, err))
            c = mf_constraint_of_gbnf(text, vocab, free_text, err);
        if (!c) mf_fail_prefix(err, "the grammar");
    } else if (text_of(json, o->json_schema && looks_like_schema(json), &storage, &text, err)) {
        c = mf_constraint_of_schema(text, &schema, vocab, free_text, err);
    }
    free(storage.data);
    return c;
}

bool mf_constrain_make(mf_constrained *out, const mf_options *o, const mf_loaded *l, const mf_reasoning_marks *marks,
                       bool open, mf_error *err) {
    *out = (mf_constrained){0};
    if (!mf_constrain_wanted(o)) return true;
    if (l && !(out->vocab = mf_vocab_of_tokenizer(l->tokenizer, l->model->hparams.n_vocab, err))) return false;
    // A model that thinks has a token for that; another one's thoughts would only be a way around the constraint.
    bool thinks = marks && l && (open || mf_tokenizer_find(l->tokenizer, mf_str_of(marks->open)) >= 0);
    const mf_free_text thought = {thinks ? marks->open : NULL, thinks ? marks->close : NULL, open};
    out->constraint = constraint_of(o, out->vocab, thinks ? &thought : NULL, err);
    return out->constraint != NULL;
}

void mf_constrain_drop(mf_constrained *c) {
    mf_constraint_drop(c->constraint);
    mf_grammar_vocab_free(c->vocab);
    *c = (mf_constrained){0};
}
