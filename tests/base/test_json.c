#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void hex(mf_buf *out, mf_str text) {
    mf_buf_char(out, '"');
    for (size_t i = 0; i < text.len; i++) mf_buf_printf(out, "%02x", (unsigned char)text.ptr[i]);
    mf_buf_char(out, '"');
}

// The dump of tests/oracle/json_cases.py.
static void dump(mf_buf *out, const mf_json *v) {
    size_t members = 0;
    switch (v->kind) {
    case MF_JSON_NULL: mf_buf_char(out, 'n'); break;
    case MF_JSON_BOOL: mf_buf_char(out, v->boolean ? 't' : 'f'); break;
    case MF_JSON_STRING: hex(out, v->text); break;
    case MF_JSON_NUMBER:
        mf_buf_char(out, '#');
        mf_buf_str(out, v->text);
        break;
    default:
        mf_buf_char(out, v->kind == MF_JSON_ARRAY ? '[' : '{');
        for (const mf_json *m = v->child; m; m = m->next, members++) {
            if (members) mf_buf_char(out, ',');
            if (v->kind == MF_JSON_OBJECT) {
                hex(out, m->key);
                mf_buf_char(out, ':');
            }
            dump(out, m);
        }
        assert_int_equal(members, v->count);
        mf_buf_char(out, v->kind == MF_JSON_ARRAY ? ']' : '}');
    }
}

static void write_value(mf_json_writer *w, const mf_json *v) {
    double number;
    switch (v->kind) {
    case MF_JSON_NULL: mf_json_null(w); break;
    case MF_JSON_BOOL: mf_json_bool(w, v->boolean); break;
    case MF_JSON_STRING: mf_json_string(w, v->text); break;
    case MF_JSON_NUMBER: mf_json_real(w, mf_json_f64(v, &number) ? number : NAN); break;
    default:
        mf_json_begin(w, v->kind == MF_JSON_ARRAY ? '[' : '{');
        for (const mf_json *m = v->child; m; m = m->next) {
            if (v->kind == MF_JSON_OBJECT) mf_json_key_str(w, m->key);
            write_value(w, m);
        }
        mf_json_end(w, v->kind == MF_JSON_ARRAY ? ']' : '}');
    }
}

// What is written, compact or indented, reads back as the same value (numbers as the doubles they are).
static void check_written(const mf_json *value) {
    mf_buf first = {0}, second = {0};
    for (int indent = 0; indent <= 2; indent += 2) {
        mf_arena arena = {0};
        mf_buf text = {0};
        mf_error err;
        mf_json_writer w = {.out = &text, .indent = indent};
        write_value(&w, value);
        mf_json *back = mf_json_parse(&arena, (mf_str){text.data, text.len}, &err);
        assert_non_null(back);
        w = (mf_json_writer){.out = indent ? &second : &first};
        write_value(&w, back);
        if (!indent) assert_string_equal(first.data, text.data);
        free(text.data);
        mf_arena_free(&arena);
    }
    assert_string_equal(first.data, second.data);
    free(first.data);
    free(second.data);
}

static size_t unhex(char *text) {
    size_t n = 0;
    if (strcmp(text, "-") == 0) return 0;
    for (; text[2 * n]; n++) {
        char pair[3] = {text[2 * n], text[2 * n + 1], 0};
        text[n] = (char)strtoul(pair, NULL, 16);
    }
    return n;
}

// One case; a copy of its exact size lets the sanitizers see a read past the end.
static void check_case(bool accept, const char *bytes, size_t len, const char *want) {
    mf_arena arena = {0};
    mf_error err = {0};
    char *text = malloc(len ? len : 1);
    memcpy(text, bytes, len);
    mf_json *value = mf_json_parse(&arena, (mf_str){text, len}, &err);
    free(text);
    if (accept != (value != NULL)) fail_msg("%.*s: %s", (int)len, bytes, value ? "accepted" : err.text);
    if (value) {
        mf_buf got = {0};
        dump(&got, value);
        assert_string_equal(got.data, want);
        check_written(value);
        free(got.data);
    } else {
        assert_true(err.code == MF_ERR_FORMAT || err.code == MF_ERR_LIMIT);
        assert_memory_equal(err.text, "line ", 5);
        assert_non_null(strstr(err.text, ", column "));
    }
    mf_arena_free(&arena);
}

