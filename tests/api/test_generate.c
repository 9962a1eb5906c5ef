// Engines, sequences and steps through the public interface: the same bits as the engine inside, text as it streams, lifetimes,
// threads, and every refusal.
#include "api/fixture.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "engine/fixture.h"
#include "support/folder.h"

enum {
    PROMPT = 90,
    MOST = 256
};

static minfer_model *model;
static int32_t prompt[PROMPT];

static int open_model(void **state) {
    (void)state;
    model = fixture_model(TINY("llama-mix"));
    return fixture_ids(MF_FIXTURES "/tiny/short.ids.txt", prompt, PROMPT) == PROMPT ? 0 : -1;
}

static int close_model(void **state) {
    (void)state;
    minfer_model_close(model);
    return 0;
}

// What a sequence has said.
typedef struct answer {
    int32_t ids[MOST];
    size_t n, text_len;
    char text[MOST * 8];
    minfer_finish finish;
} answer;

static void take(const minfer_event *e) {
    answer *a = minfer_sequence_arg(e->sequence);
    assert_non_null(e->text);
    assert_int_equal(e->text[e->text_len], 0);
    assert_int_equal(e->error != NULL, e->finish == MINFER_FINISH_ERROR);
    if (e->token >= 0) a->ids[a->n++] = e->token;
    memcpy(a->text + a->text_len, e->text, e->text_len);
    a->text_len += e->text_len;
    a->finish = e->finish;
}

static void run(minfer_engine *e) {
    minfer_event events[8];
    while (!minfer_idle(e)) {
        size_t n = 99;
        good(minfer_step(e, events, 8, &n, &error));
        assert_true(n <= 8);
        for (size_t i = 0; i < n; i++) take(&events[i]);
    }
}

static minfer_sequence_options options_for(answer *a, const minfer_sampling *sampling, int32_t max_tokens) {
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    *a = (answer){0};
    o.sampling = sampling, o.max_tokens = max_tokens, o.arg = a;
    return o;
}

static minfer_sequence *sequence(minfer_engine *e, const minfer_sequence_options *o) {
    minfer_sequence *s = NULL;
    good((s = minfer_sequence_new(e, o, &error)) != NULL);
    return s;
}

// ---- The same as inside

typedef struct row_store {
    float logits[PROMPT + 8][512];
    int32_t n_vocab, calls;
} row_store;

static void store(row_store *rows, int32_t position, const float *logits, int32_t n_vocab) {
    assert_true(position < PROMPT + 8 && n_vocab <= 512);
    memcpy(rows->logits[position], logits, (size_t)n_vocab * sizeof *logits);
    rows->n_vocab = n_vocab;
    rows->calls++;
}

static void store_outside(void *arg, minfer_sequence *s, int32_t position, const float *logits, int32_t n_vocab) {
    (void)s;
    store(arg, position, logits, n_vocab);
}

static void store_inside(void *arg, mf_sequence *s, int32_t position, const float *logits, int32_t n_vocab) {
    (void)s;
    store(arg, position, logits, n_vocab);
}

static void logits_inside(row_store *rows) {
    fixture f;
    mf_error err = {0};
    assert_true(fixture_open(&f, TINY("llama-mix"), NULL, 1, &err));
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = 256, p.n_batch = 7, p.max_outs = 7;
    mf_engine *e = mf_engine_new(f.model, &f.devices, &p, &err);
    assert_non_null(e);
    mf_sampler_params sampler;
    mf_sampler_params_init(&sampler);
    mf_sequence_params sp;
    mf_sequence_params_init(&sp);
    sp.sampler = &sampler, sp.max_tokens = 8, sp.logits_from = 0, sp.on_logits = store_inside, sp.arg = rows;
    mf_sequence *s = mf_sequence_new(e, &sp, &err);
    assert_true(s && mf_sequence_append(s, prompt, PROMPT, &err));
    while (!mf_engine_idle(e)) {
        const mf_event *events;
        size_t n;
        assert_true(mf_engine_step(e, &events, &n, &err));
    }
    mf_sequence_free(s);
    mf_engine_free(e);
    fixture_close(&f);
}

