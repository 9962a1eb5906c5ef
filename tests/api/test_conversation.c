// Conversations of the public interface: what the model reads, what the history says, and every refusal.
#include "api/fixture.h"

enum {
    TOKENS = 10
};

static minfer_model *model;
static minfer_logit_bias *bias; // answers are lower-case letters and spaces
static size_t n_bias;

static bool is_plain(int32_t id) {
    char piece[64];
    size_t n;
    minfer_error error;
    if (minfer_is_end(model, id) || !minfer_piece(model, id, 0, piece, sizeof piece, &n, &error) || n == 0) return false;
    for (size_t i = 0; i < n; i++)
        if (piece[i] != ' ' && (piece[i] < 'a' || piece[i] > 'z')) return false;
    return true;
}

static int open_model(void **state) {
    (void)state;
    model = fixture_model(TINY("qwen2-mix"));
    int32_t n = minfer_model_n_vocab(model);
    bias = calloc((size_t)n, sizeof *bias);
    if (!bias) return -1;
    for (int32_t id = 0; id < n; id++)
        if (!is_plain(id)) bias[n_bias++] = (minfer_logit_bias){id, -100};
    return 0;
}

static int close_model(void **state) {
    (void)state;
    free(bias);
    minfer_model_close(model);
    return 0;
}

// ---- A conversation

static minfer_sampling sampling;

static minfer_conversation_options defaults(void) {
    minfer_conversation_options o;
    minfer_conversation_options_init(&o, sizeof o);
    minfer_sampling_init(&sampling, sizeof sampling);
    sampling.logit_bias = bias, sampling.n_logit_bias = n_bias, sampling.temp = 1.5F;
    o.sampling = &sampling, o.max_tokens = TOKENS;
    return o;
}

static minfer_conversation *begin(minfer_engine *e, const minfer_conversation_options *o) {
    minfer_conversation *c = NULL;
    good((c = minfer_conversation_new(e, o, &error)) != NULL);
    return c;
}

static void add(minfer_conversation *c, const char *message) {
    good(minfer_conversation_add(c, message, strlen(message), &error));
}

// Runs until nothing is left to do, at most so many tokens.
static void take(minfer_conversation *c, char *text, size_t cap, int most) {
    minfer_engine *e = minfer_sequence_engine(minfer_conversation_sequence(c));
    size_t len = 0;
    for (minfer_event event; most > 0 && !minfer_idle(e);) {
        size_t n;
        good(minfer_step(e, &event, 1, &n, &error));
        if (n == 0) continue;
        assert_ptr_equal(event.sequence, minfer_conversation_sequence(c));
        assert_true(event.finish != MINFER_FINISH_ERROR && len + event.text_len < cap);
        memcpy(text + len, event.text, event.text_len);
        len += event.text_len;
        most--;
    }
    text[len] = 0;
}

static void answer(minfer_conversation *c, char text[256]) {
    good(minfer_conversation_answer(c, &error));
    take(c, text, 256, 1000);
    assert_int_equal(strlen(text) > 0, 1);
}

static void history_is(minfer_conversation *c, const char *want) {
    static char text[65536];
    size_t n;
    good(minfer_conversation_messages(c, text, sizeof text, &n, &error));
    assert_string_equal(text, want);
}

// What the model has read, with control tokens.
static void read_is(minfer_conversation *c, const char *want) {
    static char text[65536];
    size_t n, len;
    const int32_t *ids = minfer_sequence_tokens(minfer_conversation_sequence(c), &n);
    good(minfer_decode(model, ids, n, MINFER_DECODE_SPECIAL, text, sizeof text, &len, &error));
    assert_string_equal(text, want);
}

static const char *said(const char *format, const char *a, const char *b) {
    static char text[4][4096];
    static int next;
    char *out = text[next++ % 4];
    snprintf(out, sizeof text[0], format, a, b);
    return out;
}

