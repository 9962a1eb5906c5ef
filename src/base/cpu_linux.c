#define _GNU_SOURCE // sched_getaffinity and masks of any size
#include "base/cpu_linux.h"

#include "base/cpu.h"
#include "base/mem.h"
#include "base/promise.h"
#include "base/text.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// A text file of /proc or /sys, cut at the buffer's end; false where it can't be read.
typedef struct text_file {
    char text[16384];
    size_t len;
} text_file;

static bool read_text(text_file *file, const char *root, const char *path) {
    char full[PATH_MAX];
    int n = snprintf(full, sizeof full, "%s%s", root, path);
    if (n < 0 || (size_t)n >= sizeof full) return false;
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    file->len = 0;
    ssize_t got;
    while (file->len < sizeof file->text - 1 &&
           (got = read(fd, file->text + file->len, sizeof file->text - 1 - file->len)) > 0)
        file->len += (size_t)got;
    file->text[file->len] = 0;
    close(fd);
    return file->len > 0;
}

// Decimal digits at *text; moves behind them. False where there are none or the value passes 2^63.
static bool take_u63(const char **text, uint64_t *out) {
    const char *p = *text;
    uint64_t value = 0;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (value > (INT64_MAX - 9) / 10) return false;
        value = value * 10 + (uint64_t)(*p - '0');
    }
    if (p == *text) return false;
    *text = p;
    *out = value;
    return true;
}

static bool read_u63(const char *root, const char *path, uint64_t *out) {
    text_file file;
    if (!read_text(&file, root, path)) return false;
    const char *p = file.text;
    return take_u63(&p, out);
}

// Whether one of n processors, which ascend, is in a list such as "0-3,8".
static bool any_in_list(const int *cpus, int n, const char *list) {
    uint64_t first, last;
    while (take_u63(&list, &first)) {
        last = first;
        if (*list == '-') {
            list++;
            if (!take_u63(&list, &last)) return false;
        }
        int low = 0, high = n; // the first one that is not below the range
        while (low < high) {
            const int middle = low + (high - low) / 2;
            if ((uint64_t)cpus[middle] < first)
                low = middle + 1;
            else
                high = middle;
        }
        if (low < n && (uint64_t)cpus[low] <= last) return true;
        if (*list == ',') list++;
    }
    return false;
}

// Keeps the performance cores where there are two kinds: those of Intel's cpu_core device, else those with more than half
// of the largest cpu_capacity (Arm; the cores between the fastest and the efficient ones are worth a thread).
static int keep_performance_cores(const char *root, int *cpus, int n) {
    text_file core;
    bool intel = read_text(&core, root, "/sys/devices/cpu_core/cpus");
    uint64_t largest = 0, *capacity = mf_alloc((size_t)n, sizeof *capacity);
    if (!capacity) return n;
    for (int i = 0; i < n; i++) {
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpu_capacity", cpus[i]);
        if (intel) {
            capacity[i] = any_in_list(&cpus[i], 1, core.text);
        } else if (!read_u63(root, path, &capacity[i])) {
            capacity[i] = 0;
        }
        if (capacity[i] > largest) largest = capacity[i];
    }
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (largest == 0 || capacity[i] > largest / 2) cpus[kept++] = cpus[i];
    free(capacity);
    return kept;
}

// How many cores the processors are, counting SMT siblings once: those without a lower sibling in the set.
static int count_cores(const char *root, const int *cpus, int n) {
    int cores = 0;
    for (int i = 0; i < n; i++) {
        text_file siblings;
        char path[96];
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpus[i]);
        cores += !read_text(&siblings, root, path) || !any_in_list(cpus, i, siblings.text);
    }
    return cores;
}

// A cgroup folder of this process, and every folder above it up to its hierarchy's mount, are visited from the inside out.
typedef void cgroup_visitor(const char *root, const char *folder, bool v2, void *arg);

