// Weights on the CPU: vectors as floats, matrices in panels, matrices that are only gathered where they are mapped.
#include <stdlib.h>

#include "backend/cpu/device.h"
#include "backend/cpu/panels.h"
#include "base/mem.h"

static int64_t n_panels(const mf_weight *w) { return (w->n_out + MF_PANEL - 1) / MF_PANEL; }

static bool repacks(const cpu_device *d, const mf_weight *w) { return d->k->panels && (w->uses & MF_USE_MATMUL); }

size_t mf_cpu_weight_bytes(const mf_device *device, const mf_weight *w) {
    if (w->uses & MF_USE_VECTOR) return (size_t)w->n_in * sizeof(float);
    if (!repacks((const cpu_device *)device, w)) return 0;
    return (size_t)n_panels(w) * mf_panel_bytes(w->type, w->n_in);
}

typedef struct packing {
    const mf_pool *pool;
    const mf_weight *w;
    char *out;
    size_t panel_bytes;
    int *taken; // [workers]
} packing;

// Workers first write about the panels that they will read: where memory has several nodes, it comes to be near them.
static void pack_worker(void *arg, int worker) {
    packing *p = arg;
    int n = (int)n_panels(p->w);
    for (int i, helped = 0; (i = mf_pool_take(p->pool, p->taken, 1, n, worker, &helped)) >= 0;)
        mf_panel_pack(p->w->type, p->w->file, p->w->n_in, p->w->n_out, i, p->out + (size_t)i * p->panel_bytes);
}

static bool prepare_vector(mf_weight *w, bool *mapped_in_use, mf_error *err) {
    float *v = mf_alloc_aligned((size_t)w->n_in * sizeof *v, 64);
    if (!v) return mf_fail_memory(err, (size_t)w->n_in * sizeof *v, w->name);
    mf_type_info_of(w->type)->decode(w->file, v, (size_t)w->n_in);
    w->prepared = v;
    *mapped_in_use = false;
    return true;
}

// Makes panels of a matrix of the file.
static bool pack(cpu_device *d, const mf_weight *w, cpu_matrix *m, mf_error *err) {
    packing p = {.pool = d->pool, .w = w, .panel_bytes = mf_panel_bytes(w->type, w->n_in)};
    const size_t bytes = (size_t)n_panels(w) * p.panel_bytes;
    p.out = mf_cpu_store_alloc(d, bytes);
    if (!p.out) return mf_fail_memory(err, bytes, w->name);
    const size_t workers = (size_t)mf_pool_size(d->pool);
    p.taken = mf_alloc(workers, sizeof *p.taken);
    if (!p.taken) {
        mf_cpu_store_release(d, p.out);
        return mf_fail_memory(err, workers * sizeof *p.taken, w->name);
    }
    mf_pool_run(d->pool, pack_worker, &p);
    free(p.taken);
    m->matrix.data = p.out;
    m->matrix.stride = p.panel_bytes;
    m->panels = true;
    return true;
}

bool mf_cpu_weight_prepare(mf_device *device, mf_weight *w, bool *mapped_in_use, mf_error *err) {
    cpu_device *d = (cpu_device *)device;
    if (w->uses & MF_USE_VECTOR) return prepare_vector(w, mapped_in_use, err);
    if ((uint64_t)n_panels(w) > INT32_MAX) return mf_fail(err, MF_ERR_LIMIT, "%s: too many rows", w->name);
    cpu_matrix *m = mf_alloc(1, sizeof *m);
    if (!m) return mf_fail_memory(err, sizeof *m, w->name);
    size_t row_bytes = 0;
    mf_type_row_bytes(w->type, (uint64_t)w->n_in, &row_bytes);
    m->matrix = (mf_matrix){w->type, w->n_in, w->n_out, w->file, row_bytes};
    if (repacks(d, w) && !pack(d, w, m, err)) {
        free(m);
        return false;
    }
    *mapped_in_use = !m->panels;
    w->prepared = m;
    return true;
}

void mf_cpu_weight_release(mf_device *device, mf_weight *w) {
    if (!w->prepared) return;
    if (!(w->uses & MF_USE_VECTOR)) {
        cpu_matrix *m = w->prepared;
        if (m->panels) mf_cpu_store_release((cpu_device *)device, (void *)m->matrix.data);
    }
    free(w->prepared);
    w->prepared = NULL;
}

void mf_cpu_weight_row(const mf_weight *w, int64_t row, float *out) {
    const cpu_matrix *m = w->prepared;
    if (m->panels)
        mf_panel_row(&m->matrix, row, out);
    else
        mf_type_info_of(w->type)->decode((const char *)m->matrix.data + (size_t)row * m->matrix.stride, out,
                                         (size_t)w->n_in);
}