static void test_logits_are_the_engines(void **state) {
    (void)state;
    row_store *inside = calloc(1, sizeof *inside), *outside = calloc(1, sizeof *outside);
    assert_true(inside && outside);
    logits_inside(inside);
    minfer_engine_options eo;
    minfer_engine_options_init(&eo, sizeof eo);
    eo.max_outputs = 64;
    minfer_engine *e = NULL;
    good((e = minfer_engine_new(model, &eo, &error)) != NULL);
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    o.max_tokens = 8, o.all_logits = o.ignore_end = true, o.on_logits = store_outside, o.arg = outside;
    minfer_sequence *s = sequence(e, &o);
    good(minfer_append(s, prompt, PROMPT, &error));
    minfer_event event;
    for (size_t n; !minfer_idle(e);) good(minfer_step(e, &event, 1, &n, &error));
    assert_int_equal(outside->calls, PROMPT + 7);
    assert_int_equal(inside->calls, outside->calls);
    assert_int_equal(outside->n_vocab, minfer_model_n_vocab(model));
    assert_memory_equal(inside, outside, sizeof *inside);
    minfer_engine_free(e);
    free(inside);
    free(outside);
}

static void test_evaluate_only(void **state) {
    (void)state;
    minfer_engine *e = fixture_engine(model, 1, 0);
    row_store *rows = calloc(1, sizeof *rows);
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    o.evaluate_only = true, o.on_logits = store_outside, o.arg = rows;
    minfer_sequence *s = sequence(e, &o);
    assert_true(minfer_sequence_idle(s));
    good(minfer_append(s, prompt, PROMPT, &error));
    assert_false(minfer_sequence_idle(s));
    minfer_event event;
    for (size_t n = 1; !minfer_idle(e);) {
        good(minfer_step(e, &event, 1, &n, &error));
        assert_int_equal(n, 0);
    }
    assert_int_equal(rows->calls, 1);
    assert_int_equal(minfer_sequence_n_evaluated(s), PROMPT);
    minfer_engine_free(e);
    free(rows);
}

// ---- Answers

static void test_text_streams_whole(void **state) {
    (void)state;
    minfer_engine *e = fixture_engine(model, 4, 0);
    answer a[4];
    for (uint64_t i = 0; i < 4; i++) {
        minfer_sampling sampling;
        minfer_sampling_init(&sampling, sizeof sampling);
        sampling.seed = i;
        minfer_sequence_options o = options_for(&a[i], &sampling, 40);
        o.ignore_end = true;
        good(minfer_append_text(sequence(e, &o), "The kettle", 10, MINFER_ENCODE_SPECIAL, &error));
    }
    run(e);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(a[i].n, 40);
        assert_int_equal(a[i].finish, MINFER_FINISH_LENGTH);
        char text[sizeof a[i].text];
        size_t len = 0;
        good(minfer_decode(model, a[i].ids, a[i].n, MINFER_DECODE_CONTINUED, text, sizeof text, &len, &error));
        assert_int_equal(len, a[i].text_len);
        assert_memory_equal(text, a[i].text, len);
        assert_true(i == 0 || memcmp(a[0].ids, a[i].ids, sizeof a[0].ids) != 0);
    }
    minfer_engine_free(e);
}

// A model that says one token again and again.
static minfer_sampling parrot(minfer_logit_bias *bias, int32_t token) {
    minfer_sampling s;
    minfer_sampling_init(&s, sizeof s);
    *bias = (minfer_logit_bias){token, 100};
    s.temp = 0, s.repeat_penalty = 1, s.logit_bias = bias, s.n_logit_bias = 1;
    return s;
}

