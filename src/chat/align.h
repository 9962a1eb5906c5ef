// Comparing two token sequences by what they say, so that the same text in another segmentation counts as the same.
#ifndef MF_CHAT_ALIGN_H
#define MF_CHAT_ALIGN_H

#include "text/tokenizer.h"

// A token sequence as symbols: the bytes of its ordinary tokens, and one symbol (256 + id) for each control token, which no bytes of
// a text can equal.
typedef struct mf_symbols {
    mf_array(uint32_t) symbol;
    mf_array(size_t) end; // end.data[i]: symbols up to and with token i
} mf_symbols;

bool mf_symbols_make(mf_symbols *s, const mf_tokenizer *t, const int32_t *ids, size_t n, mf_error *err);
void mf_symbols_free(mf_symbols *s);

// Symbols before token i (i up to the number of tokens).
size_t mf_symbols_before(const mf_symbols *s, size_t i);

// The first token that begins at this symbol; SIZE_MAX when none does. The number of tokens for the end.
size_t mf_symbols_token_at(const mf_symbols *s, size_t symbol);

// The longest beginning that a and b have in common and at whose end both have a token boundary: its tokens in each.
void mf_symbols_align(const mf_symbols *a, const mf_symbols *b, size_t *n_a, size_t *n_b);

// Takes the tokens [from, to) out.
void mf_symbols_cut(mf_symbols *s, size_t from, size_t to);

#endif
