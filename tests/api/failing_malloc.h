// The k-th allocation of a stretch of calls fails, for all k: alone, with the next one, and with all that follow. Replaces the allocator of
// the program that includes it.
#ifndef TESTS_API_FAILING_MALLOC_H
#define TESTS_API_FAILING_MALLOC_H

#include "api/fixture.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REAL(name) __interceptor_##name
#endif
#endif
#if !defined(REAL) && (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__))
#define REAL(name) __interceptor_##name
#endif
#ifndef REAL
#define REAL(name) __libc_##name
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t n, size_t size);
void *REAL(realloc)(void *ptr, size_t size);
void *REAL(memalign)(size_t align, size_t size);

// Counted in the thread that calls: no other thread of the library allocates, and sanitizers do when a thread starts.
static _Thread_local bool armed;
static long left;     // allocations until one fails
static bool struck;   // one has failed
static long in_a_row; // so many fail

static bool fails(void) {
    if (!armed || --left > 0 || left <= -in_a_row) return false;
    return struck = true;
}

static void *out_of_memory(void) { return errno = ENOMEM, NULL; }

#pragma GCC visibility push(default) // shared libraries allocate here too

void *malloc(size_t size) { return fails() ? out_of_memory() : REAL(malloc)(size); }
void *calloc(size_t n, size_t size) { return fails() ? out_of_memory() : REAL(calloc)(n, size); }
void *realloc(void *ptr, size_t size) { return fails() ? out_of_memory() : REAL(realloc)(ptr, size); }
void *aligned_alloc(size_t align, size_t size) { return fails() ? out_of_memory() : REAL(memalign)(align, size); }

int posix_memalign(void **out, size_t align, size_t size) {
    void *p = fails() ? NULL : REAL(memalign)(align, size);
    if (!p) return ENOMEM;
    *out = p;
    return 0;
}

void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset) {
    if (fails()) return errno = ENOMEM, MAP_FAILED;
    return (void *)syscall(SYS_mmap, addr, size, prot, flags, fd, offset);
}

#pragma GCC visibility pop

// ---- The loop over k

static long next_k; // of the attempt that is made

static inline void arm(void) {
    struck = false;
    left = next_k;
    armed = true;
}

static inline void disarm(void) { armed = false; }

// One attempt: makes what the call needs, arms, calls, disarms, checks what came of it and frees it. Whether the call succeeded.
typedef bool attempt_fn(minfer_error *error);

static inline void exhaust(const char *name, attempt_fn *attempt, long least) {
    enum {
        MOST = 100000
    };
    // Two: an array that can't double tries again with what it needs.
    static const long rows[] = {1, 2, 1000000};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        in_a_row = rows[r];
        for (next_k = 1; next_k < MOST; next_k++) {
            minfer_error error = {MINFER_OK, ""};
            bool ok = attempt(&error);
            if (!struck) {
                if (!ok) fail_msg("%s fails with all its memory: %s", name, error.text);
                break;
            }
            if (ok) continue; // it could do without; the attempt has compared the result
            if ((error.code != MINFER_ERROR_MEMORY && error.code != MINFER_ERROR_IO) || !error.text[0])
                fail_msg("%s, allocation %ld: code %d, \"%s\"", name, next_k, (int)error.code, error.text);
        }
        print_message("%s: %ld allocations\n", name, next_k - 1);
        if (next_k <= least || next_k == MOST) fail_msg("%s: %ld allocations", name, next_k - 1);
    }
}

#endif
