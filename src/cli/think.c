#include "cli/think.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool mf_think_wanted(const mf_options *o) {
    static const struct {
        const char *word;
        bool wanted;
    } words[] = {{"always", true}, {"on", true}, {"1", true}, {"never", false}, {"off", false}, {"0", false}};
    for (size_t i = 0; o->color && i < sizeof words / sizeof words[0]; i++)
        if (strcmp(o->color, words[i].word) == 0) return words[i].wanted;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

static void flush(mf_think *t, mf_buf *buf) {
    if (!(t->hide && t->inside)) mf_buf_add(buf, t->held, t->n_held);
    t->n_held = 0;
}

// Takes a byte; the tag that is awaited may be whole with it.
static void take(mf_think *t, char c, mf_buf *buf) {
    const char *tag = t->inside ? "</think>" : "<think>";
    if (t->n_held && c != tag[t->n_held]) flush(t, buf);
    if (c != tag[t->n_held]) {
        bool gap = t->skip_space && (c == '\n' || c == ' ');
        t->skip_space = gap;
        if (!gap && !(t->hide && t->inside)) mf_buf_char(buf, c);
        return;
    }
    t->held[t->n_held++] = c;
    if (tag[t->n_held]) return;
    if (t->hide) {
        t->n_held = 0;
        t->skip_space = t->inside;
    } else {
        if (!t->inside && t->color) mf_buf_text(buf, MF_TERMINAL_DIMMED);
        flush(t, buf);
        if (t->inside && t->color) mf_buf_text(buf, MF_TERMINAL_PLAIN);
    }
    t->inside = !t->inside;
}

static bool put(mf_output *out, mf_buf *buf) {
    bool ok = mf_output_buf(out, buf);
    free(buf->data);
    return ok;
}

bool mf_think_write(mf_think *t, mf_output *out, mf_str text) {
    if (!t->color && !t->hide) return mf_output_write(out, text.ptr, text.len);
    mf_buf buf = {0};
    for (size_t i = 0; i < text.len; i++) take(t, text.ptr[i], &buf);
    return put(out, &buf);
}

bool mf_think_end(mf_think *t, mf_output *out) {
    mf_buf buf = {0};
    flush(t, &buf);
    if (t->inside && t->color) mf_buf_text(&buf, MF_TERMINAL_PLAIN);
    t->inside = false;
    return put(out, &buf);
}
