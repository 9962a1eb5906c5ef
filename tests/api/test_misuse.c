// Nonsense from a caller, number by number: each is refused with a code and a sentence, nothing is touched, and all goes on working.
#include "api/fixture.h"

#include <limits.h>
#include <math.h>
#include <unistd.h>

static minfer_model *model;
static minfer_engine *engine;

static int open_all(void **state) {
    (void)state;
    model = fixture_model(TINY("llama-f32"));
    engine = fixture_engine(model, 2, 128);
    return 0;
}

static int close_all(void **state) {
    (void)state;
    minfer_engine_free(engine);
    minfer_model_close(model);
    return 0;
}

// The error is filled with rubbish before: all of it must be the library's.
#define nonsense(call)                                                                                                \
    do {                                                                                                              \
        minfer_error error;                                                                                           \
        memset(&error, 0xAA, sizeof error);                                                                           \
        if (call) fail_msg("accepted: %s", #call);                                                                    \
        if ((int)error.code <= MINFER_OK || error.code > MINFER_ERROR_SPACE || error.code == MINFER_ERROR_INTERNAL || \
            !memchr(error.text, 0, sizeof error.text) || !error.text[0])                                              \
            fail_msg("no reason: %s: code %d", #call, (int)error.code);                                               \
    } while (0)

static void test_models(void **state) {
    (void)state;
    minfer_model_options o;
    nonsense(minfer_model_open("", NULL, &error));
    nonsense(minfer_model_open("/", NULL, &error));
    nonsense(minfer_model_open("/dev/zero", NULL, &error));
    static const size_t sizes[] = {0, 1, 7, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        minfer_model_options_init(&o, sizeof o);
        o.size = sizes[i];
        nonsense(minfer_model_open(TINY("llama-f32"), &o, &error));
    }
    static const int32_t threads[] = {-1, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
        minfer_model_options_init(&o, sizeof o);
        o.n_threads = threads[i];
        nonsense(minfer_model_open(TINY("llama-f32"), &o, &error));
    }
    minfer_model_options_init(&o, sizeof o);
    o.backends = ",,";
    nonsense(minfer_model_open(TINY("llama-f32"), &o, &error));
    assert_null(minfer_model_open(NULL, NULL, NULL));
    minfer_model_close(NULL);
    minfer_engine_free(NULL);
    minfer_sequence_free(NULL);
    minfer_conversation_free(NULL);
}

static void test_texts(void **state) {
    (void)state;
    int32_t ids[300];
    char out[300];
    size_t n;
    nonsense(minfer_encode(model, "x", 1, ~0U, ids, 300, &n, &error));
    nonsense(minfer_encode(model, "x", 1, 0, NULL, 300, &n, &error));
    nonsense(minfer_encode(model, "x", (size_t)1 << 40, 0, ids, 300, &n, &error));
    nonsense(minfer_encode(model, "x", SIZE_MAX, 0, ids, 300, &n, &error));
    good(minfer_encode(model, NULL, 0, 0, ids, 300, &n, &error));
    static const int32_t beyond[] = {-1, INT_MIN, INT_MAX, 1 << 30};
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++) {
        nonsense(minfer_decode(model, &beyond[i], 1, 0, out, 300, &n, &error));
        nonsense(minfer_piece(model, beyond[i], 0, out, 300, &n, &error));
        assert_false(minfer_is_end(model, beyond[i]));
    }
    nonsense(minfer_decode(NULL, ids, 1, 0, out, 300, &n, &error));
    nonsense(minfer_model_metadata(model, "tokenizer.ggml.tokens", out, 300, &n, &error));
}

// A role is text: what it says becomes no control token either.
static void test_bytes_of_messages(void **state) {
    (void)state;
    int32_t ids[300], plain[300];
    size_t n, n_plain;
    minfer_message odd = {"user", "\xFF\xFE bad \x80"}, role = {"us\xFF"
                                                                "er",
                                                                "x"};
    good(minfer_encode_chat(model, &odd, 1, true, ids, 300, &n, &error));
    good(minfer_encode_chat(model, &role, 1, true, ids, 300, &n, &error));
    good(minfer_encode_chat(model, NULL, 0, true, ids, 300, &n, &error));
    minfer_message control = {"user", "<|im_end|>"}, none = {"user", ""};
    good(minfer_encode_chat(model, &control, 1, true, ids, 300, &n, &error));
    good(minfer_encode_chat(model, &none, 1, true, plain, 300, &n_plain, &error));
    int ends = 0, ends_plain = 0;
    for (size_t i = 0; i < n; i++) ends += minfer_is_end(model, ids[i]);
    for (size_t i = 0; i < n_plain; i++) ends_plain += minfer_is_end(model, plain[i]);
    assert_int_equal(ends, ends_plain);
}

static void test_engines(void **state) {
    (void)state;
    minfer_engine_options o;
#define engine_with(field, value)                       \
    do {                                                \
        minfer_engine_options_init(&o, sizeof o);       \
        o.field = value;                                \
        nonsense(minfer_engine_new(model, &o, &error)); \
    } while (0)
    engine_with(size, 0);
    engine_with(max_sequences, 0);
    engine_with(max_sequences, -1);
    engine_with(max_sequences, INT_MAX);
    engine_with(n_ctx, -2);
    engine_with(n_ctx, INT_MAX);
    engine_with(n_ctx, INT_MIN);
    engine_with(n_batch, 0);
    engine_with(n_batch, -1);
    engine_with(n_batch, INT_MAX);
    engine_with(max_outputs, -1);
    engine_with(max_outputs, INT_MAX);
    engine_with(cache_type, (minfer_cache_type)3);
    engine_with(cache_type, (minfer_cache_type)-1);
    engine_with(cache_type, MINFER_CACHE_Q8_0); // heads of 16 channels
}

static void test_sequences(void **state) {
    (void)state;
    minfer_sequence_options o;
    static const int32_t far = 1 << 29;
    static const char *const nothing[] = {NULL}, *const empty[] = {""};
#define sequence_with(field, value)                        \
    do {                                                   \
        minfer_sequence_options_init(&o, sizeof o);        \
        o.field = value;                                   \
        nonsense(minfer_sequence_new(engine, &o, &error)); \
    } while (0)
    sequence_with(size, 0);
    sequence_with(max_tokens, 0);
    sequence_with(max_tokens, -2);
    sequence_with(max_tokens, INT_MIN);
    sequence_with(n_stop_tokens, 5);
    sequence_with(n_stop_texts, 5);
    minfer_sequence_options_init(&o, sizeof o);
    o.stop_tokens = &far, o.n_stop_tokens = 1;
    nonsense(minfer_sequence_new(engine, &o, &error));
    static const char *const *const texts[] = {nothing, empty};
    for (size_t i = 0; i < 2; i++) {
        minfer_sequence_options_init(&o, sizeof o);
        o.stop_texts = texts[i], o.n_stop_texts = 1;
        nonsense(minfer_sequence_new(engine, &o, &error));
    }
}

static void test_sampling(void **state) {
    (void)state;
    minfer_sequence_options o;
    minfer_sampling s;
#define sampling_with(field, value)                        \
    do {                                                   \
        minfer_sequence_options_init(&o, sizeof o);        \
        minfer_sampling_init(&s, sizeof s);                \
        s.field = value;                                   \
        o.sampling = &s;                                   \
        nonsense(minfer_sequence_new(engine, &o, &error)); \
    } while (0)
    sampling_with(size, 0);
    sampling_with(temp, NAN);
    sampling_with(temp, -1);
    sampling_with(temp, INFINITY);
    sampling_with(top_p, NAN);
    sampling_with(top_p, 2);
    sampling_with(top_p, -1);
    sampling_with(min_p, NAN);
    sampling_with(min_p, 2);
    sampling_with(typical, NAN);
    sampling_with(typical, -1);
    sampling_with(top_n_sigma, NAN);
    sampling_with(xtc_probability, 2);
    sampling_with(xtc_threshold, NAN);
    sampling_with(repeat_penalty, NAN);
    sampling_with(repeat_penalty, 0);
    sampling_with(repeat_penalty, -1);
    sampling_with(repeat_penalty, INFINITY);
    sampling_with(frequency_penalty, NAN);
    sampling_with(presence_penalty, INFINITY);
    sampling_with(repeat_last_n, -5);
    sampling_with(dry_multiplier, NAN);
    sampling_with(dry_base, NAN);
    sampling_with(dry_allowed_length, -1);
    sampling_with(mirostat, 3);
    sampling_with(mirostat, -1);
    sampling_with(n_logit_bias, 3);
    sampling_with(n_dry_sequence_breakers, 3);
    const minfer_logit_bias biases[] = {{-1, 1}, {INT_MAX, 1}, {5, NAN}, {5, 101}};
    minfer_sampling_init(&s, sizeof s);
    s.n_logit_bias = 1;
    for (size_t i = 0; i < sizeof biases / sizeof biases[0]; i++) {
        s.logit_bias = &biases[i];
        nonsense(minfer_sequence_new(engine, &o, &error));
    }
}

static void test_tokens(void **state) {
    (void)state;
    minfer_event events[2];
    size_t n;
    int32_t ids[300];
    for (int i = 0; i < 300; i++) ids[i] = 5;
    static const int32_t beyond[] = {-1, 100000};
    minfer_sequence *s = NULL;
    good((s = minfer_sequence_new(engine, NULL, &error)) != NULL);
    for (size_t i = 0; i < 2; i++) nonsense(minfer_append(s, &beyond[i], 1, &error));
    static const size_t lengths[] = {300, SIZE_MAX / 4, SIZE_MAX};
    for (size_t i = 0; i < 3; i++) nonsense(minfer_append(s, ids, lengths[i], &error));
    nonsense(minfer_append_chat(s, NULL, 5, true, &error));
    nonsense(minfer_resume(NULL, &error));
    good(minfer_append(s, NULL, 0, &error));
    good(minfer_truncate(s, INT_MAX, &error));
    good(minfer_append(s, ids, 20, &error));
    for (int i = 0; i < 5; i++) good(minfer_step(engine, events, 2, &n, &error));
    static const int32_t shifts[][2] = {{-1, 1},          {0, -1},   {0, INT_MAX}, {INT_MAX, INT_MAX}, {INT_MIN, INT_MIN},
                                        {5, INT_MAX - 4}, {0, 1000}, {0, 0}};
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++)
        nonsense(minfer_shift(s, shifts[i][0], shifts[i][1], &error));
    good(minfer_step(engine, events, 2, &n, &error));
    assert_int_equal(n, 1);
    minfer_sequence_free(s);
}

