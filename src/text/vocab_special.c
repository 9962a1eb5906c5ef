// Special ids, the tokens at which generation ends, and the texts that are matched before the model runs.
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "text/vocab.h"

enum {
    MAX_SPECIAL_BYTES = 4096
}; // a bound on the work at each position of a text

// What a token is, beside EOS, that ends an answer.
typedef enum end_role {
    OTHER,   // it only never comes out of a text
    ENDS,    // any number of tokens
    EOS,     // one of a vocabulary each, by its key or the first of these texts: the end of a text,
    EOT,     // of a turn,
    EOM,     // of a message,
    FIM_PAD, // and those of fill-in-the-middle
    FIM_REPO,
    FIM_FILE,
    N_ROLES
} end_role;

static const char *const role_keys[N_ROLES] = {
    [EOS] = "tokenizer.ggml.eos_token_id",          [EOT] = "tokenizer.ggml.eot_token_id",
    [EOM] = "tokenizer.ggml.eom_token_id",          [FIM_PAD] = "tokenizer.ggml.fim_pad_token_id",
    [FIM_REPO] = "tokenizer.ggml.fim_rep_token_id", [FIM_FILE] = "tokenizer.ggml.fim_sep_token_id"};

// Tokens that mean something by their text, for files that give them another type or no id. As in llama.cpp's list.
static const struct {
    const char *text;
    end_role role;
    bool ends;       // generation ends there, also where another token has the role
    bool if_control; // only where the file says it is a control token: other vocabularies have the text as a word or a tag
} known[] = {
    {"<|eot_id|>", EOT, true, false},
    {"<|im_end|>", EOT, true, false},
    {"<|end|>", EOT, true, false},
    {"<end_of_turn>", EOT, true, false},
    {"<|endoftext|>", EOT, true, false},
    {"<|end_of_text|>", EOT, true, false},
    {"<EOT>", EOT, true, false},
    {"_<EOT>", EOT, true, false},
    {"[EOT]", EOT, true, true},
    {"<｜end▁of▁sentence｜>", EOT, true, false},
    {"<end_of_utterance>", EOT, true, false},
    {"<|eom_id|>", EOM, true, false},
    {"<|return|>", ENDS, true, false},
    {"<|call|>", ENDS, true, false},
    {"<|calls|>", ENDS, true, false},
    {"<|flush|>", ENDS, true, false},
    {"<eos>", ENDS, true, true},
    {"</s>", ENDS, true, true},
    {"[EOS]", ENDS, true, true},
    {"<turn|>", ENDS, true, true},
    {"[e~[", ENDS, true, true},
    {"<|fim_pad|>", FIM_PAD, false, false},
    {"<fim-pad>", FIM_PAD, false, false},
    {"<fim_pad>", FIM_PAD, false, false},
    {"<PAD>", FIM_PAD, false, true},
    {"[PAD]", FIM_PAD, false, true},
    {"<|fim_repo|>", FIM_REPO, false, false},
    {"<|repo_name|>", FIM_REPO, false, false},
    {"<fim-repo>", FIM_REPO, false, false},
    {"<REPO>", FIM_REPO, false, true},
    {"<reponame>", FIM_REPO, false, true},
    {"<|file_sep|>", FIM_FILE, false, false},
    {"<|im_start|>", OTHER, false, false},
};

static bool by_name(mf_tokenizer *t, const char *text, uint32_t *id) { return mf_map_get(&t->ids, mf_str_of(text), id); }

// Such a token comes from its id or from where control tokens are parsed, never out of a person's text. A byte's token must.
static void make_control(mf_tokenizer *t, int32_t id) {
    if (id >= 0 && t->type[id] != MF_TOKEN_UNKNOWN && t->type[id] != MF_TOKEN_BYTE) t->type[id] = MF_TOKEN_CONTROL;
}

// Finds what has a role by its text; `ids` has those with a key.
static void mark_known(mf_tokenizer *t, int32_t ids[N_ROLES]) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t id;
        end_role role = known[i].role;
        if (!by_name(t, known[i].text, &id)) continue;
        if (known[i].if_control && t->type[id] != MF_TOKEN_CONTROL) continue;
        bool taken = role > ENDS && ids[role] >= 0;
        if (taken && !known[i].ends) continue;
        if (role > ENDS && !taken) ids[role] = (int32_t)id;
        make_control(t, (int32_t)id);
        if (known[i].ends) t->eog[id] = 1;
    }
    // In the harmony format <|end|> closes a message, not the turn.
    uint32_t end, call;
    if (by_name(t, "<|end|>", &end) && ((by_name(t, "<|return|>", &call) && by_name(t, "<|call|>", &call)) ||
                                        (by_name(t, "<|flush|>", &call) && by_name(t, "<|calls|>", &call)))) {
        t->eog[end] = 0;
        if (ids[EOT] == (int32_t)end) ids[EOT] = -1;
    }
}