static int significant_digits(const char *text) {
    int digits = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9') continue;
        zeros = *text == '0' ? zeros + 1 : 0;
        if (digits || *text != '0') digits++;
    }
    return digits - zeros > 0 ? digits - zeros : 1;
}

static void check_real(double value, int digits) {
    mf_buf text = {0};
    mf_json_writer w = {.out = &text};
    double back = 0;
    mf_json_real(&w, value);
    assert_true(mf_parse_f64((mf_str){text.data, text.len}, &back));
    assert_true(back == value);
    if (significant_digits(text.data) != digits) fail_msg("%a is written as %s, but %d digits do", value, text.data, digits);
    free(text.data);
}

static void test_against_oracle(void **state) {
    (void)state;
    FILE *file = fopen(MF_FIXTURES "/json_cases.txt", "r");
    assert_non_null(file);
    char *line = NULL;
    size_t cap = 0;
    int accepted = 0, rejected = 0, reals = 0;
    while (getline(&line, &cap, file) > 0) {
        char *save = NULL, *verdict = strtok_r(line, " \n", &save), *text = strtok_r(NULL, " \n", &save);
        if (strcmp(verdict, "real") == 0) {
            check_real(strtod(text, NULL), atoi(strtok_r(NULL, " \n", &save)));
            reals++;
        } else if (strcmp(verdict, "accept") == 0) {
            size_t len = unhex(text);
            check_case(true, text, len, strtok_r(NULL, "\n", &save));
            accepted++;
        } else if (strcmp(verdict, "reject") == 0) {
            size_t len = unhex(text);
            check_case(false, text, len, NULL);
            rejected++;
        }
    }
    free(line);
    fclose(file);
    assert_true(accepted > 200 && rejected > 500 && reals > 500);
}

static void test_deep_nesting_is_refused(void **state) {
    (void)state;
    enum {
        DEPTH = 1000000
    };
    char *text = malloc(DEPTH);
    memset(text, '[', DEPTH);
    mf_arena arena = {0};
    mf_error err;
    assert_null(mf_json_parse(&arena, (mf_str){text, DEPTH}, &err));
    assert_int_equal(err.code, MF_ERR_LIMIT);
    assert_string_equal(err.text, "line 1, column 513: nested more than 512 deep");
    mf_arena_free(&arena);
    free(text);
}

static void test_errors_name_the_place(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "line 1, column 1: the text ends too early"},
        {"[1,\n 2 3]", "line 2, column 4: expected ',' or ']'"},
        {"{\"a\":1 \"b\"}", "line 1, column 8: expected ',' or '}'"},
        {"{\"a\" 1}", "line 1, column 6: expected ':' after a member's name"},
        {"{1:2}", "line 1, column 2: expected a string"},
        {"[1,]", "line 1, column 4: expected a value"},
        {"\n\n  01", "line 3, column 4: a number with a leading zero"},
        {"[1.]", "line 1, column 4: expected a digit"},
        {"[\"a\\x\"]", "line 1, column 5: unknown escape in a string"},
        {"\"\\u12x4\"", "line 1, column 6: \\u needs four hexadecimal digits"},
        {"\"ab\\ud800\"", "line 1, column 4: a surrogate escape without its other half"},
        {"\"a\nb\"", "line 1, column 3: a control character in a string must be escaped"},
        {"[\"abc", "line 1, column 2: a string without its closing quote"},
        {"\"\xc3\xa9\xff\"", "line 1, column 4: not UTF-8"},
        {"{} {}", "line 1, column 4: something follows the value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mf_arena arena = {0};
        mf_error err = {0};
        assert_null(mf_json_parse(&arena, mf_str_of(cases[i][0]), &err));
        assert_int_equal(err.code, MF_ERR_FORMAT);
        assert_string_equal(err.text, cases[i][1]);
        mf_arena_free(&arena);
    }
    mf_arena arena = {0};
    assert_null(mf_json_parse(&arena, (mf_str){0}, NULL));
    mf_arena_free(&arena);
}

static void test_out_of_memory(void **state) {
    (void)state;
    mf_str text = MF_STR("{\"key\":[1,2,\"some text\",{\"a\":null}],\"other\":-1.5}");
    mf_arena arena = {0};
    assert_non_null(mf_json_parse(&arena, text, NULL));
    size_t whole = arena.used;
    mf_arena_free(&arena);
    for (size_t limit = 1; limit < whole; limit += 16) {
        mf_arena bounded = {.limit = limit};
        mf_error err = {0};
        assert_null(mf_json_parse(&bounded, text, &err));
        assert_int_equal(err.code, MF_ERR_MEMORY);
        mf_arena_free(&bounded);
    }
}

