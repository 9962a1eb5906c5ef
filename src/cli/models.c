#include "cli/models.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"

#define MOST_ENTRIES 10000
#define MOST_DEPTH   4 // of folders in folders

static char *join(const char *dir, const char *name) {
    mf_buf path = {0};
    mf_buf_printf(&path, "%s%s%s", dir, *dir ? "/" : "", name);
    if (!path.failed) return path.data;
    free(path.data);
    return NULL;
}

static char *cache_dir(void) {
    char *dir = mf_cache_path("models");
    return dir ? dir : mf_copy_text("", 0);
}

// "-00001-of-00003" at the end of a name: its place, the part's number and how many there are. NULL: no part of a split file.
static const char *part_suffix(const char *name, size_t len, int *number, int *n_parts) {
    const char *at = name + len - 15;
    if (len < 15 || at[0] != '-' || strncmp(at + 6, "-of-", 4) != 0) return NULL;
    for (int i = 1; i < 15; i++)
        if ((i < 6 || i > 9) && !isdigit((unsigned char)at[i])) return NULL;
    *number = (int)strtol(at + 1, NULL, 10);
    *n_parts = (int)strtol(at + 10, NULL, 10);
    return at;
}

typedef struct scan {
    mf_cached_models *models;
    size_t entries;
    mf_error *err;
} scan;

static bool add_file(scan *s, const char *path) {
    size_t len = strlen(path), below = strlen(s->models->dir) + 1;
    int number = 1, n_parts = 0;
    if (len < 5 || strcasecmp(path + len - 5, ".gguf") != 0) return true;
    const char *end = part_suffix(path, len - 5, &number, &n_parts);
    if (number != 1) return true;
    if (!end) end = path + len - 5;
    mf_cached_model m = {mf_copy_text(path, len), NULL, mf_copy_text(path + below, (size_t)(end - path) - below), n_parts};
    if (m.path) m.file = strrchr(m.path, '/') + 1;
    if (m.path && m.name && mf_array_push(&s->models->list, m)) return true;
    free(m.path);
    free(m.name);
    return mf_fail_memory(s->err, len, "the list of models");
}

static bool add_folder(scan *s, const char *path, int depth);

static bool add_entry(scan *s, const char *dir, const char *name, int depth) {
    struct stat what;
    if (name[0] == '.') return true;
    if (++s->entries > MOST_ENTRIES)
        return mf_fail(s->err, MF_ERR_LIMIT, "%.200s has more than %d entries", s->models->dir, MOST_ENTRIES);
    char *path = join(dir, name);
    if (!path) return mf_fail_memory(s->err, 0, "the list of models");
    bool ok = true;
    if (stat(path, &what) == 0) {
        if (S_ISREG(what.st_mode)) ok = add_file(s, path);
        if (S_ISDIR(what.st_mode) && depth < MOST_DEPTH) ok = add_folder(s, path, depth + 1);
    }
    free(path);
    return ok;
}

static bool add_folder(scan *s, const char *path, int depth) {
    DIR *dir = opendir(path);
    if (!dir) {
        if (errno == ENOENT || (depth > 0 && errno != ENOMEM)) return true;
        return mf_fail(s->err, MF_ERR_IO, "%.300s: %s", path, strerror(errno));
    }
    bool ok = true;
    for (const struct dirent *entry; ok && (entry = readdir(dir));) ok = add_entry(s, path, entry->d_name, depth);
    closedir(dir);
    return ok;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const mf_cached_model *)a)->name, ((const mf_cached_model *)b)->name);
}

bool mf_models_scan(mf_cached_models *models, mf_error *err) {
    *models = (mf_cached_models){.dir = cache_dir()};
    if (!models->dir) return mf_fail_memory(err, 0, "the list of models");
    scan s = {models, 0, err};
    if (*models->dir && !add_folder(&s, models->dir, 0)) return false;
    if (models->list.len) qsort(models->list.data, models->list.len, sizeof *models->list.data, by_name);
    return true;
}

