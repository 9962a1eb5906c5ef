// The random draws of a sequence: the index of each is one more than the last one's, whatever happens to the tokens in between.
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "engine/fixture.h"

#define N_VOCAB 288

// A sequence whose tokens are nearly equally likely, and a sampler of the same parameters beside it that draws from the same rows with
// the index that is due.
typedef struct shadow {
    mf_engine *engine;
    mf_sequence *seq;
    mf_sampler *sampler;
    float row[N_VOCAB];
    uint64_t index;
} shadow;

static fixture model;
static mf_sampler_params hot;

static int open_model(void **state) {
    (void)state;
    mf_error err = {0};
    mf_sampler_params_init(&hot);
    hot.temp = 50, hot.top_k = 0, hot.top_p = 1, hot.repeat_penalty = 1;
    return fixture_open(&model, MF_FIXTURES "/tiny/llama-mix.gguf", NULL, 2, &err) ? 0 : -1;
}

static int close_model(void **state) {
    (void)state;
    fixture_close(&model);
    return 0;
}

static void keep_row(void *arg, mf_sequence *s, int32_t position, const float *logits, int32_t n_vocab) {
    (void)s, (void)position;
    assert_int_equal(n_vocab, N_VOCAB);
    memcpy(((shadow *)arg)->row, logits, sizeof((shadow *)arg)->row);
}

static void begin(shadow *w) {
    mf_error err = {0};
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = 512;
    mf_sequence_params q;
    mf_sequence_params_init(&q);
    q.sampler = &hot, q.max_tokens = 12, q.on_logits = keep_row, q.arg = w;
    w->index = 0;
    if (!(w->engine = mf_engine_new(model.model, &model.devices, &p, &err)) ||
        !(w->seq = mf_sequence_new(w->engine, &q, &err)) || !(w->sampler = mf_sampler_new(&hot, N_VOCAB, &err)))
        fail_msg("%s", err.text);
}

static void end(shadow *w) {
    mf_sampler_free(w->sampler);
    mf_sequence_free(w->seq);
    mf_engine_free(w->engine);
}

// A turn of n tokens, and its answer: each token is the one that the next index draws.
static void turn(shadow *w, int32_t n) {
    mf_error err = {0};
    for (int32_t i = 0; i < n; i++)
        if (!mf_sequence_append(w->seq, (int32_t[]){40 + i}, 1, &err)) fail_msg("%s", err.text);
    while (!mf_engine_idle(w->engine)) {
        const mf_event *events;
        size_t n_events;
        if (!mf_engine_step(w->engine, &events, &n_events, &err)) fail_msg("%s", err.text);
        if (n_events == 0) continue;
        int32_t want;
        assert_true(mf_sampler_sample(w->sampler, w->row, NULL, w->index++, &want, &err));
        assert_int_equal(events[0].token, want);
    }
    assert_true(mf_sequence_n_draws(w->seq) == w->index);
}

static void the_first_turn_begins_with_draw_0_and_none_is_used_twice(void **state) {
    (void)state;
    mf_error err = {0};
    shadow w;
    begin(&w);
    turn(&w, 20);
    turn(&w, 5); // the next turn
    mf_sequence_truncate(w.seq, 24);
    turn(&w, 3); // instead of what was taken back
    mf_sequence_truncate(w.seq, 19);
    turn(&w, 1); // the first answer again
    assert_true(mf_sequence_shift(w.seq, 4, 8, &err));
    turn(&w, 2);
    mf_sequence_truncate(w.seq, 0);
    turn(&w, 20); // the conversation anew
    assert_true(w.index == 6 * 12);
    end(&w);
}

static void another_seed_goes_on_counting(void **state) {
    (void)state;
    shadow w;
    begin(&w);
    turn(&w, 20);
    mf_sequence_truncate(w.seq, 19);
    mf_sampler_set_seed(mf_sequence_sampler(w.seq), hot.seed + 1);
    mf_sampler_set_seed(w.sampler, hot.seed + 1);
    turn(&w, 1);
    end(&w);
}

static void a_count_that_is_set_is_never_lowered(void **state) {
    (void)state;
    shadow w;
    begin(&w);
    mf_sequence_set_draws(w.seq, w.index = 1000);
    turn(&w, 20);
    mf_sequence_set_draws(w.seq, 5);
    turn(&w, 2);
    end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_turn_begins_with_draw_0_and_none_is_used_twice),
        cmocka_unit_test(another_seed_goes_on_counting),
        cmocka_unit_test(a_count_that_is_set_is_never_lowered),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
