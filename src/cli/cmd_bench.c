// minfer bench: speed, beside what the machine could do. Names of columns and keys are llama-bench's where it has them.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cpu.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/version.h"
#include "cli/bench.h"
#include "cli/commands.h"
#include "cli/info.h"
#include "cli/inside.h"
#include "cli/terminal.h"

typedef struct job {
    const mf_options *o;
    mf_loaded loaded;
    mf_engine_params params;
    mf_device_limits limits;
    mf_bench_costs costs;
    mf_bench_result *results;
    size_t n_results;
    char model_type[96];
    char time[32]; // of the start: 2026-01-31T12:00:00Z
} job;

// "llama 134.5 M Q4_1": the type that most of the weights' bytes have.
static void name_model(job *j) {
    double n = (double)mf_model_n_params(j->loaded.model);
    snprintf(j->model_type, sizeof j->model_type, "%s %.1f %s %s", mf_model_arch(j->loaded.model),
             n >= 1e9 ? n / 1e9 : n / 1e6, n >= 1e9 ? "B" : "M", mf_info_main_type(j->loaded.file));
}

// The context: what the tests need, or --ctx, which is no less.
static bool choose_ctx(job *j, const mf_bench_test *tests, size_t n, mf_error *err) {
    const mf_options *o = j->o;
    int32_t train = j->loaded.model->hparams.n_ctx_train;
    int64_t need = 1, most = (int64_t)train * o->parallel;
    for (size_t i = 0; i < n; i++) need = mf_bench_ctx(&tests[i]) > need ? mf_bench_ctx(&tests[i]) : need;
    if (need > most)
        return mf_fail(err, MF_ERR_LIMIT,
                       "these tests need a context of %" PRId64 " tokens; the model's maximum is %d a sequence", need,
                       train);
    if (o->ctx == MF_CTX_AUTO && !mf_load_auto_ctx(&j->loaded, &j->params, err)) return false;
    int64_t ctx = !o->ctx ? need : o->ctx == MF_CTX_AUTO ? j->params.n_ctx : o->ctx;
    if (ctx < need || ctx > most)
        return mf_fail(err, MF_ERR_LIMIT,
                       "--ctx %" PRId64 ": these tests need %" PRId64 " tokens, and at most %" PRId64 " are possible", ctx,
                       need, most);
    j->params.n_ctx = (int32_t)ctx;
    return true;
}

