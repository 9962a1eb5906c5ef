// Unicode normalization form C (UAX #15), in linear time: utf8proc's own canonical ordering is quadratic in a run of marks.
#include <stdlib.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/vocab.h"

typedef mf_array(utf8proc_int32_t) code_points;

// Below U+0300 (UTF-8 CC 80) nothing decomposes to something else, reorders or composes.
static bool may_change(mf_str text) {
    for (size_t i = 0; i < text.len; i++)
        if ((uint8_t)text.ptr[i] >= 0xCC) return true;
    return false;
}

static bool decompose(mf_str text, code_points *out) {
    for (size_t i = 0; i < text.len;) {
        uint32_t cp = 0;
        int len = mf_utf8_decode(text.ptr + i, text.len - i, &cp);
        i += len > 0 ? (size_t)len : 1;
        for (;;) { // Hangul and the longest full decompositions take at most 4
            size_t room = out->cap - out->len;
            utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, out->data + out->len, (utf8proc_ssize_t)room,
                                                         UTF8PROC_DECOMPOSE, NULL);
            if (n < 0) return false;
            if ((size_t)n <= room) {
                out->len += (size_t)n;
                break;
            }
            if (!mf_array_reserve(out, out->len + (size_t)n + 16)) return false;
        }
    }
    return true;
}

static unsigned combining_class(utf8proc_int32_t cp) { return (unsigned)utf8proc_get_property(cp)->combining_class; }

// Sorts a run of marks by class, keeping the order of equals.
static bool order_run(utf8proc_int32_t *run, size_t n) {
    size_t start[257] = {0};
    for (size_t i = 0; i < n; i++) start[(combining_class(run[i]) & 255) + 1]++;
    for (size_t c = 0; c < 256; c++) start[c + 1] += start[c];
    utf8proc_int32_t small[32], *sorted = n <= 32 ? small : mf_alloc(n, sizeof *sorted);
    if (!sorted) return false;
    for (size_t i = 0; i < n; i++) sorted[start[combining_class(run[i]) & 255]++] = run[i];
    memcpy(run, sorted, n * sizeof *run);
    if (sorted != small) free(sorted);
    return true;
}

static bool order(code_points *text) {
    for (size_t i = 0; i < text->len;) {
        size_t n = 0;
        while (i + n < text->len && combining_class(text->data[i + n]) != 0) n++;
        if (n > 1 && !order_run(text->data + i, n)) return false;
        i += n + 1;
    }
    return true;
}

bool mf_nfc(mf_str text, mf_buf *buf, mf_str *out, mf_error *err) {
    *out = text;
    if (!may_change(text)) return true;
    code_points points = {0};
    bool ok = mf_array_reserve(&points, text.len / 2 + 16) && decompose(text, &points) && order(&points);
    utf8proc_ssize_t n = 0;
    if (ok) {
        n = utf8proc_normalize_utf32(points.data, (utf8proc_ssize_t)points.len, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        ok = n >= 0;
    }
    buf->len = 0;
    for (utf8proc_ssize_t i = 0; ok && i < n; i++) {
        char bytes[4];
        mf_buf_add(buf, bytes, (size_t)mf_utf8_encode((uint32_t)points.data[i], bytes));
    }
    free(points.data);
    if (!ok || buf->failed) return mf_fail_memory(err, text.len, "normalization of the text");
    *out = (mf_str){buf->data, buf->len};
    return true;
}
