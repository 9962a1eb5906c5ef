#include "graph/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"

#define FIRST_VALUES 8

struct mf_watcher {
    char *dir;        // NULL: no trace
    char *dump_dir;   // NULL: no values
    char *dump_names; // NULL: of all nodes
    bool timing;
    mf_op_time time[MF_OP_COUNT];
    uint64_t steps;
    mf_array(float) row; // an opaque row, decoded
    mf_buf line;
};

void mf_watcher_free(mf_watcher *w) {
    if (!w) return;
    free(w->dir);
    free(w->dump_dir);
    free(w->dump_names);
    free(w->row.data);
    free(w->line.data);
    free(w);
}

static bool make_dir(const char *dir, mf_error *err) {
    struct stat s;
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return mf_fail(err, MF_ERR_IO, "can't make the folder '%.200s': %s", dir, strerror(errno));
    if (stat(dir, &s) != 0 || !S_ISDIR(s.st_mode)) return mf_fail(err, MF_ERR_IO, "'%.200s' is not a folder", dir);
    return true;
}

static bool copy(const char *text, char **out, mf_error *err) {
    *out = text ? mf_copy_text(text, strlen(text)) : NULL;
    return !text || *out || mf_fail_memory(err, strlen(text), "the trace");
}

static bool copy_dir(const char *dir, char **out, mf_error *err) {
    return copy(dir, out, err) && (!dir || make_dir(dir, err));
}

mf_watcher *mf_watcher_new(const mf_graph_watch *watch, mf_error *err) {
    mf_watcher *w = mf_alloc(1, sizeof *w);
    if (!w) return mf_fail_memory(err, sizeof *w, "the trace"), NULL;
    w->timing = watch->timing;
    if (copy_dir(watch->trace_dir, &w->dir, err) && copy_dir(watch->dump_dir, &w->dump_dir, err) &&
        copy(watch->dump_names, &w->dump_names, err))
        return w;
    mf_watcher_free(w);
    return NULL;
}

// ---- The trace

typedef struct statistics {
    int64_t n, finite;
    double min, max, sum, squares; // of the finite ones
    int n_first;
    float first[FIRST_VALUES];
} statistics;

static void count(statistics *s, const float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (s->n_first < FIRST_VALUES) s->first[s->n_first++] = x[i];
        s->n++;
        if (!isfinite(x[i])) continue;
        double v = (double)x[i];
        if (s->finite == 0 || v < s->min) s->min = v;
        if (s->finite == 0 || v > s->max) s->max = v;
        s->finite++;
        s->sum += v;
        s->squares += v * v;
    }
}

static int64_t rows_of(const mf_value *v, const mf_step *step) {
    return mf_value_dim(v, 1, step) * mf_value_dim(v, 2, step) * mf_value_dim(v, 3, step);
}

// Row r of a value; NULL where its format is opaque and can't be decoded, or memory is out (then the line fails).
static const float *row_of(mf_watcher *w, const mf_program *p, const mf_device *device, mf_ref ref, int64_t r) {
    const mf_value *v = &p->values[ref];
    const char *data = mf_value_data(p, ref);
    if (v->format == MF_FORMAT_F32) return (const float *)data + r * v->ne[0];
    if (!device->class->decode_row) return NULL;
    if (!mf_array_reserve(&w->row, (size_t)v->ne[0])) return w->line.failed = true, NULL;
    size_t stride = device->class->row_bytes(device, v->format, v->ne[0]);
    device->class->decode_row(device, v->format, data + (size_t)r * stride, v->ne[0], w->row.data);
    return w->row.data;
}

// False when there is a shape only.
static bool measure(mf_watcher *w, const mf_program *p, const mf_device *device, mf_ref ref, const mf_step *step,
                    statistics *s) {
    const mf_value *v = &p->values[ref];
    int64_t rows = rows_of(v, step);
    for (int64_t r = 0; r < rows; r++) {
        const float *row = row_of(w, p, device, ref, r);
        if (!row) return false;
        count(s, row, v->ne[0]);
    }
    return true;
}

static void json_real(mf_json_writer *w, const char *key, double value) {
    if (key) mf_json_key(w, key);
    if (isfinite(value))
        mf_json_real(w, value);
    else
        mf_json_string(w, isnan(value) ? MF_STR("nan") : value > 0 ? MF_STR("inf") : MF_STR("-inf"));
}

static void json_ids(mf_json_writer *w, const char *key, const int32_t *ids, int32_t n) {
    mf_json_key(w, key);
    mf_json_begin(w, '[');
    for (int32_t i = 0; i < n; i++) mf_json_int(w, ids[i]);
    mf_json_end(w, ']');
}

