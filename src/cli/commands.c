#include "cli/commands.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/stream.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/load.h"
#include "cli/models.h"
#include "cli/terminal.h"

extern char **environ; // POSIX asks the program to declare it

static int command_help(mf_options *o);

static const mf_command commands[] = {
    {"run", "MODEL [PROMPT]", "answers a prompt (the word run may be left out)", mf_command_run, MF_CMD_RUN, 2, NULL},
    {"chat", "MODEL [PROMPT]", "holds a conversation, line by line", mf_command_chat, MF_CMD_CHAT, 2, NULL},
    {"session", "info FILE", "shows what is in a conversation's saved cells", mf_command_session, MF_CMD_SESSION, -2, NULL},
    {"info", "MODEL", "shows what is in a model file and the memory it needs", mf_command_info, MF_CMD_INFO, 1, NULL},
    {"tokenize", "MODEL [TEXT]", "shows the token ids of a text, or the text of ids", mf_command_tokenize, MF_CMD_TOKENIZE,
     2, NULL},
    {"render", "[MODEL]", "shows what a chat template makes of a conversation", mf_command_render, MF_CMD_RENDER, 1, NULL},
    {"grammar", "FILE", "says whether a text is what a grammar or a JSON Schema allows", mf_command_grammar, MF_CMD_GRAMMAR,
     -1, NULL},
    {"bench", "MODEL", "measures speed, beside what the machine could do", mf_command_bench, MF_CMD_BENCH, 1, NULL},
    {"perplexity", "MODEL", "measures how well a model predicts a text, and how far it is from another's predictions",
     mf_command_perplexity, MF_CMD_PERPLEXITY, 1, NULL},
    {"list", "", "lists the models in the cache", mf_command_list, MF_CMD_LIST, 0, NULL},
    {"rm", "NAME", "removes a model from the cache", mf_command_rm, MF_CMD_RM, -1, NULL},
    {"completion", "SHELL", "prints the completion script for bash, zsh or fish", mf_command_completion, MF_CMD_COMPLETION,
     -1, NULL},
    {"help", "[COMMAND]", "lists the commands, or shows a command's flags", command_help, MF_CMD_HELP, -1, NULL},
    {"doctor", "", "shows what this machine has and what minfer uses of it", mf_command_doctor, MF_CMD_DOCTOR, 0, NULL},
};

const mf_command *mf_commands(size_t *n) {
    *n = sizeof commands / sizeof commands[0];
    return commands;
}

const mf_command *mf_command_find(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

int mf_cli_fail(const mf_error *err) {
    if (err->code == MF_ERR_CANCELLED) return MF_EXIT_INTERRUPTED;
    mf_log(MF_LOG_ERROR, "%s", err->text);
    return MF_EXIT_REFUSED;
}

int mf_cli_check_stops(const mf_options *o, mf_error *err) {
    for (size_t i = 0; i < o->stop.len; i++) {
        if (!*o->stop.data[i])
            return mf_fail(err, MF_ERR_ARGUMENT, "--stop: an empty text would stop every answer"), MF_EXIT_USAGE;
        if (strlen(o->stop.data[i]) > MF_STREAM_STOP_MAX)
            return mf_fail(err, MF_ERR_ARGUMENT, "--stop: a text has at most %d bytes", MF_STREAM_STOP_MAX), MF_EXIT_REFUSED;
    }
    return MF_EXIT_DONE;
}

const char *mf_cli_model(const mf_options *o, mf_error *err) {
    if (o->model && *o->model) return o->model;
    mf_models_advise(err);
    return NULL;
}

// A first word that is neither a subcommand nor a file may have been meant as a subcommand.
static bool check_first_word(const char *word, mf_error *err) {
    if (access(word, F_OK) == 0 || strpbrk(word, "/.:") || mf_models_has(word)) return true;
    static const char later[] = "serve pull download convert quantize split merge specverify viz";
    if (mf_names_have(later, mf_str_of(word)))
        return mf_fail(err, MF_ERR_UNSUPPORTED,
                       "the command '%s' is not in this version; minfer --help lists those that are", word);
    const char *near = NULL;
    size_t best = 3;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        size_t distance = mf_edit_distance(mf_str_of(word), mf_str_of(commands[i].name));
        if (distance < best && distance * 2 < strlen(commands[i].name)) near = commands[i].name, best = distance;
    }
    if (near) return mf_fail(err, MF_ERR_ARGUMENT, "'%.80s' is no file and no command; did you mean minfer %s?", word, near);
    return true;
}

