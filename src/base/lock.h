// A file that has one writer at a time. The lock (flock) is taken before the file is read and holds until it is released, also while the
// file is replaced by newer ones: the new file is locked before it takes the old one's name, and the old one is kept locked until then.
#ifndef MF_BASE_LOCK_H
#define MF_BASE_LOCK_H

#include "base/error.h"

// Zero-initialised holds nothing.
typedef struct mf_lock {
    char *target; // the file's name, links resolved; NULL: nothing is held
    int fd;       // of the file, for reading and writing
    bool made;    // there was no file: an empty one holds its place
} mf_lock;

// Takes a regular file, or with `create` a name where there is none. What a killed process has left beside it, half a new file under a
// temporary name, is removed. False with err: MF_ERR_LIMIT, another one has it; MF_ERR_IO, it can't be written, or no other file can be
// put in its place (the folder is read-only).
bool mf_lock_take(mf_lock *l, const char *path, bool create, mf_error *err);

// Whether the locked file still stands under its name; *missing: no file does. False with err: another program has put one there.
bool mf_lock_check(const mf_lock *l, bool *missing, mf_error *err);

// Whether a path, by whatever name, is the locked file.
bool mf_lock_is(const mf_lock *l, const char *path);

// Begins a file that is to take the place of the locked one: its descriptor, and its name in *temporary (freed with free). It has the
// mode of the one that stands there. -1 with err. Given up with mf_lock_drop.
int mf_lock_begin(const mf_lock *l, char **temporary, mf_error *err);

// Puts it in place, durably when its bytes are; the lock goes over to it and takes the descriptor. False with err: nothing has changed.
bool mf_lock_put(mf_lock *l, int fd, const char *temporary, mf_error *err);
void mf_lock_drop(int fd, const char *temporary);

// Replaces the locked file's text, durably, whole or not at all.
bool mf_lock_write(mf_lock *l, const void *data, size_t size, mf_error *err);

// Gives the file back; an empty one that was made for the lock goes.
void mf_lock_release(mf_lock *l);

#endif
