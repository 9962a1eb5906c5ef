// Sessions: what was committed comes back whole after any crash, and goes on with the bytes of a run that was never interrupted.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/journal.h"
#include "engine/turns.h"

// ---- Resuming

// The last turn after `cut` turns in one process and the rest in others, each of which loads, goes on and commits.
static trace interrupted(mf_type cells, bool shift, int cut) {
    mf_error err = {0};
    trace t = {0};
    fixture f;
    for (int number = 0; number < TURNS;) {
        good(golden_open(&f, MF_FIXTURES, "qwen2-mix", NULL, 1 + number % 2, &err), &err);
        mf_engine *e = engine(&f, cells, 512);
        mf_sequence *s = sequence(e, &t);
        mf_session *session = number ? mf_session_open(s, path, &err) : mf_session_new(s, path, &err);
        good(session != NULL, &err);
        size_t n = 0;
        if (number) assert_string_equal(mf_session_state(session, &n), "state");
        assert_int_equal(n, number ? 6 : 0);
        for (int i = 0; i < cut && number < TURNS; i++, number++) {
            int32_t known = mf_sequence_n_tokens(s);
            turn(e, s, &t, number);
            assert_int_equal(mf_sequence_n_tokens(s), known + (number ? TURN : PROMPT) + N_DECODE);
            if (shift && number == 1) good(mf_sequence_shift(s, 10, 100, &err), &err);
        }
        good(mf_session_commit(session, "state", 6, &err), &err);
        mf_session_close(session);
        mf_sequence_free(s);
        mf_engine_free(e);
        fixture_close(&f);
    }
    return t;
}

