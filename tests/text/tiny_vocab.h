// Vocabularies small enough to read, as GGUF files in memory. A test changes one field of a `tiny_vocab` and builds it.
#ifndef MF_TESTS_TEXT_TINY_VOCAB_H
#define MF_TESTS_TEXT_TINY_VOCAB_H

#include <stdio.h>
#include <stdlib.h>

#include "support/ggufgen.h"
#include "text/tokenizer.h"

enum {
    TINY_MAX = 512
};

typedef struct tiny_vocab {
    const char *model, *pre; // NULL: the key is left out
    const char *tokens[TINY_MAX];
    int32_t types[TINY_MAX];
    float scores[TINY_MAX];
    size_t n, n_types, n_scores; // n_types, n_scores: as many as are written; 0 leaves the key out
    const char *merges[16];
    size_t n_merges;                        // 0 leaves the key out
    int bos, eos, eot, unk, eom, pad;       // -1 leaves the key out
    int fim[3];                             // pad, rep, sep; the same
    int add_bos, add_eos, add_space_prefix; // -1 leaves the key out
    const char *name;                       // general.name; NULL leaves it out
    char names[256][8];                     // texts of the byte tokens
} tiny_vocab;

static inline int tiny_add(tiny_vocab *v, const char *text, int type, float score) {
    v->tokens[v->n] = text;
    v->types[v->n] = type;
    v->scores[v->n] = score;
    v->n_types = v->n + 1;
    return (int)v->n++;
}

static inline void tiny_clear(tiny_vocab *v, const char *model, const char *pre) {
    memset(v, 0, sizeof *v);
    v->model = model;
    v->pre = pre;
    v->bos = v->eos = v->eot = v->unk = v->eom = v->pad = v->add_bos = v->add_eos = v->add_space_prefix = -1;
    for (int i = 0; i < 3; i++) v->fim[i] = -1;
}

// Ids 0..255 are the bytes; then h+e, l+l, he+ll, hell+o, " "+hello, the control tokens and the user-defined ones.
enum {
    TINY_HE = 256,
    TINY_LL,
    TINY_HELL,
    TINY_HELLO,
    TINY_SPACE_HELLO,
    TINY_IM_START,
    TINY_IM_END,
    TINY_END,
    TINY_THINK,
    TINY_THINK_END,
    TINY_THINKING
};

static inline void tiny_bpe(tiny_vocab *v) {
    static const char *const more[] = {"he", "ll", "hell", "hello", "\xC4\xA0hello"};
    static const char *const merges[] = {"h e", "l l", "he ll", "hell o", "\xC4\xA0 hello"};
    tiny_clear(v, "gpt2", "qwen2");
    for (unsigned b = 0, other = 0; b < 256; b++) { // GPT-2's byte alphabet
        bool self = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
        unsigned cp = self ? b : 256 + other++;
        snprintf(v->names[b], sizeof v->names[b], cp < 0x80 ? "%c" : "%c%c", cp < 0x80 ? (int)cp : (int)(0xC0 | cp >> 6),
                 (int)(0x80 | (cp & 0x3F)));
        tiny_add(v, v->names[b], MF_TOKEN_NORMAL, 0);
    }
    for (int i = 0; i < 5; i++) {
        tiny_add(v, more[i], MF_TOKEN_NORMAL, 0);
        v->merges[v->n_merges++] = merges[i];
    }
    tiny_add(v, "<|im_start|>", MF_TOKEN_CONTROL, 0);
    v->eot = tiny_add(v, "<|im_end|>", MF_TOKEN_CONTROL, 0);
    v->bos = v->eos = tiny_add(v, "<|endoftext|>", MF_TOKEN_CONTROL, 0);
    tiny_add(v, "<think>", MF_TOKEN_USER_DEFINED, 0);
    tiny_add(v, "</think>", MF_TOKEN_USER_DEFINED, 0);
    tiny_add(v, "<think>ing", MF_TOKEN_USER_DEFINED, 0);
}

// <unk> <s> </s>, the 256 byte tokens from id 3 on, then pieces.
enum {
    SPM_BYTES = 3,
    SPM_SPACE = 259,
    SPM_A,
    SPM_B,
    SPM_AB,
    SPM_SPACE_A,
    SPM_BA,
    SPM_ABA,
    SPM_SPACES,
    SPM_MARK
};

