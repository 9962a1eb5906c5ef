// Special ids, the tokens at which generation ends, and the texts that are matched before the model runs.
#include <stdlib.h>

#include "base/mem.h"
#include "text/vocab.h"

enum {
    MAX_SPECIAL_BYTES = 4096
}; // a bound on the work at each position of a text

// Tokens that mean something by their text, for files that give them another type or no id. As in llama.cpp's list.
static const struct {
    const char *text;
    bool ends;       // generation ends there
    bool turn;       // it is a candidate for EOT, the first in this order
    bool if_control; // only where the file says it is a control token: other vocabularies have the text as a word
} known[] = {
    {"<|eot_id|>", true, true, false},
    {"<|im_end|>", true, true, false},
    {"<|end|>", true, true, false},
    {"<end_of_turn>", true, true, false},
    {"<|endoftext|>", true, true, false},
    {"<|end_of_text|>", true, true, false},
    {"<EOT>", true, true, false},
    {"_<EOT>", true, true, false},
    {"[EOT]", true, true, true},
    {"<｜end▁of▁sentence｜>", true, true, false},
    {"<end_of_utterance>", true, true, false},
    {"<|eom_id|>", true, false, false},
    {"<|return|>", true, false, false},
    {"<|call|>", true, false, false},
    {"<|calls|>", true, false, false},
    {"<|flush|>", true, false, false},
    {"<eos>", true, false, true},
    {"</s>", true, false, true},
    {"[EOS]", true, false, true},
    {"<turn|>", true, false, true},
    {"[e~[", true, false, true},
    {"<|fim_pad|>", true, false, true},
    {"<|repo_name|>", true, false, true},
    {"<|file_sep|>", true, false, true},
    {"<|im_start|>", false, false, false},
};

static bool by_name(mf_tokenizer *t, const char *text, uint32_t *id) { return mf_map_get(&t->ids, mf_str_of(text), id); }

static void mark_known(mf_tokenizer *t) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t id;
        if (!by_name(t, known[i].text, &id)) continue;
        if (known[i].if_control && t->type[id] != MF_TOKEN_CONTROL) continue;
        t->type[id] = MF_TOKEN_CONTROL;
        if (known[i].ends) t->eog[id] = 1;
        if (known[i].turn && t->eot < 0) t->eot = (int32_t)id;
    }
    // In the harmony format <|end|> closes a message, not the turn.
    uint32_t end, call;
    if (by_name(t, "<|end|>", &end) && ((by_name(t, "<|return|>", &call) && by_name(t, "<|call|>", &call)) ||
                                        (by_name(t, "<|flush|>", &call) && by_name(t, "<|calls|>", &call)))) {
        t->eog[end] = 0;
        if (t->eot == (int32_t)end) t->eot = -1;
    }
}

static bool read_id(const mf_tokenizer *t, const mf_gguf *file, const char *key, int32_t *out, mf_error *err) {
    const mf_gguf_value *v = mf_gguf_find(file, key);
    if (!v) return true;
    uint32_t id = 0;
    if (!mf_gguf_get_u32(file, key, &id, err)) return false;
    if (id >= t->n) return mf_fail(err, MF_ERR_FORMAT, "%s is %u, outside the vocabulary of %u tokens", key, id, t->n);
    *out = (int32_t)id;
    return true;
}

// SentencePiece's own ids, for files that do not name them.
static void spm_defaults(mf_tokenizer *t) {
    static const char *const texts[] = {"<unk>", "<s>", "</s>"};
    int32_t *const ids[] = {&t->unk, &t->bos, &t->eos};
    for (uint32_t i = 0; i < 3; i++)
        if (i < t->n && mf_str_is(t->text[i], texts[i])) *ids[i] = (int32_t)i;
}

