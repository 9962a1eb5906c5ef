// Scripts that let a shell complete commands, flags, their choices, and models, out of the tables.
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/terminal.h"

static bool shown(const mf_flag *flag, const mf_command *command) {
    return (flag->commands & command->bit) && !(flag->marks & MF_FLAG_HIDDEN);
}

// Whether a flag's value is a file or a folder.
static bool takes_path(const mf_flag *flag) {
    return flag->argument && (strcmp(flag->argument, "FILE") == 0 || strcmp(flag->argument, "DIR") == 0);
}

// The names of the commands, separated by spaces.
static void command_names(mf_buf *out) {
    size_t n;
    const mf_command *commands = mf_commands(&n);
    for (size_t i = 0; i < n; i++) mf_buf_printf(out, "%s%s", i ? " " : "", commands[i].name);
}

// Text in single quotes for a shell.
static void quoted(mf_buf *out, const char *text, size_t len, const char *escaped_quote) {
    mf_buf_char(out, '\'');
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\'')
            mf_buf_text(out, escaped_quote);
        else
            mf_buf_char(out, text[i]);
    }
    mf_buf_char(out, '\'');
}

// ---- bash

static void bash_values(mf_buf *out, const mf_command *command) {
    size_t n;
    const mf_flag *flags = mf_flags(&n);
    for (size_t i = 0; i < n; i++) {
        const mf_flag *flag = &flags[i];
        if (!shown(flag, command) || flag->kind == MF_FLAG_BOOL) continue;
        mf_buf_printf(out, "    %s:", command->name);
        for (const char *p = flag->names; *p; p++) {
            if (*p == ' ')
                mf_buf_printf(out, "|%s:", command->name);
            else
                mf_buf_char(out, *p);
        }
        if (flag->choices) {
            mf_buf_text(out, ") COMPREPLY=($(compgen -W \"");
            for (const char *p = flag->choices; *p; p++) mf_buf_char(out, *p == '|' ? ' ' : *p);
            mf_buf_text(out, "\" -- \"$cur\")) ;;\n");
        } else {
            mf_buf_text(out, takes_path(flag) ? ") _minfer_files ;;\n" : ") COMPREPLY=() ;;\n");
        }
    }
}

static void bash_flags(mf_buf *out, const mf_command *command) {
    size_t n;
    const mf_flag *flags = mf_flags(&n);
    mf_buf_printf(out, "    %s) flags=\"", command->name);
    for (size_t i = 0, first = 1; i < n; i++) {
        if (!shown(&flags[i], command)) continue;
        mf_buf_printf(out, "%s%s", first ? "" : " ", flags[i].names);
        first = 0;
    }
    mf_buf_text(out, "\" ;;\n");
}

static void bash_script(mf_buf *out) {
    size_t n;
    const mf_command *commands = mf_commands(&n);
    mf_buf_text(out, "# bash completion for minfer; source it, or put it into a folder of bash-completion.\n"
                     "# What lists print is text: it is read line by line, and no shell evaluates a word of it.\n"
                     "_minfer_offer() {\n"
                     "  local word\n"
                     "  while IFS= read -r word; do\n"
                     "    [[ $word == \"$cur\"* ]] && COMPREPLY+=(\"$word\")\n"
                     "  done\n"
                     "}\n"
                     "_minfer_models() { _minfer_offer < <(minfer list --names 2>/dev/null); }\n"
                     "_minfer_files() { mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); }\n"
                     "_minfer() {\n"
                     "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=");
    mf_buf_printf(out, "%s named=\"\" flags=\"\" names=\"", commands[0].name);
    command_names(out);
    mf_buf_text(out, "\"\n"
                     "  if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
                     "    case \" $names \" in *\" ${COMP_WORDS[1]} \"*) command=${COMP_WORDS[1]} named=1 ;; esac\n"
                     "  fi\n"
                     "  COMPREPLY=()\n  case \"$command\" in\n");
    for (size_t i = 0; i < n; i++) bash_flags(out, &commands[i]);
    mf_buf_text(out, "  esac\n  compopt -o filenames 2>/dev/null\n  case \"$command:$prev\" in\n");
    for (size_t i = 0; i < n; i++) bash_values(out, &commands[i]);
    mf_buf_text(out, "    *)\n"
                     "    case \"$command:$cur\" in\n"
                     "      *:-*) COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\")) ;;\n"
                     "      completion:*) COMPREPLY=($(compgen -W \"bash zsh fish\" -- \"$cur\")) ;;\n"
                     "      rm:*) _minfer_models ;;\n"
                     "      help:*) COMPREPLY=($(compgen -W \"$names\" -- \"$cur\")) ;;\n"
                     "      *)\n"
                     "      _minfer_files\n      _minfer_models\n"
                     "      [ \"$COMP_CWORD\" = 1 ] && COMPREPLY+=($(compgen -W \"$names\" -- \"$cur\")) ;;\n"
                     "    esac ;;\n"
                     "  esac\n"
                     "}\n"
                     "complete -F _minfer minfer\n");
}

