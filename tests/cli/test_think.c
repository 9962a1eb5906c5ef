// A model's thinking is dimmed, wherever its tags are cut; when colours are used at all.
#define _GNU_SOURCE // posix_openpt

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "cli/think.h"

#define DIM   "\033[2m"
#define PLAIN "\033[0m"

static int saved;

// Lets standard output go to fd.
static void redirect(int fd) {
    fflush(stdout);
    saved = dup(STDOUT_FILENO);
    assert_true(saved >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
}

static void restore(void) {
    dup2(saved, STDOUT_FILENO);
    close(saved);
}

// Writes a text in pieces of `size` bytes and asserts what comes out.
static void expect(bool color, const char *text, size_t size, const char *want) {
    FILE *file = tmpfile();
    assert_non_null(file);
    mf_think t;
    mf_options o = {.color = color ? "always" : "never"};
    mf_think_init(&t, &o, mf_reasoning_marks_of((mf_str){0}), false);
    mf_output out = {0};
    redirect(fileno(file));
    bool ok = true;
    for (size_t at = 0, len = strlen(text); at < len; at += size)
        ok = mf_think_write(&t, &out, (mf_str){text + at, len - at < size ? len - at : size}) && ok;
    ok = mf_think_end(&t, &out) && ok;
    mf_think_free(&t);
    restore();
    char got[256] = "";
    ssize_t n = pread(fileno(file), got, sizeof got - 1, 0);
    fclose(file);
    assert_true(ok);
    assert_int_equal(n, strlen(want));
    assert_string_equal(got, want);
}

static void dims(void **state) {
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"plain", "plain"},
        {"<think>a b</think>c", DIM "<think>a b</think>" PLAIN "c"},
        {" <think>\n</think>y<think>z</think>", DIM " <think>\n</think>" PLAIN "y<think>z</think>"},
        {"x<think>y</think>", "x<think>y</think>"},
        {"<think>cut short", DIM "<think>cut short" PLAIN},
        {"<think>a</thin", DIM "<think>a</thin" PLAIN},
        {"<think>a<</think>b", DIM "<think>a<</think>" PLAIN "b"},
        {"a < b <thinking> </think> <thin", "a < b <thinking> </think> <thin"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t size = 1; size < 12; size++) {
            expect(true, cases[i].text, size, cases[i].want);
            expect(false, cases[i].text, size, cases[i].text);
        }
}

static bool wanted(const char *color) {
    mf_options o = {.color = color};
    return mf_think_wanted(&o);
}

static void terminals(void **state) {
    (void)state;
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    bool on_terminal[6], on_file[3];
    redirect(slave);
    on_terminal[0] = wanted(NULL), on_terminal[1] = wanted("auto"), on_terminal[2] = wanted("never");
    setenv("NO_COLOR", "1", 1);
    on_terminal[3] = wanted(NULL), on_terminal[4] = wanted("always");
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    on_terminal[5] = wanted("auto");
    restore();
    FILE *file = tmpfile();
    redirect(fileno(file));
    on_file[0] = wanted("auto"), on_file[1] = wanted("on"), on_file[2] = wanted("0");
    restore();
    fclose(file);
    close(slave);
    close(master);
    assert_true(on_terminal[0] && on_terminal[1] && !on_terminal[2] && !on_terminal[3] && on_terminal[4] && !on_terminal[5]);
    assert_true(!on_file[0] && on_file[1] && !on_file[2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(dims), cmocka_unit_test(terminals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
