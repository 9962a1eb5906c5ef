// Templates and conversations as deep as the bounds allow, on the small stacks that threads have with musl.
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/chat_template.h"

#if !defined(__has_feature)
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
    __has_feature(thread_sanitizer) || !defined(__OPTIMIZE__)
#define LARGE_FRAMES 1
#else
#define LARGE_FRAMES 0
#endif

enum {
    STACK = 8 << 20,                                  // so that what goes beyond a small one is seen and harms nothing
    SMALL = LARGE_FRAMES ? 4 << 20 : (128 - 8) << 10, // musl's threads have 128 kB, and whoever calls needs some
};

typedef struct job {
    mf_str source, messages;
    mf_error err;
} job;

static void *work(void *arg) {
    job *j = arg;
    mf_arena arena = {0};
    mf_chat_prompt prompt = {0};
    mf_chat_request request = {.rules = true, .messages = mf_json_parse(&arena, j->messages, &j->err)};
    mf_chat_template *t = request.messages ? mf_chat_template_new(j->source, &j->err) : NULL;
    if (t) mf_chat_template_render(t, &request, &prompt, &j->err);
    mf_chat_prompt_free(&prompt);
    mf_chat_template_free(t);
    mf_arena_free(&arena);
    return NULL;
}

static size_t most_used;

// Runs on a stack of its own and checks how much of it was used.
static void run(job *j) {
    pthread_attr_t attr;
    pthread_t thread;
    unsigned char *stack = NULL;
    assert_int_equal(posix_memalign((void **)&stack, 4096, STACK), 0);
    memset(stack, 0xA5, STACK);
    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstack(&attr, stack, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attr, work, j), 0);
    pthread_join(thread, NULL);
    size_t untouched = 0;
    while (untouched < STACK && stack[untouched] == 0xA5) untouched++;
    free(stack);
    size_t used = STACK - untouched;
    if (used > most_used) most_used = used;
    if (used > SMALL)
        fail_msg("%zu bytes of stack: %.*s", used, j->source.len < 200 ? (int)j->source.len : 200, j->source.ptr);
}

static void add_times(mf_buf *out, const char *text, int n) {
    for (int i = 0; i < n; i++) mf_buf_text(out, text);
}

#define TEN(x) x x x x x x x x x x
#define SUM    "{{ 1" TEN(TEN(" + 1")) " }}" // an expression that leaves room for blocks around it

// What stands n times before, in the middle, and n times behind.
static const struct {
    const char *head, *before, *middle, *behind, *tail;
} nested[] = {
    {"{{ ", "(", "1", ")", " }}"},
    {"{{ ", "[", "1", "]", " }}"},
    {"{{ ", "{1:", "1", "}", " }}"},
    {"{{ ", "[1][", "0", "]", " }}"},
    {"{{ ", "dict(", "", ")", " }}"},
    {"{{ ", "dict(a=", "1", ")", " }}"},
    {"{{ ", "1|default(", "1", ")", " }}"},
    {"{{ ", "1 is eq(", "1", ")", " }}"},
    {"{{ ", "1 if 0 else ", "1", "", " }}"},
    {"{{ ", "not ", "1", "", " }}"},
    {"{{ ", "-", "1", "", " }}"},
    {"{{ ", "'a'[:", "1", "]", " }}"},
    {"{% set ", "(", "a", ",)", " = 1 %}"},
    {"", "{% if 1 %}", SUM, "{% endif %}", ""},
    {"", "{% if 0 %}{% elif 1 %}", SUM, "{% endif %}", ""},
    {"", "{% for a in [1] if a %}", SUM, "{% endfor %}", ""},
    {"", "{% for a in [] %}{% else %}", SUM, "{% endfor %}", ""},
    {"", "{% for a in [1] recursive %}", SUM, "{% endfor %}", ""},
    {"", "{% set a %}", SUM, "{% endset %}", ""},
    {"", "{% with a = 1 %}", SUM, "{% endwith %}", ""},
    {"", "{% filter upper %}", SUM, "{% endfilter %}", ""},
    {"", "{% macro f() %}", SUM, "{% endmacro %}{{ f() }}", ""},
    {"{% macro f() %}{{ caller() }}{% endmacro %}", "{% call f() %}", SUM, "{% endcall %}", ""},
    {"", "{% generation %}", SUM, "{% endgeneration %}", ""},
    {"{{ 1", " + 1", "", "", " }}"},
    {"{{ 1", " and 1", "", "", " }}"},
    {"{{ {}", ".items", "", "", " }}"},
    {"{{ 1", "|string", "", "", " }}"},
    {"{{ dict", "()", "", "", " }}"},
    {"{{ 1", " if 1", "", "", " }}"},
};

