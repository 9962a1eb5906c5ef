#define _GNU_SOURCE // mincore
#include "base/promise.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

typedef struct promise {
    struct promise *next;
    const char *map;
    size_t bytes;
} promise;

static promise *promises;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

bool mf_promise_add(const void *map, size_t bytes) {
    promise *p = mf_alloc(1, sizeof *p);
    if (!p) return false;
    pthread_mutex_lock(&turn);
    *p = (promise){promises, map, bytes};
    promises = p;
    pthread_mutex_unlock(&turn);
    return true;
}

void mf_promise_drop(const void *map) {
    pthread_mutex_lock(&turn);
    promise **at = &promises;
    while (*at && (*at)->map != map) at = &(*at)->next;
    promise *p = *at;
    if (p) *at = p->next;
    pthread_mutex_unlock(&turn);
    free(p);
}

// Pages of a map that are not there; 0 where the system doesn't tell.
static uint64_t missing_pages(const promise *p, size_t page) {
    unsigned char there[16384];
    uint64_t missing = 0;
    for (size_t at = 0; at < p->bytes; at += sizeof there * page) {
        const size_t left = p->bytes - at, some = left < sizeof there * page ? left : sizeof there * page;
        if (mincore((void *)(uintptr_t)(p->map + at), some, there) != 0) return 0;
        for (size_t i = 0; i < (some + page - 1) / page; i++) missing += !(there[i] & 1);
    }
    return missing;
}

uint64_t mf_promise_untouched(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t pages = 0;
    pthread_mutex_lock(&turn);
    for (const promise *p = promises; p; p = p->next) pages += missing_pages(p, page);
    pthread_mutex_unlock(&turn);
    return pages * page;
}
