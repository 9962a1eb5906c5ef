// What a commit promises: what it says stands is on the disk in an order in which no crash leaves a commit of what is not there. And what of a
// session is compared and restored.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "engine/turns.h"

// ---- The library's functions, with notes of what was called: w(rite), s(ync), r(ename), f(older's sync)

static char calls[4096];
static size_t n_calls;

static void note(char what) {
    if (n_calls + 1 < sizeof calls && (n_calls == 0 || calls[n_calls - 1] != what || what != 'w')) calls[n_calls++] = what;
    calls[n_calls] = 0;
}

int fsync(int fd) {
    struct stat st;
    note(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? 'f' : 's');
    return (int)syscall(SYS_fsync, fd);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at) {
    note('w');
    return syscall(SYS_pwrite64, fd, data, n, at);
}

int rename(const char *from, const char *to) {
    note('r');
    return (int)syscall(SYS_renameat2, -100, from, -100, to, 0); // -100: AT_FDCWD
}

static mf_session *begin(mf_engine *e, mf_sequence **s) {
    mf_error err = {0};
    unlink(path);
    *s = sequence(e, NULL);
    mf_session *session = mf_session_new(*s, path, &err);
    good(session != NULL, &err);
    return session;
}

// The records and what they are about come before the commit, and the commit before the name.
static void a_commit_is_on_the_disk(void **state) {
    (void)state;
    mf_error err = {0};
    mf_sequence *s;
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    mf_session *session = begin(e, &s);
    turn(e, s, NULL, 0);
    n_calls = 0;
    good(mf_session_commit(session, NULL, 0, &err), &err);
    assert_string_equal(calls, "wswsrf");
    turn(e, s, NULL, 1);
    n_calls = 0;
    good(mf_session_commit(session, NULL, 0, &err), &err);
    assert_string_equal(calls, "wsws");
    mf_sequence_free(s);
    mf_engine_free(e);
}

// A model that turns K otherwise has other cells.
static void other_rope_is_refused(void **state) {
    (void)state;
    mf_error err = {0};
    mf_sequence *s;
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    mf_session *session = begin(e, &s);
    turn(e, s, NULL, 0);
    good(mf_session_commit(session, NULL, 0, &err), &err);
    mf_sequence_free(s);
    double *frequency = (double *)(uintptr_t)&mf_model_rope(model.model, 512)->inv_freq[3], kept = *frequency;
    s = sequence(e, NULL);
    *frequency *= 1.5;
    assert_null(mf_session_open(s, path, &err));
    *frequency = kept;
    assert_non_null(strstr(err.text, "the session's rope is"));
    good(mf_session_open(s, path, &err) != NULL, &err);
    mf_sequence_free(s);
    mf_engine_free(e);
}

// A loaded sequence knows which of its cells a shift has moved: cut back to those before them, it has none.
static void moved_cells_are_known_after_a_load(void **state) {
    (void)state;
    mf_error err = {0};
    mf_sequence *s;
    mf_session_info info;
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    mf_session *session = begin(e, &s);
    turn(e, s, NULL, 0);
    good(mf_sequence_shift(s, 70, 20, &err), &err);
    good(mf_session_commit(session, NULL, 0, &err), &err);
    mf_sequence_free(s);
    for (int32_t keep = 71; keep >= 70; keep--) {
        s = sequence(e, NULL);
        good((session = mf_session_open(s, path, &err)) != NULL, &err);
        mf_sequence_truncate(s, keep);
        good(mf_session_commit(session, NULL, 0, &err), &err);
        good(mf_session_info_read(path, &info, &err), &err);
        assert_int_equal(info.n_cells, keep);
        assert_int_equal(info.shifted, keep > 70);
        mf_sequence_free(s);
    }
    mf_engine_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_is_on_the_disk),
        cmocka_unit_test(other_rope_is_refused),
        cmocka_unit_test(moved_cells_are_known_after_a_load),
    };
    return cmocka_run_group_tests(tests, turns_set_up, turns_tear_down);
}
