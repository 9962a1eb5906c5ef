// The prefix cache: a warm prompt gives the bytes of a cold one and evaluates only what is not known; blocks are copied before they
// are written, forgotten when their space is needed, and never indexed by a failed step.
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "engine/fixture.h"

#define N_SAID 6

static fixture model;
static mf_sampler_params greedy;
static int32_t ids[400];

static int open_model(void **state) {
    (void)state;
    mf_error err = {0};
    mf_sampler_params_init(&greedy);
    greedy.temp = 0;
    if (fixture_ids(MF_FIXTURES "/tiny/long.ids.txt", ids, 400) < 300) return -1;
    return fixture_open(&model, MF_FIXTURES "/tiny/qwen2-mix.gguf", NULL, 2, &err) ? 0 : -1;
}

static int close_model(void **state) {
    (void)state;
    fixture_close(&model);
    return 0;
}

static mf_engine *engine_of(int32_t n_blocks, bool cache, mf_type cells, bool share) {
    mf_engine_params p;
    mf_error err = {0};
    mf_engine_params_init(&p);
    p.n_ctx = n_blocks * MF_KV_BLOCK, p.n_batch = 100, p.max_seqs = 4, p.prefix_cache = cache;
    p.kv_type = cells, p.kv_share = share;
    mf_engine *e = mf_engine_new(model.model, &model.devices, &p, &err);
    if (!e) fail_msg("%s", err.text);
    return e;
}

static mf_engine *engine(int32_t n_blocks, bool cache) { return engine_of(n_blocks, cache, MF_TYPE_F16, true); }

typedef struct said {
    float logits[512]; // of the prompt's last row
    int32_t n_vocab, tokens[N_SAID], cached;
} said;

static void keep(void *arg, mf_sequence *seq, int32_t position, const float *logits, int32_t n_vocab) {
    said *s = arg;
    (void)position;
    if (s->n_vocab || mf_sequence_idle(seq)) return;
    s->n_vocab = n_vocab;
    memcpy(s->logits, logits, (size_t)n_vocab * sizeof *logits);
}

static mf_sequence *begin(mf_engine *e, said *s, const int32_t *prompt, int32_t n) {
    *s = (said){0};
    mf_sequence_params p;
    mf_error err = {0};
    mf_sequence_params_init(&p);
    p.sampler = &greedy, p.max_tokens = N_SAID, p.on_logits = keep, p.arg = s;
    mf_sequence *seq = mf_sequence_new(e, &p, &err);
    if (!seq || !mf_sequence_append(seq, prompt, (size_t)n, &err)) fail_msg("%s", err.text);
    s->cached = mf_sequence_n_cached(seq);
    return seq;
}

static void finish(mf_engine *e, mf_sequence *seq, said *s, int32_t n) {
    mf_error err = {0};
    while (!mf_engine_idle(e)) {
        const mf_event *events;
        size_t n_events;
        if (!mf_engine_step(e, &events, &n_events, &err)) fail_msg("%s", err.text);
    }
    assert_int_equal(mf_sequence_n_tokens(seq), n + N_SAID);
    memcpy(s->tokens, mf_sequence_tokens(seq) + n, sizeof s->tokens);
    mf_sequence_free(seq);
}

static said ask(mf_engine *e, const int32_t *prompt, int32_t n) {
    said s;
    finish(e, begin(e, &s, prompt, n), &s, n);
    return s;
}

static void same(const said *want, const said *got) {
    assert_int_equal(want->n_vocab, got->n_vocab);
    assert_memory_equal(want->logits, got->logits, (size_t)want->n_vocab * sizeof(float));
    assert_memory_equal(want->tokens, got->tokens, sizeof want->tokens);
}

// Prompts around block boundaries, asked cold and warm.
static void warm_equals_cold(void **state) {
    (void)state;
    static const int32_t lengths[] = {63, 64, 65, 127, 128, 129, 200, 256, 300};
    mf_engine *warm = engine(32, true), *cold = engine(32, false);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        int32_t n = lengths[i];
        said want = ask(cold, ids, n), first = ask(warm, ids, n), again = ask(warm, ids, n);
        same(&want, &first);
        same(&want, &again);
        assert_int_equal(want.cached, 0);
        int32_t full = n / MF_KV_BLOCK * MF_KV_BLOCK; // a full hit evaluates its last row again
        assert_int_equal(again.cached, full == n ? n - 1 : full);
    }
    assert_int_equal(mf_engine_kv_stats(cold).hit_cells, 0);
    mf_engine_free(warm);
    mf_engine_free(cold);
}