static void walk_up(const char *root, const char *mount, mf_str path, bool v2, cgroup_visitor *visit, void *arg) {
    char folder[PATH_MAX];
    size_t base = strlen(mount);
    if (base + path.len + 1 > sizeof folder) return;
    memcpy(folder, mount, base);
    if (path.len) memcpy(folder + base, path.ptr, path.len);
    size_t len = base + path.len;
    for (;;) {
        while (len > base && folder[len - 1] == '/') len--;
        folder[len] = 0;
        visit(root, folder, v2, arg);
        if (len == base) return;
        while (len > base && folder[len - 1] != '/') len--;
    }
}

static bool has_controller(mf_str list, const char *name) {
    while (list.len) {
        const char *comma = memchr(list.ptr, ',', list.len);
        size_t n = comma ? (size_t)(comma - list.ptr) : list.len;
        if (mf_str_is((mf_str){list.ptr, n}, name)) return true;
        list.ptr += n + (comma != NULL);
        list.len -= n + (comma != NULL);
    }
    return false;
}

// /proc/self/cgroup has a line "number:controllers:path" for each hierarchy; v2's has no controllers.
static void visit_cgroups(const char *root, const char *controller, cgroup_visitor *visit, void *arg) {
    text_file file;
    if (!read_text(&file, root, "/proc/self/cgroup")) return;
    for (char *line = file.text, *end; *line; line = end + (*end != 0)) {
        end = line + strcspn(line, "\n");
        char *first = memchr(line, ':', (size_t)(end - line));
        char *second = first ? memchr(first + 1, ':', (size_t)(end - first - 1)) : NULL;
        if (!second) continue;
        mf_str controllers = {first + 1, (size_t)(second - first - 1)}, path = {second + 1, (size_t)(end - second - 1)};
        if (controllers.len == 0) {
            walk_up(root, "/sys/fs/cgroup", path, true, visit, arg);
            walk_up(root, "/sys/fs/cgroup/unified", path, true, visit, arg);
        } else if (has_controller(controllers, controller)) {
            char mount[64];
            snprintf(mount, sizeof mount, "/sys/fs/cgroup/%s", controller);
            walk_up(root, mount, path, false, visit, arg);
        }
    }
}

static bool cgroup_text(text_file *file, const char *root, const char *folder, const char *name) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    return n > 0 && (size_t)n < sizeof path && read_text(file, root, path);
}

// A number of a cgroup; false where it is missing, "max" or negative (no limit).
static bool cgroup_u63(const char *root, const char *folder, const char *name, uint64_t *out) {
    text_file file;
    if (!cgroup_text(&file, root, folder, name)) return false;
    const char *p = file.text;
    return take_u63(&p, out);
}

// *arg: the least number of processors that any of the visited groups' quota comes to.
static void take_quota(const char *root, const char *folder, bool v2, void *arg) {
    uint64_t quota, period = 100000, *least = arg;
    if (v2) {
        text_file file;
        if (!cgroup_text(&file, root, folder, "cpu.max")) return;
        const char *p = file.text;
        if (!take_u63(&p, &quota)) return;
        while (*p == ' ') p++;
        take_u63(&p, &period);
    } else {
        if (!cgroup_u63(root, folder, "cpu.cfs_quota_us", &quota)) return;
        cgroup_u63(root, folder, "cpu.cfs_period_us", &period);
    }
    if (quota == 0 || period == 0) return;
    uint64_t processors = (quota - 1) / period + 1;
    if (processors < *least) *least = processors;
}

int mf_cpu_parallel_at(const char *root, int n_cpus) {
    uint64_t least = n_cpus > 0 ? (uint64_t)n_cpus : 1;
    visit_cgroups(root, "cpu", take_quota, &least);
    return (int)least;
}

int mf_cpu_threads_at(const char *root, const int *cpus, int n_cpus) {
    if (n_cpus < 1) return 1;
    int *kept = mf_alloc((size_t)n_cpus, sizeof *kept);
    if (!kept) return 1;
    memcpy(kept, cpus, (size_t)n_cpus * sizeof *kept);
    int n = keep_performance_cores(root, kept, n_cpus);
    n = count_cores(root, kept, n);
    free(kept);
    return mf_cpu_parallel_at(root, n);
}

