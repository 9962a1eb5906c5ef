// A cache, rows or outputs that are short: whoever fits alone is served, in order of arrival, with the bytes it gets alone; who came last
// gives its cells back and goes on later; only what can never fit is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "engine/fixture.h"

#define MOST    8
#define N_VOCAB 288

static fixture model;
static mf_sampler_params hot;

static int open_model(void **state) {
    (void)state;
    mf_error err = {0};
    mf_sampler_params_init(&hot); // draws: a lost or repeated one would show
    hot.temp = 5, hot.top_k = 0, hot.top_p = 1;
    return fixture_open(&model, MF_FIXTURES "/tiny/llama-mix.gguf", NULL, 2, &err) ? 0 : -1;
}

static int close_model(void **state) {
    (void)state;
    fixture_close(&model);
    return 0;
}

typedef struct request {
    mf_sequence *seq;
    int32_t n_rows, last_row;  // whose logits were reported
    uint64_t sum[1200];        // of each row's logits
    int32_t n_events, n_first; // events; the step of the first one
    mf_finish finish;
    mf_error why;
} request;

static void note_row(void *arg, mf_sequence *seq, int32_t position, const float *logits, int32_t n_vocab) {
    request *r = arg;
    (void)seq;
    assert_true(r->n_rows == 0 || position == r->last_row + 1); // each once, in order
    r->n_rows++, r->last_row = position;
    for (int32_t i = 0; i < n_vocab; i++) {
        uint32_t bits;
        memcpy(&bits, &logits[i], sizeof bits);
        r->sum[position] = r->sum[position] * 31 + bits;
    }
}

static mf_engine *engine_with(const mf_engine_params *p) {
    mf_error err = {0};
    mf_engine *e = mf_engine_new(model.model, &model.devices, p, &err);
    if (!e) fail_msg("%s", err.text);
    return e;
}

static mf_engine_params params(int32_t n_blocks) {
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = n_blocks * MF_KV_BLOCK, p.max_seqs = MOST;
    return p;
}

static mf_engine *engine(int32_t n_blocks) {
    mf_engine_params p = params(n_blocks);
    return engine_with(&p);
}

static void open_request(mf_engine *e, request *r, int32_t max_tokens, int32_t logits_from) {
    mf_error err = {0};
    mf_sequence_params p;
    mf_sequence_params_init(&p);
    p.sampler = max_tokens ? &hot : NULL, p.max_tokens = max_tokens, p.on_logits = note_row, p.arg = r,
    p.logits_from = logits_from;
    *r = (request){0};
    if (!(r->seq = mf_sequence_new(e, &p, &err))) fail_msg("%s", err.text);
}

// The n tokens of a prompt by number; prompts of one family begin alike.
static void append(request *r, int family, int number, int32_t n) {
    int32_t ids[1200];
    mf_error err = {0};
    for (int32_t i = 0; i < n; i++) ids[i] = (i * (7 + 2 * family) + family) % 250;
    ids[n - 1] = 255 + number;
    r->finish = MF_FINISH_NONE, r->n_rows = 0;
    if (!mf_sequence_append(r->seq, ids, (size_t)n, &err)) fail_msg("%s", err.text);
}

static int32_t step(mf_engine *e, request *r, int n) {
    static int32_t at;
    mf_error err = {0};
    const mf_event *events;
    size_t n_events;
    if (!mf_engine_step(e, &events, &n_events, &err)) fail_msg("%s", err.text);
    at++;
    for (size_t i = 0; i < n_events; i++)
        for (int k = 0; k < n; k++) {
            if (r[k].seq != events[i].seq) continue;
            if (r[k].n_events++ == 0) r[k].n_first = at;
            r[k].finish = events[i].finish, r[k].why = events[i].error;
        }
    return (int32_t)n_events;
}

static void drain(mf_engine *e, request *r, int n) {
    for (int i = 0; !mf_engine_idle(e); i++) {
        assert_true(i < 20000); // everybody gets to an end
        step(e, r, n);
    }
}

static void same_tokens(const request *a, const request *b) {
    int32_t n = mf_sequence_n_tokens(a->seq);
    assert_int_equal(n, mf_sequence_n_tokens(b->seq));
    assert_memory_equal(mf_sequence_tokens(a->seq), mf_sequence_tokens(b->seq), (size_t)n * sizeof(int32_t));
}

static void close_requests(request *r, int n) {
    for (int i = 0; i < n; i++) mf_sequence_free(r[i].seq);
}

// ---- The cache