static inline void tiny_spm(tiny_vocab *v) {
    tiny_clear(v, "llama", "default");
    v->unk = tiny_add(v, "<unk>", MF_TOKEN_UNKNOWN, 0);
    v->bos = tiny_add(v, "<s>", MF_TOKEN_CONTROL, 0);
    v->eos = tiny_add(v, "</s>", MF_TOKEN_CONTROL, 0);
    for (unsigned b = 0; b < 256; b++) {
        snprintf(v->names[b], sizeof v->names[b], "<0x%02X>", b);
        tiny_add(v, v->names[b], MF_TOKEN_BYTE, 0);
    }
    tiny_add(v, "\xE2\x96\x81", MF_TOKEN_NORMAL, -10);
    tiny_add(v, "a", MF_TOKEN_NORMAL, -11);
    tiny_add(v, "b", MF_TOKEN_NORMAL, -12);
    tiny_add(v, "ab", MF_TOKEN_NORMAL, -2);
    tiny_add(v,
             "\xE2\x96\x81"
             "a",
             MF_TOKEN_NORMAL, -3);
    tiny_add(v, "ba", MF_TOKEN_NORMAL, -1);
    tiny_add(v, "aba", MF_TOKEN_UNUSED, -4);
    tiny_add(v, "  ", MF_TOKEN_USER_DEFINED, 0);
    tiny_add(v, "<mark>", MF_TOKEN_USER_DEFINED, 0);
    v->n_scores = v->n;
}

// The file's bytes; freed with free().
static inline uint8_t *tiny_build(const tiny_vocab *v, size_t *size) {
    ggufgen g;
    ggufgen_init(&g);
    ggufgen_str(&g, "general.architecture", "llama");
    if (v->name) ggufgen_str(&g, "general.name", v->name);
    if (v->model) ggufgen_str(&g, "tokenizer.ggml.model", v->model);
    if (v->pre) ggufgen_str(&g, "tokenizer.ggml.pre", v->pre);
    ggufgen_strings(&g, "tokenizer.ggml.tokens", v->tokens, v->n);
    if (v->n_types) ggufgen_array(&g, "tokenizer.ggml.token_type", MF_GGUF_I32, v->n_types, v->types, v->n_types * 4);
    if (v->n_scores) ggufgen_array(&g, "tokenizer.ggml.scores", MF_GGUF_F32, v->n_scores, v->scores, v->n_scores * 4);
    if (v->n_merges) ggufgen_strings(&g, "tokenizer.ggml.merges", v->merges, v->n_merges);
    if (v->bos >= 0) ggufgen_u32(&g, "tokenizer.ggml.bos_token_id", (uint32_t)v->bos);
    if (v->eos >= 0) ggufgen_u32(&g, "tokenizer.ggml.eos_token_id", (uint32_t)v->eos);
    if (v->eot >= 0) ggufgen_u32(&g, "tokenizer.ggml.eot_token_id", (uint32_t)v->eot);
    if (v->unk >= 0) ggufgen_u32(&g, "tokenizer.ggml.unknown_token_id", (uint32_t)v->unk);
    if (v->eom >= 0) ggufgen_u32(&g, "tokenizer.ggml.eom_token_id", (uint32_t)v->eom);
    if (v->pad >= 0) ggufgen_u32(&g, "tokenizer.ggml.padding_token_id", (uint32_t)v->pad);
    static const char *const fim[] = {"tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id",
                                      "tokenizer.ggml.fim_sep_token_id"};
    for (int i = 0; i < 3; i++)
        if (v->fim[i] >= 0) ggufgen_u32(&g, fim[i], (uint32_t)v->fim[i]);
    if (v->add_bos >= 0) ggufgen_bool(&g, "tokenizer.ggml.add_bos_token", v->add_bos);
    if (v->add_eos >= 0) ggufgen_bool(&g, "tokenizer.ggml.add_eos_token", v->add_eos);
    if (v->add_space_prefix >= 0) ggufgen_bool(&g, "tokenizer.ggml.add_space_prefix", v->add_space_prefix);
    uint8_t *bytes = ggufgen_finish(&g, size);
    ggufgen_free(&g);
    return bytes;
}

#endif
