#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void *mf_alloc(size_t n, size_t size) {
    size_t bytes;
    if (!mf_mul_size(n, size, &bytes)) return NULL;
    return calloc(1, bytes ? bytes : 1);
}

void *mf_resize(void *ptr, size_t n, size_t size) {
    size_t bytes;
    if (!mf_mul_size(n, size, &bytes)) return NULL;
    return realloc(ptr, bytes ? bytes : 1); // realloc(ptr, 0) may free
}

void *mf_alloc_aligned(size_t bytes, size_t align) {
    void *ptr = NULL;
    if (align < 64) align = 64;
    if (posix_memalign(&ptr, align, bytes ? bytes : 1) != 0) return NULL;
    return ptr;
}

char *mf_copy_text(const char *text, size_t len) {
    size_t bytes;
    if (!mf_add_size(len, 1, &bytes)) return NULL;
    char *copy = malloc(bytes);
    if (!copy) return NULL;
    if (len) memcpy(copy, text, len);
    copy[len] = 0;
    return copy;
}
