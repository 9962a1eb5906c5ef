// Conversations: a coat over mf_conversation; the sequence holds it.
#include "chat/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/mem.h"

// A JSON text that was given, parsed.
typedef struct parsed {
    mf_arena arena;
    const mf_json *root; // NULL: none
} parsed;

struct minfer_conversation {
    mf_conversation talk;
    minfer_sequence *sequence;
    mf_api_format format;
    mf_chat_template *own; // NULL: the template is the model's
    bool given;            // own is the caller's, also when there are tools
    parsed tools, variables;
    mf_buf answer;  // what the sequence has said since the turn began
    bool answering; // the answer is not in the history
};

static bool parse(parsed *p, const char *text, size_t len, mf_json_kind kind, const char *what, mf_error *err) {
    *p = (parsed){0};
    if (len == 0) return true;
    if (!mf_api_need(text, what, err)) return false;
    p->root = mf_json_parse(&p->arena, (mf_str){text, len}, err);
    bool ok = p->root ? p->root->kind == kind ||
                            mf_fail(err, MF_ERR_ARGUMENT, "%s: no JSON %s", what, kind == MF_JSON_ARRAY ? "array" : "object")
                      : mf_fail_prefix(err, "%s", what);
    if (!ok) mf_arena_free(&p->arena);
    return ok;
}

static bool parse_tools(parsed *p, const char *text, size_t len, mf_error *err) {
    return parse(p, text, len, MF_JSON_ARRAY, "the tools", err);
}

static bool parse_variables(parsed *p, const char *text, size_t len, mf_error *err) {
    return parse(p, text, len, MF_JSON_OBJECT, "the template's variables", err);
}

// The template for a conversation with or without tools: the model's, or the file's variant for tools. *own is to be freed.
static bool choose_template(const minfer_model *m, bool tools, mf_chat_template **own, mf_error *err) {
    bool there = false;
    *own = NULL;
    if (tools && !(*own = mf_chat_template_of_file(m->file, NULL, true, &there, err))) return false;
    if (*own && there) return true;
    mf_chat_template_free(*own);
    *own = NULL;
    return m->chat || mf_fail(err, m->chat_error.code, "%s", m->chat_error.text);
}

static void use_template(minfer_conversation *c, mf_chat_template *own) {
    mf_chat_template_free(c->own);
    c->own = own;
    c->format.template = own ? own : c->format.model->chat;
}

static void use_parsed(parsed *to, parsed from, const mf_json **root) {
    mf_arena_free(&to->arena);
    *to = from;
    *root = from.root;
}

void mf_api_conversation_free(minfer_conversation *c) {
    if (!c) return;
    mf_conversation_free(&c->talk);
    mf_chat_template_free(c->own);
    mf_arena_free(&c->tools.arena);
    mf_arena_free(&c->variables.arena);
    free(c->answer.data);
    free(c);
}

static bool open_format(minfer_conversation *c, const minfer_conversation_options *o, mf_error *err) {
    const char *tools = o->tools ? o->tools : "", *variables = o->variables ? o->variables : "";
    const char *given = o->chat_template;
    mf_chat_template *own = NULL;
    c->given = given != NULL;
    if (!parse_tools(&c->tools, tools, strlen(tools), err) ||
        !parse_variables(&c->variables, variables, strlen(variables), err))
        return false;
    c->format.tools = c->tools.root, c->format.variables = c->variables.root;
    if (given ? !(own = mf_chat_template_new(mf_str_of(given), err))
              : !choose_template(c->format.model, c->tools.root, &own, err))
        return false;
    use_template(c, own);
    return true;
}

static bool open_sequence(minfer_conversation *c, minfer_engine *e, const minfer_conversation_options *o,
                          const minfer_sampling *sampling, mf_error *err) {
    minfer_sequence_options so;
    minfer_sequence_options_init(&so, sizeof so);
    so.sampling = sampling, so.max_tokens = o->max_tokens, so.arg = o->arg;
    so.stop_texts = o->stop_texts, so.n_stop_texts = o->n_stop_texts, so.constraint = o->constraint;
    c->sequence = mf_api_sequence_new(e, &so, err);
    if (!c->sequence) return false;
    int32_t n_ctx = mf_sequence_n_ctx(c->sequence->sequence), reserve = o->n_reserve;
    if (reserve < 0) reserve = o->max_tokens > 0 && o->max_tokens < n_ctx / 4 ? o->max_tokens : n_ctx / 4;
    mf_conversation_init(&c->talk, &(mf_conversation_params){.tokenizer = e->model->tokenizer,
                                                             .sequence = c->sequence->sequence,
                                                             .n_ctx = n_ctx,
                                                             .n_keep = o->n_keep,
                                                             .n_reserve = reserve,
                                                             .seed = sampling->seed,
                                                             .shift = o->shift,
                                                             .render = mf_api_render,
                                                             .render_arg = &c->format});
    c->sequence->conversation = c;
    return true;
}

