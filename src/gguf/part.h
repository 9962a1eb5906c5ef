// One file of a model: a whole GGUF file, or a part of a split one. Internal to src/gguf.
#ifndef MF_GGUF_PART_H
#define MF_GGUF_PART_H

#include "base/array.h"
#include "base/file.h"
#include "gguf/gguf.h"

typedef mf_array(mf_gguf_value) mf_gguf_values;
typedef mf_array(mf_gguf_tensor) mf_gguf_tensors;

typedef struct mf_gguf_name {
    mf_str name;
    uint32_t index;
} mf_gguf_name;
typedef mf_array(mf_gguf_name) mf_gguf_names;

typedef struct mf_gguf_part {
    mf_file_map map; // its data and size also for bytes in memory
    bool mapped;     // the map is ours to close
    // Header, metadata and tensor infos: a copy that is ours, since what is mapped can change; of bytes in memory these themselves.
    const uint8_t *head;
    size_t head_size;
    uint8_t *copy; // NULL: none
    char *path;    // NULL of bytes in memory
    uint32_t version, alignment;
    size_t info_at; // offset of the tensor infos
    uint64_t n_values, n_tensors;
    mf_gguf_values values;
    mf_gguf_names keys; // sorted, with indices into values
} mf_gguf_part;

struct mf_gguf {
    mf_array(mf_gguf_part) parts; // in order; the first one's values are the file's
    mf_gguf_tensors tensors;      // of all parts
    mf_gguf_names names;          // sorted, with indices into tensors
    size_t size;
};

// A place in a file's bytes; reads stay in front of `size`.
typedef struct mf_gguf_cursor {
    const uint8_t *data;
    size_t at, size;
} mf_gguf_cursor;

static inline size_t mf_gguf_left(const mf_gguf_cursor *c) { return c->size - c->at; }

// Little-endian numbers; false at the end of the file.
bool mf_gguf_read_u32(mf_gguf_cursor *c, uint32_t *out);
bool mf_gguf_read_u64(mf_gguf_cursor *c, uint64_t *out);

// A length-prefixed string inside the file; false at its end.
bool mf_gguf_read_str(mf_gguf_cursor *c, mf_str *out);

// Reads header and metadata of part->head; on failure the part is the caller's to free all the same.
bool mf_gguf_part_read_values(mf_gguf_part *part, mf_error *err);

// Takes header, metadata and tensor infos of a mapped part into memory and reads the values again from there.
bool mf_gguf_part_copy_head(mf_gguf_part *part, mf_error *err);

// Where the part's tensor infos end; false where they are broken.
bool mf_gguf_part_infos_end(const mf_gguf_part *part, size_t *end);

// Appends the part's checked tensors to `tensors`, numbered as part `index`.
bool mf_gguf_part_read_tensors(const mf_gguf_part *part, uint32_t index, mf_gguf_tensors *tensors, mf_error *err);

const mf_gguf_value *mf_gguf_part_find(const mf_gguf_part *part, const char *key);

// mf_gguf_get_u32 on a part.
bool mf_gguf_part_get_u32(const mf_gguf_part *part, const char *key, uint32_t *out, mf_error *err);

void mf_gguf_part_free(mf_gguf_part *part);

// Sorts the index for mf_gguf_names_find. Returns the second of two equal names, if there are two.
const mf_gguf_name *mf_gguf_names_sort(mf_gguf_names *names);

// False when the name is absent. The index must be sorted.
bool mf_gguf_names_find(const mf_gguf_names *names, const char *name, uint32_t *index);

// The sizes of scalar kinds; 0 for strings, arrays and unknown kinds. The name of a kind ("u32"), or "unknown".
size_t mf_gguf_kind_size(uint32_t kind);
const char *mf_gguf_kind_name(uint32_t kind);

// A name as it goes into an error: its first bytes. Used as printf("%.*s", MF_GGUF_SHOWN(name)).
#define MF_GGUF_SHOWN(s) ((s).len > 96 ? 96 : (int)(s).len), (s).ptr

// A key or a tensor name: not empty, at most `limit` bytes, UTF-8 without NUL. `what` and `i` name it ("key", its number).
bool mf_gguf_check_name(mf_str name, size_t limit, const char *what, uint64_t i, mf_error *err);

// Whether the part belongs to a file of several.
bool mf_gguf_is_split(const mf_gguf_part *part, bool *split, mf_error *err);

// Opens the other parts of the split file of which one part is the only one in file->parts, and puts them in order.
bool mf_gguf_open_split(mf_gguf *file, mf_error *err);

// Maps the file as a further part and reads its values.
bool mf_gguf_add_part(mf_gguf *file, const char *path, mf_error *err);

#endif