// n requests of one length meet in a cache that holds them one by one; each gets what it gets in a roomy one.
static void meet(int32_t n_blocks, int n, int32_t prompt, int32_t max_tokens, bool prefix_cache, bool share) {
    mf_engine_params p = params(n_blocks), wide = params(n_blocks * n);
    p.prefix_cache = prefix_cache, p.kv_share = share;
    mf_engine *small = engine_with(&p), *roomy = engine_with(&wide);
    request a[MOST], b[MOST];
    for (int i = 0; i < n; i++) {
        open_request(small, &a[i], max_tokens, -1), open_request(roomy, &b[i], max_tokens, -1);
        append(&a[i], i, i, prompt), append(&b[i], i, i, prompt);
    }
    drain(small, a, n), drain(roomy, b, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(a[i].finish, MF_FINISH_LENGTH);
        same_tokens(&a[i], &b[i]);
        assert_true(mf_sequence_n_draws(a[i].seq) == (uint64_t)max_tokens);
        assert_int_equal(a[i].n_events, max_tokens);
        assert_true(i == 0 || a[i].n_first >= a[i - 1].n_first); // in order of arrival
        assert_memory_equal(a[i].sum, b[i].sum, sizeof a[i].sum);
        assert_int_equal(a[i].n_rows, max_tokens);
        assert_int_equal(mf_sequence_n_cached(a[i].seq), 0);
    }
    close_requests(a, n), close_requests(b, n);
    assert_int_equal(mf_engine_kv_stats(small).blocks_used, 0);
    mf_engine_free(small);
    mf_engine_free(roomy);
}

static void whoever_fits_alone_is_served(void **state) {
    (void)state;
    for (int way = 0; way < 3; way++) {
        meet(8, 4, 3, 250, way > 0, way > 1);
        meet(8, 2, 350, 50, way > 0, way > 1);
        meet(7, 3, 150, 200, way > 0, way > 1);
        meet(1, 8, 20, 30, way > 0, way > 1);
    }
}

// Every row's logits are reported once, also of a sequence that had to evaluate rows again.
static void logits_are_reported_once(void **state) {
    (void)state;
    request r[2], alone;
    mf_engine *e = engine(8);
    open_request(e, &r[0], 300, -1), open_request(e, &r[1], 0, 0);
    append(&r[0], 0, 0, 10);
    append(&r[1], 1, 1, 280);
    drain(e, r, 2);          // the first one's answer drives the second one out
    append(&r[1], 1, 2, 60); // of which rows must be evaluated again
    drain(e, r, 2);
    assert_int_equal(r[1].n_rows, 60);
    mf_engine *roomy = engine(16);
    open_request(roomy, &alone, 0, 0);
    append(&alone, 1, 1, 280);
    drain(roomy, &alone, 1);
    append(&alone, 1, 2, 60);
    drain(roomy, &alone, 1);
    assert_memory_equal(alone.sum, r[1].sum, sizeof alone.sum);
    request known; // rows whose logits are wanted don't come from the index
    open_request(roomy, &known, 0, 0);
    append(&known, 1, 1, 280);
    drain(roomy, &known, 1);
    assert_int_equal(known.n_rows, 280);
    assert_int_equal(mf_sequence_n_cached(known.seq), 0);
    close_requests(r, 2), close_requests(&alone, 1), close_requests(&known, 1);
    mf_engine_free(e);
    mf_engine_free(roomy);
}

// An idle sequence gives way before a running one does, and its next turn is what it would have been.
static void idle_ones_give_way_first(void **state) {
    (void)state;
    request r[3], own[3];
    mf_engine *e = engine(10), *roomy = engine(40);
    for (int i = 0; i < 3; i++) open_request(e, &r[i], 20, -1), open_request(roomy, &own[i], 20, -1);
    append(&r[0], 0, 0, 200), append(&own[0], 0, 0, 200);
    drain(e, r, 3), drain(roomy, own, 3);
    for (int i = 1; i < 3; i++) append(&r[i], i, i, 250), append(&own[i], i, i, 250);
    drain(e, r, 3), drain(roomy, own, 3);
    assert_int_equal(mf_sequence_n_evaluated(r[0].seq), 0);
    assert_int_equal(r[1].n_first, r[2].n_first); // neither waited
    append(&r[0], 0, 3, 100), append(&own[0], 0, 3, 100);
    drain(e, r, 3), drain(roomy, own, 3);
    for (int i = 0; i < 3; i++) same_tokens(&r[i], &own[i]);
    close_requests(r, 3), close_requests(own, 3);
    mf_engine_free(e);
    mf_engine_free(roomy);
}

