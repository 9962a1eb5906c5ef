// Constraints: a coat over mf_constraint that holds the model, whose vocabulary it is about.
#include "sample/grammar/constraint.h"

#include <stdlib.h>

#include "api/api.h"
#include "api/vocab.h"
#include "base/mem.h"

_Static_assert(MINFER_CHECK_ACCEPTED == (int)MF_CHECK_ACCEPTED && MINFER_CHECK_INCOMPLETE == (int)MF_CHECK_INCOMPLETE &&
                   MINFER_CHECK_REJECTED == (int)MF_CHECK_REJECTED && MINFER_CHECK_FAILED == (int)MF_CHECK_FAILED,
               "minfer_check is mf_check");

// The model's vocabulary, prepared when the first constraint needs it. A failure is tried again by the next one.
static const mf_grammar_vocab *vocab_of(minfer_model *m, mf_error *err) {
    pthread_mutex_lock(&m->vocab_lock);
    if (!m->vocab) m->vocab = mf_vocab_of_tokenizer(m->tokenizer, m->model->hparams.n_vocab, err);
    const mf_grammar_vocab *v = m->vocab;
    pthread_mutex_unlock(&m->vocab_lock);
    return v;
}

static bool check_text(const char **text, size_t len, const char *name, mf_error *err) {
    if (len > 0 && !mf_api_need(*text, name, err)) return false;
    if (!*text) *text = "";
    return true;
}

// Takes c, also when it fails; NULL: it has failed already.
static minfer_constraint *wrap(minfer_model *m, mf_constraint *c, mf_error *err) {
    minfer_constraint *out = c ? mf_alloc(1, sizeof *out) : NULL;
    if (!out) {
        if (c) mf_fail_memory(err, sizeof *out, "a constraint");
        mf_constraint_drop(c);
        return NULL;
    }
    *out = (minfer_constraint){m, c};
    mf_api_model_hold(m);
    return out;
}

static minfer_constraint *of_schema(minfer_model *m, const char *schema, size_t len, unsigned flags, mf_error *err) {
    const unsigned known = MINFER_SCHEMA_ANY_ORDER | MINFER_SCHEMA_CLOSED | MINFER_SCHEMA_STRICT_ONEOF;
    const mf_schema_options options = {flags & MINFER_SCHEMA_ANY_ORDER, flags & MINFER_SCHEMA_CLOSED,
                                       flags & MINFER_SCHEMA_STRICT_ONEOF};
    if (!mf_api_need_tokenizer(m, err) || !mf_api_check_process(m, err) || !check_text(&schema, len, "the schema", err))
        return NULL;
    if (flags & ~known) return mf_fail(err, MF_ERR_ARGUMENT, "unknown flags 0x%X", flags & ~known), NULL;
    const mf_grammar_vocab *v = vocab_of(m, err);
    return v ? wrap(m, mf_constraint_of_schema((mf_str){schema, len}, &options, v, NULL, err), err) : NULL;
}

minfer_constraint *minfer_constraint_from_schema(minfer_model *model, const char *schema, size_t len, unsigned flags,
                                                 minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    minfer_constraint *c = of_schema(model, schema, len, flags, &err);
    if (!c) mf_api_refuse(error, &err);
    return c;
}

static minfer_constraint *of_gbnf(minfer_model *m, const char *grammar, size_t len, mf_error *err) {
    if (!mf_api_need_tokenizer(m, err) || !mf_api_check_process(m, err) || !check_text(&grammar, len, "the grammar", err))
        return NULL;
    const mf_grammar_vocab *v = vocab_of(m, err);
    if (!v) return NULL;
    mf_constraint *c = mf_constraint_of_gbnf((mf_str){grammar, len}, v, NULL, err);
    if (!c) mf_fail_prefix(err, "the grammar");
    return wrap(m, c, err);
}

minfer_constraint *minfer_constraint_from_gbnf(minfer_model *model, const char *grammar, size_t len, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    minfer_constraint *c = of_gbnf(model, grammar, len, &err);
    if (!c) mf_api_refuse(error, &err);
    return c;
}

void minfer_constraint_free(minfer_constraint *c) {
    if (!c) return;
    mf_constraint_drop(c->constraint);
    mf_api_model_drop(c->model);
    free(c);
}

static mf_check check(const minfer_constraint *c, const char *text, size_t len, size_t *at, mf_error *err) {
    if (!mf_api_need(c, "the constraint", err) || !mf_api_check_process(c->model, err) ||
        !check_text(&text, len, "the text", err))
        return MF_CHECK_FAILED;
    return mf_constraint_check(c->constraint, (mf_str){text, len}, at, err);
}

minfer_check minfer_constraint_check(const minfer_constraint *constraint, const char *text, size_t len, size_t *at,
                                     minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    size_t where = len;
    mf_check result = check(constraint, text, len, &where, &err);
    if (result == MF_CHECK_FAILED) mf_api_refuse(error, &err);
    if (at) *at = result == MF_CHECK_REJECTED ? where : len;
    return (minfer_check)result;
}