// Whether the parser takes it n deep.
static bool run_nested(size_t i, int n) {
    mf_buf text = {0};
    mf_buf_text(&text, nested[i].head);
    add_times(&text, nested[i].before, n);
    mf_buf_text(&text, nested[i].middle);
    add_times(&text, nested[i].behind, n);
    mf_buf_text(&text, nested[i].tail);
    job j = {.source = {text.data, text.len}, .messages = MF_STR("[]")};
    run(&j);
    free(text.data);
    return !strstr(j.err.text, "line 1, column");
}

static void test_sources(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof nested / sizeof nested[0]; i++) {
        int low = 1, high = 4096; // taken, refused
        assert_true(run_nested(i, low));
        assert_false(run_nested(i, high));
        while (high - low > 1) {
            int n = (low + high) / 2;
            *(run_nested(i, n) ? &low : &high) = n;
        }
    }
    print_message("%zu bytes of stack\n", most_used);
}

static void deep(const char *source) {
    job j = {.source = mf_str_of(source), .messages = MF_STR("[]")};
    run(&j);
    if (!strstr(j.err.text, "deep")) fail_msg("%s: %s", source, j.err.text);
}

static void test_calls(void **state) {
    (void)state;
    static const char *const bodies[] = {
        "{{ m() }}",
        "{% if true %}{{ m(b=1)|string }}{% endif %}",
        "{{ '%s'|format(m())|replace('a', m())|string }}",
        "{% call m() %}{{ caller() }}{% endcall %}",
        "{% for a in [1] if m() %}{% endfor %}",
        "{% with a = m() %}{% endwith %}",
        "{% set a %}{% filter upper %}{{ m() }}{% endfilter %}{% endset %}",
        "{{ [1, 2]|map('string')|select('eq', m())|list }}",
        "{{ {'a': [m()]}['a'][0] }}",
        "{{ 1 if 1 and not (m() == 1 or m() < 2) else 2 }}",
        "{{ '%.400f' % 1e300 ~ '{:,.300f}'.format(1e300) ~ [1e300]|map('round', 300)|list ~ strftime_now('%c') }}{{ m() }}"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char source[400];
        snprintf(source, sizeof source, "{%% macro m(a=0, b=0) %%}%s{%% endmacro %%}{{ m() }}", bodies[i]);
        deep(source);
    }
    deep("{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}");
    deep("{% macro m(a=m()) %}{% endmacro %}{{ m() }}");
    print_message("%zu bytes of stack\n", most_used);
}

static void test_values(void **state) {
    (void)state;
    static const char *const grown[] = {
        "[n.t]",      "(n.t,)",       "{'a': n.t}",      "{'a': n.t}.items()", "n.t|map('string')", "n.t|select('eq', 1)",
        "n.t|unique", "n.t|batch(1)", "{'a': n.t}|items"};
    static const char *const uses[] = {
        "n.t|string",   "n.t|list",      "{1: 2}[n.t]",        "{n.t: 1}",  "n.t|tojson(indent=1)",
        "n.t == n.u",   "n.t < n.u",     "'{!r}'.format(n.t)", "n.t|first", "[n.t]|unique|list",
        "n.t in [n.u]", "n.t|join(n.u)", "[][n.t].x"};
    for (size_t i = 0; i < sizeof grown / sizeof grown[0]; i++)
        for (size_t k = 0; k < sizeof uses / sizeof uses[0]; k++) {
            char source[400];
            snprintf(
                source, sizeof source,
                "{%% set n = namespace(t=[1], u=[1]) %%}{%% for i in range(2000) %%}{%% set n.t = %s %%}{%% set n.u = %s "
                "%%}{%% endfor %%}{{ %s }}",
                grown[i], grown[i], uses[k]);
            job j = {.source = mf_str_of(source), .messages = MF_STR("[]")};
            run(&j);
        }
    mf_buf text = {0};
    mf_buf_text(&text, "[{\"a\":");
    add_times(&text, "[", 505);
    add_times(&text, "]", 505);
    mf_buf_text(&text, "}]");
    job j = {.source = MF_STR("{{ messages|tojson }}"), .messages = {text.data, text.len}};
    run(&j);
    assert_non_null(strstr(j.err.text, "deep"));
    free(text.data);
    print_message("%zu bytes of stack\n", most_used);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
