// Ids to text.
#include <stdlib.h>

#include "base/utf8.h"
#include "text/vocab.h"

// A BPE token's bytes. Characters outside the byte alphabet (some vocabularies have such tokens) stand for themselves.
static void bpe_piece(mf_str text, mf_buf *out) {
    for (size_t i = 0; i < text.len;) {
        uint32_t cp = 0;
        int len = mf_utf8_decode(text.ptr + i, text.len - i, &cp);
        int byte = len > 0 ? mf_char_to_byte(cp) : -1;
        if (len <= 0) len = 1;
        if (byte >= 0)
            mf_buf_char(out, (char)byte);
        else
            mf_buf_add(out, text.ptr + i, (size_t)len);
        i += (size_t)len;
    }
}

static void spm_piece(mf_str text, mf_buf *out) {
    for (size_t i = 0; i < text.len;) {
        bool mark = text.len - i >= 3 && memcmp(text.ptr + i, MF_SPACE_MARK, 3) == 0;
        mf_buf_char(out, mark ? ' ' : text.ptr[i]);
        i += mark ? 3 : 1;
    }
}

static int hex(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

// The byte of a text <0xNN>; -1 for another text.
static int byte_of(mf_str text) {
    if (text.len != 6 || memcmp(text.ptr, "<0x", 3) != 0 || text.ptr[5] != '>') return -1;
    int high = hex(text.ptr[3]), low = hex(text.ptr[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void mf_tokenizer_piece(const mf_tokenizer *t, int32_t id, bool special, mf_buf *out) {
    mf_str text = t->text[id];
    int byte = t->type[id] == MF_TOKEN_BYTE ? byte_of(text) : -1;
    switch (t->type[id]) {
    case MF_TOKEN_CONTROL:
    case MF_TOKEN_UNKNOWN:
        if (special) mf_buf_str(out, text);
        break;
    case MF_TOKEN_USER_DEFINED: mf_buf_str(out, text); break;
    default:
        if (byte >= 0)
            mf_buf_char(out, (char)byte);
        else if (t->sentencepiece)
            spm_piece(text, out);
        else
            bpe_piece(text, out);
    }
}

void mf_decoder_init(mf_decoder *d, const mf_tokenizer *t, bool special, bool text_start) {
    *d = (mf_decoder){.tokenizer = t, .special = special, .at_start = text_start && t->add_space_prefix};
}

void mf_decoder_feed(mf_decoder *d, int32_t id, mf_buf *out) {
    size_t start = out->len;
    mf_buf_add(out, d->held, d->n_held);
    size_t piece = out->len;
    mf_tokenizer_piece(d->tokenizer, id, d->special, out);
    if (out->failed) return;
    uint8_t type = d->tokenizer->type[id];
    bool is_text = type != MF_TOKEN_CONTROL && type != MF_TOKEN_UNKNOWN;
    if (d->at_start && out->len > piece && is_text) {
        d->at_start = false;
        if (out->data[piece] == ' ') {
            memmove(out->data + piece, out->data + piece + 1, out->len - piece - 1);
            out->len--;
        }
    }
    size_t tail = out->len > start ? mf_utf8_incomplete_tail(out->data + start, out->len - start) : 0;
    d->n_held = (uint8_t)tail;
    if (tail) memcpy(d->held, out->data + out->len - tail, tail);
    out->len -= tail;
    if (out->data) out->data[out->len] = '\0';
}

int mf_decoder_finish(mf_decoder *d) {
    int n = d->n_held;
    d->n_held = 0;
    return n;
}
