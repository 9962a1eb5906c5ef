// The engine on the committed templates, one a construct, against what jinja2 makes of them (tests/oracle/jinja.py), and its bounds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "text/jinja/jinja.h"

static mf_arena arena;
static const mf_json *fixture;
static uint64_t steps; // 0: as many as there are

static int read_fixture(void **state) {
    (void)state;
    static mf_buf text;
    mf_error err = {0};
    if (!mf_file_read(MF_FIXTURES "/jinja/cases.json", 16 << 20, &text, &err)) return -1;
    fixture = mf_json_parse(&arena, (mf_str){text.data, text.len}, &err);
    return fixture ? 0 : -1;
}

// Renders with the variables of a JSON object, `messages` marked. The error's text is in *err where it is refused.
static bool render(mf_str source, const mf_json *variables, mf_jinja_output *out, mf_error *err) {
    mf_jinja_var vars[64];
    size_t n = 0;
    for (const mf_json *v = variables ? variables->child : NULL; v; v = v->next) {
        assert_true(n < 64);
        vars[n++] = (mf_jinja_var){v->key, v, mf_str_is(v->key, "messages")};
    }
    *out = (mf_jinja_output){0};
    const mf_jinja_options options = {.now = 1735689600, .steps = steps}; // 2025-01-01 00:00 UTC
    mf_jinja *t = mf_jinja_new(source, err);
    bool ok = t && mf_jinja_render(t, vars, n, &options, out, err);
    mf_jinja_free(t);
    return ok;
}

static void test_cases(void **state) {
    (void)state;
    const mf_json *cases = mf_json_get(fixture, "cases"), *variables = mf_json_get(fixture, "variables");
    size_t n = 0, wrong = 0;
    for (const mf_json *c = cases->child; c; c = c->next, n++) {
        const mf_json *source = mf_json_get(c, "template"), *want = mf_json_get(c, "text");
        mf_jinja_output out;
        mf_error err = {0};
        bool ok = render(source->text, variables, &out, &err);
        mf_str got = {out.text.data ? out.text.data : "", out.text.len};
        if (ok != (want != NULL) || (ok && !mf_str_eq(got, want->text))) {
            wrong++;
            print_error("%.*s\n  want %.*s\n  got  %.*s\n", (int)source->text.len, source->text.ptr,
                        want ? (int)want->text.len : 7, want ? want->text.ptr : "refusal", ok ? (int)got.len : 400,
                        ok ? got.ptr : err.text);
        }
        mf_jinja_output_free(&out);
    }
    assert_true(n > 100);
    assert_int_equal(wrong, 0);
}

// ---- Refusals say where and what

static const mf_json *json(const char *text) {
    mf_error err = {0};
    const mf_json *value = mf_json_parse(&arena, mf_str_of(text), &err);
    if (!value) fail_msg("%s", err.text);
    return value;
}

static void refused(const char *source, const char *variables, const char *part) {
    mf_jinja_output out;
    mf_error err = {0};
    assert_false(render(mf_str_of(source), json(variables), &out, &err));
    if (!strstr(err.text, part)) fail_msg("'%s' lacks '%s'", err.text, part);
    mf_jinja_output_free(&out);
}

static void test_refusals_at_load(void **state) {
    (void)state;
    refused("a\n{% include 'x' %}", "{}", "line 2, column 4: the tag 'include' is not supported");
    refused("{% block b %}{% endblock %}", "{}", "the tag 'block' is not supported");
    refused("{% extends 'x' %}", "{}", "the tag 'extends' is not supported");
    refused("{% import 'x' as y %}", "{}", "the tag 'import' is not supported");
    refused("{% trans %}a{% endtrans %}", "{}", "the tag 'trans' is not supported");
    refused("{% autoescape true %}{% endautoescape %}", "{}", "the tag 'autoescape' is not supported");
    refused("{% frob %}", "{}", "line 1, column 4: unknown tag 'frob'");
    refused("{{ x|frob }}", "{}", "line 1, column 6: there is no filter 'frob'");
    refused("{{ x is frob }}", "{}", "there is no test 'frob'");
    refused("{{ x|pprint }}", "{}", "the filter 'pprint' is not supported");
    refused("{{ lipsum() }}", "{}", "'lipsum'");
    refused("{{ self }}", "{}", "'self'");
    refused("{{ '\\ud800' }}", "{}", "surrogate");
    refused("{{ '\\N{DASH}' }}", "{}", "\\N");
    refused("{{ \xC3\xA9 }}", "{}", "outside ASCII");
    refused("\xff", "{}", "not UTF-8 at byte 0");
    refused("{% for x in y %}", "{}", "'endfor' is missing");
    refused("{{ a[0:1, 2] }}", "{}", "a slice beside another index");
}