static void test_ending_tokens(void **state) {
    (void)state;
    minfer_engine *e = fixture_engine(model, 4, 0);
    minfer_logit_bias bias[2];
    int32_t end = minfer_eos(model), own = prompt[3];
    minfer_sampling says_end = parrot(&bias[0], end), says_own = parrot(&bias[1], own);
    answer a[3];
    minfer_sequence_options o[3] = {options_for(&a[0], &says_end, -1), options_for(&a[1], &says_end, 5),
                                    options_for(&a[2], &says_own, 5)};
    o[1].ignore_end = true;
    o[2].stop_tokens = &own, o[2].n_stop_tokens = 1;
    for (int i = 0; i < 3; i++) good(minfer_append(sequence(e, &o[i]), prompt, 10, &error));
    own = -1, bias[0].bias = 0; // what the options pointed to is copied
    run(e);
    assert_int_equal(a[0].finish, MINFER_FINISH_STOP);
    assert_int_equal(a[0].n, 1);
    assert_int_equal(a[0].ids[0], end);
    assert_int_equal(a[0].text_len, 0);
    assert_int_equal(a[1].finish, MINFER_FINISH_LENGTH);
    assert_int_equal(a[1].n, 5);
    assert_int_equal(a[1].text_len, 0); // control tokens have no text
    assert_int_equal(a[2].finish, MINFER_FINISH_STOP);
    assert_int_equal(a[2].n, 1);
    minfer_engine_free(e);
}

// What a parrot of a token says with stop texts, and which of them ended it.
static void says(const char *token, const char *const *stops, size_t n_stops, const char *text, size_t n,
                 minfer_finish finish, int stop) {
    minfer_engine *e = fixture_engine(model, 1, 0);
    minfer_logit_bias bias;
    int32_t ids[4];
    size_t n_ids = 0;
    good(minfer_encode(model, token, strlen(token), MINFER_ENCODE_CONTROL, ids, 4, &n_ids, &error));
    minfer_sampling sampling = parrot(&bias, ids[n_ids - 1]);
    answer a;
    minfer_sequence_options o = options_for(&a, &sampling, 6);
    char copy[32] = "";
    if (n_stops) memcpy(copy, stops[0], strlen(stops[0]) + 1);
    const char *own[2] = {copy, n_stops > 1 ? stops[1] : NULL};
    o.stop_texts = own, o.n_stop_texts = n_stops;
    minfer_sequence *s = sequence(e, &o);
    memset(copy, 0, sizeof copy); // it was copied
    assert_null(minfer_sequence_stop_text(s));
    good(minfer_append(s, prompt, 10, &error));
    run(e);
    assert_int_equal(a.text_len, strlen(text));
    assert_memory_equal(a.text, text, strlen(text));
    assert_int_equal(a.n, n);
    assert_int_equal(a.finish, finish);
    const char *by = minfer_sequence_stop_text(s);
    assert_int_equal(by != NULL, stop >= 0);
    if (by) assert_string_equal(by, stops[stop]);
    size_t total;
    minfer_sequence_tokens(s, &total);
    assert_int_equal(total, 10 + n);
    assert_true(minfer_sequence_idle(s));
    good(minfer_append(s, prompt, 1, &error)); // another answer behind it
    assert_null(minfer_sequence_stop_text(s));
    a = (answer){0};
    run(e);
    assert_int_equal(a.n, n);
    assert_int_equal(a.text_len, strlen(text));
    minfer_engine_free(e);
}

static void test_stop_texts(void **state) {
    (void)state;
    const char *const three[] = {"eee"}, *const never[] = {"eex"}, *const two[] = {"eeee", "ee"}, *const one[] = {"x", "e"};
    says("e", NULL, 0, "eeeeee", 6, MINFER_FINISH_LENGTH, -1);
    says("e", three, 1, "", 3, MINFER_FINISH_STOP, 0);
    says("e", never, 1, "eeeeee", 6, MINFER_FINISH_LENGTH, -1); // what was held back comes at the end
    says("e", two, 2, "", 2, MINFER_FINISH_STOP, 1);
    says("e", one, 2, "", 1, MINFER_FINISH_STOP, 1);
    const char *const control[] = {"|><|im_start|><"}, *const end[] = {"no", "<|im_end|>"};
    says("<|im_start|>", control, 1, "", 3, MINFER_FINISH_STOP, 0); // looked for in what control tokens don't show
    says("<|im_end|>", end, 2, "", 1, MINFER_FINISH_STOP, 1);
    says("<|im_end|>", NULL, 0, "", 1, MINFER_FINISH_STOP, -1);
}

