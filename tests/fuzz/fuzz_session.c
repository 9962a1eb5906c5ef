// Sessions out of any bytes, loaded into a sequence of a tiny model. Checksums are put right first: they would keep everything out.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "engine/fixture.h"
#include "engine/journal.h"
#include "engine/session.h"
#include "engine/session_format.h"

enum {
    FILE_HEAD = 16,
    RECORD_HEAD = 32
};

static fixture model;
static mf_engine *engine;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void open_engine(void) {
    mf_error err = {0};
    mf_engine_params p;
    mf_engine_params_init(&p);
    p.n_ctx = 256, p.n_batch = 16;
    if (!fixture_open(&model, MF_FIXTURES "/tiny/llama-mix.gguf", NULL, 1, &err)) abort();
    if (!(engine = mf_engine_new(model.model, &model.devices, &p, &err))) abort();
}

// Makes records of what stands there: magic numbers, hashes, and the identity of the model where there is room for it.
static void seal(uint8_t *image, size_t size) {
    static const size_t first_piece[] = {0, sizeof(mf_session_identity), 8, 8, sizeof(mf_session_commit_head)};
    const uint32_t magic = 0x4352464d;
    memcpy(image, "minfer\x1aS\x02\0\0\0\0\0\0\0", FILE_HEAD);
    for (size_t at = FILE_HEAD; size - at >= RECORD_HEAD;) {
        uint32_t kind;
        uint64_t n;
        memcpy(&kind, image + at + 4, sizeof kind);
        memcpy(&n, image + at + 8, sizeof n);
        n &= 0xffff;
        size_t first = kind < 5 ? first_piece[kind] : 0, padded = ((size_t)n + 7) / 8 * 8;
        if (n < first || padded > size - at - RECORD_HEAD) return;
        uint8_t *payload = image + at + RECORD_HEAD;
        mf_session_identity identity;
        if (!mf_session_identity_of(engine, &identity, NULL)) abort();
        if (kind == MF_RECORD_IDENTITY && payload[0] < 250) memcpy(payload, &identity, sizeof identity);
        memset(payload + n, 0, padded - (size_t)n);
        uint64_t hash = mf_hash(payload + first, (size_t)n - first, mf_hash(payload, first, at));
        memcpy(image + at, &magic, sizeof magic);
        memcpy(image + at + 8, &n, sizeof n);
        memcpy(image + at + 16, &hash, sizeof hash);
        hash = mf_hash(image + at, 24, at);
        memcpy(image + at + 24, &hash, sizeof hash);
        at += RECORD_HEAD + padded;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!engine) open_engine();
    if (size < FILE_HEAD || size > 1 << 20) return -1;
    mf_error err = {0};
    mf_session_info info;
    mf_sequence_params p;
    mf_sequence_params_init(&p);
    uint8_t *image = malloc(size);
    mf_sequence *s = mf_sequence_new(engine, &p, &err);
    if (!image || !s) abort();
    memcpy(image, data, size);
    if (data[0] & 1) seal(image, size);
    if (mf_session_load_image(s, image, size, &info, &err)) {
        if (mf_sequence_n_tokens(s) != info.n_tokens || mf_sequence_n_evaluated(s) != info.n_cells) abort();
    } else if (mf_sequence_n_tokens(s) || !err.text[0]) {
        abort();
    }
    mf_sequence_free(s);
    free(image);
    return 0;
}
