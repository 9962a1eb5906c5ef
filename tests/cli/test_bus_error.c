// A file that is cut while its map is read ends the program with one sentence and 1; any other bus error stays what it is.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/terminal.h"
#include "support/folder.h"

#define SIZE ((size_t)1 << 20)

static char folder[64];

// Cuts the file and reads behind its end; `ours`: through a map of ours.
static void read_what_is_cut(const char *path, bool ours) {
    const struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    mf_terminal_guard();
    mf_error err;
    mf_file_map map;
    const volatile uint8_t *data = NULL;
    if (ours && mf_file_map_open(&map, path, &err)) data = map.data;
    if (!ours) data = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, open(path, O_RDONLY), 0);
    if (!data || truncate(path, 10) != 0) _exit(99);
    if (ours && mf_file_map_check(&map, &err)) _exit(98);
    _exit(data[SIZE / 2]);
}

// The status with which a child ends, and what it said.
static int child(const char *path, bool ours, char *said, size_t size) {
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        dup2(pipes[1], STDERR_FILENO);
        read_what_is_cut(path, ours);
    }
    close(pipes[1]);
    size_t n = 0;
    for (ssize_t got; n < size - 1 && (got = read(pipes[0], said + n, size - 1 - n)) > 0;) n += (size_t)got;
    said[n] = 0;
    close(pipes[0]);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void a_cut_file(void **state) {
    (void)state;
    char path[128], said[512], want[512];
    snprintf(path, sizeof path, "%s/cut\033.bin", folder);
    char *zeros = calloc(SIZE, 1);
    assert_non_null(zeros);
    assert_true(mf_file_write(path, zeros, SIZE, NULL));
    int status = child(path, true, said, sizeof said);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    snprintf(want, sizeof want, "error: '%s/cut?.bin' has been cut or can't be read any more while it is in use\n", folder);
    assert_string_equal(said, want);
    assert_true(mf_file_write(path, zeros, SIZE, NULL));
    status = child(path, false, said, sizeof said);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
    assert_string_equal(said, "");
    unlink(path);
    free(zeros);
}

// Maps come and go; an address is found in those that are open.
static void maps_are_listed(void **state) {
    (void)state;
    char path[3][128];
    mf_file_map maps[3];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            snprintf(path[i], sizeof path[i], "%s/%d", folder, i);
            assert_true(mf_file_write(path[i], "0123456789", 10, NULL));
            assert_true(mf_file_map_open(&maps[i], path[i], NULL));
        }
        const uint8_t *data = maps[1].data;
        for (int i = 0; i < 3; i++) assert_string_equal(mf_file_map_at(maps[i].data + 9), path[i]);
        assert_null(mf_file_map_at(data + 10));
        assert_null(mf_file_map_at(path));
        mf_file_map_close(&maps[1]);
        assert_null(mf_file_map_at(data));
        assert_string_equal(mf_file_map_at(maps[2].data), path[2]);
        mf_file_map_close(&maps[0]);
        mf_file_map_close(&maps[2]);
    }
    for (int i = 0; i < 3; i++) unlink(path[i]);
}

static int make_folder(void **state) {
    (void)state;
    return folder_make(folder, "cut") ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_cut_file), cmocka_unit_test(maps_are_listed)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
