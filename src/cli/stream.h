// Generated tokens to text as it comes: whole characters only, and nothing that is or may become a stop text.
#ifndef MF_CLI_STREAM_H
#define MF_CLI_STREAM_H

#include "cli/options.h"
#include "text/tokenizer.h"

typedef struct mf_stream {
    mf_decoder decoder;
    const mf_text_list *stop; // borrowed
    mf_buf text;              // all that was decoded
    size_t shown;             // bytes of it that are given out
    const char *stopped_by;   // the stop text that was found
} mf_stream;

void mf_stream_init(mf_stream *s, const mf_tokenizer *tokenizer, const mf_text_list *stop);
void mf_stream_free(mf_stream *s);

// Takes a token and gives the text that can be shown (it lives until the next call). False when a stop text was found:
// s->stopped_by is it, and s->text ends before it.
bool mf_stream_token(mf_stream *s, int32_t id, mf_str *fresh);

// The same for text that is there already.
bool mf_stream_text(mf_stream *s, mf_str text, mf_str *fresh);

// Gives what was held back; the bytes of an incomplete character are dropped and counted.
int mf_stream_finish(mf_stream *s, mf_str *fresh);

#endif
