#include "base/error.h"

#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill(mf_error *err, mf_code code, const char *format, va_list args) {
    err->code = code;
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    if (n < 0) n = 0;
    mf_utf8_clean(err->text, (size_t)n < sizeof err->text ? (size_t)n : sizeof err->text - 1);
}

bool mf_fail(mf_error *err, mf_code code, const char *format, ...) {
    if (err) {
        va_list args;
        va_start(args, format);
        fill(err, code, format, args);
        va_end(args);
    }
    return false;
}

bool mf_fail_prefix(mf_error *err, const char *format, ...) {
    if (!err) return false;
    mf_error prefix;
    va_list args;
    va_start(args, format);
    fill(&prefix, err->code, format, args);
    va_end(args);
    char old[sizeof err->text];
    memcpy(old, err->text, sizeof old);
    old[sizeof old - 1] = 0;
    mf_fail(err, err->code, "%s: %s", prefix.text, old);
    return false;
}

bool mf_fail_memory(mf_error *err, size_t bytes, const char *what) {
    return mf_fail(err, MF_ERR_MEMORY, "out of memory: %zu bytes for %s", bytes, what);
}