// The same over every kind of cell, shared and copied, while another sequence holds the blocks.
static void every_cell_type_and_copies(void **state) {
    (void)state;
    static const mf_type types[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
    for (int i = 0; i < 6; i++) {
        mf_engine *warm = engine_of(32, true, types[i % 3], i < 3), *cold = engine_of(32, false, types[i % 3], true);
        said want = ask(cold, ids, 200), first, again;
        mf_sequence *a = begin(warm, &first, ids, 200);
        mf_error err = {0};
        const mf_event *events;
        size_t n_events;
        for (int k = 0; k < 3; k++) assert_true(mf_engine_step(warm, &events, &n_events, &err));
        mf_sequence *b = begin(warm, &again, ids, 192); // a full hit: its last row belongs to a block of both
        assert_int_equal(again.cached, 191);
        assert_int_equal(mf_engine_kv_stats(warm).blocks_shared, i < 3 ? 3 : 0);
        mf_sequence_stop(b);
        finish(warm, a, &first, 200);
        same(&want, &first);
        mf_sequence_free(b);
        said known = ask(warm, ids, 200);
        assert_int_equal(known.cached, 192);
        same(&want, &known);
        mf_engine_free(warm);
        mf_engine_free(cold);
    }
}

// What a sequence said is known too: its whole text as a prompt is found in blocks.
static void answers_are_known(void **state) {
    (void)state;
    mf_engine *e = engine(32, true);
    int32_t prompt[400], n = 62;
    memcpy(prompt, ids, sizeof ids);
    said first = ask(e, prompt, n);
    memcpy(prompt + n, first.tokens, sizeof first.tokens);
    said next = ask(e, prompt, n + N_SAID);
    assert_int_equal(next.cached, MF_KV_BLOCK);
    mf_engine_free(e);
}

// Sequences that run at once over the same blocks and go apart.
static void sharing_at_once(void **state) {
    (void)state;
    mf_engine *e = engine(32, true), *cold = engine(32, false);
    int32_t other[300];
    memcpy(other, ids, sizeof other);
    other[130] = 7;
    said want_a = ask(cold, ids, 256), want_b = ask(cold, other, 256), a, b, c;
    (void)ask(e, ids, 256);
    mf_sequence *sa = begin(e, &a, ids, 256), *sb = begin(e, &b, other, 256), *sc = begin(e, &c, ids, 256);
    assert_int_equal(a.cached, 255);
    assert_int_equal(b.cached, 128);
    assert_true(mf_engine_kv_stats(e).blocks_shared >= 4);
    mf_error err = {0};
    while (!mf_engine_idle(e)) {
        const mf_event *events;
        size_t n_events;
        assert_true(mf_engine_step(e, &events, &n_events, &err));
    }
    finish(e, sa, &a, 256), finish(e, sb, &b, 256), finish(e, sc, &c, 256);
    same(&want_a, &a);
    same(&want_b, &b);
    same(&want_a, &c);
    assert_int_equal(mf_engine_kv_stats(e).blocks_used, 0);
    assert_true(mf_engine_kv_stats(e).blocks_cached > 0);
    mf_engine_free(e);
    mf_engine_free(cold);
}

static void run_to_idle(mf_engine *e) {
    mf_error err = {0};
    const mf_event *events;
    size_t n_events;
    while (!mf_engine_idle(e)) assert_true(mf_engine_step(e, &events, &n_events, &err));
}

// A cut inside an indexed block, then other tokens, fewer or more than fill it: the index must not hand out what was overwritten.
static void a_cut_forgets(void **state) {
    (void)state;
    for (size_t n = 10; n <= 40; n += 30) {
        mf_engine *e = engine(32, true), *cold = engine(32, false);
        said s, want = ask(cold, ids, 128);
        mf_error err = {0};
        mf_sequence *seq = begin(e, &s, ids, 128);
        run_to_idle(e);
        mf_sequence_truncate(seq, 100);
        int32_t tail[40];
        for (int i = 0; i < 40; i++) tail[i] = 9 + i;
        assert_true(mf_sequence_append(seq, tail, n, &err));
        run_to_idle(e);
        said again = ask(e, ids, 128);
        same(&want, &again);
        assert_int_equal(again.cached, 64);
        mf_sequence_free(seq);
        mf_engine_free(e);
        mf_engine_free(cold);
    }
}

// Cached blocks give way, the least recently used first, and only then is the cache full.
static void cached_blocks_give_way(void **state) {
    (void)state;
    mf_engine *e = engine(6, true);
    int32_t other[300];
    for (int i = 0; i < 300; i++) other[i] = 280 - i % 200;
    (void)ask(e, ids, 200);
    assert_int_equal(mf_engine_kv_stats(e).blocks_cached, 3);
    (void)ask(e, other, 300); // five blocks: two of the first prompt's must go
    said s = ask(e, ids, 200);
    assert_true(s.cached < 192);
    said t = ask(e, ids, 200);
    assert_int_equal(t.cached, 192);
    same(&s, &t);
    mf_engine_free(e);
}

static void a_failed_step_indexes_nothing(void **state) {
    (void)state;
    mf_engine *e = engine(32, true);
    float *norm = model.model->layers[1].ffn_norm->prepared, saved = norm[5];
    norm[5] = __builtin_inff();
    said s;
    mf_error err = {0};
    mf_sequence *seq = begin(e, &s, ids, 100);
    while (!mf_engine_idle(e)) {
        const mf_event *events;
        size_t n_events;
        (void)mf_engine_step(e, &events, &n_events, &err);
    }
    mf_sequence_free(seq);
    norm[5] = saved;
    assert_int_equal(mf_engine_kv_stats(e).blocks_cached, 0);
    assert_int_equal(ask(e, ids, 100).cached, 0);
    mf_engine_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warm_equals_cold),
        cmocka_unit_test(every_cell_type_and_copies),
        cmocka_unit_test(answers_are_known),
        cmocka_unit_test(sharing_at_once),
        cmocka_unit_test(a_cut_forgets),
        cmocka_unit_test(cached_blocks_give_way),
        cmocka_unit_test(a_failed_step_indexes_nothing),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