// Also where a younger one runs: it is not interrupted.
static void idle_ones_give_way_before_the_younger(void **state) {
    (void)state;
    request r[3];
    mf_engine *e = engine(10);
    for (int i = 0; i < 3; i++) open_request(e, &r[i], 20, -1);
    append(&r[0], 0, 0, 200); // four blocks
    drain(e, r, 3);
    append(&r[1], 1, 1, 250), append(&r[2], 2, 2, 60); // four and one, then five and two
    for (int32_t before = 0; !mf_engine_idle(e);) {
        step(e, r, 3);
        assert_true(mf_sequence_n_evaluated(r[2].seq) >= before);
        before = mf_sequence_n_evaluated(r[2].seq);
    }
    assert_int_equal(mf_sequence_n_evaluated(r[0].seq), 0);
    assert_int_equal(mf_engine_kv_stats(e).hit_cells, 0); // nor did it find its cells again within a step
    close_requests(r, 3);
    mf_engine_free(e);
}

// Who came later waits behind one for whom there is no room, also where there would be room for it: a short one doesn't overtake.
static void nobody_overtakes_one_that_waits(void **state) {
    (void)state;
    request r[3];
    mf_engine *e = engine(8);
    for (int i = 0; i < 3; i++) open_request(e, &r[i], 20, -1);
    append(&r[0], 0, 0, 280), append(&r[1], 1, 1, 250), append(&r[2], 2, 2, 20); // five blocks, five and one
    while (r[0].finish == MF_FINISH_NONE) {
        step(e, r, 3);
        if (r[0].finish == MF_FINISH_NONE) assert_int_equal(mf_sequence_n_evaluated(r[2].seq), 0);
    }
    drain(e, r, 3);
    assert_true(r[2].n_first >= r[1].n_first);
    for (int i = 0; i < 3; i++) assert_int_equal(r[i].finish, MF_FINISH_LENGTH);
    close_requests(r, 3);
    mf_engine_free(e);
}

// What counts is when a sequence began to wait, not when it was made or had its turn before.
static void a_woken_one_is_the_last(void **state) {
    (void)state;
    request r[2];
    mf_engine *e = engine(8);
    for (int i = 0; i < 2; i++) open_request(e, &r[i], 20, -1);
    for (int turn = 0; turn < 3; turn++) {
        int first = turn % 2 == 0; // whose place is behind the other's
        r[0].n_events = r[1].n_events = 0;
        append(&r[first], first, turn, turn ? 40 : 300); // one fits, and two don't
        append(&r[!first], !first, turn, turn ? 40 : 300);
        drain(e, r, 2);
        assert_true(r[first].n_first < r[!first].n_first);
    }
    close_requests(r, 2);
    mf_engine_free(e);
}

// Its cells can be shifted all the same: they are made again first.
static void who_gave_way_can_be_shifted(void **state) {
    (void)state;
    mf_error err = {0};
    request r[2], own;
    mf_engine *e = engine(8), *roomy = engine(8);
    open_request(e, &r[0], 20, -1), open_request(e, &r[1], 20, -1), open_request(roomy, &own, 20, -1);
    append(&r[0], 0, 0, 300), append(&own, 0, 0, 300);
    drain(e, r, 2), drain(roomy, &own, 1);
    append(&r[1], 1, 1, 400);
    drain(e, r, 2);
    assert_int_equal(mf_sequence_n_evaluated(r[0].seq), 0);
    assert_false(mf_sequence_shift(r[0].seq, 10, 400, &err));
    if (!mf_sequence_shift(r[0].seq, 10, 150, &err)) fail_msg("%s", err.text);
    if (!mf_sequence_shift(own.seq, 10, 150, &err)) fail_msg("%s", err.text);
    append(&r[0], 0, 2, 30), append(&own, 0, 2, 30);
    drain(e, r, 2), drain(roomy, &own, 1);
    assert_memory_equal(r[0].sum, own.sum, sizeof own.sum);
    same_tokens(&r[0], &own);
    close_requests(r, 2), close_requests(&own, 1);
    mf_engine_free(e);
    mf_engine_free(roomy);
}