static void a_resumed_sequence_goes_on(void **state) {
    (void)state;
    static const mf_type cells[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
    for (int c = 0; c < 3; c++)
        for (int shift = 0; shift < 2; shift++) {
            trace want = interrupted(cells[c], shift, TURNS), got = interrupted(cells[c], shift, 1);
            assert_int_equal(want.n_tokens, N_DECODE);
            assert_memory_equal(&want, &got, sizeof want);
        }
}

static void nothing_is_read_again(void **state) {
    (void)state;
    mf_error err = {0};
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    mf_sequence *s = sequence(e, NULL);
    mf_session *session = mf_session_new(s, path, &err);
    turn(e, s, NULL, 0);
    good(mf_session_commit(session, NULL, 0, &err), &err);
    assert_null(mf_session_new(s, path, &err));
    assert_non_null(strstr(err.text, "has a session already"));
    mf_session_close(session);
    int32_t evaluated = mf_sequence_n_evaluated(s);
    mf_sequence_free(s);
    mf_sequence *b = sequence(e, NULL), *c = sequence(e, NULL);
    good((session = mf_session_open(b, path, &err)) != NULL, &err);
    assert_int_equal(mf_sequence_n_evaluated(b), evaluated);
    assert_true(mf_sequence_idle(b));
    assert_null(mf_session_open(c, path, &err)); // one writer at a time
    assert_non_null(strstr(err.text, "in use"));
    good(mf_sequence_append(c, ids, PROMPT, &err), &err);
    assert_int_equal(mf_sequence_n_cached(c), PROMPT / MF_KV_BLOCK * MF_KV_BLOCK); // those that were evaluated here
    mf_session_close(session);
    assert_null(mf_session_open(c, path, &err));
    assert_non_null(strstr(err.text, "into a sequence of 150 tokens"));
    mf_sequence_free(b), mf_sequence_free(c);
    mf_engine_free(e);
}

// A commit writes its own blocks; cuts and rewrites make a file that is written anew before it is three times as large as it needs to be.
static void commits_append(void **state) {
    (void)state;
    mf_error err = {0};
    mf_session_info info;
    mf_engine *e = engine(&model, MF_TYPE_F32, 512);
    mf_sequence *s = sequence(e, NULL);
    mf_session *session = mf_session_new(s, path, &err);
    turn(e, s, NULL, 0);
    good(mf_session_commit(session, NULL, 0, &err) && mf_session_info_read(path, &info, &err), &err);
    const uint64_t block = 2 * 64 * 64 * 2 * 4, first = info.size; // layers, cells, channels, K and V, bytes
    assert_true(first > 3 * block && first < 3 * block + 2000);
    turn(e, s, NULL, 1);
    good(mf_session_commit(session, NULL, 0, &err) && mf_session_info_read(path, &info, &err), &err);
    assert_true(info.size > first + 2 * block && info.size < first + 2 * block + 2000); // one filled up, one more
    assert_int_equal(info.n_tokens, mf_sequence_n_tokens(s));
    assert_int_equal(info.n_cells, mf_sequence_n_evaluated(s));
    assert_int_equal(info.committed, info.size);
    good(mf_session_commit(session, "x", 1, &err) && mf_session_info_read(path, &info, &err), &err);
    assert_true(info.size < first + 2 * block + 2000);
    assert_int_equal(info.n_state, 1);
    uint64_t largest = 0;
    for (int i = 0; i < 40; i++) {
        mf_sequence_truncate(s, 10);
        turn(e, s, NULL, 1);
        good(mf_session_commit(session, NULL, 0, &err) && mf_session_info_read(path, &info, &err), &err);
        if (info.size > largest) largest = info.size;
    }
    assert_true(largest > 1 << 20 && largest < (1 << 20) + 4 * block);
    mf_session_close(session);
    mf_sequence_free(s);
    mf_engine_free(e);
}

// ---- Crashes

static uint64_t random_state = 88172645463325252U;

static uint64_t draw(uint64_t below) {
    random_state = random_state * 6364136223846793005U + 1442695040888963407U;
    return (random_state >> 16) % below;
}

typedef struct image {
    uint8_t *data;
    size_t size;
    uint64_t ends[TURNS + 1]; // of the commits
    int32_t n_tokens[TURNS + 1], n_cells[TURNS + 1];
    int32_t *tokens[TURNS + 1];
    uint64_t bounds[200]; // where a write begins or ends
    int n_bounds;
} image;

static void make_image(image *im) {
    mf_error err = {0};
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    mf_sequence *s = sequence(e, NULL);
    mf_session *session = mf_session_new(s, path, &err);
    *im = (image){0};
    for (int i = 1; i <= TURNS; i++) {
        mf_session_info info;
        turn(e, s, NULL, i - 1);
        if (i == 3) good(mf_sequence_shift(s, 70, 64, &err), &err);
        good(mf_session_commit(session, &i, sizeof i, &err) && mf_session_info_read(path, &info, &err), &err);
        im->ends[i] = info.committed;
        im->n_tokens[i] = mf_sequence_n_tokens(s), im->n_cells[i] = mf_sequence_n_evaluated(s);
        im->tokens[i] = malloc((size_t)im->n_tokens[i] * sizeof(int32_t));
        memcpy(im->tokens[i], mf_sequence_tokens(s), (size_t)im->n_tokens[i] * sizeof(int32_t));
    }
    mf_session_close(session);
    mf_sequence_free(s);
    mf_engine_free(e);
    mf_buf all = {0};
    good(mf_file_read(path, 1 << 30, &all, &err), &err);
    im->data = (uint8_t *)all.data, im->size = all.len;
    mf_record r;
    for (uint64_t at = 0; mf_journal_next(im->data, im->size, &at, &r) && im->n_bounds < 190;) {
        uint64_t payload = (uint64_t)(r.data - im->data);
        im->bounds[im->n_bounds++] = payload - 32;
        im->bounds[im->n_bounds++] = payload;
        im->bounds[im->n_bounds++] = payload + r.size;
        im->bounds[im->n_bounds++] = r.end;
    }
    assert_true(im->n_bounds < 190);
}

static void free_image(image *im) {
    for (int i = 0; i <= TURNS; i++) free(im->tokens[i]);
    free(im->data);
}

// Loads an image; the number of the commit whose state that is, 0 for a refusal (which leaves the sequence as it was).
static int load(mf_engine *e, const image *im, const uint8_t *data, size_t size) {
    mf_error err = {0};
    mf_session_info info;
    mf_sequence *s = sequence(e, NULL);
    int found = 0;
    if (mf_session_load_image(s, data, size, &info, &err)) {
        for (int i = 1; i <= TURNS; i++)
            if (info.committed == im->ends[i]) found = i;
        assert_true(found > 0);
        assert_int_equal(mf_sequence_n_tokens(s), im->n_tokens[found]);
        assert_int_equal(mf_sequence_n_evaluated(s), im->n_cells[found]);
        assert_memory_equal(mf_sequence_tokens(s), im->tokens[found], (size_t)im->n_tokens[found] * sizeof(int32_t));
    } else {
        assert_true(err.code == MF_ERR_FORMAT || err.code == MF_ERR_UNSUPPORTED);
        assert_int_equal(mf_sequence_n_tokens(s), 0);
        assert_int_equal(mf_sequence_n_evaluated(s), 0);
    }
    mf_sequence_free(s);
    return found;
}

static int last_commit(const image *im, uint64_t size) {
    int last = 0;
    for (int i = 1; i <= TURNS; i++)
        if (im->ends[i] <= size) last = i;
    return last;
}

// Cut at every write's beginning and end, around them, and anywhere: the last commit before the cut.
static void a_torn_tail_is_cut(void **state) {
    (void)state;
    image im;
    make_image(&im);
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    for (int i = 0; i < im.n_bounds; i++)
        for (int off = -1; off <= 1; off++) {
            uint64_t size = im.bounds[i] + (uint64_t)off;
            if (size <= im.size) assert_int_equal(load(e, &im, im.data, (size_t)size), last_commit(&im, size));
        }
    for (int i = 0; i < 300; i++) {
        uint64_t size = draw(im.size + 1);
        assert_int_equal(load(e, &im, im.data, (size_t)size), last_commit(&im, size));
    }
    // A tail of which only some pages reached the disk: zeros, or what stood there before.
    uint8_t *torn = malloc(im.size);
    assert_non_null(torn);
    for (int i = 0; i < 200; i++) {
        int from = 1 + (int)draw(TURNS - 1);
        uint64_t begin = im.ends[from], end = im.ends[from + 1], hole = begin + draw(end - begin);
        memcpy(torn, im.data, im.size);
        memset(torn + hole, 0, (size_t)(end - hole)); // the commit is not on the disk before all else is
        assert_int_equal(load(e, &im, torn, (size_t)end), from);
    }
    free(torn);
    mf_engine_free(e);
    free_image(&im);
}

// A byte that changes anywhere: a refusal, or a commit before it; never something else.
static void damage_is_noticed(void **state) {
    (void)state;
    image im;
    make_image(&im);
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    int refused = 0;
    for (int i = 0; i < 400 + 3 * im.n_bounds; i++) {
        uint64_t at = i < 400 ? draw(im.size) : im.bounds[(i - 400) / 3] + (uint64_t)((i - 400) % 3) - 1;
        if (at >= im.size) continue;
        uint8_t flip = (uint8_t)(1U << draw(8));
        im.data[at] ^= flip;
        int found = load(e, &im, im.data, im.size);
        im.data[at] ^= flip;
        assert_true(found == 0 || found <= last_commit(&im, at));
        assert_true(found != TURNS);
        refused += found == 0;
    }
    assert_true(refused > 300); // commits stand behind nearly every byte
    assert_int_equal(load(e, &im, im.data, im.size), TURNS);
    mf_engine_free(e);
    free_image(&im);
}

// A process that commits and is killed at some moment: what its file holds is a commit, and it goes on from there.
static void a_killed_process_loses_a_turn_at_most(void **state) {
    (void)state;
    for (int round = 0; round < 12; round++) {
        unlink(path);
        int ready[2];
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0) { // the model's threads are not in the child: it makes its own
            mf_error err = {0};
            fixture f;
            if (!golden_open(&f, MF_FIXTURES, "qwen2-mix", NULL, 1, &err)) _exit(1);
            mf_engine *e = engine(&f, MF_TYPE_F16, 512);
            mf_sequence *s = sequence(e, NULL);
            mf_session *session = mf_session_new(s, path, &err);
            if (!session) _exit(1);
            for (int i = 0; i >= 0; i++) {
                if (i) mf_sequence_truncate(s, 20 + (i * 37) % 100);
                turn(e, s, NULL, 1);
                if (!mf_session_commit(session, &i, sizeof i, &err)) _exit(1);
                if (write(ready[1], &i, sizeof i) < 0) _exit(1);
            }
            _exit(1);
        }
        int done = -1, status;
        close(ready[1]);
        assert_int_equal(read(ready[0], &done, sizeof done), sizeof done);
        usleep((useconds_t)draw(60000));
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        while (read(ready[0], &done, sizeof done) == sizeof done) {
        }
        close(ready[0]);
        mf_error err = {0};
        mf_engine *e = engine(&model, MF_TYPE_F16, 512);
        mf_sequence *s = sequence(e, NULL);
        mf_session *session = mf_session_open(s, path, &err);
        good(session != NULL, &err);
        size_t n;
        int last;
        memcpy(&last, mf_session_state(session, &n), sizeof last);
        assert_true(last == done || last == done + 1); // committed, and maybe not told
        turn(e, s, NULL, 2);
        good(mf_session_commit(session, NULL, 0, &err), &err);
        mf_session_close(session);
        mf_sequence_free(s);
        mf_engine_free(e);
    }
}