// The id under a key. One outside the vocabulary is refused, unless nothing is computed with it.
static bool read_id(const mf_tokenizer *t, const mf_gguf *file, const char *key, bool needed, int32_t *out, mf_error *err) {
    const mf_gguf_value *v = mf_gguf_find(file, key);
    if (!v) return true;
    bool number = v->kind <= MF_GGUF_I32 || v->kind == MF_GGUF_U64 || v->kind == MF_GGUF_I64;
    uint32_t id = 0;
    mf_error outside = {0};
    bool ok = mf_gguf_get_u32(file, key, &id, &outside);
    if (ok && id < t->n) return *out = (int32_t)id, true;
    if (ok) mf_fail(&outside, MF_ERR_FORMAT, "%s is %u, outside the vocabulary of %u tokens", key, id, t->n);
    if (needed || !number) {
        if (err) *err = outside;
        return false;
    }
    mf_log(MF_LOG_NOTICE, "%s: the model has no such token", outside.text);
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

static bool read_ids(mf_tokenizer *t, const mf_gguf *file, int32_t roles[N_ROLES], mf_error *err) {
    const struct {
        const char *key;
        int32_t *id;
        bool needed;
    } ids[] = {{"tokenizer.ggml.bos_token_id", &t->bos, true},
               {"tokenizer.ggml.unknown_token_id", &t->unk, true},
               {"tokenizer.ggml.padding_token_id", &t->pad, false}};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (!read_id(t, file, ids[i].key, ids[i].needed, ids[i].id, err)) return false;
    for (int i = 0; i < N_ROLES; i++) {
        roles[i] = i == EOS ? t->eos : -1;
        if (role_keys[i] && !read_id(t, file, role_keys[i], true, &roles[i], err)) return false;
    }
    t->eos = roles[EOS];
    return true;
}

bool mf_vocab_load_special(mf_tokenizer *t, const mf_gguf *file, mf_error *err) {
    int32_t roles[N_ROLES];
    t->bos = t->eos = t->unk = t->pad = -1;
    if (t->sentencepiece) spm_defaults(t);
    if (!read_ids(t, file, roles, err)) return false;
    t->add_bos = t->sentencepiece || t->pre->add_bos;
    t->add_space_prefix = t->sentencepiece;
    if (!mf_gguf_get_bool(file, "tokenizer.ggml.add_bos_token", &t->add_bos, err) ||
        !mf_gguf_get_bool(file, "tokenizer.ggml.add_eos_token", &t->add_eos, err) ||
        !mf_gguf_get_bool(file, "tokenizer.ggml.add_space_prefix", &t->add_space_prefix, err))
        return false;
    if (!t->sentencepiece) t->add_space_prefix = false;
    t->add_bos = t->add_bos && t->bos >= 0;
    t->add_eos = t->add_eos && t->eos >= 0;
    mark_known(t, roles);
    t->eot = roles[EOT];
    for (int i = 0; i < N_ROLES; i++) {
        make_control(t, roles[i]);
        if (roles[i] >= 0) t->eog[roles[i]] = 1;
    }
    if (t->bos >= 0 && t->type[t->bos] == MF_TOKEN_USER_DEFINED) make_control(t, t->bos);
    if (t->sentencepiece && t->byte_id[0] < 0 && t->unk < 0)
        return mf_fail(err, MF_ERR_FORMAT, "the vocabulary has neither byte tokens nor an unknown token");
    return build_set(t, is_phi3(file), err);
}

// How many bytes a and b begin with in common, n at most.
static size_t common(const char *a, const char *b, size_t n) {
    size_t i = 0;
    for (uint64_t x, y; i + 8 <= n; i += 8) {
        memcpy(&x, a + i, 8);
        memcpy(&y, b + i, 8);
        if (x != y) break;
    }
    while (i < n && a[i] == b[i]) i++;
    return i;
}

// The bytes from `depth` on that all of items[low..high) have in common: those of the first and the last, since they are sorted.
static size_t shared(const mf_special_set *set, size_t low, size_t high, size_t depth) {
    mf_str first = set->items[low].text, last = set->items[high - 1].text;
    size_t len = first.len < last.len ? first.len : last.len;
    return low + 1 == high ? len - depth : common(first.ptr + depth, last.ptr + depth, len - depth);
}

// The first of items[low..high) whose byte at `depth` is `byte` or more.
static size_t first_from(const mf_special_set *set, size_t low, size_t high, size_t depth, unsigned byte) {
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if ((uint8_t)set->items[mid].text.ptr[depth] < byte)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

const mf_special *mf_special_match(const mf_special_set *set, const char *text, size_t len, size_t control_len,
                                   const mf_token_array *guarded) {
    size_t low = set->first[(uint8_t)text[0]], high = set->first[(uint8_t)text[0] + 1];
    const mf_special *best = NULL;
    // items[low..high) agree with text[0..depth).
    for (size_t depth = 1; low < high; depth++) {
        size_t run = shared(set, low, high, depth);
        if (run > len - depth || memcmp(text + depth, set->items[low].text.ptr + depth, run) != 0) break;
        depth += run;
        for (; low < high && set->items[low].text.len == depth; low++) { // two where one has a space and one the mark
            bool control = set->items[low].control || mf_is_guarded(guarded, set->items[low].id);
            if (!control || depth <= control_len) best = &set->items[low];
        }
        if (depth >= len || low == high) break;
        uint8_t next = (uint8_t)text[depth];
        low = first_from(set, low, high, depth, next);
        high = first_from(set, low, high, depth, next + 1u);
    }
    return best;
}

bool mf_is_guarded(const mf_token_array *guarded, int32_t id) {
    for (size_t i = 0; guarded && i < guarded->len; i++)
        if (guarded->data[i] == id) return true;
    return false;
}
