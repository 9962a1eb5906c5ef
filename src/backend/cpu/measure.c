// What this machine can do at most, for the benchmark's percentages.
#include <stdlib.h>
#include <string.h>

#include "backend/cpu/device.h"
#include "base/clock.h"
#include "base/mem.h"

#define READ_BYTES ((size_t)256 << 20)
#define READ_PIECE ((size_t)1 << 20)

typedef struct probe {
    cpu_device *device;
    const uint64_t *data;
    int next;
    uint64_t rounds;
    uint64_t *sum, *macs; // [workers]
} probe;

static void read_worker(void *arg, int worker) {
    probe *p = arg;
    uint64_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (size_t i; (i = (size_t)mf_pool_next(&p->next)) < READ_BYTES / READ_PIECE;) {
        const uint64_t *d = p->data + i * (READ_PIECE / 8);
        for (size_t j = 0; j < READ_PIECE / 8; j += 8) {
            __builtin_prefetch(d + j + 256, 0, 0);
            s0 += d[j] + d[j + 1], s1 += d[j + 2] + d[j + 3], s2 += d[j + 4] + d[j + 5], s3 += d[j + 6] + d[j + 7];
        }
    }
    p->sum[worker] += s0 + s1 + s2 + s3;
}

static void peak_worker(void *arg, int worker) {
    probe *p = arg;
    uint32_t sink = 0;
    p->macs[worker] = p->device->k->int8_peak(p->rounds, &sink);
    p->sum[worker] += sink;
}

static double best_read(probe *p) {
    double best = 0;
    for (int i = 0; i < 7; i++) {
        p->next = 0;
        uint64_t from = mf_clock_ns();
        mf_pool_run(p->device->pool, read_worker, p);
        double rate = (double)READ_BYTES / mf_clock_seconds(from, mf_clock_ns());
        if (rate > best) best = rate;
    }
    return best;
}

static double best_peak(probe *p) {
    double best = 0;
    p->rounds = 1000;
    for (int i = 0; i < 40; i++) {
        uint64_t from = mf_clock_ns(), macs = 0;
        mf_pool_run(p->device->pool, peak_worker, p);
        double seconds = mf_clock_seconds(from, mf_clock_ns());
        for (int w = 0; w < mf_pool_size(p->device->pool); w++) macs += p->macs[w];
        if (seconds < 0.01) { // too short to measure
            p->rounds *= 2;
            continue;
        }
        if ((double)macs / seconds > best) best = (double)macs / seconds;
    }
    return best;
}

bool mf_cpu_measure(mf_device *device, mf_device_limits *out, mf_error *err) {
    cpu_device *d = (cpu_device *)device;
    const size_t workers = (size_t)mf_pool_size(d->pool);
    void *data = mf_cpu_alloc(device, READ_BYTES);
    probe p = {
        .device = d, .data = data, .sum = mf_alloc(workers, sizeof *p.sum), .macs = mf_alloc(workers, sizeof *p.macs)};
    const bool ok = data && p.sum && p.macs;
    if (ok) {
        memset(data, 1, READ_BYTES);
        out->read_bytes_per_second = best_read(&p);
        out->int8_macs_per_second = best_peak(&p);
    }
    mf_cpu_release(device, data, READ_BYTES);
    free(p.sum);
    free(p.macs);
    return ok || mf_fail_memory(err, READ_BYTES, "the measurement");
}
