#include "engine/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"

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
    static const size_t sizes[] = {0, 56, 8, 8, 40};
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

static bool is_session(const uint8_t *image, size_t size) {
    return size >= sizeof(file_head) && memcmp(image, file_start.magic, sizeof file_start.magic) == 0;
}

bool mf_journal_check(const uint8_t *image, size_t size, uint64_t *end, uint64_t *damaged, mf_error *err) {
    file_head head;
    mf_record r;
    if (!is_session(image, size)) return mf_fail(err, MF_ERR_FORMAT, "this is no session of minfer");
    memcpy(&head, image, sizeof head);
    if (head.version != MF_JOURNAL_VERSION || head.zero)
        return mf_fail(err, MF_ERR_UNSUPPORTED, "the session's format is version %" PRIu32 "; this is version %d",
                       head.version, MF_JOURNAL_VERSION);
    uint64_t at = sizeof head;
    *end = 0;
    for (; whole_record(image, size, at, &r); at = r.end)
        if (r.kind == MF_RECORD_COMMIT) *end = r.end;
    *damaged = at < size && commit_behind(image, size, at) ? at : 0;
    if (*end) return true;
    if (*damaged)
        return mf_fail(err, MF_ERR_FORMAT, "the session is damaged at byte %" PRIu64 ", before its first commit", at);
    return mf_fail(err, MF_ERR_FORMAT, "the session has nothing that was committed");
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

static bool fail_write(const mf_journal *j, mf_error *err) {
    return mf_fail(err, MF_ERR_IO, "can't write '%.300s': %s", j->lock.target, strerror(errno));
}

static bool write_at(mf_journal *j, const void *data, size_t size) {
    if (!mf_fd_write(j->fd, data, size, (int64_t)j->at)) return false;
    j->at += size;
    return true;
}

void mf_journal_rewind(mf_journal *j) {
    j->torn = ftruncate(j->fd, (off_t)j->end) != 0;
    j->at = j->end;
}

static bool undo(mf_journal *j, mf_error *err) {
    fail_write(j, err);
    mf_journal_rewind(j);
    return false;
}

// Nothing but a session is ever replaced by one.
static bool check_target(const mf_journal *j, mf_error *err) {
    uint8_t head[sizeof(file_head)];
    struct stat st;
    if (fstat(j->lock.fd, &st) == 0 && st.st_size == 0) return true;
    ssize_t n = pread(j->lock.fd, head, sizeof head, 0);
    if (n < 0) return mf_fail(err, MF_ERR_IO, "can't read '%.300s': %s", j->lock.target, strerror(errno));
    return is_session(head, (size_t)n) ||
           mf_fail(err, MF_ERR_FORMAT, "'%.300s' is no session of minfer, and is not overwritten", j->lock.target);
}

bool mf_journal_open(mf_journal *j, const char *path, bool create, mf_error *err) {
    *j = (mf_journal){.fd = -1};
    j->open = mf_lock_take(&j->lock, path, create, err);
    if (j->open && check_target(j, err)) return true;
    mf_journal_close(j);
    return false;
}

void mf_journal_continue(mf_journal *j, uint64_t end, uint64_t size) {
    j->fd = j->lock.fd;
    j->begun = true;
    j->at = j->end = end;
    j->torn = size != end;
}

void mf_journal_abandon(mf_journal *j) {
    if (j->temporary) mf_lock_drop(j->fd, j->temporary);
    free(j->temporary);
    j->temporary = NULL;
    j->begun = false;
}

bool mf_journal_create(mf_journal *j, mf_error *err) {
    mf_journal_abandon(j);
    j->at = j->end = 0;
    j->torn = false;
    j->fd = mf_lock_begin(&j->lock, &j->temporary, err);
    j->begun = j->fd >= 0;
    if (!j->begun) return free(j->temporary), j->temporary = NULL, false;
    if (write_at(j, &file_start, sizeof file_start)) return true;
    fail_write(j, err);
    mf_journal_abandon(j);
    return false;
}

bool mf_journal_ready(mf_journal *j, bool *appends, mf_error *err) {
    bool missing;
    if (!mf_lock_check(&j->lock, &missing, err)) return false;
    if (j->begun && j->torn) mf_journal_rewind(j);
    *appends = j->begun && !missing && !j->torn;
    return true;
}

bool mf_journal_append(mf_journal *j, mf_record_kind kind, const void *a, size_t n_a, const void *b, size_t n_b,
                       mf_error *err) {
    static const uint8_t zeros[8] = {0};
    uint64_t size = (uint64_t)n_a + n_b;
    record_head h = {RECORD_MAGIC, kind, size, hash_of_payload(a, n_a, b, n_b, j->at), 0};
    h.head_hash = hash_of_head(&h, j->at);
    bool ok = n_a == first_piece(kind) && write_at(j, &h, sizeof h) && write_at(j, a, n_a) && write_at(j, b, n_b) &&
              write_at(j, zeros, (size_t)(padded(size) - size));
    return ok || undo(j, err);
}

bool mf_journal_commit(mf_journal *j, const void *a, size_t n_a, const void *b, size_t n_b, mf_error *err) {
    if (fsync(j->fd) != 0) return undo(j, err);
    if (!mf_journal_append(j, MF_RECORD_COMMIT, a, n_a, b, n_b, err)) return false;
    if (fsync(j->fd) != 0) return undo(j, err);
    if (j->temporary) {
        if (!mf_lock_put(&j->lock, j->fd, j->temporary, err)) return false;
        free(j->temporary);
        j->temporary = NULL;
    }
    j->end = j->at;
    return true;
}

void mf_journal_close(mf_journal *j) {
    if (j->open) mf_journal_abandon(j);
    if (j->open) mf_lock_release(&j->lock);
    *j = (mf_journal){.fd = -1};
}
