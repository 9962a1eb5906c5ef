#include "tools/logits_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static const char magic[8] = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};

#define HEADER_BYTES 20          // magic and three counts
#define FLOATS_BYTES 8           // before a row's values
#define CUT          16          // nats below the best
#define ROUND        12582912.0F // adding and taking it off rounds a small number to a whole one

int32_t mf_logits_rows(int32_t n_ctx) { return n_ctx - 1 - n_ctx / 2; }

static size_t row_bytes(int32_t n_vocab) { return FLOATS_BYTES + ((size_t)n_vocab + 1) / 2 * 4; }

// ---- Reading

// What the header's counts ask for must be the file's size.
static bool check_size(mf_logits_reader *r, const char *path, mf_error *err) {
    const mf_logits_header *h = &r->header;
    size_t tokens, rows, bytes, total;
    bool fits = mf_mul_size((size_t)h->n_chunk, (size_t)h->n_ctx * 4, &tokens) &&
                mf_mul_size((size_t)h->n_chunk, (size_t)mf_logits_rows(h->n_ctx), &rows) &&
                mf_mul_size(rows, row_bytes(h->n_vocab), &bytes) && mf_add_size(tokens, bytes, &total) &&
                mf_add_size(total, HEADER_BYTES, &total);
    if (!fits || total != r->map.size)
        return mf_fail(err, MF_ERR_FORMAT,
                       "%.200s has %zu bytes, and its header (context %" PRId32 ", vocabulary %" PRId32 ", %" PRId32
                       " chunks) asks for %s",
                       path, r->map.size, h->n_ctx, h->n_vocab, h->n_chunk,
                       fits ? "another size" : "more than there can be");
    r->tokens_at = HEADER_BYTES;
    r->rows_at = HEADER_BYTES + tokens;
    r->row_bytes = row_bytes(h->n_vocab);
    return true;
}

static bool check_header(mf_logits_reader *r, const char *path, int32_t n_vocab, mf_error *err) {
    mf_logits_header *h = &r->header;
    if (r->map.size < HEADER_BYTES || memcmp(r->map.data, magic, sizeof magic) != 0)
        return mf_fail(err, MF_ERR_FORMAT, "%.200s is no file of saved log-probabilities", path);
    memcpy(h, r->map.data + sizeof magic, sizeof *h);
    if (h->n_ctx < MF_LOGITS_CTX_MIN || h->n_ctx > MF_LOGITS_CTX_MAX)
        return mf_fail(err, MF_ERR_FORMAT, "%.200s: the context is %" PRId32, path, h->n_ctx);
    if (h->n_vocab != n_vocab)
        return mf_fail(err, MF_ERR_FORMAT, "%.200s is of a model with %" PRId32 " ids; this one has %" PRId32, path,
                       h->n_vocab, n_vocab);
    if (h->n_chunk < 1) return mf_fail(err, MF_ERR_FORMAT, "%.200s has %" PRId32 " chunks", path, h->n_chunk);
    return check_size(r, path, err);
}

static bool check_tokens(const mf_logits_reader *r, const char *path, mf_error *err) {
    for (int32_t c = 0; c < r->header.n_chunk; c++)
        for (int32_t i = 0; i < r->header.n_ctx; i++) {
            int32_t id = mf_logits_token(r, c, i);
            if (id < 0 || id >= r->header.n_vocab)
                return mf_fail(err, MF_ERR_FORMAT, "%.200s: token %" PRId32 " of chunk %" PRId32 " is %" PRId32, path, i, c,
                               id);
        }
    return true;
}

bool mf_logits_open(mf_logits_reader *r, const char *path, int32_t n_vocab, mf_error *err) {
    *r = (mf_logits_reader){0};
    return mf_file_map_open(&r->map, path, err) && check_header(r, path, n_vocab, err) && check_tokens(r, path, err);
}

void mf_logits_close(mf_logits_reader *r) {
    mf_file_map_close(&r->map);
    *r = (mf_logits_reader){0};
}

int32_t mf_logits_token(const mf_logits_reader *r, int32_t chunk, int32_t i) {
    int32_t id;
    memcpy(&id, r->map.data + r->tokens_at + ((size_t)chunk * (size_t)r->header.n_ctx + (size_t)i) * 4, 4);
    return id;
}

