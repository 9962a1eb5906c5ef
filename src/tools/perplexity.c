#include "tools/perplexity.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/real.h"

#define NEGLIGIBLE (-16.0F) // log-probabilities of the base below this are left out of the divergence

void mf_perplexity_free(mf_perplexity *p) {
    free(p->divergences);
    p->divergences = NULL;
}

static void add(mf_sums *s, double value) {
    s->sum += value;
    s->squares += value * value;
}

typedef struct run {
    const mf_perplexity_task *task;
    mf_perplexity *out;
    int32_t chunk, n_vocab;
    float *base; // a row's log-probabilities
    bool failed;
    mf_error error;
} run;

static int32_t best_of(const float *values, int32_t n) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (values[i] > values[best]) best = i;
    return best;
}

// Sum of exp(values[i] - top), in blocks.
static double sum_exp(const float *values, int32_t n, float top) {
    double x[MF_EXP64_BLOCK], y[MF_EXP64_BLOCK], sum = 0;
    for (int32_t at = 0; at < n; at += MF_EXP64_BLOCK) {
        int32_t m = n - at < MF_EXP64_BLOCK ? n - at : MF_EXP64_BLOCK;
        for (int32_t i = 0; i < MF_EXP64_BLOCK; i++) x[i] = i < m ? (double)values[at + i] - (double)top : -1000;
        mf_exp64_block(x, y);
        for (int32_t i = 0; i < m; i++) sum += y[i];
    }
    return sum;
}

static double divergence(const float *base, const float *logits, int32_t n, double log_sum) {
    double x[MF_EXP64_BLOCK], y[MF_EXP64_BLOCK], sum = 0;
    for (int32_t at = 0; at < n; at += MF_EXP64_BLOCK) {
        int32_t m = n - at < MF_EXP64_BLOCK ? n - at : MF_EXP64_BLOCK;
        for (int32_t i = 0; i < MF_EXP64_BLOCK; i++)
            x[i] = i < m && base[at + i] > NEGLIGIBLE ? (double)base[at + i] : -1000;
        mf_exp64_block(x, y);
        for (int32_t i = 0; i < m; i++)
            if (base[at + i] > NEGLIGIBLE) sum += y[i] * ((double)base[at + i] - (double)logits[at + i] + log_sum);
    }
    return sum;
}

static bool compare(run *r, int32_t row, const float *logits, int32_t best, int32_t target, double log_sum, double nll) {
    mf_perplexity *out = r->out;
    if (!mf_logits_row(r->task->base, r->chunk, row, r->base, &r->error)) return false;
    double kl = divergence(r->base, logits, r->n_vocab, log_sum), base_nll = -(double)r->base[target];
    add(&out->divergence, kl);
    add(&out->base_nll, base_nll);
    add(&out->ratio, nll - base_nll);
    out->same_top += best_of(r->base, r->n_vocab) == best;
    out->divergences[out->n] = (float)kl;
    return true;
}

static bool score(run *r, int32_t row, const float *logits, int32_t target) {
    int32_t best = best_of(logits, r->n_vocab);
    if (!isfinite(logits[best]) || isnan(logits[target]))
        return mf_fail(&r->error, MF_ERR_NUMERIC, "row %" PRId32 " of chunk %" PRId32 " has a logit that is not finite", row,
                       r->chunk);
    double log_sum = (double)logits[best] + mf_log64(sum_exp(logits, r->n_vocab, logits[best]));
    double nll = log_sum - (double)logits[target];
    add(&r->out->nll, nll);
    bool ok = (!r->task->base || compare(r, row, logits, best, target, log_sum, nll)) &&
              (!r->task->save || mf_logits_write(r->task->save, logits, log_sum, &r->error));
    r->out->n++;
    return ok;
}