static void unloadable(const char *source, const char *part) {
    mf_error err = {0};
    mf_jinja *t = mf_jinja_new(mf_str_of(source), &err);
    if (t) fail_msg("loaded: %s", source);
    if (!strstr(err.text, part)) fail_msg("'%s' lacks '%s'", err.text, part);
}

// Loads; what may be missing later is noted.
static void loads(const char *source, const char *missing) {
    mf_error err = {0};
    mf_jinja *t = mf_jinja_new(mf_str_of(source), &err);
    if (!t) fail_msg("%s: %s", source, err.text);
    const char *noted = mf_jinja_missing(t);
    assert_string_equal(noted ? noted : "", missing);
    mf_jinja_free(t);
}

// What is called and not there is found when the template is loaded, wherever it stands.
static void test_names_at_load(void **state) {
    (void)state;
    unloadable("a\n{% if x %}{{ x.encode() }}{% endif %}", "line 2, column 16: the method str.encode() is not supported");
    unloadable("{{ x.to_bytes(1) }}", "the method int.to_bytes() is not supported");
    unloadable("{% if x %}{{ x.frob(1) }}{% endif %}", "line 1, column 16: there is no method 'frob'");
    unloadable("{% macro m(x) %}{{ x.y['frob']() }}{% endmacro %}", "there is no method 'frob'");
    unloadable("{% if x %}{{ frob(x) }}{% endif %}", "line 1, column 14: there is no function 'frob'");
    unloadable("{% call frob() %}{% endcall %}", "there is no function 'frob'");
    unloadable("{{ x|join(sep=',') }}", "the filter 'join' takes no argument 'sep'");
    unloadable("{{ x is divisibleby(by=3) }}", "the test 'divisibleby' takes no argument 'by'");
    unloadable("{{ x.split(separator=',') }}", "line 1, column 12: the method 'split' takes no argument 'separator'");
    unloadable("{{ x.strip(chars='a') }}",
               "the method 'strip' takes no argument 'chars'"); // it has no name in Python either
    unloadable("{% if x %}{{ raise_exception(msg='no') }}{% endif %}",
               "the function 'raise_exception' takes no argument 'msg'");
    unloadable("{{ x|map('frob')|list }}", "there is no filter 'frob'");
    unloadable("{{ x|map('pprint')|list }}", "the filter 'pprint' is not supported");
    unloadable("{{ x|rejectattr('a', 'frob')|list }}", "there is no test 'frob'");
    unloadable("{% if x %}{{ x|wordwrap }}{% endif %}", "the filter 'wordwrap' is not supported");
    loads("{% if x %}\n{{ x|frob }}{{ x is grob }}{% endif %}", "line 2, column 6: there is no filter 'frob'");
    loads("{{ x|select('frob') if x }}", "line 1, column 13: there is no test 'frob'");
    loads("{% if frob is defined %}{{ frob(frob) }}{% endif %}", "");
    loads("{% macro frob() %}{{ caller() ~ varargs ~ kwargs }}{% endmacro %}{{ frob() }}", "");
    loads("{% for frob in [range] %}{{ frob(1) ~ loop.cycle(1) ~ loop.changed(1) }}{% endfor %}", "");
    loads("{% set n = namespace(frob=range) %}{{ n.frob(1) }}", "");
    loads("{% set n = namespace() %}{% set n.frob = range %}{{ n.frob(1) }}", "");
    loads("{{ {'frob': range}.frob(1) ~ {'frob': range}['frob'](1) }}", "");
    loads("{% if x %}{{ x.append(1) ~ x.pop() ~ x.__class__() }}{% endif %}",
          ""); // HF's sandbox refuses those, when they are reached
    mf_buf text = {0};
    mf_buf_text(&text, "{{ ");
    for (int i = 0; i < 90; i++) mf_buf_text(&text, "range(");
    for (int i = 0; i < 90; i++) mf_buf_text(&text, ")");
    mf_buf_text(&text, " }}");
    loads(text.data, "");
    free(text.data);
}

