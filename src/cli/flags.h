// The one table of flags: parsing, the environment forms, --help and docs/cli.md all come from it.
#ifndef MF_CLI_FLAGS_H
#define MF_CLI_FLAGS_H

#include "base/error.h"
#include "base/text.h"
#include "cli/options.h"

enum { // subcommands, a set
    MF_CMD_RUN = 1,
    MF_CMD_INFO = 2,
    MF_CMD_TOKENIZE = 4,
    MF_CMD_BENCH = 8,
    MF_CMD_DOCTOR = 16,
    MF_CMD_PERPLEXITY = 32,
    MF_CMD_LIST = 64,
    MF_CMD_RM = 128,
    MF_CMD_COMPLETION = 256,
    MF_CMD_RENDER = 512,
    MF_CMD_CHAT = 1024,
    MF_CMD_SESSION = 2048,
    MF_CMD_HELP = 4096,
    MF_CMD_GRAMMAR = 8192,
    MF_CMD_ALL = 16383,
};

typedef struct mf_command {
    const char *name;
    const char *words;         // of the usage line: "MODEL [PROMPT]"
    const char *help;          // one line
    int (*run)(mf_options *o); // gives the exit code
    unsigned bit;              // MF_CMD_*
    int n_words; // 0: none, 1: MODEL, 2: MODEL and a text, -1, -2: one or two of its own (o->word, o->second_word)
    const struct mf_command *without_text; // what takes its place where no text is given; NULL: nothing
} mf_command;

// All subcommands; the first is what runs without a name.
const mf_command *mf_commands(size_t *n);
const mf_command *mf_command_find(const char *name); // NULL if there is none

typedef enum mf_flag_kind {
    MF_FLAG_BOOL,
    MF_FLAG_INT,  // int32_t
    MF_FLAG_LONG, // int64_t
    MF_FLAG_REAL, // float
    MF_FLAG_TEXT, // const char *
    MF_FLAG_LIST, // mf_text_list: may be repeated
    MF_FLAG_FUSE, // unsigned: a set of MF_FUSE_*
    MF_FLAG_BIAS, // array of mf_logit_bias, may be repeated
} mf_flag_kind;

typedef enum mf_flag_group {
    MF_GROUP_TEXT,
    MF_GROUP_GENERATION,
    MF_GROUP_CHAT,
    MF_GROUP_SAMPLING,
    MF_GROUP_MACHINE,
    MF_GROUP_BENCH,
    MF_GROUP_OUTPUT,
    MF_GROUP_COUNT,
} mf_flag_group;

// What only one of several flags, or a word, may say.
typedef enum mf_flag_source {
    MF_SOURCE_ANY,
    MF_SOURCE_MODEL,
    MF_SOURCE_TEXT,
    MF_SOURCE_TEMP,
    MF_SOURCE_KL,
    MF_SOURCE_FORM,
    MF_SOURCE_CONSTRAINT,
    MF_SOURCE_COUNT
} mf_flag_source;

enum {                      // mf_flag.marks
    MF_FLAG_HIDDEN = 1,     // not in --help and the docs
    MF_FLAG_NO_DEFAULT = 2, // its number at the start only says that it was not given
    MF_FLAG_AUTO = 8,       // an INT that takes the word auto, -1
    MF_FLAG_PRESENT = 16,   // a BOOL whose variable says yes when it is there, unless its value is a no
    MF_FLAG_OPTIONAL = 4,   // the value may be left out at the end and before a flag, and is "always" then
};

typedef struct mf_flag {
    const char *names;    // separated by spaces, dashes included, the canonical one first: "--ctx -c --ctx-size"
    const char *argument; // placeholder; NULL for a BOOL
    mf_flag_kind kind;
    unsigned commands; // that take it
    mf_flag_group group;
    size_t offset;         // of its field in mf_options
    int64_t min, max;      // of an INT or LONG
    const char *choices;   // of a TEXT: "md|csv|json"; NULL: any
    const char *env;       // NULL: MINFER_ and the canonical name; "": none
    mf_flag_source source; // of the flags with the same source only one may be given
    unsigned marks;        // MF_FLAG_HIDDEN, …
    const char *help;
} mf_flag;

const mf_flag *mf_flags(size_t *n);

typedef char *mf_env_fn(const char *name); // getenv, or none

// Parses the arguments behind the subcommand's name into *o, which is initialised by it and freed by the caller in any case.
// Flags beat the environment (env may be NULL). Accepted: --name value, --name=value, -c value; `--` ends the flags; pasted
// llama.cpp flags that mean nothing here get a notice. Words become o->model and o->prompt: a single word is the text where
// -m or $MINFER_MODEL names the model, unless (with the variable) it ends in .gguf or is a file. `run` with --cnv is `chat`, with all its
// flags; o->command says what was meant. A flag that this command does not use is refused. Gives MF_EXIT_DONE, MF_EXIT_USAGE for what can't be parsed, or MF_EXIT_REFUSED for a number outside its range, with err.
int mf_flags_parse(const mf_command *command, int argc, char *const *argv, mf_env_fn *env, mf_options *o, mf_error *err);

// Whether the flag with this canonical name ("--temp") was given.
bool mf_flag_given(const mf_options *o, const char *name);

// The flag's canonical name and environment name, into a buffer of 64 bytes; the environment name is "" where there is none.
void mf_flag_name(const mf_flag *flag, char out[64]);
void mf_flag_env(const mf_flag *flag, char out[64]);

// variables.c: the words of a yes or a no; false for another word.
#define MF_BOOL_WORDS "yes or no (1, 0, true, false, yes, no, on, off)"
bool mf_word_bool(mf_str word, bool *value);

// Variable i of a flag, of which each long name is one ("MINFER_CTX", "MINFER_CTX_SIZE"); false: it has no more.
bool mf_flag_variable(const mf_flag *flag, size_t i, char out[64]);

// The next variable from *i on that with a yes stands for a *value of the flag ("MINFER_NO_FUSE_QKV" for qkv); NULL: none.
const char *mf_switch_of(const mf_flag *flag, size_t *i, const char **value);

// Whether the environment has this variable with a yes.
bool mf_switch_on(const char *name);

// Looks through "NAME=value" entries (the last is NULL) for variables that begin with MINFER_ and are none: those of flags that are not in
// this version are refused like them, others are named in the log. Gives an exit code, with err.
int mf_variables_check(char *const *environment, mf_error *err);

// llama_flags.c: a flag of llama.cpp that minfer has no row for.
typedef struct mf_llama_flag {
    const char *names;
    int n_values;       // that follow it; -1: one if it is on, off, auto, 0 or 1
    bool refused;       // else it is accepted without effect
    const char *advice; // NULL: accepted without a word
} mf_llama_flag;
const mf_llama_flag *mf_llama_flag_find(mf_str name);

// Whether `name` is one of the space-separated names.
bool mf_names_have(const char *names, mf_str name);

// help.c
void mf_help_main(mf_buf *out);
void mf_help_command(const mf_command *command, mf_buf *out);
void mf_help_markdown(mf_buf *out); // the generated part of docs/cli.md

const char *mf_help_title(mf_flag_group group);

// Appends a flag's " (default: 512)", where it has one that is worth a word.
void mf_help_default(const mf_flag *flag, const mf_options *defaults, mf_buf *out);

// The names of a set of commands with commas between, or "all".
void mf_help_commands(unsigned set, mf_buf *out);

// man.c
void mf_help_man(mf_buf *out); // the man page in roff

// completion.c: the script for "bash", "zsh" or "fish"; false for another shell
bool mf_completion_script(const char *shell, mf_buf *out);

#endif
