// Answers that are stopped, cut, kept on the disk and resumed; conversations that can't be continued by appending; logits in pieces.
#include "api/fixture.h"

#include <unistd.h>

enum {
    PROMPT = 70,
    TOKENS = 40,
    MOST = 256
};

typedef struct said {
    int32_t ids[MOST];
    size_t n, len;
    char text[4096];
    minfer_finish finish;
} said;

static minfer_model *model;
static int32_t prompt[PROMPT];

static int open_model(void **state) {
    (void)state;
    model = fixture_model(TINY("qwen2-mix"));
    for (int i = 0; i < PROMPT; i++) prompt[i] = (i * 11 + 5) % 250;
    return 0;
}

static int close_model(void **state) {
    (void)state;
    minfer_model_close(model);
    return 0;
}

static minfer_sequence *new_sequence(minfer_engine *e, int32_t max_tokens, const char *stop_text) {
    minfer_sampling sampling;
    minfer_sampling_init(&sampling, sizeof sampling);
    sampling.temp = 1.4F, sampling.seed = 3;
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    o.sampling = &sampling, o.max_tokens = max_tokens, o.ignore_end = true;
    o.stop_texts = &stop_text, o.n_stop_texts = stop_text ? 1 : 0;
    minfer_sequence *s = NULL;
    good((s = minfer_sequence_new(e, &o, &error)) != NULL);
    return s;
}

// Up to `most` tokens more.
static void run(minfer_engine *e, said *out, size_t most) {
    while (!minfer_idle(e) && most > 0) {
        minfer_event event;
        size_t n;
        good(minfer_step(e, &event, 1, &n, &error));
        if (n == 0) continue;
        most--;
        assert_true(event.finish != MINFER_FINISH_ERROR && out->n < MOST && out->len + event.text_len < sizeof out->text);
        out->ids[out->n++] = event.token;
        memcpy(out->text + out->len, event.text, event.text_len);
        out->len += event.text_len;
        out->finish = event.finish;
    }
}

static void same(const said *got, const said *want) {
    assert_int_equal(got->n, want->n);
    assert_memory_equal(got->ids, want->ids, want->n * sizeof *want->ids);
    assert_int_equal(got->len, want->len);
    assert_memory_equal(got->text, want->text, want->len);
    assert_int_equal(got->finish, want->finish);
}

static said whole(void) {
    said s = {.n = 0};
    minfer_engine *e = fixture_engine(model, 1, 256);
    good(minfer_append(new_sequence(e, TOKENS, NULL), prompt, PROMPT, &error));
    run(e, &s, MOST);
    minfer_engine_free(e);
    assert_int_equal(s.n, TOKENS);
    assert_int_equal(s.finish, MINFER_FINISH_LENGTH);
    return s;
}

static void test_a_stopped_answer_goes_on(void **state) {
    (void)state;
    said want = whole(), got = {.n = 0};
    minfer_engine *e = fixture_engine(model, 1, 256);
    minfer_sequence *s = new_sequence(e, TOKENS, NULL);
    refused(minfer_resume(s, &error), MINFER_ERROR_ARGUMENT, "nothing to resume");
    good(minfer_append(s, prompt, PROMPT, &error));
    minfer_stop(s); // before anything is read
    for (size_t piece = 1; got.n < TOKENS; piece++) {
        assert_true(minfer_idle(e));
        good(minfer_resume(s, &error));
        good(minfer_resume(s, &error)); // it goes on anyway
        run(e, &got, piece);
        minfer_stop(s);
    }
    same(&got, &want);
    refused(minfer_resume(s, &error), MINFER_ERROR_LIMIT, "all of its 40 tokens");
    minfer_engine_free(e);
}

static void test_a_loaded_answer_goes_on(void **state) {
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/minfer-resume-%d", (int)getpid());
    said want = whole();
    for (size_t cut = 1; cut < TOKENS; cut += 3) { // also within characters
        said got = {.n = 0};
        minfer_engine *e = fixture_engine(model, 1, 256);
        minfer_sequence *s = new_sequence(e, TOKENS, NULL);
        good(minfer_append(s, prompt, PROMPT, &error));
        run(e, &got, cut);
        good(minfer_session_new(s, path, &error));
        good(minfer_session_commit(s, NULL, 0, &error));
        minfer_engine_free(e);
        e = fixture_engine(model, 1, 256);
        s = new_sequence(e, TOKENS, NULL);
        good(minfer_session_open(s, path, &error));
        assert_true(minfer_idle(e));
        good(minfer_resume(s, &error));
        run(e, &got, MOST);
        same(&got, &want);
        minfer_engine_free(e);
    }
    unlink(path);
}

static void test_a_cut_answer_goes_on(void **state) {
    (void)state;
    said first = {.n = 0}, more = {.n = 0};
    minfer_engine *e = fixture_engine(model, 1, 256);
    minfer_sequence *s = new_sequence(e, TOKENS, NULL);
    good(minfer_append(s, prompt, PROMPT, &error));
    run(e, &first, MOST);
    good(minfer_truncate(s, PROMPT + 10, &error));
    good(minfer_resume(s, &error));
    run(e, &more, MOST);
    assert_int_equal(more.n, TOKENS - 10); // max_tokens counts from the answer's beginning
    size_t n;
    assert_memory_equal(minfer_sequence_tokens(s, &n), prompt, sizeof prompt);
    assert_memory_equal(minfer_sequence_tokens(s, &n) + PROMPT, first.ids, 10 * sizeof(int32_t));
    assert_int_equal(n, PROMPT + TOKENS);
    good(minfer_truncate(s, 20, &error)); // nothing of the answer is left
    good(minfer_resume(s, &error));
    more.n = more.len = 0;
    run(e, &more, MOST);
    assert_int_equal(more.n, TOKENS);
    minfer_engine_free(e);
}

