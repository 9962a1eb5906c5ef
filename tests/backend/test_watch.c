// A watched run: the same bytes, a trace whose numbers are those of the values, times that are counted, refusals.
#include <math.h>
#include <unistd.h>

#include "backend/backends.h"
#include "backend/op_rig.h"
#include "base/file.h"
#include "base/json.h"
#include "support/folder.h"

#define WIDTH 64
#define STEPS 3

typedef struct folder {
    char path[64];
    mf_device *device;
} folder;

static void step_path(const folder *f, int step, char path[128]) {
    snprintf(path, 128, "%s/trace/step-%06d.jsonl", f->path, step);
}

static int setup(void **state) {
    folder *f = calloc(1, sizeof *f);
    mf_error err = {0};
    size_t n;
    const mf_device_entry *known = mf_backends(&n);
    assert_true(folder_make(f->path, "watch"));
    f->device = known[n - 1].class->open(&(mf_device_options){2, NULL}, &err);
    if (!f->device) fail_msg("%s", err.text);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    folder *f = *state;
    char path[128];
    for (int i = 1; i <= STEPS; i++) step_path(f, i, path), unlink(path);
    snprintf(path, sizeof path, "%s/trace", f->path);
    rmdir(path);
    rmdir(f->path);
    f->device->class->close(f->device);
    free(f);
    return 0;
}

// norm, gate and up through int8 weights, swiglu, down: groups of one and of two nodes.
static mf_ref feed_forward(rig *r, rig_input *x) {
    *x = rig_rows(r, WIDTH);
    mf_ref n = mf_graph_rms_norm(&r->g, x->ref, rig_vector(r, MF_TYPE_F32, WIDTH), 1e-5F, "norm");
    mf_ref gate = mf_graph_matmul(&r->g, rig_weight(r, MF_TYPE_Q8_0, WIDTH, 96, MF_USE_MATMUL), n, "gate");
    mf_ref up = mf_graph_matmul(&r->g, rig_weight(r, MF_TYPE_Q4_0, WIDTH, 96, MF_USE_MATMUL), n, "up");
    mf_ref h = mf_graph_mul(&r->g, mf_graph_silu(&r->g, gate, "silu"), up, "gated");
    return mf_graph_matmul(&r->g, rig_weight(r, MF_TYPE_F16, 96, WIDTH, MF_USE_MATMUL), h, "down");
}

// Runs STEPS steps; the outputs of the last one are copied out.
static void run(rig *r, const folder *f, const mf_graph_watch *watch, float out[5 * WIDTH]) {
    rig_input x;
    *r = (rig){.devices = {{f->device}, 1}, .context = "watch", .watch = *watch};
    rig_begin(r, 5);
    rig_compile(r, feed_forward(r, &x), MF_FUSE_ALL, MF_OP_SWIGLU, false);
    for (int i = 0; i < STEPS; i++) memcpy(out, rig_step(r), 5 * WIDTH * sizeof *out);
}

static double number(const mf_json *object, const char *key) {
    double value;
    assert_true(mf_json_f64(mf_json_get(object, key), &value));
    return value;
}

// The last line's value is the output: its statistics from the numbers themselves.
static void check_output(const mf_json *line, const float out[5 * WIDTH]) {
    double min = INFINITY, max = -INFINITY, sum = 0, squares = 0, first;
    for (int i = 0; i < 5 * WIDTH; i++) {
        double v = (double)out[i];
        min = fmin(min, v), max = fmax(max, v), sum += v, squares += v * v;
    }
    assert_true(mf_str_is(mf_json_get(line, "name")->text, "down"));
    assert_true(number(line, "min") == min && number(line, "max") == max);
    assert_true(fabs(number(line, "mean") - sum / (5 * WIDTH)) < 1e-12);
    assert_true(fabs(number(line, "l2") - sqrt(squares)) < 1e-9);
    assert_true(mf_json_f64(mf_json_get(line, "first")->child, &first) && first == (double)out[0]);
    assert_int_equal(mf_json_get(line, "first")->count, 8);
    assert_int_equal(mf_json_get(line, "shape")->count, 4);
}

