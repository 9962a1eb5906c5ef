// The vocabulary as grammars see it: what each token says, in a tree of bytes.
#ifndef MF_SAMPLE_GRAMMAR_VOCAB_H
#define MF_SAMPLE_GRAMMAR_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

// A tree in the order of its bytes: node i has its byte, its depth (1: first bytes), the number of the node behind all that it leads to,
// and the tokens that end at it, tokens[first[i]] to tokens[first[i + 1]].
typedef struct mf_trie {
    uint32_t n;
    uint8_t *bytes;
    uint16_t *depth;
    uint32_t *skip;
    uint32_t *first;
    int32_t *tokens;
} mf_trie;

typedef struct mf_grammar_token {
    mf_str name; // its bytes, or what a control token is called
    bool text;   // it says its bytes; else it only is itself
    bool ends;   // it ends an answer
} mf_grammar_token;

typedef struct mf_grammar_vocab {
    int32_t n; // ids
    size_t n_words;
    mf_grammar_token *tokens; // [n]
    char *bytes;              // of their names
    uint32_t most_bytes;      // of a token
    int32_t *ends;            // [n_ends] tokens that end an answer
    uint32_t n_ends;
    mf_trie all;
    mf_trie others; // all tokens but the plain ones: characters of which none needs an escape in a JSON string
    // Plain tokens by their number of characters: those with at most k characters are plain[k]'s. Filled up to most_chars.
    uint64_t **plain;
    uint32_t most_chars;
} mf_grammar_vocab;

// Copies the tokens of ids 0 to n - 1. NULL with err: memory, a token of over 65535 bytes.
mf_grammar_vocab *mf_grammar_vocab_new(const mf_grammar_token *tokens, int32_t n, mf_error *err);
void mf_grammar_vocab_free(mf_grammar_vocab *v);

#endif