static void test_turns(void **state) {
    (void)state;
    char one[256], two[256];
    minfer_engine *e = fixture_engine(model, 1, 512);
    minfer_conversation_options o = defaults();
    o.arg = one;
    minfer_conversation *c = begin(e, &o);
    assert_ptr_equal(minfer_sequence_arg(minfer_conversation_sequence(c)), one);
    history_is(c, "[]");
    add(c, "{\"role\": \"system\", \"content\": \"Be brief.\"}");
    add(c, " {\"role\": \"user\", \"content\": \"Hi, I am <|im_end|> \\\"Bob\\\".\"}");
    answer(c, one);
    read_is(c, said("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi, I am <|im_end|> \"Bob\".<|im_end|>\n"
                    "<|im_start|>assistant\n%s%s",
                    one, ""));
    history_is(c,
               said("[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"Hi, I am <|im_end|> "
                    "\\\"Bob\\\".\"},{\"role\":\"assistant\",\"content\":\"%s\"}]%s",
                    one, ""));
    minfer_turn_cost cost;
    minfer_conversation_get_cost(c, &cost, sizeof cost);
    int32_t before = minfer_sequence_n_evaluated(minfer_conversation_sequence(c));
    assert_true(cost.size == sizeof cost && cost.n_prompt == cost.n_evaluated && cost.n_again == 0);
    add(c, "{\"role\": \"user\", \"content\": \"What is my name?\"}");
    answer(c, two);
    read_is(c, said("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi, I am <|im_end|> \"Bob\".<|im_end|>\n"
                    "<|im_start|>assistant\n%s<|im_end|>\n<|im_start|>user\nWhat is my name?<|im_end|>\n"
                    "<|im_start|>assistant\n%s",
                    one, two));
    minfer_conversation_get_cost(c, &cost, sizeof cost);
    assert_int_equal(cost.n_again, 0);
    assert_true(cost.n_prompt - cost.n_evaluated >= before); // what was read is not read again
    assert_null(minfer_conversation_notice(c));
    minfer_conversation_free(c);
    minfer_conversation_free(begin(e, &o)); // the slot is free again
    begin(e, NULL);                         // freed with the engine
    minfer_engine_free(e);
}

static void test_changes(void **state) {
    (void)state;
    char one[256], two[256], three[256];
    const char *hi = "{\"role\":\"user\",\"content\":\"Hi\"}", *ho = "{\"role\":\"user\",\"content\":\"Ho\"}";
    minfer_engine *e = fixture_engine(model, 1, 512);
    minfer_conversation_options o = defaults();
    minfer_conversation *c = begin(e, &o);
    add(c, hi);
    answer(c, one);
    good(minfer_conversation_regenerate(c, &error));
    take(c, two, sizeof two, 1000);
    assert_string_not_equal(one, two);
    history_is(c, said("[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"%s\"}]%s", two, ""));
    good(minfer_conversation_edit(c, ho, strlen(ho), &error));
    take(c, three, sizeof three, 1000);
    history_is(c, said("[{\"role\":\"user\",\"content\":\"Ho\"},{\"role\":\"assistant\",\"content\":\"%s\"}]%s", three, ""));
    read_is(c, said("<|im_start|>user\nHo<|im_end|>\n<|im_start|>assistant\n%s%s", three, ""));
    const char *other = "{\"role\": \"assistant\", \"content\": \"as it was\"}";
    good(minfer_conversation_amend(c, other, strlen(other), &error));
    add(c, hi);
    answer(c, one);
    read_is(c,
            said("<|im_start|>user\nHo<|im_end|>\n<|im_start|>assistant\nas it was<|im_end|>\n<|im_start|>user\nHi<|im_end|>"
                 "\n<|im_start|>assistant\n%s%s",
                 one, ""));
    minfer_turn_cost cost;
    minfer_conversation_get_cost(c, &cost, sizeof cost);
    assert_string_equal(cost.again_reason, "a message was amended");
    good(minfer_conversation_undo(c, &error));
    history_is(c, "[{\"role\":\"user\",\"content\":\"Ho\"},{\"role\":\"assistant\",\"content\":\"as it was\"}]");
    good(minfer_conversation_set_system(c, "Be kind.", 8, &error));
    good(minfer_conversation_clear(c, &error));
    history_is(c, "[{\"role\":\"system\",\"content\":\"Be kind.\"}]");
    good(minfer_conversation_set_system(c, NULL, 0, &error));
    history_is(c, "[]");
    refused(minfer_conversation_undo(c, &error), MINFER_ERROR_ARGUMENT, "nothing to take back");
    minfer_engine_free(e);
}

static void test_stopped_answers(void **state) {
    (void)state;
    char whole[256], text[256];
    minfer_engine *e = fixture_engine(model, 1, 512);
    minfer_conversation_options o = defaults();
    static const char *const stops[] = {"never said"};
    o.stop_texts = stops, o.n_stop_texts = 1;
    minfer_conversation *c = begin(e, &o);
    minfer_sequence *s = minfer_conversation_sequence(c);
    refused(minfer_resume(s, &error), MINFER_ERROR_ARGUMENT, "awaits no answer");
    add(c, "{\"role\":\"user\",\"content\":\"Hi\"}");
    answer(c, whole);
    minfer_conversation_free(c);
    c = begin(e, &o), s = minfer_conversation_sequence(c);
    add(c, "{\"role\":\"user\",\"content\":\"Hi\"}");
    good(minfer_conversation_answer(c, &error));
    take(c, text, sizeof text, 3);
    minfer_stop(s);
    assert_true(minfer_idle(e));
    history_is(c, said("[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"%s\"}]%s", text, ""));
    good(minfer_resume(s, &error));
    take(c, text + strlen(text), sizeof text - strlen(text), 4);
    add(c, "{\"role\":\"user\",\"content\":\"Ho\"}"); // ends it where it is
    assert_true(minfer_idle(e));
    assert_memory_equal(text, whole, strlen(text));
    refused(minfer_resume(s, &error), MINFER_ERROR_ARGUMENT, "awaits no answer");
    answer(c, whole);
    read_is(c, said("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n%s<|im_end|>\n<|im_start|>user\nHo<|im_end|>\n"
                    "<|im_start|>assistant\n%s",
                    text, whole));
    minfer_engine_free(e);
}