// ---- Refusals

static void same_file(const mf_session_info *a, const mf_session_info *b) {
    assert_int_equal(a->size, b->size);
    assert_int_equal(a->committed, b->committed);
    assert_int_equal(a->n_tokens, b->n_tokens);
    assert_int_equal(a->n_cells, b->n_cells);
}

static void a_full_disk_keeps_the_last_commit(void **state) {
    (void)state;
    mf_error err = {0};
    mf_session_info before, after;
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    mf_sequence *s = sequence(e, NULL);
    mf_session *session = mf_session_new(s, path, &err);
    turn(e, s, NULL, 0);
    good(mf_session_commit(session, NULL, 0, &err) && mf_session_info_read(path, &before, &err), &err);
    turn(e, s, NULL, 1);
    struct rlimit none, little;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &none), 0);
    for (rlim_t room = 0; room < 60000; room += 7001) {
        little = none, little.rlim_cur = before.size + room;
        setrlimit(RLIMIT_FSIZE, &little);
        bool ok = mf_session_commit(session, NULL, 0, &err);
        setrlimit(RLIMIT_FSIZE, &none);
        assert_false(ok);
        assert_int_equal(err.code, MF_ERR_IO);
        good(mf_session_info_read(path, &after, &err), &err);
        same_file(&before, &after);
    }
    good(mf_session_commit(session, NULL, 0, &err) && mf_session_info_read(path, &after, &err), &err);
    assert_int_equal(after.n_tokens, mf_sequence_n_tokens(s));
    mf_session_close(session);
    // The same while a new file is written: no part of it stays.
    good((session = mf_session_new(s, path, &err)) != NULL, &err);
    little = none, little.rlim_cur = 5000;
    setrlimit(RLIMIT_FSIZE, &little);
    assert_false(mf_session_commit(session, NULL, 0, &err));
    setrlimit(RLIMIT_FSIZE, &none);
    good(mf_session_info_read(path, &before, &err), &err);
    same_file(&before, &after);
    good(mf_session_commit(session, NULL, 0, &err), &err);
    mf_session_close(session);
    const char *const places[] = {"/proc/minfer-session", "/nowhere/at/all", folder, "/dev/full"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        assert_null(mf_session_new(s, places[i], &err)); // before anything is said
        assert_int_equal(err.code, MF_ERR_IO);
    }
    mf_sequence_free(s);
    mf_engine_free(e);
}

