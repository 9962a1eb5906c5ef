// minfer doctor: what this machine has and what minfer uses of it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/backends.h"
#include "base/json.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/line.h"
#include "cli/load.h"
#include "cli/machine.h"
#include "cli/models.h"
#include "cli/terminal.h"

#define MAX_ROWS     16
#define MAX_BACKENDS 16

typedef struct row_facts {
    const char *name;
    bool usable, chosen;
    char text[128]; // chosen, or why it is not
} row_facts;

typedef struct backend_facts {
    const char *name;
    bool usable;
    char text[512]; // its description, or why it is not usable
} backend_facts;

typedef struct facts {
    mf_buf features;
    row_facts rows[MAX_ROWS];
    size_t n_rows;
    backend_facts backends[MAX_BACKENDS];
    size_t n_backends;
    int threads, default_threads;
    long online;
    bool threads_given;
    uint64_t memory, available;
    mf_device_limits limits;
    mf_cached_models models;
    mf_error models_refusal; // why the cache can't be read
    mf_buf history;          // the file of what was typed in chats; empty: there is no home
} facts;

static void look_at_rows(facts *f, const mf_kernels *chosen) {
    bool below = false; // the rows that come now are worse than the chosen one
    for (const mf_kernels *const *k = mf_kernels_all(); *k && f->n_rows < MAX_ROWS; k++) {
        row_facts *r = &f->rows[f->n_rows++];
        r->name = (*k)->name;
        r->usable = (*k)->usable(mf_cpu_features_get());
        r->chosen = *k == chosen;
        below = below || r->chosen;
        if (!r->usable)
            snprintf(r->text, sizeof r->text, "not usable: this processor or system lacks %s",
                     mf_machine_row_needs(r->name));
        else if (r->chosen)
            snprintf(r->text, sizeof r->text, "chosen: the best that %s",
                     f->n_rows == 1 || !f->rows[f->n_rows - 2].usable ? "works here" : "was allowed");
        else
            snprintf(r->text, sizeof r->text, "%s",
                     below ? "works here, slower than the chosen one" : "works here, ruled out by --cpu or the environment");
    }
}

static void look_at_backends(facts *f, const mf_options *o) {
    size_t n;
    const mf_device_entry *known = mf_backends(&n);
    for (size_t i = 0; i < n && i < MAX_BACKENDS; i++) {
        backend_facts *b = &f->backends[f->n_backends++];
        b->name = known[i].name;
        mf_options one = *o;
        const char *name = known[i].name;
        one.backends.data = &name;
        one.backends.len = 1;
        mf_device_list list;
        mf_error err = {0};
        b->usable = mf_devices_open(&list, &one, &err);
        snprintf(b->text, sizeof b->text, "%s", b->usable ? list.device[0]->class->describe(list.device[0]) : err.text);
        if (b->usable) mf_device_list_close(&list);
    }
}

static bool look(facts *f, const mf_options *o, mf_error *err) {
    const mf_kernels *chosen = mf_kernel_row(o, err);
    mf_device_list list;
    if (!chosen || !mf_devices_open(&list, o, err)) return false;
    mf_device *device = list.device[0];
    mf_machine_features(mf_cpu_features_get(), &f->features);
    look_at_rows(f, chosen);
    look_at_backends(f, o);
    f->threads = device->class->n_threads(device);
    f->default_threads = mf_cpu_default_threads();
    f->threads_given = o->threads > 0;
    f->online = sysconf(_SC_NPROCESSORS_ONLN);
    f->memory = mf_machine_memory_total();
    f->available = mf_memory_available();
    mf_models_scan(&f->models, &f->models_refusal);
    mf_line_history_path(&f->history);
    bool ok = device->class->measure(device, &f->limits, err);
    mf_device_list_close(&list);
    return ok;
}

static void print_folders(const facts *f, mf_buf *out) {
    mf_buf_text(out, "models       ");
    mf_buf_shown(out, mf_str_of(*f->models.dir ? f->models.dir : "no folder: there is no home"), false);
    if (f->models_refusal.code)
        mf_buf_printf(out, ": %s\n", f->models_refusal.text);
    else
        mf_buf_printf(out, ": %zu\n", f->models.list.len);
    for (size_t i = 0; i < f->models.list.len; i++) {
        mf_buf_printf(out, "%-13s", "");
        mf_buf_shown(out, mf_str_of(f->models.list.data[i].name), false);
        mf_buf_char(out, '\n');
    }
    mf_buf_text(out, "history      ");
    mf_buf_shown(out, mf_str_of(f->history.len ? f->history.data : "none: there is no home"), false);
    mf_buf_char(out, '\n');
}