static void test_refusals_at_run_time(void **state) {
    (void)state;
    refused("a\n\n{{ 1 + x.y }}", "{}", "template line 3: `x.y`: 'x' is undefined");
    refused("{{ messages[0].name.first }}", "{\"messages\": [{}]}", "'dict object' has no attribute 'name'");
    refused("{{ raise_exception('no ' ~ 'way') }}", "{}", "template line 1: `raise_exception('no ' ~ 'way')`: no way");
    refused("{{ 'a'.encode() }}", "{}", "the method str.encode() is not supported");
    refused("{{ [1]|map('string') }}", "{}", "no text but its address");
    refused("{% set x = 1 %}{% set x.y = 2 %}", "{}", "non-namespace");
    refused("{% set n = namespace() %}{% set n._y = 2 %}", "{}", "underscore");
    refused("{{ (-8) ** 0.5 }}", "{}", "complex");
}

// Widths and digits at the ends of an integer.
static void test_extremes(void **state) {
    (void)state;
    static const char *const fine[] = {
        "{{ 'a'.center(-9223372036854775808) ~ 'a'.ljust(-9999999999999999999) ~ 'a'.zfill(-9223372036854775808) }}",
        "{{ 'a'[-9223372036854775808:9223372036854775807:9223372036854775807] ~ [1].index(1, -9223372036854775808) }}",
        "{{ 7|round(-9223372036854775808) ~ 7.5|round(-9223372036854775808) ~ 'a\tb'.expandtabs(-9223372036854775808) }}",
        "{{ 'ab'.find('b', -9223372036854775808, 9223372036854775807) ~ 'a'|indent(-9223372036854775808) }}"};
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++) {
        mf_jinja_output out;
        mf_error err = {0};
        if (!render(mf_str_of(fine[i]), NULL, &out, &err)) fail_msg("%s: %s", fine[i], err.text);
        mf_jinja_output_free(&out);
    }
    refused("{{ 'a\tb\tc'.expandtabs(9223372036854775807) }}", "{}", "text of more than 64 MB");
    refused("{{ 'a'.center(9223372036854775807) }}", "{}", "text of more than 64 MB");
    refused("{{ '%*d' % (-9223372036854775808, 1) }}", "{}", "too big");
}

