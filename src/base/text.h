// Text: a borrowed slice and a growing byte buffer.
#ifndef MF_BASE_TEXT_H
#define MF_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// A slice of bytes owned by someone else; not NUL-terminated.
typedef struct mf_str {
    const char *ptr;
    size_t len;
} mf_str;

#define MF_STR(literal) ((mf_str){(literal), sizeof(literal) - 1})

static inline mf_str mf_str_of(const char *text) { return (mf_str){text, strlen(text)}; }
static inline bool mf_str_eq(mf_str a, mf_str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}
static inline bool mf_str_is(mf_str a, const char *text) { return mf_str_eq(a, mf_str_of(text)); }
static inline bool mf_str_starts(mf_str a, mf_str prefix) {
    return a.len >= prefix.len && (prefix.len == 0 || memcmp(a.ptr, prefix.ptr, prefix.len) == 0);
}

// A growing byte buffer. Zero-initialised is empty and ready. An allocation that fails (or a length over `limit`, when
// that is not 0) sets `failed`, after which appends do nothing: check once at the end. Freed with free(b.data).
typedef struct mf_buf {
    char *data; // NUL-terminated after every append
    size_t len, cap, limit;
    bool failed;
} mf_buf;

void mf_buf_add(mf_buf *buf, const void *bytes, size_t len);
void mf_buf_char(mf_buf *buf, char c);
void mf_buf_text(mf_buf *buf, const char *text);
void mf_buf_str(mf_buf *buf, mf_str text);
void mf_buf_printf(mf_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Appends text from outside in a form that a terminal shows and does not obey: \xHH for the bytes of control characters
// (mf_utf8_is_control) and for those that are no UTF-8. `quoted`: in double quotes, with \n for a line end and a backslash before quotes
// and backslashes.
void mf_buf_shown(mf_buf *buf, mf_str text, bool quoted);

// Strict number parsing: the whole slice must be a number in C's decimal syntax (no spaces, no hex, no inf/nan),
// independent of the locale. False on anything else or when the value does not fit.
bool mf_parse_i64(mf_str text, int64_t *out);
bool mf_parse_f64(mf_str text, double *out);

// How many bytes must be put in, left out, replaced or swapped with their neighbour to get from one short text to the other (each at
// most 64 bytes; longer ones give 64). For near-miss hints.
size_t mf_edit_distance(mf_str a, mf_str b);

#endif
