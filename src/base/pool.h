// A persistent thread pool. All workers run one function together; the caller is worker 0.
#ifndef MF_BASE_POOL_H
#define MF_BASE_POOL_H

#include "base/error.h"

typedef struct mf_pool mf_pool;

// n_threads >= 1 workers in all (n_threads - 1 threads are started). NULL with err when a thread can't be started.
mf_pool *mf_pool_new(int n_threads, mf_error *err);
void mf_pool_free(mf_pool *pool); // NULL is fine

int mf_pool_size(const mf_pool *pool);

// Runs fn(arg, worker) on every worker (0 .. size-1) and returns when all have returned. Not reentrant; one caller at a time.
// Each worker runs with the floating-point state of docs/arithmetic.md (round to nearest, no flush-to-zero, exceptions masked)
// and has its own state back afterwards, the caller too. Workers spin for a short while before they sleep, less where there
// are more workers than processors.
void mf_pool_run(mf_pool *pool, void (*fn)(void *arg, int worker), void *arg);

// Inside fn: waits until every worker has come to the same call.
void mf_pool_barrier(mf_pool *pool);

// Inside fn or mf_pool_run's caller: nothing else. Work is shared by an atomic counter:
//     for (int i; (i = mf_pool_next(&counter)) < n_pieces;) piece(i);
static inline int mf_pool_next(int *counter) { return __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED); }

#endif