static int print_version(const mf_options *o) {
    mf_error err = {0};
    const mf_kernels *row = mf_kernel_row(o, &err);
    if (!row) return mf_cli_fail(&err);
    mf_buf line = {0};
    mf_output out = {0};
    mf_buf_printf(&line, "minfer %s (arithmetic %d, %s)\n", MF_VERSION, MF_ARITHMETIC_VERSION, row->name);
    bool ok = mf_output_buf(&out, &line);
    free(line.data);
    return ok ? MF_EXIT_DONE : MF_EXIT_REFUSED;
}

static int print_help(void (*main_help)(mf_buf *), const mf_command *command) {
    mf_buf text = {0};
    mf_output out = {0};
    if (main_help)
        main_help(&text);
    else
        mf_help_command(command, &text);
    bool ok = mf_output_buf(&out, &text);
    free(text.data);
    return ok ? MF_EXIT_DONE : MF_EXIT_REFUSED;
}

// Backends that are named can be used, whatever the command needs of them.
static bool check_backends(const mf_options *o, mf_error *err) {
    mf_device_list list;
    if (!o->backends.len) return true;
    bool ok = mf_devices_open(&list, o, err);
    if (ok) mf_device_list_close(&list);
    return ok;
}

static int command_help(mf_options *o) {
    const mf_command *command = o->word ? mf_command_find(o->word) : NULL;
    mf_error err = {0};
    if (!o->word || command) return print_help(command ? NULL : mf_help_main, command);
    mf_fail(&err, MF_ERR_ARGUMENT, "there is no command '%.80s'; minfer help lists those that are", o->word);
    return mf_cli_fail(&err), MF_EXIT_USAGE;
}

static int dispatch(const mf_command *command, bool named, mf_options *o, const char *first, mf_error *err) {
    if (o->help_markdown) return print_help(mf_help_markdown, NULL);
    if (o->help_man) return print_help(mf_help_man, NULL);
    if (o->help) return print_help(named ? NULL : mf_help_main, command);
    if (o->version) return print_version(o);
    mf_log_set_level(o->verbose ? MF_LOG_DEBUG : MF_LOG_NOTICE);
    if (!named && first && o->model == first && !check_first_word(first, err)) return mf_cli_fail(err), MF_EXIT_USAGE;
    if (command->n_words > 0 && !mf_models_resolve(o, command->words[0] != '[', err)) return mf_cli_fail(err);
    return check_backends(o, err) ? o->command->run(o) : mf_cli_fail(err);
}

int mf_cli_main(int argc, char *const *argv) {
    mf_terminal_guard();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error of its write
    const mf_command *command = argc > 1 ? mf_command_find(argv[1]) : NULL;
    bool named = command != NULL;
    if (argc < 2 && !getenv("MINFER_MODEL")) {
        mf_buf text = {0};
        mf_help_main(&text);
        fputs(text.data ? text.data : "", stderr);
        free(text.data);
        return MF_EXIT_USAGE;
    }
    // A person who names a model and asks nothing wants to talk.
    mf_command bare = commands[0];
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)) bare.without_text = mf_command_find("chat");
    if (!command) command = &bare;
    int skip = argc < 1 ? 0 : named ? 2 : 1;
    mf_options o;
    mf_error err = {0};
    int code = mf_flags_parse(command, argc - skip, argv + skip, getenv, &o, &err);
    bool help = o.help || o.help_markdown || o.help_man || o.command == mf_command_find("help");
    if (code == MF_EXIT_DONE && !help) code = mf_variables_check(environ, &err);
    if (code == MF_EXIT_DONE)
        code = dispatch(command, named, &o, o.words.len ? o.words.data[0] : NULL, &err);
    else
        mf_cli_fail(&err);
    mf_options_free(&o);
    return code;
}