// The value of a line "name value" of memory.stat; 0 where it is missing.
static uint64_t stat_value(const text_file *file, const char *name) {
    size_t len = strlen(name);
    for (const char *line = file->text; *line;) {
        if (strncmp(line, name, len) == 0 && line[len] == ' ') {
            const char *p = line + len + 1;
            uint64_t value;
            return take_u63(&p, &value) ? value : 0;
        }
        line += strcspn(line, "\n");
        line += *line != 0;
    }
    return 0;
}

// *arg: the least number of bytes that any of the visited groups has left. The page cache counts as use there, but gives way.
static void take_memory_left(const char *root, const char *folder, bool v2, void *arg) {
    uint64_t limit = UINT64_MAX, high, used, *least = arg;
    if (v2) {
        if (cgroup_u63(root, folder, "memory.high", &high)) limit = high;
        if (cgroup_u63(root, folder, "memory.max", &high) && high < limit) limit = high;
        if (limit == UINT64_MAX || !cgroup_u63(root, folder, "memory.current", &used)) return;
    } else {
        if (!cgroup_u63(root, folder, "memory.limit_in_bytes", &limit)) return;
        if (!cgroup_u63(root, folder, "memory.usage_in_bytes", &used)) return;
    }
    text_file stat;
    if (cgroup_text(&stat, root, folder, "memory.stat")) {
        uint64_t cache = stat_value(&stat, v2 ? "inactive_file" : "total_inactive_file") +
                         stat_value(&stat, v2 ? "active_file" : "total_active_file");
        used -= cache < used ? cache : used;
    }
    uint64_t left = limit > used ? limit - used : 0;
    if (left < *least) *least = left;
}

uint64_t mf_memory_available_at(const char *root) {
    text_file file;
    uint64_t available = 0;
    if (read_text(&file, root, "/proc/meminfo")) {
        const char *line = strstr(file.text, "MemAvailable:");
        if (line) {
            line += strlen("MemAvailable:");
            while (*line == ' ') line++;
            if (take_u63(&line, &available)) available *= 1024;
        }
    }
    if (available == 0) { // no /proc: what is free without taking from any cache
        long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
        if (pages > 0 && page > 0) available = (uint64_t)pages * (uint64_t)page;
    }
    visit_cgroups(root, "memory", take_memory_left, &available);
    return available;
}

// The processors of the affinity mask, ascending, in *cpus (freed by the caller); 0 where they can't be had.
static int affinity(int **cpus) {
    *cpus = NULL;
    for (int most = 1024; most <= 65536; most *= 4) { // the kernel refuses a mask shorter than its own
        cpu_set_t *set = CPU_ALLOC(most);
        size_t size = CPU_ALLOC_SIZE(most);
        if (!set) return 0;
        if (sched_getaffinity(0, size, set) != 0) {
            CPU_FREE(set);
            continue;
        }
        int n = 0, count = CPU_COUNT_S(size, set);
        *cpus = mf_alloc((size_t)count, sizeof **cpus);
        for (int i = 0; *cpus && i < most && n < count; i++)
            if (CPU_ISSET_S(i, size, set)) (*cpus)[n++] = i;
        CPU_FREE(set);
        return n;
    }
    return 0;
}

int mf_cpu_default_threads(void) {
    int *cpus, n = affinity(&cpus);
    int threads = mf_cpu_threads_at("", cpus, n);
    free(cpus);
    return threads;
}

int mf_cpu_parallel(void) {
    int *cpus, n = affinity(&cpus);
    free(cpus);
    return mf_cpu_parallel_at("", n);
}

uint64_t mf_memory_available(void) {
    const uint64_t available = mf_memory_available_at(""), promised = mf_promise_untouched();
    return available > promised ? available - promised : 0;
}

uint64_t mf_memory_resident(void) {
    text_file file;
    if (!read_text(&file, "", "/proc/self/statm")) return 0;
    const char *p = file.text;
    uint64_t pages;
    if (!take_u63(&p, &pages) || *p++ != ' ' || !take_u63(&p, &pages)) return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
