#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int saved_stderr;
static FILE *captured;

static void capture(void) {
    captured = tmpfile();
    assert_non_null(captured);
    saved_stderr = dup(STDERR_FILENO);
    dup2(fileno(captured), STDERR_FILENO);
}

// What was written to standard error since capture(); freed by the caller.
static char *release(void) {
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    long size = lseek(fileno(captured), 0, SEEK_END);
    char *text = malloc((size_t)size + 1);
    assert_int_equal(pread(fileno(captured), text, (size_t)size, 0), size);
    text[size] = 0;
    fclose(captured);
    return text;
}

static void test_levels(void **state) {
    (void)state;
    capture();
    errno = 77;
    mf_log(MF_LOG_ERROR, "bad %d", 1);
    mf_log(MF_LOG_WARNING, "odd");
    mf_log(MF_LOG_NOTICE, "fine");
    mf_log(MF_LOG_DEBUG, "dropped");
    int kept_errno = errno;
    mf_log_set_level(MF_LOG_ERROR);
    mf_log(MF_LOG_WARNING, "dropped");
    mf_log_set_level(MF_LOG_DEBUG);
    mf_log(MF_LOG_DEBUG, "seen");
    char *text = release();
    assert_string_equal(text, "error: bad 1\nwarning: odd\nfine\ndebug: seen\n");
    assert_int_equal(kept_errno, 77);
    free(text);
    assert_true(mf_log_enabled(MF_LOG_DEBUG));
    mf_log_set_level(MF_LOG_NOTICE);
    assert_false(mf_log_enabled(MF_LOG_DEBUG));
}

static void test_lines_are_clean_and_whole(void **state) {
    (void)state;
    char *want = malloc(5002), *name = malloc(5001);
    memset(name, 'n', 5000);
    name[5000] = 0;
    capture();
    mf_log(MF_LOG_NOTICE, "%s", name);
    mf_log(MF_LOG_NOTICE, "file 'a\nerror: forged\x1b[2J'");
    char *text = release();
    sprintf(want, "%s\n", name);
    assert_memory_equal(text, want, 5001);
    assert_string_equal(text + 5001, "file 'a?error: forged?[2J'\n");
    free(text);
    free(want);
    free(name);
}

static void *write_lines(void *arg) {
    for (int i = 0; i < 500; i++) mf_log(MF_LOG_NOTICE, "thread %d writes a line of its own", *(int *)arg);
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    pthread_t threads[3];
    int ids[3] = {1, 2, 3}, counts[4] = {0};
    capture();
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    fcntl(STDERR_FILENO, F_SETFL, flags | O_APPEND);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, write_lines, &ids[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    char *text = release(), *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        assert_memory_equal(line, "thread ", 7);
        assert_in_range(line[7], '1', '3');
        assert_string_equal(line + 8, " writes a line of its own");
        counts[line[7] - '0']++;
    }
    for (int i = 1; i <= 3; i++) assert_int_equal(counts[i], 500);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_lines_are_clean_and_whole),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