static void test_turns_and_truncation(void **state) {
    (void)state;
    minfer_engine *e = fixture_engine(model, 1, 0);
    answer a;
    minfer_sampling greedy;
    minfer_sampling_init(&greedy, sizeof greedy);
    greedy.temp = 0;
    minfer_sequence_options o = options_for(&a, &greedy, 12);
    minfer_sequence *s = sequence(e, &o);
    assert_ptr_equal(minfer_sequence_engine(s), e);
    good(minfer_append(s, prompt, 20, &error));
    run(e);
    answer first = a;
    size_t n;
    const int32_t *tokens = minfer_sequence_tokens(s, &n);
    assert_int_equal(n, 20 + first.n);
    assert_memory_equal(tokens, prompt, 20 * sizeof *prompt);
    assert_memory_equal(tokens + 20, first.ids, first.n * sizeof *first.ids);
    good(minfer_append(s, prompt + 20, 5, &error)); // a second turn
    a = (answer){.finish = MINFER_FINISH_NONE};
    run(e);
    assert_true(a.n > 0);
    good(minfer_truncate(s, 19, &error));
    assert_true(minfer_sequence_idle(s));
    minfer_sequence_tokens(s, &n);
    assert_int_equal(n, 19);
    good(minfer_truncate(s, 500, &error));
    good(minfer_append(s, prompt + 19, 1, &error));
    a = (answer){.finish = MINFER_FINISH_NONE};
    run(e);
    assert_int_equal(a.n, first.n);
    assert_memory_equal(a.ids, first.ids, a.n * sizeof *a.ids);
    good(minfer_append(s, prompt, 1, &error));
    minfer_stop(s);
    assert_true(minfer_idle(e));
    refused(minfer_truncate(s, -1, &error), MINFER_ERROR_ARGUMENT, "to -1 tokens");
    refused(minfer_shift(s, 10, 500, &error), MINFER_ERROR_ARGUMENT, "drops 500 tokens behind 10");
    int32_t evaluated = minfer_sequence_n_evaluated(s), last = minfer_sequence_tokens(s, &n)[15];
    good(minfer_shift(s, 2, 10, &error));
    assert_int_equal(minfer_sequence_n_evaluated(s), evaluated - 10);
    assert_int_equal(minfer_sequence_tokens(s, NULL)[5], last);
    minfer_engine_free(e);
}

// A sequence that is kept on the disk and taken up by another engine answers as the one that went on.
static void test_sessions(void **state) {
    (void)state;
    char folder[64], path[72];
    if (!folder_make(folder, "api")) fail_msg("no temporary folder");
    snprintf(path, sizeof path, "%s/it.kv", folder);
    answer a, b;
    minfer_engine *e = fixture_engine(model, 1, 0);
    minfer_sequence_options o = options_for(&a, NULL, 10);
    minfer_sequence *s = sequence(e, &o);
    refused(minfer_session_commit(s, NULL, 0, &error), MINFER_ERROR_ARGUMENT, "the session is NULL");
    refused(minfer_session_new(s, NULL, &error), MINFER_ERROR_ARGUMENT, "the path is NULL");
    assert_null(minfer_session_state(s, NULL));
    good(minfer_session_new(s, path, &error));
    refused(minfer_session_new(s, path, &error), MINFER_ERROR_ARGUMENT, "has a session already");
    good(minfer_append(s, prompt, PROMPT, &error));
    run(e);
    good(minfer_session_commit(s, "mine", 5, &error));
    minfer_session_close(s);
    good(minfer_append(s, prompt, 20, &error));
    a = (answer){.finish = MINFER_FINISH_NONE};
    run(e);
    minfer_engine_free(e);
    e = fixture_engine(model, 1, 0);
    o = options_for(&b, NULL, 10);
    s = sequence(e, &o);
    refused(minfer_session_open(s, folder, &error), MINFER_ERROR_IO, "directory");
    refused(minfer_session_recover(s, folder, &error), MINFER_ERROR_IO, "directory");
    good(minfer_session_recover(s, path, &error)); // of a whole file what open loads
    assert_int_equal(minfer_sequence_n_evaluated(s), PROMPT + 9);
    minfer_session_close(s);
    good(minfer_truncate(s, 0, &error));
    good(minfer_session_open(s, path, &error));
    size_t n;
    assert_string_equal(minfer_session_state(s, &n), "mine");
    assert_int_equal(n, 5);
    assert_int_equal(minfer_sequence_n_evaluated(s), PROMPT + 9);
    good(minfer_append(s, prompt, 20, &error));
    run(e);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.ids, b.ids, a.n * sizeof *a.ids);
    minfer_engine_free(e); // with the sequence and its session
    unlink(path);
    rmdir(folder);
}

