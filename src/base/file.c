#include "base/file.h"

#include "base/mem.h"
#include "base/random.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail_errno(mf_error *err, const char *verb, const char *path) {
    int e = errno;
    return mf_fail(err, MF_ERR_IO, "can't %s '%.300s': %s", verb, path, strerror(e));
}

int mf_fd_open(const char *path, int flags, mode_t mode) {
    int fd = open(path, flags | O_CLOEXEC, mode);
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), e = errno;
    close(fd);
    errno = e;
    return above;
}

void mf_file_wait(int fd, short events) {
    struct pollfd wait = {.fd = fd, .events = events};
    poll(&wait, 1, -1);
}

static bool read_fd(int fd, const char *path, size_t limit, mf_buf *out, mf_error *err) {
    char piece[16384];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {
            mf_file_wait(fd, POLLIN);
            continue;
        }
        if (n < 0) return fail_errno(err, "read", path);
        if (n == 0) break;
        if ((size_t)n > limit - out->len)
            return mf_fail(err, MF_ERR_LIMIT, "'%.300s' is larger than the limit of %zu bytes", path, limit);
        mf_buf_add(out, piece, (size_t)n);
        if (out->failed) return mf_fail_memory(err, out->len + (size_t)n, "a file's text");
    }
    mf_buf_add(out, NULL, 0); // an empty file is an empty, NUL-terminated text
    return !out->failed || mf_fail_memory(err, 1, "a file's text");
}

bool mf_file_read(const char *path, size_t limit, mf_buf *out, mf_error *err) {
    *out = (mf_buf){0};
    bool standard_input = strcmp(path, "-") == 0;
    int fd = standard_input ? STDIN_FILENO : mf_fd_open(path, O_RDONLY, 0);
    if (fd < 0) return fail_errno(err, "open", path);
    bool ok = read_fd(fd, standard_input ? "standard input" : path, limit, out, err);
    if (!standard_input) close(fd);
    if (!ok) {
        free(out->data);
        *out = (mf_buf){0};
    }
    return ok;
}

bool mf_file_read_text(const char *path, size_t limit, mf_buf *out, mf_error *err) {
    static const char mark[] = "\xEF\xBB\xBF";
    if (!mf_file_read(path, limit, out, err)) return false;
    if (out->len < 3 || memcmp(out->data, mark, 3) != 0) return true;
    out->len -= 3;
    memmove(out->data, out->data + 3, out->len + 1); // with the NUL
    return true;
}

bool mf_fd_write(int fd, const void *data, size_t size, int64_t at) {
    for (size_t done = 0; done < size;) {
        const char *bytes = (const char *)data + done;
        size_t piece = size - done < (1u << 30) ? size - done : (1u << 30);
        ssize_t n = at < 0 ? write(fd, bytes, piece) : pwrite(fd, bytes, piece, (off_t)at + (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        done += (size_t)n;
    }
    return true;
}

// An absolute $XDG_CACHE_HOME, as its specification asks.
char *mf_cache_path(const char *name) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    mf_buf path = {0};
    if (cache && cache[0] == '/')
        mf_buf_printf(&path, "%s/minfer/%s", cache, name);
    else if (home && *home)
        mf_buf_printf(&path, "%s/.cache/minfer/%s", home, name);
    if (!path.failed) return path.data;
    free(path.data);
    return NULL;
}

void mf_file_make_folders(const char *file) {
    char *path = mf_copy_text(file, strlen(file));
    for (char *slash = path ? strchr(path + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    free(path);
}

void mf_file_sync_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? mf_copy_text(path, slash == path ? 1 : (size_t)(slash - path)) : NULL;
    int fd = slash && !folder ? -1 : mf_fd_open(folder ? folder : ".", O_RDONLY | O_DIRECTORY, 0);
    free(folder);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

// Fills the temporary file and puts it in the place of target, whose mode it takes over (old: its state, NULL when it does
// not exist).
static bool replace(int fd, const char *temporary, const char *target, const struct stat *old, const void *data,
                    size_t size) {
    bool ok = mf_fd_write(fd, data, size, -1) && (!old || fchmod(fd, old->st_mode & 07777) == 0) && fsync(fd) == 0;
    int e = errno;
    if (close(fd) != 0 && ok) {
        ok = false;
        e = errno;
    }
    if (ok && rename(temporary, target) != 0) {
        ok = false;
        e = errno;
    }
    if (ok) {
        mf_file_sync_folder(target);
    } else {
        unlink(temporary);
        errno = e;
    }
    return ok;
}

// mode: of a new file.
static bool write_whole(const char *target, const struct stat *old, mode_t mode, const void *data, size_t size,
                        mf_error *err) {
    mf_buf temporary = {0};
    int fd = -1;
    // Not mkstemp: its mode 0600 could be widened to what the umask allows only by changing the umask of every thread. At no moment
    // can more people read the file than could read the old one.
    if (old) mode = old->st_mode & 0666;
    for (int tries = 0; fd < 0 && tries < 16; tries++) {
        temporary.len = 0;
        mf_buf_printf(&temporary, "%s.%016" PRIx64, target, mf_random_seed());
        if (temporary.failed) break;
        fd = mf_fd_open(temporary.data, O_WRONLY | O_CREAT | O_EXCL, mode);
        if (fd < 0 && errno != EEXIST) break;
    }
    bool ok = fd >= 0 && replace(fd, temporary.data, target, old, data, size);
    if (!ok && temporary.failed) mf_fail_memory(err, strlen(target) + 18, "a file name");
    if (!ok && !temporary.failed) fail_errno(err, "write", target);
    free(temporary.data);
    return ok;
}

static bool write_with(const char *path, mode_t mode, const void *data, size_t size, mf_error *err) {
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode)) return mf_fail(err, MF_ERR_IO, "can't write '%.300s': it is a directory", path);
    if (exists && !S_ISREG(st.st_mode)) { // a terminal, a pipe: there is nothing to put in place
        int fd = mf_fd_open(path, O_WRONLY, 0);
        if (fd < 0) return fail_errno(err, "open", path);
        bool ok = mf_fd_write(fd, data, size, -1) || fail_errno(err, "write", path);
        close(fd);
        return ok;
    }
    // Through a symbolic link the file it names is replaced, not the link.
    char *target = exists ? realpath(path, NULL) : mf_copy_text(path, strlen(path));
    if (!target) return exists ? fail_errno(err, "open", path) : mf_fail_memory(err, strlen(path) + 1, "a file name");
    bool ok = write_whole(target, exists ? &st : NULL, mode, data, size, err);
    free(target);
    return ok;
}

bool mf_file_write(const char *path, const void *data, size_t size, mf_error *err) {
    return write_with(path, 0666, data, size, err);
}

bool mf_file_write_private(const char *path, const void *data, size_t size, mf_error *err) {
    return write_with(path, 0600, data, size, err);
}
