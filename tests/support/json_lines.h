// The loop of the programs that answer scripts: each line of standard input is a JSON object and gets one line of output, a JSON object too.
#ifndef MF_SUPPORT_JSON_LINES_H
#define MF_SUPPORT_JSON_LINES_H

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"

// Ends the object, prints it as a line and frees it.
static inline void json_line_end(mf_json_writer *w) {
    mf_json_end(w, '}');
    puts(w->out->data ? w->out->data : "");
    fflush(stdout);
    free(w->out->data);
}

static inline void json_line_error(mf_json_writer *w, const mf_error *err) {
    mf_json_add_text(w, "error", err->text);
    mf_json_add_int(w, "code", err->code);
}

// Answers every line: `answer` writes the keys; a line that is no JSON is answered by its error.
static inline void json_lines(void (*answer)(void *context, const mf_json *line, mf_json_writer *w), void *context) {
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
            answer(context, line, &w);
        else
            json_line_error(&w, &err);
        json_line_end(&w);
        mf_arena_free(&arena);
    }
    free(text);
}

#endif
