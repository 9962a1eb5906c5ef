#include "base/error.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(mf_error *err, mf_code code, const char *format, va_list args) {
    char text[sizeof err->text]; // the arguments may point into err
    int n = vsnprintf(text, sizeof text, format, args);
    if (n < 0) n = 0;
    size_t len = mf_utf8_clean(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
    memcpy(err->text, text, len + 1);
    err->code = code;
}

bool(mf_fail)(mf_error *err, mf_code code, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, code, format, args);
        va_end(args);
    }
    return false;
}

bool(mf_fail_prefix)(mf_error *err, const char *format, ...) {
    if (!err) return false;
    mf_error prefix;
    va_list args;
    va_start(args, format);
    fill(&prefix, err->code, format, args);
    va_end(args);
    return mf_fail(err, err->code, "%s: %s", prefix.text, err->text);
}

bool(mf_fail_memory)(mf_error *err, size_t bytes, const char *what) {
    return mf_fail(err, MF_ERR_MEMORY, "out of memory: %zu bytes for %s", bytes, what);
}