static void print_text(const facts *f, mf_buf *out) {
    char a[32], b[32];
    mf_buf_printf(out, "minfer       %s, arithmetic %d\n", MF_VERSION, MF_ARITHMETIC_VERSION);
    mf_buf_printf(out, "processor    %s\nfeatures     %s\n", mf_cpu_name(), f->features.data ? f->features.data : "");
    for (size_t i = 0; i < f->n_rows; i++)
        mf_buf_printf(out, "%-12s %-8s %s\n", i ? "" : "kernels", f->rows[i].name, f->rows[i].text);
    if (f->threads_given)
        mf_buf_printf(out, "threads      %d by --threads; %d by default\n", f->threads, f->default_threads);
    else
        mf_buf_printf(out,
                      "threads      %d: one for each core this process may use, of %ld processors (affinity mask, CPU "
                      "quota, no SMT siblings)\n",
                      f->threads, f->online);
    mf_buf_printf(out, "bandwidth    %.1f GB/s read from memory, all threads\n", f->limits.read_bytes_per_second / 1e9);
    mf_buf_printf(out, "int8 peak    %.1f G multiply-adds/s in registers, all threads\n",
                  f->limits.int8_macs_per_second / 1e9);
    mf_buf_printf(out, "memory       %s free of %s\n", mf_bytes_text(f->available, a), mf_bytes_text(f->memory, b));
    for (size_t i = 0; i < f->n_backends; i++)
        mf_buf_printf(out, "%-12s %-8s %s\n", i ? "" : "backends", f->backends[i].name, f->backends[i].text);
    print_folders(f, out);
}

static void json_folders(const facts *f, mf_json_writer *w) {
    mf_json_key(w, "models");
    mf_json_begin(w, '{');
    mf_json_add_text(w, "directory", f->models.dir);
    mf_json_key(w, "names");
    mf_json_begin(w, '[');
    for (size_t i = 0; i < f->models.list.len; i++) mf_json_string(w, mf_str_of(f->models.list.data[i].name));
    mf_json_end(w, ']');
    if (f->models_refusal.code) mf_json_add_text(w, "refusal", f->models_refusal.text);
    mf_json_end(w, '}');
    mf_json_add_text(w, "history", f->history.len ? f->history.data : "");
}

static void json_verdict(mf_json_writer *w, const char *name, bool usable, const char *text) {
    mf_json_begin(w, '{');
    mf_json_add_text(w, "name", name);
    mf_json_key(w, "usable");
    mf_json_bool(w, usable);
    mf_json_add_text(w, "note", text);
    mf_json_end(w, '}');
}

static void print_json(const facts *f, mf_buf *out) {
    mf_json_writer w = {.out = out, .indent = 1};
    mf_json_begin(&w, '{');
    mf_json_add_text(&w, "version", MF_VERSION);
    mf_json_add_int(&w, "arithmetic", MF_ARITHMETIC_VERSION);
    mf_json_add_text(&w, "cpu", mf_cpu_name());
    mf_json_add_text(&w, "features", f->features.data ? f->features.data : "");
    mf_json_key(&w, "kernels");
    mf_json_begin(&w, '[');
    const char *chosen = "";
    for (size_t i = 0; i < f->n_rows; i++) {
        json_verdict(&w, f->rows[i].name, f->rows[i].usable, f->rows[i].text);
        if (f->rows[i].chosen) chosen = f->rows[i].name;
    }
    mf_json_end(&w, ']');
    mf_json_add_text(&w, "kernels_chosen", chosen);
    mf_json_add_int(&w, "threads", f->threads);
    mf_json_add_int(&w, "default_threads", f->default_threads);
    mf_json_add_int(&w, "processors", f->online);
    mf_json_add_real(&w, "read_bytes_per_second", f->limits.read_bytes_per_second);
    mf_json_add_real(&w, "int8_macs_per_second", f->limits.int8_macs_per_second);
    mf_json_add_int(&w, "memory", (int64_t)f->memory);
    mf_json_add_int(&w, "memory_available", (int64_t)f->available);
    mf_json_key(&w, "backends");
    mf_json_begin(&w, '[');
    for (size_t i = 0; i < f->n_backends; i++)
        json_verdict(&w, f->backends[i].name, f->backends[i].usable, f->backends[i].text);
    mf_json_end(&w, ']');
    json_folders(f, &w);
    mf_json_end(&w, '}');
    mf_buf_char(out, '\n');
}

int mf_command_doctor(mf_options *o) {
    facts f = {0};
    mf_error err = {0};
    mf_buf text = {0};
    mf_output out = {0};
    bool ok = look(&f, o, &err);
    if (ok && o->json) print_json(&f, &text);
    if (ok && !o->json) print_text(&f, &text);
    int code = !ok ? mf_cli_fail(&err) : mf_output_buf(&out, &text) ? MF_EXIT_DONE : MF_EXIT_REFUSED;
    free(text.data);
    free(f.features.data);
    free(f.history.data);
    mf_models_free(&f.models);
    return code;
}
