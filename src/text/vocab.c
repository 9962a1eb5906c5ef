// Reads the vocabulary: tokens, types, scores, byte tokens.
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/vocab.h"

// GPT-2's byte alphabet: a printable Latin-1 byte stands for itself, the others follow from U+0100 on in order.
static bool stands_for_itself(unsigned byte) {
    return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

uint32_t mf_byte_to_char(uint8_t byte) {
    if (stands_for_itself(byte)) return byte;
    if (byte <= 0x20) return 0x100u + byte;                // 33 of them
    if (byte <= 0xA0) return 0x100u + 33 + (byte - 0x7Fu); // 7F..A0
    return 0x100u + 67;                                    // AD
}

int mf_char_to_byte(uint32_t cp) {
    if (cp < 0x100) return stands_for_itself(cp) ? (int)cp : -1;
    if (cp <= 0x120) return (int)(cp - 0x100);
    if (cp <= 0x142) return (int)(cp - 0x121 + 0x7F);
    return cp == 0x143 ? 0xAD : -1;
}

static bool read_tokens(mf_tokenizer *t, const mf_gguf *file, mf_error *err) {
    mf_error local = {0};
    const mf_gguf_value *list = mf_gguf_get_array(file, "tokenizer.ggml.tokens", MF_GGUF_STRING, &local);
    if (!list && local.code != MF_OK) {
        if (err) *err = local;
        return false;
    }
    if (!list || list->count == 0)
        return mf_fail(err, MF_ERR_FORMAT, "tokenizer.ggml.tokens is %s: the file has no vocabulary",
                       list ? "empty" : "missing");
    if (list->count > INT32_MAX / 2)
        return mf_fail(err, MF_ERR_FORMAT, "tokenizer.ggml.tokens: %llu tokens, at most %d", (unsigned long long)list->count,
                       INT32_MAX / 2);
    t->n = (uint32_t)list->count;
    t->text = mf_alloc(t->n, sizeof *t->text);
    t->type = mf_alloc(t->n, 1);
    t->eog = mf_alloc(t->n, 1);
    if (!t->text || !t->type || !t->eog || !mf_map_reserve(&t->ids, t->n))
        return mf_fail_memory(err, t->n * sizeof *t->text, "the vocabulary");
    size_t offset = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        t->text[i] = mf_gguf_next_string(list, &offset);
        t->type[i] = MF_TOKEN_NORMAL;
        if (t->text[i].len == 0) continue; // a hole: it has an id, and no text leads to it
        uint32_t first;
        if (mf_map_get(&t->ids, t->text[i], &first))
            return mf_fail(err, MF_ERR_FORMAT, "tokens %u and %u have the same text '%.*s'", first, i,
                           t->text[i].len > 64 ? 64 : (int)t->text[i].len, t->text[i].ptr);
        if (!mf_map_set(&t->ids, t->text[i], i, NULL)) return mf_fail_memory(err, t->n * sizeof(mf_str), "the vocabulary");
    }
    return true;
}

// An array of numbers that must be as long as the vocabulary. *out is NULL when it is absent.
static bool per_token(const mf_tokenizer *t, const mf_gguf *file, const char *key, const mf_gguf_value **out,
                      mf_error *err) {
    *out = NULL;
    const mf_gguf_value *v = mf_gguf_find(file, key);
    if (!v) return true;
    if (v->kind != MF_GGUF_ARRAY || v->item == MF_GGUF_STRING || v->item == MF_GGUF_ARRAY || v->item == MF_GGUF_BOOL)
        return mf_fail(err, MF_ERR_FORMAT, "%s is not an array of numbers", key);
    if (v->count != t->n)
        return mf_fail(err, MF_ERR_FORMAT, "%s has %llu entries for %u tokens", key, (unsigned long long)v->count, t->n);
    *out = v;
    return true;
}

