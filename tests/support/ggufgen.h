// A small writer of GGUF files in memory, for tests. It checks nothing, so that broken files can be made too.
#ifndef MF_TESTS_GGUFGEN_H
#define MF_TESTS_GGUFGEN_H

#include "base/text.h"

typedef struct ggufgen {
    uint32_t version, alignment; // change them before the first tensor; another alignment than 32 needs its key added
    uint64_t n_values, n_tensors;
    mf_buf values, infos, data;
} ggufgen;

void ggufgen_init(ggufgen *g); // version 3, alignment 32
void ggufgen_free(ggufgen *g);

// A key and a value of any kind from raw bytes; the named kinds below are made of it.
void ggufgen_value(ggufgen *g, mf_str key, uint32_t kind, const void *bytes, size_t size);
void ggufgen_u32(ggufgen *g, const char *key, uint32_t value);
void ggufgen_f32(ggufgen *g, const char *key, float value);
void ggufgen_bool(ggufgen *g, const char *key, bool value);
void ggufgen_str(ggufgen *g, const char *key, const char *value);

// An array of `count` elements from their raw bytes; an array of strings.
void ggufgen_array(ggufgen *g, const char *key, uint32_t item, uint64_t count, const void *bytes, size_t size);
void ggufgen_strings(ggufgen *g, const char *key, const char *const *strings, size_t count);

// A tensor whose data is `size` bytes, put behind the others on the next aligned offset.
void ggufgen_tensor(ggufgen *g, const char *name, uint32_t type, uint32_t n_dims, const uint64_t *ne, const void *bytes,
                    size_t size);

// A tensor info alone, with the offset as it is given; data of `size` zero bytes is appended.
void ggufgen_info(ggufgen *g, mf_str name, uint32_t type, uint32_t n_dims, const uint64_t *ne, uint64_t offset, size_t size);

// The whole file, freed with free(). The writer stays as it is, so more can be added.
uint8_t *ggufgen_finish(const ggufgen *g, size_t *size);

// Writes the file; exits the program on failure.
void ggufgen_write(const ggufgen *g, const char *path);

#endif