static void on_logits(void *arg, mf_sequence *sequence, int32_t position, const float *logits, int32_t n_vocab) {
    (void)sequence, (void)n_vocab;
    run *r = arg;
    if (r->failed || position + 1 >= r->task->n_ctx) return;
    int32_t target = r->task->tokens[(size_t)r->chunk * (size_t)r->task->n_ctx + (size_t)position + 1];
    r->failed = !score(r, position - r->task->n_ctx / 2, logits, target);
}

static bool step_to_end(run *r, mf_error *err) {
    const mf_event *events;
    size_t n;
    while (!mf_engine_idle(r->task->engine)) {
        if (!mf_engine_step(r->task->engine, &events, &n, err)) return false;
        for (size_t i = 0; i < n; i++)
            if (events[i].finish == MF_FINISH_ERROR) return *err = events[i].error, false;
        if (r->failed) return *err = r->error, false;
    }
    return true;
}

static bool read_chunk(run *r, int32_t *ids, mf_error *err) {
    const mf_perplexity_task *t = r->task;
    memcpy(ids, t->tokens + (size_t)r->chunk * (size_t)t->n_ctx, (size_t)t->n_ctx * sizeof *ids);
    if (t->bos >= 0) ids[0] = t->bos;
    mf_sequence_params params;
    mf_sequence_params_init(&params);
    params.logits_from = t->n_ctx / 2;
    params.on_logits = on_logits;
    params.arg = r;
    mf_sequence *s = mf_sequence_new(t->engine, &params, err);
    bool ok = s && mf_sequence_append(s, ids, (size_t)t->n_ctx, err) && step_to_end(r, err);
    mf_sequence_free(s);
    return ok;
}

static bool run_chunks(run *r, int32_t *ids, mf_error *err) {
    const mf_perplexity_task *t = r->task;
    for (r->chunk = 0; r->chunk < t->n_chunk; r->chunk++) {
        if (t->progress && !t->progress(t->arg, r->chunk)) return mf_fail(err, MF_ERR_CANCELLED, "stopped");
        if (!read_chunk(r, ids, err)) return false;
    }
    return true;
}

bool mf_perplexity_run(const mf_perplexity_task *t, mf_perplexity *out, mf_error *err) {
    run r = {.task = t, .out = out, .n_vocab = mf_engine_model(t->engine)->hparams.n_vocab};
    size_t rows = (size_t)t->n_chunk * (size_t)mf_logits_rows(t->n_ctx);
    int32_t *ids = mf_alloc((size_t)t->n_ctx, sizeof *ids);
    r.base = mf_alloc((size_t)r.n_vocab, sizeof *r.base);
    *out = (mf_perplexity){.divergences = mf_alloc(t->base ? rows : 1, sizeof *out->divergences)};
    bool ok = (ids && r.base && out->divergences) || mf_fail_memory(err, rows * sizeof *out->divergences, "the rows");
    ok = ok && run_chunks(&r, ids, err);
    free(ids);
    free(r.base);
    return ok;
}

mf_estimate mf_sums_mean(const mf_sums *s, int64_t n) {
    if (n < 1) return (mf_estimate){0, 0};
    double mean = s->sum / (double)n, variance = s->squares / (double)n - mean * mean;
    return (mf_estimate){mean, n > 1 && variance > 0 ? sqrt(variance / (double)(n - 1)) : 0};
}

mf_estimate mf_perplexity_of(const mf_sums *nll, int64_t n) {
    mf_estimate e = mf_sums_mean(nll, n);
    double value = mf_exp64(e.mean);
    return (mf_estimate){value, value * e.error};
}

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

double mf_perplexity_percentile(mf_perplexity *p, double fraction) {
    if (p->n < 1) return 0;
    qsort(p->divergences, (size_t)p->n, sizeof *p->divergences, by_value);
    double place = fraction * (double)(p->n - 1);
    size_t below = (size_t)place, above = below + 1 < (size_t)p->n ? below + 1 : below;
    double part = place - (double)below;
    return (1 - part) * (double)p->divergences[below] + part * (double)p->divergences[above];
}
