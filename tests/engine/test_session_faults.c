// Sessions where something is wrong: a disk that fails, another writer, damage, a file that is none; and what a sampler knows beside the
// tokens.
#include <errno.h>
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

// ---- A disk that fails, in the place of the library's functions

static int broken_write;     // this many writes from here on one fails halfway; 0: none does
static bool broken_truncate; // every cut fails
static void (*on_sync)(void);

int fsync(int fd) {
    void (*call)(void) = on_sync;
    on_sync = NULL;
    if (call) call();
    return (int)syscall(SYS_fsync, fd);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at) {
    if (broken_write && --broken_write == 0) {
        syscall(SYS_pwrite64, fd, data, n / 2, at);
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, data, n, at);
}

int ftruncate(int fd, off_t size) {
    if (broken_truncate) return errno = EIO, -1;
    return (int)syscall(SYS_ftruncate, fd, size);
}

static bool commit(mf_session *session, int state) { return mf_session_commit(session, &state, sizeof state, NULL); }

// The state of the commit that a load of the file gives.
static int loaded(mf_engine *e, mf_session *(*load)(mf_sequence *, const char *, mf_error *)) {
    mf_error err = {0};
    size_t n;
    int state;
    mf_sequence *s = sequence(e, NULL);
    mf_session *session = load(s, path, &err);
    good(session != NULL, &err);
    memcpy(&state, mf_session_state(session, &n), sizeof state);
    assert_int_equal(n, sizeof state);
    mf_sequence_free(s);
    return state;
}

// Every write of a commit fails in turn, and what it wrote can't be cut off: the commit before stays, and a later one counts.
static void a_failed_write_costs_no_older_commit(void **state) {
    (void)state;
    mf_error err = {0};
    mf_session_info info;
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    for (int heals = 0; heals < 2; heals++)
        for (int write = 1, failed = 1; failed; write++) {
            unlink(path);
            mf_sequence *s = sequence(e, NULL);
            mf_session *session = mf_session_new(s, path, &err);
            good(session != NULL, &err);
            turn(e, s, NULL, 0);
            assert_true(commit(session, 1));
            turn(e, s, NULL, 1);
            broken_write = write, broken_truncate = true;
            failed = !commit(session, 2);
            broken_write = 0, broken_truncate = !heals;
            if (write < 9) assert_true(failed); // records of tokens, of two blocks, of the commit
            mf_sequence_truncate(s, 159);       // less than what was to be written
            assert_true(commit(session, 3));
            good(mf_session_info_read(path, &info, &err), &err);
            assert_true(info.damaged == 0 && info.n_tokens == 159);
            turn(e, s, NULL, 2);
            assert_true(commit(session, 4));
            broken_truncate = false;
            mf_session_close(session);
            mf_sequence_free(s);
            assert_int_equal(loaded(e, mf_session_open), 4);
        }
    mf_engine_free(e);
}

static void a_process_that_dies_then_leaves_the_older_commit(void **state) {
    (void)state;
    mf_error err = {0};
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    unlink(path);
    mf_sequence *s = sequence(e, NULL);
    mf_session *session = mf_session_new(s, path, &err);
    turn(e, s, NULL, 0);
    assert_true(commit(session, 1));
    for (int i = 2; i < 4; i++) {
        turn(e, s, NULL, i - 1);
        broken_write = 6, broken_truncate = true;
        assert_false(commit(session, i));
        mf_session_close(session);
        mf_sequence_free(s);
        broken_write = 0, broken_truncate = false;
        assert_int_equal(loaded(e, mf_session_open), 1);
        s = sequence(e, NULL);
        good((session = mf_session_open(s, path, &err)) != NULL, &err); // with what was left behind the commit
    }
    mf_sequence_free(s);
    mf_engine_free(e);
}

// ---- Others

static mf_engine *shared;
static int refused_meanwhile;

static void open_meanwhile(void) {
    mf_error err = {0};
    mf_sequence *s = sequence(shared, NULL);
    assert_null(mf_session_open(s, path, &err));
    assert_non_null(strstr(err.text, "in use"));
    assert_null(mf_session_new(s, path, &err));
    assert_non_null(strstr(err.text, "in use"));
    refused_meanwhile++;
    mf_sequence_free(s);
}

