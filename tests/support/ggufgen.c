#include "support/ggufgen.h"

#include <stdio.h>
#include <stdlib.h>

static void add_u32(mf_buf *b, uint32_t n) { mf_buf_add(b, &n, sizeof n); }
static void add_u64(mf_buf *b, uint64_t n) { mf_buf_add(b, &n, sizeof n); }

static void add_str(mf_buf *b, mf_str s) {
    add_u64(b, s.len);
    mf_buf_add(b, s.ptr, s.len);
}

static void pad(mf_buf *b, size_t align) {
    while (b->len % align != 0) mf_buf_char(b, 0);
}

void ggufgen_init(ggufgen *g) { *g = (ggufgen){.version = 3, .alignment = 32}; }

void ggufgen_free(ggufgen *g) {
    free(g->values.data);
    free(g->infos.data);
    free(g->data.data);
    *g = (ggufgen){0};
}

void ggufgen_value(ggufgen *g, mf_str key, uint32_t kind, const void *bytes, size_t size) {
    add_str(&g->values, key);
    add_u32(&g->values, kind);
    mf_buf_add(&g->values, bytes, size);
    g->n_values++;
}

void ggufgen_u32(ggufgen *g, const char *key, uint32_t value) { ggufgen_value(g, mf_str_of(key), 4, &value, sizeof value); }
void ggufgen_f32(ggufgen *g, const char *key, float value) { ggufgen_value(g, mf_str_of(key), 6, &value, sizeof value); }

void ggufgen_bool(ggufgen *g, const char *key, bool value) {
    const uint8_t byte = value;
    ggufgen_value(g, mf_str_of(key), 7, &byte, 1);
}

void ggufgen_str(ggufgen *g, const char *key, const char *value) {
    ggufgen_value(g, mf_str_of(key), 8, NULL, 0);
    add_str(&g->values, mf_str_of(value));
}

void ggufgen_array(ggufgen *g, const char *key, uint32_t item, uint64_t count, const void *bytes, size_t size) {
    ggufgen_value(g, mf_str_of(key), 9, &item, sizeof item);
    add_u64(&g->values, count);
    mf_buf_add(&g->values, bytes, size);
}

void ggufgen_strings(ggufgen *g, const char *key, const char *const *strings, size_t count) {
    ggufgen_array(g, key, 8, count, NULL, 0);
    for (size_t i = 0; i < count; i++) add_str(&g->values, mf_str_of(strings[i]));
}

static void add_info(ggufgen *g, mf_str name, uint32_t type, uint32_t n_dims, const uint64_t *ne, uint64_t offset) {
    add_str(&g->infos, name);
    add_u32(&g->infos, n_dims);
    for (uint32_t d = 0; d < n_dims; d++) add_u64(&g->infos, ne[d]);
    add_u32(&g->infos, type);
    add_u64(&g->infos, offset);
    g->n_tensors++;
}

void ggufgen_tensor(ggufgen *g, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *ne, const void *bytes,
                    size_t size) {
    pad(&g->data, g->alignment);
    add_info(g, mf_str_of(name), type, n_dims, ne, g->data.len);
    mf_buf_add(&g->data, bytes, size);
}

void ggufgen_info(ggufgen *g, mf_str name, uint32_t type, uint32_t n_dims, const uint64_t *ne, uint64_t offset,
                  size_t size) {
    add_info(g, name, type, n_dims, ne, offset);
    for (size_t i = 0; i < size; i++) mf_buf_char(&g->data, 0);
}

uint8_t *ggufgen_finish(const ggufgen *g, size_t *size) {
    mf_buf file = {0};
    mf_buf_add(&file, "GGUF", 4);
    add_u32(&file, g->version);
    add_u64(&file, g->n_tensors);
    add_u64(&file, g->n_values);
    if (g->values.len) mf_buf_add(&file, g->values.data, g->values.len);
    if (g->infos.len) mf_buf_add(&file, g->infos.data, g->infos.len);
    if (g->n_tensors) pad(&file, g->alignment);
    if (g->data.len) mf_buf_add(&file, g->data.data, g->data.len);
    if (file.failed || g->values.failed || g->infos.failed || g->data.failed) {
        fprintf(stderr, "ggufgen: out of memory\n");
        exit(1);
    }
    *size = file.len;
    return (uint8_t *)file.data;
}

void ggufgen_write(const ggufgen *g, const char *path) {
    size_t size;
    uint8_t *data = ggufgen_finish(g, &size);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file) != 0) {
        fprintf(stderr, "ggufgen: cannot write %s\n", path);
        exit(1);
    }
    free(data);
}
