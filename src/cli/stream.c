#define _GNU_SOURCE // memmem

#include "cli/stream.h"

#include <stdlib.h>
#include <string.h>

void mf_stream_init(mf_stream *s, const mf_tokenizer *tokenizer, const mf_text_list *stop) {
    *s = (mf_stream){.stop = stop};
    mf_decoder_init(&s->decoder, tokenizer, false, false);
}

void mf_stream_free(mf_stream *s) { free(s->text.data); }

static mf_str take(mf_stream *s, size_t end) {
    mf_str fresh = {s->text.data + s->shown, end - s->shown};
    s->shown = end;
    return fresh;
}

// The first stop text that begins at or behind what was shown.
static bool find_stop(mf_stream *s, size_t *at) {
    *at = s->text.len;
    for (size_t i = 0; i < s->stop->len; i++) {
        const char *stop = s->stop->data[i];
        size_t len = strlen(stop), left = s->text.len - s->shown;
        const char *hit = len ? memmem(s->text.data + s->shown, left, stop, len) : NULL;
        if (hit && (size_t)(hit - s->text.data) < *at) *at = (size_t)(hit - s->text.data), s->stopped_by = stop;
    }
    return s->stopped_by != NULL;
}

// How many bytes at the end may be the beginning of a stop text.
static size_t held_back(const mf_stream *s) {
    size_t most = 0;
    for (size_t i = 0; i < s->stop->len; i++) {
        const char *stop = s->stop->data[i];
        size_t len = strlen(stop), left = s->text.len - s->shown;
        for (size_t n = len ? len - 1 : 0; n > most; n--)
            if (n <= left && memcmp(s->text.data + s->text.len - n, stop, n) == 0) most = n;
    }
    return most;
}

static bool advance(mf_stream *s, mf_str *fresh) {
    *fresh = (mf_str){0};
    if (s->text.failed || !s->text.data) return true;
    size_t at;
    if (find_stop(s, &at)) {
        *fresh = take(s, at);
        s->text.len = at;
        return false;
    }
    *fresh = take(s, s->text.len - held_back(s));
    return true;
}

bool mf_stream_token(mf_stream *s, int32_t id, mf_str *fresh) {
    mf_decoder_feed(&s->decoder, id, &s->text);
    return advance(s, fresh);
}

bool mf_stream_text(mf_stream *s, mf_str text, mf_str *fresh) {
    mf_buf_str(&s->text, text);
    return advance(s, fresh);
}

int mf_stream_finish(mf_stream *s, mf_str *fresh) {
    *fresh = s->text.data && !s->stopped_by ? take(s, s->text.len) : (mf_str){0};
    return mf_decoder_finish(&s->decoder);
}