bool mf_logits_row(const mf_logits_reader *r, int32_t chunk, int32_t i, float *logprobs, mf_error *err) {
    size_t number = (size_t)chunk * (size_t)mf_logits_rows(r->header.n_ctx) + (size_t)i;
    const uint8_t *row = r->map.data + r->rows_at + number * r->row_bytes;
    float scale, least;
    memcpy(&scale, row, 4);
    memcpy(&least, row + 4, 4);
    if (!isfinite(scale) || !isfinite(least) || scale < 0 || scale > 1 || least > 0)
        return mf_fail(err, MF_ERR_FORMAT, "row %" PRId32 " of chunk %" PRId32 " of the base: scale %g, least %g", i, chunk,
                       (double)scale, (double)least);
    for (int32_t v = 0; v < r->header.n_vocab; v++) {
        uint16_t value;
        memcpy(&value, row + FLOATS_BYTES + (size_t)v * 2, 2);
        logprobs[v] = scale * (float)value + least;
    }
    return true;
}

// ---- Writing

static bool put(mf_logits_writer *w, const void *bytes, size_t size, mf_error *err) {
    if (fwrite(bytes, 1, size, w->file) == size) return true;
    return mf_fail(err, MF_ERR_IO, "can't write %.300s: %s", w->path, strerror(errno));
}

bool mf_logits_create(mf_logits_writer *w, const char *path, mf_logits_header header, const int32_t *tokens, mf_error *err) {
    *w = (mf_logits_writer){.path = path, .header = header};
    struct stat there;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) // the new file would take its place
        return mf_fail(err, MF_ERR_IO, "can't write '%.300s': it is there and no regular file", path);
    mf_buf name = {0};
    mf_buf_printf(&name, "%s.part", path);
    w->row = mf_alloc(1, row_bytes(header.n_vocab));
    if (name.failed || !w->row) return free(name.data), mf_fail_memory(err, row_bytes(header.n_vocab), "a row");
    w->temporary = name.data;
    w->file = fopen(w->temporary, "wb");
    if (!w->file) return mf_fail(err, MF_ERR_IO, "can't write %.300s: %s", w->temporary, strerror(errno));
    size_t count = (size_t)header.n_chunk * (size_t)header.n_ctx;
    return put(w, magic, sizeof magic, err) && put(w, &header, sizeof header, err) && put(w, tokens, count * 4, err);
}

bool mf_logits_write(mf_logits_writer *w, const float *logits, double log_sum, mf_error *err) {
    int32_t n = w->header.n_vocab;
    float most = logits[0], least = logits[0];
    for (int32_t i = 1; i < n; i++) {
        if (logits[i] > most) most = logits[i];
        if (logits[i] < least) least = logits[i];
    }
    if (least < most - CUT) least = most - CUT;
    float scale = (most - least) / 65535.0F, floats[2] = {scale, (float)((double)least - log_sum)};
    memcpy(w->row, floats, FLOATS_BYTES);
    uint16_t *values = w->row + FLOATS_BYTES / 2;
    float inverse = scale > 0 ? 1.0F / scale : 0;
    for (int32_t i = 0; i < n; i++) {
        float steps = logits[i] > least ? inverse * (logits[i] - least) + ROUND - ROUND : 0;
        values[i] = steps >= 65535 ? 65535 : (uint16_t)steps;
    }
    return put(w, w->row, row_bytes(n), err);
}

bool mf_logits_commit(mf_logits_writer *w, mf_error *err) {
    bool ok = fflush(w->file) == 0 && fsync(fileno(w->file)) == 0;
    if (fclose(w->file) != 0) ok = false;
    w->file = NULL;
    if (ok && rename(w->temporary, w->path) == 0) {
        free(w->temporary);
        w->temporary = NULL;
        return true;
    }
    return mf_fail(err, MF_ERR_IO, "can't write %.300s: %s", w->path, strerror(errno));
}

void mf_logits_discard(mf_logits_writer *w) {
    if (w->file) fclose(w->file);
    if (w->temporary) unlink(w->temporary);
    free(w->temporary);
    free(w->row);
    *w = (mf_logits_writer){0};
}
