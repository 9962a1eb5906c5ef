// Opening files and looking things up in them.
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "gguf/part.h"

// The sentence about a part, with its file in front.
static bool fail_in(const mf_gguf_part *part, mf_error *err) {
    return part->path ? mf_fail_prefix(err, "%.300s", part->path) : false;
}

bool mf_gguf_add_part(mf_gguf *file, const char *path, mf_error *err) {
    mf_gguf_part part = {.path = mf_copy_text(path, strlen(path))};
    if (!part.path) return mf_fail_memory(err, strlen(path) + 1, "a file name");
    part.mapped = mf_file_map_open(&part.map, path, err);
    part.head = part.map.data;
    part.head_size = part.map.size;
    bool ok =
        part.mapped && ((mf_gguf_part_read_values(&part, err) && mf_gguf_part_copy_head(&part, err)) || fail_in(&part, err));
    if (ok && !mf_array_push(&file->parts, part)) ok = mf_fail_memory(err, sizeof part, "the list of parts");
    if (!ok) mf_gguf_part_free(&part);
    return ok;
}

// Reads the tensors of all parts and indexes them by name.
static bool index_tensors(mf_gguf *file, mf_error *err) {
    for (size_t i = 0; i < file->parts.len; i++) {
        const mf_gguf_part *part = &file->parts.data[i];
        if (!mf_gguf_part_read_tensors(part, (uint32_t)i, &file->tensors, err)) return fail_in(part, err);
        file->size += part->map.size;
    }
    for (size_t i = 0; i < file->tensors.len; i++) {
        const mf_gguf_tensor *t = &file->tensors.data[i];
        if (!mf_array_push(&file->names, ((mf_gguf_name){t->name, (uint32_t)i})))
            return mf_fail_memory(err, file->tensors.len * sizeof *t, "the tensor index");
    }
    const mf_gguf_name *twice = mf_gguf_names_sort(&file->names);
    if (!twice) return true;
    mf_fail(err, MF_ERR_FORMAT, "tensor '%.*s' is there twice", MF_GGUF_SHOWN(twice->name));
    return fail_in(&file->parts.data[file->tensors.data[twice->index].part], err);
}

// What a split file says about its tensors, against what its parts hold.
static bool check_split_total(const mf_gguf *file, mf_error *err) {
    uint32_t total = 0;
    if (!mf_gguf_get_u32(file, "split.tensors.count", &total, err)) return false;
    if (total == file->tensors.len) return true;
    mf_fail(err, MF_ERR_FORMAT, "key 'split.tensors.count' is %u, the %zu parts hold %zu tensors", total, file->parts.len,
            file->tensors.len);
    return fail_in(&file->parts.data[0], err);
}

static bool open_all(mf_gguf *file, const char *path, mf_error *err) {
    bool split;
    if (!mf_gguf_add_part(file, path, err)) return false;
    if (!mf_gguf_is_split(&file->parts.data[0], &split, err)) return fail_in(&file->parts.data[0], err);
    if (split && !mf_gguf_open_split(file, err)) return false;
    return index_tensors(file, err) && (!split || check_split_total(file, err));
}

static bool open_bytes(mf_gguf *file, const void *data, size_t size, mf_error *err) {
    bool split;
    if (!mf_array_push(&file->parts, ((mf_gguf_part){.map = {.data = data, .size = size}, .head = data, .head_size = size})))
        return mf_fail_memory(err, sizeof(mf_gguf_part), "the list of parts");
    mf_gguf_part *part = &file->parts.data[0];
    if (!mf_gguf_part_read_values(part, err) || !mf_gguf_is_split(part, &split, err)) return false;
    if (split)
        return mf_fail(err, MF_ERR_UNSUPPORTED, "a part of a split file in memory; split files are opened by their path");
    return index_tensors(file, err);
}

mf_gguf *mf_gguf_open(const char *path, mf_error *err) {
    mf_gguf *file = mf_alloc(1, sizeof *file);
    if (!file) return mf_fail_memory(err, sizeof *file, "a GGUF file"), NULL;
    if (open_all(file, path, err)) return file;
    mf_gguf_close(file);
    return NULL;
}

mf_gguf *mf_gguf_open_memory(const void *data, size_t size, mf_error *err) {
    mf_gguf *file = mf_alloc(1, sizeof *file);
    if (!file) return mf_fail_memory(err, sizeof *file, "a GGUF file"), NULL;
    if (open_bytes(file, data, size, err)) return file;
    mf_gguf_close(file);
    return NULL;
}

void mf_gguf_close(mf_gguf *file) {
    if (!file) return;
    for (size_t i = 0; i < file->parts.len; i++) mf_gguf_part_free(&file->parts.data[i]);
    free(file->parts.data);
    free(file->tensors.data);
    free(file->names.data);
    free(file);
}

uint32_t mf_gguf_version(const mf_gguf *file) { return file->parts.data[0].version; }
size_t mf_gguf_file_size(const mf_gguf *file) { return file->size; }
uint32_t mf_gguf_alignment(const mf_gguf *file) { return file->parts.data[0].alignment; }
uint32_t mf_gguf_n_parts(const mf_gguf *file) { return (uint32_t)file->parts.len; }

// A second change within the clock's grain does not show; some file systems keep whole seconds only.
#define SETTLED_NS INT64_C(2000000000)

static bool unchanged(const mf_gguf_part *part) {
    const mf_file_stamp *then = &part->map.stamp;
    mf_file_stamp now;
    int64_t latest = then->modified > then->changed ? then->modified : then->changed;
    return part->mapped && mf_file_stamp_of(part->path, &now) && memcmp(&now, then, sizeof now) == 0 &&
           mf_clock_since_1970() - latest > SETTLED_NS;
}

bool mf_gguf_stamp(const mf_gguf *file, mf_hash128 *out) {
    mf_hash128 all[2] = {{{0}}};
    for (size_t i = 0; i < file->parts.len; i++) {
        const mf_gguf_part *part = &file->parts.data[i];
        if (!unchanged(part)) return false;
        all[1] = mf_hash128_of(&part->map.stamp, sizeof part->map.stamp, 0);
        all[0] = mf_hash128_of(all, sizeof all, 0);
    }
    *out = all[0];
    return true;
}

size_t mf_gguf_n_values(const mf_gguf *file) { return file->parts.data[0].values.len; }
const mf_gguf_value *mf_gguf_value_at(const mf_gguf *file, size_t i) { return &file->parts.data[0].values.data[i]; }
const mf_gguf_value *mf_gguf_find(const mf_gguf *file, const char *key) {
    return mf_gguf_part_find(&file->parts.data[0], key);
}

size_t mf_gguf_n_tensors(const mf_gguf *file) { return file->tensors.len; }
const mf_gguf_tensor *mf_gguf_tensor_at(const mf_gguf *file, size_t i) { return &file->tensors.data[i]; }
const mf_gguf_tensor *mf_gguf_find_tensor(const mf_gguf *file, const char *name) {
    uint32_t i;
    return mf_gguf_names_find(&file->names, name, &i) ? &file->tensors.data[i] : NULL;
}

bool mf_gguf_check_files(const mf_gguf *file, mf_error *err) {
    for (size_t i = 0; i < file->parts.len; i++)
        if (!mf_file_map_check(&file->parts.data[i].map, err)) return false;
    return true;
}

void mf_gguf_drop(const mf_gguf *file, const mf_gguf_tensor *tensor) {
    const mf_gguf_part *part = &file->parts.data[tensor->part];
    if (part->mapped) mf_file_map_drop(&part->map, (size_t)(tensor->data - part->map.data), tensor->size);
}