static void a_trace_holds_every_value_of_every_step(void **state) {
    const folder *f = *state;
    float plain[5 * WIDTH], traced[5 * WIDTH];
    char dir[128], path[128];
    rig r;
    snprintf(dir, sizeof dir, "%s/trace", f->path);
    run(&r, f, &(mf_graph_watch){0}, plain);
    assert_null(mf_graph_exec_timing(r.exec));
    rig_end(&r);
    run(&r, f, &(mf_graph_watch){.trace_dir = dir}, traced);
    assert_memory_equal(plain, traced, sizeof plain);
    assert_null(mf_graph_exec_timing(r.exec));
    size_t n_nodes = mf_graph_exec_graph(r.exec)->nodes.len;
    for (int step = 1; step <= STEPS; step++) {
        mf_buf text = {0};
        mf_error err = {0};
        mf_arena arena = {0};
        step_path(f, step, path);
        if (!mf_file_read(path, 1 << 20, &text, &err)) fail_msg("%s", err.text);
        size_t lines = 0, opaque = 0;
        for (char *at = text.data, *end; (end = strchr(at, '\n')); at = end + 1, lines++) {
            const mf_json *line = mf_json_parse(&arena, (mf_str){at, (size_t)(end - at)}, &err);
            if (!line) fail_msg("%s", err.text);
            if (lines == 0) {
                assert_true(number(line, "step") == step && number(line, "nodes") == (double)n_nodes);
                assert_int_equal(mf_json_get(line, "token")->count, 5);
                continue;
            }
            assert_true(number(line, "node") == (double)(lines - 1) && number(line, "non_finite") == 0);
            opaque += mf_str_is(mf_json_get(line, "format")->text, "a8_32");
            if (lines == n_nodes) check_output(line, traced);
        }
        assert_int_equal(lines, n_nodes + 1);
        assert_int_equal(opaque, 1);
        free(text.data);
        mf_arena_free(&arena);
    }
    rig_end(&r);
}

static void values_that_are_not_finite_are_counted(void **state) {
    const folder *f = *state;
    char dir[128], path[128];
    rig r = {.devices = {{f->device}, 1}, .context = "watch", .watch = {.trace_dir = dir}};
    snprintf(dir, sizeof dir, "%s/trace", f->path);
    rig_begin(&r, 3);
    rig_input x = rig_rows(&r, WIDTH);
    float *row = (float *)x.w->file + r.token[2] * WIDTH;
    row[0] = NAN, row[1] = -INFINITY, row[2] = 100;
    rig_run(&r, mf_graph_scale(&r.g, x.ref, 2, "y"), 0, MF_OP_SCALE);
    mf_buf text = {0};
    mf_error err = {0};
    step_path(f, 1, path);
    if (!mf_file_read(path, 1 << 20, &text, &err)) fail_msg("%s", err.text);
    const char *last = strstr(text.data, "\"op\":\"scale\"");
    assert_non_null(last);
    assert_non_null(strstr(last, "\"max\":200,"));
    assert_non_null(strstr(last, "\"non_finite\":2,"));
    free(text.data);
    rig_end(&r);
}

static void operations_are_timed(void **state) {
    const folder *f = *state;
    float plain[5 * WIDTH], timed[5 * WIDTH];
    rig r;
    run(&r, f, &(mf_graph_watch){0}, plain);
    rig_end(&r);
    run(&r, f, &(mf_graph_watch){.timing = true}, timed);
    assert_memory_equal(plain, timed, sizeof plain);
    const mf_op_time *time = mf_graph_exec_timing(r.exec);
    assert_non_null(time);
    uint64_t calls = 0;
    for (int op = 0; op < MF_OP_COUNT; op++) {
        calls += time[op].calls;
        assert_true(time[op].calls ? time[op].seconds > 0 : time[op].seconds == 0);
    }
    assert_int_equal(calls, STEPS * mf_graph_exec_graph(r.exec)->nodes.len);
    assert_int_equal(time[MF_OP_MATMUL].calls, STEPS * 3);
    assert_int_equal(time[MF_OP_ROPE].calls, 0);
    rig_end(&r);
}

static void the_table_has_the_slowest_first(void **state) {
    (void)state;
    mf_op_time time[MF_OP_COUNT] = {[MF_OP_GET_ROWS] = {0.5, 10}, [MF_OP_MATMUL] = {1.5, 300}};
    mf_buf table = {0};
    mf_op_time_table(time, &table);
    assert_string_equal(table.data, "operation             calls    seconds   share    us/call\n"
                                    "matmul                  300     1.5000   75.0%    5000.00\n"
                                    "get_rows                 10     0.5000   25.0%   50000.00\n"
                                    "all                             2.0000\n");
    free(table.data);
}

static void a_folder_that_cannot_be_made_is_refused(void **state) {
    const folder *f = *state;
    char dir[128];
    mf_error err = {0};
    float out[5 * WIDTH];
    rig r;
    run(&r, f, &(mf_graph_watch){0}, out);
    snprintf(dir, sizeof dir, "%s/no/such", f->path);
    assert_false(mf_graph_exec_watch(r.exec, &(mf_graph_watch){.trace_dir = dir}, &err));
    assert_int_equal(err.code, MF_ERR_IO);
    assert_non_null(strstr(err.text, dir));
    assert_false(mf_graph_exec_watch(r.exec, &(mf_graph_watch){.trace_dir = "/dev/null"}, &err));
    assert_non_null(strstr(err.text, "'/dev/null' is not a folder"));
    rig_step(&r); // unwatched, as before
    rig_end(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_holds_every_value_of_every_step),
        cmocka_unit_test(values_that_are_not_finite_are_counted),
        cmocka_unit_test(operations_are_timed),
        cmocka_unit_test(the_table_has_the_slowest_first),
        cmocka_unit_test(a_folder_that_cannot_be_made_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
