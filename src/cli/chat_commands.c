// The commands of a conversation: lines that begin with '/'.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "cli/chat.h"
#include "cli/flags.h"

typedef struct chat_command {
    const char *names; // the first is the one in the help
    const char *words;
    const char *help;
    bool (*run)(mf_chat *c, mf_str text, mf_error *err);
} chat_command;

// Shows a text of somebody's; on a terminal nothing in it is a command.
static bool say(mf_chat *c, const char *text) {
    mf_buf line = {0};
    mf_screen screen = {0};
    if (mf_line_terminal(c->reader) && !c->o->raw_output)
        mf_screen_text(&screen, mf_str_of(text), &line), mf_screen_end(&screen, &line);
    else
        mf_buf_text(&line, text);
    mf_buf_char(&line, '\n');
    bool ok = mf_output_buf(&c->out, &line);
    free(line.data);
    return ok;
}

// A session's file follows what a command changed.
static bool keep(mf_chat *c, mf_error *err) { return !c->o->session || mf_chat_session_commit(c, err); }

static bool do_quit(mf_chat *c, mf_str text, mf_error *err) {
    (void)text, (void)err;
    c->quit = true;
    return true;
}

static bool do_clear(mf_chat *c, mf_str text, mf_error *err) {
    (void)text;
    mf_conversation_clear(&c->conversation);
    return keep(c, err);
}

static bool do_regen(mf_chat *c, mf_str text, mf_error *err) {
    (void)text;
    return mf_conversation_regenerate(&c->conversation, err) && mf_chat_answer(c, err);
}

static bool do_undo(mf_chat *c, mf_str text, mf_error *err) {
    (void)text;
    return mf_conversation_undo(&c->conversation, err) && keep(c, err);
}

static bool do_edit(mf_chat *c, mf_str text, mf_error *err) {
    const char *last = mf_conversation_last_question(&c->conversation);
    if (!last) return mf_fail(err, MF_ERR_ARGUMENT, "there is no question to edit");
    if (text.len == 0 && !mf_line_terminal(c->reader)) return mf_fail(err, MF_ERR_ARGUMENT, "/edit needs the new text");
    mf_buf line = {0};
    if (text.len > 0) {
        mf_buf_str(&line, text);
    } else {
        mf_line_prefill(c->reader, mf_str_of(last));
        if (mf_line_read(c->reader, "edit> ", &line, NULL) != MF_LINE_ENTERED || line.len == 0) return free(line.data), true;
        mf_line_remember(c->reader, line.data);
    }
    bool ok = !line.failed || mf_fail_memory(err, line.cap, "the question");
    ok = ok && mf_conversation_edit(&c->conversation, (mf_str){line.data, line.len}, err) && mf_chat_answer(c, err);
    free(line.data);
    return ok;
}

static bool do_system(mf_chat *c, mf_str text, mf_error *err) {
    const char *old = mf_conversation_system(&c->conversation);
    if (text.len == 0) return say(c, old ? old : "there is no system message");
    return mf_conversation_set_system(&c->conversation, mf_str_is(text, "none") ? (mf_str){0} : text, err) && keep(c, err);
}

static bool path_of(mf_str text, char path[4096], mf_error *err) {
    if (text.len == 0) return mf_fail(err, MF_ERR_ARGUMENT, "a file's name is needed");
    if (text.len > 4095) return mf_fail(err, MF_ERR_ARGUMENT, "a file's name has at most 4095 bytes");
    memcpy(path, text.ptr, text.len);
    path[text.len] = 0;
    return true;
}

// Whether a file may be written over: there is none, it is empty or a conversation of ours, or the person says so.
static bool may_overwrite(mf_chat *c, const char *path, mf_error *err) {
    struct stat st;
    if (stat(path, &st) != 0 || (S_ISREG(st.st_mode) && st.st_size == 0) || mf_chat_is_history(path)) return true;
    mf_buf answer = {0};
    bool yes = false;
    if (mf_line_terminal(c->reader)) {
        mf_log(MF_LOG_NOTICE, "%.200s is there, and no conversation of minfer's", path);
        yes = mf_line_read(c->reader, "write over it (y or n)? ", &answer, NULL) == MF_LINE_ENTERED && answer.len > 0 &&
              (answer.data[0] == 'y' || answer.data[0] == 'Y');
    }
    free(answer.data);
    return yes || mf_fail(err, MF_ERR_ARGUMENT, "%.200s is not written over: it is no conversation of minfer's", path);
}

static bool do_save(mf_chat *c, mf_str text, mf_error *err) {
    char path[4096];
    return path_of(text, path, err) && may_overwrite(c, path, err) && mf_chat_save(c, path, err);
}

static bool do_load(mf_chat *c, mf_str text, mf_error *err) {
    char path[4096];
    return path_of(text, path, err) && mf_chat_load(c, path, err) && keep(c, err);
}

