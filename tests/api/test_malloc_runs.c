// Whole runs with allocations failing, each in turn: the text of a run with all its memory, or an error. Nothing may
// be computed otherwise because memory was short.
#include "api/failing_malloc.h"

#include "text/tiny_vocab.h"

#define MOST_TEXT 4096

// What a run says, in order.
typedef struct said {
    char text[MOST_TEXT];
    size_t len;
} said;

static void add(said *s, const void *bytes, size_t len) {
    assert_true(len < sizeof s->text - s->len);
    memcpy(s->text + s->len, bytes, len);
    s->len += len;
}

// ---- From a file to an answer

static minfer_sequence *ask(minfer_engine *e, uint64_t seed, minfer_error *why) {
    minfer_sampling sampling;
    minfer_sampling_init(&sampling, sizeof sampling);
    sampling.seed = seed, sampling.temp = 1.2F, sampling.dry_multiplier = 0.3F, sampling.min_p = 0.02F;
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    static const char *const stops[] = {"never said"};
    o.sampling = &sampling, o.max_tokens = 6, o.ignore_end = true;
    o.stop_texts = stops, o.n_stop_texts = 1;
    return minfer_sequence_new(e, &o, why);
}

static bool answer(minfer_engine *e, said *out, minfer_error *why) {
    while (!minfer_idle(e)) {
        minfer_event events[2];
        size_t n;
        if (!minfer_step(e, events, 2, &n, why)) return false;
        for (size_t i = 0; i < n; i++) {
            if (events[i].finish == MINFER_FINISH_ERROR) return *why = *events[i].error, false;
            add(out, &events[i].token, sizeof events[i].token);
            add(out, events[i].text, events[i].text_len);
        }
    }
    return true;
}

static bool run_engine(minfer_engine *e, const char *path, said *out, minfer_error *why) {
    static const minfer_message talk[] = {{"system", "Be brief."}, {"user", "Is there bread on the table, or a letter?"}};
    static const char text[] = "The kettle sang while the rain drew lines on the window.";
    minfer_sequence *a = ask(e, 1, why), *b = a ? ask(e, 2, why) : NULL;
    bool ok = b && minfer_append_chat(a, talk, 2, true, why) &&
              minfer_append_text(b, text, sizeof text - 1, MINFER_ENCODE_SPECIAL, why) && answer(e, out, why) &&
              minfer_session_new(a, path, why) && minfer_session_commit(a, "state", 5, why);
    if (!ok) return false;
    minfer_sequence_free(a);
    return (a = ask(e, 3, why)) && minfer_session_open(a, path, why) && minfer_shift(a, 4, 8, why) &&
           minfer_append_text(a, text, 12, 0, why) && answer(e, out, why);
}

static bool run(said *out, minfer_error *why) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/minfer-malloc-run-%d", (int)getpid());
    *out = (said){.len = 0};
    minfer_model_options mo;
    minfer_model_options_init(&mo, sizeof mo);
    mo.n_threads = 1;
    minfer_engine_options eo;
    minfer_engine_options_init(&eo, sizeof eo);
    eo.max_sequences = 2, eo.n_ctx = 256;
    minfer_model *m = minfer_model_open(TINY("llama3-f16"), &mo, why);
    minfer_engine *e = m ? minfer_engine_new(m, &eo, why) : NULL;
    bool ok = e && run_engine(e, path, out, why);
    minfer_engine_free(e);
    minfer_model_close(m);
    unlink(path);
    return ok;
}

static said whole;

static bool run_again(minfer_error *why) {
    said s;
    arm();
    bool ok = run(&s, why);
    disarm();
    if (ok) assert_int_equal(s.len, whole.len);
    if (ok) assert_memory_equal(s.text, whole.text, s.len);
    return ok;
}

static void test_a_run_says_the_same_or_fails(void **state) {
    (void)state;
    minfer_error why;
    assert_true(run(&whole, &why));
    assert_true(whole.len > 18 * sizeof(int32_t));
    exhaust("a run", run_again, 300);
}

// ---- A conversation whose oldest turns leave a full context: their cells are moved, or there is an error

static minfer_model *talk_model;
static minfer_engine *talk_engine;

static minfer_conversation *talk(minfer_error *why) {
    minfer_conversation_options o;
    minfer_conversation_options_init(&o, sizeof o);
    minfer_sampling sampling;
    minfer_sampling_init(&sampling, sizeof sampling);
    const minfer_logit_bias parrot = {'a' - '!', 100}; // says "aaaa", so that the text comes back as the same tokens
    sampling.temp = 0, sampling.logit_bias = &parrot, sampling.n_logit_bias = 1;
    static const char *const stops[] = {"never said"};
    o.sampling = &sampling, o.stop_texts = stops, o.n_stop_texts = 1, o.max_tokens = 4;
    o.tools = "[{\"name\": \"look\"}]", o.variables = "{\"a\": 1}";
    return minfer_conversation_new(talk_engine, &o, why);
}

static bool tell(minfer_conversation *c, int i, minfer_error *why) {
    char message[160];
    int n = snprintf(message, sizeof message, "{\"role\":\"user\",\"content\":\"%d: the rain drew lines.\",\"n\":1}", i);
    return minfer_conversation_add(c, message, (size_t)n, why) && minfer_conversation_answer(c, why);
}

