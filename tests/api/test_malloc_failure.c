// Every call of the public interface with its k-th allocation failing, for all k, alone and with those that follow: an
// error or the right result, nothing leaked (under ASan), nothing broken for the calls that come after.
#include "api/failing_malloc.h"

// ---- What the attempts share

static minfer_model *model;
static minfer_engine *engine;
static char prompt_text[512];

#define N_PROMPT 80
static int32_t prompt[N_PROMPT], expected[64];
static size_t n_expected;

static const minfer_message talk[] = {{"system", "Be brief."}, {"user", "Is there bread? \xC3\xA9 e\xCC\x81"}};

static minfer_sequence *new_sequence(minfer_error *error) {
    static const minfer_logit_bias bias[] = {{5, 1}, {6, -1}};
    static const int32_t ids[] = {3, 4};
    static const minfer_token_run breakers[] = {{ids, 2}, {ids, 1}};
    minfer_sampling sampling;
    minfer_sampling_init(&sampling, sizeof sampling);
    sampling.logit_bias = bias, sampling.n_logit_bias = 2, sampling.dry_multiplier = 0.5f;
    sampling.dry_sequence_breakers = breakers, sampling.n_dry_sequence_breakers = 2;
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    static const char *const stop_texts[] = {"never said", "nor this"};
    o.stop_texts = stop_texts, o.n_stop_texts = 2;
    o.sampling = &sampling, o.max_tokens = 60, o.stop_tokens = ids, o.n_stop_tokens = 2, o.ignore_end = true;
    return minfer_sequence_new(engine, &o, error);
}

// Runs to the end and gives what was generated. False when a sequence or a step ended with an error.
static bool generate(int32_t *ids, size_t *n, minfer_error *error) {
    *n = 0;
    for (minfer_event event; !minfer_idle(engine);) {
        size_t count;
        if (!minfer_step(engine, &event, 1, &count, error)) return false;
        if (count == 0) continue;
        if (event.finish == MINFER_FINISH_ERROR) return *error = *event.error, false;
        ids[(*n)++] = event.token;
    }
    return true;
}

static void check_generated(const int32_t *ids, size_t n) {
    assert_int_equal(n, n_expected);
    assert_memory_equal(ids, expected, n * sizeof *ids);
}

static int open_all(void **state) {
    (void)state;
    model = fixture_model(TINY("llama-f32"));
    engine = fixture_engine(model, 1, 256);
    for (int i = 0; i < N_PROMPT; i++) prompt[i] = (i * 7 + 3) % 256;
    for (size_t i = 0; i + 20 < sizeof prompt_text; i += 20) memcpy(prompt_text + i, "The kettle was warm.", 20);
    minfer_error error;
    minfer_sequence *s = new_sequence(&error);
    if (!s || !minfer_append(s, prompt, N_PROMPT, &error) || !generate(expected, &n_expected, &error)) return -1;
    minfer_sequence_free(s);
    return n_expected > 0 ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    minfer_engine_free(engine);
    minfer_model_close(model);
    return 0;
}

// ---- The attempts

static bool open_model(minfer_error *why) {
    minfer_model_options o;
    minfer_model_options_init(&o, sizeof o);
    o.n_threads = 2;
    arm();
    minfer_model *m = minfer_model_open(TINY("qwen2-f32"), &o, why);
    disarm();
    if (m) assert_int_equal(minfer_model_n_vocab(m), 291);
    if (m) assert_true(minfer_is_end(m, 290));
    minfer_model_close(m);
    return m != NULL;
}

static bool new_engine(minfer_error *why) {
    minfer_engine_options o;
    minfer_engine_options_init(&o, sizeof o);
    o.n_ctx = 256, o.max_sequences = 2;
    arm();
    minfer_engine *e = minfer_engine_new(model, &o, why);
    disarm();
    minfer_engine_free(e);
    return e != NULL;
}

static bool sequence_new(minfer_error *why) {
    arm();
    minfer_sequence *s = new_sequence(why);
    disarm();
    minfer_sequence_free(s);
    return s != NULL;
}

static bool append(minfer_error *why) {
    minfer_sequence *s = new_sequence(NULL);
    assert_non_null(s);
    arm();
    bool ok = minfer_append(s, prompt, N_PROMPT, why);
    disarm();
    size_t n;
    minfer_sequence_tokens(s, &n);
    assert_int_equal(n, ok ? N_PROMPT : 0);
    if (!ok) good(minfer_append(s, prompt, N_PROMPT, &error));
    int32_t ids[64];
    assert_true(generate(ids, &n, why));
    check_generated(ids, n);
    minfer_sequence_free(s);
    return ok;
}

static bool append_text(minfer_error *why) {
    minfer_sequence *s = new_sequence(NULL);
    assert_non_null(s);
    arm();
    bool ok = minfer_append_text(s, talk[1].content, strlen(talk[1].content), MINFER_ENCODE_SPECIAL, why);
    disarm();
    size_t n;
    minfer_sequence_tokens(s, &n);
    assert_int_equal(n > 0, ok);
    minfer_sequence_free(s);
    return ok;
}

static bool append_chat(minfer_error *why) {
    minfer_sequence *s = new_sequence(NULL);
    assert_non_null(s);
    arm();
    bool ok = minfer_append_chat(s, talk, 2, true, why);
    disarm();
    size_t n;
    minfer_sequence_tokens(s, &n);
    assert_int_equal(n > 0, ok);
    minfer_sequence_free(s);
    return ok;
}

