// Files: read-only maps, whole reads, and outputs that appear whole or not at all.
#ifndef MF_BASE_FILE_H
#define MF_BASE_FILE_H

#include <sys/types.h>

#include "base/error.h"
#include "base/text.h"

// What the operating system says of a file; another one where its bytes have changed. Times are nanoseconds since 1970.
typedef struct mf_file_stamp {
    uint64_t device, inode, size;
    int64_t modified, changed; // its bytes; its bytes, mode, owner or links
} mf_file_stamp;

bool mf_file_stamp_of(const char *path, mf_file_stamp *out); // false: there is no such file

typedef struct mf_mapped_file mf_mapped_file;

typedef struct mf_file_map {
    const uint8_t *data;
    size_t size;
    mf_file_stamp stamp;  // when it was mapped
    mf_mapped_file *file; // what it is a map of; NULL of an empty file
} mf_file_map;

// Maps a regular file read-only. An empty file gives size 0. Refused by path: missing, a directory, not readable.
bool mf_file_map_open(mf_file_map *map, const char *path, mf_error *err);

// Tells the kernel that the pages of [offset, offset + size) are not needed any more (they stay in the page cache).
void mf_file_map_drop(const mf_file_map *map, size_t offset, size_t size);

void mf_file_map_close(mf_file_map *map);

// False with err when the file was written to or cut since it was mapped (its size or time of change is another one). Costs a system
// call. A file that another one took the place of stays as it was.
bool mf_file_map_check(const mf_file_map *map, mf_error *err);

// The name, fit to be shown, of the file of which an open map holds this address; NULL: none does. Reading a map behind the end of a file
// that was cut raises SIGBUS: this may be called in its handler, and installing one is the program's choice.
const char *mf_file_map_at(const void *address);

// Reads all of a file ("-" is standard input) of at most `limit` bytes into *out (freed with free(out->data)).
bool mf_file_read(const char *path, size_t limit, mf_buf *out, mf_error *err);

// The same of a text, without a byte order mark at its beginning.
bool mf_file_read_text(const char *path, size_t limit, mf_buf *out, mf_error *err);

// Waits until a descriptor that does not block can be read (POLLIN) or written (POLLOUT).
void mf_file_wait(int fd, short events);

// Writes a whole file: temporary name in the same folder, fsync, rename. On failure the old file is untouched and no temporary
// one stays.
bool mf_file_write(const char *path, const void *data, size_t size, mf_error *err);

// The same for what is its owner's business (what was said in a conversation): nobody else can read a file that is new.
bool mf_file_write_private(const char *path, const void *data, size_t size, mf_error *err);

// open() whose descriptor is never 0, 1 or 2: where one of those is closed, what is printed would go into the file.
int mf_fd_open(const char *path, int flags, mode_t mode);

// Writes all of it, at an offset, or from where the descriptor stands (-1: pipes have no offset). False with errno.
bool mf_fd_write(int fd, const void *data, size_t size, int64_t at);

// The name of a file in ${XDG_CACHE_HOME:-~/.cache}/minfer (freed with free); NULL: there is no such folder for this process, or no memory.
char *mf_cache_path(const char *name);

// Makes the folders on the way to a file that are not there, for their owner alone.
void mf_file_make_folders(const char *file);

// Makes a rename in this file's folder durable. Some file systems can't sync a folder; the data is safe there all the same.
void mf_file_sync_folder(const char *path);

#endif
