// Copies of an open GGUF file's keys and tensors into a file to be written, for tests.
#ifndef MF_TESTS_GGUFCOPY_H
#define MF_TESTS_GGUFCOPY_H

#include <stdio.h>

#include "gguf/gguf.h"
#include "support/ggufgen.h"

static inline void ggufcopy_value(ggufgen *g, const mf_gguf_value *v) {
    if (v->kind == MF_GGUF_ARRAY) {
        const uint32_t item = v->item;
        ggufgen_value(g, v->key, MF_GGUF_ARRAY, &item, sizeof item);
        mf_buf_add(&g->values, &v->count, sizeof v->count);
        mf_buf_add(&g->values, v->data, v->size);
    } else {
        ggufgen_value(g, v->key, v->kind, v->data, v->size);
    }
}

static inline void ggufcopy_values(ggufgen *g, const mf_gguf *file) {
    for (size_t i = 0; i < mf_gguf_n_values(file); i++) ggufcopy_value(g, mf_gguf_value_at(file, i));
}

static inline void ggufcopy_tensor(ggufgen *g, const mf_gguf_tensor *t) {
    char name[257];
    snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.ptr);
    ggufgen_tensor(g, name, t->type, t->n_dims, t->ne, t->data, t->size);
}

static inline void ggufcopy_tensors(ggufgen *g, const mf_gguf *file) {
    for (size_t i = 0; i < mf_gguf_n_tensors(file); i++) ggufcopy_tensor(g, mf_gguf_tensor_at(file, i));
}

#endif