static void test_sessions(void **state) {
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/minfer-misuse-%d", (int)getpid());
    const int32_t ids[] = {1, 2, 3};
    minfer_sequence *s = NULL;
    good((s = minfer_sequence_new(engine, NULL, &error)) != NULL);
    good(minfer_append(s, ids, 3, &error));
    nonsense(minfer_session_new(s, NULL, &error));
    nonsense(minfer_session_new(NULL, path, &error));
    nonsense(minfer_session_commit(s, NULL, 0, &error));
    nonsense(minfer_session_open(s, "nothing-here.kv", &error));
    good(minfer_session_new(s, path, &error));
    nonsense(minfer_session_new(s, "another", &error));
    nonsense(minfer_session_commit(s, NULL, 1, &error));
    good(minfer_session_commit(s, "a", 1, &error));
    minfer_session_state(s, NULL);
    minfer_session_close(s);
    minfer_session_close(s);
    minfer_sequence_free(s);
    unlink(path);
}

// What a callback may not do.
static int n_accepted;

static void disobey(void *arg, minfer_sequence *s, int32_t position, const float *logits, int32_t n_vocab) {
    (void)arg, (void)position, (void)logits, (void)n_vocab;
    minfer_error error;
    minfer_event event;
    size_t n;
    int32_t id = 1;
    n_accepted += minfer_step(engine, &event, 1, &n, &error);
    n_accepted += minfer_append(s, &id, 1, &error);
    n_accepted += minfer_truncate(s, 0, &error);
    n_accepted += minfer_shift(s, 0, 1, &error);
    n_accepted += minfer_resume(s, &error);
    n_accepted += minfer_session_new(s, "zz", &error);
    n_accepted += minfer_sequence_new(engine, NULL, &error) != NULL;
    n_accepted += minfer_conversation_new(engine, NULL, &error) != NULL;
}

static void test_callbacks(void **state) {
    (void)state;
    const int32_t ids[] = {1, 2, 3, 4, 5};
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    o.on_logits = disobey, o.max_tokens = 5;
    minfer_sequence *s = NULL;
    good((s = minfer_sequence_new(engine, &o, &error)) != NULL);
    good(minfer_append(s, ids, 5, &error));
    int n_tokens = 0;
    while (!minfer_idle(engine)) {
        minfer_event events[2];
        size_t n;
        good(minfer_step(engine, events, 2, &n, &error));
        n_tokens += (int)n;
    }
    assert_int_equal(n_accepted, 0);
    assert_true(n_tokens > 0);
    minfer_sequence_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),  cmocka_unit_test(test_texts),     cmocka_unit_test(test_bytes_of_messages),
        cmocka_unit_test(test_engines), cmocka_unit_test(test_sequences), cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_tokens),  cmocka_unit_test(test_sessions),  cmocka_unit_test(test_callbacks),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
