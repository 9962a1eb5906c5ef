// Weights on the CPU: vectors as floats, matrices in panels, matrices that are only gathered where they are mapped.
#include <inttypes.h>
#include <stdlib.h>

#include "backend/cpu/device.h"
#include "backend/cpu/panels.h"
#include "base/mem.h"
#include "quant/finite.h"

static int64_t n_panels(const mf_weight *w) { return (w->n_out + MF_PANEL - 1) / MF_PANEL; }

static bool repacks(const cpu_device *d, const mf_weight *w) { return d->k->panels && (w->uses & MF_USE_MATMUL); }

size_t mf_cpu_weight_bytes(const mf_device *device, const mf_weight *w) {
    if (w->uses & MF_USE_VECTOR) return (size_t)w->n_in * sizeof(float);
    if (!repacks((const cpu_device *)device, w)) return 0;
    return (size_t)n_panels(w) * mf_panel_bytes(w->type, w->n_in);
}

// The refusal of a weight that has a number that is not finite, by the place of the first one.
static bool check_finite(const mf_weight *w, size_t row_bytes, mf_error *err) {
    for (int64_t r = 0; r < w->n_out; r++) {
        const size_t n = (size_t)w->n_in,
                     bad = mf_first_not_finite(w->type, (const char *)w->file + (size_t)r * row_bytes, n);
        if (bad == n) continue;
        const size_t len = mf_type_info_of(w->type)->block_len;
        return mf_fail(err, MF_ERR_FORMAT, "the tensor %s is damaged: %s %zu of row %" PRId64 " is not a finite number",
                       w->name, len > 1 ? "the scale of block" : "value", bad / len, r);
    }
    return true;
}

typedef struct packing {
    const mf_pool *pool;
    const mf_weight *w;
    char *out; // NULL: the file's layout stays in use
    size_t row_bytes, panel_bytes;
    int *taken; // [workers]
    int damaged;
} packing;

// Packs panels, and checks the rows that they were made of while they are in the caches. Workers first write about the panels that they
// will read: where memory has several nodes, it comes to be near them.
static void pack_worker(void *arg, int worker) {
    packing *p = arg;
    const mf_weight *w = p->w;
    int n = (int)n_panels(w);
    for (int i, helped = 0; (i = mf_pool_take(p->pool, p->taken, 1, n, worker, &helped)) >= 0;) {
        const int64_t first = (int64_t)i * MF_PANEL, rows = w->n_out - first < MF_PANEL ? w->n_out - first : MF_PANEL;
        if (p->out) mf_panel_pack(w->type, w->file, w->n_in, w->n_out, i, p->out + (size_t)i * p->panel_bytes);
        if (!mf_all_finite(w->type, (const char *)w->file + (size_t)first * p->row_bytes, (size_t)(rows * w->n_in)))
            __atomic_store_n(&p->damaged, 1, __ATOMIC_RELAXED);
    }
}

static bool prepare_vector(mf_weight *w, bool *mapped_in_use, mf_error *err) {
    float *v = mf_alloc_aligned((size_t)w->n_in * sizeof *v, 64);
    if (!v) return mf_fail_memory(err, (size_t)w->n_in * sizeof *v, w->name);
    mf_type_info_of(w->type)->decode(w->file, v, (size_t)w->n_in);
    if (!check_finite(w, w->file_bytes, err)) {
        free(v);
        return false;
    }
    w->prepared = v;
    *mapped_in_use = false;
    return true;
}

// Goes over all rows of a matrix of the file; where `out` is not NULL, makes panels of them there.
static bool go_over(cpu_device *d, const mf_weight *w, size_t row_bytes, size_t panel_bytes, char *out, mf_error *err) {
    const size_t workers = (size_t)mf_pool_size(d->pool);
    packing p = {d->pool, w, out, row_bytes, panel_bytes, mf_alloc(workers, sizeof(int)), 0};
    if (!p.taken) return mf_fail_memory(err, workers * sizeof *p.taken, w->name);
    mf_pool_run(d->pool, pack_worker, &p);
    free(p.taken);
    return !p.damaged || check_finite(w, row_bytes, err);
}

// Makes panels of a matrix of the file.
static bool pack(cpu_device *d, const mf_weight *w, cpu_matrix *m, mf_error *err) {
    const size_t panel_bytes = mf_panel_bytes(w->type, w->n_in), bytes = (size_t)n_panels(w) * panel_bytes;
    char *out = mf_cpu_store_alloc(d, bytes);
    if (!out) return mf_fail_memory(err, bytes, w->name);
    if (!go_over(d, w, m->matrix.stride, panel_bytes, out, err)) {
        mf_cpu_store_release(d, out);
        return false;
    }
    m->matrix.data = out;
    m->matrix.stride = panel_bytes;
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
    // A matrix that is only gathered is read, and checked, row by row as it is used.
    const bool ok =
        repacks(d, w) ? pack(d, w, m, err) : !(w->uses & MF_USE_MATMUL) || go_over(d, w, row_bytes, 0, NULL, err);
    if (!ok) {
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
