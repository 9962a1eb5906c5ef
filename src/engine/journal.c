#include "engine/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"

typedef struct file_head {
    char magic[8];
    uint32_t version, zero;
} file_head;

typedef struct record_head {
    uint32_t magic, kind;
    uint64_t size, payload_hash;
    uint64_t head_hash; // of the fields before, under the offset of the record
} record_head;

static const file_head file_start = {"minfer\x1aS", MF_JOURNAL_VERSION, 0};

#define RECORD_MAGIC 0x4352464dU // "MFRC"

static uint64_t padded(uint64_t size) { return (size + 7) / 8 * 8; }

static uint64_t hash_of_head(const record_head *h, uint64_t at) { return mf_hash(h, offsetof(record_head, head_hash), at); }

// Hashed as the two pieces that a payload is written from.
static uint64_t hash_of_payload(const void *a, size_t n_a, const void *b, size_t n_b, uint64_t at) {
    return mf_hash(b, n_b, mf_hash(a, n_a, at));
}

// The fixed part of a record of this kind: what its payload hash takes first.
static size_t first_piece(uint32_t kind) {
    static const size_t sizes[] = {0, 48, 8, 8, 32};
    return kind < sizeof sizes / sizeof sizes[0] ? sizes[kind] : 0;
}

// ---- Reading

static bool head_at(const uint8_t *image, size_t size, uint64_t at, record_head *h) {
    if (at > size || size - at < sizeof *h) return false;
    memcpy(h, image + at, sizeof *h);
    return h->magic == RECORD_MAGIC && h->head_hash == hash_of_head(h, at);
}

static bool whole_record(const uint8_t *image, size_t size, uint64_t at, mf_record *out) {
    record_head h;
    if (!head_at(image, size, at, &h)) return false;
    uint64_t left = size - at - sizeof h;
    if (h.size > left || padded(h.size) > left || h.size < first_piece(h.kind)) return false;
    const uint8_t *data = image + at + sizeof h;
    size_t first = first_piece(h.kind), n = (size_t)h.size;
    if (h.payload_hash != hash_of_payload(data, first, data + first, n - first, at)) return false;
    for (uint64_t i = h.size; i < padded(h.size); i++)
        if (data[i]) return false;
    *out = (mf_record){h.kind, data, n, at + sizeof h + padded(h.size)};
    return true;
}

// Whether a commit stands somewhere behind a record that is not whole. A commit is written after all before it is on the disk.
static bool commit_behind(const uint8_t *image, size_t size, uint64_t at) {
    record_head h;
    for (at += 8; at < size; at += 8)
        if (head_at(image, size, at, &h) && h.kind == MF_RECORD_COMMIT) return true;
    return false;
}

bool mf_journal_check(const uint8_t *image, size_t size, uint64_t *end, mf_error *err) {
    file_head head;
    mf_record r;
    if (size < sizeof head || memcmp(image, file_start.magic, sizeof head.magic) != 0)
        return mf_fail(err, MF_ERR_FORMAT, "this is no session of minfer");
    memcpy(&head, image, sizeof head);
    if (head.version != MF_JOURNAL_VERSION || head.zero)
        return mf_fail(err, MF_ERR_UNSUPPORTED, "the session's format is version %" PRIu32 "; this is version %d",
                       head.version, MF_JOURNAL_VERSION);
    uint64_t at = sizeof head;
    *end = 0;
    for (; whole_record(image, size, at, &r); at = r.end)
        if (r.kind == MF_RECORD_COMMIT) *end = r.end;
    if (at < size && commit_behind(image, size, at))
        return mf_fail(err, MF_ERR_FORMAT, "the session is damaged at byte %" PRIu64, at);
    return *end || mf_fail(err, MF_ERR_FORMAT, "the session has nothing that was committed");
}

bool mf_journal_next(const uint8_t *image, uint64_t end, uint64_t *at, mf_record *out) {
    record_head h;
    if (!*at) *at = sizeof(file_head);
    if (*at >= end) return false;
    memcpy(&h, image + *at, sizeof h);
    *out = (mf_record){h.kind, image + *at + sizeof h, (size_t)h.size, *at + sizeof h + padded(h.size)};
    *at = out->end;
    return true;
}

// ---- Writing

static bool fail_errno(mf_error *err, const char *what, const char *path) {
    return mf_fail(err, MF_ERR_IO, "can't %s '%.300s': %s", what, path, strerror(errno));
}