static bool check_options(const minfer_conversation_options *o, mf_error *err) {
    if (o->n_keep < 0) return mf_fail(err, MF_ERR_ARGUMENT, "n_keep is %d; it must be 0 or more", o->n_keep);
    return o->n_reserve >= -1 || mf_fail(err, MF_ERR_ARGUMENT, "n_reserve is %d; it must be -1 or more", o->n_reserve);
}

static minfer_conversation *make(minfer_engine *e, const minfer_conversation_options *options, mf_error *err) {
    minfer_conversation_options o;
    minfer_sampling sampling;
    if (!mf_api_need(e, "the engine", err) || !mf_api_need_tokenizer(e->model, err) ||
        !mf_api_conversation_options(options, &o, err) || !check_options(&o, err) ||
        !mf_api_sampling_for(e->model, o.sampling, &sampling, err))
        return NULL;
    minfer_conversation *c = mf_alloc(1, sizeof *c);
    if (!c) return mf_fail_memory(err, sizeof *c, "a conversation"), NULL;
    c->format.model = e->model;
    if (open_format(c, &o, err) && open_sequence(c, e, &o, &sampling, err)) return c;
    mf_api_conversation_free(c);
    return NULL;
}

minfer_conversation *minfer_conversation_new(minfer_engine *engine, const minfer_conversation_options *options,
                                             minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    minfer_conversation *c = make(engine, options, &err);
    if (!c) mf_api_refuse(error, &err);
    return c;
}

void minfer_conversation_free(minfer_conversation *c) {
    if (c) minfer_sequence_free(c->sequence);
}

minfer_sequence *minfer_conversation_sequence(const minfer_conversation *c) { return c->sequence; }

// ---- Answers

bool mf_api_conversation_answers(const minfer_conversation *c) { return c->answering; }

bool mf_api_conversation_take(minfer_conversation *c, const mf_stream *stream) {
    mf_buf_add(&c->answer, stream->out.data, stream->out.len);
    return !c->answer.failed;
}

static mf_str answer_so_far(const minfer_conversation *c) {
    return (mf_str){c->answer.data ? c->answer.data : "", c->answer.len};
}

// What every call that changes a conversation begins with: the answer ends and comes into the history.
static bool enter(minfer_conversation *c, mf_error *err) {
    if (!mf_api_need(c, "the conversation", err) || !mf_api_check_open(c->sequence, err)) return false;
    if (!c->answering) return true;
    mf_stream *stream = &c->sequence->stream;
    mf_stream_taken(stream);
    mf_stream_finish(stream); // what might have become a stop text has not
    if (stream->held.failed || stream->out.failed || !mf_api_conversation_take(c, stream))
        return mf_fail_memory(err, c->answer.len, "the answer");
    mf_stream_restart(stream);
    if (!mf_conversation_answered(&c->talk, answer_so_far(c), err)) return false;
    c->answering = false;
    c->answer.len = 0;
    return true;
}

// And ends with: where a turn was begun its answer is awaited.
static bool leave(minfer_conversation *c, bool ok, bool begins, const mf_error *err, minfer_error *error) {
    if (ok && begins) {
        c->answering = true;
        mf_stream_restart(&c->sequence->stream);
    }
    if (c) mf_api_publish(c->sequence->owner);
    return ok || mf_api_refuse(error, err);
}

bool minfer_conversation_add(minfer_conversation *c, const char *message, size_t len, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    bool ok = enter(c, &err) && mf_api_need(message, "the message", &err) &&
              mf_conversation_add_json(&c->talk, (mf_str){message, len}, &err);
    return leave(c, ok, false, &err, error);
}

bool minfer_conversation_amend(minfer_conversation *c, const char *message, size_t len, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    bool ok = enter(c, &err) && mf_api_need(message, "the message", &err) &&
              mf_conversation_amend(&c->talk, (mf_str){message, len}, &err);
    return leave(c, ok, false, &err, error);
}

bool minfer_conversation_answer(minfer_conversation *c, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    bool ok = enter(c, &err) && mf_conversation_begin(&c->talk, &err);
    return leave(c, ok, true, &err, error);
}

bool minfer_conversation_edit(minfer_conversation *c, const char *message, size_t len, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    bool ok = enter(c, &err) && mf_api_need(message, "the message", &err) &&
              mf_conversation_edit_json(&c->talk, (mf_str){message, len}, &err);
    return leave(c, ok, true, &err, error);
}

