// The fingerprint of a model, and the file in which fingerprints are kept between runs.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/pool.h"
#include "model/arch.h"
#include "model/model.h"

#define PIECE      ((size_t)1 << 20) // bytes that are hashed in one go: a tensor's hash is that of its pieces' hashes, in order
#define WORKERS    16                // more are not faster than memory
#define WORTH_KEPT ((size_t)32 << 20) // bytes of a file whose hashing can be felt

// ---- The hash

typedef struct hashing {
    const uint8_t *data;
    size_t size;
    int n_pieces, next;
    mf_hash128 *pieces; // as many as the largest tensor has
} hashing;

static int count_pieces(size_t size) { return (int)((size + PIECE - 1) / PIECE); }

static void hash_pieces(void *arg, int worker) {
    hashing *h = arg;
    (void)worker;
    for (int i; (i = mf_pool_next(&h->next)) < h->n_pieces;) {
        size_t at = (size_t)i * PIECE, left = h->size - at;
        h->pieces[i] = mf_hash128_of(h->data + at, left < PIECE ? left : PIECE, 0);
    }
}

static void add(mf_buf *parts, const void *bytes, size_t len) {
    mf_hash128 hash = mf_hash128_of(bytes, len, 0);
    mf_buf_add(parts, &hash, sizeof hash);
}

static void add_tensor(mf_buf *parts, const mf_gguf *file, const mf_gguf_tensor *t, mf_pool *pool, mf_hash128 *pieces) {
    hashing h = {.data = t->data, .size = t->size, .n_pieces = count_pieces(t->size), .pieces = pieces};
    uint64_t shape[] = {(uint64_t)t->type, t->ne[0], t->ne[1], t->ne[2], t->ne[3]};
    if (h.n_pieces > 1)
        mf_pool_run(pool, hash_pieces, &h);
    else
        hash_pieces(&h, 0);
    mf_gguf_drop(file, t); // what is mapped of it is in the page cache all the same
    add(parts, t->name.ptr, t->name.len);
    add(parts, shape, sizeof shape);
    add(parts, pieces, (size_t)h.n_pieces * sizeof *pieces);
}

static void add_metadata(mf_buf *parts, const mf_model *m) {
    add(parts, m->arch->name, strlen(m->arch->name));
    for (size_t i = 0; i < mf_gguf_n_values(m->file); i++) {
        const mf_gguf_value *v = mf_gguf_value_at(m->file, i);
        add(parts, v->key.ptr, v->key.len);
        add(parts, v->data, v->size);
    }
}

static bool hash_model(const mf_model *m, mf_hash128 *out, mf_error *err) {
    size_t largest = 1, n = mf_gguf_n_tensors(m->file);
    for (size_t i = 0; i < n; i++)
        if (mf_gguf_tensor_at(m->file, i)->size > largest) largest = mf_gguf_tensor_at(m->file, i)->size;
    if (largest / PIECE > INT32_MAX / 2)
        return mf_fail(err, MF_ERR_LIMIT, "a tensor of %zu bytes has no fingerprint", largest);
    mf_buf parts = {0};
    int threads = mf_cpu_default_threads();
    mf_pool *pool = mf_pool_new(threads < WORKERS ? threads : WORKERS, err);
    mf_hash128 *pieces = mf_alloc((size_t)count_pieces(largest), sizeof *pieces);
    if (pool && pieces) {
        add_metadata(&parts, m);
        for (size_t i = 0; i < n; i++) add_tensor(&parts, m->file, mf_gguf_tensor_at(m->file, i), pool, pieces);
        *out = mf_hash128_of(parts.data, parts.len, 0);
    }
    bool ok = pool && ((pieces && !parts.failed) || mf_fail_memory(err, parts.len, "the model's fingerprint"));
    free(parts.data);
    free(pieces);
    mf_pool_free(pool);
    return ok;
}

// ---- What is kept: a line a file, the newest last, in fixed columns: the file's stamp, its fingerprint, and a hash of both.

#define LINE  (3 * 33)
#define LINES 256

static void print_line(char line[LINE + 1], mf_hash128 stamp, mf_hash128 print) {
    mf_hash128 words[3] = {stamp, print};
    words[2] = mf_hash128_of(words, 2 * sizeof *words, 0);
    for (int i = 0; i < 3; i++)
        snprintf(line + i * 33, 34, "%016" PRIx64 "%016" PRIx64 "%c", words[i].word[0], words[i].word[1],
                 i < 2 ? ' ' : '\n');
}

static bool parse_word(const char *text, mf_hash128 *out) {
    static const char digits[] = "0123456789abcdef";
    *out = (mf_hash128){{0}};
    for (int i = 0; i < 32; i++) {
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit) return false;
        out->word[i / 16] = out->word[i / 16] << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

static bool same(mf_hash128 a, mf_hash128 b) { return a.word[0] == b.word[0] && a.word[1] == b.word[1]; }

// The line of a file among those that are whole; NULL: there is none.
static const char *find_line(const mf_buf *lines, mf_hash128 stamp, mf_hash128 *print) {
    char want[LINE + 1];
    mf_hash128 key;
    for (size_t at = 0; at + LINE <= lines->len; at += LINE) {
        const char *line = lines->data + at;
        if (!parse_word(line, &key) || !same(key, stamp) || !parse_word(line + 33, print)) continue;
        print_line(want, key, *print);
        if (memcmp(line, want, LINE) == 0) return line;
    }
    return NULL;
}

static bool find(const char *path, mf_hash128 stamp, mf_hash128 *print) {
    mf_buf lines;
    bool found = mf_file_read(path, 2 * LINES * LINE, &lines, NULL) && find_line(&lines, stamp, print);
    free(lines.data);
    return found;
}

// Nothing depends on it that a figure is kept, so nothing is said where it can't be.
static void keep(const char *path, mf_hash128 stamp, mf_hash128 print) {
    mf_buf lines = {0};
    char line[LINE + 1];
    mf_file_make_folders(path);
    if (!mf_file_read(path, 2 * LINES * LINE, &lines, NULL) || lines.len % LINE != 0) lines.len = 0;
    size_t drop = lines.len / LINE >= LINES ? lines.len - (LINES - 1) * LINE : 0;
    if (drop) memmove(lines.data, lines.data + drop, lines.len -= drop);
    print_line(line, stamp, print);
    mf_buf_add(&lines, line, LINE);
    if (!lines.failed) mf_file_write_private(path, lines.data, lines.len, NULL);
    free(lines.data);
}

bool mf_model_fingerprint(const mf_model *m, mf_hash128 *out, mf_error *err) {
    mf_hash128 before, after;
    char *path = mf_gguf_file_size(m->file) >= WORTH_KEPT ? mf_cache_path("fingerprints") : NULL;
    bool known = path && mf_gguf_stamp(m->file, &before);
    bool found = known && find(path, before, out), ok = found || hash_model(m, out, err);
    if (ok && known && !found && mf_gguf_stamp(m->file, &after) && same(before, after)) keep(path, before, *out);
    free(path);
    return ok;
}
