// checkkernels: every function of every row of the kernel table against the scalar row, bitwise. A group is one file's
// checks; it runs once for each row that this CPU can run.
#ifndef CHECKKERNELS_H
#define CHECKKERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cpu/kernels.h"

typedef struct check_block check_block;

typedef struct check {
    const mf_kernels *ref; // the scalar row
    const mf_kernels *row; // the row being checked
    const char *filter;    // only functions whose name contains this (NULL: all)
    const char *skip;      // none whose name contains this (NULL: all)
    bool quick;            // fewer shapes of what takes longest
    uint64_t seed, state;
    const char *name;    // of the function between check_begin and check_end
    check_block *blocks; // its buffers
    int n_compared, n_failed, n_failed_total;
} check;

typedef struct check_group {
    const char *name;
    void (*run)(check *c);
    void (*bench)(check *c); // may be NULL
} check_group;

// The groups, one line each in checkkernels.c.
void check_matmul(check *c);
void check_quantize(check *c);
void check_vector(check *c);
void check_attention(check *c);
void bench_matmul(check *c);
void bench_quantize(check *c);
void bench_vector(check *c);
void bench_attention(check *c);

// Opens the checks of one function: false when the filter leaves it out. The generator restarts from the seed and the name,
// so that a failure is repeated by the seed alone.
bool check_begin(check *c, const char *name);

// Closes them: verifies the red zones, frees the buffers and prints one line.
void check_end(check *c);

// Verifies the red zones and frees the buffers, for use between the shapes of one function.
void check_free_buffers(check *c);

// Zeroed memory on a 64-byte boundary with a red zone directly in front and behind; freed by check_end. Never NULL.
void *check_buffer(check *c, size_t bytes);
float *check_float_buffer(check *c, size_t n);

// Random numbers.
uint32_t check_random(check *c);
int check_below(check *c, int n);                     // 0 … n-1
float check_uniform(check *c, float low, float high); // [low, high)

// What floats a buffer is filled with.
typedef enum check_kind {
    CHECK_PLAIN,    // [-1, 1)
    CHECK_WIDE,     // both signs, magnitudes from 2^-30 to 2^30
    CHECK_ZERO,     // +0 and -0
    CHECK_DENORMAL, // subnormals and zeros
    CHECK_HUGE,     // magnitudes from 2^100 to 2^127
    CHECK_FINITE,   // any bit pattern that is a finite number
    CHECK_SPECIAL,  // plain, with infinities and NaNs strewn in
    CHECK_KINDS,
} check_kind;

void check_fill(check *c, float *x, size_t n, check_kind kind);
const char *check_kind_name(check_kind kind);

// Compares bit for bit (any NaN equals any NaN; +0 and -0 differ); the first difference of each call is printed with `what`,
// which names the shape and the input.
bool check_floats(check *c, const float *ref, const float *got, size_t n, const char *what, ...)
    __attribute__((format(printf, 5, 6)));
bool check_bytes(check *c, const void *ref, const void *got, size_t n, const char *what, ...)
    __attribute__((format(printf, 5, 6)));
bool check_true(check *c, bool condition, const char *what, ...) __attribute__((format(printf, 3, 4)));

// The shortest of several timed calls of fn(arg), in seconds of processor time, over at least 50 ms in all.
double check_time(void (*fn)(void *arg), void *arg);

#endif