// ---- zsh

// Text of an option's explanation: brackets and colons have a meaning in _arguments.
static void zsh_help(mf_buf *out, const char *help) {
    for (; *help; help++) {
        if (*help == '[' || *help == ']' || *help == ':' || *help == '\\') mf_buf_char(out, '\\');
        mf_buf_text(out, *help == '\'' ? "'\\''" : (char[]){*help, 0});
    }
}

static void zsh_flag(mf_buf *out, const mf_flag *flag) {
    for (const char *p = flag->names; *p;) {
        size_t len = strcspn(p, " ");
        mf_buf_printf(out, "      '%s%.*s[", flag->kind == MF_FLAG_LIST ? "*" : "", (int)len, p);
        zsh_help(out, flag->help);
        mf_buf_char(out, ']');
        if (flag->kind != MF_FLAG_BOOL) {
            mf_buf_text(out, ":value:");
            if (flag->choices) {
                mf_buf_char(out, '(');
                for (const char *c = flag->choices; *c; c++) mf_buf_char(out, *c == '|' ? ' ' : *c);
                mf_buf_char(out, ')');
            } else if (takes_path(flag)) {
                mf_buf_text(out, "_files");
            }
        }
        mf_buf_text(out, "'\n");
        p += len + (p[len] == ' ');
    }
}

static void zsh_script(mf_buf *out) {
    size_t n, n_flags;
    const mf_command *commands = mf_commands(&n);
    const mf_flag *flags = mf_flags(&n_flags);
    mf_buf_text(out, "#compdef minfer\n# zsh completion for minfer; put it as _minfer into a folder of $fpath.\n"
                     "_minfer() {\n  local command=");
    mf_buf_printf(out, "%s\n  local -a names flags models\n  names=(", commands[0].name);
    command_names(out);
    mf_buf_text(out, ")\n  models=(${(f)\"$(minfer list --names 2>/dev/null)\"})\n"
                     "  if (( CURRENT > 2 )) && (( ${names[(Ie)${words[2]}]} )); then\n"
                     "    command=${words[2]}\n    words=(minfer ${words[3,-1]})\n    (( CURRENT-- ))\n"
                     "  elif (( CURRENT == 2 )); then\n    compadd -a names\n  fi\n"
                     "  case $command in\n");
    for (size_t i = 0; i < n; i++) {
        mf_buf_printf(out, "    %s) flags=(\n", commands[i].name);
        for (size_t k = 0; k < n_flags; k++)
            if (shown(&flags[k], &commands[i])) zsh_flag(out, &flags[k]);
        mf_buf_text(out, "    ) ;;\n");
    }
    mf_buf_text(
        out,
        "  esac\n  # The names are given to compadd as they are: a list in the words of _arguments would be evaluated.\n"
        "  case $command in\n    completion) _arguments $flags '1:shell:(bash zsh fish)' ;;\n"
        "    help) _arguments $flags \"1:command:($names)\" ;;\n"
        "    rm) _arguments $flags '1:model:_minfer_models' ;;\n"
        "    *) _arguments $flags '*:file:_files' ; compadd -a models ;;\n  esac\n}\n_minfer_models() { compadd -a models "
        "}\n_minfer \"$@\"\n");
}