static bool load(job *j, const char *path, const mf_bench_test *tests, size_t n, mf_error *err) {
    mf_loaded *l = &j->loaded;
    if (!mf_engine_params_from(j->o, &j->params, err) || !mf_load_file(l, path, err) || !mf_load_devices(l, j->o, err) ||
        !mf_load_model(l, err))
        return false;
    j->params.max_seqs = j->o->parallel;
    j->params.prefix_cache = false; // every repetition reads its prompt
    if (!choose_ctx(j, tests, n, err) || !mf_load_engine(l, &j->params, err)) return false;
    mf_bench_costs_of(l->model, j->params.kv_type, &j->costs);
    name_model(j);
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(j->time, sizeof j->time, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return true;
}

// The machine's limits are measured before and after the tests: the larger is nearer to the truth where others use the
// machine too.
static bool measure(job *j, mf_error *err) {
    mf_device *device = j->loaded.devices.device[0];
    mf_device_limits now;
    if (!device->class->measure(device, &now, err)) return false;
    if (now.read_bytes_per_second > j->limits.read_bytes_per_second)
        j->limits.read_bytes_per_second = now.read_bytes_per_second;
    if (now.int8_macs_per_second > j->limits.int8_macs_per_second) j->limits.int8_macs_per_second = now.int8_macs_per_second;
    return true;
}

static bool run_tests(job *j, const mf_bench_test *tests, size_t n, mf_error *err) {
    if (!measure(j, err) || !mf_bench_warm_up(&j->loaded, &tests[0], j->o->warmup_ms, err)) return false;
    for (size_t i = 0; i < n; i++)
        if (!mf_bench_run(&j->loaded, &tests[i], j->o->repetitions, &j->results[i], err)) return false;
    j->n_results = n;
    if (!measure(j, err)) return false;
    for (size_t i = 0; i < n; i++) mf_bench_sum_up(&j->results[i], &j->costs, &j->limits);
    return true;
}

// ---- What is printed

static int n_threads(const job *j) {
    mf_device *d = j->loaded.devices.device[0];
    return d->class->n_threads(d);
}

// "pp512", "tg128 @ d1024 x 4"
static const char *test_name(const mf_bench_test *t, char out[64]) {
    int n = snprintf(out, 64, t->n_prompt ? "pp%d" : "tg%d", t->n_prompt ? t->n_prompt : t->n_gen);
    if (t->depth) n += snprintf(out + n, 64 - (size_t)n, " @ d%d", t->depth);
    if (t->parallel > 1) snprintf(out + n, 64 - (size_t)n, " x %d", t->parallel);
    return out;
}

static void print_md(const job *j, mf_buf *out) {
    char size[32], name[64];
    mf_buf_printf(out, "| model | size | params | backend | threads | test | t/s | of the limit | first token |\n"
                       "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |\n");
    for (size_t i = 0; i < j->n_results; i++) {
        const mf_bench_result *r = &j->results[i];
        mf_buf_printf(out, "| %s | %s | %.2f M | %s | %d | %s | %.2f ± %.2f | ", j->model_type,
                      mf_bytes_text(mf_gguf_file_size(j->loaded.file), size),
                      (double)mf_model_n_params(j->loaded.model) / 1e6, j->loaded.devices.device[0]->class->name,
                      n_threads(j), test_name(&r->test, name), r->mean_rate, r->sd_rate);
        if (r->test.n_prompt)
            mf_buf_printf(out, "%.1f %% of int8 peak | %.1f ms |\n", 100 * r->int8_fraction, 1000 * r->mean_seconds);
        else
            mf_buf_printf(out, "%.1f %% of bandwidth | |\n", 100 * r->bandwidth_fraction);
    }
    mf_buf_printf(out, "\n%s; read bandwidth %.1f GB/s, int8 peak %.1f G multiply-adds/s\n",
                  j->loaded.devices.device[0]->class->describe(j->loaded.devices.device[0]),
                  j->limits.read_bytes_per_second / 1e9, j->limits.int8_macs_per_second / 1e9);
}

typedef enum field_kind {
    FIELD_TEXT,
    FIELD_INT,
    FIELD_REAL,
    FIELD_NONE
} field_kind;

typedef struct field {
    const char *name;
    field_kind kind;
    const char *text;
    int64_t whole;
    double real;
} field;

// All fields of a result but its samples.
static size_t fields_of(const job *j, const mf_bench_result *r, field f[32]) {
    const mf_model *m = j->loaded.model;
    const mf_device *d = j->loaded.devices.device[0];
    const mf_bench_test *t = &r->test;
    const field all[] = {
        {"build_version", FIELD_TEXT, MF_VERSION, 0, 0},
        {"cpu_info", FIELD_TEXT, mf_cpu_name(), 0, 0},
        {"backends", FIELD_TEXT, d->class->name, 0, 0},
        {"device", FIELD_TEXT, d->class->describe(d), 0, 0},
        {"model_filename", FIELD_TEXT, j->loaded.path, 0, 0},
        {"model_type", FIELD_TEXT, j->model_type, 0, 0},
        {"model_size", FIELD_INT, NULL, (int64_t)mf_gguf_file_size(j->loaded.file), 0},
        {"model_n_params", FIELD_INT, NULL, (int64_t)mf_model_n_params(m), 0},
        {"n_batch", FIELD_INT, NULL, j->params.n_batch, 0},
        {"n_threads", FIELD_INT, NULL, n_threads(j), 0},
        {"type_k", FIELD_TEXT, mf_cache_type_name(j->params.kv_type), 0, 0},
        {"type_v", FIELD_TEXT, mf_cache_type_name(j->params.kv_type), 0, 0},
        {"n_prompt", FIELD_INT, NULL, t->n_prompt, 0},
        {"n_gen", FIELD_INT, NULL, t->n_gen, 0},
        {"n_depth", FIELD_INT, NULL, t->depth, 0},
        {"n_parallel", FIELD_INT, NULL, t->parallel, 0},
        {"test_time", FIELD_TEXT, j->time, 0, 0},
        {"avg_ns", FIELD_INT, NULL, (int64_t)(r->mean_seconds * 1e9), 0},
        {"stddev_ns", FIELD_INT, NULL, (int64_t)(r->sd_seconds * 1e9), 0},
        {"avg_ts", FIELD_REAL, NULL, 0, r->mean_rate},
        {"stddev_ts", FIELD_REAL, NULL, 0, r->sd_rate},
        {"first_token_ms", t->n_prompt ? FIELD_REAL : FIELD_NONE, NULL, 0, 1000 * r->mean_seconds},
        {"bandwidth_percent", t->n_gen ? FIELD_REAL : FIELD_NONE, NULL, 0, 100 * r->bandwidth_fraction},
        {"int8_peak_percent", t->n_prompt ? FIELD_REAL : FIELD_NONE, NULL, 0, 100 * r->int8_fraction},
        {"read_bytes_per_second", FIELD_REAL, NULL, 0, j->limits.read_bytes_per_second},
        {"int8_macs_per_second", FIELD_REAL, NULL, 0, j->limits.int8_macs_per_second},
    };
    _Static_assert(sizeof all / sizeof all[0] <= 32, "room for all fields");
    memcpy(f, all, sizeof all);
    return sizeof all / sizeof all[0];
}

static void print_json(const job *j, mf_buf *out) {
    mf_json_writer w = {.out = out, .indent = 2};
    mf_json_begin(&w, '[');
    for (size_t i = 0; i < j->n_results; i++) {
        const mf_bench_result *r = &j->results[i];
        field f[32];
        size_t n = fields_of(j, r, f);
        mf_json_begin(&w, '{');
        for (size_t k = 0; k < n; k++) {
            mf_json_key(&w, f[k].name);
            if (f[k].kind == FIELD_TEXT) mf_json_string(&w, mf_str_of(f[k].text));
            if (f[k].kind == FIELD_INT) mf_json_int(&w, f[k].whole);
            if (f[k].kind == FIELD_REAL) mf_json_real(&w, f[k].real);
            if (f[k].kind == FIELD_NONE) mf_json_null(&w);
        }
        mf_json_key(&w, "samples_ns");
        mf_json_begin(&w, '[');
        for (int32_t k = 0; k < r->n; k++) mf_json_int(&w, (int64_t)(r->seconds[k] * 1e9));
        mf_json_end(&w, ']');
        mf_json_key(&w, "samples_ts");
        mf_json_begin(&w, '[');
        for (int32_t k = 0; k < r->n; k++) mf_json_real(&w, r->tokens / r->seconds[k]);
        mf_json_end(&w, ']');
        mf_json_end(&w, '}');
    }
    mf_json_end(&w, ']');
    mf_buf_char(out, '\n');
}

static void csv_text(mf_buf *out, const char *text) {
    mf_buf shown = {0};
    mf_buf_shown(&shown, mf_str_of(text), false);
    mf_buf_char(out, '"');
    for (const char *p = shown.failed ? "" : shown.data; p && *p; p++) {
        if (*p == '"') mf_buf_char(out, '"');
        mf_buf_char(out, *p);
    }
    mf_buf_char(out, '"');
    free(shown.data);
}

static void print_csv(const job *j, mf_buf *out) {
    for (size_t i = 0; i < j->n_results; i++) {
        field f[32];
        size_t n = fields_of(j, &j->results[i], f);
        for (size_t k = 0; k < n && i == 0; k++) mf_buf_printf(out, "%s%s", f[k].name, k + 1 < n ? "," : "\n");
        for (size_t k = 0; k < n; k++) {
            if (f[k].kind == FIELD_TEXT) csv_text(out, f[k].text);
            if (f[k].kind == FIELD_INT) mf_buf_printf(out, "%" PRId64, f[k].whole);
            if (f[k].kind == FIELD_REAL) mf_buf_printf(out, "%.6f", f[k].real);
            mf_buf_char(out, k + 1 < n ? ',' : '\n');
        }
    }
}

static void print(const job *j, mf_buf *out) {
    if (j->o->json || strcmp(j->o->output, "json") == 0)
        print_json(j, out);
    else if (strcmp(j->o->output, "csv") == 0)
        print_csv(j, out);
    else
        print_md(j, out);
}

// MINFER_BATCH=0 asks for one sequence at a time; 1, for many, is what there is anyway.
static bool choose_parallel(mf_options *o, mf_error *err) {
    const char *batch = getenv("MINFER_BATCH");
    if (!batch || strcmp(batch, "0") != 0 || o->parallel == 1) return true;
    return mf_fail(err, MF_ERR_ARGUMENT, "MINFER_BATCH=0 asks for one sequence and --parallel for %d", o->parallel);
}

int mf_command_bench(mf_options *o) {
    mf_error err = {0};
    const char *path = mf_cli_model(o, &err);
    if (!path) return mf_cli_fail(&err), MF_EXIT_USAGE;
    if (!choose_parallel(o, &err)) return mf_cli_fail(&err), MF_EXIT_USAGE;
    mf_bench_test tests[2];
    size_t n = 0;
    if (o->bench_prompt) tests[n++] = (mf_bench_test){o->bench_prompt, 0, o->depth, 1};
    if (o->bench_gen) tests[n++] = (mf_bench_test){0, o->bench_gen, o->depth, o->parallel};
    if (n == 0) return mf_fail(&err, MF_ERR_ARGUMENT, "-p 0 and -n 0 leave no test"), mf_cli_fail(&err), MF_EXIT_USAGE;
    mf_interrupt_catch();
    job j = {.o = o, .results = mf_alloc(2, sizeof *j.results)};
    mf_buf text = {0};
    mf_output out = {0};
    bool ok = j.results || mf_fail_memory(&err, 2 * sizeof *j.results, "the results");
    ok = ok && load(&j, path, tests, n, &err) && run_tests(&j, tests, n, &err);
    if (ok) print(&j, &text);
    int code = !ok ? mf_cli_fail(&err) : mf_output_buf(&out, &text) ? MF_EXIT_DONE : MF_EXIT_REFUSED;
    if (ok) mf_inside_timing(&j.loaded);
    free(text.data);
    free(j.results);
    mf_unload(&j.loaded);
    return code;
}