static bool fill_context(minfer_error *why) {
    said s = {.len = 0};
    static said want;
    char messages[4096];
    minfer_turn_cost cost;
    size_t n = 0;
    minfer_conversation *c = talk(why);
    for (int i = 0; i < 6; i++) assert_true(tell(c, i, why) && answer(talk_engine, &s, why));
    arm();
    bool ok = tell(c, 6, why) && answer(talk_engine, &s, why) &&
              minfer_conversation_messages(c, messages, sizeof messages, &n, why);
    disarm();
    if (ok) {
        minfer_conversation_get_cost(c, &cost, sizeof cost);
        assert_true(cost.n_shifted > 0);
        add(&s, messages, n);
        if (!want.len) want = s;
        assert_int_equal(s.len, want.len);
        assert_memory_equal(s.text, want.text, s.len);
    }
    minfer_conversation_free(c);
    return ok;
}

static bool new_conversation(minfer_error *why) {
    arm();
    minfer_conversation *c = talk(why);
    disarm();
    minfer_conversation_free(c);
    return c != NULL;
}

static void test_a_full_context_moves_or_fails(void **state) {
    (void)state;
    talk_model = fixture_model(TINY("llama-f32"));
    talk_engine = fixture_engine(talk_model, 1, 256);
    minfer_error why;
    next_k = 1000000;
    assert_true(fill_context(&why)); // with all its memory
    exhaust("a conversation", new_conversation, 20);
    exhaust("a full context", fill_context, 50);
    minfer_engine_free(talk_engine);
    minfer_model_close(talk_model);
}

// ---- A constraint, and answers that it holds

static bool constrained(minfer_error *why) {
    static const char schema[] = "{\"type\":\"object\",\"properties\":{\"age\":{\"type\":\"integer\",\"maximum\":150},"
                                 "\"name\":{\"type\":\"string\",\"pattern\":\"^[a-f]+$\"}},\"required\":[\"age\",\"name\"]}";
    static const char grammar[] = "root ::= (\"a\" | [b-y]{2}) root?";
    static said want;
    said s = {.len = 0};
    minfer_model *m = fixture_model(TINY("llama3-f16")); // whose vocabulary is not prepared
    minfer_engine *e = fixture_engine(m, 2, 256);
    minfer_sequence_options o;
    minfer_sequence_options_init(&o, sizeof o);
    o.max_tokens = 8, o.ignore_end = true;
    arm();
    minfer_constraint *a = minfer_constraint_from_schema(m, schema, sizeof schema - 1, 0, why),
                      *b = a ? minfer_constraint_from_gbnf(m, grammar, sizeof grammar - 1, why) : NULL;
    bool ok = b != NULL;
    for (int i = 0; i < 2 && ok; i++) {
        o.constraint = i ? b : a;
        minfer_sequence *q = minfer_sequence_new(e, &o, why);
        ok = q && minfer_append_text(q, "The rain", 8, 0, why);
    }
    ok = ok && answer(e, &s, why);
    disarm();
    if (ok && !want.len) want = s;
    if (ok) assert_int_equal(s.len, want.len);
    if (ok) assert_memory_equal(s.text, want.text, s.len);
    minfer_constraint_free(a);
    minfer_constraint_free(b);
    minfer_engine_free(e);
    minfer_model_close(m);
    return ok;
}

static void test_a_constraint_holds_or_fails(void **state) {
    (void)state;
    minfer_error why;
    next_k = 1000000;
    assert_true(constrained(&why)); // with all its memory
    exhaust("constrained answers", constrained, 100);
}

// ---- A vocabulary in which a whole word is not what its merges make

static mf_tokenizer *words;

static bool encode_word(minfer_error *why) {
    static const char text[] = "world hello world";
    static const int32_t want[] = {267, TINY_SPACE_HELLO, 268};
    mf_token_array ids = {0};
    mf_error err = {0};
    arm();
    bool ok = mf_tokenizer_encode(words, MF_STR(text), 0, &ids, &err);
    disarm();
    if (ok) assert_int_equal(ids.len, 3);
    if (ok) assert_memory_equal(ids.data, want, sizeof want);
    why->code = (minfer_code)err.code;
    memcpy(why->text, err.text, sizeof err.text);
    free(ids.data);
    return ok;
}

static void test_a_whole_word_stays_whole_or_fails(void **state) {
    (void)state;
    static tiny_vocab v;
    tiny_bpe(&v);
    v.pre = "llama-bpe";
    assert_int_equal(tiny_add(&v, "world", MF_TOKEN_NORMAL, 0), 267);
    assert_int_equal(tiny_add(&v, "\xC4\xA0world", MF_TOKEN_NORMAL, 0), 268);
    size_t size;
    mf_error err = {0};
    uint8_t *bytes = tiny_build(&v, &size);
    mf_gguf *file = mf_gguf_open_memory(bytes, size, &err);
    assert_non_null(file);
    words = mf_tokenizer_new(file, NULL, &err);
    if (!words) fail_msg("%s", err.text);
    exhaust("a word", encode_word, 3);
    mf_tokenizer_free(words);
    mf_gguf_close(file);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_says_the_same_or_fails),
        cmocka_unit_test(test_a_full_context_moves_or_fails),
        cmocka_unit_test(test_a_constraint_holds_or_fails),
        cmocka_unit_test(test_a_whole_word_stays_whole_or_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
