// Text as it comes: what a stop text lets through, and when.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/stream.h"
#include "base/random.h"
#include "base/utf8.h"

static mf_gguf *file;
static mf_tokenizer *tokenizer;

static int open_tokenizer(void **state) {
    (void)state;
    mf_error err = {0};
    file = mf_gguf_open(MF_FIXTURES "/tiny/qwen2-f32.gguf", &err);
    tokenizer = file ? mf_tokenizer_new(file, NULL, &err) : NULL;
    if (!tokenizer) print_error("%s\n", err.text);
    return tokenizer ? 0 : 1;
}

static int close_tokenizer(void **state) {
    (void)state;
    mf_tokenizer_free(tokenizer);
    mf_gguf_close(file);
    return 0;
}

// Feeds pieces and asserts what each lets out ("": nothing). A last expectation beginning with '$' is what finishing gives;
// without one the stop text must have been found by the last piece.
static void expect(const char *const *stops, const char *const *pieces, const char *const *outs) {
    size_t n_stops = 0;
    while (stops[n_stops]) n_stops++;
    mf_stream s;
    mf_stream_init(&s, tokenizer, stops, n_stops);
    bool going = true;
    for (; *pieces; pieces++, outs++) {
        assert_true(going);
        going = mf_stream_text(&s, mf_str_of(*pieces));
        assert_non_null(*outs);
        assert_true(mf_str_is((mf_str){s.out.data, s.out.len}, *outs));
        mf_stream_taken(&s);
    }
    assert_int_equal(going, *outs != NULL);
    assert_int_equal(going, s.stopped_by == NULL);
    assert_int_equal(mf_stream_finish(&s), 0);
    assert_true(mf_str_is((mf_str){s.out.data, s.out.len}, *outs ? *outs + 1 : ""));
    mf_stream_restart(&s);
    assert_null(s.stopped_by);
    assert_true(mf_stream_text(&s, MF_STR("~")));
    assert_true(mf_str_is((mf_str){s.out.data, s.out.len}, "~"));
    mf_stream_free(&s);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NONE      ((const char *const[]){NULL})

static void stop_texts(void **state) {
    (void)state;
    expect(NONE, LIST("one", " two"), LIST("one", " two", "$"));
    expect(LIST("END"), LIST("one END two"), LIST("one "));
    expect(LIST("END"), LIST("one E", "N", "D"), LIST("one ", "", ""));
    expect(LIST("END"), LIST("one E", "N", "K"), LIST("one ", "", "ENK", "$"));
    expect(LIST("END"), LIST("one EN"), LIST("one ", "$EN"));
    expect(LIST("aab"), LIST("a", "a", "a", "b"), LIST("", "", "a", ""));
    expect(LIST("\n\n", "\nUser"), LIST("hi\n", "Use", "ful"), LIST("hi", "", "\nUseful", "$"));
    expect(LIST("later", "la"), LIST("a late la"), LIST("a ")); // the first in the text ends it
    expect(LIST("ber", "numbers"), LIST("numbers"), LIST(""));  // also when another one ends earlier
    expect(LIST("x"), LIST("x"), LIST(""));
}

// Control tokens are not shown, but stop texts are found in and across their texts.
static void control_tokens(void **state) {
    (void)state;
    static const struct {
        const char *stop, *said; // said: what is shown of "a<|im_start|>b<|im_end|>", of which the last one ends the text
    } cases[] = {{"<|im_start|>", "a"}, {"a<|im_start|>", ""},  {"|>b", "a"},         {"start|>b<|im_", "a"},
                 {"<|im_", "a"},        {"b<|im_end|>", "a"},   {"<|im_end|>", "ab"}, {"a<|im_start|>b<|im_end|>", ""},
                 {"ab", NULL},          {"b<|im_end|>x", NULL}, {"<|im_endx", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mf_stream s;
        mf_buf out = {0};
        mf_token_array ids = {0};
        mf_error err = {0};
        assert_true(mf_tokenizer_encode(tokenizer, MF_STR("a<|im_start|>b<|im_end|>"), MF_ENCODE_PARSE_CONTROL, &ids, &err));
        assert_int_equal(ids.len, 4);
        mf_stream_init(&s, tokenizer, &cases[i].stop, 1);
        bool going = true;
        for (size_t k = 0; k < 3 && going; k++) going = mf_stream_token(&s, ids.data[k]);
        if (going) mf_stream_ending(&s, ids.data[3]);
        mf_stream_finish(&s);
        mf_buf_add(&out, s.out.data, s.out.len);
        assert_true(mf_str_is((mf_str){out.data ? out.data : "", out.len}, cases[i].said ? cases[i].said : "ab"));
        assert_ptr_equal(s.stopped_by, cases[i].said ? cases[i].stop : NULL);
        free(out.data);
        free(ids.data);
        mf_stream_free(&s);
    }
}

// Any tokens and stop texts, token by token, against a search in the whole text.
static void any_tokens(void **state) {
    (void)state;
    enum {
        LONG = 30
    };
    static const char *const stops[] = {"a",   "ab",      "ba>",          "<|im_start|>", "a<|im_",
                                        "|><", "rt|>a<|", "b<|im_end|>b", "bbab",         "<a"};
    int32_t used[6];
    for (int i = 0; i < 4; i++) used[i] = mf_tokenizer_find(tokenizer, (mf_str){&"ab<>"[i], 1});
    used[4] = mf_tokenizer_find(tokenizer, MF_STR("<|im_start|>")),
    used[5] = mf_tokenizer_find(tokenizer, MF_STR("<|im_end|>"));
    for (uint64_t seed = 0; seed < 3000; seed++) {
        const char *own[2];
        for (uint64_t i = 0; i < 2; i++) own[i] = stops[(size_t)(mf_random_uniform(seed, i, 1) * 10)];
        mf_stream s;
        mf_buf whole = {0}, shown = {0}, want = {0};
        bool hidden[LONG * 16], going = true;
        mf_stream_init(&s, tokenizer, own, 2);
        size_t found = SIZE_MAX;
        for (uint64_t n = 0; n < LONG && going; n++) {
            int32_t id = used[(size_t)(mf_random_uniform(seed, n, 0) * 6)];
            size_t from = whole.len;
            mf_tokenizer_piece(tokenizer, id, true, &whole);
            for (; from < whole.len; from++) hidden[from] = mf_tokenizer_type(tokenizer, id) == MF_TOKEN_CONTROL;
            going = mf_stream_token(&s, id);
            mf_buf_add(&shown, s.out.data, s.out.len);
            mf_stream_taken(&s);
            for (int i = 0; i < 2; i++) {
                const char *hit = strstr(whole.data, own[i]);
                if (hit && (size_t)(hit - whole.data) < found) found = (size_t)(hit - whole.data);
            }
            assert_int_equal(going, found == SIZE_MAX);
        }
        mf_stream_finish(&s);
        mf_buf_add(&shown, s.out.data, s.out.len);
        for (size_t i = 0; i < whole.len && i < found; i++)
            if (!hidden[i]) mf_buf_char(&want, whole.data[i]);
        assert_true(mf_str_eq((mf_str){shown.data, shown.len}, (mf_str){want.data, want.len}));
        if (!going) assert_true(strncmp(whole.data + found, s.stopped_by, strlen(s.stopped_by)) == 0);
        free(whole.data), free(shown.data), free(want.data);
        mf_stream_free(&s);
    }
}

// Characters that come in parts are given out whole, and a part that stays is dropped and counted.
static void characters(void **state) {
    (void)state;
    mf_token_array ids = {0};
    mf_error err = {0};
    const char *text = "a\xF0\x9F\x98\x80z\xE2\x82\xAC";
    assert_true(mf_tokenizer_encode(tokenizer, mf_str_of(text), MF_ENCODE_PLAIN, &ids, &err));
    for (int drop = 0; drop < 2; drop++) {
        mf_stream s;
        mf_buf out = {0};
        mf_stream_init(&s, tokenizer, NULL, 0);
        for (size_t i = 0; i + (size_t)drop < ids.len; i++) {
            assert_true(mf_stream_token(&s, ids.data[i]));
            mf_buf_add(&out, s.out.data, s.out.len);
            mf_stream_taken(&s);
            assert_int_equal(mf_utf8_incomplete_tail(out.data, out.len), 0);
        }
        int dropped = mf_stream_finish(&s);
        mf_buf_add(&out, s.out.data, s.out.len);
        assert_int_equal(dropped, drop ? 2 : 0);
        assert_true(mf_str_is((mf_str){out.data, out.len}, drop ? "a\xF0\x9F\x98\x80z" : text));
        free(out.data);
        mf_stream_free(&s);
    }
    free(ids.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stop_texts), cmocka_unit_test(control_tokens),
                                       cmocka_unit_test(any_tokens), cmocka_unit_test(characters)};
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