static void one_writer_from_the_beginning(void **state) {
    (void)state;
    mf_error err = {0};
    struct stat st;
    shared = engine(&model, MF_TYPE_F16, 512);
    unlink(path);
    mf_sequence *s = sequence(shared, NULL);
    mf_session *session = mf_session_new(s, path, &err);
    good(session != NULL, &err);
    open_meanwhile(); // nothing was committed yet
    mf_session_close(session);
    assert_int_equal(stat(path, &st), -1); // and nothing is left of it
    good((session = mf_session_new(s, path, &err)) != NULL, &err);
    ino_t before = 0;
    int rewrites = 0;
    for (int i = 0; rewrites < 3; i++) {
        assert_true(i < 200);
        mf_sequence_truncate(s, 10);
        turn(shared, s, NULL, 1);
        refused_meanwhile = 0;
        on_sync = open_meanwhile;
        assert_true(commit(session, i));
        assert_int_equal(refused_meanwhile, 1);
        open_meanwhile();
        assert_int_equal(stat(path, &st), 0);
        rewrites += st.st_ino != before;
        before = st.st_ino;
    }
    mf_sequence_free(s);
    mf_engine_free(shared);
}

static void what_others_put_there_stays(void **state) {
    (void)state;
    static const char mine[] = "this is mine, and no session";
    mf_error err = {0};
    mf_buf text = {0};
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    mf_sequence *s = sequence(e, NULL);
    good(mf_file_write(path, mine, sizeof mine, &err), &err);
    assert_null(mf_session_new(s, path, &err));
    assert_int_equal(err.code, MF_ERR_FORMAT);
    assert_non_null(strstr(err.text, "is no session of minfer, and is not overwritten"));
    unlink(path);
    mf_session *session = mf_session_new(s, path, &err);
    turn(e, s, NULL, 0);
    assert_true(commit(session, 1));
    turn(e, s, NULL, 1);
    unlink(path); // removed: it is written anew
    assert_true(commit(session, 2));
    turn(e, s, NULL, 2);
    good(mf_file_write(path, mine, sizeof mine, &err), &err); // replaced
    assert_false(mf_session_commit(session, NULL, 0, &err));
    assert_non_null(strstr(err.text, "another program has replaced it"));
    mf_session_close(session);
    good(mf_file_read(path, 1000, &text, &err), &err);
    assert_string_equal(text.data, mine);
    free(text.data);
    unlink(path);
    mf_sequence_free(s);
    mf_engine_free(e);
}

// Cells out of a file serve their own sequence alone, also what is evaluated behind them.
static void a_files_cells_are_not_shared(void **state) {
    (void)state;
    mf_error err = {0};
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    unlink(path);
    mf_sequence *s = sequence(e, NULL);
    mf_session *session = mf_session_new(s, path, &err);
    turn(e, s, NULL, 0);
    assert_true(commit(session, 1));
    mf_sequence_free(s);
    mf_engine_free(e);
    for (int freed = 0; freed < 2; freed++) {
        e = engine(&model, MF_TYPE_F16, 512);
        s = sequence(e, NULL);
        good(mf_session_open(s, path, &err) != NULL, &err);
        turn(e, s, NULL, 1);
        if (freed) mf_sequence_free(s);
        mf_sequence *other = sequence(e, NULL);
        turn(e, other, NULL, 0);
        assert_int_equal(mf_sequence_n_cached(other), 0);
        mf_sequence_free(other);
        if (!freed) mf_sequence_free(s);
        mf_engine_free(e);
    }
}

// ---- Damage

