// --help and the reference in docs/cli.md, out of the tables.
#include <stdlib.h>
#include <string.h>

#include "cli/flags.h"

#define COLUMN 30  // where the explanations start
#define WIDTH  110 // of a line

static const char *const titles[MF_GROUP_COUNT] = {
    [MF_GROUP_TEXT] = "Model and text", [MF_GROUP_GENERATION] = "Generation", [MF_GROUP_CHAT] = "Conversation",
    [MF_GROUP_SAMPLING] = "Sampling",   [MF_GROUP_MACHINE] = "Machine",       [MF_GROUP_BENCH] = "Measuring",
    [MF_GROUP_OUTPUT] = "Output",
};

const char *mf_help_title(mf_flag_group group) { return titles[group]; }

// Appends text from `column` on, broken at spaces so that lines stay within WIDTH.
static void add_wrapped(mf_buf *out, const char *text, size_t column) {
    size_t at = column;
    while (*text) {
        size_t word = strcspn(text, " ");
        if (at > column && at + 1 + word > WIDTH) {
            mf_buf_printf(out, "\n%*s", (int)column, "");
            at = column;
        } else if (at > column) {
            mf_buf_char(out, ' ');
            at++;
        }
        mf_buf_add(out, text, word);
        at += word;
        text += word + strspn(text + word, " ");
    }
    mf_buf_char(out, '\n');
}

// The short name of one letter and the canonical one: "-c, --ctx N".
static void add_main_names(const mf_flag *flag, mf_buf *out) {
    char canonical[64];
    mf_flag_name(flag, canonical);
    const char *letter = NULL;
    for (const char *p = flag->names; (p = strchr(p, ' ')); p++)
        if (!letter && p[1] == '-' && p[2] != '-' && (p[3] == ' ' || !p[3])) letter = p + 1;
    if (letter) mf_buf_printf(out, "%.2s, ", letter);
    mf_buf_text(out, canonical);
    if (flag->argument) mf_buf_printf(out, " %s", flag->argument);
}

// The names that add_main_names leaves out, with commas between.
static void add_other_names(const mf_flag *flag, mf_buf *out) {
    bool letter = false, first = true;
    const char *p = flag->names + strcspn(flag->names, " ");
    while (*p) {
        p++;
        size_t len = strcspn(p, " ");
        if (len == 2 && !letter) {
            letter = true;
        } else {
            mf_buf_printf(out, "%s%.*s", first ? "" : ", ", (int)len, p);
            first = false;
        }
        p += len;
    }
}

// " (default: 512)" for a flag with a number.
void mf_help_default(const mf_flag *flag, const mf_options *o, mf_buf *out) {
    const void *field = (const char *)o + flag->offset;
    if (flag->marks & MF_FLAG_NO_DEFAULT) return;
    if (flag->kind == MF_FLAG_INT) mf_buf_printf(out, " (default: %d)", *(const int32_t *)field);
    if (flag->kind == MF_FLAG_LONG) mf_buf_printf(out, " (default: %lld)", (long long)*(const int64_t *)field);
    if (flag->kind == MF_FLAG_REAL) mf_buf_printf(out, " (default: %g)", (double)*(const float *)field);
}

static void add_flag(const mf_flag *flag, const mf_options *defaults, mf_buf *out) {
    mf_buf names = {0}, text = {0};
    add_main_names(flag, &names);
    mf_buf_text(&text, flag->help);
    mf_help_default(flag, defaults, &text);
    mf_buf others = {0};
    add_other_names(flag, &others);
    if (others.len) mf_buf_printf(&text, " [also %s]", others.data);
    mf_buf_printf(out, "  %s", names.data ? names.data : "");
    if (names.len + 4 > COLUMN)
        mf_buf_printf(out, "\n%*s", COLUMN, "");
    else
        mf_buf_printf(out, "%*s", (int)(COLUMN - names.len - 2), "");
    add_wrapped(out, text.data ? text.data : "", COLUMN);
    free(names.data);
    free(text.data);
    free(others.data);
}

