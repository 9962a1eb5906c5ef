// Reading a part's header and metadata: every length is held against the bytes that are left before it is used.
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "gguf/part.h"

enum {
    KEY_LIMIT = 65535,     // bytes in a key
    NESTING_LIMIT = 4,     // arrays in arrays
    COUNT_LIMIT = 1 << 20, // keys, and tensors
    MIN_VALUE_BYTES = 13,  // key length, kind, one byte of data
    MIN_TENSOR_BYTES = 32, // name length, dimension count, one dimension, type, offset
    MIN_ALIGNMENT = 8,
    MAX_ALIGNMENT = 1 << 20,
    DEFAULT_ALIGNMENT = 32,
    HEADER_BYTES = 24,
    HEAD_LIMIT = 1 << 30, // bytes of a part before its tensors' data
};

static const struct {
    const char *name;
    size_t size;
} kinds[] = {
    [MF_GGUF_U8] = {"u8", 1},       [MF_GGUF_I8] = {"i8", 1},     [MF_GGUF_U16] = {"u16", 2},
    [MF_GGUF_I16] = {"i16", 2},     [MF_GGUF_U32] = {"u32", 4},   [MF_GGUF_I32] = {"i32", 4},
    [MF_GGUF_F32] = {"f32", 4},     [MF_GGUF_BOOL] = {"bool", 1}, [MF_GGUF_STRING] = {"string", 0},
    [MF_GGUF_ARRAY] = {"array", 0}, [MF_GGUF_U64] = {"u64", 8},   [MF_GGUF_I64] = {"i64", 8},
    [MF_GGUF_F64] = {"f64", 8},
};

enum {
    N_KINDS = sizeof kinds / sizeof kinds[0]
};

size_t mf_gguf_kind_size(uint32_t kind) { return kind < N_KINDS ? kinds[kind].size : 0; }
const char *mf_gguf_kind_name(uint32_t kind) { return kind < N_KINDS ? kinds[kind].name : "unknown"; }

bool mf_gguf_read_u32(mf_gguf_cursor *c, uint32_t *out) {
    if (mf_gguf_left(c) < sizeof *out) return false;
    memcpy(out, c->data + c->at, sizeof *out);
    c->at += sizeof *out;
    return true;
}

bool mf_gguf_read_u64(mf_gguf_cursor *c, uint64_t *out) {
    if (mf_gguf_left(c) < sizeof *out) return false;
    memcpy(out, c->data + c->at, sizeof *out);
    c->at += sizeof *out;
    return true;
}

bool mf_gguf_read_str(mf_gguf_cursor *c, mf_str *out) {
    uint64_t len;
    if (!mf_gguf_read_u64(c, &len) || len > mf_gguf_left(c)) return false;
    *out = (mf_str){(const char *)c->data + c->at, (size_t)len};
    c->at += (size_t)len;
    return true;
}

bool mf_gguf_check_name(mf_str name, size_t limit, const char *what, uint64_t i, mf_error *err) {
    size_t bad;
    const unsigned long long number = i;
    if (name.len == 0) return mf_fail(err, MF_ERR_FORMAT, "%s %llu has an empty name", what, number);
    if (name.len > limit)
        return mf_fail(err, MF_ERR_FORMAT, "%s %llu has a name of %zu bytes, at most %zu", what, number, name.len, limit);
    if (memchr(name.ptr, 0, name.len))
        return mf_fail(err, MF_ERR_FORMAT, "%s %llu has a NUL byte in its name '%.*s'", what, number, MF_GGUF_SHOWN(name));
    if (!mf_utf8_valid(name.ptr, name.len, &bad))
        return mf_fail(err, MF_ERR_FORMAT, "%s %llu has a name that is not UTF-8 at its byte %zu (0x%02x)", what, number,
                       bad, (unsigned char)name.ptr[bad]);
    return true;
}

static bool file_ends(mf_str key, const mf_gguf_cursor *c, mf_error *err) {
    return mf_fail(err, MF_ERR_FORMAT, "key '%.*s': the file ends inside its value (at byte %zu of %zu)", MF_GGUF_SHOWN(key),
                   c->at, c->size);
}

static bool skip_strings(mf_gguf_cursor *c, mf_str key, uint64_t count, mf_error *err) {
    for (uint64_t i = 0; i < count; i++) {
        uint64_t len;
        if (!mf_gguf_read_u64(c, &len)) return file_ends(key, c, err);
        if (len > mf_gguf_left(c))
            return mf_fail(err, MF_ERR_FORMAT, "key '%.*s': string %llu has %llu bytes, %zu are left in the file",
                           MF_GGUF_SHOWN(key), (unsigned long long)i, (unsigned long long)len, mf_gguf_left(c));
        c->at += (size_t)len;
    }
    return true;
}