static void the_last_whole_commit_can_be_had(void **state) {
    (void)state;
    mf_error err = {0};
    mf_session_info info;
    uint64_t ends[TURNS + 1] = {0};
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    unlink(path);
    mf_sequence *s = sequence(e, NULL);
    mf_session *session = mf_session_new(s, path, &err);
    for (int i = 1; i <= TURNS; i++) {
        turn(e, s, NULL, i - 1);
        assert_true(commit(session, i));
        good(mf_session_info_read(path, &info, &err), &err);
        ends[i] = info.committed;
    }
    mf_sequence_free(s);
    mf_buf whole = {0}, seen = {0};
    good(mf_file_read(path, 1 << 30, &whole, &err), &err);
    for (int i = 1; i < TURNS; i++) {
        uint64_t at = (ends[i] + ends[i + 1]) / 2;
        whole.data[at] ^= 4;
        good(mf_file_write(path, whole.data, whole.len, &err), &err);
        whole.data[at] ^= 4;
        s = sequence(e, NULL);
        assert_null(mf_session_open(s, path, &err));
        assert_non_null(strstr(err.text, "is damaged at byte"));
        assert_non_null(strstr(err.text, "tokens were committed before it"));
        good(mf_session_info_read(path, &info, &err), &err);
        assert_true(info.damaged > ends[i] - 1 && info.damaged <= at && info.committed == ends[i]);
        assert_int_equal(loaded(e, mf_session_recover), i);
        good(mf_file_read(path, 1 << 30, &seen, &err), &err); // loading changes nothing
        assert_true(seen.len == whole.len && seen.data[at] == (whole.data[at] ^ 4));
        free(seen.data);
        good((session = mf_session_recover(s, path, &err)) != NULL, &err);
        turn(e, s, NULL, i);
        assert_true(commit(session, 100 + i));
        mf_sequence_free(s);
        assert_int_equal(loaded(e, mf_session_open), 100 + i);
    }
    good(mf_file_write(path, whole.data, whole.len, &err), &err);
    assert_int_equal(loaded(e, mf_session_recover), TURNS); // of a whole file the last
    whole.data[70] ^= 1;
    good(mf_file_write(path, whole.data, whole.len, &err), &err);
    s = sequence(e, NULL);
    assert_null(mf_session_recover(s, path, &err));
    assert_non_null(strstr(err.text, "before its first commit"));
    mf_sequence_free(s);
    free(whole.data);
    mf_engine_free(e);
}

// ---- The sampler

// The second turn, after a shift or not, in one process or (resumed) behind a load.
static trace second_turn(const mf_sampler_params *sampler, bool shift, bool resumed) {
    mf_error err = {0};
    trace t = {0};
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    unlink(path);
    mf_sequence *s = sequence_with(e, sampler, &t);
    mf_session *session = mf_session_new(s, path, &err);
    good(session != NULL, &err);
    turn(e, s, &t, 0);
    if (shift) good(mf_sequence_shift(s, 10, 140, &err), &err);
    if (resumed) {
        good(mf_session_commit(session, NULL, 0, &err), &err);
        mf_sequence_free(s);
        mf_engine_free(e);
        e = engine(&model, MF_TYPE_F16, 512);
        s = sequence_with(e, sampler, &t);
        good(mf_session_open(s, path, &err) != NULL, &err);
    }
    turn(e, s, &t, 1);
    assert_int_equal(t.n_tokens, N_DECODE);
    mf_sequence_free(s);
    mf_engine_free(e);
    return t;
}

static void the_sampler_goes_on_too(void **state) {
    (void)state;
    mf_sampler_params p[6];
    for (int i = 0; i < 6; i++) mf_sampler_params_init(&p[i]);
    p[0].temp = 0, p[0].repeat_penalty = 2;
    p[1].temp = 5, p[1].top_k = 0, p[1].top_p = 1, p[1].repeat_penalty = 1.5f, p[1].repeat_last_n = 200;
    p[2].temp = 2, p[2].mirostat = 1, p[2].mirostat_tau = 3, p[2].mirostat_eta = 0.9f;
    p[3].temp = 2, p[3].mirostat = 2, p[3].mirostat_tau = 3, p[3].mirostat_eta = 0.9f;
    p[4].temp = 3, p[4].dry_multiplier = 20, p[4].dry_penalty_last_n = 180, p[4].dry_allowed_length = 1;
    p[5].temp = 3, p[5].frequency_penalty = 2, p[5].presence_penalty = 1, p[5].xtc_probability = 0.5f;
    for (int i = 0; i < 6; i++)
        for (int shift = 0; shift < 2; shift++) {
            trace want = second_turn(&p[i], shift, false), got = second_turn(&p[i], shift, true);
            if (memcmp(&want, &got, sizeof want) != 0) fail_msg("sampler %d, shift %d: other bytes", i, shift);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_failed_write_costs_no_older_commit),
                                       cmocka_unit_test(a_process_that_dies_then_leaves_the_older_commit),
                                       cmocka_unit_test(one_writer_from_the_beginning),
                                       cmocka_unit_test(what_others_put_there_stays),
                                       cmocka_unit_test(a_files_cells_are_not_shared),
                                       cmocka_unit_test(the_last_whole_commit_can_be_had),
                                       cmocka_unit_test(the_sampler_goes_on_too)};
    return cmocka_run_group_tests(tests, turns_set_up, turns_tear_down);
}
