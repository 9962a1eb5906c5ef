// JSON texts: what is accepted is written and read again, and must be written the same the second time.
#include "base/json.h"

#include <stdlib.h>

static void write_value(mf_json_writer *w, const mf_json *v) {
    double real;
    int64_t integer;
    if (v->kind == MF_JSON_NULL) mf_json_null(w);
    if (v->kind == MF_JSON_BOOL) mf_json_bool(w, v->boolean);
    if (v->kind == MF_JSON_STRING) mf_json_string(w, v->text);
    if (v->kind == MF_JSON_NUMBER) {
        if (mf_json_i64(v, &integer) && integer != 0) { // "-0" is a real's own zero
            mf_json_int(w, integer);
        } else {
            mf_json_real(w, mf_json_f64(v, &real) ? real : 0);
        }
    }
    if (v->kind != MF_JSON_ARRAY && v->kind != MF_JSON_OBJECT) return;
    mf_json_begin(w, v->kind == MF_JSON_ARRAY ? '[' : '{');
    for (const mf_json *m = v->child; m; m = m->next) {
        if (v->kind == MF_JSON_OBJECT) mf_json_key_str(w, m->key);
        write_value(w, m);
    }
    mf_json_end(w, v->kind == MF_JSON_ARRAY ? ']' : '}');
}

static mf_buf written(const mf_json *value, int indent) {
    mf_buf out = {0};
    mf_json_writer w = {.out = &out, .indent = indent};
    write_value(&w, value);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    mf_arena arena = {.limit = 64u << 20};
    mf_error err;
    mf_json *value = mf_json_parse(&arena, (mf_str){(const char *)data, size}, &err);
    if (value) {
        mf_buf first = written(value, size % 3);
        mf_json *again = mf_json_parse(&arena, (mf_str){first.data, first.len}, &err);
        if (!again && err.code != MF_ERR_MEMORY) abort();
        if (again) {
            mf_buf second = written(again, size % 3);
            if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0) abort();
            free(second.data);
        }
        free(first.data);
    }
    mf_arena_free(&arena);
    return 0;
}
