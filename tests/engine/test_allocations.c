// What a decode step allocates (nothing), and what a model and its engine keep in memory (what the plan says).
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "engine/greedy.h"
#include "support/cases.h"

static int allocations;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS_ALLOCATIONS 0
#endif
#endif
#ifndef COUNTS_ALLOCATIONS
#define COUNTS_ALLOCATIONS 1
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void *malloc(size_t size) { return __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED), __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED), __libc_calloc(n, size); }
void *realloc(void *ptr, size_t size) {
    return __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED), __libc_realloc(ptr, size);
}
#endif
#else
#define COUNTS_ALLOCATIONS 0
#endif

static void a_decode_step_allocates_nothing(void **state) {
    (void)state;
    if (!COUNTS_ALLOCATIONS) skip_because("a sanitizer has malloc for itself");
    mf_error err = {0};
    int32_t ids[80];
    for (int i = 0; i < 80; i++) ids[i] = 30 + i;
    mf_engine *e = engine(512, 32, 2);
    mf_sequence *s = sequence(e, 200), *other = sequence(e, 200);
    assert_true(mf_sequence_append(s, ids, 80, &err) && mf_sequence_append(other, ids + 3, 20, &err));
    const mf_event *events;
    size_t n;
    for (int i = 0; i < 8; i++) assert_true(mf_engine_step(e, &events, &n, &err));
    int before = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
    for (int i = 0; i < 150; i++) { // crosses KV blocks
        assert_true(mf_engine_step(e, &events, &n, &err));
        assert_int_equal(n, 2);
    }
    int after = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
    assert_int_equal(after - before, 0);
    mf_sequence_free(s);
    mf_sequence_free(other);
    mf_engine_free(e);
}

// The same where the cache is full, and one sequence gives its cells back to the other, finds its blocks and evaluates the rest again.
static void nor_does_a_step_in_a_full_cache(void **state) {
    (void)state;
    if (!COUNTS_ALLOCATIONS) skip_because("a sanitizer has malloc for itself");
    mf_error err = {0};
    int32_t ids[80];
    for (int i = 0; i < 80; i++) ids[i] = 30 + i;
    mf_engine *e = engine(256, 32, 2);
    mf_sequence *s = sequence(e, 150), *other = sequence(e, 150);
    assert_true(mf_sequence_append(s, ids, 80, &err) && mf_sequence_append(other, ids + 3, 70, &err));
    const mf_event *events;
    size_t n;
    for (int i = 0; i < 8; i++) assert_true(mf_engine_step(e, &events, &n, &err));
    int before = __atomic_load_n(&allocations, __ATOMIC_RELAXED), given_back = 0;
    while (!mf_engine_idle(e)) {
        int32_t evaluated = mf_sequence_n_evaluated(other);
        assert_true(mf_engine_step(e, &events, &n, &err));
        given_back += mf_sequence_n_evaluated(other) < evaluated;
    }
    assert_true(given_back > 0);
    assert_int_equal(__atomic_load_n(&allocations, __ATOMIC_RELAXED) - before, 0);
    mf_sequence_free(s);
    mf_sequence_free(other);
    mf_engine_free(e);
}

// Resident after load and use: at most the file, the cells, the planned activations and 60 MB.
static void memory_stays_within_the_plan(void **state) {
    (void)state;
    const char *folder = getenv("MINFER_TEST_MODELS");
    if (!COUNTS_ALLOCATIONS) skip_because("a sanitizer's memory is not in the plan");
    if (!folder) skip_because("MINFER_TEST_MODELS names no folder with models");
    char path[512];
    snprintf(path, sizeof path, "%s/smollm2-135m-instruct-q4_1.gguf", folder);
    fixture f;
    mf_error err = {0};
    uint64_t before = mf_memory_resident();
    if (!fixture_open(&f, path, NULL, 2, &err)) fail_msg("%s", err.text);
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = 1024;
    mf_engine *e = mf_engine_new(f.model, &f.devices, &p, &err);
    if (!e) fail_msg("%s", err.text);
    mf_sequence *s = sequence(e, 8);
    int32_t ids[600];
    for (int i = 0; i < 600; i++) ids[i] = 1000 + i;
    assert_true(mf_sequence_append(s, ids, 600, &err));
    drain(e, NULL);
    mf_engine_memory m = mf_engine_memory_of(e);
    uint64_t resident = mf_memory_resident() - before,
             bound = mf_gguf_file_size(f.file) + m.kv + m.activations + (60U << 20);
    print_message("resident %llu MB; file %zu, cells %zu, activations %zu MB\n", (unsigned long long)resident >> 20,
                  mf_gguf_file_size(f.file) >> 20, m.kv >> 20, m.activations >> 20);
    assert_true(resident <= bound);
    mf_sequence_free(s);
    mf_engine_free(e);
    fixture_close(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decode_step_allocates_nothing),
        cmocka_unit_test(nor_does_a_step_in_a_full_cache),
        cmocka_unit_test(memory_stays_within_the_plan),
    };
    return run_cases(argc, argv, tests, open_model, close_model);
}