static void add_flags(unsigned commands, mf_buf *out) {
    size_t n;
    const mf_flag *flags = mf_flags(&n);
    mf_options defaults;
    mf_options_init(&defaults);
    for (int group = 0; group < MF_GROUP_COUNT; group++) {
        bool titled = false;
        for (size_t i = 0; i < n; i++) {
            const mf_flag *flag = &flags[i];
            if (flag->group != (mf_flag_group)group || !(flag->commands & commands) || (flag->marks & MF_FLAG_HIDDEN))
                continue;
            if (!titled) mf_buf_printf(out, "\n%s:\n", titles[group]);
            titled = true;
            add_flag(flag, &defaults, out);
        }
    }
    mf_buf_text(out, "\nFlags have an environment form, MINFER_ and their name: MINFER_BATCH_SIZE=64 is --batch-size 64.\n"
                     "A flag beats its variable. -- ends the flags. --name=value is taken too.\n");
}

void mf_help_command(const mf_command *command, mf_buf *out) {
    mf_buf_printf(out, "usage: minfer %s%s%s [FLAGS]\n\n%s\n", command->name, *command->words ? " " : "", command->words,
                  command->help);
    add_flags(command->bit, out);
}

void mf_help_main(mf_buf *out) {
    size_t n;
    const mf_command *commands = mf_commands(&n);
    mf_buf_printf(out, "usage: minfer %s [FLAGS]\n       minfer COMMAND …\n\n", commands[0].words);
    mf_buf_text(
        out,
        "Runs a language model from a GGUF file on this machine.\n\nCommands (minfer COMMAND --help has their flags):\n");
    for (size_t i = 0; i < n; i++)
        mf_buf_printf(out, "  %-12s%-18s%s\n", commands[i].name, commands[i].words, commands[i].help);
    add_flags(commands[0].bit, out);
}

// ---- Markdown

// Text of a table's cell.
static void add_cell(mf_buf *out, const char *text) {
    for (; *text; text++) {
        if (*text == '|') mf_buf_char(out, '\\');
        mf_buf_char(out, *text);
    }
}

static void add_code_names(mf_buf *out, const mf_flag *flag) {
    const char *p = flag->names;
    for (bool first = true; *p; first = false) {
        size_t len = strcspn(p, " ");
        mf_buf_printf(out, "%s`%.*s`", first ? "" : " ", (int)len, p);
        if (first && flag->argument) {
            mf_buf_text(out, " ");
            add_cell(out, flag->argument);
        }
        p += len + (p[len] == ' ');
    }
}

void mf_help_commands(unsigned set, mf_buf *out) {
    size_t n;
    const mf_command *commands = mf_commands(&n);
    if (set == MF_CMD_ALL) {
        mf_buf_text(out, "all");
        return;
    }
    for (size_t i = 0, first = 1; i < n; i++) {
        if (!(commands[i].bit & set)) continue;
        mf_buf_printf(out, "%s%s", first ? "" : ", ", commands[i].name);
        first = 0;
    }
}

static void add_row(mf_buf *out, const mf_flag *flag, const mf_options *defaults) {
    char env[64];
    mf_flag_env(flag, env);
    mf_buf_text(out, "| ");
    add_code_names(out, flag);
    mf_buf_printf(out, " | %s%s%s | ", env[0] ? "`" : "", env, env[0] ? "`" : "");
    mf_help_commands(flag->commands, out);
    mf_buf_text(out, " | ");
    add_cell(out, flag->help);
    mf_help_default(flag, defaults, out);
    mf_buf_text(out, " |\n");
}

void mf_help_markdown(mf_buf *out) {
    size_t n, n_commands;
    const mf_flag *flags = mf_flags(&n);
    const mf_command *commands = mf_commands(&n_commands);
    mf_options defaults;
    mf_options_init(&defaults);
    mf_buf_text(out, "| command | words | what it does |\n| --- | --- | --- |\n");
    for (size_t i = 0; i < n_commands; i++)
        mf_buf_printf(out, "| `%s` | %s | %s |\n", commands[i].name, commands[i].words, commands[i].help);
    for (int group = 0; group < MF_GROUP_COUNT; group++) {
        mf_buf_printf(out, "\n### %s\n\n| flag | environment | commands | meaning |\n| --- | --- | --- | --- |\n",
                      titles[group]);
        for (size_t i = 0; i < n; i++)
            if (flags[i].group == (mf_flag_group)group && !(flags[i].marks & MF_FLAG_HIDDEN))
                add_row(out, &flags[i], &defaults);
    }
}
