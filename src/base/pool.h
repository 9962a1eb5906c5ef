// A persistent thread pool. All workers run one function together; the caller is worker 0.
#ifndef MF_BASE_POOL_H
#define MF_BASE_POOL_H

#include "base/error.h"

typedef struct mf_pool mf_pool;

// n_threads >= 1 workers in all (n_threads - 1 threads are started). NULL with err when a thread can't be started.
mf_pool *mf_pool_new(int n_threads, mf_error *err);
void mf_pool_free(mf_pool *pool); // NULL is fine

// False in a forked child, which has the pool but none of its threads: there it can only be freed.
bool mf_pool_is_of_this_process(const mf_pool *pool);

int mf_pool_size(const mf_pool *pool);

// Runs fn(arg, worker) on every worker (0 .. size-1) and returns when all have returned. Not reentrant; one caller at a time.
// Each worker runs with the floating-point state of docs/arithmetic.md (round to nearest, no flush-to-zero, exceptions masked)
// and has its own state back afterwards, the caller too. Workers spin for a short while before they sleep, less where there
// are more workers than processors.
void mf_pool_run(mf_pool *pool, void (*fn)(void *arg, int worker), void *arg);

// Inside fn: waits until every worker has come to the same call. The last to come runs `last` (NULL: nothing) before all go on.
void mf_pool_barrier(mf_pool *pool, void (*last)(void *arg, int worker), void *arg, int worker);

// Inside fn. Work is shared by an atomic counter:
//     for (int i; (i = mf_pool_next(&counter)) < n_pieces;) piece(i);
static inline int mf_pool_next(int *counter) { return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

// The same for pieces that lie side by side in memory: each worker has a stretch of its own, which it takes in order, and then helps
// the others. There is a counter for each worker, `stride` ints from the one before; they begin at 0, and so does `helped`, which is
// the caller's own. Returns a piece, or -1 when all are taken.
//     for (int i, helped = 0; (i = mf_pool_take(pool, counters, stride, n_pieces, worker, &helped)) >= 0;) piece(i);
int mf_pool_take(const mf_pool *pool, int *counters, size_t stride, int n_pieces, int worker, int *helped);

#endif
