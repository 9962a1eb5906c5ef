#include "base/array.h"

#include "base/mem.h"

bool mf_array_grow(void **data, size_t *cap, size_t want, size_t size) {
    if (want <= *cap) return true;
    size_t doubled;
    if (!mf_mul_size(*cap, 2, &doubled) || doubled < want) doubled = want;
    if (doubled < 8) doubled = 8;
    void *grown = mf_resize(*data, doubled, size);
    if (!grown && doubled > want) grown = mf_resize(*data, doubled = want, size);
    if (!grown) return false;
    *data = grown;
    *cap = doubled;
    return true;
}