static bool write_at(mf_journal *j, const void *data, size_t size) {
    const char *bytes = data;
    while (size > 0) {
        ssize_t n = pwrite(j->fd, bytes, size < (1U << 30) ? size : (1U << 30), (off_t)j->at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        bytes += n, size -= (size_t)n, j->at += (uint64_t)n;
    }
    return true;
}

// Back to the last commit after something went wrong.
static bool undo(mf_journal *j, const char *what, mf_error *err) {
    fail_errno(err, what, j->target);
    if (ftruncate(j->fd, (off_t)j->end) == 0) j->at = j->end;
    return false;
}

// One process at a time.
static bool lock(int fd, const char *path, mf_error *err) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
    if (errno != EWOULDBLOCK) return fail_errno(err, "lock", path);
    return mf_fail(err, MF_ERR_LIMIT, "'%.300s' is in use by another process", path);
}

bool mf_journal_open(mf_journal *j, const char *path, mf_error *err) {
    *j = (mf_journal){.fd = open(path, O_RDWR | O_CLOEXEC)};
    if (j->fd < 0) return fail_errno(err, "write", path);
    j->open = true;
    j->target = mf_copy_text(path, strlen(path));
    bool ok = j->target ? lock(j->fd, path, err) : mf_fail_memory(err, strlen(path) + 1, "a file name");
    if (!ok) mf_journal_close(j);
    return ok;
}

bool mf_journal_continue(mf_journal *j, uint64_t end, mf_error *err) {
    j->at = j->end = end;
    return ftruncate(j->fd, (off_t)end) == 0 || fail_errno(err, "write", j->target);
}

// A regular file, or none, that no other process holds.
static bool check_target(const char *path, bool *exists, mode_t *mode, mf_error *err) {
    struct stat st;
    *mode = 0600; // what people say to a model is theirs
    *exists = stat(path, &st) == 0;
    if (!*exists) return true;
    if (!S_ISREG(st.st_mode)) return mf_fail(err, MF_ERR_IO, "can't write '%.300s': it is no regular file", path);
    *mode = st.st_mode & 0777;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd < 0 || lock(fd, path, err);
    if (fd >= 0) close(fd);
    return ok;
}

static bool name_files(mf_journal *j, const char *path, bool exists, mf_error *err) {
    mf_buf name = {0};
    j->target = exists ? realpath(path, NULL) : mf_copy_text(path, strlen(path));
    if (j->target) mf_buf_printf(&name, "%s.%016" PRIx64, j->target, mf_random_seed());
    j->temporary = name.data;
    return (j->target && !name.failed) || mf_fail_memory(err, strlen(path) + 18, "a file name");
}

bool mf_journal_create(mf_journal *j, const char *path, mf_error *err) {
    bool exists;
    mode_t mode;
    if (!check_target(path, &exists, &mode, err)) return false;
    *j = (mf_journal){.fd = -1};
    bool ok = name_files(j, path, exists, err);
    if (ok) {
        j->fd = open(j->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        j->open = j->fd >= 0;
        ok = (j->open && write_at(j, &file_start, sizeof file_start)) || fail_errno(err, "write", path);
        ok = ok && lock(j->fd, path, err);
    }
    if (!ok) mf_journal_close(j);
    return ok;
}

bool mf_journal_append(mf_journal *j, mf_record_kind kind, const void *a, size_t n_a, const void *b, size_t n_b,
                       mf_error *err) {
    static const uint8_t zeros[8] = {0};
    uint64_t size = (uint64_t)n_a + n_b;
    record_head h = {RECORD_MAGIC, kind, size, hash_of_payload(a, n_a, b, n_b, j->at), 0};
    h.head_hash = hash_of_head(&h, j->at);
    bool ok = n_a == first_piece(kind) && write_at(j, &h, sizeof h) && write_at(j, a, n_a) && write_at(j, b, n_b) &&
              write_at(j, zeros, (size_t)(padded(size) - size));
    return ok || undo(j, "write", err);
}

// Makes a rename durable. Some file systems can't sync a folder; the data is safe there all the same.
static void sync_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? mf_copy_text(path, slash == path ? 1 : (size_t)(slash - path)) : NULL;
    int fd = slash && !folder ? -1 : open(folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

bool mf_journal_commit(mf_journal *j, const void *a, size_t n_a, const void *b, size_t n_b, mf_error *err) {
    if (fsync(j->fd) != 0) return undo(j, "write", err);
    if (!mf_journal_append(j, MF_RECORD_COMMIT, a, n_a, b, n_b, err)) return false;
    if (fsync(j->fd) != 0) return undo(j, "write", err);
    if (j->temporary) {
        if (rename(j->temporary, j->target) != 0) return undo(j, "write", err);
        free(j->temporary);
        j->temporary = NULL;
        sync_folder(j->target);
    }
    j->end = j->at;
    return true;
}

void mf_journal_close(mf_journal *j) {
    if (j->open && j->temporary) unlink(j->temporary);
    if (j->open && !j->temporary && j->at != j->end && ftruncate(j->fd, (off_t)j->end) != 0)
        j->at = j->end; // a load cuts it too
    if (j->open) close(j->fd);
    free(j->target);
    free(j->temporary);
    *j = (mf_journal){.fd = -1};
}
