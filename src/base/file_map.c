// Read-only maps of files, and a list of those that are open, for a handler of SIGBUS to look into.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/utf8.h"

#define SHOWN_BYTES 304

// An entry of the list. Entries are never freed, so that a handler can walk over them at any time; one without data is used again.
struct mf_mapped_file {
    mf_mapped_file *next;
    _Atomic(uintptr_t) data; // 0: free
    atomic_size_t size;
    int fd;
    char shown[SHOWN_BYTES];
};

static _Atomic(mf_mapped_file *) list;
static pthread_mutex_t list_turn = PTHREAD_MUTEX_INITIALIZER;

static mf_mapped_file *free_entry(void) {
    mf_mapped_file *e = atomic_load(&list);
    while (e && atomic_load(&e->data)) e = e->next;
    if (e || !(e = mf_alloc(1, sizeof *e))) return e;
    e->next = atomic_load(&list);
    atomic_store(&list, e);
    return e;
}

// Lists a map; false when memory is out.
static bool enlist(mf_file_map *map, int fd, const char *path) {
    pthread_mutex_lock(&list_turn);
    mf_mapped_file *e = map->file = free_entry();
    if (e) {
        e->fd = fd;
        const int n = snprintf(e->shown, sizeof e->shown, "%.300s", path);
        mf_utf8_clean(e->shown, n < 0 ? 0 : (size_t)n < sizeof e->shown ? (size_t)n : sizeof e->shown - 1);
        atomic_store(&e->size, map->size);
        atomic_store(&e->data, (uintptr_t)map->data);
    }
    pthread_mutex_unlock(&list_turn);
    return e != NULL;
}

const char *mf_file_map_at(const void *address) {
    const uintptr_t at = (uintptr_t)address;
    for (mf_mapped_file *e = atomic_load(&list); e; e = e->next) {
        const uintptr_t data = atomic_load(&e->data);
        if (data && at >= data && at - data < atomic_load(&e->size)) return e->shown;
    }
    return NULL;
}

static bool fail_errno(mf_error *err, const char *verb, const char *path) {
    int e = errno;
    return mf_fail(err, MF_ERR_IO, "can't %s '%.300s': %s", verb, path, strerror(e));
}

static int64_t nanoseconds(struct timespec t) { return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec; }

static mf_file_stamp stamp_from(const struct stat *st) {
    return (mf_file_stamp){(uint64_t)st->st_dev, (uint64_t)st->st_ino, (uint64_t)st->st_size, nanoseconds(st->st_mtim),
                           nanoseconds(st->st_ctim)};
}

bool mf_file_stamp_of(const char *path, mf_file_stamp *out) {
    struct stat st;
    if (stat(path, &st) != 0) return false;
    *out = stamp_from(&st);
    return true;
}

static bool map_fd(mf_file_map *map, int fd, const char *path, mf_error *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) return fail_errno(err, "open", path);
    if (S_ISDIR(st.st_mode)) return mf_fail(err, MF_ERR_IO, "can't open '%.300s': it is a directory", path);
    if (!S_ISREG(st.st_mode)) return mf_fail(err, MF_ERR_IO, "can't open '%.300s': not a regular file", path);
    if ((uintmax_t)st.st_size > SIZE_MAX) return mf_fail(err, MF_ERR_IO, "can't map '%.300s': too large", path);
    if (st.st_size == 0) return true;
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return fail_errno(err, "map", path);
    *map = (mf_file_map){data, (size_t)st.st_size, stamp_from(&st), NULL};
    if (enlist(map, fd, path)) return true;
    munmap(data, map->size);
    *map = (mf_file_map){0};
    return mf_fail_memory(err, sizeof *map->file, "a file's map");
}

bool mf_file_map_open(mf_file_map *map, const char *path, mf_error *err) {
    *map = (mf_file_map){0};
    int fd = mf_fd_open(path, O_RDONLY | O_NONBLOCK, 0); // a FIFO must not hang here
    if (fd < 0) return fail_errno(err, "open", path);
    bool ok = map_fd(map, fd, path, err);
    if (!map->file) close(fd); // else it stays open for mf_file_map_check
    return ok;
}

bool mf_file_map_check(const mf_file_map *map, mf_error *err) {
    struct stat st;
    if (!map->file || fstat(map->file->fd, &st) != 0) return true;
    const mf_file_stamp now = stamp_from(&st); // the time of its last change is also that of its links
    return (now.size == map->stamp.size && now.modified == map->stamp.modified) ||
           mf_fail(err, MF_ERR_IO, "'%s' has changed while it was in use", map->file->shown);
}

void mf_file_map_drop(const mf_file_map *map, size_t offset, size_t size) {
    if (offset >= map->size) return;
    if (size > map->size - offset) size = map->size - offset;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = mf_align_up(offset, page), end = offset + size;
    // The last page of the file ends with it.
    size_t last = end == map->size ? mf_align_up(end, page) : end & ~(page - 1);
    if (first < last) madvise((void *)(uintptr_t)(map->data + first), last - first, MADV_DONTNEED);
}

void mf_file_map_close(mf_file_map *map) {
    if (map->file) {
        pthread_mutex_lock(&list_turn);
        close(map->file->fd);
        munmap((void *)(uintptr_t)map->data, map->size);
        atomic_store(&map->file->data, 0);
        pthread_mutex_unlock(&list_turn);
    }
    *map = (mf_file_map){0};
}
