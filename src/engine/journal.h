// The container of a session: an append-only file of records, each with its length and checksums. What counts is what stands before the
// last commit record; a torn tail behind it is cut. docs/sessions.md has the layout. Little-endian, as all machines minfer runs on.
#ifndef MF_ENGINE_JOURNAL_H
#define MF_ENGINE_JOURNAL_H

#include "base/lock.h"
#include "base/text.h"

#define MF_JOURNAL_VERSION 2

typedef enum mf_record_kind {
    MF_RECORD_IDENTITY = 1, // the first
    MF_RECORD_TOKENS = 2,
    MF_RECORD_BLOCK = 3,
    MF_RECORD_COMMIT = 4,
} mf_record_kind;

typedef struct mf_record {
    uint32_t kind;
    const uint8_t *data; // no alignment
    size_t size;
    uint64_t end; // offset behind it
} mf_record;

// The committed part of a file's image: *end is behind the last commit before the first byte that is damaged (*damaged: where; 0: none
// is), and everything up to there is verified. A torn tail is no damage: damage has commits behind it, which a crash can't leave. False
// with err: no session, another version, no commit.
bool mf_journal_check(const uint8_t *image, size_t size, uint64_t *end, uint64_t *damaged, mf_error *err);

// The record at *at (0: the first) of a checked image, which moves on; false at its end.
bool mf_journal_next(const uint8_t *image, uint64_t end, uint64_t *at, mf_record *out);

// A file that is being written. Zero-initialised is none.
typedef struct mf_journal {
    mf_lock lock;    // of the file's name, from mf_journal_open to mf_journal_close
    bool open;       // there is a lock
    bool begun;      // there is a file to append to
    bool torn;       // it ends in something that was not committed and could not be cut off
    int fd;          // that file: the locked one, or a new one that has not taken its place yet
    char *temporary; // the new one's name
    uint64_t end;    // behind the last commit
    uint64_t at;     // where the next record goes
} mf_journal;

// Locks a file's name, with `create` also one where there is none. False with err; MF_ERR_LIMIT: another process holds it; MF_ERR_FORMAT:
// what stands there is no session (an empty file is as good as none).
bool mf_journal_open(mf_journal *j, const char *path, bool create, mf_error *err);

// Takes up the file behind `end`, as mf_journal_check found it in an image of `size` bytes: what follows is cut off with the next record.
void mf_journal_continue(mf_journal *j, uint64_t end, uint64_t size);

// Begins a new file that takes the place of the old one with its first commit.
bool mf_journal_create(mf_journal *j, mf_error *err);

// Makes ready to append: cuts off what was not committed. *appends false: there is no file, or it can't be cut, and a new one must be
// begun. False with err: another program has put a file in the place of this one.
bool mf_journal_ready(mf_journal *j, bool *appends, mf_error *err);

// Appends a record whose payload is a then b. False with err (disk full, …): what was appended since the last commit is cut off.
bool mf_journal_append(mf_journal *j, mf_record_kind kind, const void *a, size_t n_a, const void *b, size_t n_b,
                       mf_error *err);

// Forgets what was appended since the last commit.
void mf_journal_rewind(mf_journal *j);

// Makes what was appended durable, then the commit record with this payload, then puts a new file in its place.
bool mf_journal_commit(mf_journal *j, const void *a, size_t n_a, const void *b, size_t n_b, mf_error *err);

// Gives up a file that was begun; the next commit needs a new one. The old file stands.
void mf_journal_abandon(mf_journal *j);

void mf_journal_close(mf_journal *j); // a new file without a commit is removed

#endif