// A template that shows all it is given; of a system message that is not the first it wants to know nothing.
static const char shows[] =
    "{{ mode }}|{{ tools | tojson if tools else 'no tools' }}"
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('late') }}"
    "{% endif %}|{{ m.role }}:{{ m.content }}{% if m.tool_calls %}"
    "{{ m.tool_calls[0].function.name }}{% endif %}{% endfor %}|";

static void test_tools_and_variables(void **state) {
    (void)state;
    char text[256];
    minfer_engine *e = fixture_engine(model, 1, 512);
    minfer_conversation_options o = defaults();
    o.chat_template = shows, o.tools = "[{\"name\": \"look\"}]", o.variables = "{\"mode\": \"deep\"}";
    minfer_conversation *c = begin(e, &o);
    add(c, "{\"role\":\"user\",\"content\":\"a\"}");
    add(c, "{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":\"look\"}}],\"content\":\"b\"} ");
    add(c, "{\"role\":\"tool\",\"content\":\"c\"}");
    answer(c, text);
    read_is(c, said("deep|[{\"name\": \"look\"}]|user:a|assistant:blook|tool:c|%s%s", text, ""));
    good(minfer_conversation_regenerate(c, &error)); // of the answer alone
    take(c, text, sizeof text, 1000);
    history_is(c,
               said("[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"tool_calls\":[{\"function\":{\"name\":"
                    "\"look\"}}],\"content\":\"b\"},{\"role\":\"tool\",\"content\":\"c\"},{\"role\":\"assistant\","
                    "\"content\":\"%s\"}]%s",
                    text, ""));
    good(minfer_conversation_clear(c, &error));
    good(minfer_conversation_set_tools(c, NULL, 0, &error));
    good(minfer_conversation_set_variables(c, "{\"mode\": 1}", 11, &error));
    add(c, "{\"role\":\"user\",\"content\":\"a\"}");
    add(c, "{\"role\":\"system\",\"content\":\"s\"}");
    answer(c, text);
    read_is(c, said("1|no tools|system:s|user:a|%s%s", text, ""));
    assert_non_null(strstr(minfer_conversation_notice(c), "system message"));
    minfer_engine_free(e);
}

static void test_a_full_context(void **state) {
    (void)state;
    minfer_engine *e = fixture_engine(model, 1, 256);
    minfer_conversation_options o = defaults();
    minfer_conversation *c = begin(e, &o);
    static char history[65536];
    minfer_turn_cost cost = {.n_left = 0};
    size_t n = 0;
    for (int turn = 0; turn < 12 && cost.n_left == 0; turn++) {
        char text[256];
        add(c, "{\"role\":\"user\",\"content\":\"The kettle sang while the rain drew lines.\"}");
        answer(c, text);
        minfer_conversation_get_cost(c, &cost, sizeof cost);
    }
    assert_true(cost.n_left > 0 && cost.n_shifted > 0);
    good(minfer_conversation_messages(c, history, sizeof history, &n, &error));
    assert_memory_equal(history,
                        "[{\"role\":\"user\",\"content\":\"The kettle sang while the rain drew lines.\",\"left\":true}", 80);
    // A history that is given back message by message is the same.
    minfer_conversation_free(c);
    c = begin(e, &o);
    for (char *from = history + 1, *to; (to = strchr(from, '}')); from = to + 2)
        good(minfer_conversation_add(c, from, (size_t)(to + 1 - from), &error));
    history_is(c, history);
    minfer_engine_free(e);
}

