#include "base/pool.h"

#include "base/cpu_linux.h"
#include "base/float_state.h"
#include "base/mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LINE = 128,          // bytes that two processors must not both write: a cache line and the one fetched with it
    MOST_THREADS = 8192, // processors that Linux can be built for: over this a count is a mistake
    // Pauses before a waiter sleeps (20 to 80 us): about what being woken up takes, so that a worker whose processor another
    // program has taken soon finds a free one.
    SPINS = 2000,
    SPINS_CROWDED = 16,   // where there are more workers than processors
    STACK_BYTES = 2 << 20 // some C libraries give threads as little as 128 KB
};

// Something that is waited for: waiters wait until `turn` differs from what they saw before. Whoever brings `count` to its end
// opens the gate, and so has the line with the sleepers at hand.
typedef struct gate {
    _Alignas(LINE) atomic_uint turn;
    _Alignas(LINE) atomic_int count; // done: threads that are still in fn; barrier: workers that have arrived
    atomic_int sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
} gate;

typedef struct worker {
    mf_pool *pool;
    pthread_t thread;
    int index;
} worker;

struct mf_pool {
    int size, spins, started;
    pid_t process;   // whose threads the workers are
    worker *workers; // 1 .. size-1
    void (*fn)(void *arg, int worker);
    void *arg;
    bool stop;
    gate work, done, barrier;
};

static inline void pause_briefly(void) {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); // yield takes no time on most cores
#endif
}

static bool gate_init(gate *g) {
    if (pthread_mutex_init(&g->mutex, NULL) != 0) return false;
    if (pthread_cond_init(&g->cond, NULL) == 0) return true;
    pthread_mutex_destroy(&g->mutex);
    return false;
}

static void gate_destroy(gate *g) {
    pthread_cond_destroy(&g->cond);
    pthread_mutex_destroy(&g->mutex);
}

// Lets everyone through who waits for the turn to change. Either a waiter's count is seen here, or (the order of all four
// accesses being sequentially consistent) the waiter sees the turn after it has counted itself.
static void gate_open(gate *g) {
    atomic_fetch_add(&g->turn, 1);
    if (atomic_load(&g->sleepers) == 0) return;
    pthread_mutex_lock(&g->mutex);
    pthread_cond_broadcast(&g->cond);
    pthread_mutex_unlock(&g->mutex);
}

static bool gate_opened(gate *g, unsigned seen) { return atomic_load_explicit(&g->turn, memory_order_acquire) != seen; }

static void gate_wait(gate *g, unsigned seen, int spins) {
    for (int i = 0; i < spins; i++) {
        if (gate_opened(g, seen)) return;
        pause_briefly();
    }
    pthread_mutex_lock(&g->mutex);
    atomic_fetch_add(&g->sleepers, 1);
    while (atomic_load(&g->turn) == seen) pthread_cond_wait(&g->cond, &g->mutex);
    atomic_fetch_sub(&g->sleepers, 1);
    pthread_mutex_unlock(&g->mutex);
}

static void *work(void *arg) {
    worker *w = arg;
    mf_pool *pool = w->pool;
    for (unsigned seen = 0;; seen++) {
        gate_wait(&pool->work, seen, pool->spins);
        if (pool->stop) return NULL;
        mf_float_state old = mf_float_enter();
        pool->fn(pool->arg, w->index);
        mf_float_leave(&old);
        if (atomic_fetch_sub_explicit(&pool->done.count, 1, memory_order_acq_rel) == 1) gate_open(&pool->done);
    }
}

