// Renders templates for the oracles: each line of standard input is {"template": text, "variables": {…}}, each line of output
// {"text": …, "marks": [[from, to], …]} or {"error": …, "refused": at load, or not}. Variables named messages are marked as such.
#include <stdio.h>
#include <stdlib.h>

#include "text/jinja/jinja.h"

static void print_error(mf_json_writer *w, const mf_error *err, bool load) {
    mf_json_key(w, "error");
    mf_json_string(w, mf_str_of(err->text));
    mf_json_key(w, "refused");
    mf_json_bool(w, load);
    mf_json_key(w, "code");
    mf_json_int(w, err->code);
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

static void render(const mf_json *line, mf_json_writer *w) {
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
    char *text = NULL;
    size_t cap = 0;
    for (ssize_t len; (len = getline(&text, &cap, stdin)) > 0;) {
        mf_arena arena = {0};
        mf_error err = {0};
        mf_buf buf = {0};
        mf_json_writer w = {.out = &buf};
        const mf_json *line = mf_json_parse(&arena, (mf_str){text, (size_t)len}, &err);
        mf_json_begin(&w, '{');
        if (line)
            render(line, &w);
        else
            print_error(&w, &err, false);
        mf_json_end(&w, '}');
        puts(buf.data ? buf.data : "");
        fflush(stdout);
        free(buf.data);
        mf_arena_free(&arena);
    }
    free(text);
    return 0;
}
