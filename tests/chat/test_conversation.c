// Conversations over a tiny model: what a turn evaluates, and how turns leave a full context.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "chat/conversation.h"
#include "engine/fixture.h"

enum {
    ANSWER = 8, // tokens of an answer
    MAX_SPANS = 512
};

// How the test's template departs from ChatML.
typedef enum style {
    PLAIN,
    FORGETS, // past answers lose their first two characters, as where a model's thinking is dropped
    FOLDS,   // the system message stands in the first question
    COUNTS,  // turns are numbered
    NOTHING, // it prints nothing
} style;

static fixture model;
static mf_tokenizer *tokenizer;
static mf_logit_bias *bias; // answers are lower-case letters and spaces, so that their text is what was generated
static size_t n_bias;
static int32_t im_start, im_end;

static void add_bias(int32_t id) { bias[n_bias++] = (mf_logit_bias){id, -100}; }

static bool is_plain(int32_t id) {
    mf_buf piece = {0};
    mf_tokenizer_piece(tokenizer, id, true, &piece);
    bool plain = piece.len > 0;
    for (size_t i = 0; i < piece.len; i++)
        plain = plain && ((piece.data[i] >= 'a' && piece.data[i] <= 'z') || piece.data[i] == ' ');
    free(piece.data);
    return plain;
}

static int open_model(void **state) {
    (void)state;
    mf_error err = {0};
    if (!fixture_open(&model, MF_FIXTURES "/tiny/qwen2-mix.gguf", NULL, 2, &err)) return -1;
    tokenizer = mf_tokenizer_new(model.file, NULL, &err);
    if (!tokenizer) return -1;
    int32_t n = model.model->hparams.n_vocab;
    bias = calloc((size_t)n, sizeof *bias);
    if (!bias) return -1;
    for (int32_t i = 0; i < n; i++)
        if (i >= mf_tokenizer_n_vocab(tokenizer) || !is_plain(i)) add_bias(i);
    im_start = mf_tokenizer_find(tokenizer, MF_STR("<|im_start|>"));
    im_end = mf_tokenizer_find(tokenizer, MF_STR("<|im_end|>"));
    return im_start >= 0 && im_end >= 0 ? 0 : -1;
}

static int close_model(void **state) {
    (void)state;
    free(bias);
    mf_tokenizer_free(tokenizer);
    fixture_close(&model);
    return 0;
}

// ---- The template

typedef struct spans {
    mf_text_span span[MAX_SPANS];
    size_t n;
} spans;

static void put(spans *s, mf_str text, bool control) {
    assert_true(s->n < MAX_SPANS);
    s->span[s->n++] = (mf_text_span){text, control};
}