// Starts the threads with every signal blocked: signals are the program's own threads' business.
static bool start(mf_pool *pool, mf_error *err) {
    pthread_attr_t attr;
    sigset_t all, old;
    if (pthread_attr_init(&attr) != 0) return mf_fail_memory(err, sizeof attr, "a thread");
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int e = 0;
    while (pool->started < pool->size && e == 0) {
        worker *w = &pool->workers[pool->started];
        *w = (worker){.pool = pool, .index = pool->started};
        e = pthread_create(&w->thread, &attr, work, w);
        if (e == 0) pool->started++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return e == 0 ||
           mf_fail(err, MF_ERR_MEMORY, "can't start thread %d of %d: %s", pool->started + 1, pool->size, strerror(e));
}

// All of the pool but its threads; NULL when out of memory.
static mf_pool *make(int n_threads) {
    mf_pool *pool = mf_alloc_aligned(sizeof *pool, LINE);
    if (!pool) return NULL;
    memset(pool, 0, sizeof *pool);
    pool->size = n_threads;
    pool->spins = n_threads <= mf_cpu_parallel() ? SPINS : SPINS_CROWDED;
    pool->started = 1; // the caller
    pool->process = getpid();
    pool->workers = mf_alloc((size_t)n_threads, sizeof *pool->workers);
    gate *gates[] = {&pool->work, &pool->done, &pool->barrier};
    int n = 0;
    while (pool->workers && n < 3 && gate_init(gates[n])) n++;
    if (n == 3) return pool;
    while (n) gate_destroy(gates[--n]);
    free(pool->workers);
    free(pool);
    return NULL;
}

mf_pool *mf_pool_new(int n_threads, mf_error *err) {
    if (n_threads < 1 || n_threads > MOST_THREADS) {
        mf_fail(err, MF_ERR_ARGUMENT, "%d threads: must be 1 to %d", n_threads, MOST_THREADS);
        return NULL;
    }
    mf_pool *pool = make(n_threads);
    if (!pool) {
        mf_fail_memory(err, sizeof *pool, "the thread pool");
        return NULL;
    }
    if (!start(pool, err)) {
        mf_pool_free(pool);
        return NULL;
    }
    return pool;
}

void mf_pool_free(mf_pool *pool) {
    if (!pool) return;
    // A forked child has none of the threads, and its gates wait for them as they were.
    if (mf_pool_is_of_this_process(pool)) {
        pool->stop = true;
        gate_open(&pool->work);
        for (int i = 1; i < pool->started; i++) pthread_join(pool->workers[i].thread, NULL);
        gate_destroy(&pool->work);
        gate_destroy(&pool->done);
        gate_destroy(&pool->barrier);
    }
    free(pool->workers);
    free(pool);
}

bool mf_pool_is_of_this_process(const mf_pool *pool) { return pool->process == getpid(); }

int mf_pool_size(const mf_pool *pool) { return pool->size; }

void mf_pool_run(mf_pool *pool, void (*fn)(void *arg, int worker), void *arg) {
    unsigned seen = atomic_load_explicit(&pool->done.turn, memory_order_relaxed);
    pool->fn = fn;
    pool->arg = arg;
    if (pool->size > 1) {
        atomic_store_explicit(&pool->done.count, pool->size - 1, memory_order_relaxed);
        gate_open(&pool->work);
    }
    mf_float_state old = mf_float_enter();
    fn(arg, 0);
    mf_float_leave(&old);
    if (pool->size > 1) gate_wait(&pool->done, seen, pool->spins);
}

void mf_pool_barrier(mf_pool *pool, void (*last)(void *arg, int worker), void *arg, int index) {
    gate *g = &pool->barrier;
    unsigned seen = atomic_load_explicit(&g->turn, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&g->count, 1, memory_order_acq_rel) < pool->size - 1) {
        gate_wait(g, seen, pool->spins);
        return;
    }
    if (last) last(arg, index);
    atomic_store_explicit(&g->count, 0, memory_order_relaxed);
    if (pool->size > 1) gate_open(g);
}

// Where a worker's stretch of n pieces begins, and that of the one before ends.
static int stretch(const mf_pool *pool, int n, int index) { return (int)((int64_t)n * index / pool->size); }

int mf_pool_take(const mf_pool *pool, int *counters, size_t stride, int n_pieces, int index, int *helped) {
    for (; *helped < pool->size; ++*helped) {
        const int owner = (index + *helped) % pool->size, first = stretch(pool, n_pieces, owner);
        const int i = first + mf_pool_next(&counters[(size_t)owner * stride]);
        if (i < stretch(pool, n_pieces, owner + 1)) return i;
    }
    return -1;
}