// The cache's settings: what it is made of, how large, shared or copied. Only the format of cells changes what is generated.
static void test_cache_options(void **state) {
    (void)state;
    minfer_engine_stats stats[3];
    answer answers[3];
    for (int i = 0; i < 3; i++) {
        minfer_engine_options o;
        minfer_engine_options_init(&o, sizeof o);
        o.max_sequences = 2;
        o.n_ctx = i == 0 ? MINFER_CTX_AUTO : 512;
        o.kv_share = i != 1;
        o.cache_type = i == 2 ? MINFER_CACHE_Q8_0 : MINFER_CACHE_F16;
        minfer_engine *e = NULL;
        good((e = minfer_engine_new(model, &o, &error)) != NULL);
        for (int k = 0; k < 2; k++) {
            minfer_sequence_options so = options_for(&answers[i], NULL, 10);
            minfer_sequence *s = sequence(e, &so);
            good(minfer_append(s, prompt, PROMPT, &error));
            assert_int_equal(minfer_sequence_n_cached(s), 64 * k);
            run(e);
        }
        minfer_engine_get_stats(e, &stats[i], sizeof stats[i]);
        minfer_engine_free(e);
    }
    assert_int_equal(stats[0].kv_blocks_total, 2 * 1024 / 64); // the model's maximum fits
    assert_int_equal(stats[0].kv_blocks_shared, 1);
    assert_int_equal(stats[1].kv_blocks_shared, 0);
    assert_int_equal(stats[1].kv_hit_cells, 64);
    assert_int_equal(answers[0].n, answers[1].n);
    assert_memory_equal(answers[0].ids, answers[1].ids, answers[0].n * sizeof *answers[0].ids);
    assert_int_equal(stats[1].kv_bytes / 512 * 17, stats[2].kv_bytes / 512 * 32); // 2 bytes a channel against 1 and 2 / 32
}

static void test_prefix_cache_and_stats(void **state) {
    (void)state;
    minfer_engine *e = fixture_engine(model, 2, 0);
    answer a, b;
    minfer_sequence_options o = options_for(&a, NULL, 10);
    minfer_sequence *s = sequence(e, &o);
    good(minfer_append(s, prompt, PROMPT, &error));
    run(e);
    assert_int_equal(minfer_sequence_n_cached(s), 0);
    o = options_for(&b, NULL, 10);
    s = sequence(e, &o);
    good(minfer_append(s, prompt, PROMPT, &error));
    assert_int_equal(minfer_sequence_n_cached(s), 64);
    run(e);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.ids, b.ids, a.n * sizeof *a.ids);
    minfer_engine_stats stats;
    minfer_engine_get_stats(e, &stats, sizeof stats);
    assert_int_equal(stats.size, sizeof stats);
    assert_int_equal(stats.kv_hit_cells, 64);
    assert_int_equal(stats.kv_blocks_shared, 1);
    assert_int_equal(stats.kv_blocks_used, 3);
    assert_int_equal(stats.kv_blocks_total, 2 * 1024 / 64);
    assert_true(stats.weight_bytes > 0 && stats.kv_bytes > 0 && stats.activation_bytes > 0);
    uint64_t small[3] = {1, 1, 7};
    minfer_engine_get_stats(e, (minfer_engine_stats *)small, 16);
    assert_int_equal(small[0], 16);
    assert_int_equal(small[1], stats.weight_bytes);
    assert_int_equal(small[2], 7);
    minfer_engine_free(e);
}