static void test_bounds(void **state) {
    (void)state;
    refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{}", "deep");
    refused("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "{}", "steps");
    refused("{{ 'x' * 100000000 }}", "{}", "text of more than 64 MB");
    refused("{{ range(1000000) }}", "{}", "MAX_RANGE");
    refused("{{ 10 ** 5000 }}", "{}", "4300 digits");
    refused("{% set n = namespace(x='aaaaaaaaaa') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}", "{}",
            "MB");
    refused("{{ [[1] * 99999] * 99999 * 99999 }}", "{}", "a list of more than");
    static const char *const deep[] = {"[ns.t]", "ns.t|map('string')", "(ns.t,)", "{'a': ns.t}"};
    static const char *const used[] = {"ns.t|string", "ns.t|list", "{1: 2}[ns.t]", "ns.t|tojson"};
    for (size_t i = 0; i < sizeof deep / sizeof deep[0]; i++) {
        char source[200];
        snprintf(source, sizeof source,
                 "{%% set ns = namespace(t=[]) %%}{%% for i in range(50000) %%}{%% set ns.t = %s %%}{%% endfor %%}{{ %s }}",
                 deep[i], used[i]);
        refused(source, "{}", "deep");
    }
    mf_buf text = {0};
    for (int i = 0; i < 100000; i++) mf_buf_text(&text, "{{(");
    refused(text.data, "{}", "nested more than");
    text.len = 0;
    mf_buf_text(&text, "{{ 1");
    for (int i = 0; i < 50000; i++) mf_buf_text(&text, "+1");
    mf_buf_text(&text, " }}");
    refused(text.data, "{}", "operations in a row");
    text.len = 0;
    for (int i = 0; i < 700000; i++) mf_buf_text(&text, "xx");
    refused(text.data, "{}", "at most");
    free(text.data);
}

// The output with [ and ] around what came from messages.
static void marked(const char *source, const char *variables, const char *want) {
    mf_jinja_output out;
    mf_error err = {0};
    if (!render(mf_str_of(source), json(variables), &out, &err)) fail_msg("%s: %s", source, err.text);
    mf_buf text = {0};
    size_t at = 0;
    for (size_t i = 0; i < out.marks.len; i++) {
        mf_buf_add(&text, out.text.data + at, out.marks.data[i].from - at);
        mf_buf_char(&text, '[');
        mf_buf_add(&text, out.text.data + out.marks.data[i].from, out.marks.data[i].to - out.marks.data[i].from);
        mf_buf_char(&text, ']');
        at = out.marks.data[i].to;
    }
    mf_buf_add(&text, out.text.data + at, out.text.len - at);
    assert_string_equal(text.data ? text.data : "", want);
    free(text.data);
    mf_jinja_output_free(&out);
}

// What is done counts, not what is visited: each of these would go on for hours.
static void test_work(void **state) {
    (void)state;
    static const char m[] = "{\"messages\": [\"ab\"]}";
    static const char twice[] = "{% set n = namespace(a=(1,), b=(1,)) %}{% for i in range(40) %}{% set n.a = (n.a, n.a) %}"
                                "{% set n.b = (n.b, n.b) %}{% endfor %}";
    static const char *const shared[] = {"{1: 2}[n.a]", "{n.a: 1}",          "n.a == n.b",   "n.a < n.b", "n.a|string",
                                         "n.a|tojson",  "[n.a]|unique|list", "n.a in [n.b]", "[][n.a].x"};
    steps = 20000000; // a tenth of all, for the test's time
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        char source[400];
        snprintf(source, sizeof source, "%s{{ %s }}", twice, shared[i]);
        refused(source, m, "template line 1: `");
    }
    static const char *const setups[][2] = {
        {"[1] * 1000000", "2 in x"},
        {"[10 ** 4000] * 1000000", "10 ** 4000 + 1 in x"},
        {"[10 ** 300] * 1000000", "1e300 in x"},
        {"[1] * 1000000", "x.count(2)"},
        {"'x' * 10000000", "(x ~ '1').startswith((x ~ '2',) * 1000000)"},
        {"['x' * 1000000 ~ '1', 'x' * 1000000 ~ '2']", "x[0] == x[1] or x[0] < x[1]"},
        {"'x' * 10000000", "'xxy' in x or x.rfind('yx') == 0 or x.count('y')"},
        {"'Ã¤' * 10000000", "x[9999999] == 1 or x.startswith('b', 9999999)"},
        {"'x' * 30000", "x.strip('y' * 30000 ~ 'x')"},
        {"'x' * 1000000", "x.isalpha() and x.isupper() and x|wordcount == 0"},
        {"[1.1e300] * 100", "x|map('round', 300)|join"},
        {"'0' * 1000000", "x|int(0, 16) or x|float == 1"},
        {"'{b}' * 1000", "x.format(a=1, b=2)"},
        {"10 ** 2000", "x * x == 1 or x // 7 == 1"},
        {"'%c' * 2048", "strftime_now(x)"},
        {"(messages[0][0] ~ 'x') * 1000000", "x[5:6] == 'y' or x[::-1] == 'y'"},
    };
    for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
        char source[400];
        snprintf(source, sizeof source,
                 "{%% set x = %s %%}\n{%% for i in range(100000) %%}{%% for k in range(100000) %%}{%% if %s %%}{%% endif %%}"
                 "{%% endfor %%}{%% endfor %%}",
                 setups[i][0], setups[i][1]);
        refused(source, m, "`: the rendering "); // takes more than so many steps, or needs more than so many megabytes
    }
    steps = 0;
    marked("{% set x = (messages[0][0] ~ 'x') * 1000000 %}{% for c in x %}{% endfor %}{{ x.split('x')|length }}", m,
           "1000001");
    refused("{% set x = (messages[0][0] ~ 'x') * 1100000 %}", m, "pieces of a conversation");
    refused("{% for i in range(99999) %}{% for k in range(99999) %}{% endfor %}{% endfor %}", m,
            "takes more than 200000000 steps");
    mf_buf text = {0};
    mf_buf_text(&text, "{{ f(");
    for (int i = 0; i < 90000; i++) mf_buf_printf(&text, "a%d=1,", i);
    mf_buf_text(&text, ") }}");
    refused(text.data, "{}", "more than 1000 keyword arguments");
    text.len = 0;
    mf_buf_text(&text, "{% macro f(");
    for (int i = 0; i < 90000; i++) mf_buf_printf(&text, "%sa%d", i ? "," : "", i);
    mf_buf_text(&text, ") %}{% endmacro %}");
    refused(text.data, "{}", "more than 1000 parameters");
    free(text.data);
}

