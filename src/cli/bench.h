// Speed tests: what is run and what comes out. No printing here.
#ifndef MF_CLI_BENCH_H
#define MF_CLI_BENCH_H

#include "cli/load.h"

#define MF_BENCH_MAX_SAMPLES 1000

// What one token costs, for the percentages.
typedef struct mf_bench_costs {
    double weight_bytes;  // read in a decode step: all matmul weights once
    double kv_cell_bytes; // read for each cell that a row sees
    double macs_per_row;  // int8 multiply-adds of a prompt's row that is not the last: matmuls
    double macs_last_row; // of the row whose logits are wanted
} mf_bench_costs;

void mf_bench_costs_of(const mf_model *model, mf_type kv_type, mf_bench_costs *out);

typedef struct mf_bench_test {
    int32_t n_prompt, n_gen; // one of them is 0
    int32_t depth, parallel; // parallel sequences generate together
} mf_bench_test;

typedef struct mf_bench_result {
    mf_bench_test test;
    int32_t n; // samples
    double seconds[MF_BENCH_MAX_SAMPLES];
    double tokens;                   // of a sample
    double mean_seconds, sd_seconds; // the standard deviation is that of the samples (n - 1)
    double mean_rate, sd_rate;       // tokens per second
    double bandwidth_fraction;       // of the measured read bandwidth; a generation test
    double int8_fraction;            // of the measured int8 peak; a prompt test
} mf_bench_result;

// The context that a test needs: depth, its tokens and 16 more, for every sequence in whole blocks.
int64_t mf_bench_ctx(const mf_bench_test *test);

// Runs one test `repetitions` times, each from an empty cache. False with err; MF_ERR_CANCELLED after Ctrl-C.
bool mf_bench_run(const mf_loaded *l, const mf_bench_test *test, int32_t repetitions, mf_bench_result *out, mf_error *err);

// Does the test's work without a clock until `ms` milliseconds have passed.
bool mf_bench_warm_up(const mf_loaded *l, const mf_bench_test *test, int32_t ms, mf_error *err);

// Mean, deviation and rates out of the samples, and the fractions of the limits.
void mf_bench_sum_up(mf_bench_result *r, const mf_bench_costs *costs, const mf_device_limits *limits);

#endif
