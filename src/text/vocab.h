// Inside the tokenizer: what a loaded vocabulary is. Not for other rooms.
#ifndef MF_TEXT_VOCAB_H
#define MF_TEXT_VOCAB_H

#include "base/arena.h"
#include "base/map.h"
#include "text/pretokenizers.h"
#include "text/split.h"
#include "text/tokenizer.h"

#define MF_SPACE_MARK "\xE2\x96\x81" // U+2581 stands for a space in SentencePiece's texts

typedef struct mf_merges mf_merges; // bpe.c

// Tokens whose text is matched before the model runs, sorted by text so that a prefix is a range.
typedef struct mf_special {
    mf_str text;
    int32_t id;
    bool control;     // matched only where control tokens are parsed; user-defined ones are matched everywhere
    bool strip_right; // white space behind it belongs to it
} mf_special;

typedef struct mf_special_set {
    mf_special *items;
    size_t n;
    uint32_t first[257]; // items beginning with byte b: first[b] .. first[b+1]-1
} mf_special_set;

struct mf_tokenizer {
    bool sentencepiece; // else byte-level BPE
    uint32_t n;
    mf_str *text;  // n, into the file
    uint8_t *type; // n, mf_token_type
    float *score;  // n; SentencePiece only, else NULL
    mf_map ids;    // text -> id, of all tokens
    uint8_t *eog;  // n flags
    mf_special_set special;
    mf_arena escaped;     // texts of special items that are not in the file as they are
    int32_t byte_id[256]; // the token of one byte; -1: none
    int32_t bos, eos, eot, unk, pad;
    bool add_bos, add_eos, add_space_prefix, nfc;
    const char *pre_name;
    const mf_pretokenizer *pre; // BPE only
    mf_splitter *splitter;      // BPE only
    mf_merges *merges;          // BPE only
    size_t max_piece;           // SentencePiece: bytes of the longest piece that merging can make
};

// Reads tokens, types, scores, special ids and flags. False with err.
bool mf_vocab_load(mf_tokenizer *t, const mf_gguf *file, mf_error *err);

// Special ids and end-of-generation tokens, then the set of special tokens (vocab_special.c). After the tokens are read.
bool mf_vocab_load_special(mf_tokenizer *t, const mf_gguf *file, mf_error *err);

// The longest special token at text[0..len) of which a control token's text, and a guarded one's, lies in text[0..control_len);
// NULL when none begins here. SentencePiece's text is escaped.
const mf_special *mf_special_match(const mf_special_set *set, const char *text, size_t len, size_t control_len,
                                   const mf_token_array *guarded);
bool mf_is_guarded(const mf_token_array *guarded, int32_t id); // NULL guards none

// GPT-2's byte alphabet: the code point that stands for a byte in token texts, and back (-1: none).
uint32_t mf_byte_to_char(uint8_t byte);
int mf_char_to_byte(uint32_t cp);

// Reads the merges. NULL with err.
mf_merges *mf_merges_load(const mf_tokenizer *t, const mf_gguf *file, mf_error *err);
void mf_merges_free(mf_merges *m); // NULL is fine

// What encoding one text needs and changes. Zero-initialised is ready.
typedef struct mf_bpe_state mf_bpe_state;
typedef struct mf_spm_state mf_spm_state;

typedef struct mf_encoder {
    const mf_tokenizer *t;
    const mf_token_array *guarded; // ids that come only from where control tokens are parsed; NULL: none
    mf_token_array *out;
    size_t n_dropped; // bytes without a token
    uint8_t dropped;  // the first of them
    mf_split_state *split;
    mf_bpe_state *bpe;
    mf_spm_state *spm;
} mf_encoder;

bool mf_encoder_push(mf_encoder *e, int32_t id, mf_error *err);
void mf_encoder_drop(mf_encoder *e, uint8_t byte);

// Byte-level BPE of one word (any bytes). False with err when memory is out.
bool mf_bpe_word(mf_encoder *e, mf_str word, mf_error *err);
void mf_bpe_state_free(mf_bpe_state *s); // NULL is fine

// SentencePiece of one escaped text without special tokens (any bytes). prefix: a space is put in front.
bool mf_spm_text(mf_encoder *e, mf_str text, bool prefix, mf_error *err);
void mf_spm_state_free(mf_spm_state *s); // NULL is fine

// The NFC of valid UTF-8. *out is `text` itself where that is normal already, else the bytes of *buf.
bool mf_nfc(mf_str text, mf_buf *buf, mf_str *out, mf_error *err);

#endif
