// minfer chat: a conversation, line by line.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/chat.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/inside.h"
#include "cli/prompt.h"

#define LINE_MAX_BYTES (16u << 20)

// ---- Loading

// The constraint of every answer. Whether answers begin inside a thought is seen in the prompt of a conversation's first one.
static bool constrain(mf_chat *c, mf_error *err) {
    if (!mf_constrain_wanted(c->o)) return true;
    mf_token_array ids = {0};
    const mf_chat_message first = {.role = MF_STR("user"), .content = MF_STR("?")};
    bool ok = mf_prompt_messages(&c->prompt, &first, 1, true, &ids, err);
    bool open = ok && mf_answer_begins_open(c->loaded.tokenizer, ids.data, ids.len, c->marks);
    free(ids.data);
    return ok && mf_constrain_make(&c->constrained, c->o, &c->loaded, c->marks, open, err);
}

static bool load(mf_chat *c, const char *path, mf_error *err) {
    mf_loaded *l = &c->loaded;
    mf_engine_params params;
    if (!mf_load_for_answers(l, c->o, path, &params, err) || !mf_load_ends(l, &c->eog, err)) return false;
    c->prompt = (mf_prompt_source){l, c->o, mf_prompt_template(l, c->o, false, err), false};
    c->marks = mf_prompt_marks(l, c->o);
    return c->prompt.template && constrain(c, err) &&
           mf_sampling_make(&c->sampling, c->o, l->file, l->tokenizer, c->eog.data, c->eog.len, l->model->hparams.n_vocab,
                            err) &&
           mf_load_ctx(l, c->o, 0, &params, err) && mf_load_engine(l, &params, err);
}

// Cells kept free for an answer: what was asked for, at most a quarter of the context.
static int32_t reserve_of(const mf_options *o, int32_t n_ctx) {
    int32_t quarter = n_ctx / 4;
    return o->n_predict > 0 && o->n_predict < quarter ? o->n_predict : quarter;
}

static bool begin(mf_chat *c, mf_error *err) {
    mf_sequence_params params;
    mf_sequence_params_init(&params);
    params.sampler = &c->sampling.params;
    params.max_tokens = c->o->n_predict;
    params.stop = c->eog.data;
    params.n_stop = c->o->ignore_eos ? 0 : c->eog.len;
    params.constraint = c->constrained.constraint;
    params.ignore_ends = c->o->ignore_eos;
    c->sequence = mf_sequence_new(c->loaded.engine, &params, err);
    if (!c->sequence) return false;
    int32_t n_ctx = mf_sequence_n_ctx(c->sequence);
    mf_conversation_init(&c->conversation, &(mf_conversation_params){.tokenizer = c->loaded.tokenizer,
                                                                     .sequence = c->sequence,
                                                                     .n_ctx = n_ctx,
                                                                     .n_keep = c->o->n_keep,
                                                                     .n_reserve = reserve_of(c->o, n_ctx),
                                                                     .seed = c->sampling.params.seed,
                                                                     .shift = !c->o->no_context_shift,
                                                                     .render = mf_prompt_messages,
                                                                     .render_arg = &c->prompt});
    return !c->o->system || mf_conversation_set_system(&c->conversation, mf_str_of(c->o->system), err);
}

// ---- A turn

static void sum_up(mf_chat *c, const mf_answer *a) {
    mf_chat_totals *t = &c->totals;
    t->turns++;
    t->evaluated += c->conversation.cost.n_evaluated;
    t->generated += a->n_generated;
    t->prompt_seconds += a->prompt_seconds;
    t->decode_seconds += a->decode_seconds;
}

static void note_cost(const mf_chat *c) {
    const mf_turn_cost *cost = &c->conversation.cost;
    if (cost->n_left)
        mf_log(MF_LOG_NOTICE,
               "the context is full: the %d oldest messages left it, and the model sees them no more (/save still has "
               "them)%s%s",
               cost->n_left, cost->n_shifted ? "" : "; the rest is read again: ", cost->n_shifted ? "" : cost->again_reason);
    mf_log(MF_LOG_DEBUG, "prompt: %d tokens, %d evaluated; %d cached ones dropped%s%s", cost->n_prompt, cost->n_evaluated,
           cost->n_again, cost->n_again ? ": " : "", cost->again_reason);
}

