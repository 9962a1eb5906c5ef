#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/cpu/device.h"
#include "base/cpu.h"
#include "base/mem.h"
#include "base/promise.h"

#define HUGE_PAGE ((size_t)2 << 20)

static void cpu_close(mf_device *device) {
    cpu_device *d = (cpu_device *)device;
    if (!d) return;
    mf_cpu_release(device, d->scratch.memory, d->scratch.bytes);
    mf_pool_free(d->pool);
    pthread_mutex_destroy(&d->turn);
    free(d);
}

static mf_device *cpu_open(const mf_device_options *options, mf_error *err) {
    const mf_kernels *k = mf_kernels_choose(options->cpu_row, err);
    if (!k) return NULL;
    int n = options->n_threads > 0 ? options->n_threads : mf_cpu_default_threads();
    cpu_device *d = mf_alloc(1, sizeof *d);
    if (!d || pthread_mutex_init(&d->turn, NULL) != 0) {
        free(d);
        return mf_fail_memory(err, sizeof *d, "the CPU device"), NULL;
    }
    d->device.class = &mf_cpu_device_class;
    d->k = k;
    d->pool = mf_pool_new(n, err);
    if (!d->pool) return cpu_close(&d->device), NULL;
    snprintf(d->description, sizeof d->description, "cpu (%s, %d thread%s)", k->name, n, n == 1 ? "" : "s");
    return &d->device;
}

static const char *cpu_describe(const mf_device *device) { return ((const cpu_device *)device)->description; }

static int cpu_n_threads(const mf_device *device) { return mf_pool_size(((const cpu_device *)device)->pool); }

static size_t cpu_row_bytes(const mf_device *device, mf_format format, int64_t n) {
    (void)device;
    return format == MF_FORMAT_F32 ? (size_t)n * sizeof(float) : mf_act_row_bytes(format, n);
}

static void cpu_decode_row(const mf_device *device, mf_format format, const void *row, int64_t n, float *out) {
    (void)device;
    mf_act_decode(format, row, n, out);
}

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

// Large storage comes zeroed from the system on a huge page's boundary, in huge pages where there are any.
void *mf_cpu_alloc(mf_device *device, size_t bytes) {
    (void)device;
    size_t padded;
    if (!mf_add_size(bytes, HUGE_PAGE, &padded)) return NULL;
    char *p = mmap(NULL, padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    size_t head = mf_align_up((size_t)p, HUGE_PAGE) - (size_t)p;
    if (head) munmap(p, head);
    size_t keep = mf_align_up(bytes ? bytes : 1, page_bytes());
    if (padded - head > keep) munmap(p + head + keep, padded - head - keep);
    if (!mf_promise_add(p + head, keep)) {
        munmap(p + head, keep);
        return NULL;
    }
    if (bytes >= HUGE_PAGE) madvise(p + head, keep, MADV_HUGEPAGE);
    return p + head;
}

void mf_cpu_release(mf_device *device, void *ptr, size_t bytes) {
    (void)device;
    mf_promise_drop(ptr);
    if (ptr) munmap(ptr, mf_align_up(bytes ? bytes : 1, page_bytes()));
}

typedef struct shared_work {
    void (*piece)(void *arg, int32_t i);
    void *arg;
    int32_t n_pieces;
    int next;
} shared_work;

static void take_pieces(void *arg, int worker) {
    (void)worker;
    shared_work *w = arg;
    for (int i; (i = mf_pool_next(&w->next)) < w->n_pieces;) w->piece(w->arg, i);
}

static void cpu_share_out(mf_device *device, int32_t n_pieces, void (*piece)(void *arg, int32_t i), void *arg) {
    shared_work w = {piece, arg, n_pieces, 0};
    cpu_device *d = (cpu_device *)device;
    pthread_mutex_lock(&d->turn);
    mf_pool_run(d->pool, take_pieces, &w);
    pthread_mutex_unlock(&d->turn);
}

const mf_device_class mf_cpu_device_class = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .n_threads = cpu_n_threads,
    .supports = mf_cpu_supports,
    .row_bytes = cpu_row_bytes,
    .decode_row = cpu_decode_row,
    .alloc = mf_cpu_alloc,
    .release = mf_cpu_release,
    .weight_bytes = mf_cpu_weight_bytes,
    .weight_prepare = mf_cpu_weight_prepare,
    .weight_release = mf_cpu_weight_release,
    .scratch_bytes = mf_cpu_scratch_bytes,
    .reserve = mf_cpu_reserve,
    .run = mf_cpu_run_span,
    .share_out = cpu_share_out,
    .measure = mf_cpu_measure,
};