static void test_refusals(void **state) {
    (void)state;
    minfer_engine *e = fixture_engine(model, 1, 256);
    minfer_conversation_options o = defaults();
    static const struct {
        const char *template, *tools, *variables, *part;
        minfer_code code;
    } bad[] = {
        {"{% for %}", NULL, NULL, "line 1", MINFER_ERROR_FORMAT},
        {NULL, "{}", NULL, "the tools: no JSON array", MINFER_ERROR_ARGUMENT},
        {NULL, "[", NULL, "the tools", MINFER_ERROR_FORMAT},
        {NULL, NULL, "[]", "the template's variables: no JSON object", MINFER_ERROR_ARGUMENT},
        {NULL, NULL, "{\"a\": }", "the template's variables", MINFER_ERROR_FORMAT},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        o = defaults();
        o.chat_template = bad[i].template, o.tools = bad[i].tools, o.variables = bad[i].variables;
        refused(minfer_conversation_new(e, &o, &error), bad[i].code, bad[i].part);
    }
    o = defaults(), o.n_keep = -1;
    refused(minfer_conversation_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "n_keep is -1");
    o = defaults(), o.n_reserve = -2;
    refused(minfer_conversation_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "n_reserve is -2");
    o = defaults(), o.max_tokens = 0;
    refused(minfer_conversation_new(e, &o, &error), MINFER_ERROR_ARGUMENT, "max_tokens is 0");
    refused(minfer_conversation_new(NULL, &o, &error), MINFER_ERROR_ARGUMENT, "the engine is NULL");
    minfer_conversation *c = begin(e, NULL);
    refused(minfer_conversation_new(e, NULL, &error), MINFER_ERROR_LIMIT, "all 1 sequences");
    static const struct {
        const char *message, *part;
        minfer_code code;
    } messages[] = {
        {"", "line 1", MINFER_ERROR_FORMAT},
        {"{\"role\":\"user\",\"content\":\"a\"", "line 1", MINFER_ERROR_FORMAT},
        {"{\"role\":\"user\",\"content\":\"\xFF\"}", "UTF-8", MINFER_ERROR_FORMAT},
        {"[]", "a JSON object with a role", MINFER_ERROR_ARGUMENT},
        {"{\"content\":\"a\"}", "a JSON object with a role", MINFER_ERROR_ARGUMENT},
        {"{\"role\":\"\"}", "a JSON object with a role", MINFER_ERROR_ARGUMENT},
        {"{\"role\":\"us\\u0000er\"}", "a JSON object with a role", MINFER_ERROR_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof messages / sizeof messages[0]; i++)
        refused(minfer_conversation_add(c, messages[i].message, strlen(messages[i].message), &error), messages[i].code,
                messages[i].part);
    refused(minfer_conversation_add(NULL, "{}", 2, &error), MINFER_ERROR_ARGUMENT, "NULL");
    refused(minfer_conversation_add(c, NULL, 2, &error), MINFER_ERROR_ARGUMENT, "the message is NULL");
    history_is(c, "[]");
    refused(minfer_conversation_answer(c, &error), MINFER_ERROR_ARGUMENT, "no message to answer");
    refused(minfer_conversation_regenerate(c, &error), MINFER_ERROR_ARGUMENT, "no answer");
    refused(minfer_conversation_edit(c, "{}", 2, &error), MINFER_ERROR_ARGUMENT, "no question");
    refused(minfer_conversation_amend(c, "{}", 2, &error), MINFER_ERROR_ARGUMENT, "no message to amend");
    refused(minfer_conversation_set_tools(c, "{}", 2, &error), MINFER_ERROR_ARGUMENT, "no JSON array");
    add(c, "{\"role\":\"user\",\"content\":\"a\"}");
    add(c, "{\"role\":\"assistant\",\"content\":\"b\"}");
    refused(minfer_conversation_answer(c, &error), MINFER_ERROR_ARGUMENT, "no message to answer");
    const char *wrong = "{\"role\":\"tool\",\"content\":\"b\"}";
    refused(minfer_conversation_edit(c, wrong, strlen(wrong), &error), MINFER_ERROR_ARGUMENT, "role user");
    history_is(c, "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"}]");
    minfer_sequence *s = minfer_conversation_sequence(c);
    int32_t id = 5;
    refused(minfer_append(s, &id, 1, &error), MINFER_ERROR_ARGUMENT, "a conversation's");
    refused(minfer_append_text(s, "a", 1, 0, &error), MINFER_ERROR_ARGUMENT, "a conversation's");
    refused(minfer_truncate(s, 0, &error), MINFER_ERROR_ARGUMENT, "a conversation's");
    refused(minfer_shift(s, 0, 1, &error), MINFER_ERROR_ARGUMENT, "a conversation's");
    good(minfer_conversation_clear(c, &error));
    static char large[8192];
    int n = snprintf(large, sizeof large, "{\"role\":\"user\",\"content\":\"%04000d\"}", 1);
    good(minfer_conversation_add(c, large, (size_t)n, &error));
    refused(minfer_conversation_answer(c, &error), MINFER_ERROR_LIMIT, "the message is too long");
    minfer_engine_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),           cmocka_unit_test(test_changes),
        cmocka_unit_test(test_stopped_answers), cmocka_unit_test(test_tools_and_variables),
        cmocka_unit_test(test_a_full_context),  cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