bool mf_chat_answer(mf_chat *c, mf_error *err) {
    mf_answer answer;
    mf_answer_request request = {
        .sequence = c->sequence, .n_prompt = (size_t)c->conversation.cost.n_evaluated, .marks = c->marks, .out = &c->out};
    note_cost(c);
    if (mf_line_terminal(c->reader)) mf_interrupt_clear();
    mf_interrupt_catch();
    if (!mf_answer_make(&answer, &c->loaded, c->o, &request, err)) return false;
    mf_str said = {answer.text.data ? answer.text.data : "", answer.text.data ? answer.text.len : 0};
    bool ok = mf_conversation_answered(&c->conversation, said, err);
    sum_up(c, &answer);
    if (mf_answer_open_line(&answer, c->o)) mf_output_write(&c->out, "\n", 1);
    mf_answer_note_end(&answer, &c->loaded, c->o);
    if (ok && mf_answer_failed(&answer)) {
        *err = answer.error, ok = false;
        mf_error none = {0};
        // A person can /undo or /edit what failed; a script's next question goes on from before it.
        if (!c->takes_commands) mf_conversation_undo(&c->conversation, &none);
    }
    if (ok && c->o->session) ok = mf_chat_session_commit(c, err);
    mf_answer_free(&answer);
    return ok && !c->out.failed;
}

bool mf_chat_ask(mf_chat *c, mf_str text, mf_error *err) {
    if (mf_conversation_ask(&c->conversation, text, err)) return mf_chat_answer(c, err);
    int32_t most = c->loaded.model->hparams.n_ctx_train;
    if (err->code == MF_ERR_LIMIT && c->conversation.params.n_ctx < most)
        mf_log(MF_LOG_NOTICE, "--ctx N makes the context larger, up to %d", most);
    return false;
}

// ---- Lines

// Whether a text goes on behind the line that begins at `start`: a typed backslash at its end (which is taken off) says so, and with -mli
// everything but an empty line.
static bool goes_on(const mf_chat *c, mf_buf *text, size_t start, bool pasted_end) {
    bool slash = !pasted_end && text->len > start && text->data[text->len - 1] == '\\';
    if (slash) text->data[--text->len] = 0;
    return slash || (c->o->multiline && text->len > start);
}

static mf_str chopped(const mf_buf *text) {
    mf_str s = {text->data ? text->data : "", text->len};
    while (s.len > 0 && strchr(" \t\r\n", s.ptr[s.len - 1])) s.len--;
    return s;
}

static bool ends_with_fence(const mf_buf *text, size_t from) {
    return text->len >= from + 3 && memcmp(text->data + text->len - 3, "\"\"\"", 3) == 0;
}

// Reads one text, of one line or more. *plain: its first line is no command and no fence, whatever it looks like.
static mf_line_end read_text(mf_chat *c, mf_buf *text, bool *plain) {
    bool fenced = false;
    for (size_t line = 0;; line++) {
        size_t start = text->len;
        mf_line_pasted pasted;
        mf_line_end end = mf_line_read(c->reader, line ? ". " : "> ", text, &pasted);
        if (end == MF_LINE_EOF && line > 0) return MF_LINE_ENTERED;
        if (end != MF_LINE_ENTERED) return end;
        if (line == 0 && !pasted.begin && text->len >= 3 && memcmp(text->data, "\"\"\"", 3) == 0) {
            fenced = true;
            memmove(text->data, text->data + 3, text->len -= 3);
        }
        if (line == 0) *plain = fenced || pasted.begin || !c->takes_commands;
        if (fenced && !pasted.end && ends_with_fence(text, start)) {
            text->data[text->len -= 3] = 0;
            return MF_LINE_ENTERED;
        }
        bool command = line == 0 && !*plain && mf_chat_is_command((mf_str){text->data, text->len});
        if (command || (!fenced && !goes_on(c, text, start, pasted.end))) return MF_LINE_ENTERED;
        bool fence_alone = fenced && text->len == 0;
        if (!fence_alone) mf_buf_char(text, '\n');
    }
}

static bool stopped(const mf_chat *c) { return !mf_line_terminal(c->reader) && mf_interrupted(); }

// Takes a text: a command or a question. False ends the conversation.
static bool take(mf_chat *c, mf_str text, bool command) {
    mf_error err = {0};
    mf_interrupt_clear(); // one during the last answer stops nothing of this one
    bool ok = command ? mf_chat_command(c, text, &err) : mf_chat_ask(c, text, &err);
    if (!ok && !c->out.failed && err.text[0]) mf_log(MF_LOG_ERROR, "%s", err.text);
    c->failed |= !ok;
    return !c->out.failed && !c->quit && !(c->o->single_turn && !command) && !stopped(c);
}

// A line that may have been meant as a command is neither done nor sent: it is there again, to be corrected.
static void ask_back(mf_chat *c, mf_str text, const char *meant) {
    mf_log(MF_LOG_ERROR, "there is no command '%.*s'; did you mean /%.*s? To send the line as text, put a space before it",
           (int)strcspn(text.ptr, " \t\n"), text.ptr, (int)strcspn(meant, " "), meant);
    mf_line_prefill(c->reader, text);
    c->failed = true;
}