static bool render(void *arg, const mf_chat_message *m, size_t n, bool open_answer, mf_token_array *ids, mf_error *err) {
    style how = *(const style *)arg;
    spans s = {0};
    if (how == NOTHING) return true;
    assert_true(how != COUNTS || n < 36);
    static const char numbers[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t first = how == FOLDS && n > 0 && mf_str_is(m[0].role, "system") ? 1 : 0;
    for (size_t i = first; i < n; i++) {
        size_t cut = how == FORGETS && i + 1 < n && mf_str_is(m[i].role, "assistant") && m[i].content.len > 2 ? 2 : 0;
        put(&s, MF_STR("<|im_start|>"), true);
        put(&s, m[i].role, true);
        if (how == COUNTS) put(&s, (mf_str){numbers + i, 1}, true);
        put(&s, MF_STR("\n"), true);
        if (first && i == first) {
            put(&s, m[0].content, false);
            put(&s, MF_STR("\n\n"), true);
        }
        put(&s, (mf_str){m[i].content.ptr + cut, m[i].content.len - cut}, false);
        put(&s, MF_STR("<|im_end|>\n"), true);
    }
    if (open_answer) put(&s, MF_STR("<|im_start|>assistant"), true);
    if (open_answer && how == COUNTS) put(&s, (mf_str){numbers + n, 1}, true);
    if (open_answer) put(&s, MF_STR("\n"), true);
    return mf_tokenizer_encode_spans(tokenizer, s.span, s.n, 0, ids, err);
}

// ---- A conversation

typedef struct talk {
    mf_engine *engine;
    mf_sequence *sequence;
    mf_conversation c;
    style how;
    int32_t generated[ANSWER];
    char text[256];
} talk;

typedef struct setting {
    int32_t n_ctx, n_keep, n_reserve;
    mf_type cells;
    bool no_shift;
    style how;
    float temp;
} setting;

static void begin(talk *t, const setting *set) {
    mf_error err = {0};
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = set->n_ctx, p.kv_type = set->cells ? set->cells : MF_TYPE_F16, p.prefix_cache = false;
    mf_sampler_params sampler;
    mf_sampler_params_init(&sampler);
    sampler.temp = set->temp, sampler.logit_bias = bias, sampler.n_logit_bias = n_bias;
    mf_sequence_params q;
    mf_sequence_params_init(&q);
    q.sampler = &sampler, q.max_tokens = ANSWER;
    *t = (talk){.how = set->how};
    t->engine = mf_engine_new(model.model, &model.devices, &p, &err);
    t->sequence = t->engine ? mf_sequence_new(t->engine, &q, &err) : NULL;
    if (!t->sequence) fail_msg("%s", err.text);
    mf_conversation_init(&t->c, &(mf_conversation_params){.tokenizer = tokenizer,
                                                          .sequence = t->sequence,
                                                          .n_ctx = mf_sequence_n_ctx(t->sequence),
                                                          .n_keep = set->n_keep,
                                                          .n_reserve = set->n_reserve ? set->n_reserve : ANSWER,
                                                          .seed = 42,
                                                          .shift = !set->no_shift,
                                                          .render = render,
                                                          .render_arg = &t->how});
}

static void end(talk *t) {
    mf_conversation_free(&t->c);
    mf_sequence_free(t->sequence);
    mf_engine_free(t->engine);
}

// Evaluates and generates what the conversation is ready for; returns the rows that were evaluated for the prompt.
static int32_t answer(talk *t) {
    mf_error err = {0};
    int32_t before = mf_sequence_n_evaluated(t->sequence), prompt = mf_sequence_n_tokens(t->sequence), n = 0;
    mf_buf text = {0};
    while (!mf_engine_idle(t->engine)) {
        const mf_event *events;
        size_t n_events;
        if (!mf_engine_step(t->engine, &events, &n_events, &err)) fail_msg("%s", err.text);
        for (size_t i = 0; i < n_events; i++) {
            if (events[i].token < 0) continue;
            assert_true(n < ANSWER);
            t->generated[n++] = events[i].token;
            mf_tokenizer_piece(tokenizer, events[i].token, false, &text);
        }
    }
    assert_int_equal(n, ANSWER);
    snprintf(t->text, sizeof t->text, "%s", text.data);
    if (!mf_conversation_answered(&t->c, mf_str_of(t->text), &err)) fail_msg("%s", err.text);
    free(text.data);
    assert_int_equal(t->c.cost.n_prompt, prompt);
    assert_int_equal(t->c.cost.n_evaluated, prompt - before);
    return prompt - before;
}

static int32_t ask(talk *t, const char *question) {
    mf_error err = {0};
    if (!mf_conversation_ask(&t->c, mf_str_of(question), &err)) fail_msg("%s", err.text);
    return answer(t);
}

static int32_t n_tokens_of(const char *text) {
    mf_token_array ids = {0};
    mf_error err = {0};
    assert_true(mf_tokenizer_encode(tokenizer, mf_str_of(text), MF_ENCODE_PARSE_CONTROL, &ids, &err));
    free(ids.data);
    return (int32_t)ids.len;
}

// Tokens that a turn adds behind an earlier answer: the one that was generated last, the end of that turn, and its own.
static int32_t own_tokens(const char *question) {
    char text[512];
    snprintf(text, sizeof text, "<|im_end|>\n<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n", question);
    return 1 + n_tokens_of(text);
}

static void set_system(talk *t, const char *text) {
    mf_error err = {0};
    if (!mf_conversation_set_system(&t->c, text ? mf_str_of(text) : (mf_str){0}, &err)) fail_msg("%s", err.text);
}

// ---- Turns

static void turns_evaluate_their_own(void **state) {
    (void)state;
    static const char *const questions[] = {"hello there", "and again", "<|im_end|> is no control token", "\xE2\x82\xAC"};
    static const mf_type types[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
    for (int i = 0; i < 3; i++) {
        talk t;
        begin(&t, &(setting){.n_ctx = 512, .cells = types[i], .temp = 0.8F});
        set_system(&t, "be kind");
        ask(&t, "the first question");
        for (size_t k = 0; k < sizeof questions / sizeof *questions; k++) {
            int32_t at = mf_sequence_n_tokens(t.sequence) - ANSWER, kept[ANSWER];
            memcpy(kept, t.generated, sizeof kept);
            char plain[128];
            snprintf(plain, sizeof plain, "%s", k == 2 ? "" : questions[k]);
            int32_t got = ask(&t, questions[k]);
            if (k != 2) assert_int_equal(got, own_tokens(plain));
            assert_int_equal(t.c.cost.n_again, 0);
            assert_string_equal(t.c.cost.again_reason, "");
            assert_memory_equal(mf_sequence_tokens(t.sequence) + at, kept, sizeof kept); // not encoded again
        }
        assert_int_equal(t.c.entries.len, 11);
        end(&t);
    }
}

// The same bytes as a sequence that is given all the tokens at once.
static void cells_are_those_of_the_tokens(void **state) {
    (void)state;
    talk t, fresh;
    begin(&t, &(setting){.n_ctx = 512});
    begin(&fresh, &(setting){.n_ctx = 512});
    ask(&t, "one"), ask(&t, "two"), ask(&t, "three");
    mf_error err = {0};
    int32_t n = mf_sequence_n_tokens(t.sequence) - ANSWER;
    assert_true(mf_sequence_append(fresh.sequence, mf_sequence_tokens(t.sequence), (size_t)n, &err));
    fresh.c.cost = (mf_turn_cost){.n_prompt = n, .n_evaluated = n};
    answer(&fresh);
    assert_memory_equal(fresh.generated, t.generated, sizeof t.generated);
    end(&t);
    end(&fresh);
}

static void changed_history(void **state) {
    (void)state;
    talk t;
    begin(&t, &(setting){.n_ctx = 512, .how = FORGETS});
    ask(&t, "one");
    int32_t again = ask(&t, "two");
    assert_true(again > own_tokens("two"));
    assert_true(t.c.cost.n_again > 0);
    assert_string_equal(t.c.cost.again_reason, "the template renders earlier turns in other words");
    end(&t);
    begin(&t, &(setting){.n_ctx = 512, .how = FOLDS});
    set_system(&t, "be kind");
    ask(&t, "one");
    assert_int_equal(ask(&t, "two"), own_tokens("two"));
    set_system(&t, "be quick");
    assert_true(ask(&t, "three") > own_tokens("three"));
    assert_string_equal(t.c.cost.again_reason, "the system message changed");
    assert_int_equal(ask(&t, "four"), own_tokens("four"));
    assert_string_equal(mf_conversation_system(&t.c), "be quick");
    set_system(&t, "");
    assert_string_equal(mf_conversation_system(&t.c), "");
    int32_t all = mf_conversation_n_tokens(&t.c);
    set_system(&t, NULL);
    assert_null(mf_conversation_system(&t.c));
    assert_true(mf_conversation_n_tokens(&t.c) < all);
    mf_conversation_clear(&t.c);
    assert_int_equal(t.c.entries.len, 0);
    assert_int_equal(mf_conversation_n_tokens(&t.c), 0);
    ask(&t, "five");
    assert_int_equal(mf_conversation_n_tokens(&t.c), mf_sequence_n_tokens(t.c.params.sequence));
    assert_string_equal(t.c.cost.again_reason, "the conversation was cleared");
    end(&t);
}

static void regenerate_and_undo(void **state) {
    (void)state;
    mf_error err = {0};
    talk t;
    begin(&t, &(setting){.n_ctx = 512, .temp = 0.8F});
    assert_false(mf_conversation_regenerate(&t.c, &err));
    assert_int_equal(err.code, MF_ERR_ARGUMENT);
    assert_string_equal(err.text, "there is no answer to generate again");
    assert_false(mf_conversation_undo(&t.c, &err));
    assert_string_equal(err.text, "there is nothing to take back");
    assert_null(mf_conversation_last_question(&t.c));
    ask(&t, "one");
    ask(&t, "two");
    char first[256];
    snprintf(first, sizeof first, "%s", t.text);
    bool other = false;
    for (int i = 0; i < 4; i++) {
        assert_true(mf_conversation_regenerate(&t.c, &err));
        assert_int_equal(answer(&t), 1);
        assert_int_equal(t.c.entries.len, 4);
        other |= strcmp(t.text, first) != 0;
    }
    assert_true(other); // each time with another seed
    assert_int_equal(t.c.seed_step, 4);
    int32_t held = mf_sequence_n_evaluated(t.sequence);
    assert_true(mf_conversation_undo(&t.c, &err));
    assert_int_equal(t.c.entries.len, 2);
    assert_string_equal(mf_conversation_last_question(&t.c), "one");
    assert_int_equal(mf_sequence_n_evaluated(t.sequence), held);
    assert_true(mf_sequence_idle(t.sequence));
    end(&t);
    // After an undo the cells before it are taken up.
    begin(&t, &(setting){.n_ctx = 512});
    ask(&t, "one"), ask(&t, "two");
    assert_true(mf_conversation_undo(&t.c, &err));
    assert_true(ask(&t, "too") < own_tokens("too"));
    assert_string_equal(t.c.cost.again_reason, "a turn was taken back");
    // A history without its cells is read whole, and its last answer can be generated again.
    t.c.answer_start = -1;
    assert_true(mf_conversation_regenerate(&t.c, &err));
    answer(&t);
    assert_int_equal(t.c.entries.len, 4);
    end(&t);
}

static void texts_are_utf8(void **state) {
    (void)state;
    mf_error err = {0};
    talk t;
    begin(&t, &(setting){.n_ctx = 512});
    assert_true(mf_conversation_add(&t.c, "user", (mf_str){"a\xFFz\0\xE2\x82", 6}, &err));
    assert_string_equal(t.c.entries.data[0].content, "a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    assert_true(mf_conversation_add(&t.c, "assistant", (mf_str){"", 0}, &err));
    assert_string_equal(t.c.entries.data[1].content, "");
    end(&t);
}

// ---- Overflow

static size_t n_left(const talk *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->c.entries.len; i++) n += t->c.entries.data[i].left;
    return n;
}

// Whole turns leave, the oldest first.
static void check_left(const talk *t, size_t from) {
    size_t n = n_left(t);
    assert_int_equal(n % 2, 0);
    for (size_t i = 0; i < t->c.entries.len; i++) assert_int_equal(t->c.entries.data[i].left, i >= from && i < from + n);
}

static void overflow(style how, mf_type cells) {
    talk t;
    begin(&t, &(setting){.n_ctx = 256, .cells = cells, .how = how});
    set_system(&t, "be kind and brief");
    int shifts = 0;
    for (int i = 0; i < 40; i++) {
        char question[32];
        snprintf(question, sizeof question, "question %c%c", 'a' + i / 26, 'a' + i % 26);
        int32_t got = ask(&t, question);
        if (i > 0 && got != own_tokens(question)) fail_msg("%d: %s", i, t.c.cost.again_reason);
        if (i > 0) assert_int_equal(got, own_tokens(question)); // before the first shift and behind every one
        assert_true(mf_sequence_n_tokens(t.sequence) <= 256);
        check_left(&t, 1);
        assert_false(t.c.entries.data[0].left);
        if (!t.c.cost.n_left) {
            assert_int_equal(t.c.cost.n_shifted, 0);
            continue;
        }
        shifts++;
        assert_true(t.c.cost.n_shifted >= 2 * MF_KV_BLOCK);
        assert_string_equal(t.c.cost.again_reason, "");
    }
    assert_true(shifts >= 3);
    end(&t);
}

static void turns_leave(void **state) {
    (void)state;
    static const mf_type types[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
    for (int i = 0; i < 3; i++) overflow(PLAIN, types[i]);
    overflow(FOLDS, MF_TYPE_F16);
}

// Turns within the first n_keep tokens stay.
static void n_keep(void **state) {
    (void)state;
    static const struct {
        int32_t keep;
        size_t first; // message that leaves
    } cases[] = {{0, 1}, {10, 1}, {90, 3}, {150, 5}, {100000, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        talk t;
        begin(&t, &(setting){.n_ctx = 512, .n_keep = cases[k].keep});
        set_system(&t, "be kind");
        int32_t with_turn[3] = {0};
        for (int i = 0; i < 30 && !n_left(&t); i++) {
            ask(&t, "a question like the others");
            if (i < 3) with_turn[i] = mf_sequence_n_tokens(t.sequence);
        }
        size_t first = 0;
        while (!t.c.entries.data[first].left) first++;
        assert_true(with_turn[0] < 90 && with_turn[1] > 90 && with_turn[1] < 150 && with_turn[2] > 150);
        if (cases[k].first) assert_int_equal(first, cases[k].first);
        assert_true(cases[k].first || first > 5); // all but the last turn are protected: that one leaves
        assert_true(t.c.cost.n_shifted > 0 || !cases[k].first);
        end(&t);
    }
}

static void until_left(talk *t) {
    char question[] = "_ question like the others";
    for (question[0] = 'a'; question[0] <= 'z' && !n_left(t); question[0]++) ask(t, question);
    assert_true(t->c.cost.n_left > 0);
}

static void read_again(void **state) {
    (void)state;
    static const struct {
        setting set;
        const char *reason;
    } cases[] = {
        {{.n_ctx = 256, .no_shift = true}, "context shifts are off"},
        {{.n_ctx = 256, .how = COUNTS}, "the template renders the rest in other words once turns have left"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        talk t;
        begin(&t, &cases[k].set);
        set_system(&t, "be kind");
        until_left(&t);
        assert_int_equal(t.c.cost.n_shifted, 0);
        assert_string_equal(t.c.cost.again_reason, cases[k].reason);
        assert_true(t.c.cost.n_again > 0 && t.c.cost.n_evaluated > own_tokens("a question like the others"));
        check_left(&t, 1);
        if (k == 0) assert_int_equal(ask(&t, "the next"), own_tokens("the next"));
        end(&t);
    }
}

static char *long_text(size_t n) {
    char *text = malloc(n + 1);
    assert_non_null(text);
    memset(text, 'x', n);
    text[n] = 0;
    return text;
}

static void empty_prompt(void **state) {
    (void)state;
    mf_error err = {0};
    talk t;
    begin(&t, &(setting){.n_ctx = 256, .n_reserve = 64, .how = NOTHING});
    assert_false(mf_conversation_ask(&t.c, MF_STR("one"), &err));
    assert_non_null(strstr(err.text, "empty text"));
    assert_int_equal(t.c.entries.len, 0);
    end(&t);
}

static void too_long(void **state) {
    (void)state;
    mf_error err = {0};
    talk t;
    begin(&t, &(setting){.n_ctx = 256, .n_reserve = 64});
    set_system(&t, "be kind");
    ask(&t, "one"), ask(&t, "two");
    int32_t tokens = mf_sequence_n_tokens(t.sequence), evaluated = mf_sequence_n_evaluated(t.sequence);
    char *text = long_text(600);
    assert_false(mf_conversation_ask(&t.c, mf_str_of(text), &err));
    assert_int_equal(err.code, MF_ERR_LIMIT);
    assert_non_null(strstr(err.text, "and the context 256"));
    assert_int_equal(t.c.entries.len, 5);
    assert_int_equal(n_left(&t), 0);
    assert_int_equal(mf_sequence_n_tokens(t.sequence), tokens);
    assert_int_equal(mf_sequence_n_evaluated(t.sequence), evaluated);
    assert_int_equal(ask(&t, "three"), own_tokens("three")); // as if nothing had been asked
    free(text);
    // Without a system message nothing is left to be moved.
    set_system(&t, NULL);
    text = long_text(200);
    assert_true(mf_conversation_ask(&t.c, mf_str_of(text), &err));
    answer(&t);
    assert_string_equal(t.c.cost.again_reason, "no earlier turn stays");
    free(text);
    end(&t);
    begin(&t, &(setting){.n_ctx = 256, .n_reserve = 64});
    set_system(&t, "be kind");
    ask(&t, "one"), ask(&t, "two"), ask(&t, "three");
    // One that fits alone, though not with all the room for an answer, makes every turn leave.
    text = long_text(170);
    assert_true(mf_conversation_ask(&t.c, mf_str_of(text), &err));
    answer(&t);
    assert_int_equal(n_left(&t), 6);
    end(&t);
    begin(&t, &(setting){.n_ctx = 256, .n_reserve = 64});
    assert_true(mf_conversation_ask(&t.c, mf_str_of(text), &err)); // also as the first
    answer(&t);
    end(&t);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_evaluate_their_own),
        cmocka_unit_test(cells_are_those_of_the_tokens),
        cmocka_unit_test(changed_history),
        cmocka_unit_test(regenerate_and_undo),
        cmocka_unit_test(texts_are_utf8),
        cmocka_unit_test(turns_leave),
        cmocka_unit_test(n_keep),
        cmocka_unit_test(read_again),
        cmocka_unit_test(too_long),
        cmocka_unit_test(empty_prompt),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
