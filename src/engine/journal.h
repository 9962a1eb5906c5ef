// The container of a session: an append-only file of records, each with its length and checksums. What counts is what stands before the
// last commit record; a torn tail behind it is cut. docs/sessions.md has the layout. Little-endian, as all machines minfer runs on.
#ifndef MF_ENGINE_JOURNAL_H
#define MF_ENGINE_JOURNAL_H

#include "base/error.h"
#include "base/text.h"

#define MF_JOURNAL_VERSION 1

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

// The committed part of a file's image: *end is behind its last commit. All checksums up to there are verified. False with err: no
// session, another version, no commit, or a damaged record with commits behind it (which a crash can't leave).
bool mf_journal_check(const uint8_t *image, size_t size, uint64_t *end, mf_error *err);

// The record at *at (0: the first) of a checked image, which moves on; false at its end.
bool mf_journal_next(const uint8_t *image, uint64_t end, uint64_t *at, mf_record *out);

// A file that is being written. Zero-initialised is none.
typedef struct mf_journal {
    int fd;
    bool open;                // there is a file
    uint64_t end;             // behind the last commit
    uint64_t at;              // where the next record goes
    char *target, *temporary; // temporary: a new file that has not taken its place yet
} mf_journal;

// Opens a file and locks it for this process. False with err; MF_ERR_LIMIT: another process holds it.
bool mf_journal_open(mf_journal *j, const char *path, mf_error *err);

// Takes up an open file behind `end`, as mf_journal_check found it: what follows goes.
bool mf_journal_continue(mf_journal *j, uint64_t end, mf_error *err);

// Begins a new file that will take the place of `path` with its first commit. MF_ERR_LIMIT: another process holds the old one.
bool mf_journal_create(mf_journal *j, const char *path, mf_error *err);

// Appends a record whose payload is a then b. False with err (disk full, …): the file is cut back to its last commit.
bool mf_journal_append(mf_journal *j, mf_record_kind kind, const void *a, size_t n_a, const void *b, size_t n_b,
                       mf_error *err);

// Makes what was appended durable, then the commit record with this payload, then puts a new file in its place.
bool mf_journal_commit(mf_journal *j, const void *a, size_t n_a, const void *b, size_t n_b, mf_error *err);

// Closes the file; what was not committed is cut off, a new file without a commit removed.
void mf_journal_close(mf_journal *j);

#endif