static bool skip_scalars(mf_gguf_cursor *c, mf_str key, uint32_t kind, uint64_t count, mf_error *err) {
    const size_t size = mf_gguf_kind_size(kind);
    if (size == 0 || count > mf_gguf_left(c) / size)
        return mf_fail(err, MF_ERR_FORMAT, "key '%.*s': %llu values of kind %s, %zu bytes are left in the file",
                       MF_GGUF_SHOWN(key), (unsigned long long)count, mf_gguf_kind_name(kind), mf_gguf_left(c));
    if (kind == MF_GGUF_BOOL) {
        for (uint64_t i = 0; i < count; i++)
            if (c->data[c->at + i] > 1)
                return mf_fail(err, MF_ERR_FORMAT, "key '%.*s': a bool is %u, not 0 or 1", MF_GGUF_SHOWN(key),
                               c->data[c->at + i]);
    }
    c->at += (size_t)count * size;
    return true;
}

static bool skip_values(mf_gguf_cursor *c, mf_str key, uint32_t kind, uint64_t count, int depth, mf_error *err);

// An array's head: the kind and number of its elements.
static bool read_array_head(mf_gguf_cursor *c, mf_str key, uint32_t *item, uint64_t *count, mf_error *err) {
    if (!mf_gguf_read_u32(c, item) || !mf_gguf_read_u64(c, count)) return file_ends(key, c, err);
    if (*item >= N_KINDS)
        return mf_fail(err, MF_ERR_FORMAT, "key '%.*s': array elements of the unknown kind %u", MF_GGUF_SHOWN(key), *item);
    return true;
}

// Arrays in an array of nesting `depth`.
static bool skip_arrays(mf_gguf_cursor *c, mf_str key, uint64_t count, int depth, mf_error *err) {
    if (depth >= NESTING_LIMIT)
        return mf_fail(err, MF_ERR_LIMIT, "key '%.*s': arrays are nested deeper than %d", MF_GGUF_SHOWN(key), NESTING_LIMIT);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t item = 0;
        uint64_t inner = 0;
        if (!read_array_head(c, key, &item, &inner, err) || !skip_values(c, key, item, inner, depth + 1, err)) return false;
    }
    return true;
}

// Passes over `count` values; the file has to hold them all, so that the time is linear in its size.
static bool skip_values(mf_gguf_cursor *c, mf_str key, uint32_t kind, uint64_t count, int depth, mf_error *err) {
    if (kind == MF_GGUF_STRING) return skip_strings(c, key, count, err);
    if (kind == MF_GGUF_ARRAY) return skip_arrays(c, key, count, depth, err);
    return skip_scalars(c, key, kind, count, err);
}

static bool read_value(mf_gguf_cursor *c, uint64_t i, mf_gguf_value *value, mf_error *err) {
    if (!mf_gguf_read_str(c, &value->key))
        return mf_fail(err, MF_ERR_FORMAT, "the file ends inside key %llu (at byte %zu of %zu)", (unsigned long long)i,
                       c->at, c->size);
    const mf_str key = value->key;
    if (!mf_gguf_check_name(key, KEY_LIMIT, "key", i, err)) return false;
    uint32_t kind, item;
    if (!mf_gguf_read_u32(c, &kind)) return file_ends(key, c, err);
    if (kind >= N_KINDS)
        return mf_fail(err, MF_ERR_FORMAT, "key '%.*s': a value of the unknown kind %u", MF_GGUF_SHOWN(key), kind);
    item = kind;
    value->count = 1;
    if (kind == MF_GGUF_ARRAY && !read_array_head(c, key, &item, &value->count, err)) return false;
    value->kind = (mf_gguf_kind)kind;
    value->item = (mf_gguf_kind)item;
    value->data = c->data + c->at;
    const size_t start = c->at;
    if (!skip_values(c, key, item, value->count, kind == MF_GGUF_ARRAY ? 1 : 0, err)) return false;
    value->size = c->at - start;
    return true;
}

static bool read_magic(mf_gguf_cursor *c, mf_error *err) {
    if (c->size == 0) return mf_fail(err, MF_ERR_FORMAT, "the file is empty");
    if (c->size < 4 || memcmp(c->data, "GGUF", 4) != 0) {
        char hex[16] = "";
        for (size_t i = 0; i < 4 && i < c->size; i++) snprintf(hex + 3 * i, 4, " %02x", c->data[i]);
        if (c->size >= 4 && memcmp(c->data, "FUGG", 4) == 0)
            return mf_fail(err, MF_ERR_UNSUPPORTED,
                           "a big-endian GGUF file (its magic is 'FUGG'); only little-endian is read");
        return mf_fail(err, MF_ERR_FORMAT, "not a GGUF file: it starts with the bytes%s, not with 'GGUF'", hex);
    }
    c->at = 4;
    return true;
}

