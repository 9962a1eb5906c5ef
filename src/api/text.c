// Text to ids and back.
#include <stdlib.h>

#include "api/api.h"
#include "base/mem.h"
#include "text/chat_template.h"

_Static_assert(MINFER_ENCODE_SPECIAL == MF_ENCODE_ADD_SPECIAL && MINFER_ENCODE_CONTROL == MF_ENCODE_PARSE_CONTROL &&
                   MINFER_ENCODE_PLAIN == MF_ENCODE_PLAIN,
               "the public flags are the tokenizer's");

bool mf_api_need_tokenizer(const minfer_model *model, mf_error *err) {
    if (!mf_api_need(model, "the model", err)) return false;
    return model->tokenizer || mf_fail(err, MF_ERR_UNSUPPORTED, "the model was opened without a tokenizer");
}

static bool check_flags(unsigned flags, unsigned known, mf_error *err) {
    return (flags & ~known) == 0 || mf_fail(err, MF_ERR_ARGUMENT, "unknown flags 0x%X", flags & ~known);
}

bool mf_api_encode(const minfer_model *model, const char *text, size_t len, unsigned flags, mf_token_array *ids,
                   mf_error *err) {
    return mf_api_need_tokenizer(model, err) && (len == 0 || mf_api_need(text, "the text", err)) &&
           check_flags(flags, MINFER_ENCODE_SPECIAL | MINFER_ENCODE_CONTROL | MINFER_ENCODE_PLAIN, err) &&
           mf_tokenizer_encode(model->tokenizer, (mf_str){len ? text : "", len}, flags, ids, err);
}

bool minfer_encode(const minfer_model *model, const char *text, size_t len, unsigned flags, int32_t *out, size_t cap,
                   size_t *n, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    mf_token_array ids = {0};
    bool ok = mf_api_encode(model, text, len, flags, &ids, &err) && mf_api_ids(&ids, out, cap, n, &err);
    free(ids.data);
    return ok || mf_api_refuse(error, &err);
}

static bool check_messages(const minfer_message *messages, size_t n, mf_error *err) {
    if (n > 0 && !mf_api_need(messages, "the list of messages", err)) return false;
    for (size_t i = 0; i < n; i++)
        if (!messages[i].role || !messages[i].content)
            return mf_fail(err, MF_ERR_ARGUMENT, "message %zu: the %s is NULL", i + 1,
                           messages[i].role ? "content" : "role");
    return true;
}

bool mf_api_render(void *arg, const mf_chat_message *messages, size_t n, bool open_answer, mf_token_array *ids,
                   mf_error *err) {
    mf_api_format *f = arg;
    mf_arena arena = {0};
    mf_chat_prompt prompt = {0};
    mf_chat_request request = {.tools = f->tools,
                               .variables = f->variables,
                               .generation_prompt = open_answer,
                               .tokenizer = f->model->tokenizer,
                               .rules = true};
    request.messages = mf_chat_messages(&arena, messages, n, err);
    bool ok = request.messages && mf_chat_template_render(f->template, &request, &prompt, err) &&
              mf_chat_prompt_encode(f->model->tokenizer, &prompt, ids, err);
    if (ok) f->note = prompt.note;
    mf_chat_prompt_free(&prompt);
    mf_arena_free(&arena);
    return ok;
}

static bool render(const minfer_model *model, const minfer_message *messages, size_t n, bool open_answer,
                   mf_token_array *ids, mf_error *err) {
    mf_chat_message *list = mf_alloc(n, sizeof *list);
    if (!list) return mf_fail_memory(err, sizeof *list, "the conversation");
    for (size_t i = 0; i < n; i++)
        list[i] = (mf_chat_message){.role = mf_str_of(messages[i].role), .content = mf_str_of(messages[i].content)};
    mf_api_format format = {.model = model, .template = model->chat};
    bool ok = mf_api_render(&format, list, n, open_answer, ids, err);
    free(list);
    return ok;
}