static bool take_line(mf_chat *c, mf_str text, bool plain) {
    const char *meant = plain || mf_chat_is_command(text) ? NULL : mf_chat_near_miss(text);
    mf_line_remember(c->reader, text.ptr);
    if (meant) return ask_back(c, text, meant), true;
    return take(c, text, !plain && mf_chat_is_command(text));
}

static int exit_code(const mf_chat *c) {
    if (c->out.failed) return MF_EXIT_REFUSED;
    if (stopped(c)) return MF_EXIT_INTERRUPTED;
    // On a terminal a person saw what failed, and went on.
    return c->failed && !mf_line_terminal(c->reader) ? MF_EXIT_REFUSED : MF_EXIT_DONE;
}

static void loop(mf_chat *c) {
    for (bool more = true; more;) {
        mf_buf text = {.limit = LINE_MAX_BYTES};
        bool plain = true;
        // A Ctrl-C between an answer and the prompt ends nothing.
        if (mf_line_terminal(c->reader)) mf_interrupt_clear(), mf_interrupt_catch();
        mf_line_end end = read_text(c, &text, &plain);
        mf_str said = chopped(&text);
        if (text.failed) mf_log(MF_LOG_ERROR, "a text of over %u bytes is not taken", LINE_MAX_BYTES);
        c->failed |= text.failed;
        if (end == MF_LINE_EOF || stopped(c)) {
            more = false;
            if (mf_line_terminal(c->reader)) mf_output_write(&c->out, "\n", 1);
        } else if (end == MF_LINE_ENTERED && said.len > 0 && !text.failed) {
            if (memchr(said.ptr, 0, said.len)) mf_log(MF_LOG_NOTICE, "NUL bytes in a text are taken as U+FFFD");
            text.data[said.len] = 0;
            more = take_line(c, said, plain);
        }
        free(text.data);
    }
}

static void greet(const mf_chat *c) {
    if (!mf_line_terminal(c->reader)) return;
    mf_log(MF_LOG_NOTICE, "%s; context %d tokens, seed %lld. /help lists the commands", c->loaded.path,
           c->conversation.params.n_ctx, (long long)c->conversation.params.seed);
}

static bool open_lines(mf_chat *c, mf_error *err) {
    mf_buf history = {0};
    bool known = mf_line_history_path(&history);
    c->reader = mf_line_reader_new(known ? history.data : NULL, err);
    free(history.data);
    c->takes_commands = isatty(STDIN_FILENO) || c->o->commands;
    return c->reader != NULL;
}

static int converse(mf_chat *c, mf_buf *first, mf_error *err) {
    mf_str text = {0};
    const char *path = mf_cli_model(c->o, err);
    if (!path) return MF_EXIT_USAGE;
    int code = mf_cli_check_stops(c->o, err);
    if (code == MF_EXIT_DONE && c->o->prompt_file && strcmp(c->o->prompt_file, "-") == 0)
        code = (mf_fail(err, MF_ERR_ARGUMENT, "-f -: the lines of standard input are questions anyway"), MF_EXIT_USAGE);
    if (code == MF_EXIT_DONE && (c->o->prompt || c->o->prompt_file))
        code = mf_input_text(c->o, "question", first, &text, err);
    if (code != MF_EXIT_DONE) return code;
    text = first->data ? mf_input_chop(text) : text;
    if (!load(c, path, err) || !begin(c, err) || !open_lines(c, err)) return MF_EXIT_REFUSED;
    if (c->o->session && !mf_chat_session_open(c, err)) return MF_EXIT_REFUSED;
    greet(c);
    if (!(c->o->prompt || c->o->prompt_file) || take(c, text, false)) loop(c);
    return exit_code(c);
}

int mf_command_chat(mf_options *o) {
    if (!mf_flag_given(o, "--predict")) o->n_predict = -1;
    mf_chat c = {.o = o};
    mf_error err = {0};
    mf_buf first = {0};
    int code = converse(&c, &first, &err);
    if (err.text[0]) {
        int by_error = mf_cli_fail(&err);
        if (by_error == MF_EXIT_INTERRUPTED) code = by_error;
    }
    free(first.data);
    mf_line_reader_free(c.reader);
    mf_chat_session_close(&c);
    mf_conversation_free(&c.conversation);
    mf_sequence_free(c.sequence);
    mf_chat_template_free(c.prompt.template);
    mf_sampling_free(&c.sampling);
    mf_constrain_drop(&c.constrained);
    free(c.eog.data);
    mf_unload(&c.loaded);
    return code;
}
