#include "cli/bench.h"

#include <math.h>

#include "base/clock.h"
#include "cli/terminal.h"

#define MAX_PARALLEL 256

void mf_bench_costs_of(const mf_model *m, mf_type kv_type, mf_bench_costs *out) {
    *out = (mf_bench_costs){0};
    const mf_layer *last = &m->layers[m->hparams.n_layer - 1];
    for (size_t i = 0; i < m->n_weights; i++) {
        const mf_weight *w = &m->weights[i];
        if (!(w->uses & MF_USE_MATMUL)) continue;
        double macs = (double)w->n_in * (double)w->n_out;
        // Behind the last layer's attention only the row whose logits are wanted goes on.
        bool last_row_only =
            w == m->output || w == last->attn_output || w == last->ffn_gate || w == last->ffn_up || w == last->ffn_down;
        out->weight_bytes += (double)w->file_bytes;
        out->macs_last_row += macs;
        if (!last_row_only) out->macs_per_row += macs;
    }
    size_t head_bytes = 0;
    mf_type_row_bytes(kv_type, (uint64_t)m->hparams.head_dim, &head_bytes);
    out->kv_cell_bytes = 2.0 * m->hparams.n_layer * m->hparams.n_head_kv * (double)head_bytes;
}

static int64_t blocks(int64_t cells) { return (cells + MF_KV_BLOCK - 1) / MF_KV_BLOCK * MF_KV_BLOCK; }

int64_t mf_bench_ctx(const mf_bench_test *t) {
    int64_t cells = (int64_t)t->depth + t->n_prompt + t->n_gen + 16;
    return t->parallel > 1 ? blocks(cells) * t->parallel : cells;
}

// Pseudo-random ids, the same in every run.
static int32_t next_id(uint32_t *state, int32_t n_vocab) {
    *state = *state * 1664525U + 1013904223U;
    return (int32_t)((uint64_t)*state * (uint32_t)n_vocab >> 32);
}

static bool append_ids(mf_sequence *s, int32_t n, uint32_t *state, int32_t n_vocab, mf_error *err) {
    int32_t piece[256];
    while (n > 0) {
        int32_t m = n < 256 ? n : 256;
        for (int32_t i = 0; i < m; i++) piece[i] = next_id(state, n_vocab);
        if (!mf_sequence_append(s, piece, (size_t)m, err)) return false;
        n -= m;
    }
    return true;
}

typedef struct rep {
    const mf_loaded *l;
    mf_sequence *seq[MAX_PARALLEL];
    int32_t n;
    uint32_t random;
    uint64_t deadline; // 0: none
} rep;

static bool late(const rep *r) { return r->deadline && mf_clock_ns() >= r->deadline; }

static bool run_until_idle(rep *r, mf_error *err) {
    const mf_event *events;
    size_t n;
    while (!mf_engine_idle(r->l->engine) && !late(r)) {
        if (mf_interrupted()) return mf_fail(err, MF_ERR_CANCELLED, "stopped");
        if (!mf_engine_step(r->l->engine, &events, &n, err)) return false;
        for (size_t i = 0; i < n; i++) {
            if (events[i].finish != MF_FINISH_ERROR) continue;
            *err = events[i].error;
            return false;
        }
    }
    return true;
}

static bool append_all(rep *r, int32_t n, mf_error *err) {
    for (int32_t i = 0; i < r->n; i++)
        if (!append_ids(r->seq[i], n, &r->random, r->l->model->hparams.n_vocab, err)) return false;
    return true;
}

// One sample: the depth untimed, then the test's own tokens.
static bool work(rep *r, const mf_bench_test *t, double *seconds, mf_error *err) {
    if (!append_all(r, t->depth, err) || !run_until_idle(r, err)) return false;
    uint64_t start = mf_clock_ns();
    if (t->n_prompt && (!append_all(r, t->n_prompt, err) || !run_until_idle(r, err))) return false;
    for (int32_t i = 0; i < t->n_gen && !late(r); i++)
        if (!append_all(r, 1, err) || !run_until_idle(r, err)) return false;
    *seconds = mf_clock_seconds(start, mf_clock_ns());
    return true;
}

static bool repeat_once(const mf_loaded *l, const mf_bench_test *t, uint64_t deadline, double *seconds, mf_error *err) {
    rep r = {.l = l, .random = 1, .deadline = deadline};
    mf_sequence_params params;
    mf_sequence_params_init(&params);
    bool ok = true;
    for (; r.n < t->parallel && ok; r.n += ok) ok = (r.seq[r.n] = mf_sequence_new(l->engine, &params, err)) != NULL;
    ok = ok && work(&r, t, seconds, err);
    for (int32_t i = 0; i < r.n; i++) mf_sequence_free(r.seq[i]);
    return ok;
}

bool mf_bench_warm_up(const mf_loaded *l, const mf_bench_test *t, int32_t ms, mf_error *err) {
    uint64_t deadline = mf_clock_ns() + (uint64_t)ms * 1000000U;
    double seconds;
    while (mf_clock_ns() < deadline)
        if (!repeat_once(l, t, deadline, &seconds, err)) return false;
    return true;
}

bool mf_bench_run(const mf_loaded *l, const mf_bench_test *t, int32_t repetitions, mf_bench_result *out, mf_error *err) {
    *out = (mf_bench_result){.test = *t, .tokens = (double)(t->n_prompt + t->n_gen) * t->parallel};
    for (; out->n < repetitions; out->n++)
        if (!repeat_once(l, t, 0, &out->seconds[out->n], err)) return false;
    return true;
}

// Mean and standard deviation of `scale / seconds` (inverse) or of the seconds.
static void mean_and_sd(const mf_bench_result *r, bool inverse, double *mean, double *sd) {
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < r->n; i++) sum += inverse ? r->tokens / r->seconds[i] : r->seconds[i];
    *mean = sum / r->n;
    for (int32_t i = 0; i < r->n; i++) {
        double d = (inverse ? r->tokens / r->seconds[i] : r->seconds[i]) - *mean;
        squares += d * d;
    }
    *sd = r->n > 1 ? sqrt(squares / (r->n - 1)) : 0;
}

void mf_bench_sum_up(mf_bench_result *r, const mf_bench_costs *costs, const mf_device_limits *limits) {
    const mf_bench_test *t = &r->test;
    mean_and_sd(r, false, &r->mean_seconds, &r->sd_seconds);
    mean_and_sd(r, true, &r->mean_rate, &r->sd_rate);
    if (t->n_gen && limits->read_bytes_per_second > 0) { // a step reads the weights once for all sequences
        double cells = t->depth + (t->n_gen + 1) / 2.0, steps = r->mean_rate / t->parallel;
        r->bandwidth_fraction =
            steps * (costs->weight_bytes + t->parallel * cells * costs->kv_cell_bytes) / limits->read_bytes_per_second;
    }
    if (t->n_prompt && limits->int8_macs_per_second > 0) {
        double macs = costs->macs_per_row * (t->n_prompt - 1) + costs->macs_last_row;
        r->int8_fraction = r->mean_rate / t->n_prompt * macs / limits->int8_macs_per_second;
    }
}
