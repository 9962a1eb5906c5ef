#define _GNU_SOURCE // memmem

#include "api/stream.h"

#include <stdlib.h>
#include <string.h>

void mf_stream_init(mf_stream *s, const mf_tokenizer *tokenizer, const char *const *stop, size_t n_stop) {
    *s = (mf_stream){.stop = stop, .n_stop = n_stop};
    mf_decoder_init(&s->decoder, tokenizer, false, false);
}

void mf_stream_free(mf_stream *s) {
    free(s->held.data);
    free(s->hidden.data);
    free(s->out.data);
}

void mf_stream_restart(mf_stream *s) {
    mf_decoder_init(&s->decoder, s->decoder.tokenizer, false, false);
    s->held.len = s->hidden.len = s->out.len = 0;
    s->stopped_by = NULL;
}

void mf_stream_taken(mf_stream *s) { s->out.len = 0; }

// Lets the first n held bytes out, without those of tokens that say nothing.
static void let_out(mf_stream *s, size_t n) {
    if (n == 0) return;
    size_t at = 0, left = 0;
    for (size_t i = 0; i < s->hidden.len; i++) {
        mf_stream_part part = s->hidden.data[i];
        size_t from = part.from < n ? part.from : n, to = part.to < n ? part.to : n;
        mf_buf_add(&s->out, s->held.data + at, from - at);
        at = to;
        if (part.to > n) s->hidden.data[left++] = (mf_stream_part){part.from < n ? 0 : part.from - n, part.to - n};
    }
    s->hidden.len = left;
    mf_buf_add(&s->out, s->held.data + at, n - at);
    s->held.len -= n;
    memmove(s->held.data, s->held.data + n, s->held.len);
}

// Where the first stop text begins; the length where there is none.
static size_t find_stop(mf_stream *s) {
    size_t at = s->held.len;
    for (size_t i = 0; i < s->n_stop; i++) {
        const char *hit = memmem(s->held.data, s->held.len, s->stop[i], strlen(s->stop[i]));
        if (hit && (size_t)(hit - s->held.data) < at) at = (size_t)(hit - s->held.data), s->stopped_by = s->stop[i];
    }
    return at;
}

// How many bytes at the end may be the beginning of a stop text.
static size_t unclear(const mf_stream *s) {
    size_t most = 0;
    for (size_t i = 0; i < s->n_stop; i++) {
        size_t len = strlen(s->stop[i]), n = len - 1 < s->held.len ? len - 1 : s->held.len;
        for (; n > most; n--)
            if (memcmp(s->held.data + s->held.len - n, s->stop[i], n) == 0) most = n;
    }
    return most;
}

static bool advance(mf_stream *s) {
    if (s->held.failed || s->held.len == 0) return true;
    size_t at = find_stop(s);
    if (!s->stopped_by) at = s->held.len - unclear(s);
    let_out(s, at);
    if (s->stopped_by) s->held.len = s->hidden.len = 0;
    return !s->stopped_by;
}

// A token's text is there for stop texts, and is not shown.
static void hide(mf_stream *s, int32_t id) {
    if (s->n_stop == 0) return;
    mf_stream_part part = {.from = s->held.len};
    mf_tokenizer_piece(s->decoder.tokenizer, id, true, &s->held);
    part.to = s->held.len;
    if (part.to > part.from && !mf_array_push(&s->hidden, part)) s->held.failed = true;
}

bool mf_stream_token(mf_stream *s, int32_t id) {
    mf_token_type type = mf_tokenizer_type(s->decoder.tokenizer, id);
    mf_decoder_feed(&s->decoder, id, &s->held);
    if (type == MF_TOKEN_CONTROL || type == MF_TOKEN_UNKNOWN) hide(s, id);
    return advance(s);
}

void mf_stream_ending(mf_stream *s, int32_t id) {
    hide(s, id);
    advance(s);
}

bool mf_stream_text(mf_stream *s, mf_str text) {
    mf_buf_str(&s->held, text);
    return advance(s);
}

int mf_stream_finish(mf_stream *s) {
    let_out(s, s->held.len);
    return mf_decoder_finish(&s->decoder);
}
