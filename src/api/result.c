#include <string.h>

#include "api/api.h"
#include "base/log.h"
#include "base/version.h"

// The public numbers are the internal ones, with two more behind them.
_Static_assert(MINFER_OK == (int)MF_OK && MINFER_ERROR_ARGUMENT == (int)MF_ERR_ARGUMENT &&
                   MINFER_ERROR_FORMAT == (int)MF_ERR_FORMAT && MINFER_ERROR_UNSUPPORTED == (int)MF_ERR_UNSUPPORTED &&
                   MINFER_ERROR_MEMORY == (int)MF_ERR_MEMORY && MINFER_ERROR_IO == (int)MF_ERR_IO &&
                   MINFER_ERROR_LIMIT == (int)MF_ERR_LIMIT && MINFER_ERROR_NUMERIC == (int)MF_ERR_NUMERIC &&
                   MINFER_ERROR_CANCELLED == (int)MF_ERR_CANCELLED && MINFER_ERROR_INTERNAL == (int)MF_ERR_INTERNAL &&
                   MINFER_ERROR_NOT_FOUND == MF_ERR_INTERNAL + 1,
               "minfer_code is mf_code");
_Static_assert(sizeof((minfer_error *)0)->text >= sizeof((mf_error *)0)->text, "every sentence fits");
_Static_assert(MINFER_LOG_ERROR == (int)MF_LOG_ERROR && MINFER_LOG_DEBUG == (int)MF_LOG_DEBUG,
               "minfer_log_level is mf_log_level");

const char *minfer_version(void) { return MF_VERSION; }

int32_t minfer_arithmetic_version(void) { return MF_ARITHMETIC_VERSION; }

void minfer_set_log_level(minfer_log_level level) { mf_log_set_level((mf_log_level)level); }

void minfer_set_log(minfer_log_fn *fn, void *arg) { mf_log_set_sink(fn, arg); }

bool mf_api_refuse(minfer_error *out, const mf_error *err) {
    if (!out) return false;
    out->code = (minfer_code)err->code;
    memcpy(out->text, err->text, sizeof err->text);
    return false;
}

bool mf_api_need(const void *pointer, const char *name, mf_error *err) {
    return pointer || mf_fail(err, MF_ERR_ARGUMENT, "%s is NULL", name);
}

static bool give(const void *data, size_t count, size_t size, void *out, size_t cap, size_t *n, mf_error *err) {
    if (!mf_api_need(n, "the place for the length", err)) return false;
    *n = count;
    if (cap == 0) return true;
    if (cap < count)
        return mf_fail(err, (mf_code)MINFER_ERROR_SPACE, "the result has a length of %zu and the buffer holds %zu", count,
                       cap);
    if (!mf_api_need(out, "the buffer", err)) return false;
    if (count) memcpy(out, data, count * size);
    return true;
}

bool mf_api_ids(const mf_token_array *ids, int32_t *out, size_t cap, size_t *n, mf_error *err) {
    return give(ids->data, ids->len, sizeof *out, out, cap, n, err);
}

bool mf_api_text(mf_str text, char *out, size_t cap, size_t *n, mf_error *err) {
    if (!give(text.ptr, text.len, 1, out, cap, n, err)) return false;
    if (cap > text.len) out[text.len] = 0;
    return true;
}
