#include "text/tokenizer.h"

#include <stdlib.h>

#include "base/mem.h"
#include "text/vocab.h"

// The models llama.cpp's files name that minfer has no tokenizer for: refused by their names.
static bool read_model(mf_tokenizer *t, const mf_gguf *file, mf_error *err) {
    mf_str model = {0};
    if (!mf_gguf_get_str(file, "tokenizer.ggml.model", &model, err)) return false;
    if (!model.ptr) return mf_fail(err, MF_ERR_FORMAT, "tokenizer.ggml.model is missing: the file has no tokenizer");
    t->sentencepiece = mf_str_is(model, "llama");
    if (!t->sentencepiece && !mf_str_is(model, "gpt2"))
        return mf_fail(err, MF_ERR_UNSUPPORTED, "tokenizer.ggml.model '%.*s' is not supported (known: gpt2 llama)",
                       model.len > 64 ? 64 : (int)model.len, model.ptr);
    return true;
}

static bool refuse_pre(mf_error *err, mf_str name, bool from_option) {
    mf_buf known = {0};
    mf_pretokenizer_list(&known);
    const char *what = from_option ? "--pre" : "tokenizer.ggml.pre";
    const char *list = known.failed ? "" : known.data;
    if (!name.ptr)
        mf_fail(err, MF_ERR_FORMAT, "tokenizer.ggml.pre is missing; --pre NAME gives one of: %s", list);
    else
        mf_fail(err, MF_ERR_UNSUPPORTED, "%s '%.*s' is not known; known: %s", what, name.len > 64 ? 64 : (int)name.len,
                name.ptr, list);
    free(known.data);
    return false;
}

static bool read_pre(mf_tokenizer *t, const mf_gguf *file, const mf_tokenizer_options *opts, mf_error *err) {
    bool from_option = opts && opts->pre;
    mf_str name = {0};
    if (from_option)
        name = mf_str_of(opts->pre);
    else if (!mf_gguf_get_str(file, "tokenizer.ggml.pre", &name, err))
        return false;
    t->pre = name.ptr ? mf_pretokenizer_find(name) : NULL;
    if (t->sentencepiece && !from_option) { // files say "default" or nothing; there is nothing to choose
        t->pre = NULL;
        t->pre_name = "";
        return true;
    }
    if (!t->pre) return refuse_pre(err, name, from_option);
    if (t->sentencepiece)
        return mf_fail(err, MF_ERR_ARGUMENT, "--pre '%s': a llama vocabulary has no pre-tokenizer", opts->pre);
    for (size_t i = 0; t->pre->names[i]; i++)
        if (mf_str_is(name, t->pre->names[i])) t->pre_name = t->pre->names[i];
    t->nfc = t->pre->nfc && !(opts && opts->no_nfc);
    t->splitter = mf_splitter_new(t->pre, err);
    return t->splitter != NULL;
}

mf_tokenizer *mf_tokenizer_new(const mf_gguf *file, const mf_tokenizer_options *opts, mf_error *err) {
    mf_tokenizer *t = mf_alloc(1, sizeof *t);
    if (!t) {
        mf_fail_memory(err, sizeof *t, "the tokenizer");
        return NULL;
    }
    bool ok = read_model(t, file, err) && read_pre(t, file, opts, err) && mf_vocab_load(t, file, err) &&
              mf_vocab_load_special(t, file, err);
    if (ok && !t->sentencepiece) ok = (t->merges = mf_merges_load(t, file, err)) != NULL;
    if (!ok) {
        mf_tokenizer_free(t);
        return NULL;
    }
    return t;
}

void mf_tokenizer_free(mf_tokenizer *t) {
    if (!t) return;
    mf_splitter_free(t->splitter);
    mf_merges_free(t->merges);
    mf_map_free(&t->ids);
    free(t->special.items);
    mf_arena_free(&t->escaped);
    free(t->text);
    free(t->type);
    free(t->score);
    free(t->eog);
    free(t);
}

int32_t mf_tokenizer_n_vocab(const mf_tokenizer *t) { return (int32_t)t->n; }
const char *mf_tokenizer_model(const mf_tokenizer *t) { return t->sentencepiece ? "llama" : "gpt2"; }
const char *mf_tokenizer_pre(const mf_tokenizer *t) { return t->pre_name; }
mf_str mf_tokenizer_text(const mf_tokenizer *t, int32_t id) { return t->text[id]; }
mf_token_type mf_tokenizer_type(const mf_tokenizer *t, int32_t id) { return (mf_token_type)t->type[id]; }

int32_t mf_tokenizer_find(const mf_tokenizer *t, mf_str text) {
    uint32_t id;
    return mf_map_get(&t->ids, text, &id) ? (int32_t)id : -1;
}

int32_t mf_tokenizer_bos(const mf_tokenizer *t) { return t->bos; }
int32_t mf_tokenizer_eos(const mf_tokenizer *t) { return t->eos; }
int32_t mf_tokenizer_eot(const mf_tokenizer *t) { return t->eot; }
int32_t mf_tokenizer_unk(const mf_tokenizer *t) { return t->unk; }
int32_t mf_tokenizer_pad(const mf_tokenizer *t) { return t->pad; }
bool mf_tokenizer_add_bos(const mf_tokenizer *t) { return t->add_bos; }
bool mf_tokenizer_add_eos(const mf_tokenizer *t) { return t->add_eos; }

bool mf_tokenizer_is_eog(const mf_tokenizer *t, int32_t id) { return id >= 0 && (uint32_t)id < t->n && t->eog[id]; }
