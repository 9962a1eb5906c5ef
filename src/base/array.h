// Growable arrays: mf_array(int) a = {0}; if (!mf_array_push(&a, 7)) out of memory; a.data[0]; free(a.data).
#ifndef MF_BASE_ARRAY_H
#define MF_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

#define mf_array(T)      \
    struct {             \
        T *data;         \
        size_t len, cap; \
    }

// Makes room for `want` elements in all, doubling the capacity. False when memory is out (nothing changes).
bool mf_array_grow(void **data, size_t *cap, size_t want, size_t size);

#define mf_array_reserve(a, want) \
    ((want) <= (a)->cap || mf_array_grow((void **)&(a)->data, &(a)->cap, (want), sizeof *(a)->data))

// Appends a value; false when memory is out.
#define mf_array_push(a, value) (mf_array_reserve((a), (a)->len + 1) ? ((a)->data[(a)->len++] = (value), true) : false)

#endif
