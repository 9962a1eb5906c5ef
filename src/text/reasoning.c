#define _GNU_SOURCE // memmem

#include "text/reasoning.h"

#include <stdlib.h>
#include <string.h>

// The first byte of a mark occurs in it only once, so that a text that goes on otherwise than the mark can begin another one with that
// very byte and with no earlier one.
static const mf_reasoning_marks families[] = {
    {"<think>", "</think>"},
    {"[THINK]", "[/THINK]"}, // Magistral
    {"<seed:think>", "</seed:think>"},
    {"<thought>", "</thought>"},
    {"<|inner_prefix|>", "<|inner_suffix|>"},   // Apertus
    {"<|START_THINKING|>", "<|END_THINKING|>"}, // Command
};

static bool contains(mf_str text, const char *part) { return text.len && memmem(text.ptr, text.len, part, strlen(part)); }

const mf_reasoning_marks *mf_reasoning_marks_of(mf_str template_text) {
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (contains(template_text, families[i].open) || contains(template_text, families[i].close)) return &families[i];
    return &families[0];
}

void mf_reasoning_init(mf_reasoning *r, const mf_reasoning_marks *marks, bool open) {
    *r = (mf_reasoning){.marks = marks, .state = open ? MF_REASONING_THINKS : MF_REASONING_BEGINS};
}

void mf_reasoning_free(mf_reasoning *r) {
    free(r->held.data);
    free(r->thought.data);
    free(r->answer.data);
}

static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static void let_out(mf_reasoning *r, mf_buf *to) {
    mf_buf_add(to, r->held.data, r->held.len);
    r->held.len = 0;
}

static void begin(mf_reasoning *r, char c) {
    r->n_spaces += is_space(c) && r->n_spaces == r->held.len;
    mf_buf_char(&r->held, c);
    size_t n = r->held.len - r->n_spaces, whole = strlen(r->marks->open);
    if (!r->held.failed && memcmp(r->held.data + r->n_spaces, r->marks->open, n) != 0) {
        r->state = MF_REASONING_ANSWERS;
        let_out(r, &r->answer);
    } else if (!r->held.failed && n == whole) {
        r->state = MF_REASONING_THINKS;
        let_out(r, &r->thought);
    }
}

static void think(mf_reasoning *r, char c) {
    const char *close = r->marks->close;
    if (r->held.len && c != close[r->held.len]) let_out(r, &r->thought);
    if (c != close[r->held.len]) {
        mf_buf_char(&r->thought, c);
        return;
    }
    mf_buf_char(&r->held, c);
    if (close[r->held.len]) return;
    let_out(r, &r->thought);
    r->state = MF_REASONING_ANSWERS;
}

void mf_reasoning_text(mf_reasoning *r, mf_str text) {
    size_t i = 0;
    for (; i < text.len && r->state != MF_REASONING_ANSWERS; i++)
        if (r->state == MF_REASONING_BEGINS)
            begin(r, text.ptr[i]);
        else
            think(r, text.ptr[i]);
    if (i < text.len) mf_buf_add(&r->answer, text.ptr + i, text.len - i);
}

bool mf_reasoning_end(mf_reasoning *r) {
    bool cut = r->state == MF_REASONING_THINKS;
    let_out(r, cut ? &r->thought : &r->answer);
    return !cut;
}

static mf_str trimmed(mf_str s) {
    for (; s.len && is_space(s.ptr[0]); s.len--) s.ptr++;
    while (s.len && is_space(s.ptr[s.len - 1])) s.len--;
    return s;
}

mf_str mf_reasoning_inner(const mf_reasoning_marks *marks, mf_str thought) {
    mf_str s = trimmed(thought), open = mf_str_of(marks->open), close = mf_str_of(marks->close);
    if (mf_str_starts(s, open)) s = (mf_str){s.ptr + open.len, s.len - open.len};
    if (s.len >= close.len && memcmp(s.ptr + s.len - close.len, close.ptr, close.len) == 0) s.len -= close.len;
    return trimmed(s);
}