// Moved cells can't be made again: they stay, and what can't fit beside them is refused with the numbers. The sequence can be used again.
static void moved_cells_stay(void **state) {
    (void)state;
    mf_error err = {0};
    request r[3];
    mf_engine *e = engine(8);
    for (int i = 0; i < 3; i++) open_request(e, &r[i], 20, -1);
    append(&r[0], 0, 0, 300);
    drain(e, r, 3);
    assert_true(mf_sequence_shift(r[0].seq, 10, 60, &err)); // 259 cells: five blocks
    int32_t evaluated = mf_sequence_n_evaluated(r[0].seq);
    append(&r[1], 1, 1, 100), append(&r[2], 2, 2, 200);
    drain(e, r, 3);
    assert_int_equal(r[1].finish, MF_FINISH_LENGTH);
    assert_int_equal(r[2].finish, MF_FINISH_ERROR); // its 193rd token is too much
    assert_int_equal(r[2].why.code, MF_ERR_LIMIT);
    assert_non_null(
        strstr(r[2].why.text,
               "the KV cache is full: 200 cells are needed, and of 512 there are 320 in sequences that a context shift"));
    assert_int_equal(mf_sequence_n_evaluated(r[0].seq), evaluated);
    mf_sequence_truncate(r[2].seq, 0);
    append(&r[2], 2, 2, 150);
    drain(e, r, 3);
    assert_int_equal(r[2].finish, MF_FINISH_LENGTH);
    mf_sequence_free(r[0].seq);
    r[0].seq = NULL;
    append(&r[2], 2, 2, 200);
    drain(e, r, 3);
    assert_int_equal(r[2].finish, MF_FINISH_LENGTH);
    close_requests(r, 3);
    mf_engine_free(e);
}

// Two sequences with moved cells that both grow: who came last is refused when neither can have more. Who then has no room either is too.
static void moved_cells_in_each_others_way(void **state) {
    (void)state;
    mf_error err = {0};
    for (int keep = 0; keep < 2; keep++) {
        request r[3];
        mf_engine *e = engine(8);
        for (int i = 0; i < 2; i++) {
            open_request(e, &r[i], 20, -1);
            append(&r[i], i, i, 200);
            drain(e, r, i + 1);
            assert_true(mf_sequence_shift(r[i].seq, 10, 30, &err)); // 189 cells: three blocks
        }
        open_request(e, &r[2], 60, -1);
        append(&r[2], 2, 2, 50);
        append(&r[0], 3, 0, 140), append(&r[1], 3, 1, 140);
        while (r[1].finish == MF_FINISH_NONE && r[0].finish == MF_FINISH_NONE) step(e, r, 3);
        assert_int_equal(r[1].finish, MF_FINISH_ERROR);
        assert_int_equal(r[0].finish, MF_FINISH_NONE);
        if (!keep) mf_sequence_free(r[1].seq), r[1].seq = NULL;
        drain(e, r, 3);
        assert_int_equal(r[0].finish, keep ? MF_FINISH_ERROR : MF_FINISH_LENGTH);
        close_requests(r, 3);
        mf_engine_free(e);
    }
}

// A sequence with moved cells whose turn comes behind one that can't fit beside it: it goes on, since it can't give way.
static void moved_cells_go_on_before_who_waits_for_them(void **state) {
    (void)state;
    mf_error err = {0};
    request r[2];
    mf_engine *e = engine(4);
    open_request(e, &r[0], 20, -1), open_request(e, &r[1], 20, -1);
    append(&r[0], 0, 0, 120);
    drain(e, r, 2);
    assert_true(mf_sequence_shift(r[0].seq, 10, 35, &err)); // 104 cells: two blocks
    append(&r[1], 1, 1, 150), append(&r[0], 2, 0, 40);
    while (r[0].finish == MF_FINISH_NONE) step(e, r, 2);
    assert_int_equal(r[0].finish, MF_FINISH_LENGTH);
    assert_int_equal(r[1].finish, MF_FINISH_NONE);
    mf_sequence_free(r[0].seq);
    r[0].seq = NULL;
    drain(e, r, 2);
    assert_int_equal(r[1].finish, MF_FINISH_LENGTH);
    close_requests(r, 2);
    mf_engine_free(e);
}

// ---- A prefix that arrives several times at once

