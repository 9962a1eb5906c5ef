// The benchmark's arithmetic: means, deviations, costs and fractions of the limits.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "cli/bench.h"

static void context(void **state) {
    (void)state;
    mf_bench_test prompt = {512, 0, 0, 1}, deep = {0, 128, 100, 1}, four = {0, 128, 0, 4};
    assert_int_equal(mf_bench_ctx(&prompt), 528);
    assert_int_equal(mf_bench_ctx(&deep), 244);
    assert_int_equal(mf_bench_ctx(&four), 4 * 192);
}

static void generation(void **state) {
    (void)state;
    mf_bench_costs costs = {.weight_bytes = 1e9, .kv_cell_bytes = 1e6};
    mf_device_limits limits = {.read_bytes_per_second = 22e9, .int8_macs_per_second = 1e12};
    mf_bench_result r = {.test = {0, 19, 90, 1}, .n = 2, .seconds = {1.9, 3.8}, .tokens = 19};
    mf_bench_sum_up(&r, &costs, &limits);
    assert_float_equal(r.mean_seconds, 2.85, 1e-12);
    assert_float_equal(r.sd_seconds, 1.9 / sqrt(2), 1e-12);
    assert_float_equal(r.mean_rate, 7.5, 1e-12);
    assert_float_equal(r.sd_rate, 5 / sqrt(2), 1e-12);
    assert_float_equal(r.bandwidth_fraction, 7.5 * (1e9 + 100 * 1e6) / 22e9, 1e-12); // 90 cells and the middle of 1 … 19
    assert_float_equal(r.int8_fraction, 0, 0);
    mf_bench_result together = {.test = {0, 19, 90, 4}, .n = 1, .seconds = {1.9}, .tokens = 76};
    mf_bench_sum_up(&together, &costs, &limits);
    assert_float_equal(together.mean_rate, 40, 1e-12);
    assert_float_equal(together.sd_rate, 0, 0);
    assert_float_equal(together.bandwidth_fraction, 10 * (1e9 + 400 * 1e6) / 22e9, 1e-12); // weights once a step
}

static void prompt(void **state) {
    (void)state;
    mf_bench_costs costs = {.macs_per_row = 1e6, .macs_last_row = 5e6};
    mf_device_limits limits = {.read_bytes_per_second = 1e9, .int8_macs_per_second = 1e9};
    mf_bench_result r = {.test = {101, 0, 0, 1}, .n = 1, .seconds = {0.21}, .tokens = 101};
    mf_bench_sum_up(&r, &costs, &limits);
    assert_float_equal(r.int8_fraction, (100 * 1e6 + 5e6) / 0.21 / 1e9, 1e-12);
    assert_float_equal(r.bandwidth_fraction, 0, 0);
}

static void costs(void **state) {
    (void)state;
    mf_error err = {0};
    mf_gguf *file = mf_gguf_open(MF_FIXTURES "/tiny/llama-f32.gguf", &err);
    mf_model *m = file ? mf_model_new(file, &err) : NULL;
    if (!m) fail_msg("%s", err.text);
    const mf_hparams *h = &m->hparams;
    mf_bench_costs c;
    mf_bench_costs_of(m, MF_TYPE_F32, &c);
    double q = (double)h->n_head * h->head_dim * h->n_embd, kv = (double)h->n_head_kv * h->head_dim * h->n_embd;
    double ffn = 3.0 * h->n_embd * h->n_ff, head = (double)h->n_vocab * h->n_embd;
    assert_float_equal(c.macs_last_row, h->n_layer * (2 * q + 2 * kv + ffn) + head, 0);
    assert_float_equal(c.macs_per_row, c.macs_last_row - q - ffn - head, 0);
    assert_float_equal(c.weight_bytes, 4 * c.macs_last_row, 0); // F32: four bytes a multiply-add, nothing read twice
    assert_float_equal(c.kv_cell_bytes, 8.0 * h->n_layer * h->n_head_kv * h->head_dim, 0);
    mf_bench_costs_of(m, MF_TYPE_F16, &c);
    assert_float_equal(c.kv_cell_bytes, 4.0 * h->n_layer * h->n_head_kv * h->head_dim, 0);
    mf_model_free(m);
    mf_gguf_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(context), cmocka_unit_test(generation), cmocka_unit_test(prompt),
                                       cmocka_unit_test(costs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
