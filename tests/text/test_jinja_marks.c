// Marks over everything that a template can do with a text: whatever a conversation's bytes become stays marked. Each template is
// rendered with two conversations that differ in their characters alone, not in their lengths or their order: what the two
// renderings have outside the marks must be the same bytes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "text/jinja/call.h"
#include "text/jinja/jinja.h"

static mf_arena arena;
static const mf_json *talks[2];
static size_t n_rendered, n_wrong;

// Characters of private use, a letter beyond ASCII, and what filters look for: tags, tabs, line ends, format specifiers.
static const char talk_text[] =
    "{\"c\": \"%1$s\", \"t\": \"a%1$s \\t%2$s<b>%3$s &\\n%1$s%2$s\\r\\n%3$s.\", \"p\": \"%%-5s%%%%%%(%1$s)s%1$s%%05d\","
    " \"f\": \"{0:%1$s>5}{{%2$s}}{a!r:%3$s^9}\", \"w\": \"%4$s\", \"l\": [\"%2$s\", [\"%1$s\", 7]], \"d\": {\"%1$s\": "
    "\"%2$s\"}}";

static int make_talks(void **state) {
    (void)state;
    static const char *const characters[2][4] = {{"\xEE\x80\x81", "\xEE\x80\x82", "\xEE\x80\x83", "\xC3\xA4"},
                                                 {"\xEE\x84\x81", "\xEE\x84\x82", "\xEE\x84\x83", "\xC3\xB6"}};
    mf_error err = {0};
    for (int i = 0; i < 2; i++) {
        char text[1000];
        const char *const *c = characters[i];
        snprintf(text, sizeof text, talk_text, c[0], c[1], c[2], c[3]); // NOLINT(clang-diagnostic-format-nonliteral)
        talks[i] = mf_json_parse(&arena, mf_str_of(text), &err);
        if (!talks[i]) return print_error("%s\n", err.text), -1;
    }
    return 0;
}

// The output with every marked piece as one '#'; NULL: refused.
static char *unmarked(const mf_jinja *t, const mf_json *talk, mf_error *err) {
    const mf_jinja_var var = {MF_STR("m"), talk, true};
    const mf_jinja_options options = {.now = 1735689600};
    mf_jinja_output out;
    mf_buf text = {0};
    size_t at = 0;
    bool ok = mf_jinja_render(t, &var, 1, &options, &out, err);
    mf_buf_add(&text, "", 0);
    for (size_t i = 0; ok && i < out.marks.len; i++) {
        mf_buf_add(&text, out.text.data + at, out.marks.data[i].from - at);
        mf_buf_char(&text, '#');
        at = out.marks.data[i].to;
    }
    if (ok && out.text.len > at) mf_buf_add(&text, out.text.data + at, out.text.len - at);
    mf_buf_char(&text, '.');
    mf_jinja_output_free(&out);
    if (ok) return text.data;
    free(text.data);
    return NULL;
}

static void check(const char *source) {
    mf_error err = {0};
    mf_jinja *t = mf_jinja_new(mf_str_of(source), &err);
    if (!t) return; // arguments that the function does not take
    char *a = unmarked(t, talks[0], &err), *b = unmarked(t, talks[1], &err);
    n_rendered += a && b;
    if (!a != !b || (a && strcmp(a, b) != 0)) {
        n_wrong++;
        print_error("%s\n  %s\n  %s\n", source, a ? a : "refused", b ? b : "refused");
    }
    free(a);
    free(b);
    mf_jinja_free(t);
}

static const char *const values[] = {"m.c", "m.t", "m.w", "m.p", "m.f", "m.l", "m.d", "7", "'x'", "'%s{}'"};
enum {
    N_VALUES = sizeof values / sizeof values[0]
};

// A call with up to three arguments, of all values in the first two places. `form` has a %s for the value and one for the call.
static void check_calls(const char *form, const char *name) {
    static const char *const forms[] = {"%s", "%s(%s)", "%s(%s, %s)", "%s(%s, %s, m.c)"};
    static const size_t counts[] = {1, N_VALUES, N_VALUES * N_VALUES, N_VALUES * N_VALUES};
    for (size_t n = 0; n < sizeof forms / sizeof forms[0]; n++)
        for (size_t i = 0; i < N_VALUES * counts[n]; i++) {
            char call[200], source[400];
            const char *a = values[i / N_VALUES % N_VALUES], *b = values[i / N_VALUES / N_VALUES % N_VALUES];
            snprintf(call, sizeof call, forms[n], name, a, b);                 // NOLINT(clang-diagnostic-format-nonliteral)
            snprintf(source, sizeof source, form, values[i % N_VALUES], call); // NOLINT(clang-diagnostic-format-nonliteral)
            check(source);
        }
}

