// Holds texts against constraints, for the oracles: each line of standard input is {"schema": text or "gbnf": text, "closed": …,
// "any_order": …, "texts": […]}, each line of output {"results": ["accepted", "incomplete", "rejected at byte 3", …]} or {"error": …,
// "code": …}.
#include <stdio.h>

#include "sample/grammar/constraint.h"
#include "support/json_lines.h"

static bool flag(const mf_json *line, const char *name) {
    const mf_json *v = mf_json_get(line, name);
    return v && v->kind == MF_JSON_BOOL && v->boolean;
}

static mf_constraint *constraint_of(const mf_json *line, mf_error *err) {
    const mf_json *schema = mf_json_get(line, "schema"), *gbnf = mf_json_get(line, "gbnf");
    const mf_schema_options o = {.any_order = flag(line, "any_order"), .closed = flag(line, "closed")};
    if (schema) return mf_constraint_of_schema(schema->text, &o, NULL, NULL, err);
    return mf_constraint_of_gbnf(gbnf ? gbnf->text : MF_STR(""), NULL, NULL, err);
}

static void print_result(mf_constraint *c, mf_str text, mf_json_writer *w) {
    mf_error err = {0};
    size_t at = 0;
    char out[600];
    switch (mf_constraint_check(c, text, &at, &err)) {
    case MF_CHECK_ACCEPTED: snprintf(out, sizeof out, "accepted"); break;
    case MF_CHECK_INCOMPLETE: snprintf(out, sizeof out, "incomplete"); break;
    case MF_CHECK_REJECTED: snprintf(out, sizeof out, "rejected at byte %zu", at); break;
    case MF_CHECK_FAILED: snprintf(out, sizeof out, "failed: %s", err.text); break;
    }
    mf_json_string(w, mf_str_of(out));
}

static void answer(void *context, const mf_json *line, mf_json_writer *w) {
    (void)context;
    mf_error err = {0};
    const mf_json *texts = mf_json_get(line, "texts");
    mf_constraint *c = constraint_of(line, &err);
    if (c) {
        mf_json_key(w, "results");
        mf_json_begin(w, '[');
        for (const mf_json *t = texts ? texts->child : NULL; t; t = t->next) print_result(c, t->text, w);
        mf_json_end(w, ']');
    } else {
        json_line_error(w, &err);
    }
    mf_constraint_drop(c);
}

int main(void) {
    json_lines(answer, NULL);
    return 0;
}
