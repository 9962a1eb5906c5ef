// Text to ids: special tokens first, then the model on what lies between them.
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/vocab.h"

enum {
    MAX_TEXT = 1 << 30
};

bool mf_encoder_push(mf_encoder *e, int32_t id, mf_error *err) {
    return mf_array_push(e->out, id) || mf_fail_memory(err, e->out->len * 2 * sizeof id, "token ids");
}

void mf_encoder_drop(mf_encoder *e, uint8_t byte) {
    if (e->n_dropped++ == 0) e->dropped = byte;
}

static bool one_word(void *arg, mf_str word, mf_error *err) { return mf_bpe_word(arg, word, err); }

// Byte-level BPE of text without special tokens: valid stretches through the splits, other bytes one by one.
static bool bpe_text(mf_encoder *e, mf_str text, mf_buf *normal, mf_error *err) {
    while (text.len) {
        size_t bad = text.len;
        if (!mf_utf8_valid(text.ptr, text.len, &bad) && bad == 0) {
            if (!mf_bpe_word(e, (mf_str){text.ptr, 1}, err)) return false;
            text = (mf_str){text.ptr + 1, text.len - 1};
            continue;
        }
        if (bad > text.len) bad = text.len;
        mf_str valid = {text.ptr, bad};
        if (e->t->nfc && !mf_nfc(valid, normal, &valid, err)) return false;
        if (!mf_split_run(e->split, valid, one_word, e, err)) return false;
        text = (mf_str){text.ptr + bad, text.len - bad};
    }
    return true;
}

// How far control tokens may reach from a position of the joined text.
typedef struct reach {
    const mf_text_span *spans;
    size_t n, i;
    bool escaped;       // the joined text is escaped
    size_t span_end;    // where span i ends
    size_t control_end; // where the run of spans with parse_control that holds span i ends
} reach;

// A span's bytes in the joined text.
static size_t span_len(const reach *r, size_t i) {
    mf_str text = r->spans[i].text;
    size_t n = text.len;
    for (const char *p = text.ptr; r->escaped && text.len && (p = memchr(p, ' ', (size_t)(text.ptr + text.len - p))); p++)
        n += 2;
    return n;
}

static void reach_extend(reach *r) {
    r->control_end = r->span_end;
    for (size_t k = r->i + 1; k < r->n && (r->spans[k].parse_control || r->spans[k].text.len == 0); k++)
        r->control_end += span_len(r, k);
}

static reach reach_start(const mf_tokenizer *t, const mf_text_span *spans, size_t n) {
    reach r = {.spans = spans, .n = n, .escaped = t->sentencepiece};
    if (n) r.span_end = span_len(&r, 0);
    if (n && spans[0].parse_control) reach_extend(&r);
    return r;
}

// Bytes from `at` in which a control token's text may lie. Positions only grow.
static size_t control_len(reach *r, size_t at) {
    while (r->i < r->n && at >= r->span_end) {
        r->i++;
        if (r->i < r->n) r->span_end += span_len(r, r->i);
        if (r->i < r->n && r->spans[r->i].parse_control && at < r->span_end && r->control_end < r->span_end) reach_extend(r);
    }
    return r->i < r->n && r->spans[r->i].parse_control ? r->control_end - at : 0;
}

// The white space at text[at..], in bytes.
static size_t spaces(mf_str text, size_t at) {
    size_t n = 0;
    while (at + n < text.len) {
        const char *p = text.ptr + at + n;
        if (*p == ' ' || (*p >= '\t' && *p <= '\r'))
            n++;
        else if (text.len - at - n >= 3 && memcmp(p, MF_SPACE_MARK, 3) == 0)
            n += 3;
        else
            break;
    }
    return n;
}

// A stretch between special tokens begins a text for SentencePiece: each gets the prefix space.
static bool encode_text(mf_encoder *e, mf_str text, reach *r, unsigned flags, mf_error *err) {
    const mf_tokenizer *t = e->t;
    bool plain = flags & MF_ENCODE_PLAIN;
    mf_buf normal = {0};
    bool ok = true;
    size_t from = 0;
    for (size_t at = 0; ok && at <= text.len;) {
        const mf_special *special = NULL;
        if (at < text.len) {
            uint8_t byte = (uint8_t)text.ptr[at];
            if (!plain && t->special.first[byte] < t->special.first[byte + 1])
                special = mf_special_match(&t->special, text.ptr + at, text.len - at, control_len(r, at), e->guarded);
            if (!special) {
                at++;
                continue;
            }
        }
        mf_str part = {text.ptr + from, at - from};
        if (part.len) {
            bool prefix = t->add_space_prefix && !(from == 0 && (flags & MF_ENCODE_CONTINUED));
            ok = t->sentencepiece ? mf_spm_text(e, part, prefix, err) : bpe_text(e, part, &normal, err);
        }
        if (!special) break;
        ok = ok && mf_encoder_push(e, special->id, err);
        at += special->text.len;
        if (special->strip_right) at += spaces(text, at);
        from = at;
    }
    free(normal.data);
    return ok;
}

