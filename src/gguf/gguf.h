// GGUF files (v2, v3, little-endian): the metadata and the tensor index, over a read-only map. Names and values are views of a copy of the
// file's head, tensors' data of the map; all live until mf_gguf_close. What a tensor is for is not known here.
#ifndef MF_GGUF_GGUF_H
#define MF_GGUF_GGUF_H

#include "base/error.h"
#include "base/hash128.h"
#include "base/text.h"
#include "quant/types.h"

typedef enum mf_gguf_kind { // GGUF's value type numbers
    MF_GGUF_U8 = 0,
    MF_GGUF_I8 = 1,
    MF_GGUF_U16 = 2,
    MF_GGUF_I16 = 3,
    MF_GGUF_U32 = 4,
    MF_GGUF_I32 = 5,
    MF_GGUF_F32 = 6,
    MF_GGUF_BOOL = 7,
    MF_GGUF_STRING = 8,
    MF_GGUF_ARRAY = 9,
    MF_GGUF_U64 = 10,
    MF_GGUF_I64 = 11,
    MF_GGUF_F64 = 12,
} mf_gguf_kind;

typedef struct mf_gguf_value {
    mf_str key;
    mf_gguf_kind kind;
    mf_gguf_kind item;   // of an array: the element kind
    uint64_t count;      // of an array: elements; else 1
    const uint8_t *data; // the first value's bytes in the file (of a string: its length field)
    size_t size;         // bytes of all the data
} mf_gguf_value;

typedef struct mf_gguf_tensor {
    mf_str name;
    mf_type type;
    uint32_t n_dims;
    uint64_t ne[4]; // ne[0] is the row length; unused ones are 1
    const uint8_t *data;
    size_t size;   // bytes
    uint32_t part; // of a split file: the part it is in
} mf_gguf_tensor;

typedef struct mf_gguf mf_gguf;

// Opens a file (any part of a split one: all parts are opened and merged) and checks all of it but the tensors' contents:
// see "Refusals" in docs/gguf.md. Everything is found in one pass; nothing is allocated by an unchecked number. NULL with err.
mf_gguf *mf_gguf_open(const char *path, mf_error *err);

// The same over bytes in memory (one part, not a split file), which must outlive it.
mf_gguf *mf_gguf_open_memory(const void *data, size_t size, mf_error *err);

void mf_gguf_close(mf_gguf *file); // NULL is fine

uint32_t mf_gguf_version(const mf_gguf *file);
size_t mf_gguf_file_size(const mf_gguf *file); // all parts together
uint32_t mf_gguf_alignment(const mf_gguf *file);
uint32_t mf_gguf_n_parts(const mf_gguf *file);

// A number for the files as they were when they were opened, from what the operating system says of them. False where there is none: bytes
// in memory, files that have changed since, and files that changed so lately that a further change might not show.
bool mf_gguf_stamp(const mf_gguf *file, mf_hash128 *out);

size_t mf_gguf_n_values(const mf_gguf *file);
const mf_gguf_value *mf_gguf_value_at(const mf_gguf *file, size_t i);
const mf_gguf_value *mf_gguf_find(const mf_gguf *file, const char *key); // NULL if absent

size_t mf_gguf_n_tensors(const mf_gguf *file);
const mf_gguf_tensor *mf_gguf_tensor_at(const mf_gguf *file, size_t i);
const mf_gguf_tensor *mf_gguf_find_tensor(const mf_gguf *file, const char *name); // NULL if absent

// Typed access. `get_*` leave *out alone and return true when the key is absent (so *out starts as the default);
// false with err when the key is there with another kind or does not fit. Any integer kind is taken where an integer is asked;
// any real kind (or integer) where a real is.
bool mf_gguf_get_u32(const mf_gguf *file, const char *key, uint32_t *out, mf_error *err);
bool mf_gguf_get_f32(const mf_gguf *file, const char *key, float *out, mf_error *err);
bool mf_gguf_get_bool(const mf_gguf *file, const char *key, bool *out, mf_error *err);
bool mf_gguf_get_str(const mf_gguf *file, const char *key, mf_str *out, mf_error *err);

// An array of `item` elements: NULL with *err untouched when the key is absent, NULL with err set (code != MF_OK) when it is
// something else.
const mf_gguf_value *mf_gguf_get_array(const mf_gguf *file, const char *key, mf_gguf_kind item, mf_error *err);

// Element i of an array of numbers, or a scalar with i = 0. The index is in range by the caller's word.
int64_t mf_gguf_int_at(const mf_gguf_value *value, uint64_t i);
double mf_gguf_real_at(const mf_gguf_value *value, uint64_t i);

// Walks the strings of an array of strings in order: start with offset 0.
//     for (size_t off = 0, i = 0; i < v->count; i++) { mf_str s = mf_gguf_next_string(v, &off); … }
mf_str mf_gguf_next_string(const mf_gguf_value *value, size_t *offset);

// False with err when one of the files was written to or cut since it was opened. A read of data behind a file's new end raises SIGBUS.
bool mf_gguf_check_files(const mf_gguf *file, mf_error *err);

// Tells the kernel that a tensor's mapped pages are not needed (after its weights were repacked).
void mf_gguf_drop(const mf_gguf *file, const mf_gguf_tensor *tensor);

#endif
