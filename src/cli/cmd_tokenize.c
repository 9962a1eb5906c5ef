// minfer tokenize: a text's ids and pieces, or the text of ids.
#include <inttypes.h>
#include <stdlib.h>

#include "cli/commands.h"
#include "cli/input.h"
#include "cli/load.h"
#include "cli/piece.h"
#include "cli/screen.h"
#include "text/chat_template.h"

// Whole numbers with spaces, commas or line ends between; brackets around them are let through.
static bool read_ids(const mf_tokenizer *t, mf_str text, mf_token_array *ids, mf_error *err) {
    for (size_t i = 0; i < text.len;) {
        char c = text.ptr[i];
        if (c == ' ' || c == ',' || c == '\n' || c == '\r' || c == '\t' || c == '[' || c == ']') {
            i++;
            continue;
        }
        size_t end = i;
        while (end < text.len && !memchr(" ,\n\r\t[]", text.ptr[end], 8)) end++;
        int64_t id;
        mf_str word = {text.ptr + i, end - i};
        int shown = (int)(word.len < 40 ? word.len : 40);
        if (!mf_parse_i64(word, &id))
            return mf_fail(err, MF_ERR_ARGUMENT, "--ids: '%.*s' is not a token id", shown, word.ptr);
        if (id < 0 || id >= mf_tokenizer_n_vocab(t))
            return mf_fail(err, MF_ERR_ARGUMENT, "--ids: %" PRId64 " is outside the vocabulary of %d", id,
                           mf_tokenizer_n_vocab(t));
        if (!mf_array_push(ids, (int32_t)id)) return mf_fail_memory(err, 0, "the ids");
        i = end;
    }
    return true;
}

static void json_ids(mf_json_writer *w, const mf_token_array *ids) {
    mf_json_key(w, "ids");
    mf_json_begin(w, '[');
    for (size_t i = 0; i < ids->len; i++) mf_json_int(w, ids->data[i]);
    mf_json_end(w, ']');
}

// The pieces; control tokens as their text.
static void print_pieces(const mf_tokenizer *t, const mf_token_array *ids, bool json, mf_buf *out) {
    mf_json_writer w = {.out = out};
    mf_buf piece = {0};
    if (json) {
        mf_json_begin(&w, '{');
        json_ids(&w, ids);
        mf_json_key(&w, "pieces");
        mf_json_begin(&w, '[');
    }
    for (size_t i = 0; i < ids->len; i++) {
        piece.len = 0;
        mf_tokenizer_piece(t, ids->data[i], true, &piece);
        mf_str text = {piece.data, piece.len};
        if (json) {
            mf_piece_json(text, &w);
            continue;
        }
        mf_buf_printf(out, "%d\t", ids->data[i]);
        mf_buf_shown(out, text, true);
        mf_buf_char(out, '\n');
    }
    if (json) {
        mf_json_end(&w, ']');
        mf_json_end(&w, '}');
        mf_buf_char(out, '\n');
    }
    out->failed = out->failed || piece.failed;
    free(piece.data);
}

// The ids' text, byte for byte.
static void print_text(const mf_tokenizer *t, const mf_token_array *ids, bool json, mf_buf *out) {
    mf_buf text = {0};
    mf_decoder decoder;
    mf_decoder_init(&decoder, t, true, true);
    for (size_t i = 0; i < ids->len; i++) mf_decoder_feed(&decoder, ids->data[i], &text);
    if (json) {
        mf_json_writer w = {.out = out};
        mf_json_begin(&w, '{');
        json_ids(&w, ids);
        mf_json_key(&w, "text");
        mf_json_string(&w, (mf_str){text.data, text.len});
        mf_json_end(&w, '}');
        mf_buf_char(out, '\n');
    } else {
        mf_buf_add(out, text.data, text.len);
    }
    out->failed = out->failed || text.failed;
    free(text.data);
}

// The text in a message of the file's chat template; where that can't be used, of any.
static bool encode_message(const mf_loaded *l, mf_str text, mf_token_array *ids, mf_error *err) {
    bool own;
    mf_error unusable = {0};
    mf_chat_template *template = mf_chat_template_of_file(l->file, NULL, false, &own, &unusable);
    if (unusable.code == MF_ERR_MEMORY) return mf_fail(err, MF_ERR_MEMORY, "%s", unusable.text);
    bool ok = mf_chat_text_encode(l->tokenizer, template, text, ids, err);
    mf_chat_template_free(template);
    return ok;
}

static bool encode(const mf_options *o, const mf_loaded *l, mf_str text, mf_token_array *ids, mf_error *err) {
    if (o->no_special && !o->plain) return encode_message(l, text, ids, err);
    unsigned flags = o->plain ? MF_ENCODE_PLAIN : MF_ENCODE_ADD_SPECIAL | MF_ENCODE_PARSE_CONTROL;
    return mf_tokenizer_encode(l->tokenizer, text, flags, ids, err);
}

static int tokenize(const mf_options *o, mf_loaded *l, mf_str text, mf_error *err) {
    const char *path = mf_cli_model(o, err);
    mf_token_array ids = {0};
    mf_buf printed = {0};
    mf_output out = {0};
    bool ok = mf_load_file(l, path, err) && mf_load_tokenizer(l, o, err);
    if (ok) ok = o->ids ? read_ids(l->tokenizer, text, &ids, err) : encode(o, l, text, &ids, err);
    if (ok && o->ids) print_text(l->tokenizer, &ids, o->json, &printed);
    if (ok && !o->ids) print_pieces(l->tokenizer, &ids, o->json, &printed);
    if (ok) ok = mf_screen_print(&out, &printed, o->raw_output);
    free(ids.data);
    free(printed.data);
    return ok ? MF_EXIT_DONE : MF_EXIT_REFUSED;
}

int mf_command_tokenize(mf_options *o) {
    mf_error err = {0};
    mf_loaded l = {0};
    mf_buf storage = {0};
    mf_str text;
    bool text_flag = o->no_special || o->plain;
    if (o->ids && text_flag)
        mf_fail(&err, MF_ERR_ARGUMENT, "--no-special and --plain are for a text; with --ids there is none");
    int code = !err.code && mf_cli_model(o, &err) ? mf_input_text(o, "text", &storage, &text, &err) : MF_EXIT_USAGE;
    if (code == MF_EXIT_DONE) code = tokenize(o, &l, text, &err);
    if (code != MF_EXIT_DONE && err.code != MF_OK) mf_cli_fail(&err);
    free(storage.data);
    mf_unload(&l);
    return code;
}