static void json_statistics(mf_json_writer *w, const statistics *s) {
    if (s->finite > 0) {
        json_real(w, "min", s->min);
        json_real(w, "max", s->max);
        json_real(w, "mean", s->sum / (double)s->finite);
        json_real(w, "l2", sqrt(s->squares));
    }
    mf_json_add_int(w, "non_finite", s->n - s->finite);
    mf_json_key(w, "first");
    mf_json_begin(w, '[');
    for (int i = 0; i < s->n_first; i++) json_real(w, NULL, (double)s->first[i]);
    mf_json_end(w, ']');
}

static bool put_line(mf_watcher *w, FILE *file) {
    mf_buf_char(&w->line, '\n');
    // Out at once: if a kernel crashes, the file tells which.
    bool ok = !w->line.failed && fwrite(w->line.data, 1, w->line.len, file) == w->line.len && fflush(file) == 0;
    w->line.len = 0;
    return ok;
}

static bool trace_step(mf_watcher *w, FILE *file, const mf_step *step, int32_t n_nodes) {
    mf_json_writer j = {.out = &w->line};
    mf_json_begin(&j, '{');
    mf_json_add_int(&j, "step", (int64_t)w->steps);
    mf_json_add_int(&j, "nodes", n_nodes);
    json_ids(&j, "token", step->token, step->n_rows);
    json_ids(&j, "pos", step->pos, step->n_rows);
    json_ids(&j, "out_row", step->out_row, step->n_outs);
    mf_json_end(&j, '}');
    return put_line(w, file);
}

static bool trace_node(mf_watcher *w, FILE *file, const mf_program *p, const mf_device *device, int32_t i,
                       const mf_step *step) {
    const mf_node *n = &p->nodes[i];
    const mf_value *v = &p->values[n->dst];
    mf_json_writer j = {.out = &w->line};
    mf_json_begin(&j, '{');
    mf_json_add_int(&j, "node", i);
    mf_json_add_text(&j, "op", mf_op_name(n->op));
    mf_json_add_text(&j, "name", v->name);
    mf_json_add_text(&j, "device", device->class->name);
    mf_json_add_text(&j, "format", mf_format_name(v->format));
    mf_json_key(&j, "shape");
    mf_json_begin(&j, '[');
    for (int d = 0; d < 4; d++) mf_json_int(&j, mf_value_dim(v, d, step));
    mf_json_end(&j, ']');
    statistics s = {0};
    if (measure(w, p, device, n->dst, step, &s)) json_statistics(&j, &s);
    mf_json_end(&j, '}');
    return put_line(w, file);
}

// ---- Whole values

// Whether a value is one of those that were asked for: by its name, or its name within a layer.
static bool is_wanted(const mf_watcher *w, const char *name) {
    size_t len = strlen(name);
    for (const char *at = w->dump_names; at; at = strchr(at, ',')) {
        at += *at == ',';
        size_t n = strcspn(at, ",");
        bool ends = n <= len && strncmp(name + len - n, at, n) == 0;
        if (n && ends && (n == len || name[len - n - 1] == '.')) return true;
    }
    return !w->dump_names;
}

// NumPy's format, version 1: its mark, the length of the header, the header padded to whole 64 bytes, the numbers.
static void npy_header(const mf_value *v, const mf_step *step, mf_buf *out) {
    mf_buf shape = {0};
    int last = 3;
    while (last > 0 && mf_value_dim(v, last, step) == 1) last--;
    for (int d = last; d >= 0; d--) mf_buf_printf(&shape, "%lld,", (long long)mf_value_dim(v, d, step));
    mf_buf_add(out, "\x93NUMPY\1\0\0\0", 10);
    mf_buf_printf(out, "{'descr': '<f4', 'fortran_order': False, 'shape': (%s), }", shape.failed ? "" : shape.data);
    while (!out->failed && out->len % 64 != 63) mf_buf_char(out, ' ');
    mf_buf_char(out, '\n');
    out->failed = out->failed || shape.failed;
    if (!out->failed) out->data[8] = (char)((out->len - 10) & 255), out->data[9] = (char)((out->len - 10) >> 8);
    free(shape.data);
}

