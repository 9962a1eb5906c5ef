// Generated tokens to text as it comes: whole characters only, and nothing that is or may become a stop text. Stop texts are looked for
// in the text with that of control tokens, which is not shown.
#ifndef MF_API_STREAM_H
#define MF_API_STREAM_H

#include "text/tokenizer.h"

#define MF_STREAM_STOP_MAX 4096 // bytes of a stop text at most

typedef struct mf_stream_part {
    size_t from, to;
} mf_stream_part;

typedef struct mf_stream {
    mf_decoder decoder;
    const char *const *stop; // borrowed, not empty ones
    size_t n_stop;
    mf_buf held;                     // decoded, and maybe the beginning of a stop text
    mf_array(mf_stream_part) hidden; // of it: texts of control tokens, ascending
    mf_buf out;                      // can be shown; the caller takes it and calls mf_stream_taken
    const char *stopped_by;          // the stop text that was found
} mf_stream;

void mf_stream_init(mf_stream *s, const mf_tokenizer *tokenizer, const char *const *stop, size_t n_stop);
void mf_stream_free(mf_stream *s);

// Begins another text with the same stop texts.
void mf_stream_restart(mf_stream *s);

// Takes a token and puts into s->out what can be shown. False when a stop text was found: s->stopped_by is it, and the text ends before
// it. Where memory is out, s->held.failed or s->out.failed is set.
bool mf_stream_token(mf_stream *s, int32_t id);

// Takes a token that ends the text by itself: it is not shown, but a stop text may end with it, which s->stopped_by then says.
void mf_stream_ending(mf_stream *s, int32_t id);

// The same as mf_stream_token for text that is there already.
bool mf_stream_text(mf_stream *s, mf_str text);

// Ends the text: puts into s->out what was held back. The bytes of an incomplete character are dropped and counted.
int mf_stream_finish(mf_stream *s);

// Empties s->out.
void mf_stream_taken(mf_stream *s);

#endif
