// The tokenizer: text to token ids and back, from a GGUF file's metadata alone. Byte-level BPE (`gpt2`) and SentencePiece
// (`llama`). Ids equal those of the published tokenizer; docs/tokenizer.md has the rules and where llama.cpp differs.
//
// A tokenizer is immutable once it is made: any number of threads may use one at the same time.
#ifndef MF_TEXT_TOKENIZER_H
#define MF_TEXT_TOKENIZER_H

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "gguf/gguf.h"

typedef struct mf_tokenizer mf_tokenizer;

typedef mf_array(int32_t) mf_token_array; // token ids; freed with free(a.data)

typedef enum mf_token_type { // GGUF's numbers
    MF_TOKEN_NORMAL = 1,
    MF_TOKEN_UNKNOWN = 2,
    MF_TOKEN_CONTROL = 3,
    MF_TOKEN_USER_DEFINED = 4,
    MF_TOKEN_UNUSED = 5,
    MF_TOKEN_BYTE = 6,
} mf_token_type;

typedef struct mf_tokenizer_options {
    const char *pre; // a pre-tokenizer's name in place of the file's `tokenizer.ggml.pre`; NULL: the file's
    bool no_nfc;     // never normalize, as llama.cpp does
} mf_tokenizer_options;

// Makes a tokenizer. `file` must outlive it (token texts point into the map); opts may be NULL. NULL with err when the
// vocabulary is refused: see "Refusals" in docs/tokenizer.md.
mf_tokenizer *mf_tokenizer_new(const mf_gguf *file, const mf_tokenizer_options *opts, mf_error *err);
void mf_tokenizer_free(mf_tokenizer *t); // NULL is fine

// The vocabulary. Ids are 0 .. n_vocab-1; an `id` argument must be one of them unless said otherwise.
int32_t mf_tokenizer_n_vocab(const mf_tokenizer *t);
const char *mf_tokenizer_model(const mf_tokenizer *t);       // "gpt2" or "llama"
const char *mf_tokenizer_pre(const mf_tokenizer *t);         // the pre-tokenizer's name; "" for SentencePiece
mf_str mf_tokenizer_text(const mf_tokenizer *t, int32_t id); // as the file has it (BPE: in the byte alphabet)
mf_token_type mf_tokenizer_type(const mf_tokenizer *t, int32_t id);

// The id whose text in the file is exactly `text`; -1 when there is none.
int32_t mf_tokenizer_find(const mf_tokenizer *t, mf_str text);

// Special ids; -1 when absent.
int32_t mf_tokenizer_bos(const mf_tokenizer *t);
int32_t mf_tokenizer_eos(const mf_tokenizer *t);
int32_t mf_tokenizer_eot(const mf_tokenizer *t); // end of turn: the file's, or found by its text
int32_t mf_tokenizer_unk(const mf_tokenizer *t);
int32_t mf_tokenizer_pad(const mf_tokenizer *t);
bool mf_tokenizer_add_bos(const mf_tokenizer *t);
bool mf_tokenizer_add_eos(const mf_tokenizer *t);

// Whether generation ends at this token: EOS, EOT, EOM, those of fill-in-the-middle that end a text, and the tokens whose text
// says so (<|im_end|>, <|eot_id|>, …). Any id may be asked; one outside the vocabulary is false. All are control tokens.
bool mf_tokenizer_is_eog(const mf_tokenizer *t, int32_t id);

typedef enum mf_encode_flags {
    MF_ENCODE_ADD_SPECIAL =
        1, // BOS before and EOS behind, where the file asks for them; no BOS before a text that begins with it
    MF_ENCODE_PARSE_CONTROL = 2, // the text of a control token becomes that token
    MF_ENCODE_PLAIN = 4,         // no token's text is special, not even a user-defined one's
    MF_ENCODE_ADD_BOS = 8,       // of MF_ENCODE_ADD_SPECIAL only what stands before
    MF_ENCODE_CONTINUED = 16,    // the text goes on from another: SentencePiece puts no space in front of it
} mf_encode_flags;

// Appends the ids of `text` to *out. Any bytes are taken: those that are not UTF-8 go through their byte tokens one by one.
// Bytes for which the vocabulary has no token are left out, as the published tokenizers do, with one warning in the log.
// Linear in the text's length up to a logarithm. On failure (memory, a text over 1 GiB) *out is as it was.
bool mf_tokenizer_encode(const mf_tokenizer *t, mf_str text, unsigned flags, mf_token_array *out, mf_error *err);

// A piece of a text, and whether control tokens' text in it becomes those tokens.
typedef struct mf_text_span {
    mf_str text;
    bool parse_control;
} mf_text_span;

// The same over the concatenation of n spans (tokens may cross from one into the next). A control token is matched only where
// every byte of its text lies in spans with parse_control; user-defined tokens are matched everywhere. Of the flags
// MF_ENCODE_PARSE_CONTROL is not looked at.
bool mf_tokenizer_encode_spans(const mf_tokenizer *t, const mf_text_span *spans, size_t n, unsigned flags,
                               mf_token_array *out, mf_error *err);

// The same with user-defined tokens that are treated like control tokens (NULL: none).
bool mf_tokenizer_encode_guarded(const mf_tokenizer *t, const mf_text_span *spans, size_t n, const mf_token_array *guarded,
                                 unsigned flags, mf_token_array *out, mf_error *err);

// Appends the bytes a token stands for: maybe a part of a character. Control and unknown tokens give nothing unless `special`,
// then their text. SentencePiece's leading space is kept (the decoder drops it).
void mf_tokenizer_piece(const mf_tokenizer *t, int32_t id, bool special, mf_buf *out);

// Streaming decoder: bytes of an incomplete character wait for the rest. Zero-initialised by mf_decoder_init; owns nothing.
typedef struct mf_decoder {
    const mf_tokenizer *tokenizer;
    bool special;   // control tokens give their text
    bool at_start;  // the next bytes begin the text: SentencePiece's prefix space is dropped
    uint8_t n_held; // bytes waiting
    char held[4];
} mf_decoder;

// text_start: the ids begin a text (and are not the continuation of a prompt), so the space that encoding put in front of it
// (`add_space_prefix`) is taken off.
void mf_decoder_init(mf_decoder *d, const mf_tokenizer *t, bool special, bool text_start);

// Appends the bytes that `id` completes. Bytes that no continuation can make UTF-8 pass through as they are; nothing is
// ever replaced.
void mf_decoder_feed(mf_decoder *d, int32_t id, mf_buf *out);

// Ends the text: drops the bytes of an incomplete character and returns how many they were (0-3).
int mf_decoder_finish(mf_decoder *d);

#endif