static bool do_stats(mf_chat *c, mf_str text, mf_error *err) {
    (void)text, (void)err;
    const mf_turn_cost *cost = &c->conversation.cost;
    const mf_chat_totals *t = &c->totals;
    mf_kv_stats kv = mf_engine_kv_stats(c->loaded.engine);
    mf_buf out = {0};
    int32_t n = mf_conversation_n_tokens(&c->conversation);
    if (n >= 0)
        mf_buf_printf(&out, "context: %d of %d tokens\n", n, c->conversation.params.n_ctx);
    else
        mf_buf_printf(&out, "context: %d tokens; the next turn tells how many of them are taken\n",
                      c->conversation.params.n_ctx);
    if (cost->n_prompt)
        mf_buf_printf(&out, "last turn: prompt of %d tokens, %d evaluated\n", cost->n_prompt, cost->n_evaluated);
    else
        mf_buf_text(&out, "last turn: none\n");
    if (cost->n_again) mf_buf_printf(&out, "  %d cached tokens were dropped: %s\n", cost->n_again, cost->again_reason);
    if (cost->n_left)
        mf_buf_printf(&out, "  %d messages left the context (%d tokens taken out in place)\n", cost->n_left,
                      cost->n_shifted);
    mf_buf_printf(&out, "in all: %d turns, %lld prompt tokens (%.1f tok/s), %lld generated (%.1f tok/s)\n", t->turns,
                  (long long)t->evaluated, t->prompt_seconds > 0 ? (double)t->evaluated / t->prompt_seconds : 0.0,
                  (long long)t->generated, t->decode_seconds > 0 ? (double)t->generated / t->decode_seconds : 0.0);
    mf_buf_printf(&out, "cache: %d of %d blocks used\n", kv.blocks_used, kv.blocks_total);
    bool ok = mf_output_buf(&c->out, &out);
    free(out.data);
    return ok;
}

static bool do_help(mf_chat *c, mf_str text, mf_error *err);

static const chat_command chat_commands[] = {
    {"exit quit bye", "", "ends the conversation (so does Ctrl-D)", do_quit},
    {"clear", "", "forgets everything but the system message", do_clear},
    {"regen", "", "generates the last answer again, with the next seed", do_regen},
    {"undo", "", "takes back the last question and its answer", do_undo},
    {"edit", "[TEXT]", "asks the last question in other words", do_edit},
    {"system", "[TEXT]", "shows or sets the system message; 'none' removes it", do_system},
    {"save", "FILE", "writes the history as JSON", do_save},
    {"load", "FILE", "goes on with a history", do_load},
    {"stats", "", "shows the context and what the last turn cost", do_stats},
    {"help ?", "", "shows this", do_help},
};

#define N_COMMANDS (sizeof chat_commands / sizeof chat_commands[0])

static bool do_help(mf_chat *c, mf_str text, mf_error *err) {
    (void)text, (void)err;
    mf_buf out = {0};
    for (size_t i = 0; i < N_COMMANDS; i++) {
        const chat_command *k = &chat_commands[i];
        char left[40];
        snprintf(left, sizeof left, "/%.*s %s", (int)strcspn(k->names, " "), k->names, k->words);
        mf_buf_printf(&out, "  %-16s %s\n", left, k->help);
    }
    mf_buf_text(&out,
                "A line that ends with a backslash goes on in the next one; \"\"\" begins and ends a text of many lines.\n"
                "Ctrl-C stops an answer, Ctrl-D ends the conversation.\n");
    bool ok = mf_output_buf(&c->out, &out);
    free(out.data);
    return ok;
}

static const chat_command *find(mf_str name) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (mf_names_have(chat_commands[i].names, name)) return &chat_commands[i];
    return NULL;
}

// A line's first word, where it begins with '/': without it. Else nothing.
static mf_str command_word(mf_str line) {
    size_t end = 1;
    if (line.len < 2 || line.ptr[0] != '/') return (mf_str){0};
    while (end < line.len && !strchr(" \t\r\n", line.ptr[end])) end++;
    return (mf_str){line.ptr + 1, end - 1};
}

bool mf_chat_is_command(mf_str line) {
    mf_str word = command_word(line);
    return word.len > 0 && find(word);
}

static bool is_small_letters(mf_str word) {
    for (size_t i = 0; i < word.len; i++)
        if (word.ptr[i] < 'a' || word.ptr[i] > 'z') return false;
    return word.len > 0;
}

const char *mf_chat_near_miss(mf_str line) {
    mf_str word = command_word(line);
    if (!is_small_letters(word)) return NULL;
    for (size_t i = 0; i < N_COMMANDS; i++)
        for (const char *name = chat_commands[i].names; *name;) {
            mf_str known = {name, strcspn(name, " ")};
            // The beginning of a name, or one letter in four wrong.
            bool begun = mf_str_starts(known, word), close = mf_edit_distance(word, known) * 4 <= known.len;
            if (begun || close) return name;
            name += known.len + strspn(name + known.len, " ");
        }
    return NULL;
}

bool mf_chat_command(mf_chat *c, mf_str line, mf_error *err) {
    mf_str name = command_word(line), text = {0};
    if (name.ptr) text = (mf_str){name.ptr + name.len, line.len - 1 - name.len};
    for (; text.len > 0 && strchr(" \t\r\n", text.ptr[0]); text.len--) text.ptr++;
    while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1])) text.len--;
    const chat_command *k = find(name);
    if (!*k->words && text.len > 0)
        return mf_line_prefill(c->reader, line),
               mf_fail(err, MF_ERR_ARGUMENT,
                       "/%.*s takes nothing behind it; to send the line as text, put a space before it", (int)name.len,
                       name.ptr);
    return k->run(c, text, err);
}
