#include "base/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/random.h"

#define MOST_TRIES 100 // of a file that others put in place, or remove, again and again

static bool fail_errno(mf_error *err, const char *verb, const char *path) {
    int e = errno;
    return mf_fail(err, MF_ERR_IO, "can't %s '%.300s': %s", verb, path, strerror(e));
}

static bool same_file(const struct stat *a, const struct stat *b) {
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool lock_fd(int fd, const char *path, mf_error *err) {
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return fail_errno(err, "lock", path);
        return mf_fail(err, MF_ERR_LIMIT, "'%.300s' is in use by another process", path);
    }
    return true;
}

// ---- Temporary names: the file's, a number, and the ending

#define NUMBER_LEN 17 // a period and 16 digits
#define ENDING     ".tmp"

static bool is_temporary_of(const char *name, const char *base) {
    size_t len = strlen(base);
    if (strncmp(name, base, len) != 0 || name[len] != '.') return false;
    return strspn(name + len + 1, "0123456789abcdef") == NUMBER_LEN - 1 && strcmp(name + len + NUMBER_LEN, ENDING) == 0;
}

// Only who has the lock makes such files, so what is there was left.
static void remove_leftovers(const mf_lock *l) {
    const char *slash = strrchr(l->target, '/');
    char *folder = slash ? mf_copy_text(l->target, slash == l->target ? 1 : (size_t)(slash - l->target)) : NULL;
    DIR *dir = folder ? opendir(folder) : NULL;
    struct stat st;
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (is_temporary_of(e->d_name, slash + 1) && fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode))
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir) closedir(dir);
    free(folder);
}

// ---- Taking

// Opens and locks what stands there now.
static bool open_locked(mf_lock *l, const char *path, bool create, mf_error *err) {
    l->made = false;
    l->fd = mf_fd_open(path, O_RDWR | O_NONBLOCK, 0);
    if (l->fd < 0 && errno == ENOENT && create) {
        l->fd = mf_fd_open(path, O_RDWR | O_CREAT | O_EXCL, 0600); // what people say to a model is theirs
        l->made = l->fd >= 0;
        if (l->fd < 0 && errno == EEXIST) return true; // somebody was faster, or it is a link to nothing
    }
    if (l->fd < 0) return fail_errno(err, "write", path);
    struct stat st;
    if (fstat(l->fd, &st) == 0 && !S_ISREG(st.st_mode))
        return mf_fail(err, MF_ERR_IO, "can't write '%.300s': it is no regular file", path);
    return lock_fd(l->fd, path, err);
}

// Whether what was locked is what stands there: between the two another process may have put a new file in place.
static bool stands_there(mf_lock *l, const char *path) {
    struct stat own, there;
    if (l->fd < 0) return false;
    l->target = realpath(path, NULL);
    if (l->target && fstat(l->fd, &own) == 0 && stat(l->target, &there) == 0 && same_file(&own, &there)) return true;
    free(l->target);
    l->target = NULL;
    return false;
}

static bool check_folder(const mf_lock *l, mf_error *err) {
    char *temporary = NULL;
    int fd = mf_lock_begin(l, &temporary, err);
    if (fd >= 0) mf_lock_drop(fd, temporary);
    free(temporary);
    return fd >= 0;
}

bool mf_lock_take(mf_lock *l, const char *path, bool create, mf_error *err) {
    *l = (mf_lock){.fd = -1};
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        bool ok = open_locked(l, path, create, err), there = ok && stands_there(l, path);
        if (there) {
            remove_leftovers(l);
            ok = check_folder(l, err);
            if (!ok) mf_lock_release(l);
            return ok;
        }
        if (l->fd >= 0) close(l->fd);
        l->fd = -1;
        if (!ok) return false;
    }
    return mf_fail(err, MF_ERR_IO, "can't write '%.300s': no file stays there", path);
}

void mf_lock_release(mf_lock *l) {
    if (!l->target) return;
    bool missing = false;
    if (l->made && mf_lock_check(l, &missing, NULL) && !missing) unlink(l->target);
    close(l->fd);
    free(l->target);
    *l = (mf_lock){.fd = -1};
}

bool mf_lock_check(const mf_lock *l, bool *missing, mf_error *err) {
    struct stat own, there;
    *missing = false;
    if (stat(l->target, &there) != 0) {
        *missing = errno == ENOENT;
        return *missing || fail_errno(err, "write", l->target);
    }
    return (fstat(l->fd, &own) == 0 && same_file(&own, &there)) ||
           mf_fail(err, MF_ERR_IO, "can't write '%.300s': another program has replaced it", l->target);
}

bool mf_lock_is(const mf_lock *l, const char *path) {
    struct stat own, there;
    return l->target && fstat(l->fd, &own) == 0 && stat(path, &there) == 0 && same_file(&own, &there);
}

// ---- Replacing

int mf_lock_begin(const mf_lock *l, char **temporary, mf_error *err) {
    struct stat st;
    mf_buf name = {0};
    mf_buf_printf(&name, "%s.%016" PRIx64 "%s", l->target, mf_random_seed(), ENDING);
    *temporary = name.data;
    if (name.failed) return mf_fail_memory(err, strlen(l->target) + NUMBER_LEN + sizeof ENDING, "a file name"), -1;
    mode_t mode = fstat(l->fd, &st) == 0 ? st.st_mode & 0777 : 0600;
    int fd = mf_fd_open(name.data, O_RDWR | O_CREAT | O_EXCL, mode);
    if (fd < 0) return fail_errno(err, "write", l->target), -1;
    if ((fchmod(fd, mode) == 0 || fail_errno(err, "write", l->target)) && lock_fd(fd, l->target, err)) return fd;
    mf_lock_drop(fd, name.data);
    return -1;
}

bool mf_lock_put(mf_lock *l, int fd, const char *temporary, mf_error *err) {
    bool missing;
    if (!mf_lock_check(l, &missing, err)) return false;
    if (rename(temporary, l->target) != 0) return fail_errno(err, "write", l->target);
    mf_file_sync_folder(l->target);
    close(l->fd);
    l->fd = fd;
    l->made = false;
    return true;
}

void mf_lock_drop(int fd, const char *temporary) {
    unlink(temporary);
    close(fd);
}

bool mf_lock_write(mf_lock *l, const void *data, size_t size, mf_error *err) {
    char *temporary = NULL;
    int fd = mf_lock_begin(l, &temporary, err);
    bool begun = fd >= 0;
    bool ok = begun && ((mf_fd_write(fd, data, size, 0) && fsync(fd) == 0) || fail_errno(err, "write", l->target)) &&
              mf_lock_put(l, fd, temporary, err);
    if (begun && !ok) mf_lock_drop(fd, temporary);
    free(temporary);
    return ok;
}