static bool run(mf_encoder *e, mf_str text, reach *r, unsigned flags, mf_error *err) {
    const mf_tokenizer *t = e->t;
    if (!t->sentencepiece && !(e->split = mf_split_state_new(t->splitter, err))) return false;
    bool bos = t->add_bos && (flags & (MF_ENCODE_ADD_SPECIAL | MF_ENCODE_ADD_BOS));
    size_t first = e->out->len;
    if (bos && !mf_encoder_push(e, t->bos, err)) return false;
    if (!encode_text(e, text, r, flags, err)) return false;
    size_t n = e->out->len - first;
    if (bos && n > 1 && e->out->data[first + 1] == t->bos) { // the text's own
        memmove(e->out->data + first, e->out->data + first + 1, (n - 1) * sizeof *e->out->data);
        e->out->len--;
    }
    return !(t->add_eos && (flags & MF_ENCODE_ADD_SPECIAL)) || mf_encoder_push(e, t->eos, err);
}

static void escape(mf_str text, mf_buf *out) {
    for (size_t i = 0; i < text.len;) {
        const char *space = memchr(text.ptr + i, ' ', text.len - i);
        size_t run = space ? (size_t)(space - text.ptr) - i : text.len - i;
        mf_buf_add(out, text.ptr + i, run);
        if (space) mf_buf_text(out, MF_SPACE_MARK);
        i += run + 1;
    }
}

// The spans as one text, escaped for SentencePiece.
static bool join(const mf_tokenizer *t, const mf_text_span *spans, size_t n, mf_buf *buf, mf_str *text, mf_error *err) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++)
        if (!mf_add_size(total, spans[i].text.len, &total) || total > MAX_TEXT)
            return mf_fail(err, MF_ERR_LIMIT, "the text is longer than %d bytes", MAX_TEXT);
    *text = MF_STR("");
    if (total == 0) return true;
    if (n == 1 && !t->sentencepiece) {
        *text = spans[0].text;
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        if (t->sentencepiece)
            escape(spans[i].text, buf);
        else
            mf_buf_str(buf, spans[i].text);
    }
    if (buf->failed) return mf_fail_memory(err, total, "the text");
    *text = (mf_str){buf->data, buf->len};
    return true;
}

bool mf_tokenizer_encode_guarded(const mf_tokenizer *t, const mf_text_span *spans, size_t n, const mf_token_array *guarded,
                                 unsigned flags, mf_token_array *out, mf_error *err) {
    mf_buf buf = {0};
    mf_str text = {0};
    size_t before = out->len;
    mf_encoder e = {.t = t, .guarded = guarded, .out = out};
    reach r = reach_start(t, spans, n);
    bool ok = join(t, spans, n, &buf, &text, err) && run(&e, text, &r, flags, err);
    if (!ok) out->len = before;
    if (ok && e.n_dropped)
        mf_log(MF_LOG_WARNING, "the vocabulary has no token for %zu byte%s of the text (the first is 0x%02X): left out",
               e.n_dropped, e.n_dropped == 1 ? "" : "s", e.dropped);
    mf_split_state_free(e.split);
    mf_bpe_state_free(e.bpe);
    mf_spm_state_free(e.spm);
    free(buf.data);
    return ok;
}

bool mf_tokenizer_encode_spans(const mf_tokenizer *t, const mf_text_span *spans, size_t n, unsigned flags,
                               mf_token_array *out, mf_error *err) {
    return mf_tokenizer_encode_guarded(t, spans, n, NULL, flags, out, err);
}

bool mf_tokenizer_encode(const mf_tokenizer *t, mf_str text, unsigned flags, mf_token_array *out, mf_error *err) {
    mf_text_span span = {text, flags & MF_ENCODE_PARSE_CONTROL};
    return mf_tokenizer_encode_spans(t, &span, 1, flags, out, err);
}
