// The man page, out of the tables.
#include <string.h>

#include "base/version.h"
#include "cli/flags.h"

// Text for roff: backslashes and dashes are escaped, and no line begins with a control character.
static void add_text(mf_buf *out, const char *text) {
    if (*text == '.' || *text == '\'') mf_buf_text(out, "\\&");
    for (; *text; text++) {
        if (strncmp(text, "…", 3) == 0)
            mf_buf_text(out, "..."), text += 2;
        else if (*text == '\\')
            mf_buf_text(out, "\\e");
        else if (*text == '-')
            mf_buf_text(out, "\\-");
        else
            mf_buf_char(out, *text);
    }
}

static void add_names(mf_buf *out, const mf_flag *flag) {
    mf_buf_text(out, ".TP\n");
    for (const char *p = flag->names; *p;) {
        size_t len = strcspn(p, " ");
        char name[64];
        mf_buf_text(out, p == flag->names ? "\\fB" : ", \\fB");
        memcpy(name, p, len < 63 ? len : 63);
        name[len < 63 ? len : 63] = 0;
        add_text(out, name);
        mf_buf_text(out, "\\fR");
        p += len + (p[len] == ' ');
    }
    if (flag->argument) {
        mf_buf_text(out, " \\fI");
        add_text(out, flag->argument);
        mf_buf_text(out, "\\fR");
    }
    mf_buf_char(out, '\n');
}

static void add_commands_of(mf_buf *out, const mf_flag *flag) {
    size_t n;
    const mf_command *commands = mf_commands(&n);
    if (flag->commands == MF_CMD_ALL || flag->commands == commands[0].bit) return;
    mf_buf_text(out, " (");
    mf_help_commands(flag->commands, out);
    mf_buf_char(out, ')');
}

static void add_flag(mf_buf *out, const mf_flag *flag, const mf_options *defaults) {
    char env[64];
    mf_flag_env(flag, env);
    add_names(out, flag);
    add_text(out, flag->help);
    mf_help_default(flag, defaults, out);
    add_commands_of(out, flag);
    if (env[0]) mf_buf_printf(out, " [%s]", env);
    mf_buf_char(out, '\n');
}

void mf_help_man(mf_buf *out) {
    size_t n, n_commands;
    const mf_flag *flags = mf_flags(&n);
    const mf_command *commands = mf_commands(&n_commands);
    mf_options defaults;
    mf_options_init(&defaults);
    mf_buf_printf(out, ".TH MINFER 1 \"\" \"minfer %s\" \"User Commands\"\n", MF_VERSION);
    mf_buf_text(
        out,
        ".SH NAME\nminfer \\- run language models from GGUF files on this machine\n.SH SYNOPSIS\n"
        ".B minfer\n.I MODEL\n.RI [ PROMPT ]\n.RI [ FLAGS ]\n.br\n.B minfer\n.I COMMAND\n.RI [ WORDS ]\n"
        ".RI [ FLAGS ]\n.SH DESCRIPTION\n"
        "minfer answers a prompt with a model from a GGUF file: the same bytes for the same request, on every machine. The\n"
        "answer goes to standard output and everything else to standard error.\n.PP\n"
        "\\fIMODEL\\fR is the path of a file, or the name of a model in the cache, or a part of one that no other name "
        "has.\n"
        "Without it the variable MINFER_MODEL counts, else the only model in the cache.\n.SH COMMANDS\n");
    for (size_t i = 0; i < n_commands; i++) {
        mf_buf_printf(out, ".TP\n\\fB%s\\fR \\fI%s\\fR\n", commands[i].name, commands[i].words);
        add_text(out, commands[i].help);
        mf_buf_char(out, '\n');
    }
    mf_buf_text(out, ".SH FLAGS\nThe commands that take a flag stand behind it, unless it is run alone or all, and its "
                     "environment form in\n"
                     "brackets.\n");
    for (int group = 0; group < MF_GROUP_COUNT; group++) {
        mf_buf_printf(out, ".SS %s\n", mf_help_title((mf_flag_group)group));
        for (size_t i = 0; i < n; i++)
            if (flags[i].group == (mf_flag_group)group && !(flags[i].marks & MF_FLAG_HIDDEN))
                add_flag(out, &flags[i], &defaults);
    }
    mf_buf_text(out, ".SH EXIT STATUS\n0 done; 1 refused or failed; 2 wrong usage; 130 stopped by Ctrl\\-C.\n"
                     ".SH FILES\n.I ${XDG_CACHE_HOME:\\-~/.cache}/minfer/models\n.RS\nthe models that have names\n.RE\n");
}
