// Touches everything that an opened GGUF file hands out. For the fuzz target and the mutation test.
#ifndef MF_TESTS_GGUFWALK_H
#define MF_TESTS_GGUFWALK_H

#include <stdlib.h>

#include "gguf/gguf.h"

// Sums bytes, so that reads outside the file are seen by a sanitizer.
static inline uint64_t ggufwalk_bytes(const void *data, size_t size) {
    uint64_t sum = 0;
    for (size_t i = 0; i < size; i++) sum += ((const uint8_t *)data)[i];
    return sum;
}

static inline uint64_t ggufwalk_value(const mf_gguf *file, const mf_gguf_value *v) {
    mf_error err;
    uint64_t sum = ggufwalk_bytes(v->key.ptr, v->key.len) + ggufwalk_bytes(v->data, v->size);
    const mf_gguf_kind kind = v->kind == MF_GGUF_ARRAY ? v->item : v->kind;
    size_t offset = 0;
    for (uint64_t i = 0; i < v->count; i++) {
        if (kind == MF_GGUF_STRING) {
            const mf_str s = mf_gguf_next_string(v, &offset);
            sum += ggufwalk_bytes(s.ptr, s.len);
        } else if (kind != MF_GGUF_ARRAY) {
            sum += (uint64_t)mf_gguf_int_at(v, i) + (mf_gguf_real_at(v, i) > 0);
        }
    }
    char *key = malloc(v->key.len + 1);
    if (!key) return sum;
    memcpy(key, v->key.ptr, v->key.len);
    key[v->key.len] = 0;
    if (mf_gguf_find(file, key) != v) abort();
    uint32_t u = 0;
    float f = 0;
    bool b = false;
    mf_str s = {"", 0};
    sum += mf_gguf_get_u32(file, key, &u, &err) + u;
    sum += mf_gguf_get_f32(file, key, &f, &err) + (f > 0);
    sum += mf_gguf_get_bool(file, key, &b, &err) + b;
    sum += mf_gguf_get_str(file, key, &s, &err) + ggufwalk_bytes(s.ptr, s.len);
    sum += mf_gguf_get_array(file, key, MF_GGUF_STRING, &err) != NULL;
    free(key);
    return sum;
}

static inline uint64_t ggufwalk_tensor(const mf_gguf *file, const mf_gguf_tensor *t) {
    uint64_t sum = ggufwalk_bytes(t->name.ptr, t->name.len) + ggufwalk_bytes(t->data, t->size);
    const mf_type_info *info = mf_type_info_of(t->type);
    if (!info) abort();
    if (info->decode) {
        float block[256];
        info->decode(t->data, block, info->block_len);
        sum += block[0] > 0;
    }
    mf_gguf_drop(file, t);
    return sum + t->ne[0] + t->ne[3];
}

static inline void ggufwalk(const mf_gguf *file) {
    uint64_t sum = mf_gguf_version(file) + mf_gguf_alignment(file) + mf_gguf_n_parts(file) + mf_gguf_file_size(file);
    for (size_t i = 0; i < mf_gguf_n_values(file); i++) sum += ggufwalk_value(file, mf_gguf_value_at(file, i));
    for (size_t i = 0; i < mf_gguf_n_tensors(file); i++) sum += ggufwalk_tensor(file, mf_gguf_tensor_at(file, i));
    sum += mf_gguf_find_tensor(file, "no such tensor") != NULL;
    volatile uint64_t kept = sum; // so that no read is left out
    (void)kept;
}

#endif