static void refuse(mf_engine *e, const char *part) {
    mf_error err = {0};
    mf_sequence *s = sequence(e, NULL);
    assert_null(mf_session_open(s, path, &err));
    if (!strstr(err.text, part)) fail_msg("'%s' has no '%s'", err.text, part);
    assert_int_equal(mf_sequence_n_tokens(s), 0);
    mf_sequence_free(s);
}

static void what_does_not_fit_is_refused(void **state) {
    (void)state;
    mf_error err = {0};
    mf_engine *e = engine(&model, MF_TYPE_F16, 512);
    mf_sequence *s = sequence(e, NULL);
    mf_session *session = mf_session_new(s, path, &err);
    turn(e, s, NULL, 0);
    good(mf_session_commit(session, NULL, 0, &err), &err);
    mf_session_close(session);
    mf_sequence_free(s);
    mf_engine_free(e);
    e = engine(&model, MF_TYPE_F32, 512);
    refuse(e, "the session's cells are F16; here they are F32");
    mf_engine_free(e);
    e = engine(&model, MF_TYPE_F16, 128);
    refuse(e, "the session has 158 tokens; the context holds 128");
    mf_engine_free(e);
    fixture other;
    good(golden_open(&other, MF_FIXTURES, "llama-mix", NULL, 1, &err), &err);
    e = engine(&other, MF_TYPE_F16, 512);
    refuse(e, "the session's number of KV heads is 1; here it is 2");
    mf_engine_free(e);
    fixture_close(&other);
    e = engine(&model, MF_TYPE_F16, 512);
    static const char text[] = "this is not what you think it is";
    good(mf_file_write(path, text, sizeof text, &err), &err);
    refuse(e, "no session");
    good(mf_file_write(path, "minfer\x1aS\x01\0\0\0\0\0\0\0", 16, &err), &err);
    refuse(e, "format is version 1; this is version 2");
    good(mf_file_write(path, "minfer\x1aS\x02\0\0\0\0\0\0\0", 16, &err), &err);
    refuse(e, "nothing that was committed");
    unlink(path);
    refuse(e, "");
    mf_engine_free(e);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_resumed_sequence_goes_on),
                                       cmocka_unit_test(nothing_is_read_again),
                                       cmocka_unit_test(commits_append),
                                       cmocka_unit_test(a_torn_tail_is_cut),
                                       cmocka_unit_test(damage_is_noticed),
                                       cmocka_unit_test(a_full_disk_keeps_the_last_commit),
                                       cmocka_unit_test(what_does_not_fit_is_refused),
                                       cmocka_unit_test(a_killed_process_loses_a_turn_at_most)};
    return cmocka_run_group_tests(tests, turns_set_up, turns_tear_down);
}