static bool truncation(minfer_error *why) {
    minfer_sequence *s = new_sequence(NULL);
    assert_true(s && minfer_append(s, prompt, N_PROMPT, NULL));
    arm();
    bool ok = minfer_truncate(s, 70, why);
    disarm();
    assert_true(ok);
    good(minfer_append(s, prompt + 70, N_PROMPT - 70, &error));
    int32_t ids[64];
    size_t n;
    assert_true(generate(ids, &n, why));
    check_generated(ids, n);
    minfer_sequence_free(s);
    return ok;
}

static bool steps(minfer_error *why) {
    minfer_sequence *s = new_sequence(NULL);
    assert_true(s && minfer_append(s, prompt, N_PROMPT, NULL));
    int32_t ids[64];
    size_t n;
    arm();
    bool ok = generate(ids, &n, why);
    disarm();
    if (ok) check_generated(ids, n);
    minfer_sequence_free(s);
    assert_true(minfer_idle(engine));
    return ok;
}

static bool sessions(minfer_error *why) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/minfer-malloc-%d", (int)getpid());
    minfer_sequence *s = new_sequence(NULL);
    int32_t ids[64];
    size_t n;
    assert_true(s && minfer_append(s, prompt, N_PROMPT, NULL) && generate(ids, &n, why));
    assert_true(minfer_session_new(s, path, NULL) && minfer_session_commit(s, "mine", 4, NULL));
    int32_t evaluated = minfer_sequence_n_evaluated(s);
    minfer_sequence_free(s);
    assert_true((s = new_sequence(NULL)) != NULL);
    arm();
    bool ok = minfer_session_open(s, path, why) && minfer_shift(s, 10, 20, why) && minfer_session_commit(s, NULL, 0, why);
    minfer_session_close(s);
    ok = ok && minfer_session_new(s, path, why) && minfer_session_commit(s, "mine", 4, why);
    minfer_session_close(s);
    disarm();
    if (ok) assert_int_equal(minfer_sequence_n_evaluated(s), evaluated - 20);
    minfer_sequence_free(s);
    assert_true((s = new_sequence(NULL)) && minfer_session_open(s, path, NULL)); // there is a commit in any case
    minfer_sequence_free(s);
    unlink(path);
    return ok;
}

static bool encode(minfer_error *why) {
    static int32_t want[512], ids[512];
    size_t n_want, n = 0;
    good(minfer_encode(model, prompt_text, strlen(prompt_text), 0, want, 512, &n_want, &error));
    arm();
    bool ok = minfer_encode(model, prompt_text, strlen(prompt_text), 0, ids, 512, &n, why);
    disarm();
    if (ok) assert_int_equal(n, n_want);
    if (ok) assert_memory_equal(ids, want, n * sizeof *ids);
    return ok;
}

static bool encode_chat(minfer_error *why) {
    int32_t want[256], ids[256];
    size_t n_want, n = 0;
    good(minfer_encode_chat(model, talk, 2, true, want, 256, &n_want, &error));
    arm();
    bool ok = minfer_encode_chat(model, talk, 2, true, ids, 256, &n, why);
    disarm();
    if (ok) assert_int_equal(n, n_want);
    if (ok) assert_memory_equal(ids, want, n * sizeof *ids);
    return ok;
}

static bool decode(minfer_error *why) {
    char want[1024], out[1024];
    size_t n_want, n = 0;
    good(minfer_decode(model, prompt, N_PROMPT, 0, want, sizeof want, &n_want, &error));
    arm();
    bool ok = minfer_decode(model, prompt, N_PROMPT, 0, out, sizeof out, &n, why);
    disarm();
    if (ok) assert_int_equal(n, n_want);
    if (ok) assert_memory_equal(out, want, n);
    return ok;
}

static bool piece(minfer_error *why) {
    char out[32];
    size_t n = 0;
    arm();
    bool ok = minfer_piece(model, 'e', 0, out, sizeof out, &n, why);
    disarm();
    return ok && n > 0;
}

// Calls that get by without memory.
static bool getters(minfer_error *why) {
    char out[64];
    size_t n = 0;
    minfer_engine_stats stats;
    minfer_engine_options eo;
    minfer_sampling sampling;
    arm();
    bool ok = minfer_model_metadata(model, "general.name", out, sizeof out, &n, why);
    minfer_engine_get_stats(engine, &stats, sizeof stats);
    minfer_engine_options_init(&eo, sizeof eo);
    minfer_sampling_init(&sampling, sizeof sampling);
    ok = ok && minfer_model_sampling(model, &sampling, sizeof sampling, why);
    minfer_set_log(NULL, NULL);
    ok = ok && minfer_model_n_params(model) > 0 && minfer_model_device(model) && minfer_version();
    disarm();
    return ok;
}

#define TEST(name, least)                   \
    static void test_##name(void **state) { \
        (void)state;                        \
        exhaust(#name, name, least);        \
    }
TEST(open_model, 20)
TEST(new_engine, 10)
TEST(sequence_new, 5)
TEST(append, 0)
TEST(append_text, 1)
TEST(append_chat, 2)
TEST(truncation, 0)
TEST(steps, 1)
TEST(sessions, 8)
TEST(encode, 1)
TEST(encode_chat, 2)
TEST(decode, 1)
TEST(piece, 1)
TEST(getters, 0)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_model),  cmocka_unit_test(test_new_engine),  cmocka_unit_test(test_sequence_new),
        cmocka_unit_test(test_append),      cmocka_unit_test(test_append_text), cmocka_unit_test(test_append_chat),
        cmocka_unit_test(test_truncation),  cmocka_unit_test(test_steps),       cmocka_unit_test(test_encode),
        cmocka_unit_test(test_encode_chat), cmocka_unit_test(test_decode),      cmocka_unit_test(test_piece),
        cmocka_unit_test(test_getters),     cmocka_unit_test(test_sessions),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
