// minfer chat: what a conversation on the command line holds, shared by its files.
#ifndef MF_CLI_CHAT_H
#define MF_CLI_CHAT_H

#include "base/lock.h"
#include "chat/conversation.h"
#include "cli/answer.h"
#include "cli/constrain.h"
#include "cli/line.h"
#include "cli/load.h"
#include "cli/prompt.h"
#include "cli/sampling.h"
#include "engine/session.h"

// Sums over the conversation.
typedef struct mf_chat_totals {
    int32_t turns;
    int64_t evaluated, generated; // tokens of prompts, of answers
    double prompt_seconds, decode_seconds;
} mf_chat_totals;

typedef struct mf_chat {
    mf_options *o;
    mf_loaded loaded;
    mf_token_array eog;
    mf_sampling sampling;
    mf_constrained constrained;
    mf_sequence *sequence;
    mf_conversation conversation;
    mf_prompt_source prompt;
    const mf_reasoning_marks *marks;
    mf_lock history;     // --session's file
    mf_session *session; // NULL: the cells are not kept
    mf_line_reader *reader;
    mf_output out;
    mf_chat_totals totals;
    bool takes_commands; // lines may be commands: a person types them, or --commands was given
    bool quit;
    bool failed; // a question or a command did
} mf_chat;

// Generates the answer that the conversation is ready for, shows it as it comes and adds it to the conversation. Ctrl-C ends the answer
// and nothing else. False with err: it failed, or what was shown could not be written.
bool mf_chat_answer(mf_chat *c, mf_error *err);

// Asks and answers.
bool mf_chat_ask(mf_chat *c, mf_str text, mf_error *err);

// chat_commands.c: whether a line is a command (its first word is the name of one behind a '/'), and its work. False with err: it was
// refused.
bool mf_chat_is_command(mf_str line);
bool mf_chat_command(mf_chat *c, mf_str line, mf_error *err);

// The name of the command that a line which is none may have been meant as; NULL: it is text.
const char *mf_chat_near_miss(mf_str line);

// chat_file.c: the history as JSON. Writing is whole or not at all; loading replaces the conversation.
bool mf_chat_history(const mf_chat *c, mf_buf *text, mf_error *err);
bool mf_chat_save(mf_chat *c, const char *path, mf_error *err);
bool mf_chat_is_history(const char *path); // whether the file has the mark of one
bool mf_chat_load(mf_chat *c, const char *path, mf_error *err);

// chat_session.c: --session FILE. Opening locks both files before anything is read, and takes up the history in FILE and the cells in
// FILE.kv where they are there and fit; where the cells don't, it says why and they are evaluated again. Refused: files that can't be
// written, that another process has, that are something else. Committing writes both.
bool mf_chat_session_open(mf_chat *c, mf_error *err);
bool mf_chat_session_commit(mf_chat *c, mf_error *err);
void mf_chat_session_close(mf_chat *c);

#endif