// ---- Refusals

static void test_engine_refusals(void **state) {
    (void)state;
    minfer_engine_options o, fine;
    minfer_engine_options_init(&fine, sizeof fine);
    refused(minfer_engine_new(NULL, NULL, &error), MINFER_ERROR_ARGUMENT, "the model is NULL");
    static const struct {
        size_t field;
        int32_t value;
        const char *part;
    } cases[] = {
        {offsetof(minfer_engine_options, n_ctx), -2, "the context is -2"},
        {offsetof(minfer_engine_options, n_ctx), 1025, "the context is 1025"},
        {offsetof(minfer_engine_options, max_sequences), 0, "the number of sequences is 0"},
        {offsetof(minfer_engine_options, max_sequences), -5, "the number of sequences is -5"},
        {offsetof(minfer_engine_options, max_sequences), INT32_MAX, "the number of sequences is 2147483647"},
        {offsetof(minfer_engine_options, n_batch), 0, "the batch size is 0"},
        {offsetof(minfer_engine_options, max_outputs), -1, "the number of output rows is -1"},
        {offsetof(minfer_engine_options, cache_type), 7, "the cache type is 7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        o = fine;
        memcpy((char *)&o + cases[i].field, &cases[i].value, sizeof(int32_t));
        refused(minfer_engine_new(model, &o, &error), MINFER_ERROR_ARGUMENT, cases[i].part);
    }
    assert_null(minfer_engine_new(NULL, NULL, NULL));
    minfer_engine_free(NULL);
}

static void test_sequence_refusals(void **state) {
    (void)state;
    minfer_engine *e = fixture_engine(model, 1, 0);
    minfer_sequence_options o, fine;
    minfer_sequence_options_init(&fine, sizeof fine);
    minfer_sampling sampling, plain;
    minfer_sampling_init(&plain, sizeof plain);
    refused(minfer_sequence_new(NULL, NULL, &error), MINFER_ERROR_ARGUMENT, "the engine is NULL");
    for (int32_t n = -2; n <= 0; n += 2) {
        o = fine, o.max_tokens = n;
        refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "max_tokens is ");
    }
    const int32_t outside = 291;
    o = fine, o.n_stop_tokens = 1;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "stop tokens is NULL");
    o.stop_tokens = &outside;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "stop token 0 is 291");
    const char *stop_texts[] = {"a", NULL};
    o = fine, o.n_stop_texts = 2;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "list of stop texts is NULL");
    o.stop_texts = stop_texts;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "a stop text is NULL");
    stop_texts[1] = "";
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "stop text 1 has 0 bytes");
    char long_text[4098];
    memset(long_text, 'a', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = 0, stop_texts[1] = long_text;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "stop text 1 has 4097 bytes");
    o = fine, o.sampling = &sampling;
    sampling = plain, sampling.temp = NAN;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "temp");
    sampling = plain, sampling.n_logit_bias = 1;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "logit biases is NULL");
    const minfer_logit_bias bias = {291, 1};
    sampling.logit_bias = &bias;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "291");
    sampling = plain, sampling.n_dry_sequence_breakers = 1;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "sequence breakers is NULL");
    const minfer_token_run breaker = {NULL, 2};
    sampling.dry_sequence_breakers = &breaker;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "a sequence breaker is NULL");
    sampling = plain, sampling.size = 7;
    refused(minfer_sequence_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "minfer_sampling_init");
    minfer_sequence *s = sequence(e, NULL);
    refused(minfer_sequence_new(e, NULL, &error), MINFER_ERROR_LIMIT, "all 1 sequences");
    minfer_sequence_free(s);
    minfer_sequence_free(NULL);
    s = sequence(e, NULL); // every refusal gave its slot back
    minfer_engine_free(e);
}

