// The frame of checkkernels: rows, groups, buffers with red zones, random input, bitwise comparison, timing.
//
//     checkkernels [--bench] [--quick] [--row NAME] [--seed N] [--skip FUNCTION] [FUNCTION]
//
// FUNCTION: only functions whose name contains it; --skip: none whose name contains that. --quick: fewer shapes of what
// takes longest, for emulated processors. The exit status is 1 when anything differs.
#include "checkkernels/checkkernels.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/half.h"
#include "base/mem.h"

#if defined(__SANITIZE_ADDRESS__)
#define POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON 1
#endif
#endif
#ifdef POISON
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

static const check_group groups[] = {
    {"quantize", check_quantize, bench_quantize},
    {"matmul", check_matmul, bench_matmul},
    {"vector", check_vector, bench_vector},
    {"attention", check_attention, bench_attention},
};

// ---- Buffers -------------------------------------------------------------------------------------------------------------

#define RED_ZONE 256
#define RED_BYTE 0xa5

struct check_block {
    check_block *next;
    uint8_t *memory; // red zone, bytes, red zone
    size_t bytes;
};

void *check_buffer(check *c, size_t bytes) {
    check_block *block = malloc(sizeof *block);
    uint8_t *memory = mf_alloc_aligned(bytes + 2 * RED_ZONE, 64);
    if (!block || !memory) {
        fprintf(stderr, "checkkernels: out of memory (%zu bytes)\n", bytes);
        exit(2);
    }
    memset(memory, RED_BYTE, bytes + 2 * RED_ZONE);
    memset(memory + RED_ZONE, 0, bytes);
    *block = (check_block){c->blocks, memory, bytes};
    c->blocks = block;
    ASAN_POISON_MEMORY_REGION(memory, RED_ZONE);
    ASAN_POISON_MEMORY_REGION(memory + RED_ZONE + bytes, RED_ZONE);
    return memory + RED_ZONE;
}

float *check_float_buffer(check *c, size_t n) { return check_buffer(c, n * sizeof(float)); }

static bool red_zone_intact(const uint8_t *zone) {
    for (int i = 0; i < RED_ZONE; i++) {
        if (zone[i] != RED_BYTE) return false;
    }
    return true;
}

void check_free_buffers(check *c) {
    while (c->blocks) {
        check_block *block = c->blocks;
        ASAN_UNPOISON_MEMORY_REGION(block->memory, block->bytes + 2 * RED_ZONE);
        check_true(c, red_zone_intact(block->memory), "bytes before a buffer of %zu were written", block->bytes);
        check_true(c, red_zone_intact(block->memory + RED_ZONE + block->bytes), "bytes behind a buffer of %zu were written",
                   block->bytes);
        c->blocks = block->next;
        free(block->memory);
        free(block);
    }
}

// ---- Random input --------------------------------------------------------------------------------------------------------

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
uint32_t check_random(check *c) {
    uint64_t z = c->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32);
}

int check_below(check *c, int n) { return (int)((uint64_t)check_random(c) * (uint64_t)n >> 32); }

float check_uniform(check *c, float low, float high) {
    return low + (high - low) * (float)(check_random(c) >> 8) * 0x1p-24f;
}

static float random_magnitude(check *c, int low_exponent, int high_exponent) {
    const uint32_t exponent = (uint32_t)(low_exponent + check_below(c, high_exponent - low_exponent + 1) + 127);
    return mf_bits_f32((check_random(c) & 0x807fffff) | exponent << 23);
}

static float random_float(check *c, check_kind kind) {
    const uint32_t bits = check_random(c);
    switch (kind) {
    case CHECK_WIDE: return random_magnitude(c, -30, 30);
    case CHECK_ZERO: return mf_bits_f32(bits & 0x80000000);
    case CHECK_DENORMAL: return mf_bits_f32(check_below(c, 4) ? bits & 0x807fffff : bits & 0x80000000);
    case CHECK_HUGE: return random_magnitude(c, 100, 127);
    case CHECK_FINITE: return (bits & 0x7f800000) == 0x7f800000 ? 1 : mf_bits_f32(bits);
    case CHECK_SPECIAL:
        if (check_below(c, 16) == 0) return mf_bits_f32((bits & 0x80000000) | (bits & 1 ? 0x7f800000 : 0x7fc00001));
        return check_uniform(c, -1, 1);
    default: return check_uniform(c, -1, 1);
    }
}

void check_fill(check *c, float *x, size_t n, check_kind kind) {
    for (size_t i = 0; i < n; i++) x[i] = random_float(c, kind);
}

const char *check_kind_name(check_kind kind) {
    static const char *const names[CHECK_KINDS] = {"plain", "wide", "zero", "denormal", "huge", "finite", "special"};
    return names[kind];
}

// ---- Comparison ----------------------------------------------------------------------------------------------------------

#define MAX_REPORTS 5 // of one function

static void report(check *c, const char *what, va_list args) {
    if (++c->n_failed > MAX_REPORTS) return;
    char text[256];
    vsnprintf(text, sizeof text, what, args);
    printf("%s.%s (seed %llu): %s", c->row->name, c->name, (unsigned long long)c->seed, text);
}

