// A sequence after a context shift: it goes on, the same on every kernel row, with any number of threads and any batch; nobody else
// notices, and nobody is given its moved cells.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cpu/kernels.h"
#include "engine/golden.h"

enum {
    PROMPT = 250,
    KEEP = 20,
    DISCARD = 130,
    TURN = 12
};

static int32_t ids[MOST_ROWS];

static void good(bool ok, const mf_error *err) {
    if (!ok) fail_msg("%s", err->text);
}

typedef struct run {
    fixture f;
    mf_engine *e;
    mf_sequence *s;
    trace t;
} run;

static void steps(run *r) {
    mf_error err = {0};
    r->t.n_tokens = 0;
    good(trace_steps(r->e, r->s, &r->t, &err), &err);
}

static mf_sequence *start(run *r, bool traced) {
    mf_error err = {0};
    mf_sampler_params greedy;
    mf_sequence_params p;
    mf_sampler_params_init(&greedy);
    greedy.temp = 0;
    mf_sequence_params_init(&p);
    p.sampler = &greedy, p.max_tokens = N_DECODE;
    if (traced) p.on_logits = trace_record, p.arg = &r->t;
    mf_sequence *s = mf_sequence_new(r->e, &p, &err);
    good(s && mf_sequence_append(s, ids, PROMPT, &err), &err);
    return s;
}

static void begin(run *r, const char *row, int n_threads, int32_t n_batch, mf_type cells, int32_t n_ctx) {
    mf_error err = {0};
    *r = (run){0};
    good(golden_open(&r->f, MF_FIXTURES, "qwen2-mix", row, n_threads, &err), &err);
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = n_ctx, p.n_batch = n_batch, p.max_seqs = 3, p.kv_type = cells;
    good((r->e = mf_engine_new(r->f.model, &r->f.devices, &p, &err)) != NULL, &err);
    r->s = start(r, true);
    steps(r);
}

static void end(run *r) {
    mf_sequence_free(r->s);
    mf_engine_free(r->e);
    fixture_close(&r->f);
}

static void shift(run *r) {
    mf_error err = {0};
    int32_t before = mf_sequence_n_evaluated(r->s), n = mf_sequence_n_tokens(r->s), last = mf_sequence_tokens(r->s)[n - 1];
    good(mf_sequence_shift(r->s, KEEP, DISCARD, &err), &err);
    assert_int_equal(mf_sequence_n_evaluated(r->s), before - DISCARD);
    assert_int_equal(mf_sequence_n_tokens(r->s), n - DISCARD);
    const int32_t *tokens = mf_sequence_tokens(r->s);
    assert_memory_equal(tokens, ids, KEEP * sizeof *ids);
    assert_memory_equal(tokens + KEEP, ids + KEEP + DISCARD, (PROMPT - KEEP - DISCARD) * sizeof *ids);
    assert_int_equal(tokens[n - DISCARD - 1], last);
}

// The turn behind the shift: its logits and tokens.
static trace turn(run *r) {
    mf_error err = {0};
    int32_t evaluated = mf_sequence_n_evaluated(r->s), pending = mf_sequence_n_tokens(r->s) - evaluated;
    r->t = (trace){0};
    good(mf_sequence_append(r->s, ids + PROMPT, TURN, &err), &err);
    steps(r);
    assert_int_equal(r->t.n_tokens, N_DECODE);
    assert_int_equal(mf_sequence_n_evaluated(r->s), evaluated + pending + TURN + N_DECODE - 1); // nothing was read again
    return r->t;
}

static void same_everywhere(void **state) {
    (void)state;
    static const mf_type cells[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
    static const struct {
        int n_threads;
        int32_t n_batch;
    } ways[] = {{1, 64}, {2, 1}, {2, 7}, {3, 512}};
    for (size_t c = 0; c < sizeof cells / sizeof cells[0]; c++) {
        trace want = {0};
        for (const mf_kernels *const *k = mf_kernels_all(); *k; k++)
            for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
                bool best = k == mf_kernels_all();
                if (!(*k)->usable(mf_cpu_features_get()) || (!best && i != 3)) continue;
                run r;
                begin(&r, (*k)->name, ways[i].n_threads, ways[i].n_batch, cells[c], 1024);
                shift(&r);
                trace got = turn(&r);
                end(&r);
                if (want.n_tokens == 0) want = got;
                assert_memory_equal(&want, &got, sizeof want);
            }
    }
}

// With what is dropped in the end, cutting it away and evaluating the rest again is the same; in the middle it is not.
static void others_and_the_index(void **state) {
    (void)state;
    run r;
    begin(&r, NULL, 2, 64, MF_TYPE_F16, 1024);
    trace first = r.t;
    mf_sequence *own = r.s, *other = start(&r, false);
    assert_int_equal(mf_sequence_n_cached(other), PROMPT / MF_KV_BLOCK * MF_KV_BLOCK);
    shift(&r);
    turn(&r);
    r.s = other;
    r.t = (trace){0};
    mf_sequence_truncate(other, PROMPT);
    assert_memory_equal(mf_sequence_tokens(other), ids, PROMPT * sizeof *ids);
    mf_sequence_free(other);
    r.s = start(&r, true); // the prompt is known still, and its answer the same
    steps(&r);
    assert_memory_equal(first.tokens, r.t.tokens, sizeof first.tokens);
    mf_sequence_free(r.s);
    mf_error err = {0};
    int32_t known[MOST_ROWS], n = mf_sequence_n_tokens(own);
    memcpy(known, mf_sequence_tokens(own), (size_t)n * sizeof *known);
    r.s = start(&r, false);
    mf_sequence_truncate(r.s, 0);
    good(mf_sequence_append(r.s, known, (size_t)n, &err), &err);
    assert_int_equal(mf_sequence_n_cached(r.s), 0); // the first 64 tokens of the shifted one were moved in part
    mf_sequence_free(own);
    end(&r);
}

static void a_full_cache_shifts_in_place(void **state) {
    (void)state;
    run r;
    mf_error err = {0};
    begin(&r, NULL, 2, 64, MF_TYPE_F16, 320); // 257 tokens in five blocks of five
    mf_sequence *s = r.s;
    assert_false(mf_sequence_shift(s, 0, 300, &err));
    assert_non_null(strstr(err.text, "drops 300 tokens behind 0; 257 are evaluated"));
    assert_false(mf_sequence_shift(s, -1, 10, &err));
    assert_false(mf_sequence_shift(s, 5, 0, &err));
    shift(&r);
    turn(&r);
    end(&r);
}

static int load(void **state) {
    (void)state;
    return golden_ids(MF_FIXTURES, "long", ids) >= PROMPT + TURN ? 0 : -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_everywhere), cmocka_unit_test(others_and_the_index),
                                       cmocka_unit_test(a_full_cache_shifts_in_place)};
    return cmocka_run_group_tests(tests, load, NULL);
}