static void test_ended_answers_are_not_resumed(void **state) {
    (void)state;
    said s = whole(), got = {.n = 0};
    minfer_engine *e = fixture_engine(model, 1, 256);
    char stop[3] = {0};
    size_t at = 0;
    while (at + 2 < s.len && !((unsigned char)s.text[at] < 0x80 && (unsigned char)s.text[at + 1] < 0x80)) at++;
    memcpy(stop, s.text + at, 2);
    minfer_sequence *q = new_sequence(e, TOKENS, stop);
    good(minfer_append(q, prompt, PROMPT, &error));
    run(e, &got, MOST);
    assert_int_equal(got.finish, MINFER_FINISH_STOP);
    refused(minfer_resume(q, &error), MINFER_ERROR_ARGUMENT, "stop text");
    minfer_sequence_free(q);
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    minfer_sampling sampling;
    minfer_sampling_init(&sampling, sizeof sampling);
    minfer_logit_bias bias = {minfer_eos(model), 100};
    sampling.logit_bias = &bias, sampling.n_logit_bias = 1, o.sampling = &sampling;
    good((q = minfer_sequence_new(e, &o, &error)) != NULL);
    good(minfer_append(q, prompt, PROMPT, &error));
    run(e, &got, MOST);
    assert_int_equal(got.finish, MINFER_FINISH_STOP);
    refused(minfer_resume(q, &error), MINFER_ERROR_ARGUMENT, "ended with token");
    minfer_engine_free(e);
}

static void test_a_full_context_is_not_resumed(void **state) {
    (void)state;
    said s = {.n = 0};
    minfer_engine *e = fixture_engine(model, 1, 128);
    minfer_sequence *q = new_sequence(e, -1, NULL);
    good(minfer_append(q, prompt, PROMPT, &error));
    run(e, &s, MOST);
    assert_int_equal(s.finish, MINFER_FINISH_LENGTH);
    refused(minfer_resume(q, &error), MINFER_ERROR_LIMIT, "context of 128");
    minfer_engine_free(e);
}

static void test_append_chat_begins_a_conversation(void **state) {
    (void)state;
    minfer_message m = {"user", "Hello."};
    minfer_engine *e = fixture_engine(model, 1, 256);
    minfer_sequence *s = new_sequence(e, 4, NULL);
    good(minfer_append_chat(s, &m, 1, true, &error));
    said out = {.n = 0};
    run(e, &out, MOST);
    size_t n, before;
    minfer_sequence_tokens(s, &before);
    refused(minfer_append_chat(s, &m, 1, true, &error), MINFER_ERROR_ARGUMENT, "minfer_conversation");
    minfer_sequence_tokens(s, &n);
    assert_int_equal(n, before);
    good(minfer_truncate(s, 0, &error));
    good(minfer_append_chat(s, &m, 1, true, &error));
    minfer_engine_free(e);
}

// ---- Logits of every row

typedef struct rows {
    int32_t next;
    bool in_order;
} rows;

static void count(void *arg, minfer_sequence *s, int32_t position, const float *logits, int32_t n_vocab) {
    (void)s, (void)logits, (void)n_vocab;
    rows *r = arg;
    r->in_order = r->in_order && position == r->next++;
}

static void test_all_logits_come_in_pieces(void **state) {
    (void)state;
    static const int32_t outputs[] = {0, 1, 7, 64};
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++) {
        minfer_engine_options eo;
        minfer_engine_options_init(&eo, sizeof eo);
        eo.n_ctx = 256, eo.max_outputs = outputs[i];
        minfer_engine *e = NULL;
        good((e = minfer_engine_new(model, &eo, &error)) != NULL);
        rows r = {0, true};
        minfer_sequence_options o;
        minfer_sequence_options_init(&o, sizeof o);
        o.all_logits = o.evaluate_only = true, o.on_logits = count, o.arg = &r;
        minfer_sequence *s = NULL;
        good((s = minfer_sequence_new(e, &o, &error)) != NULL);
        good(minfer_append(s, prompt, PROMPT, &error));
        int steps = 0;
        while (!minfer_idle(e)) {
            minfer_event event;
            size_t n;
            good(minfer_step(e, &event, 1, &n, &error));
            steps++;
        }
        int32_t rows_each = outputs[i] ? outputs[i] : 1;
        assert_int_equal(steps, (PROMPT + rows_each - 1) / rows_each);
        assert_true(r.in_order);
        assert_int_equal(r.next, PROMPT);
        minfer_engine_free(e);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stopped_answer_goes_on),      cmocka_unit_test(test_a_loaded_answer_goes_on),
        cmocka_unit_test(test_a_cut_answer_goes_on),          cmocka_unit_test(test_ended_answers_are_not_resumed),
        cmocka_unit_test(test_a_full_context_is_not_resumed), cmocka_unit_test(test_append_chat_begins_a_conversation),
        cmocka_unit_test(test_all_logits_come_in_pieces),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