static int compare(const void *a, const void *b) {
    mf_str x = ((const mf_special *)a)->text, y = ((const mf_special *)b)->text;
    size_t len = x.len < y.len ? x.len : y.len;
    int order = memcmp(x.ptr, y.ptr, len);
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

static bool is_special(const mf_tokenizer *t, uint32_t id) {
    return t->text[id].len > 0 &&
           (t->type[id] == MF_TOKEN_CONTROL || t->type[id] == MF_TOKEN_USER_DEFINED || t->type[id] == MF_TOKEN_UNKNOWN);
}

// The text to look for: SentencePiece's is one in which U+2581 stands for every space.
static bool special_text(mf_tokenizer *t, uint32_t id, mf_str *out) {
    mf_str text = t->text[id];
    *out = text;
    if (!t->sentencepiece || !memchr(text.ptr, ' ', text.len)) return true;
    char *escaped = mf_arena_alloc(&t->escaped, text.len, 3), *p = escaped;
    if (!escaped) return false;
    for (size_t i = 0; i < text.len; i++) {
        mf_str c = text.ptr[i] == ' ' ? MF_STR(MF_SPACE_MARK) : (mf_str){text.ptr + i, 1};
        for (size_t k = 0; k < c.len; k++) *p++ = c.ptr[k];
    }
    *out = (mf_str){escaped, (size_t)(p - escaped)};
    return true;
}

// Phi-3's published tokenizer takes the white space behind most special tokens into them; its files do not say so.
static bool is_phi3(const mf_gguf *file) {
    mf_str name = {0};
    mf_error ignored = {0};
    if (!mf_gguf_get_str(file, "general.name", &name, &ignored)) return false;
    for (size_t i = 0; i + 4 <= name.len; i++) {
        mf_str rest = {name.ptr + i, name.len - i};
        bool phi = (rest.ptr[0] | 32) == 'p' && (rest.ptr[1] | 32) == 'h' && (rest.ptr[2] | 32) == 'i';
        bool gap = rest.ptr[3] == '-' || rest.ptr[3] == ' ' || rest.ptr[3] == '_';
        if (phi && (rest.ptr[3] == '3' || (rest.len > 4 && gap && rest.ptr[4] == '3'))) return true;
    }
    return false;
}

static bool strips_right(mf_str text) {
    return !mf_str_is(text, "<unk>") && !mf_str_is(text, "<s>") && !mf_str_is(text, "<|endoftext|>");
}

static bool build_set(mf_tokenizer *t, bool phi3, mf_error *err) {
    mf_special_set *set = &t->special;
    for (uint32_t i = 0; i < t->n; i++) set->n += is_special(t, i);
    set->items = mf_alloc(set->n, sizeof *set->items);
    if (!set->items) return mf_fail_memory(err, set->n * sizeof *set->items, "the special tokens");
    size_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        if (!is_special(t, i)) continue;
        if (t->text[i].len > MAX_SPECIAL_BYTES)
            return mf_fail(err, MF_ERR_FORMAT, "special token %u has %zu bytes of text, at most %d", i, t->text[i].len,
                           MAX_SPECIAL_BYTES);
        mf_str text;
        if (!special_text(t, i, &text)) return mf_fail_memory(err, t->text[i].len * 3, "the special tokens");
        set->items[n++] = (mf_special){.text = text,
                                       .id = (int32_t)i,
                                       .control = t->type[i] != MF_TOKEN_USER_DEFINED,
                                       .strip_right = phi3 && strips_right(text)};
    }
    qsort(set->items, n, sizeof *set->items, compare);
    for (size_t i = n; i-- > 0;) set->first[(uint8_t)set->items[i].text.ptr[0]] = (uint32_t)i;
    // Empty ranges begin where the next one does.
    bool seen[256] = {false};
    for (size_t i = 0; i < n; i++) seen[(uint8_t)set->items[i].text.ptr[0]] = true;
    set->first[256] = (uint32_t)n;
    for (int b = 255; b >= 0; b--)
        if (!seen[b]) set->first[b] = set->first[b + 1];
    return true;
}

bool mf_vocab_load_special(mf_tokenizer *t, const mf_gguf *file, mf_error *err) {
    t->bos = t->eos = t->eot = t->unk = t->pad = -1;
    if (t->sentencepiece) spm_defaults(t);
    const struct {
        const char *key;
        int32_t *id;
    } ids[] = {{"tokenizer.ggml.bos_token_id", &t->bos},
               {"tokenizer.ggml.eos_token_id", &t->eos},
               {"tokenizer.ggml.eot_token_id", &t->eot},
               {"tokenizer.ggml.unknown_token_id", &t->unk},
               {"tokenizer.ggml.padding_token_id", &t->pad}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (!read_id(t, file, ids[i].key, ids[i].id, err)) return false;
    t->add_bos = t->sentencepiece || t->pre->add_bos;
    t->add_space_prefix = t->sentencepiece;
    if (!mf_gguf_get_bool(file, "tokenizer.ggml.add_bos_token", &t->add_bos, err) ||
        !mf_gguf_get_bool(file, "tokenizer.ggml.add_eos_token", &t->add_eos, err) ||
        !mf_gguf_get_bool(file, "tokenizer.ggml.add_space_prefix", &t->add_space_prefix, err))
        return false;
    if (!t->sentencepiece) t->add_space_prefix = false;
    t->add_bos = t->add_bos && t->bos >= 0;
    t->add_eos = t->add_eos && t->eos >= 0;
    mark_known(t);
    const int32_t ends[] = {t->eos, t->eot};
    for (size_t i = 0; i < 2; i++) {
        if (ends[i] < 0) continue;
        t->eog[ends[i]] = 1;
        if (t->type[ends[i]] == MF_TOKEN_NORMAL) t->type[ends[i]] = MF_TOKEN_CONTROL;
    }
    if (t->sentencepiece && t->byte_id[0] < 0 && t->unk < 0)
        return mf_fail(err, MF_ERR_FORMAT, "the vocabulary has neither byte tokens nor an unknown token");
    return build_set(t, is_phi3(file), err);
}

const mf_special *mf_special_match(const mf_special_set *set, const char *text, size_t len, size_t control_len) {
    size_t low = set->first[(uint8_t)text[0]], high = set->first[(uint8_t)text[0] + 1];
    const mf_special *best = NULL;
    // items[low..high) agree with text[0..depth).
    for (size_t depth = 1; low < high; depth++) {
        for (; low < high && set->items[low].text.len == depth; low++) { // two where one has a space and one the mark
            if (!set->items[low].control || depth <= control_len) best = &set->items[low];
        }
        if (depth >= len) break;
        uint8_t next = (uint8_t)text[depth];
        for (size_t top = high; low < top;) { // the first whose byte is not below
            size_t mid = low + (top - low) / 2;
            if ((uint8_t)set->items[mid].text.ptr[depth] < next)
                low = mid + 1;
            else
                top = mid;
        }
        for (size_t bottom = low; bottom < high;) { // the first whose byte is above
            size_t mid = bottom + (high - bottom) / 2;
            if ((uint8_t)set->items[mid].text.ptr[depth] <= next)
                bottom = mid + 1;
            else
                high = mid;
        }
    }
    return best;
}
