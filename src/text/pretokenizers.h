// The pre-tokenizers: which splits a `tokenizer.ggml.pre` name stands for. One table.
#ifndef MF_TEXT_PRETOKENIZERS_H
#define MF_TEXT_PRETOKENIZERS_H

#include "base/text.h"

// How one pass cuts a piece of text. The passes run in order, each on every piece of the one before it.
typedef enum mf_split_kind {
    MF_SPLIT_END = 0,
    MF_SPLIT_REGEX,  // every match becomes a piece, and what lies between matches too
    MF_SPLIT_DIGITS, // a run of digits is cut into groups of three counted from its end
} mf_split_kind;

// Of MF_SPLIT_DIGITS. The published forms are look-aheads over the rest of the run at each group, which is quadratic.
typedef enum mf_digit_rule {
    MF_DIGITS_ANY,      // \p{N} runs, cut off from what surrounds them
    MF_DIGITS_BOUNDARY, // \d runs that end at a word boundary: \d{1,3}(?=(?:\d{3})*\b)
    MF_DIGITS_INSIDE,   // only cuts between the groups of a \d run: (?=(\d{3})+(?!\d))
} mf_digit_rule;

typedef struct mf_split {
    mf_split_kind kind;
    const char *regex; // PCRE2's syntax, the published meaning
    mf_digit_rule digits;
} mf_split;

enum {
    MF_MAX_SPLITS = 8
};

typedef struct mf_pretokenizer {
    const char *names[12];          // NULL behind the last
    mf_split splits[MF_MAX_SPLITS]; // MF_SPLIT_END behind the last
    bool ignore_merges;             // a word that is a token as a whole is that token, whatever the merges say
    bool nfc;                       // the published tokenizer normalizes to NFC
    bool add_bos;                   // where the file does not say
} mf_pretokenizer;

// NULL for a name without a row.
const mf_pretokenizer *mf_pretokenizer_find(mf_str name);

// Appends the first name of every row, separated by spaces: short enough for an error's sentence. docs/tokenizer.md has all.
void mf_pretokenizer_list(mf_buf *out);

#endif
