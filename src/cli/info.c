#include "cli/info.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"

#define FIRST_ITEMS 6  // of an array that is cut
#define STRING_MOST 76 // bytes of a string that is cut

static const char *const kind_names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                         "bool", "string", "array", "u64", "i64", "f64"};

static bool is_real(mf_gguf_kind kind) { return kind == MF_GGUF_F32 || kind == MF_GGUF_F64; }

static void add_quoted(mf_buf *out, mf_str text) {
    bool cut = text.len > STRING_MOST;
    if (cut) text.len = STRING_MOST - mf_utf8_incomplete_tail(text.ptr, STRING_MOST);
    mf_buf_shown(out, text, true);
    if (cut) mf_buf_text(out, "…");
}

// Element i of u64 values, all of which fit here.
static uint64_t u64_at(const mf_gguf_value *v, uint64_t i) {
    uint64_t value;
    memcpy(&value, v->data + i * sizeof value, sizeof value);
    return value;
}

static void add_number(mf_buf *out, const mf_gguf_value *v, mf_gguf_kind kind, uint64_t i) {
    if (is_real(kind))
        mf_buf_printf(out, "%g", mf_gguf_real_at(v, i));
    else if (kind == MF_GGUF_BOOL)
        mf_buf_text(out, mf_gguf_int_at(v, i) ? "true" : "false");
    else if (kind == MF_GGUF_U64)
        mf_buf_printf(out, "%" PRIu64, u64_at(v, i));
    else
        mf_buf_printf(out, "%" PRId64, mf_gguf_int_at(v, i));
}

void mf_info_value_text(const mf_gguf_value *v, mf_buf *out) {
    size_t offset = 0;
    if (v->kind == MF_GGUF_STRING) {
        add_quoted(out, mf_gguf_next_string(v, &offset));
        return;
    }
    if (v->kind != MF_GGUF_ARRAY) {
        add_number(out, v, v->kind, 0);
        return;
    }
    mf_buf_char(out, '[');
    uint64_t n = v->item == MF_GGUF_ARRAY ? 0 : v->count < FIRST_ITEMS ? v->count : FIRST_ITEMS;
    for (uint64_t i = 0; i < n; i++) {
        if (i) mf_buf_text(out, ", ");
        if (v->item == MF_GGUF_STRING)
            add_quoted(out, mf_gguf_next_string(v, &offset));
        else
            add_number(out, v, v->item, i);
    }
    mf_buf_text(out, n < v->count ? (n ? ", …]" : "…]") : "]");
    if (n < v->count) mf_buf_printf(out, " (%" PRIu64 " of %s)", v->count, kind_names[v->item]);
}

static void json_item(mf_json_writer *w, const mf_gguf_value *v, mf_gguf_kind kind, uint64_t i, size_t *offset) {
    if (kind == MF_GGUF_STRING)
        mf_json_string(w, mf_gguf_next_string(v, offset));
    else if (is_real(kind))
        mf_json_real(w, mf_gguf_real_at(v, i));
    else if (kind == MF_GGUF_U64 && u64_at(v, i) > INT64_MAX)
        mf_json_real(w, (double)u64_at(v, i));
    else if (kind == MF_GGUF_BOOL)
        mf_json_bool(w, mf_gguf_int_at(v, i) != 0);
    else
        mf_json_int(w, mf_gguf_int_at(v, i));
}

void mf_info_value_json(const mf_gguf_value *v, mf_json_writer *w) {
    size_t offset = 0;
    if (v->kind != MF_GGUF_ARRAY) {
        json_item(w, v, v->kind, 0, &offset);
        return;
    }
    mf_json_begin(w, '{');
    mf_json_add_text(w, "item", kind_names[v->item]);
    mf_json_add_int(w, "count", (int64_t)v->count);
    mf_json_key(w, "first");
    mf_json_begin(w, '[');
    for (uint64_t i = 0; v->item != MF_GGUF_ARRAY && i < v->count && i < FIRST_ITEMS; i++)
        json_item(w, v, v->item, i, &offset);
    mf_json_end(w, ']');
    mf_json_end(w, '}');
}

bool mf_info_is_key_tensor(const mf_gguf_tensor *t) {
    return !mf_str_starts(t->name, MF_STR("blk.")) || mf_str_starts(t->name, MF_STR("blk.0."));
}

void mf_info_shape_text(const mf_gguf_tensor *t, mf_buf *out) {
    for (uint32_t d = 0; d < t->n_dims; d++) mf_buf_printf(out, "%s%" PRIu64, d ? " x " : "", t->ne[d]);
}

static void log_tensors(const mf_gguf *file) {
    for (size_t i = 0; i < mf_gguf_n_tensors(file); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(file, i);
        mf_buf shape = {0};
        if (!mf_info_is_key_tensor(t)) continue;
        mf_info_shape_text(t, &shape);
        mf_log(MF_LOG_NOTICE, "tensor %.*s: %s, %s", (int)t->name.len, t->name.ptr, mf_type_name(t->type),
               shape.data ? shape.data : "");
        free(shape.data);
    }
}

void mf_info_log_metadata(const mf_gguf *file) {
    for (size_t i = 0; i < mf_gguf_n_values(file); i++) {
        const mf_gguf_value *v = mf_gguf_value_at(file, i);
        mf_buf text = {0};
        mf_info_value_text(v, &text);
        mf_log(MF_LOG_NOTICE, "%.*s = %s", (int)v->key.len, v->key.ptr, text.data ? text.data : "");
        free(text.data);
    }
    log_tensors(file);
}

uint64_t mf_info_parameters(const mf_gguf *file) {
    uint64_t sum = 0;
    for (size_t i = 0; i < mf_gguf_n_tensors(file); i++) {
        const uint64_t *ne = mf_gguf_tensor_at(file, i)->ne;
        sum += ne[0] * ne[1] * ne[2] * ne[3];
    }
    return sum;
}

const char *mf_info_main_type(const mf_gguf *file) {
    uint64_t bytes[MF_TYPE_LIMIT] = {0};
    uint32_t most = 0;
    for (size_t i = 0; i < mf_gguf_n_tensors(file); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(file, i);
        bytes[t->type % MF_TYPE_LIMIT] += t->size;
        if (bytes[t->type % MF_TYPE_LIMIT] > bytes[most]) most = t->type % MF_TYPE_LIMIT;
    }
    return mf_type_name(most);
}