static bool stop_at_third(void *arg) { return ++*(int *)arg == 3; }

static void test_stop(void **state) {
    (void)state;
    static const char source[] = "{% for i in range(99999) %}{% for k in range(99) %}{% endfor %}{% endfor %}";
    mf_error err = {0};
    mf_jinja *t = mf_jinja_new(MF_STR(source), &err);
    assert_non_null(t);
    int asked = 0;
    const mf_jinja_options options = {.now = -1, .stop = stop_at_third, .stop_arg = &asked};
    mf_jinja_output out;
    assert_false(mf_jinja_render(t, NULL, 0, &options, &out, &err));
    assert_int_equal(asked, 3);
    assert_int_equal(err.code, MF_ERR_CANCELLED);
    assert_non_null(strstr(err.text, "stopped"));
    mf_jinja_output_free(&out);
    mf_jinja_free(t);
}

// ---- Marks

static void test_marks(void **state) {
    (void)state;
    static const char m[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \" a<b> \", \"k\": [1, \"q\"]}], \"x\": \"y\"}";
    marked("{{ messages[0].content }}{{ x }}", m, "[ a<b> ]y");
    marked("<{{ messages[0].role }}>{{ messages[0].content|trim }}.", m, "<user>[a<b>].");
    marked("{{ ('(' + messages[0].content + ')')[1:4] }}", m, "[ a<]");
    marked("{{ ('(' ~ messages[0].content ~ ')')|upper|replace('A', 'zz') }}", m, "([ ]zz[<B> ])");
    marked("{{ messages[0].content.split('<')|join('|') }}", m, "[ a]|[b> ]");
    marked("{{ '%s-%s' % (messages[0].content, 1) }}{{ '{:>8}'.format(messages[0].content) }}", m, "[ a<b> ]-1  [ a<b> ]");
    marked("{{ messages[0]|tojson }}", m, "{\"[role]\": \"user\", \"[content]\": \"[ a<b> ]\", \"[k]\": [1, \"[q]\"]}");
    marked("{{ messages[0].k }}{{ messages[0].content|reverse }}", m, "[1, '[q]'][ >b<a ]");
    marked("{% set s %}<{{ messages[0].content }}>{% endset %}{{ s|trim }}{{ s|e }}", m, "<[ a<b> ]>&lt;[ a&lt;b&gt; ]&gt;");
    marked("{% macro f(t) %}:{{ t }}:{% endmacro %}{{ f(messages[0].content) }}{% filter upper %}{{ messages[0].k[1] }}{% "
           "endfilter %}",
           m, ":[ a<b> ]:[Q]");
    marked("{{ messages[0].role }}", "{\"messages\": [{\"role\": \"us|er\"}]}", "[us|er]");
    marked("{{ (messages[0].content ~ '\\nb')|indent(2, true) }}", m, "  [ a<b> ]\n  b");
    marked("{% for c in messages[0].content %}{{ c }}.{% endfor %}", m, "[ ].[a].[<].[b].[>].[ ].");
    // What a character of a person becomes is marked as well: fill characters, white space, what a format says.
    static const char f[] = "{\"messages\": [{\"c\": \"<\", \"t\": \"a\\tb\\nc\", \"p\": \"%%%5d\", \"n\": 60}]}";
    marked("{{ 'x'.center(3, messages[0].c) ~ 'x'.ljust(2, messages[0].c) ~ 'x'.rjust(2, messages[0].c) }}", f,
           "[<]x[<]x[<<]x");
    marked("{{ messages[0].t.expandtabs(4) }}|{{ messages[0].t|indent(1) }}|{{ messages[0].t|striptags }}", f,
           "[a   b\nc]|[a\tb\n] [c]|[a b c]");
    marked("{{ messages[0].p % 7 }}|{{ '%c' % messages[0].n }}|{{ strftime_now('%Y' ~ messages[0].c) }}", f,
           "[%    7]|[<]|[2025<]");
    marked("{{ ('{:' ~ messages[0].c ~ '>3}|{}').format(1, 2) }}", f, "[<<1]|2");
    marked("{{ 'x'.center(3, messages[0].c)|e }}", f, "[&lt;]x[&lt;]");
    marked("{{ messages[0].content.title() ~ messages[0].content|title ~ messages[0].content.center(10, '*') }}", m,
           "[ A<B>  A<B> ]**[ a<b> ]**");
}

// ---- Speed is printed, not asserted

static void test_long_conversation(void **state) {
    (void)state;
    static const char source[] =
        "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}{{ "
        "'<|im_start|>system\n<|im_end|>\n' }}"
        "{% endif %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";
    mf_buf text = {0};
    mf_buf_text(&text, "[");
    for (int i = 0; i < 100; i++)
        mf_buf_printf(&text, "%s{\"role\": \"%s\", \"content\": \"Some words of a turn, number %d, and a few more.\"}",
                      i ? "," : "", i % 2 ? "assistant" : "user", i);
    mf_buf_text(&text, "]");
    mf_error err = {0};
    mf_jinja *t = mf_jinja_new(MF_STR(source), &err);
    assert_non_null(t);
    const mf_jinja_var var = {MF_STR("messages"), json(text.data), true};
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        mf_jinja_output out;
        uint64_t start = mf_clock_ns();
        assert_true(mf_jinja_render(t, &var, 1, NULL, &out, &err));
        uint64_t ns = mf_clock_ns() - start;
        if (ns < best) best = ns;
        assert_int_equal(out.marks.len, 100);
        mf_jinja_output_free(&out);
    }
    print_message("100 messages: %.3f ms\n", (double)best * 1e-6);
    mf_jinja_free(t);
    free(text.data);
}

int main(void) {
    setenv("TZ", "UTC", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),         cmocka_unit_test(test_refusals_at_load),
        cmocka_unit_test(test_names_at_load), cmocka_unit_test(test_refusals_at_run_time),
        cmocka_unit_test(test_extremes),      cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_work),          cmocka_unit_test(test_stop),
        cmocka_unit_test(test_marks),         cmocka_unit_test(test_long_conversation),
    };
    return cmocka_run_group_tests(tests, read_fixture, NULL);
}
