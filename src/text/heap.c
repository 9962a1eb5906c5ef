#include "text/heap.h"

bool mf_heap_push(mf_heap *heap, mf_candidate c) {
    if (!mf_array_push(heap, c)) return false;
    mf_candidate *h = heap->data;
    size_t i = heap->len - 1;
    for (size_t up; i > 0 && c.order < h[up = (i - 1) / 2].order; i = up) h[i] = h[up];
    h[i] = c;
    return true;
}

mf_candidate mf_heap_pop(mf_heap *heap) {
    mf_candidate *h = heap->data, top = h[0], last = h[--heap->len];
    size_t n = heap->len, i = 0;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && h[child + 1].order < h[child].order) child++;
        if (last.order <= h[child].order) break;
        h[i] = h[child];
    }
    h[i] = last;
    return top;
}