// ---- fish

static void fish_flag(mf_buf *out, const mf_flag *flag, const mf_command *command) {
    mf_buf_printf(out, "complete -c minfer -n '__minfer_command_is %s'", command->name);
    for (const char *p = flag->names; *p;) {
        size_t len = strcspn(p, " "), dashes = p[1] == '-' ? 2 : 1;
        mf_buf_printf(out, " %s %.*s", dashes == 2 ? "-l" : len == 2 ? "-s" : "-o", (int)(len - dashes), p + dashes);
        p += len + (p[len] == ' ');
    }
    if (flag->kind != MF_FLAG_BOOL) mf_buf_text(out, takes_path(flag) ? " -r -F" : " -x");
    if (flag->choices) {
        mf_buf_text(out, " -a '");
        for (const char *c = flag->choices; *c; c++) mf_buf_char(out, *c == '|' ? ' ' : *c);
        mf_buf_char(out, '\'');
    }
    mf_buf_text(out, " -d ");
    quoted(out, flag->help, strlen(flag->help), "\\'");
    mf_buf_char(out, '\n');
}

static void fish_script(mf_buf *out) {
    size_t n, n_flags;
    const mf_command *commands = mf_commands(&n);
    const mf_flag *flags = mf_flags(&n_flags);
    mf_buf_text(out, "# fish completion for minfer; put it as minfer.fish into ~/.config/fish/completions.\n"
                     "function __minfer_models\n  minfer list --names 2>/dev/null\nend\n"
                     "function __minfer_command_is\n  set -l words (commandline -opc)\n  set -l names ");
    command_names(out);
    mf_buf_printf(out,
                  "\n  set -l command %s\n  if test (count $words) -gt 1; and contains -- $words[2] $names\n"
                  "    set command $words[2]\n  end\n  test $command = $argv[1]\nend\n",
                  commands[0].name);
    for (size_t i = 0; i < n; i++) {
        mf_buf_printf(out, "complete -c minfer -n 'test (count (commandline -opc)) -eq 1' -a %s -d ", commands[i].name);
        quoted(out, commands[i].help, strlen(commands[i].help), "\\'");
        mf_buf_char(out, '\n');
    }
    mf_buf_text(out, "complete -c minfer -n '__minfer_command_is completion' -x -a 'bash zsh fish'\n"
                     "complete -c minfer -n 'not __minfer_command_is completion' -a '(__minfer_models)' -d model\n"
                     "complete -c minfer -n '__minfer_command_is rm' -f\n");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n_flags; k++)
            if (shown(&flags[k], &commands[i])) fish_flag(out, &flags[k], &commands[i]);
}

bool mf_completion_script(const char *shell, mf_buf *out) {
    static const struct {
        const char *name;
        void (*write)(mf_buf *out);
    } shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(shells[i].name, shell) != 0) continue;
        shells[i].write(out);
        return true;
    }
    return false;
}

int mf_command_completion(mf_options *o) {
    mf_error err = {0};
    mf_buf text = {0};
    mf_output out = {0};
    int code = MF_EXIT_USAGE;
    if (!o->word)
        mf_fail(&err, MF_ERR_ARGUMENT, "no shell: minfer completion bash, zsh or fish");
    else if (!mf_completion_script(o->word, &text))
        mf_fail(&err, MF_ERR_ARGUMENT, "no completion for the shell '%.80s'; there are bash, zsh and fish", o->word);
    else
        code = mf_output_buf(&out, &text) ? MF_EXIT_DONE : MF_EXIT_REFUSED;
    if (err.code) mf_cli_fail(&err);
    free(text.data);
    return code;
}