void mf_models_free(mf_cached_models *models) {
    for (size_t i = 0; i < models->list.len; i++) free(models->list.data[i].path), free(models->list.data[i].name);
    free(models->list.data);
    free(models->dir);
    *models = (mf_cached_models){0};
}

static const char *last_part(const char *name) {
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

static bool is_whole(const mf_cached_model *m, const char *word) {
    return strcasecmp(m->name, word) == 0 || strcasecmp(m->file, word) == 0 || strcasecmp(last_part(m->name), word) == 0;
}

static bool contains(const char *text, const char *word) {
    size_t len = strlen(word);
    for (; *text; text++)
        if (strncasecmp(text, word, len) == 0) return true;
    return false;
}

static bool refuse_several(const mf_cached_models *models, const char *word, bool whole, mf_error *err) {
    mf_buf names = {0};
    for (size_t i = 0; i < models->list.len && names.len < 300; i++) {
        const mf_cached_model *m = &models->list.data[i];
        if (whole ? is_whole(m, word) : contains(m->name, word))
            mf_buf_printf(&names, "%s%.100s", names.len ? ", " : "", m->name);
    }
    mf_fail(err, MF_ERR_LIMIT, "'%.80s' may be any of: %s", word, names.data ? names.data : "several models");
    free(names.data);
    return false;
}

const mf_cached_model *mf_models_find(const mf_cached_models *models, const char *word, mf_error *err) {
    for (int whole = 1; whole >= 0 && *word; whole--) {
        const mf_cached_model *found = NULL;
        size_t n = 0;
        for (size_t i = 0; i < models->list.len; i++) {
            const mf_cached_model *m = &models->list.data[i];
            if (whole ? is_whole(m, word) : contains(m->name, word)) found = m, n++;
        }
        if (n == 1) return found;
        if (n > 1) return refuse_several(models, word, whole, err), NULL;
    }
    return mf_fail(err, MF_ERR_ARGUMENT, "no model '%.80s' in %.200s; minfer list shows what is there", word, models->dir),
           NULL;
}

// ---- By their exact names

static const char *below(const mf_cached_models *models, const mf_cached_model *m) {
    return m->path + strlen(models->dir) + 1;
}

const mf_cached_model *mf_models_named(const mf_cached_models *models, const char *name, mf_error *err) {
    const mf_cached_model *found = NULL;
    for (size_t i = 0; i < models->list.len; i++) {
        const mf_cached_model *m = &models->list.data[i];
        if (strcmp(below(models, m), name) == 0) return m;
        if (strcmp(m->name, name) != 0) continue;
        if (found)
            return mf_fail(err, MF_ERR_LIMIT, "'%.80s' is the name of %.100s and of %.100s", name, below(models, found),
                           below(models, m)),
                   NULL;
        found = m;
    }
    if (found) return found;
    return mf_fail(err, MF_ERR_ARGUMENT, "no model has exactly the name '%.80s' in %.200s; minfer list shows the names",
                   name, models->dir),
           NULL;
}

// Opens the folder that a path below `dir` ends in, going through no link; *last is the path's last part.
static int open_folder_of(const char *dir, char *path, const char **last) {
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *part = path;
    for (char *slash; fd >= 0 && (slash = strchr(part, '/')); part = slash + 1) {
        *slash = 0;
        int next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), why = errno;
        close(fd);
        errno = why;
        fd = next;
    }
    *last = part;
    return fd;
}

static bool remove_parts(int folder, const char *file, int n_parts, mf_error *err) {
    size_t len = strlen(file);
    for (int i = 1; i <= (n_parts ? n_parts : 1); i++) {
        mf_buf part = {0};
        if (n_parts) // "…-00001-of-00003.gguf"
            mf_buf_printf(&part, "%.*s%05d%s", (int)(len - 19), file, i, file + len - 14);
        else
            mf_buf_text(&part, file);
        bool gone = !part.failed && (unlinkat(folder, part.data, 0) == 0 || (errno == ENOENT && i > 1));
        if (!gone && part.failed) mf_fail_memory(err, len, "a path");
        if (!gone && !part.failed) mf_fail(err, MF_ERR_IO, "can't remove %.300s: %s", part.data, strerror(errno));
        free(part.data);
        if (!gone) return false;
    }
    return true;
}