static void test_filters(void **state) {
    (void)state;
    const mf_jfunction *const tables[] = {mf_jtext_filters, mf_jsequence_filters, mf_jvalue_filters, mf_jtests};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (const mf_jfunction *f = tables[i]; f->name; f++) {
            bool test = tables[i] == mf_jtests;
            if (!f->run || (f->name[0] < 'a' && test)) continue; // a test's operator is tried below
            check_calls(test ? "{{ %s is %s }}" : "{{ %s|%s }}", f->name);
            if (!test) check_calls("{{ (%s|%s)|list|tojson }}", f->name);
        }
    assert_int_equal(n_wrong, 0);
    assert_true(n_rendered > 10000);
}

static void test_methods(void **state) {
    (void)state;
    size_t before = n_rendered;
    for (int type = 0; type <= MF_J_JOINER; type++)
        for (const mf_jfunction *f = mf_jmethods_of((mf_jtype)type); f && f->name; f++) {
            char name[40];
            if (!f->run) continue;
            snprintf(name, sizeof name, "%s()", f->name);
            for (size_t v = 0; v < N_VALUES; v++) {
                char source[100];
                snprintf(source, sizeof source, "{{ (%s).%s }}", values[v], name);
                check(source);
            }
            check_calls("{{ (%s).%s }}", f->name);
            check_calls("{{ (%s ~ '%%').%s|string }}", f->name);
        }
    assert_int_equal(n_wrong, 0);
    assert_true(n_rendered - before > 5000);
}

static void test_operators(void **state) {
    (void)state;
    static const char *const forms[] = {
        "{{ %s + %s }}",
        "{{ %s ~ %s }}",
        "{{ %s * %s }}",
        "{{ %s %% %s }}",
        "{{ %s == %s }}",
        "{{ %s < %s }}",
        "{{ %s in %s }}",
        "{{ (%s)[%s] }}",
        "{{ (%s)[:%s] }}",
        "{{ %s or %s }}",
        "{{ [%s, %s] }}",
        "{{ {%s: %s} }}",
        "{{ dict(a=%s)|tojson(indent=%s) }}",
        "{{ cycler(%s, %s).next() }}",
        "{{ joiner(%s)() ~ joiner(%s)() }}",
        "{{ namespace(a=%s, b=%s) }}",
        "{{ strftime_now(%s ~ '%%Y' ~ %s) }}",
        "{%% macro f(a, b) %%}{{ a }}-{{ varargs }}{{ kwargs }}{%% endmacro %%}{{ f(%s, 1, %s, c=m.c) }}",
        "{%% for a in %s recursive %%}{{ a }}{{ loop.index }}{{ loop.cycle(a, %s) }}{%% endfor %%}",
        "{%% set x %%}-{{ %s }}-{%% endset %%}{{ x|upper }}{%% filter replace('-', %s) %%}-{{ x }}{%% endfilter %%}",
        "{{ '{:*^9}|{!r:>4}'.format(%s, %s) }}",
        "{{ '{:{}}'.format(%s, %s ~ '^9') }}",
        "{{ '%%-9s|%%r|%%c' %% (%s, %s, m.c) }}",
        "{{ ('{:' ~ %s ~ '>9}' ~ %s).format('ab', 3, a=1) }}",
        "{{ ('%%' ~ %s ~ 'd') %% 3 ~ ('%%05.2f%%%%' ~ %s) %% 3 }}",
        "{{ {%s: 1}|dictsort ~ ({%s: 1}|items|list) }}"};
    size_t before = n_rendered;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        for (size_t k = 0; k < N_VALUES * N_VALUES; k++) {
            char source[400];
            // NOLINTNEXTLINE(clang-diagnostic-format-nonliteral)
            snprintf(source, sizeof source, forms[i], values[k % N_VALUES], values[k / N_VALUES]);
            check(source);
        }
    assert_int_equal(n_wrong, 0);
    assert_true(n_rendered - before > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_operators),
    };
    return cmocka_run_group_tests(tests, make_talks, NULL);
}