static void requests_that_arrive_together_share(void **state) {
    (void)state;
    for (int share = 0; share < 2; share++) {
        mf_engine_params p = params(64);
        p.kv_share = share, p.n_batch = 100;
        mf_engine *e = engine_with(&p), *cold = engine(64);
        request r[MOST], own[MOST];
        int32_t rows = 0;
        for (int i = 0; i < MOST; i++) {
            open_request(e, &r[i], 5, -1), open_request(cold, &own[i], 5, -1);
            append(&r[i], 0, i, 321);
        }
        drain(e, r, MOST);
        for (int i = 0; i < MOST; i++) {
            append(&own[i], 0, i, 321);
            drain(cold, own, MOST);
            rows += 321 - mf_sequence_n_cached(r[i].seq);
            assert_int_equal(mf_sequence_n_cached(r[i].seq), i ? 320 : 0);
            same_tokens(&r[i], &own[i]);
        }
        assert_int_equal(rows, 321 + 7);
        assert_int_equal(mf_engine_kv_stats(e).hit_cells, 7 * 320);
        close_requests(r, MOST), close_requests(own, MOST);
        mf_engine_free(e);
        mf_engine_free(cold);
    }
}

// Who waits for another's blocks goes on by itself when that one stops.
static void nobody_waits_for_one_that_stopped(void **state) {
    (void)state;
    mf_engine_params p = params(32);
    p.n_batch = 40;
    mf_engine *e = engine_with(&p);
    request r[3];
    for (int i = 0; i < 3; i++) {
        open_request(e, &r[i], 5, -1);
        append(&r[i], 0, i, 321);
    }
    for (int i = 0; i < 3; i++) step(e, r, 3);
    assert_int_equal(mf_sequence_n_evaluated(r[1].seq), 64); // found what the first one has read
    mf_sequence_stop(r[0].seq);
    for (int i = 0; i < 2; i++) step(e, r, 3);
    mf_sequence_free(r[1].seq);
    r[1].seq = NULL;
    drain(e, r, 3);
    assert_int_equal(r[2].finish, MF_FINISH_LENGTH);
    close_requests(r, 3);
    mf_engine_free(e);
}

// ---- Rows and outputs

static int32_t generated(const request *r, int32_t prompt) { return mf_sequence_n_tokens(r->seq) - prompt; }

static void everybody_moves(void **state) {
    (void)state;
    static const struct { int32_t n_batch, max_outs; } cases[] = {{2, 8}, {512, 2}, {3, 2}, {1, 1}, {5, 5}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        mf_engine_params p = params(40);
        p.n_batch = cases[c].n_batch, p.max_outs = cases[c].max_outs;
        mf_engine *e = engine_with(&p);
        request r[6];
        for (int i = 0; i < 6; i++) open_request(e, &r[i], i < 5 ? 500 : 3, -1);
        for (int i = 0; i < 5; i++) append(&r[i], i, i, 1);
        for (int i = 0; i < 30; i++) step(e, r, 6);
        append(&r[5], 5, 5, 40); // a prompt that comes later
        for (int i = 0; i < 300; i++) step(e, r, 6);
        int32_t least = 1 << 30, most = 0;
        for (int i = 0; i < 5; i++) {
            int32_t n = generated(&r[i], 1);
            least = n < least ? n : least, most = n > most ? n : most;
        }
        assert_true(least > 30 && most - least <= 1);
        assert_int_equal(r[5].finish, MF_FINISH_LENGTH);
        close_requests(r, 6);
        mf_engine_free(e);
    }
}

static void prompts_take_turns(void **state) {
    (void)state;
    mf_engine_params p = params(40);
    p.n_batch = 8;
    mf_engine *e = engine_with(&p);
    request r[2];
    for (int i = 0; i < 2; i++) {
        open_request(e, &r[i], 1, -1);
        append(&r[i], i, i, 400);
    }
    for (int i = 0; i < 64; i++) step(e, r, 2);
    assert_int_equal(mf_sequence_n_evaluated(r[0].seq), 256);
    assert_int_equal(mf_sequence_n_evaluated(r[1].seq), 256);
    close_requests(r, 2);
    mf_engine_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_fits_alone_is_served),
        cmocka_unit_test(logits_are_reported_once),
        cmocka_unit_test(idle_ones_give_way_first),
        cmocka_unit_test(idle_ones_give_way_before_the_younger),
        cmocka_unit_test(nobody_overtakes_one_that_waits),
        cmocka_unit_test(a_woken_one_is_the_last),
        cmocka_unit_test(who_gave_way_can_be_shifted),
        cmocka_unit_test(moved_cells_stay),
        cmocka_unit_test(moved_cells_in_each_others_way),
        cmocka_unit_test(moved_cells_go_on_before_who_waits_for_them),
        cmocka_unit_test(requests_that_arrive_together_share),
        cmocka_unit_test(nobody_waits_for_one_that_stopped),
        cmocka_unit_test(everybody_moves),
        cmocka_unit_test(prompts_take_turns),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