bool mf_models_remove(const mf_cached_models *models, const mf_cached_model *model, mf_error *err) {
    const char *relative = below(models, model), *file;
    char *path = mf_copy_text(relative, strlen(relative));
    if (!path) return mf_fail_memory(err, strlen(relative), "a path");
    int folder = open_folder_of(models->dir, path, &file);
    bool outside = folder < 0 && (errno == ELOOP || errno == ENOTDIR);
    bool ok = folder >= 0 && remove_parts(folder, file, model->n_parts, err);
    if (outside)
        mf_fail(err, MF_ERR_ARGUMENT, "'%.200s' lies outside of %.200s, behind a link; it is not minfer's to remove",
                relative, models->dir);
    else if (folder < 0)
        mf_fail(err, MF_ERR_IO, "can't remove %.300s: %s", model->path, strerror(errno));
    else
        close(folder);
    free(path);
    return ok;
}

// ---- As the word MODEL

bool mf_models_has(const char *word) {
    mf_cached_models models;
    mf_error err = {0};
    bool found = mf_models_scan(&models, &err) && (mf_models_find(&models, word, &err) || err.code == MF_ERR_LIMIT);
    mf_models_free(&models);
    return found;
}

static bool refuse_remote(const char *word, mf_error *err) {
    static const char *const schemes[] = {"hf:", "ollama:", "http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strncmp(word, schemes[i], strlen(schemes[i])) == 0)
            return mf_fail(
                err, MF_ERR_UNSUPPORTED,
                "'%.200s': downloading is not in this version; fetch the GGUF file and give its path, or put it into "
                "the folder that minfer list names",
                word);
    return true;
}

// A word that is no file: a cached name, unless it can only be a path.
static bool resolve_name(mf_options *o, const mf_cached_models *models, mf_error *err) {
    const char *word = o->model;
    mf_error why = {0};
    const mf_cached_model *m = mf_models_find(models, word, &why);
    size_t len = strlen(word);
    bool path = strchr(word, '/') || (len > 5 && strcmp(word + len - 5, ".gguf") == 0);
    if (!m && path && why.code != MF_ERR_LIMIT) return true; // opening it says what is wrong
    if (!m && why.code == MF_ERR_ARGUMENT)
        return mf_fail(err, MF_ERR_IO, "'%.80s' is no file (No such file or directory) and no model in %.200s", word,
                       models->dir);
    if (!m) return *err = why, false;
    o->model_owned = mf_copy_text(m->path, strlen(m->path));
    o->model = o->model_owned;
    return o->model || mf_fail_memory(err, 0, "the model's path");
}

static bool choose_only(mf_options *o, const mf_cached_models *models, mf_error *err) {
    if (models->list.len != 1) return true;
    const char *path = models->list.data[0].path;
    o->model_owned = mf_copy_text(path, strlen(path));
    o->model = o->model_owned;
    if (!o->model) return mf_fail_memory(err, 0, "the model's path");
    mf_log(MF_LOG_NOTICE, "model: %s", path);
    return true;
}

bool mf_models_resolve(mf_options *o, bool choose, mf_error *err) {
    bool given = o->model && *o->model;
    if (given && !refuse_remote(o->model, err)) return false;
    if (given ? access(o->model, F_OK) == 0 : !choose) return true;
    mf_cached_models models;
    bool ok = mf_models_scan(&models, err) && (given ? resolve_name(o, &models, err) : choose_only(o, &models, err));
    mf_models_free(&models);
    return ok;
}

bool mf_models_advise(mf_error *err) {
    mf_cached_models models;
    mf_error why = {0};
    size_t n = mf_models_scan(&models, &why) ? models.list.len : 0;
    char count[32] = "none";
    if (n) snprintf(count, sizeof count, "%zu", n);
    mf_fail(err, MF_ERR_ARGUMENT,
            "no model: give the path of a GGUF file, or a name that minfer list shows (it has %s), as the first word or by "
            "-m, or "
            "set MINFER_MODEL",
            count);
    mf_models_free(&models);
    return false;
}
