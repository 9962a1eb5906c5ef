// Small models with random weights of any type, in memory, for tests. The same seed gives the same bytes on every machine.
#ifndef MF_TESTS_TINYMODEL_H
#define MF_TESTS_TINYMODEL_H

#include "gguf/gguf.h"

enum {
    TINYMODEL_VOCAB = 320,
    TINYMODEL_EMBD = 256,
    TINYMODEL_LAYERS = 2
};

typedef struct tinymodel {
    const char *arch;     // "llama", "qwen2", "qwen3" (with heads of 64 channels, the others 32)
    const mf_type *types; // of the layers' matrices, in turn
    size_t n_types;
    mf_type embd, head;
    bool tied;       // no head of its own
    mf_type vectors; // F32, F16, BF16
    uint64_t seed;
} tinymodel;

// Every type that weights can have.
extern const mf_type tinymodel_types[];
extern const size_t tinymodel_n_types;

// The file, freed with free().
uint8_t *tinymodel_make(const tinymodel *m, size_t *size);

// The same file with every tensor decoded to F32.
uint8_t *tinymodel_floats(const mf_gguf *file, size_t *size);

// Doubles the scale of every `every`th block of a tensor in a file that is being read; the tensor is of a quantized type.
void tinymodel_damage(const mf_gguf *file, const char *tensor, size_t every);

#endif
