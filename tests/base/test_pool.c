#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/pool.h"

#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum {
    MOST = 8
};

typedef struct job {
    mf_pool *pool;
    int counter, size, seen[MOST], taken[MOST * 3], piece_seen[1000];
    long cells[MOST];
    int bad;
} job;

static void count_worker(void *arg, int worker) {
    job *j = arg;
    j->seen[worker]++;
}

static void test_every_worker_runs_once(void **state) {
    (void)state;
    for (int n = 1; n <= MOST; n++) {
        mf_error err;
        job j = {0};
        mf_pool *pool = mf_pool_new(n, &err);
        assert_non_null(pool);
        assert_int_equal(mf_pool_size(pool), n);
        for (int round = 0; round < 300; round++) {
            mf_pool_run(pool, count_worker, &j);
            for (int i = 0; i < MOST; i++) assert_int_equal(j.seen[i], i < n ? round + 1 : 0);
        }
        mf_pool_free(pool);
    }
    mf_pool_free(NULL);
}

// Each worker adds its neighbour's cell of the step before: a barrier that lets someone through early gives other sums.
static void add_in_step(void *arg, int worker) {
    job *j = arg;
    for (int step = 0; step < 400; step++) {
        long next = j->cells[(worker + 1) % j->size] * 3 + worker + step;
        mf_pool_barrier(j->pool, NULL, NULL, 0);
        j->cells[worker] = next & 0xFFFFFF;
        mf_pool_barrier(j->pool, NULL, NULL, 0);
    }
}

static void test_barrier(void **state) {
    (void)state;
    for (int n = 1; n <= 5; n++) {
        job j = {.size = n, .pool = mf_pool_new(n, NULL)};
        long want[MOST] = {0};
        assert_non_null(j.pool);
        for (int round = 0; round < 3; round++) {
            mf_pool_run(j.pool, add_in_step, &j);
            for (int step = 0; step < 400; step++) {
                long next[MOST];
                for (int w = 0; w < n; w++) next[w] = want[(w + 1) % n] * 3 + w + step;
                for (int w = 0; w < n; w++) want[w] = next[w] & 0xFFFFFF;
            }
            assert_memory_equal(j.cells, want, sizeof want);
        }
        mf_pool_free(j.pool);
    }
}

static void take_pieces(void *arg, int worker) {
    job *j = arg;
    for (int i; (i = mf_pool_next(&j->counter)) < 10000;) j->cells[worker] += i;
}

static void test_shared_counter(void **state) {
    (void)state;
    job j = {.pool = mf_pool_new(3, NULL)};
    mf_pool_run(j.pool, take_pieces, &j);
    assert_int_equal(j.cells[0] + j.cells[1] + j.cells[2], 49995000);
    mf_pool_free(j.pool);
}

// Only the last to come adds, and no one goes on before it has.
static void add_alone(void *arg, int worker) {
    job *j = arg;
    j->counter++;
    j->seen[worker]++;
}

static void meet(void *arg, int worker) {
    job *j = arg;
    for (int i = 1; i <= 400; i++) {
        mf_pool_barrier(j->pool, add_alone, j, worker);
        if (__atomic_load_n(&j->counter, __ATOMIC_RELAXED) != i) j->bad = 1;
        mf_pool_barrier(j->pool, NULL, NULL, worker);
    }
}

static void test_last_runs_alone(void **state) {
    (void)state;
    for (int n = 1; n <= 5; n++) {
        job j = {.pool = mf_pool_new(n, NULL)};
        mf_pool_run(j.pool, meet, &j);
        int total = 0;
        for (int w = 0; w < n; w++) total += j.seen[w];
        assert_int_equal(j.bad, 0);
        assert_int_equal(total, 400);
        mf_pool_free(j.pool);
    }
}

static void take_stretch(void *arg, int worker) {
    job *j = arg;
    int before = -1;
    if (worker == j->counter) usleep(5000); // the others take its pieces
    for (int i, helped = 0; (i = mf_pool_take(j->pool, j->taken, 3, j->size, worker, &helped)) >= 0; before = i) {
        __atomic_fetch_add(&j->piece_seen[i], 1, __ATOMIC_RELAXED);
        if (helped == 0 && i <= before) __atomic_store_n(&j->bad, 1, __ATOMIC_RELAXED);
    }
}

