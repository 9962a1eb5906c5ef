#define _XOPEN_SOURCE 700 // nftw
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/cpu_linux.h"
#include "support/folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64];

static int make_root(void **state) {
    (void)state;
    return folder_make(root, "cpu") ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static int remove_root(void **state) {
    (void)state;
    return nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

// Writes root/path, with the folders above it.
static void put(const char *path, const char *text) {
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void put_cpu(int cpu, const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, name);
    put(path, text);
}

static const int sixteen[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static void test_nothing_known(void **state) {
    (void)state;
    assert_int_equal(mf_cpu_threads_at(root, sixteen, 6), 6);
    assert_int_equal(mf_cpu_threads_at(root, sixteen, 0), 1);
    assert_int_equal(mf_cpu_parallel_at(root, 6), 6);
    assert_int_equal(mf_cpu_parallel_at(root, 0), 1);
}

// More processors than a cpu_set_t has bits, in a mask with a gap; siblings are told apart by whole numbers.
static void test_thousands_of_processors(void **state) {
    (void)state;
    enum {
        N = 3000
    };
    int cpus[N];
    for (int i = 0; i < N; i++) cpus[i] = i < 1000 ? i : i + 5000;
    assert_int_equal(mf_cpu_threads_at(root, cpus, N), N);
    put_cpu(7999, "topology/thread_siblings_list", "799,7998-7999,9000\n");
    put_cpu(7998, "topology/thread_siblings_list", "5999,7998-7999\n");
    put_cpu(6000, "topology/thread_siblings_list", "1000-5999,6000\n");
    assert_int_equal(mf_cpu_threads_at(root, cpus, N), N - 1);
}

static void test_smt_siblings_count_once(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        char pair[16];
        snprintf(pair, sizeof pair, "%d,%d\n", i % 4, i % 4 + 4);
        put_cpu(i, "topology/thread_siblings_list", pair);
    }
    assert_int_equal(mf_cpu_threads_at(root, sixteen, 8), 4);
    const int upper[] = {4, 5, 6, 7}, mixed[] = {0, 1, 4};
    assert_int_equal(mf_cpu_threads_at(root, upper, 4), 4); // the mask has one of each pair
    assert_int_equal(mf_cpu_threads_at(root, mixed, 3), 2);
    for (int i = 0; i < 8; i++) put_cpu(i, "topology/thread_siblings_list", i < 4 ? "0-3\n" : "4-7\n");
    assert_int_equal(mf_cpu_threads_at(root, sixteen, 8), 2);
}

static void test_performance_cores_only(void **state) {
    (void)state;
    // 4 performance cores with two threads each, 8 efficient ones.
    for (int i = 0; i < 16; i++) {
        char pair[16];
        snprintf(pair, sizeof pair, i < 8 ? "%d-%d\n" : "%d\n", i < 8 ? i & ~1 : i, i | 1);
        put_cpu(i, "topology/thread_siblings_list", pair);
    }
    put("/sys/devices/cpu_core/cpus", "0-7\n");
    assert_int_equal(mf_cpu_threads_at(root, sixteen, 16), 4);
    assert_int_equal(mf_cpu_threads_at(root, sixteen + 8, 8), 8); // only efficient ones are allowed: all of them
    assert_int_equal(mf_cpu_threads_at(root, sixteen + 6, 4), 1);
}

static void test_capacities(void **state) {
    (void)state;
    // One fastest core, three nearly as fast, four efficient ones.
    for (int i = 0; i < 8; i++) put_cpu(i, "cpu_capacity", i == 7 ? "1024\n" : i >= 4 ? "800\n" : "250\n");
    assert_int_equal(mf_cpu_threads_at(root, sixteen, 8), 4);
    assert_int_equal(mf_cpu_threads_at(root, sixteen, 4), 4);
}

static void test_quota_v2(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/user.slice/job.scope\n");
    put("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/user.slice/cpu.max", "250000 100000\n");
    assert_int_equal(mf_cpu_parallel_at(root, 16), 3); // 2.5 rounded up
    assert_int_equal(mf_cpu_threads_at(root, sixteen, 16), 3);
    assert_int_equal(mf_cpu_parallel_at(root, 2), 2);
    put("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "10000 100000\n");
    assert_int_equal(mf_cpu_parallel_at(root, 16), 1);
    put("/sys/fs/cgroup/user.slice/job.scope/cpu.max", "garbage\n");
    put("/sys/fs/cgroup/user.slice/cpu.max", "99999999999999999999999999 100000\n");
    put("/sys/fs/cgroup/cpu.max", "400000 50000\n"); // a container's own group is at the mount
    assert_int_equal(mf_cpu_parallel_at(root, 16), 8);
}

static void test_quota_v1(void **state) {
    (void)state;
    put("/proc/self/cgroup", "12:cpu,cpuacct:/docker/abc\n5:memory:/docker/abc\n1:name=systemd:/\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(mf_cpu_parallel_at(root, 16), 2);
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(mf_cpu_parallel_at(root, 16), 16);
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "500000\n");
    put("/sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    assert_int_equal(mf_cpu_parallel_at(root, 16), 5);
}

#define MEMINFO "MemTotal:       16000000 kB\nMemFree:         1000000 kB\nMemAvailable:    8000000 kB\n"

static void test_memory(void **state) {
    (void)state;
    put("/proc/meminfo", MEMINFO);
    assert_true(mf_memory_available_at(root) == 8000000ull * 1024);
    put("/proc/self/cgroup", "0::/a/b\n");
    put("/sys/fs/cgroup/a/b/memory.max", "max\n");
    put("/sys/fs/cgroup/a/b/memory.current", "4096\n");
    assert_true(mf_memory_available_at(root) == 8000000ull * 1024);
    put("/sys/fs/cgroup/a/memory.max", "1000000000\n");
    put("/sys/fs/cgroup/a/memory.current", "700000000\n");
    assert_true(mf_memory_available_at(root) == 300000000);
    put("/sys/fs/cgroup/a/memory.stat", "anon 100\nfile 500000000\nactive_file 50000000\ninactive_file 100000000\n");
    assert_true(mf_memory_available_at(root) == 450000000); // the page cache gives way
    put("/sys/fs/cgroup/a/b/memory.high", "5000\n");
    assert_true(mf_memory_available_at(root) == 904);
    put("/sys/fs/cgroup/a/b/memory.current", "6000\n");
    assert_true(mf_memory_available_at(root) == 0);
}

static void test_memory_v1(void **state) {
    (void)state;
    put("/proc/meminfo", MEMINFO);
    put("/proc/self/cgroup", "4:memory:/x\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5000000\n");
    put("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "2000000\n");
    put("/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1500000\n");
    put("/sys/fs/cgroup/memory/x/memory.stat", "inactive_file 7\ntotal_inactive_file 100000\ntotal_active_file 100000");
    assert_true(mf_memory_available_at(root) == 700000);
}

static void test_broken_files_are_survived(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "\n",
                                        ":",
                                        "::",
                                        "0::",
                                        "0::/../../..\n",
                                        "0::///a///\n",
                                        "x",
                                        "1:cpu,memory",
                                        "1:cpu,memory:\n1:,,cpu:a",
                                        "0-",
                                        "-",
                                        ",,,",
                                        "5-2",
                                        "0-99999999999999999999",
                                        "\xff\xff"};
    static const char *const paths[] = {
        "/proc/self/cgroup",          "/proc/meminfo",
        "/sys/devices/cpu_core/cpus", "/sys/fs/cgroup/cpu.max",
        "/sys/fs/cgroup/memory.max",  "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list"};
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            put(paths[p], texts[i]);
            assert_in_range(mf_cpu_threads_at(root, sixteen, 16), 1, 16);
            mf_memory_available_at(root);
        }
    }
    char *long_text = malloc(100000);
    memset(long_text, '/', 99999);
    memcpy(long_text, "0::", 3);
    long_text[99999] = 0;
    put("/proc/self/cgroup", long_text);
    assert_in_range(mf_cpu_threads_at(root, sixteen, 16), 1, 16);
    free(long_text);
}

static void test_this_machine(void **state) {
    (void)state;
    const mf_cpu_features *f = mf_cpu_features_get();
    assert_ptr_equal(f, mf_cpu_features_get());
    assert_true(strlen(mf_cpu_name()) > 0 && strlen(mf_cpu_name()) < 64);
    assert_in_range(mf_cpu_default_threads(), 1, sysconf(_SC_NPROCESSORS_CONF));
    assert_in_range(mf_cpu_parallel(), mf_cpu_default_threads(), sysconf(_SC_NPROCESSORS_CONF));
    assert_true(mf_memory_available() > 0);
    assert_true(mf_memory_resident() > 100000 && mf_memory_resident() < (uint64_t)1 << 40);
#if defined(__x86_64__)
    __builtin_cpu_init(); // the compiler's own reading of the same registers
    assert_int_equal(f->avx2, !!__builtin_cpu_supports("avx2") && !!__builtin_cpu_supports("fma"));
    assert_int_equal(f->avx512, !!__builtin_cpu_supports("avx512bw") && !!__builtin_cpu_supports("avx512vl"));
    assert_int_equal(f->avx512vnni, f->avx512 && !!__builtin_cpu_supports("avx512vnni"));
    assert_false(f->neon);
#elif defined(__aarch64__)
    assert_true(f->neon);
    assert_false(f->avx2);
#endif
}

int main(void) {
#define IN_FRESH_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        IN_FRESH_ROOT(test_nothing_known),
        IN_FRESH_ROOT(test_smt_siblings_count_once),
        IN_FRESH_ROOT(test_thousands_of_processors),
        IN_FRESH_ROOT(test_performance_cores_only),
        IN_FRESH_ROOT(test_capacities),
        IN_FRESH_ROOT(test_quota_v2),
        IN_FRESH_ROOT(test_quota_v1),
        IN_FRESH_ROOT(test_memory),
        IN_FRESH_ROOT(test_memory_v1),
        IN_FRESH_ROOT(test_broken_files_are_survived),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