bool minfer_conversation_regenerate(minfer_conversation *c, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    bool ok = enter(c, &err) && mf_conversation_regenerate(&c->talk, &err);
    return leave(c, ok, true, &err, error);
}

bool minfer_conversation_undo(minfer_conversation *c, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    bool ok = enter(c, &err) && mf_conversation_undo(&c->talk, &err);
    return leave(c, ok, false, &err, error);
}

bool minfer_conversation_clear(minfer_conversation *c, minfer_error *error) {
    mf_error err = {0};
    bool ok = enter(c, &err);
    if (ok) mf_conversation_clear(&c->talk);
    return leave(c, ok, false, &err, error);
}

// ---- What messages are rendered with

bool minfer_conversation_set_system(minfer_conversation *c, const char *text, size_t len, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    bool ok = enter(c, &err) && (len == 0 || mf_api_need(text, "the system message", &err)) &&
              mf_conversation_set_system(&c->talk, (mf_str){len ? text : NULL, len}, &err);
    return leave(c, ok, false, &err, error);
}

static bool set_tools(minfer_conversation *c, const char *tools, size_t len, mf_error *err) {
    parsed p;
    mf_chat_template *own = NULL;
    if (!enter(c, err) || !parse_tools(&p, tools, len, err)) return false;
    if (!c->given) {
        if (!choose_template(c->format.model, p.root, &own, err)) {
            mf_arena_free(&p.arena);
            return false;
        }
        use_template(c, own);
    }
    use_parsed(&c->tools, p, &c->format.tools);
    c->talk.changed = "the tools changed";
    return true;
}

bool minfer_conversation_set_tools(minfer_conversation *c, const char *tools, size_t len, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    bool ok = set_tools(c, tools, len, &err);
    return leave(c, ok, false, &err, error);
}

bool minfer_conversation_set_variables(minfer_conversation *c, const char *variables, size_t len, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    parsed p;
    bool ok = enter(c, &err) && parse_variables(&p, variables, len, &err);
    if (ok) {
        use_parsed(&c->variables, p, &c->format.variables);
        c->talk.changed = "the template's variables changed";
    }
    return leave(c, ok, false, &err, error);
}

// ---- What there is

static void write_message(mf_buf *out, const char *role, mf_str content, const char *json, bool left) {
    if (out->len > 1) mf_buf_char(out, ',');
    if (json) {
        mf_buf_text(out, json);
    } else {
        mf_json_writer w = {.out = out};
        mf_json_begin(&w, '{');
        mf_json_add_text(&w, "role", role);
        mf_json_key(&w, "content");
        mf_json_string(&w, content);
        mf_json_end(&w, '}');
    }
    if (!left || out->failed) return;
    out->len--; // the brace: what stands before it is a member
    mf_buf_text(out, ",\"left\":true}");
}

static bool messages_text(const minfer_conversation *c, mf_buf *out, mf_error *err) {
    if (!mf_api_need(c, "the conversation", err)) return false;
    mf_buf_char(out, '[');
    for (size_t i = 0; i < c->talk.entries.len; i++) {
        const mf_chat_entry *e = &c->talk.entries.data[i];
        write_message(out, e->role, mf_str_of(e->content), e->json, e->left);
    }
    if (c->answering) write_message(out, "assistant", answer_so_far(c), NULL, false);
    mf_buf_char(out, ']');
    return !out->failed || mf_fail_memory(err, out->len, "the messages");
}

bool minfer_conversation_messages(const minfer_conversation *c, char *out, size_t cap, size_t *n, minfer_error *error) {
    mf_error err = {0};
    mf_buf text = {0};
    bool ok = messages_text(c, &text, &err) && mf_api_text((mf_str){text.data, text.len}, out, cap, n, &err);
    free(text.data);
    return ok || mf_api_refuse(error, &err);
}

const char *minfer_conversation_notice(const minfer_conversation *c) { return c->format.note; }

void minfer_conversation_get_cost(const minfer_conversation *c, minfer_turn_cost *cost, size_t size) {
    const mf_turn_cost *t = &c->talk.cost;
    minfer_turn_cost own = {.size = size,
                            .n_prompt = t->n_prompt,
                            .n_evaluated = t->n_evaluated,
                            .n_again = t->n_again,
                            .n_shifted = t->n_shifted,
                            .n_left = t->n_left};
    _Static_assert(sizeof own.again_reason >= sizeof t->again_reason, "every reason fits");
    memcpy(own.again_reason, t->again_reason, sizeof t->again_reason);
    memset(cost, 0, size);
    memcpy(cost, &own, size < sizeof own ? size : sizeof own);
}