static void test_stretches(void **state) {
    (void)state;
    static const int sizes[] = {0, 1, 2, 3, 7, 64, 1000};
    for (int n = 1; n <= 5; n++) {
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            job j = {.pool = mf_pool_new(n, NULL), .size = sizes[k], .counter = (int)k % n};
            mf_pool_run(j.pool, take_stretch, &j);
            assert_int_equal(j.bad, 0);
            for (int i = 0; i < 1000; i++) assert_int_equal(j.piece_seen[i], i < sizes[k]);
            mf_pool_free(j.pool);
        }
    }
}

// Long enough apart that every waiter is asleep, in the barrier, at the end and before the work.
static void sleepy(void *arg, int worker) {
    job *j = arg;
    if (worker == 0) usleep(20000);
    mf_pool_barrier(j->pool, NULL, NULL, 0);
    if (worker == 1) usleep(20000);
    j->seen[worker]++;
}

static void test_sleepers_wake(void **state) {
    (void)state;
    job j = {.pool = mf_pool_new(4, NULL)};
    for (int round = 1; round <= 4; round++) {
        mf_pool_run(j.pool, sleepy, &j);
        for (int i = 0; i < 4; i++) assert_int_equal(j.seen[i], round);
        usleep(20000);
    }
    mf_pool_free(j.pool);
}

// Twice as many workers as most machines have processors: the barrier gives way instead of burning time slices.
static void many_barriers(void *arg, int worker) {
    (void)worker;
    for (int i = 0; i < 300; i++) mf_pool_barrier(((job *)arg)->pool, NULL, NULL, 0);
}

static void test_more_workers_than_processors(void **state) {
    (void)state;
    job j = {.pool = mf_pool_new(24, NULL)};
    uint64_t start = mf_clock_ns();
    mf_pool_run(j.pool, many_barriers, &j);
    assert_true(mf_clock_seconds(start, mf_clock_ns()) < 20);
    mf_pool_free(j.pool);
}

#if defined(__x86_64__)
static void check_float_state(void *arg, int worker) {
    job *j = arg;
    if ((_mm_getcsr() & ~0x3Fu) != 0x1F80) j->bad = 1;
    volatile float tiny = 0x1p-140f;
    if (tiny * 0.5f == 0) j->bad = 1;
    _mm_setcsr(0x9FC0); // what fn leaves behind doesn't stay
    j->seen[worker]++;
}

static void test_float_state(void **state) {
    (void)state;
    for (int n = 1; n <= 3; n++) {
        job j = {.pool = mf_pool_new(n, NULL)};
        unsigned own = _mm_getcsr(), strange = 0xFF80; // flush to zero, round towards zero
        for (int round = 0; round < 3; round++) {
            _mm_setcsr(strange);
            mf_pool_run(j.pool, check_float_state, &j);
            unsigned after = _mm_getcsr();
            _mm_setcsr(own);
            assert_int_equal(after, strange);
            assert_int_equal(j.bad, 0);
        }
        mf_pool_free(j.pool);
    }
}
#endif

static void test_refusals(void **state) {
    (void)state;
    mf_error err;
    assert_null(mf_pool_new(0, &err));
    assert_int_equal(err.code, MF_ERR_ARGUMENT);
    assert_string_equal(err.text, "0 threads: must be 1 to 8192");
    assert_null(mf_pool_new(-3, &err));
    assert_null(mf_pool_new(8193, NULL));
}

// As many as large machines have: the system may have no room for them, but the number is right.
static void test_many_threads(void **state) {
    (void)state;
    mf_error err = {0};
    mf_pool *pool = mf_pool_new(1100, &err);
    if (!pool) assert_int_not_equal(err.code, MF_ERR_ARGUMENT);
    mf_pool_free(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_worker_runs_once),
        cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_shared_counter),
        cmocka_unit_test(test_last_runs_alone),
        cmocka_unit_test(test_stretches),
        cmocka_unit_test(test_sleepers_wake),
        cmocka_unit_test(test_more_workers_than_processors),
#if defined(__x86_64__)
        cmocka_unit_test(test_float_state),
#endif
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