bool mf_api_encode_chat(const minfer_model *model, const minfer_message *messages, size_t n, bool open_answer,
                        mf_token_array *ids, mf_error *err) {
    if (!mf_api_need_tokenizer(model, err) || !check_messages(messages, n, err)) return false;
    if (!model->chat) return mf_fail(err, model->chat_error.code, "%s", model->chat_error.text);
    return render(model, messages, n, open_answer, ids, err);
}

bool minfer_encode_chat(const minfer_model *model, const minfer_message *messages, size_t n_messages, bool open_answer,
                        int32_t *out, size_t cap, size_t *n, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    mf_token_array ids = {0};
    bool ok =
        mf_api_encode_chat(model, messages, n_messages, open_answer, &ids, &err) && mf_api_ids(&ids, out, cap, n, &err);
    free(ids.data);
    return ok || mf_api_refuse(error, &err);
}

static bool check_id(const minfer_model *model, int32_t id, mf_error *err) {
    int32_t n = mf_tokenizer_n_vocab(model->tokenizer);
    return (id >= 0 && id < n) || mf_fail(err, MF_ERR_ARGUMENT, "token %d is not one of the vocabulary's %d ids", id, n);
}

static bool decode(const minfer_model *model, const int32_t *ids, size_t n, unsigned flags, mf_buf *text, mf_error *err) {
    if (!mf_api_need_tokenizer(model, err) || !check_flags(flags, MINFER_DECODE_SPECIAL | MINFER_DECODE_CONTINUED, err) ||
        (n > 0 && !mf_api_need(ids, "the list of ids", err)))
        return false;
    mf_decoder d;
    mf_decoder_init(&d, model->tokenizer, flags & MINFER_DECODE_SPECIAL, !(flags & MINFER_DECODE_CONTINUED));
    for (size_t i = 0; i < n; i++) {
        if (!check_id(model, ids[i], err)) return false;
        mf_decoder_feed(&d, ids[i], text);
    }
    mf_decoder_finish(&d);
    return !text->failed || mf_fail_memory(err, text->len, "the text");
}

bool minfer_decode(const minfer_model *model, const int32_t *ids, size_t n_ids, unsigned flags, char *out, size_t cap,
                   size_t *n, minfer_error *error) {
    mf_error err = {0};
    mf_buf text = {0};
    bool ok = decode(model, ids, n_ids, flags, &text, &err) && mf_api_text((mf_str){text.data, text.len}, out, cap, n, &err);
    free(text.data);
    return ok || mf_api_refuse(error, &err);
}

static bool piece(const minfer_model *model, int32_t id, unsigned flags, mf_buf *text, mf_error *err) {
    if (!mf_api_need_tokenizer(model, err) || !check_flags(flags, MINFER_DECODE_SPECIAL, err) || !check_id(model, id, err))
        return false;
    mf_tokenizer_piece(model->tokenizer, id, flags & MINFER_DECODE_SPECIAL, text);
    return !text->failed || mf_fail_memory(err, text->len, "the text");
}

bool minfer_piece(const minfer_model *model, int32_t id, unsigned flags, char *out, size_t cap, size_t *n,
                  minfer_error *error) {
    mf_error err = {0};
    mf_buf text = {0};
    bool ok = piece(model, id, flags, &text, &err) && mf_api_text((mf_str){text.data, text.len}, out, cap, n, &err);
    free(text.data);
    return ok || mf_api_refuse(error, &err);
}

bool minfer_is_end(const minfer_model *model, int32_t id) {
    return model->tokenizer && mf_tokenizer_is_eog(model->tokenizer, id);
}

int32_t minfer_bos(const minfer_model *model) { return model->tokenizer ? mf_tokenizer_bos(model->tokenizer) : -1; }
int32_t minfer_eos(const minfer_model *model) { return model->tokenizer ? mf_tokenizer_eos(model->tokenizer) : -1; }