static void test_access(void **state) {
    (void)state;
    mf_str text = MF_STR(" {\"a\":1,\"b\":{\"c\":-7},\"a\":2.5,\"d\":[10,20],\"e\":1e400,\"\\u0000\":12345678901234567890}");
    mf_arena arena = {0};
    const mf_json *root = mf_json_parse(&arena, text, NULL);
    int64_t integer = 0;
    double real = 0;
    assert_non_null(root);
    assert_int_equal(root->offset, 1);
    assert_int_equal(root->count, 6);
    const mf_json *a = mf_json_get(root, "a");
    assert_true(mf_str_is(a->text, "2.5")); // the last of two members of one name
    assert_int_equal(a->offset, 25);
    assert_false(mf_json_i64(a, &integer));
    assert_true(mf_json_f64(a, &real) && real == 2.5);
    const mf_json *c = mf_json_get(mf_json_get(root, "b"), "c");
    assert_true(mf_json_i64(c, &integer) && integer == -7);
    assert_true(mf_json_f64(c, &real) && real == -7);
    assert_false(mf_json_f64(mf_json_get(root, "e"), &real));
    assert_false(mf_json_i64(root->child->next->next->next->next->next, &integer));
    assert_null(mf_json_get(root, "missing"));
    assert_null(mf_json_get(mf_json_get(root, "d"), "c"));
    assert_null(mf_json_get(NULL, "c"));
    assert_false(mf_json_i64(NULL, &integer) || mf_json_f64(NULL, &real) || mf_json_f64(root, &real));
    mf_arena_free(&arena);
}

static void write_sample(mf_json_writer *w) {
    mf_json_begin(w, '{');
    mf_json_key(w, "empty");
    mf_json_begin(w, '[');
    mf_json_end(w, ']');
    mf_json_key(w, "list");
    mf_json_begin(w, '[');
    mf_json_int(w, INT64_MIN);
    mf_json_real(w, 0.1);
    mf_json_real(w, NAN);
    mf_json_begin(w, '{');
    mf_json_end(w, '}');
    mf_json_bool(w, true);
    mf_json_end(w, ']');
    mf_json_key_str(w, MF_STR("k\"\n"));
    mf_json_string(w, (mf_str){"\0\x1f\x7f/\\\b\f\r\t\xff\xc2\x9b\xc3", 13});
    mf_json_key(w, "");
    mf_json_string(w, (mf_str){0});
    mf_json_end(w, '}');
}

static void test_writer(void **state) {
    (void)state;
    mf_buf text = {0};
    mf_json_writer w = {.out = &text};
    write_sample(&w);
    assert_string_equal(text.data, "{\"empty\":[],\"list\":[-9223372036854775808,0.1,null,{},true],\"k\\\"\\n\":"
                                   "\"\\u0000\\u001f\\u007f/\\\\\\b\\f\\r\\t\xef\xbf\xbd\\u009b\xef\xbf\xbd\",\"\":\"\"}");
    text.len = 0;
    w = (mf_json_writer){.out = &text, .indent = 2};
    write_sample(&w);
    assert_string_equal(text.data,
                        "{\n  \"empty\": [],\n  \"list\": [\n    -9223372036854775808,\n    0.1,\n    null,\n    {},\n"
                        "    true\n  ],\n  \"k\\\"\\n\": "
                        "\"\\u0000\\u001f\\u007f/\\\\\\b\\f\\r\\t\xef\xbf\xbd\\u009b\xef\xbf\xbd\",\n  \"\": \"\"\n}");
    free(text.data);
}

static void test_reals_in_other_locales(void **state) {
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ps_AF.UTF-8"};
    for (size_t i = 0; i < 3; i++) {
        if (!setlocale(LC_NUMERIC, locales[i])) continue;
        mf_buf text = {0};
        mf_json_writer w = {.out = &text};
        mf_json_real(&w, -1.5e-7);
        assert_string_equal(text.data, "-1.5e-07");
        free(text.data);
    }
    setlocale(LC_NUMERIC, "C");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_oracle),
        cmocka_unit_test(test_deep_nesting_is_refused),
        cmocka_unit_test(test_errors_name_the_place),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_access),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_reals_in_other_locales),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