static bool read_header(mf_gguf_part *part, mf_gguf_cursor *c, mf_error *err) {
    if (!read_magic(c, err)) return false;
    if (c->size < HEADER_BYTES)
        return mf_fail(err, MF_ERR_FORMAT, "the file has %zu bytes, a GGUF header takes %d", c->size, HEADER_BYTES);
    (void)(mf_gguf_read_u32(c, &part->version) && mf_gguf_read_u64(c, &part->n_tensors) &&
           mf_gguf_read_u64(c, &part->n_values));
    if (part->version != 0 && (part->version & 0xffff) == 0)
        return mf_fail(err, MF_ERR_UNSUPPORTED,
                       "a big-endian GGUF file (its version field is 0x%08x); only little-endian is read", part->version);
    if (part->version != 2 && part->version != 3)
        return mf_fail(err, MF_ERR_UNSUPPORTED, "GGUF version %u; versions 2 and 3 are read", part->version);
    const size_t left = mf_gguf_left(c);
    if (part->n_values > COUNT_LIMIT || part->n_values > left / MIN_VALUE_BYTES)
        return mf_fail(err, MF_ERR_FORMAT, "%llu keys; the file of %zu bytes has room for %zu at most",
                       (unsigned long long)part->n_values, c->size,
                       left / MIN_VALUE_BYTES < COUNT_LIMIT ? left / MIN_VALUE_BYTES : COUNT_LIMIT);
    if (part->n_tensors > COUNT_LIMIT || part->n_tensors > left / MIN_TENSOR_BYTES)
        return mf_fail(err, MF_ERR_FORMAT, "%llu tensors; the file of %zu bytes has room for %zu at most",
                       (unsigned long long)part->n_tensors, c->size,
                       left / MIN_TENSOR_BYTES < COUNT_LIMIT ? left / MIN_TENSOR_BYTES : COUNT_LIMIT);
    return true;
}

static bool read_alignment(mf_gguf_part *part, mf_error *err) {
    static const char key[] = "general.alignment";
    part->alignment = DEFAULT_ALIGNMENT;
    const mf_gguf_value *value = mf_gguf_part_find(part, key);
    if (!value) return true;
    if (value->kind != MF_GGUF_U32)
        return mf_fail(err, MF_ERR_FORMAT, "key '%s' is of kind %s, not u32", key, mf_gguf_kind_name(value->kind));
    const uint32_t n = (uint32_t)mf_gguf_int_at(value, 0);
    if (n < MIN_ALIGNMENT || n > MAX_ALIGNMENT || (n & (n - 1)) != 0)
        return mf_fail(err, MF_ERR_FORMAT, "key '%s': %u is not a power of two from %d to %d", key, n, MIN_ALIGNMENT,
                       MAX_ALIGNMENT);
    part->alignment = n;
    return true;
}

bool mf_gguf_part_read_values(mf_gguf_part *part, mf_error *err) {
    mf_gguf_cursor c = {part->head, 0, part->head_size};
    if (!read_header(part, &c, err)) return false;
    for (uint64_t i = 0; i < part->n_values; i++) {
        mf_gguf_value value;
        if (!read_value(&c, i, &value, err)) return false;
        if (!mf_array_push(&part->values, value) || !mf_array_push(&part->keys, ((mf_gguf_name){value.key, (uint32_t)i})))
            return mf_fail_memory(err, (part->values.len + 1) * sizeof value, "the metadata index");
    }
    const mf_gguf_name *twice = mf_gguf_names_sort(&part->keys);
    if (twice) return mf_fail(err, MF_ERR_FORMAT, "key '%.*s' is there twice", MF_GGUF_SHOWN(twice->name));
    part->info_at = c.at;
    return read_alignment(part, err);
}

bool mf_gguf_part_copy_head(mf_gguf_part *part, mf_error *err) {
    size_t end;
    if (!mf_gguf_part_infos_end(part, &end)) return true; // refused when the tensors are read
    if (end > HEAD_LIMIT) return mf_fail(err, MF_ERR_LIMIT, "the metadata takes %zu bytes, at most %d", end, HEAD_LIMIT);
    part->copy = mf_alloc(end, 1);
    if (!part->copy) return mf_fail_memory(err, end, "the metadata");
    memcpy(part->copy, part->map.data, end);
    part->head = part->copy;
    part->head_size = end;
    part->values.len = part->keys.len = 0;
    mf_file_map_drop(&part->map, 0, end);
    return mf_gguf_part_read_values(part, err);
}

const mf_gguf_value *mf_gguf_part_find(const mf_gguf_part *part, const char *key) {
    uint32_t i;
    return mf_gguf_names_find(&part->keys, key, &i) ? &part->values.data[i] : NULL;
}

void mf_gguf_part_free(mf_gguf_part *part) {
    free(part->values.data);
    free(part->keys.data);
    free(part->path);
    free(part->copy);
    if (part->mapped) mf_file_map_close(&part->map);
    *part = (mf_gguf_part){0};
}
