// Both tokenizers on arbitrary bytes, over small vocabularies. The first byte chooses the vocabulary, the pre-tokenizer and the
// flags, and where the text is cut into spans. Encoding must succeed, byte-level BPE must give the bytes back, and where control tokens are
// not parsed neither those nor ending or guarded tokens may come out.
#include "text/tiny_vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const pres[] = {"qwen2",    "smollm",   "llama-bpe", "deepseek-v3", "deepseek-llm", "falcon", "gpt-4o",
                                   "superbpe", "tiny_aya", "afmoe",     "kimi-k2",     "exaone-moe",   "jais-2"};
enum {
    N_PRES = sizeof pres / sizeof *pres
};

// Index N_PRES is SentencePiece.
static const mf_tokenizer *tokenizer(unsigned which) {
    static mf_tokenizer *made[N_PRES + 1];
    static mf_gguf *files[N_PRES + 1]; // kept: the tokenizers point into them
    if (made[which]) return made[which];
    static tiny_vocab v;
    if (which == N_PRES)
        tiny_spm(&v);
    else
        tiny_bpe(&v);
    size_t size;
    mf_error err = {0};
    uint8_t *bytes = tiny_build(&v, &size);
    mf_gguf *file = files[which] = mf_gguf_open_memory(bytes, size, &err);
    mf_tokenizer_options opts = {.pre = which == N_PRES ? NULL : pres[which], .no_nfc = true};
    if (!file || !(made[which] = mf_tokenizer_new(file, &opts, &err))) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return made[which];
}

static void check_ids(const mf_tokenizer *t, const mf_token_array *ids, const mf_token_array *guarded) {
    for (size_t i = 0; i < ids->len; i++) {
        bool bad = mf_tokenizer_type(t, ids->data[i]) == MF_TOKEN_CONTROL || mf_tokenizer_is_eog(t, ids->data[i]);
        for (size_t k = 0; k < guarded->len; k++) bad = bad || guarded->data[k] == ids->data[i];
        if (bad) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    unsigned which = data[0] % (N_PRES + 1), mode = data[1];
    mf_str text = {(const char *)data + 2, size - 2};
    size_t cut = text.len ? (mode >> 3) % (text.len + 1) : 0;
    mf_text_span spans[2] = {{{text.ptr, cut}, mode & 2}, {{text.ptr + cut, text.len - cut}, mode & 4}};
    const mf_tokenizer *t = tokenizer(which);
    mf_token_array ids = {0};
    mf_error err = {0};
    int32_t marks[] = {mf_tokenizer_find(t, MF_STR("<think>")), mf_tokenizer_find(t, MF_STR("<mark>"))};
    mf_token_array guarded = {.data = marks, .len = data[0] & 0x80 ? 2 : 0};
    if (!mf_tokenizer_encode_guarded(t, spans, 2, &guarded, mode & 1 ? MF_ENCODE_PLAIN : 0, &ids, &err)) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    if (!spans[0].parse_control && !spans[1].parse_control) check_ids(t, &ids, &guarded);
    mf_buf back = {0};
    mf_decoder d;
    mf_decoder_init(&d, t, true, true);
    for (size_t i = 0; i < ids.len; i++) mf_decoder_feed(&d, ids.data[i], &back);
    mf_buf_add(&back, d.held, d.n_held);
    if (which != N_PRES && !mf_str_eq((mf_str){back.data, back.len}, text)) abort();
    free(back.data);
    free(ids.data);
    return 0;
}
