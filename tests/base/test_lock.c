// The lock of a file with one writer: no moment at which another one gets in, and nothing of others is removed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/lock.h"
#include "support/folder.h"

static char folder[64], path[96], other[96];
static int replacements; // times that another program puts a file in place between an open and its lock

int flock(int fd, int operation) {
    if (replacements > 0) {
        replacements--;
        assert_true(mf_file_write(other, "newer", 5, NULL));
        assert_int_equal(rename(other, path), 0);
    }
    return (int)syscall(SYS_flock, fd, operation);
}

static void expect(const char *text) {
    mf_buf read = {0};
    assert_true(mf_file_read(path, 100, &read, NULL));
    assert_string_equal(read.data, text);
    free(read.data);
}

static void refused(mf_code code, const char *part) {
    mf_lock second;
    mf_error err = {0};
    assert_false(mf_lock_take(&second, path, true, &err));
    assert_int_equal(err.code, code);
    if (!strstr(err.text, part)) fail_msg("'%s' has no '%s'", err.text, part);
}

static void one_at_a_time(void **state) {
    (void)state;
    mf_lock l;
    mf_error err = {0};
    struct stat st;
    assert_false(mf_lock_take(&l, path, false, &err));
    assert_non_null(strstr(err.text, "No such file"));
    assert_true(mf_lock_take(&l, path, true, &err));
    refused(MF_ERR_LIMIT, "in use by another process");
    expect("");
    for (int i = 0; i < 3; i++) {
        assert_true(mf_lock_write(&l, "one", 3, &err));
        refused(MF_ERR_LIMIT, "in use by another process");
        expect("one");
    }
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(chmod(path, 0640), 0);
    assert_true(mf_lock_write(&l, "two", 3, &err));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    mf_lock_release(&l);
    mf_lock_release(&l);
    expect("two");
    assert_true(mf_lock_take(&l, path, false, &err));
    mf_lock_release(&l); // nothing was written: what was there stays
    expect("two");
    unlink(path);
    assert_true(mf_lock_take(&l, path, true, &err));
    mf_lock_release(&l);
    assert_int_equal(stat(path, &st), -1);
}

// What was locked is what stands there, also where it was replaced between the two.
static void what_stands_there_is_locked(void **state) {
    (void)state;
    mf_lock l;
    mf_error err = {0};
    struct stat own, there;
    for (int create = 0; create < 2; create++) {
        if (!create) assert_true(mf_file_write(path, "old", 3, NULL));
        replacements = 3;
        assert_true(mf_lock_take(&l, path, create, &err));
        assert_int_equal(replacements, 0);
        assert_true(fstat(l.fd, &own) == 0 && stat(path, &there) == 0);
        assert_true(own.st_ino == there.st_ino);
        mf_lock_release(&l);
        expect("newer");
        unlink(path);
    }
    replacements = 1 << 20; // without an end
    refused(MF_ERR_IO, "no file stays there");
    replacements = 0;
    unlink(path);
}

static void what_others_put_there_stays(void **state) {
    (void)state;
    mf_lock l;
    mf_error err = {0};
    bool missing;
    assert_true(mf_lock_take(&l, path, true, &err));
    unlink(path);
    assert_true(mf_lock_check(&l, &missing, &err) && missing);
    assert_true(mf_lock_write(&l, "one", 3, &err));
    assert_true(mf_lock_check(&l, &missing, &err) && !missing);
    assert_true(mf_file_write(path, "theirs", 6, &err));
    assert_false(mf_lock_write(&l, "two", 3, &err));
    assert_non_null(strstr(err.text, "another program has replaced it"));
    mf_lock_release(&l);
    expect("theirs");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    refused(MF_ERR_IO, "directory");
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(MF_ERR_IO, "no regular file");
    unlink(path);
    assert_int_equal(symlink("nothing-here", path), 0);
    refused(MF_ERR_IO, "no file stays there");
    unlink(path);
}

static int set_up(void **state) {
    (void)state;
    if (!folder_make(folder, "lock")) return -1;
    snprintf(path, sizeof path, "%s/it", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return rmdir(folder); // fails where a file is left
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_at_a_time), cmocka_unit_test(what_stands_there_is_locked),
                                       cmocka_unit_test(what_others_put_there_stays)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
