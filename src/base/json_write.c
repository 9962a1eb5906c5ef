#include "base/json.h"
#include "base/utf8.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void new_line(mf_json_writer *w) {
    if (w->indent <= 0) return;
    mf_buf_char(w->out, '\n');
    for (int i = 0; i < w->depth * w->indent; i++) mf_buf_char(w->out, ' ');
}

// What goes before a value or a key: a comma after an earlier member, the line break, or nothing behind a key.
static void separate(mf_json_writer *w) {
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->has_member) mf_buf_char(w->out, ',');
    if (w->depth > 0) new_line(w);
    w->has_member = true;
}

void mf_json_begin(mf_json_writer *w, char open) {
    separate(w);
    mf_buf_char(w->out, open);
    w->depth++;
    w->has_member = false;
}

void mf_json_end(mf_json_writer *w, char close) {
    w->depth--;
    if (w->has_member) new_line(w);
    mf_buf_char(w->out, close);
    w->has_member = true;
}

// Bytes that stand for themselves go out in one piece; [start, at) is such a piece.
static void quote(mf_buf *out, mf_str text) {
    static const char specials[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    if (!text.ptr) text = MF_STR("");
    size_t start = 0, at = 0;
    mf_buf_char(out, '"');
    while (at < text.len) {
        uint32_t cp;
        int n = mf_utf8_decode(text.ptr + at, text.len - at, &cp);
        if (n > 0 && !mf_utf8_is_control(cp) && cp != '"' && cp != '\\') {
            at += (size_t)n;
            continue;
        }
        mf_buf_add(out, text.ptr + start, at - start);
        const char *special = n > 0 && cp ? strchr(specials, (int)cp) : NULL;
        if (n <= 0) {
            mf_buf_text(out, "\xEF\xBF\xBD");
        } else if (special) {
            mf_buf_char(out, '\\');
            mf_buf_char(out, names[special - specials]);
        } else {
            mf_buf_printf(out, "\\u%04x", (unsigned)cp); // also what a terminal would obey, though JSON allows it
        }
        start = at += n > 0 ? (size_t)n : 1;
    }
    mf_buf_add(out, text.ptr + start, at - start);
    mf_buf_char(out, '"');
}

void mf_json_key_str(mf_json_writer *w, mf_str key) {
    separate(w);
    quote(w->out, key);
    mf_buf_text(w->out, w->indent > 0 ? ": " : ":");
    w->after_key = true;
}

void mf_json_key(mf_json_writer *w, const char *key) { mf_json_key_str(w, mf_str_of(key)); }

void mf_json_string(mf_json_writer *w, mf_str text) {
    separate(w);
    quote(w->out, text);
}

void mf_json_number(mf_json_writer *w, mf_str lexeme) {
    separate(w);
    mf_buf_str(w->out, lexeme);
}

void mf_json_int(mf_json_writer *w, int64_t value) {
    separate(w);
    mf_buf_printf(w->out, "%" PRId64, value);
}

// Puts a point where the locale has another decimal separator (which may be several bytes).
static size_t unlocalise(char *text) {
    size_t n = 0;
    bool separator = false;
    for (const char *p = text; *p; p++) {
        bool plain = (*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || *p == 'e';
        if (plain || !separator) text[n++] = *p;
        if (!plain && !separator) text[n - 1] = '.';
        separator |= !plain;
    }
    text[n] = 0;
    return n;
}

static bool reads_back(const char *text, size_t len, double value) {
    double back;
    return mf_parse_f64((mf_str){text, len}, &back) && back == value;
}

// Adds one to the last of the 16 digits of "d.ddddddddddddddde…"; false where that would carry through all of them.
static bool next_decimal(char *text) {
    for (char *p = strchr(text, 'e') - 1; *p >= '0' && *p <= '9'; p--) {
        if (*p != '9') {
            ++*p;
            return true;
        }
        *p = '0';
    }
    return false;
}

void mf_json_real(mf_json_writer *w, double value) {
    if (!isfinite(value)) {
        mf_json_null(w);
        return;
    }
    separate(w);
    // Any 15 digits survive the way through a double, so a shorter text shows as zeros that %g drops; not so for subnormals.
    char text[64];
    size_t len = 0;
    for (int digits = fabs(value) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        len = unlocalise(text);
        if (reads_back(text, len, value)) break;
        if (digits != 16) continue;
        // Over a power of two the doubles are twice as far apart as below it: of the two neighbouring decimals the farther
        // one may be the one that reads back.
        snprintf(text, sizeof text, "%.15e", value);
        len = unlocalise(text);
        if (next_decimal(text) && reads_back(text, len, value)) break;
    }
    mf_buf_add(w->out, text, len);
}

void mf_json_bool(mf_json_writer *w, bool value) {
    separate(w);
    mf_buf_text(w->out, value ? "true" : "false");
}

void mf_json_null(mf_json_writer *w) {
    separate(w);
    mf_buf_text(w->out, "null");
}

void mf_json_add_text(mf_json_writer *w, const char *key, const char *text) {
    mf_json_key(w, key);
    mf_json_string(w, mf_str_of(text));
}

void mf_json_add_int(mf_json_writer *w, const char *key, int64_t value) {
    mf_json_key(w, key);
    mf_json_int(w, value);
}

void mf_json_add_real(mf_json_writer *w, const char *key, double value) {
    mf_json_key(w, key);
    mf_json_real(w, value);
}