static void test_append_refusals(void **state) {
    (void)state;
    minfer_engine *e = fixture_engine(model, 1, 64);
    minfer_sequence *s = sequence(e, NULL);
    const int32_t outside[] = {1, 291};
    const minfer_message no_role = {"", "a"};
    refused(minfer_append(NULL, prompt, 1, &error), MINFER_ERROR_ARGUMENT, "the sequence is NULL");
    refused(minfer_append(s, NULL, 1, &error), MINFER_ERROR_ARGUMENT, "list of ids is NULL");
    refused(minfer_append(s, outside, 2, &error), MINFER_ERROR_ARGUMENT, "token 1 is 291");
    refused(minfer_append(s, prompt, 65, &error), MINFER_ERROR_LIMIT, "65 tokens do not fit into a context of 64");
    refused(minfer_append_text(s, NULL, 1, 0, &error), MINFER_ERROR_ARGUMENT, "the text is NULL");
    refused(minfer_append_text(s, "a", 1, 64, &error), MINFER_ERROR_ARGUMENT, "unknown flags");
    refused(minfer_append_text(NULL, "a", 1, 0, &error), MINFER_ERROR_ARGUMENT, "the sequence is NULL");
    refused(minfer_append_chat(s, &no_role, 1, true, &error), MINFER_ERROR_ARGUMENT, "no role");
    good(minfer_append(s, NULL, 0, &error));
    size_t n = 99;
    minfer_sequence_tokens(s, &n);
    assert_int_equal(n, 0);
    assert_true(minfer_idle(e));
    good(minfer_append(s, prompt, 64, &error));
    minfer_engine_free(e);
}

static void test_a_full_cache(void **state) {
    (void)state;
    minfer_engine *e = fixture_engine(model, 2, 192); // three blocks for two sequences
    answer a, b;
    minfer_sequence_options o = options_for(&a, NULL, 4);
    minfer_sequence *one = sequence(e, &o);
    o = options_for(&b, NULL, 4);
    minfer_sequence *two = sequence(e, &o);
    good(minfer_append(one, prompt, PROMPT, &error));
    good(minfer_append(two, prompt + 1, PROMPT - 1, &error));
    run(e); // one after the other
    assert_int_equal(a.finish, MINFER_FINISH_LENGTH);
    assert_int_equal(b.finish, MINFER_FINISH_LENGTH);
    good(minfer_append(two, prompt, 10, &error));
    run(e);
    good(minfer_shift(two, 4, 10, &error)); // what was moved stays, and leaves one block
    good(minfer_append(one, prompt, 10, &error));
    a.finish = MINFER_FINISH_NONE;
    minfer_event events[2];
    size_t n = 0;
    good(minfer_step(e, events, 2, &n, &error));
    assert_int_equal(n, 1);
    assert_ptr_equal(events[0].sequence, one);
    assert_int_equal(events[0].finish, MINFER_FINISH_ERROR);
    assert_int_equal(events[0].error->code, MINFER_ERROR_LIMIT);
    assert_non_null(strstr(events[0].error->text, "104 cells are needed"));
    good(minfer_truncate(one, 40, &error)); // it can be used again
    good(minfer_append(one, prompt, 10, &error));
    run(e);
    assert_int_equal(a.finish, MINFER_FINISH_LENGTH);
    minfer_engine_free(e);
}

static minfer_engine *stepping;

static void call_back(void *arg, minfer_sequence *s, int32_t position, const float *logits, int32_t n_vocab) {
    (void)position, (void)logits, (void)n_vocab;
    minfer_event events[2];
    size_t n;
    ++*(int *)arg;
    refused(minfer_step(stepping, events, 2, &n, &error), MINFER_ERROR_ARGUMENT, "inside a step");
    refused(minfer_append(s, prompt, 1, &error), MINFER_ERROR_ARGUMENT, "inside a step");
    refused(minfer_truncate(s, 0, &error), MINFER_ERROR_ARGUMENT, "inside a step");
    refused(minfer_sequence_new(stepping, NULL, &error), MINFER_ERROR_ARGUMENT, "inside a step");
    minfer_sequence_tokens(s, &n);
    assert_int_equal(n, 10);
}

