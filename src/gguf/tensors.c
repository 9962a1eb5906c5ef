// Reading a part's tensor infos: shapes, sizes and places are all checked before a tensor is handed out.
#include <stdlib.h>

#include "base/mem.h"
#include "gguf/part.h"

enum {
    NAME_LIMIT = 256,
    MAX_DIMS = 4
};

// The shape, its product held below 2^63.
static bool read_shape(mf_gguf_cursor *c, mf_gguf_tensor *t, bool *ends, mf_error *err) {
    if (!mf_gguf_read_u32(c, &t->n_dims)) return *ends = true, false;
    if (t->n_dims < 1 || t->n_dims > MAX_DIMS)
        return mf_fail(err, MF_ERR_FORMAT, "tensor '%.*s' has %u dimensions, not 1 to %d", MF_GGUF_SHOWN(t->name), t->n_dims,
                       MAX_DIMS);
    int64_t total = 1;
    for (uint32_t d = 0; d < MAX_DIMS; d++) {
        t->ne[d] = 1;
        if (d >= t->n_dims) continue;
        if (!mf_gguf_read_u64(c, &t->ne[d])) return *ends = true, false;
        if (t->ne[d] == 0) return mf_fail(err, MF_ERR_FORMAT, "tensor '%.*s': dimension %u is 0", MF_GGUF_SHOWN(t->name), d);
        if (__builtin_mul_overflow(total, t->ne[d], &total))
            return mf_fail(err, MF_ERR_FORMAT, "tensor '%.*s': dimension %u of %llu makes it too large",
                           MF_GGUF_SHOWN(t->name), d, (unsigned long long)t->ne[d]);
    }
    return true;
}

// The type and the bytes it takes.
static bool measure(mf_gguf_tensor *t, uint32_t type, mf_error *err) {
    const mf_type_info *info = mf_type_info_of(type);
    if (!info)
        return mf_fail(err, MF_ERR_UNSUPPORTED, "tensor '%.*s' is of the unknown type %u", MF_GGUF_SHOWN(t->name), type);
    t->type = (mf_type)type;
    if (t->ne[0] % info->block_len != 0)
        return mf_fail(err, MF_ERR_FORMAT,
                       "tensor '%.*s': rows of %llu values are not a multiple of the %u in a block of %s",
                       MF_GGUF_SHOWN(t->name), (unsigned long long)t->ne[0], info->block_len, info->name);
    const uint64_t blocks = t->ne[0] / info->block_len * t->ne[1] * t->ne[2] * t->ne[3]; // fits: the product of ne does
    if (__builtin_mul_overflow(blocks, info->block_bytes, &t->size))
        return mf_fail(err, MF_ERR_FORMAT, "tensor '%.*s': its size in bytes overflows", MF_GGUF_SHOWN(t->name));
    return true;
}

// One tensor info. t->size is set; *offset is the data's place behind the start of the data section.
static bool read_info(mf_gguf_cursor *c, uint64_t i, mf_gguf_tensor *t, uint64_t *offset, mf_error *err) {
    uint32_t type;
    if (!mf_gguf_read_str(c, &t->name))
        return mf_fail(err, MF_ERR_FORMAT, "the file ends inside the name of tensor %llu (at byte %zu of %zu)",
                       (unsigned long long)i, c->at, c->size);
    if (!mf_gguf_check_name(t->name, NAME_LIMIT, "tensor", i, err)) return false;
    bool ends = false;
    if (!read_shape(c, t, &ends, err) && !ends) return false;
    if (ends || !mf_gguf_read_u32(c, &type) || !mf_gguf_read_u64(c, offset))
        return mf_fail(err, MF_ERR_FORMAT, "tensor '%.*s': the file ends inside its description (at byte %zu of %zu)",
                       MF_GGUF_SHOWN(t->name), c->at, c->size);
    return measure(t, type, err);
}

bool mf_gguf_part_infos_end(const mf_gguf_part *part, size_t *end) {
    mf_gguf_cursor c = {part->head, part->info_at, part->head_size};
    for (uint64_t i = 0; i < part->n_tensors; i++) {
        mf_gguf_tensor t;
        uint64_t offset;
        if (!read_info(&c, i, &t, &offset, NULL)) return false;
    }
    *end = c.at;
    return true;
}

// Turns an offset into a place in the file.
static bool place(const mf_gguf_part *part, size_t data_at, uint64_t offset, mf_gguf_tensor *t, mf_error *err) {
    if (offset % part->alignment != 0)
        return mf_fail(err, MF_ERR_FORMAT, "tensor '%.*s': its offset %llu is not a multiple of the alignment %u",
                       MF_GGUF_SHOWN(t->name), (unsigned long long)offset, part->alignment);
    const size_t room = part->map.size - data_at;
    if (offset > room || t->size > room - offset)
        return mf_fail(err, MF_ERR_FORMAT,
                       "tensor '%.*s': its %zu bytes at offset %llu reach past the end of the file (%zu bytes of data)",
                       MF_GGUF_SHOWN(t->name), t->size, (unsigned long long)offset, room);
    t->data = part->map.data + data_at + (size_t)offset;
    return true;
}

static int by_place(const void *a, const void *b) {
    const mf_gguf_tensor *const *x = a, *const *y = b;
    return ((*x)->data > (*y)->data) - ((*x)->data < (*y)->data);
}

static bool check_overlap(const mf_gguf_tensor *tensors, size_t n, mf_error *err) {
    const mf_gguf_tensor **order = mf_alloc(n, sizeof *order);
    if (!order) return mf_fail_memory(err, n * sizeof *order, "the tensor index");
    for (size_t i = 0; i < n; i++) order[i] = &tensors[i];
    qsort(order, n, sizeof *order, by_place);
    bool ok = true;
    for (size_t i = 1; i < n && ok; i++) {
        const mf_gguf_tensor *a = order[i - 1], *b = order[i];
        if ((size_t)(b->data - a->data) < a->size)
            ok = mf_fail(err, MF_ERR_FORMAT, "tensor '%.*s' overlaps tensor '%.*s' in the file", MF_GGUF_SHOWN(b->name),
                         MF_GGUF_SHOWN(a->name));
    }
    free(order);
    return ok;
}

bool mf_gguf_part_read_tensors(const mf_gguf_part *part, uint32_t index, mf_gguf_tensors *tensors, mf_error *err) {
    mf_gguf_cursor c = {part->head, part->info_at, part->head_size};
    const size_t first = tensors->len, n = (size_t)part->n_tensors;
    if (n == 0) return true;
    uint64_t *offsets = mf_alloc(n, sizeof *offsets);
    if (!offsets) return mf_fail_memory(err, n * sizeof *offsets, "the tensor index");
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        mf_gguf_tensor t = {.part = index};
        ok = read_info(&c, i, &t, &offsets[i], err);
        if (ok && !mf_array_push(tensors, t)) ok = mf_fail_memory(err, (first + i + 1) * sizeof t, "the tensor index");
    }
    size_t data_at = 0;
    if (ok) {
        data_at = mf_align_up(c.at, part->alignment);
        if (data_at > part->map.size)
            ok = mf_fail(err, MF_ERR_FORMAT, "the file of %zu bytes ends before the tensors' data at byte %zu",
                         part->map.size, data_at);
    }
    for (size_t i = 0; i < n && ok; i++) ok = place(part, data_at, offsets[i], &tensors->data[first + i], err);
    free(offsets);
    return ok && check_overlap(tensors->data + first, n, err);
}
