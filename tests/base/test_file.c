#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/file.h"
#include "support/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    return folder_make(folder, "file") ? 0 : -1;
}

static const char *in_folder(char *out, const char *name) {
    snprintf(out, 128, "%s/%s", folder, name);
    return out;
}

static int count_entries(void) {
    DIR *dir = opendir(folder);
    int n = 0;
    for (struct dirent *e; (e = readdir(dir));) n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

static int remove_folder(void **state) {
    (void)state;
    DIR *dir = opendir(folder);
    for (struct dirent *e; (e = readdir(dir));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%.300s", folder, e->d_name);
        unlink(path);
        if (e->d_name[0] != '.') rmdir(path);
    }
    closedir(dir);
    return rmdir(folder);
}

static void expect_text(const char *path, const char *text) {
    mf_buf read = {0};
    assert_true(mf_file_read(path, 1000, &read, NULL));
    assert_string_equal(read.data, text);
    free(read.data);
}

static void test_write_read_map(void **state) {
    (void)state;
    enum {
        SIZE = 100003
    };
    char path[128];
    char *data = malloc(SIZE);
    mf_error err;
    for (int i = 0; i < SIZE; i++) data[i] = (char)(i * 7 >> 3);
    in_folder(path, "data");
    assert_true(mf_file_write(path, data, SIZE, &err));
    mf_buf read = {0};
    assert_true(mf_file_read(path, SIZE, &read, &err));
    assert_int_equal(read.len, SIZE);
    assert_memory_equal(read.data, data, SIZE);
    free(read.data);
    mf_file_map map;
    assert_true(mf_file_map_open(&map, path, &err));
    assert_int_equal(map.size, SIZE);
    assert_memory_equal(map.data, data, SIZE);
    // Dropped pages come back from the file.
    mf_file_map_drop(&map, 0, SIZE);
    mf_file_map_drop(&map, 5000, 20000);
    mf_file_map_drop(&map, SIZE - 1, 1);
    mf_file_map_drop(&map, SIZE, 1);
    mf_file_map_drop(&map, 10, SIZE_MAX);
    mf_file_map_drop(&map, SIZE_MAX, SIZE_MAX);
    assert_memory_equal(map.data, data, SIZE);
    mf_file_map_close(&map);
    assert_null(map.data);
    mf_file_map_close(&map);
    free(data);
    assert_int_equal(count_entries(), 1);
    unlink(path);
}

static void test_empty_file(void **state) {
    (void)state;
    char path[128];
    mf_file_map map;
    assert_true(mf_file_write(in_folder(path, "empty"), NULL, 0, NULL));
    expect_text(path, "");
    assert_true(mf_file_map_open(&map, path, NULL));
    assert_int_equal(map.size, 0);
    mf_file_map_drop(&map, 0, 10);
    mf_file_map_close(&map);
    unlink(path);
}

static void test_refusals(void **state) {
    (void)state;
    char path[128];
    mf_error err;
    mf_file_map map;
    mf_buf read;
    in_folder(path, "missing");
    assert_false(mf_file_map_open(&map, path, &err));
    assert_int_equal(err.code, MF_ERR_IO);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, "No such file"));
    assert_false(mf_file_read(path, 10, &read, &err));
    assert_non_null(strstr(err.text, "No such file"));
    assert_null(read.data);
    assert_false(mf_file_map_open(&map, folder, &err));
    assert_non_null(strstr(err.text, "directory"));
    assert_false(mf_file_read(folder, 10, &read, &err));
    assert_non_null(strstr(err.text, "directory"));
    assert_false(mf_file_write(folder, "x", 1, &err));
    assert_non_null(strstr(err.text, "directory"));
    in_folder(path, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(mf_file_map_open(&map, path, &err)); // and it does not wait for a writer
    assert_non_null(strstr(err.text, "not a regular file"));
    unlink(path);
    in_folder(path, "six");
    assert_true(mf_file_write(path, "123456", 6, &err));
    assert_false(mf_file_read(path, 5, &read, &err));
    assert_int_equal(err.code, MF_ERR_LIMIT);
    assert_non_null(strstr(err.text, "limit of 5 bytes"));
    assert_null(read.data);
    assert_true(mf_file_read(path, 6, &read, &err));
    free(read.data);
    unlink(path);
    assert_false(mf_file_write(in_folder(path, "no/such/folder"), "x", 1, &err));
    assert_int_equal(err.code, MF_ERR_IO);
    assert_int_equal(count_entries(), 0);
}

static mode_t mode_of(const char *path) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

static void test_private_files(void **state) {
    (void)state;
    char path[128];
    in_folder(path, "private");
    mode_t mask = umask(0);
    assert_true(mf_file_write_private(path, "one", 3, NULL));
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(chmod(path, 0640), 0); // its owner's decision
    assert_true(mf_file_write_private(path, "two", 3, NULL));
    assert_int_equal(mode_of(path), 0640);
    expect_text(path, "two");
    umask(mask);
    unlink(path);
}

static void test_no_file_takes_a_standard_descriptor(void **state) {
    (void)state;
    char path[128];
    int kept = dup(STDIN_FILENO);
    assert_true(kept > STDERR_FILENO);
    close(STDIN_FILENO);
    int fd = mf_fd_open(in_folder(path, "file"), O_RDWR | O_CREAT, 0600);
    assert_true(fd > STDERR_FILENO);
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    close(kept);
    close(fd);
    unlink(path);
}

static void test_write_keeps_mode_and_links(void **state) {
    (void)state;
    char path[128], link[128];
    struct stat st;
    in_folder(path, "target");
    in_folder(link, "link");
    mode_t mask = umask(027);
    assert_true(mf_file_write(path, "one", 3, NULL));
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(chmod(path, 0604), 0);
    assert_int_equal(symlink("target", link), 0);
    assert_true(mf_file_write(link, "two", 3, NULL));
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0604);
    expect_text(path, "two");
    assert_int_equal(count_entries(), 2);
    unlink(link);
    unlink(path);
}

static void test_write_without_folder_in_the_name(void **state) {
    (void)state;
    char before[512];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    assert_true(mf_file_write("plain", "x", 1, NULL));
    expect_text("plain", "x");
    unlink("plain");
    assert_int_equal(chdir(before), 0);
}

// A disk without space: the old file stays, the temporary one goes. /dev/full stands for what is not a regular file.
static void test_device(void **state) {
    (void)state;
    mf_error err;
    assert_true(mf_file_write("/dev/null", "x", 1, &err));
    struct stat st;
    assert_int_equal(stat("/dev/null", &st), 0);
    assert_true(S_ISCHR(st.st_mode));
    if (access("/dev/full", W_OK) != 0) return;
    assert_false(mf_file_write("/dev/full", "x", 1, &err));
    assert_non_null(strstr(err.text, "/dev/full"));
}

static void test_standard_input(void **state) {
    (void)state;
    int ends[2], saved = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "from a pipe", 11), 11);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    expect_text("-", "from a pipe");
    dup2(saved, STDIN_FILENO);
    close(saved);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_read_map),
        cmocka_unit_test(test_empty_file),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_write_keeps_mode_and_links),
        cmocka_unit_test(test_private_files),
        cmocka_unit_test(test_no_file_takes_a_standard_descriptor),
        cmocka_unit_test(test_write_without_folder_in_the_name),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_standard_input),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