static void test_step_refusals(void **state) {
    (void)state;
    minfer_engine *e = stepping = fixture_engine(model, 2, 0);
    minfer_event events[2];
    size_t n = 99;
    int calls = 0;
    good(minfer_step(e, NULL, 0, &n, &error)); // no sequence, no event
    assert_int_equal(n, 0);
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    o.on_logits = call_back, o.arg = &calls, o.max_tokens = 1;
    minfer_sequence *s = sequence(e, &o);
    sequence(e, NULL);
    good(minfer_append(s, prompt, 10, &error));
    refused(minfer_step(e, events, 1, &n, &error), MINFER_ERROR_SPACE, "room for 1 events, and 2 sequences");
    refused(minfer_step(e, NULL, 2, &n, &error), MINFER_ERROR_ARGUMENT, "list of events is NULL");
    refused(minfer_step(e, events, 2, NULL, &error), MINFER_ERROR_ARGUMENT, "number of events is NULL");
    refused(minfer_step(NULL, events, 2, &n, &error), MINFER_ERROR_ARGUMENT, "the engine is NULL");
    assert_int_equal(minfer_sequence_n_evaluated(s), 0);
    good(minfer_step(e, events, 2, &n, &error));
    assert_int_equal(n, 1);
    assert_int_equal(calls, 1);
    minfer_engine_free(e);
}

// ---- Lifetimes and threads

static void test_a_model_outlives_its_handle(void **state) {
    (void)state;
    minfer_model *m = fixture_model(TINY("llama3-f16"));
    minfer_engine *one = fixture_engine(m, 2, 0), *two = fixture_engine(m, 1, 0);
    minfer_model_close(m);
    answer a, b;
    minfer_sequence_options o = options_for(&a, NULL, 5);
    good(minfer_append(sequence(one, &o), prompt, 30, &error));
    run(one);
    minfer_engine_free(one);
    o = options_for(&b, NULL, 5);
    good(minfer_append(sequence(two, &o), prompt, 30, &error));
    run(two);
    assert_memory_equal(a.ids, b.ids, sizeof a.ids);
    minfer_engine_free(two);
}

static void *answer_in_a_thread(void *arg) {
    answer *a = arg;
    minfer_engine_options eo;
    minfer_engine_options_init(&eo, sizeof eo);
    eo.n_batch = 16;
    for (int round = 0; round < 4; round++) {
        minfer_engine *e = minfer_engine_new(model, &eo, NULL);
        minfer_sequence_options o = options_for(a, NULL, 20);
        minfer_sequence *s = e ? minfer_sequence_new(e, &o, NULL) : NULL;
        bool ok = s && minfer_append(s, prompt, PROMPT, NULL);
        while (ok && !minfer_idle(e)) {
            minfer_event event;
            size_t n;
            ok = minfer_step(e, &event, 1, &n, NULL);
            if (ok && n && event.token >= 0) a->ids[a->n++] = event.token;
        }
        minfer_engine_free(e);
        if (!ok) return a->n = 0, NULL;
    }
    return NULL;
}

static void test_engines_of_one_model_in_threads(void **state) {
    (void)state;
    answer alone, a[3];
    answer_in_a_thread(&alone);
    assert_true(alone.n > 0);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, answer_in_a_thread, &a[i]), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(a[i].n, alone.n);
        assert_memory_equal(a[i].ids, alone.ids, alone.n * sizeof *alone.ids);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logits_are_the_engines),
        cmocka_unit_test(test_evaluate_only),
        cmocka_unit_test(test_text_streams_whole),
        cmocka_unit_test(test_ending_tokens),
        cmocka_unit_test(test_stop_texts),
        cmocka_unit_test(test_turns_and_truncation),
        cmocka_unit_test(test_cache_options),
        cmocka_unit_test(test_sessions),
        cmocka_unit_test(test_prefix_cache_and_stats),
        cmocka_unit_test(test_engine_refusals),
        cmocka_unit_test(test_sequence_refusals),
        cmocka_unit_test(test_append_refusals),
        cmocka_unit_test(test_a_full_cache),
        cmocka_unit_test(test_step_refusals),
        cmocka_unit_test(test_a_model_outlives_its_handle),
        cmocka_unit_test(test_engines_of_one_model_in_threads),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
