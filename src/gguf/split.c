// Split files: NAME-00001-of-00003.gguf and its fellows.
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "gguf/part.h"

// What a part says about itself.
typedef struct split_info {
    uint32_t no, count, tensors; // no counts from 0
} split_info;

bool mf_gguf_is_split(const mf_gguf_part *part, bool *split, mf_error *err) {
    uint32_t count = 0;
    if (!mf_gguf_part_get_u32(part, "split.count", &count, err)) return false;
    *split = count > 1; // merging tools leave a 0 behind
    return true;
}

static bool read_split_info(const mf_gguf_part *part, split_info *info, mf_error *err) {
    const struct {
        const char *key;
        uint32_t *out;
    } fields[] = {{"split.no", &info->no}, {"split.count", &info->count}, {"split.tensors.count", &info->tensors}};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!mf_gguf_part_find(part, fields[i].key)) {
            mf_fail(err, MF_ERR_FORMAT, "key '%s' is missing from this part of a split file", fields[i].key);
            return mf_fail_prefix(err, "%.300s", part->path);
        }
        if (!mf_gguf_part_get_u32(part, fields[i].key, fields[i].out, err)) return mf_fail_prefix(err, "%.300s", part->path);
    }
    return true;
}

// The name of part `no` (from 0) of `count` into a buffer of the length of `path`, from which the stem is taken.
static bool part_path(const char *path, size_t stem, uint32_t no, uint32_t count, char *out, size_t size) {
    const int n = snprintf(out, size, "%.*s-%05u-of-%05u.gguf", (int)stem, path, no + 1, count);
    return n > 0 && (size_t)n < size;
}

static bool same_architecture(const mf_gguf_part *a, const mf_gguf_part *b) {
    const mf_gguf_value *x = mf_gguf_part_find(a, "general.architecture"), *y = mf_gguf_part_find(b, "general.architecture");
    if (!x || !y) return true;
    return x->kind == y->kind && x->size == y->size && memcmp(x->data, y->data, x->size) == 0;
}

// Part `no` was just opened beside the given one: whether it is the one that its name says.
static bool check_fellow(const mf_gguf *file, uint32_t no, const split_info *given, mf_error *err) {
    const mf_gguf_part *first = &file->parts.data[0], *part = &file->parts.data[file->parts.len - 1];
    split_info info;
    if (!read_split_info(part, &info, err)) return false;
    if (info.count != given->count)
        mf_fail(err, MF_ERR_FORMAT, "a foreign part: it is of %u parts ('split.count'), %.200s of %u", info.count,
                first->path, given->count);
    else if (info.no != no)
        mf_fail(err, MF_ERR_FORMAT, "a repeated or misnamed part: its name says part %u, 'split.no' says %u", no + 1,
                info.no + 1);
    else if (info.tensors != given->tensors)
        mf_fail(err, MF_ERR_FORMAT, "a foreign part: it is of %u tensors in all ('split.tensors.count'), %.200s of %u",
                info.tensors, first->path, given->tensors);
    else if (!same_architecture(first, part))
        mf_fail(err, MF_ERR_FORMAT, "a foreign part: its 'general.architecture' is not that of %.200s", first->path);
    else
        return true;
    return mf_fail_prefix(err, "%.300s", part->path);
}

// Opens the fellows of the given part in their order, behind it.
static bool open_fellows(mf_gguf *file, const split_info *given, size_t stem, char *name, size_t size, mf_error *err) {
    for (uint32_t no = 0; no < given->count; no++) {
        if (no == given->no) continue;
        part_path(file->parts.data[0].path, stem, no, given->count, name, size);
        if (!mf_gguf_add_part(file, name, err)) return mf_fail_prefix(err, "part %u of %u", no + 1, given->count);
        if (!check_fellow(file, no, given, err)) return false;
    }
    return true;
}

bool mf_gguf_open_split(mf_gguf *file, mf_error *err) {
    const char *path = file->parts.data[0].path;
    split_info given;
    if (!read_split_info(&file->parts.data[0], &given, err)) return false;
    if (given.no >= given.count || given.count > 99999)
        return mf_fail(err, MF_ERR_FORMAT, "%.300s: 'split.no' is %u with a 'split.count' of %u", path, given.no,
                       given.count);
    static const char tail[] = "-00001-of-00001.gguf";
    const size_t len = strlen(path), stem = len > sizeof tail - 1 ? len - (sizeof tail - 1) : 0;
    char *name = mf_alloc(len + sizeof tail, 1);
    if (!name) return mf_fail_memory(err, len + sizeof tail, "a file name");
    bool ok = part_path(path, stem, given.no, given.count, name, len + sizeof tail);
    if (!ok || strcmp(name, path) != 0)
        ok = mf_fail(err, MF_ERR_FORMAT, "%.300s: part %u of a split file of %u must be named like NAME-%05u-of-%05u.gguf",
                     path, given.no + 1, given.count, given.no + 1, given.count);
    ok = ok && open_fellows(file, &given, stem, name, len + sizeof tail, err);
    free(name);
    if (!ok) return false;
    const mf_gguf_part own = file->parts.data[0];
    memmove(file->parts.data, file->parts.data + 1, given.no * sizeof own);
    file->parts.data[given.no] = own;
    return true;
}
