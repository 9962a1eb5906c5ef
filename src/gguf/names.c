// The index of keys and of tensor names: sorted, not hashed, so that no choice of names makes it slow.
#include <stdlib.h>

#include "gguf/part.h"

static int compare(mf_str a, mf_str b) {
    const size_t len = a.len < b.len ? a.len : b.len;
    const int order = memcmp(a.ptr, b.ptr, len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int by_name(const void *a, const void *b) {
    const mf_gguf_name *x = a, *y = b;
    const int order = compare(x->name, y->name);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

const mf_gguf_name *mf_gguf_names_sort(mf_gguf_names *names) {
    if (names->len) qsort(names->data, names->len, sizeof *names->data, by_name);
    for (size_t i = 1; i < names->len; i++)
        if (mf_str_eq(names->data[i - 1].name, names->data[i].name)) return &names->data[i];
    return NULL;
}

bool mf_gguf_names_find(const mf_gguf_names *names, const char *name, uint32_t *index) {
    const mf_str wanted = mf_str_of(name);
    size_t low = 0, high = names->len;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare(names->data[middle].name, wanted);
        if (order == 0) {
            *index = names->data[middle].index;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}
