// Renders templates for the oracles: each line of standard input is {"template": text, "variables": {…}}, each line of output
// {"text": …, "marks": [[from, to], …]} or {"error": …, "refused": at load, or not}. Variables named messages are marked as such.
#include <stdlib.h>

#include "support/json_lines.h"
#include "text/jinja/jinja.h"

static void print_error(mf_json_writer *w, const mf_error *err, bool load) {
    json_line_error(w, err);
    mf_json_key(w, "refused");
    mf_json_bool(w, load);
}

static void print_output(mf_json_writer *w, const mf_jinja_output *out) {
    mf_json_key(w, "text");
    mf_json_string(w, (mf_str){out->text.data, out->text.len});
    mf_json_key(w, "marks");
    mf_json_begin(w, '[');
    for (size_t i = 0; i < out->marks.len; i++) {
        mf_json_begin(w, '[');
        mf_json_int(w, (int64_t)out->marks.data[i].from);
        mf_json_int(w, (int64_t)out->marks.data[i].to);
        mf_json_end(w, ']');
    }
    mf_json_end(w, ']');
}

static void render(void *context, const mf_json *line, mf_json_writer *w) {
    (void)context;
    mf_error err = {0};
    const mf_json *source = mf_json_get(line, "template"), *variables = mf_json_get(line, "variables");
    mf_array(mf_jinja_var) vars = {0};
    for (const mf_json *v = variables ? variables->child : NULL; v; v = v->next)
        if (!mf_array_push(&vars, ((mf_jinja_var){v->key, v, mf_str_is(v->key, "messages")}))) exit(1);
    mf_jinja *t = mf_jinja_new(source ? source->text : MF_STR(""), &err);
    mf_jinja_output out = {0};
    mf_jinja_options options = {.now = 1735689600}; // 2025-01-01
    if (!t)
        print_error(w, &err, true);
    else if (!mf_jinja_render(t, vars.data, vars.len, &options, &out, &err))
        print_error(w, &err, false);
    else
        print_output(w, &out);
    mf_jinja_output_free(&out);
    mf_jinja_free(t);
    free(vars.data);
}

int main(void) {
    json_lines(render, NULL);
    return 0;
}
