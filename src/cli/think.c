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

void mf_think_init(mf_think *t, const mf_options *o, const mf_reasoning_marks *marks, bool open) {
    *t = (mf_think){.color = mf_think_wanted(o),
                    .hide = o->hide_thinking,
                    .skip_space = o->hide_thinking && open,
                    .pictures = !o->raw_output && isatty(STDOUT_FILENO)};
    mf_reasoning_init(&t->reasoning, marks, open);
}

void mf_think_free(mf_think *t) {
    mf_reasoning_free(&t->reasoning);
    free(t->thought.data);
    free(t->answer.data);
    free(t->line.data);
}

static void dim(mf_think *t, bool on) {
    if (on == t->dimmed || !t->color) return;
    mf_terminal_mark(MF_TERMINAL_DIM, on);
    mf_buf_text(&t->line, on ? MF_TERMINAL_DIMMED : MF_TERMINAL_PLAIN);
    t->dimmed = on;
}

static void add(mf_think *t, mf_str text) {
    if (t->pictures)
        mf_screen_text(&t->screen, text, &t->line);
    else
        mf_buf_str(&t->line, text);
}

static mf_str behind_space(mf_think *t, mf_str text) {
    for (; t->skip_space && text.len && (text.ptr[0] == '\n' || text.ptr[0] == ' '); text.len--) text.ptr++;
    t->skip_space = t->skip_space && text.len == 0;
    return text;
}

// Puts into the line what the parser let out.
static void take(mf_think *t) {
    mf_reasoning *r = &t->reasoning;
    mf_str thought = {r->thought.data, r->thought.len}, answer = {r->answer.data, r->answer.len};
    if (t->hide) {
        t->skip_space |= thought.len > 0;
        mf_buf_str(&t->thought, thought);
        answer = behind_space(t, answer);
        mf_buf_str(&t->answer, answer);
    } else if (thought.len) {
        dim(t, true);
        add(t, thought);
        if (r->state == MF_REASONING_ANSWERS) dim(t, false);
    }
    add(t, answer);
    r->thought.len = r->answer.len = 0;
}

static bool put(mf_think *t, mf_output *out) {
    const mf_reasoning *r = &t->reasoning;
    bool lost = r->held.failed || r->thought.failed || r->answer.failed || t->thought.failed || t->answer.failed;
    t->line.failed |= lost;
    bool ok = out ? mf_output_buf(out, &t->line) : !t->line.failed;
    t->line.len = 0;
    return ok;
}

bool mf_think_write(mf_think *t, mf_output *out, mf_str text) {
    mf_reasoning_text(&t->reasoning, text);
    take(t);
    return put(t, out);
}

bool mf_think_end(mf_think *t, mf_output *out) {
    t->cut = !mf_reasoning_end(&t->reasoning);
    take(t);
    if (t->pictures) mf_screen_end(&t->screen, &t->line);
    dim(t, false);
    return put(t, out);
}
