// Memory that was handed out and has not been written to: the system gives it pages only then, and until then counts it as free.
#ifndef MF_BASE_PROMISE_H
#define MF_BASE_PROMISE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Notes a private map of this process; false when memory is out. From any thread.
bool mf_promise_add(const void *map, size_t bytes);

// Strikes it out, before it is unmapped. Nothing where it was not noted.
void mf_promise_drop(const void *map);

// Bytes of all noted maps that have no page yet.
uint64_t mf_promise_untouched(void);

#endif