static bool same_float(float a, float b) { return mf_f32_bits(a) == mf_f32_bits(b) || (a != a && b != b); }

bool check_floats(check *c, const float *ref, const float *got, size_t n, const char *what, ...) {
    c->n_compared++;
    for (size_t i = 0; i < n; i++) {
        if (same_float(ref[i], got[i])) continue;
        va_list args;
        va_start(args, what);
        report(c, what, args);
        va_end(args);
        if (c->n_failed <= MAX_REPORTS) {
            printf(": [%zu] of %zu is %.9g (%08x), not %.9g (%08x)\n", i, n, (double)got[i], mf_f32_bits(got[i]),
                   (double)ref[i], mf_f32_bits(ref[i]));
        }
        return false;
    }
    return true;
}

bool check_bytes(check *c, const void *ref, const void *got, size_t n, const char *what, ...) {
    const uint8_t *a = ref, *b = got;
    c->n_compared++;
    for (size_t i = 0; i < n; i++) {
        if (a[i] == b[i]) continue;
        va_list args;
        va_start(args, what);
        report(c, what, args);
        va_end(args);
        if (c->n_failed <= MAX_REPORTS) printf(": byte %zu of %zu is %02x, not %02x\n", i, n, b[i], a[i]);
        return false;
    }
    return true;
}

bool check_true(check *c, bool condition, const char *what, ...) {
    c->n_compared++;
    if (condition) return true;
    va_list args;
    va_start(args, what);
    report(c, what, args);
    va_end(args);
    if (c->n_failed <= MAX_REPORTS) printf("\n");
    return false;
}

// ---- Functions -----------------------------------------------------------------------------------------------------------

bool check_begin(check *c, const char *name) {
    if ((c->filter && !strstr(name, c->filter)) || (c->skip && strstr(name, c->skip))) return false;
    c->name = name;
    c->n_compared = c->n_failed = 0;
    c->state = c->seed;
    for (const char *p = name; *p; p++) c->state = c->state * 31 + (uint8_t)*p;
    return true;
}

void check_end(check *c) {
    check_free_buffers(c);
    printf("%-8s %-16s %7d compared, %d differ\n", c->row->name, c->name, c->n_compared, c->n_failed);
    fflush(stdout);
    c->n_failed_total += c->n_failed;
    c->name = NULL;
}

// Processor time of this thread: other programs on the machine do not count.
static double thread_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double check_time(void (*fn)(void *arg), void *arg) {
    const double start = thread_seconds();
    double best = 1e30;
    for (int i = 0; i < 3 || thread_seconds() - start < 0.05; i++) {
        const double from = thread_seconds();
        fn(arg);
        const double seconds = thread_seconds() - from;
        best = seconds < best ? seconds : best;
    }
    return best;
}

typedef struct options {
    bool bench, quick;
    const char *row, *filter, *skip;
    uint64_t seed;
} options;

static bool parse(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        const bool value = i + 1 < argc;
        if (strcmp(argv[i], "--bench") == 0) {
            o->bench = true;
        } else if (strcmp(argv[i], "--quick") == 0) {
            o->quick = true;
        } else if (strcmp(argv[i], "--skip") == 0 && value) {
            o->skip = argv[++i];
        } else if (strcmp(argv[i], "--row") == 0 && value) {
            o->row = argv[++i];
        } else if (strcmp(argv[i], "--seed") == 0 && value) {
            char *end;
            errno = 0;
            o->seed = strtoull(argv[++i], &end, 10);
            if (errno || *end || end == argv[i]) return false;
        } else if (argv[i][0] != '-' && !o->filter) {
            o->filter = argv[i];
        } else {
            return false;
        }
    }
    return true;
}

static void run_row(check *c, const options *o) {
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (!o->bench) groups[i].run(c);
        if (o->bench && groups[i].bench) groups[i].bench(c);
    }
}

int main(int argc, char **argv) {
    options o = {.seed = mf_clock_ns()};
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "usage: checkkernels [--bench] [--quick] [--row NAME] [--seed N] [--skip FUNCTION] [FUNCTION]\n");
        return 2;
    }
    mf_error err;
    if (o.row && !mf_kernels_choose(o.row, &err)) {
        fprintf(stderr, "checkkernels: %s\n", err.text);
        return 2;
    }
    const mf_kernels *ref = mf_kernels_choose("scalar", NULL);
    printf("seed %llu\n", (unsigned long long)o.seed);
    check c = {.ref = ref, .filter = o.filter, .skip = o.skip, .quick = o.quick, .seed = o.seed};
    for (const mf_kernels *const *row = mf_kernels_all(); *row; row++) {
        if (!(*row)->usable(mf_cpu_features_get()) || (o.row && strcmp((*row)->name, o.row) != 0)) continue;
        c.row = *row;
        run_row(&c, &o);
    }
    if (!o.bench) printf("%s\n", c.n_failed_total ? "FAILED" : "all the same");
    return c.n_failed_total ? 1 : 0;
}