static bool dump_node(mf_watcher *w, const char *dir, const mf_program *p, const mf_device *device, int32_t i,
                      const mf_step *step, mf_error *err) {
    mf_ref ref = p->nodes[i].dst;
    const mf_value *v = &p->values[ref];
    if (v->ne[0] == 0 || !is_wanted(w, v->name) || !row_of(w, p, device, ref, 0)) return true;
    mf_buf path = {0}, header = {0};
    mf_buf_printf(&path, "%s/%s.npy", dir, v->name);
    npy_header(v, step, &header);
    FILE *file = path.failed || header.failed ? NULL : fopen(path.data, "wb");
    bool ok = file && fwrite(header.data, 1, header.len, file) == header.len;
    for (int64_t r = 0, rows = rows_of(v, step); ok && r < rows; r++)
        ok = fwrite(row_of(w, p, device, ref, r), sizeof(float), (size_t)v->ne[0], file) == (size_t)v->ne[0];
    if (file && fclose(file) != 0) ok = false;
    if (!ok)
        mf_fail(err, MF_ERR_IO, "can't write the value '%.300s': %s", path.data ? path.data : v->name,
                path.failed || header.failed ? "out of memory" : strerror(errno));
    free(path.data);
    free(header.data);
    return ok;
}

// The folder of a step's values; NULL with err.
static char *step_dir(const mf_watcher *w, mf_error *err) {
    mf_buf path = {0};
    mf_buf_printf(&path, "%s/step-%06" PRIu64, w->dump_dir, w->steps);
    if (path.failed)
        mf_fail_memory(err, path.cap, "the trace");
    else if (make_dir(path.data, err))
        return path.data;
    free(path.data);
    return NULL;
}

// ---- Running

static bool run_nodes(mf_watcher *w, FILE *file, const char *dump, const mf_program *p, const mf_device_list *devices,
                      const mf_step *step, mf_error *err) {
    bool written = !file || trace_step(w, file, step, p->n_nodes);
    for (int32_t i = 0; i < p->n_nodes && written; i++) {
        mf_device *device = devices->device[p->nodes[i].device];
        uint64_t start = w->timing ? mf_clock_ns() : 0;
        if (!device->class->run(device, p, i, 1, step, err)) return false;
        if (w->timing) {
            mf_op_time *t = &w->time[p->nodes[i].op];
            t->seconds += mf_clock_seconds(start, mf_clock_ns());
            t->calls++;
        }
        // The node's value stands until a later group takes its storage.
        if (file) written = trace_node(w, file, p, device, i, step);
        if (dump && !dump_node(w, dump, p, device, i, step, err)) return false;
    }
    return written || mf_fail(err, MF_ERR_IO, "can't write the trace of step %" PRIu64 " into '%.200s': %s", w->steps,
                              w->dir, strerror(errno));
}

bool mf_watcher_run(mf_watcher *w, const mf_program *program, const mf_device_list *devices, const mf_step *step,
                    mf_error *err) {
    FILE *file = NULL;
    w->steps++;
    if (w->dir) {
        mf_buf path = {0};
        mf_buf_printf(&path, "%s/step-%06" PRIu64 ".jsonl", w->dir, w->steps);
        if (!path.failed) file = fopen(path.data, "w");
        int why = path.failed ? ENOMEM : errno;
        if (!file) mf_fail(err, MF_ERR_IO, "can't write the trace '%.300s': %s", path.data ? path.data : "", strerror(why));
        free(path.data);
        if (!file) return false;
    }
    char *dump = w->dump_dir ? step_dir(w, err) : NULL;
    bool ok = (dump || !w->dump_dir) && run_nodes(w, file, dump, program, devices, step, err);
    free(dump);
    if (file && fclose(file) != 0 && ok)
        ok = mf_fail(err, MF_ERR_IO, "can't write the trace of step %" PRIu64 " into '%.200s': %s", w->steps, w->dir,
                     strerror(errno));
    return ok;
}

// ---- Timing

const mf_op_time *mf_watcher_timing(const mf_watcher *w) { return w->timing ? w->time : NULL; }

void mf_op_time_table(const mf_op_time time[MF_OP_COUNT], mf_buf *out) {
    bool listed[MF_OP_COUNT] = {false};
    double total = 0;
    for (int op = 0; op < MF_OP_COUNT; op++) total += time[op].seconds;
    mf_buf_printf(out, "%-16s %10s %10s %7s %10s\n", "operation", "calls", "seconds", "share", "us/call");
    for (;;) {
        int slowest = -1;
        for (int op = 0; op < MF_OP_COUNT; op++)
            if (time[op].calls && !listed[op] && (slowest < 0 || time[op].seconds > time[slowest].seconds)) slowest = op;
        if (slowest < 0) break;
        const mf_op_time *t = &time[slowest];
        listed[slowest] = true;
        mf_buf_printf(out, "%-16s %10" PRIu64 " %10.4f %6.1f%% %10.2f\n", mf_op_name((mf_op)slowest), t->calls, t->seconds,
                      total > 0 ? 100 * t->seconds / total : 0.0, 1e6 * t->seconds / (double)t->calls);
    }
    mf_buf_printf(out, "%-16s %10s %10.4f\n", "all", "", total);
}