static bool read_types(mf_tokenizer *t, const mf_gguf *file, mf_error *err) {
    const mf_gguf_value *types;
    if (!per_token(t, file, "tokenizer.ggml.token_type", &types, err)) return false;
    if (!types) return true;
    if (types->item == MF_GGUF_F32 || types->item == MF_GGUF_F64)
        return mf_fail(err, MF_ERR_FORMAT, "tokenizer.ggml.token_type is not an array of integers");
    for (uint32_t i = 0; i < t->n; i++) {
        int64_t type = mf_gguf_int_at(types, i);
        if (type < 0 || type > MF_TOKEN_BYTE)
            return mf_fail(err, MF_ERR_FORMAT, "tokenizer.ggml.token_type of token %u is %lld, not one of 0 to 6", i,
                           (long long)type);
        t->type[i] = type == 0 ? MF_TOKEN_UNUSED : (uint8_t)type; // 0: undefined
    }
    return true;
}

static bool read_scores(mf_tokenizer *t, const mf_gguf *file, mf_error *err) {
    const mf_gguf_value *scores;
    if (!per_token(t, file, "tokenizer.ggml.scores", &scores, err)) return false;
    if (!t->sentencepiece) return true;
    if (!scores) return mf_fail(err, MF_ERR_FORMAT, "tokenizer.ggml.scores is missing: a llama vocabulary needs its scores");
    t->score = mf_alloc(t->n, sizeof *t->score);
    if (!t->score) return mf_fail_memory(err, t->n * sizeof *t->score, "the scores");
    for (uint32_t i = 0; i < t->n; i++) {
        t->score[i] = (float)mf_gguf_real_at(scores, i);
        if (t->score[i] != t->score[i])
            return mf_fail(err, MF_ERR_FORMAT, "tokenizer.ggml.scores of token %u is not a number", i);
    }
    return true;
}

// Bytes that ordinary text has: without one of these a byte-level vocabulary is broken. Published ones lack some control
// characters, bytes that are never UTF-8 and leads of unused planes (SmolLM2: 04, F1, …); those are left out of a text.
static bool needed(unsigned byte) {
    return byte == '\t' || byte == '\n' || byte == '\r' || (byte >= 0x20 && byte <= 0x7E) ||
           (byte >= 0x80 && byte <= 0xBF) || (byte >= 0xC2 && byte <= 0xEF) || byte == 0xF0;
}

static bool bpe_bytes(mf_tokenizer *t, mf_error *err) {
    for (unsigned b = 0; b < 256; b++) {
        char name[4];
        uint32_t id, cp = mf_byte_to_char((uint8_t)b);
        mf_str text = {name, (size_t)mf_utf8_encode(cp, name)};
        // A user-defined or control token stands for its text as it is, which is the byte for ASCII only.
        if (mf_map_get(&t->ids, text, &id) &&
            (t->type[id] == MF_TOKEN_NORMAL || t->type[id] == MF_TOKEN_UNUSED || (cp == b && b < 0x80)))
            t->byte_id[b] = (int32_t)id;
        else if (needed(b))
            return mf_fail(err, MF_ERR_FORMAT, "the vocabulary has no token for byte 0x%02X ('%.*s')", b, (int)text.len,
                           text.ptr);
    }
    return true;
}

static bool spm_bytes(mf_tokenizer *t, mf_error *err) {
    int missing = -1, n = 0;
    for (int b = 0; b < 256; b++) {
        char name[8];
        uint32_t id;
        snprintf(name, sizeof name, "<0x%02X>", b);
        if (mf_map_get(&t->ids, mf_str_of(name), &id) && t->type[id] == MF_TOKEN_BYTE) {
            t->byte_id[b] = (int32_t)id;
            n++;
        } else if (missing < 0) {
            missing = b;
        }
    }
    if (n > 0 && n < 256)
        return mf_fail(err, MF_ERR_FORMAT, "the vocabulary has no token for byte 0x%02X (<0x%02X>)", missing, missing);
    return true;
}

bool mf_vocab_load(mf_tokenizer *t, const mf_gguf *file, mf_error *err) {
    for (int b = 0; b < 256; b++) t->byte_id[b] = -1;
    if (!read_tokens(t, file, err) || !read_types(t, file, err) || !read_scores(t, file, err)) return false;
    if (!(t->sentencepiece ? spm_bytes(t, err) : bpe_bytes(t, err))) return false;
    for (uint32_t i = 0; i < t->n; i++)
        if (t->text[i].len > t->max_piece &&
            (t->type[i] == MF_TOKEN_NORMAL || t->type[i] == MF_TOKEN_UNUSED || t->type[i] == MF_TOKEN_USER_DEFINED))
            t->max_piece = t->text[i].len;
    return true;
}
