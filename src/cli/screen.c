#include "cli/screen.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/utf8.h"

#define PICTURES    0x2400 // of the control characters from NUL on
#define PICTURE_DEL 0x2421
#define NO_PICTURE  0xFFFD

static void add(mf_buf *out, uint32_t cp) {
    bool c1 = cp >= 0x80 && cp < 0xA0;
    if (cp < 0x20 && cp != '\n' && cp != '\t') cp += PICTURES;
    if (cp == 0x7F || c1) cp = c1 ? NO_PICTURE : PICTURE_DEL;
    char bytes[4];
    mf_buf_add(out, bytes, (size_t)mf_utf8_encode(cp, bytes));
}

// Takes the character that the held bytes are, where they are one.
static void settle(mf_screen *s, mf_buf *out) {
    if (s->n_held == 2 && s->held[0] == '\r') { // what follows it says what it is
        bool line_end = s->held[1] == '\n';
        if (!line_end) add(out, '\r');
        s->held[0] = s->held[1];
        s->n_held = 1;
    }
    uint32_t cp;
    int n = mf_utf8_decode(s->held, s->n_held, &cp);
    if (n < 0 || (s->n_held == 1 && s->held[0] == '\r')) return;
    if (n > 0) {
        add(out, cp);
        s->n_held = 0;
        return;
    }
    add(out, NO_PICTURE); // for the first byte; what is behind it may begin a character
    size_t rest = s->n_held - 1;
    char bytes[3];
    memcpy(bytes, s->held + 1, rest);
    s->n_held = 0;
    mf_screen_text(s, (mf_str){bytes, rest}, out);
}

void mf_screen_text(mf_screen *s, mf_str text, mf_buf *out) {
    for (size_t i = 0; i < text.len; i++) {
        s->held[s->n_held++] = text.ptr[i];
        settle(s, out);
    }
}

void mf_screen_end(mf_screen *s, mf_buf *out) {
    if (s->n_held) add(out, s->held[0] == '\r' ? '\r' : NO_PICTURE);
    s->n_held = 0;
}

bool mf_screen_print(mf_output *out, const mf_buf *text, bool raw) {
    if (raw || text->failed || !isatty(STDOUT_FILENO)) return mf_output_buf(out, text);
    mf_screen screen = {0};
    mf_buf shown = {0};
    mf_screen_text(&screen, (mf_str){text->data, text->len}, &shown);
    mf_screen_end(&screen, &shown);
    bool ok = mf_output_buf(out, &shown);
    free(shown.data);
    return ok;
}
