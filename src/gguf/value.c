// Typed access to metadata values.
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "gguf/part.h"

static mf_gguf_kind element_kind(const mf_gguf_value *value) {
    return value->kind == MF_GGUF_ARRAY ? value->item : value->kind;
}

static bool is_integer(mf_gguf_kind kind) {
    return mf_gguf_kind_size(kind) != 0 && kind != MF_GGUF_F32 && kind != MF_GGUF_F64 && kind != MF_GGUF_BOOL;
}

// The little-endian element i as an unsigned number.
static uint64_t bits_at(const mf_gguf_value *value, uint64_t i, size_t size) {
    uint64_t bits = 0;
    memcpy(&bits, value->data + i * size, size);
    return bits;
}

int64_t mf_gguf_int_at(const mf_gguf_value *value, uint64_t i) {
    const mf_gguf_kind kind = element_kind(value);
    const size_t size = mf_gguf_kind_size(kind);
    if (!is_integer(kind) && kind != MF_GGUF_BOOL) return 0;
    const uint64_t bits = bits_at(value, i, size);
    switch (kind) {
    case MF_GGUF_I8: return (int8_t)bits;
    case MF_GGUF_I16: return (int16_t)bits;
    case MF_GGUF_I32: return (int32_t)bits;
    case MF_GGUF_I64: return (int64_t)bits;
    default: return bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
    }
}

double mf_gguf_real_at(const mf_gguf_value *value, uint64_t i) {
    const mf_gguf_kind kind = element_kind(value);
    if (kind == MF_GGUF_F32) {
        float x;
        memcpy(&x, value->data + i * sizeof x, sizeof x);
        return x;
    }
    if (kind == MF_GGUF_F64) {
        double x;
        memcpy(&x, value->data + i * sizeof x, sizeof x);
        return x;
    }
    if (kind == MF_GGUF_U64) return (double)bits_at(value, i, sizeof(uint64_t));
    return (double)mf_gguf_int_at(value, i);
}

// The refusal of a key of another kind than `wanted`.
static bool fail_kind(const mf_gguf_value *value, const char *wanted, mf_error *err) {
    const bool array = value->kind == MF_GGUF_ARRAY;
    return mf_fail(err, MF_ERR_FORMAT, "key '%.*s' is %s%s, not %s", MF_GGUF_SHOWN(value->key),
                   array ? "an array of " : "of kind ", mf_gguf_kind_name(element_kind(value)), wanted);
}

static bool to_u32(const mf_gguf_value *value, uint32_t *out, mf_error *err) {
    if (!is_integer(value->kind)) return fail_kind(value, "an integer", err);
    const int64_t n = mf_gguf_int_at(value, 0);
    if (value->kind == MF_GGUF_U64 && n > UINT32_MAX)
        return mf_fail(err, MF_ERR_FORMAT, "key '%.*s': %llu does not fit in 32 bits", MF_GGUF_SHOWN(value->key),
                       (unsigned long long)bits_at(value, 0, sizeof(uint64_t)));
    if (n < 0 || n > UINT32_MAX)
        return mf_fail(err, MF_ERR_FORMAT, "key '%.*s': %lld is not a number from 0 to %u", MF_GGUF_SHOWN(value->key),
                       (long long)n, UINT32_MAX);
    *out = (uint32_t)n;
    return true;
}

bool mf_gguf_part_get_u32(const mf_gguf_part *part, const char *key, uint32_t *out, mf_error *err) {
    const mf_gguf_value *value = mf_gguf_part_find(part, key);
    return !value || to_u32(value, out, err);
}

bool mf_gguf_get_u32(const mf_gguf *file, const char *key, uint32_t *out, mf_error *err) {
    return mf_gguf_part_get_u32(&file->parts.data[0], key, out, err);
}

bool mf_gguf_get_f32(const mf_gguf *file, const char *key, float *out, mf_error *err) {
    const mf_gguf_value *value = mf_gguf_find(file, key);
    if (!value) return true;
    if (!is_integer(value->kind) && value->kind != MF_GGUF_F32 && value->kind != MF_GGUF_F64)
        return fail_kind(value, "a number", err);
    const double x = mf_gguf_real_at(value, 0);
    if (isfinite(x) && fabs(x) > FLT_MAX) return mf_fail(err, MF_ERR_FORMAT, "key '%s': %g does not fit in a float", key, x);
    *out = (float)x;
    return true;
}

bool mf_gguf_get_bool(const mf_gguf *file, const char *key, bool *out, mf_error *err) {
    const mf_gguf_value *value = mf_gguf_find(file, key);
    if (!value) return true;
    if (value->kind != MF_GGUF_BOOL) return fail_kind(value, "a bool", err);
    *out = value->data[0] != 0;
    return true;
}

bool mf_gguf_get_str(const mf_gguf *file, const char *key, mf_str *out, mf_error *err) {
    const mf_gguf_value *value = mf_gguf_find(file, key);
    if (!value) return true;
    if (value->kind != MF_GGUF_STRING) return fail_kind(value, "a string", err);
    size_t offset = 0;
    *out = mf_gguf_next_string(value, &offset);
    return true;
}

const mf_gguf_value *mf_gguf_get_array(const mf_gguf *file, const char *key, mf_gguf_kind item, mf_error *err) {
    const mf_gguf_value *value = mf_gguf_find(file, key);
    if (!value || (value->kind == MF_GGUF_ARRAY && value->item == item)) return value;
    char wanted[32];
    snprintf(wanted, sizeof wanted, "an array of %s", mf_gguf_kind_name(item));
    fail_kind(value, wanted, err);
    return NULL;
}

mf_str mf_gguf_next_string(const mf_gguf_value *value, size_t *offset) {
    mf_gguf_cursor c = {value->data, *offset, value->size};
    mf_str s = {"", 0};
    if (element_kind(value) == MF_GGUF_STRING && mf_gguf_read_str(&c, &s)) *offset = c.at;
    return s;
}
