// The parser of command lines.
#include "cli/flags.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "graph/graph.h"

void mf_options_free(mf_options *o) {
    free(o->words.data);
    free(o->stop.data);
    free(o->breakers.data);
    free(o->logit_bias.data);
    free(o->backends.data);
    free(o->model_owned);
    *o = (mf_options){0};
}

// Takes the next of some words that are kept apart by `by`; false at the end.
static bool next_part(mf_str *rest, char by, mf_str *part) {
    if (!rest->ptr) return false;
    const char *end = memchr(rest->ptr, by, rest->len);
    *part = (mf_str){rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    *rest = end ? (mf_str){end + 1, rest->len - part->len - 1} : (mf_str){0};
    return true;
}

bool mf_names_have(const char *names, mf_str name) {
    mf_str rest = mf_str_of(names), part;
    while (next_part(&rest, ' ', &part))
        if (mf_str_eq(part, name)) return true;
    return false;
}

void mf_flag_name(const mf_flag *flag, char out[64]) {
    size_t len = strcspn(flag->names, " ");
    snprintf(out, 64, "%.*s", (int)len, flag->names);
}

void mf_flag_env(const mf_flag *flag, char out[64]) {
    if (flag->env) {
        snprintf(out, 64, "%s", flag->env);
        return;
    }
    char name[64];
    mf_flag_name(flag, name);
    snprintf(out, 64, "MINFER_%.50s", name + 2);
    for (char *p = out; *p; p++) *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

static const mf_flag *find(mf_str name, unsigned commands) {
    size_t n;
    const mf_flag *flags = mf_flags(&n);
    for (size_t i = 0; i < n; i++)
        if ((flags[i].commands & commands) && mf_names_have(flags[i].names, name)) return &flags[i];
    return NULL;
}

static size_t number_of(const mf_flag *flag) {
    size_t n;
    return (size_t)(flag - mf_flags(&n));
}

bool mf_flag_given(const mf_options *o, const char *name) {
    const mf_flag *flag = find(mf_str_of(name), MF_CMD_ALL);
    return flag && o->given[number_of(flag)];
}

// ---- Values. `where` is the flag or variable as it was written.

static int short_len(mf_str text) { return (int)(text.len < 80 ? text.len : 80); }

static int refuse_value(const char *where, mf_str value, const char *wanted, mf_error *err) {
    mf_fail(err, MF_ERR_ARGUMENT, "%s: '%.*s' is not %s", where, short_len(value), value.ptr, wanted);
    return MF_EXIT_USAGE;
}

static int out_of_memory(mf_error *err) {
    mf_fail_memory(err, 0, "the command line");
    return MF_EXIT_REFUSED;
}

static int set_bool(bool *field, const char *where, mf_str value, mf_error *err) {
    return mf_word_bool(value, field) ? MF_EXIT_DONE : refuse_value(where, value, MF_BOOL_WORDS, err);
}

// Digits with an optional sign: a whole number, whether or not it fits.
static bool is_whole(mf_str text) {
    size_t i = text.len && (text.ptr[0] == '-' || text.ptr[0] == '+');
    if (i == text.len) return false;
    for (; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return false;
    return true;
}

static int get_whole(const mf_flag *flag, const char *where, mf_str value, int64_t *out, mf_error *err) {
    bool fits = mf_parse_i64(value, out);
    if (!fits && !is_whole(value)) return refuse_value(where, value, "a whole number", err);
    if (fits && *out >= flag->min && *out <= flag->max) return MF_EXIT_DONE;
    if (flag->max >= INT32_MAX && fits && *out < flag->min)
        mf_fail(err, MF_ERR_ARGUMENT, "%s: %" PRId64 " is below %" PRId64, where, *out, flag->min);
    else
        mf_fail(err, MF_ERR_ARGUMENT, "%s: %.*s is not between %" PRId64 " and %" PRId64, where, short_len(value), value.ptr,
                flag->min, flag->max);
    return MF_EXIT_REFUSED;
}

static int set_text(const mf_flag *flag, const char **field, const char *where, const char *value, mf_error *err) {
    mf_str rest = flag->choices ? mf_str_of(flag->choices) : (mf_str){0}, choice;
    bool known = !flag->choices;
    while (next_part(&rest, '|', &choice)) known = known || mf_str_is(choice, value);
    if (!known) {
        char wanted[96];
        bool optional = flag->marks & MF_FLAG_OPTIONAL; // who left it out meant the word as a text
        snprintf(wanted, sizeof wanted, "one of %s%s", flag->choices, optional ? "; a prompt goes before the flag" : "");
        return refuse_value(where, mf_str_of(value), wanted, err);
    }
    *field = value;
    return MF_EXIT_DONE;
}

static int set_fuse(unsigned *field, const char *where, const char *value, mf_error *err) {
    static const struct {
        const char *name;
        unsigned bits;
    } kinds[] = {
        {"qkv", MF_FUSE_QKV}, {"ffn", MF_FUSE_FFN}, {"norm", MF_FUSE_NORM}, {"add", MF_FUSE_ADD}, {"all", MF_FUSE_ALL}};
    mf_str rest = mf_str_of(value), name;
    while (next_part(&rest, ',', &name)) {
        unsigned bits = 0;
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            if (mf_str_is(name, kinds[i].name)) bits = kinds[i].bits;
        if (!bits) return refuse_value(where, name, "one of qkv, ffn, norm, add, all", err);
        *field |= bits;
    }
    return MF_EXIT_DONE;
}

static int add_bias(mf_options *o, const char *where, const char *value, mf_error *err) {
    mf_str rest = mf_str_of(value), item;
    while (next_part(&rest, ',', &item)) {
        mf_str number = item, id;
        int64_t token;
        double bias;
        bool ok = next_part(&number, ':', &id) && number.ptr && mf_parse_i64(id, &token) && mf_parse_f64(number, &bias);
        if (!ok || token < INT32_MIN || token > INT32_MAX) return refuse_value(where, item, "ID:BIAS", err);
        mf_logit_bias entry = {(int32_t)token, (float)bias};
        if (!mf_array_push(&o->logit_bias, entry)) return out_of_memory(err);
    }
    return MF_EXIT_DONE;
}

// Whether a flag's value is the name of something: an empty one names nothing.
static bool is_name(const mf_flag *flag) {
    return flag->argument && (strncmp(flag->argument, "FILE", 4) == 0 || strncmp(flag->argument, "DIR", 3) == 0 ||
                              strncmp(flag->argument, "NAME", 4) == 0);
}

static int set_value(mf_options *o, const mf_flag *flag, const char *where, const char *value, mf_error *err) {
    void *field = (char *)o + flag->offset;
    int64_t whole = 0;
    double real;
    int code;
    if (!*value && is_name(flag)) return refuse_value(where, mf_str_of(value), "a name", err);
    switch (flag->kind) {
    case MF_FLAG_BOOL: return set_bool(field, where, mf_str_of(value), err);
    case MF_FLAG_INT:
        if ((flag->marks & MF_FLAG_AUTO) && strcmp(value, "auto") == 0) return *(int32_t *)field = -1, MF_EXIT_DONE;
        code = get_whole(flag, where, mf_str_of(value), &whole, err);
        if (code == MF_EXIT_DONE) *(int32_t *)field = (int32_t)whole;
        return code;
    case MF_FLAG_LONG:
        code = get_whole(flag, where, mf_str_of(value), &whole, err);
        if (code == MF_EXIT_DONE) *(int64_t *)field = whole;
        return code;
    case MF_FLAG_REAL:
        if (!mf_parse_f64(mf_str_of(value), &real)) return refuse_value(where, mf_str_of(value), "a number", err);
        *(float *)field = (float)real;
        return MF_EXIT_DONE;
    case MF_FLAG_TEXT: return set_text(flag, field, where, value, err);
    case MF_FLAG_LIST: return mf_array_push((mf_text_list *)field, value) ? MF_EXIT_DONE : out_of_memory(err);
    case MF_FLAG_FUSE: return set_fuse(field, where, value, err);
    case MF_FLAG_BIAS: return add_bias(o, where, value, err);
    }
    return MF_EXIT_DONE;
}

// ---- Words and flags

typedef struct parser {
    const mf_command *command;
    unsigned commands; // whose flags are read: run may turn out to be chat
    int argc, at;
    char *const *argv;
    mf_options *o;
    const mf_flag *source[MF_SOURCE_COUNT]; // the flag that said it
    mf_str written[MF_CLI_MAX_FLAGS];       // by the flag's place in the table: its name on the command line
} parser;

// Another flag than the one before for the same thing is refused.
static int take_source(parser *p, const mf_flag *flag, mf_error *err) {
    const mf_flag **by = &p->source[flag->source];
    if (flag->source == MF_SOURCE_ANY) return MF_EXIT_DONE;
    if (*by && *by != flag) {
        char one[64], other[64];
        mf_flag_name(*by, one);
        mf_flag_name(flag, other);
        mf_fail(err, MF_ERR_ARGUMENT, "%s and %s are both given; one of them is enough", one, other);
        return MF_EXIT_USAGE;
    }
    *by = flag;
    return MF_EXIT_DONE;
}

// The refusal of a flag that only other commands use.
static int refuse_foreign(const mf_command *command, const mf_flag *flag, mf_str name, mf_error *err) {
    mf_buf takers = {0};
    mf_help_commands(flag->commands, &takers);
    mf_fail(err, MF_ERR_ARGUMENT, "minfer %s does not take the flag %.*s; it belongs to %s", command->name, short_len(name),
            name.ptr, takers.data ? takers.data : "others");
    free(takers.data);
    return MF_EXIT_USAGE;
}

static int refuse_unknown(const parser *p, mf_str name, mf_error *err) {
    size_t n, best = 4;
    const mf_flag *flags = mf_flags(&n), *other = find(name, MF_CMD_ALL);
    mf_str near = {0};
    for (size_t i = 0; i < n; i++) {
        mf_str rest = mf_str_of(flags[i].names), part;
        while (next_part(&rest, ' ', &part)) {
            size_t distance = mf_edit_distance(name, part);
            bool close = distance < best && distance * 3 <= part.len;
            if ((flags[i].commands & p->commands) && !(flags[i].marks & MF_FLAG_HIDDEN) && close)
                near = part, best = distance;
        }
    }
    if (other)
        refuse_foreign(p->command, other, name, err);
    else if (near.ptr)
        mf_fail(err, MF_ERR_ARGUMENT, "unknown flag '%.*s'; did you mean %.*s?", short_len(name), name.ptr, (int)near.len,
                near.ptr);
    else
        mf_fail(err, MF_ERR_ARGUMENT, "unknown flag '%.*s'; minfer %s --help lists them", short_len(name), name.ptr,
                p->command->name);
    return MF_EXIT_USAGE;
}

static bool is_flag_word(const char *word) { return word[0] == '-' && word[1]; }

static bool is_switch_word(const char *word) {
    static const char *const words[] = {"on", "off", "auto", "always", "never", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i]) == 0) return true;
    return false;
}

static int take_llama_flag(parser *p, const mf_llama_flag *flag, mf_str name, bool has_value, mf_error *err) {
    if (flag->refused) {
        mf_fail(err, MF_ERR_UNSUPPORTED, "%.*s: %s", short_len(name), name.ptr, flag->advice);
        return MF_EXIT_USAGE;
    }
    bool takes = flag->n_values == 1 || (flag->n_values < 0 && p->at < p->argc && is_switch_word(p->argv[p->at]));
    if (takes && !has_value) {
        if (p->at == p->argc) {
            mf_fail(err, MF_ERR_ARGUMENT, "the flag %.*s needs a value", short_len(name), name.ptr);
            return MF_EXIT_USAGE;
        }
        p->at++;
    }
    if (flag->advice) mf_log(MF_LOG_NOTICE, "%.*s has no effect: %s", short_len(name), name.ptr, flag->advice);
    return MF_EXIT_DONE;
}

// A flag at argv[at - 1]: "--name", "--name=value", "-n".
static int take_flag(parser *p, const char *word, mf_error *err) {
    const char *equals = word[1] == '-' ? strchr(word, '=') : NULL;
    mf_str name = {word, equals ? (size_t)(equals - word) : strlen(word)};
    const char *value = equals ? equals + 1 : NULL;
    const mf_flag *flag = find(name, p->commands);
    if (!flag) {
        const mf_llama_flag *llama = mf_llama_flag_find(name);
        return llama ? take_llama_flag(p, llama, name, value != NULL, err) : refuse_unknown(p, name, err);
    }
    bool left_out = (flag->marks & MF_FLAG_OPTIONAL) && (p->at == p->argc || is_flag_word(p->argv[p->at]));
    if (!value && left_out) value = "always";
    if (!value && flag->kind == MF_FLAG_BOOL) value = "1";
    if (!value && p->at == p->argc) {
        mf_fail(err, MF_ERR_ARGUMENT, "the flag %s needs a value (%s)", word, flag->argument);
        return MF_EXIT_USAGE;
    }
    if (!value) value = p->argv[p->at++];
    char where[64];
    snprintf(where, sizeof where, "%.*s", (int)(name.len < 63 ? name.len : 63), name.ptr);
    int code = take_source(p, flag, err);
    if (code != MF_EXIT_DONE) return code;
    p->o->given[number_of(flag)] = true;
    p->written[number_of(flag)] = name;
    return set_value(p->o, flag, where, value, err);
}

// The first flag on the command line that a command does not use, from place `from` on; the number of flags: none.
static size_t find_foreign(const parser *p, const mf_command *command, size_t from) {
    size_t n;
    const mf_flag *flags = mf_flags(&n);
    while (from < n && !(p->written[from].ptr && !(flags[from].commands & command->bit))) from++;
    return from;
}

// Refuses what the command does not use, unless it is a flag of llama.cpp that has an explanation.
static int check_foreign(const parser *p, const mf_command *command, mf_error *err) {
    size_t n;
    const mf_flag *flags = mf_flags(&n);
    for (size_t i = 0; (i = find_foreign(p, command, i)) < n; i++) {
        mf_str name = p->written[i];
        const mf_llama_flag *llama = mf_llama_flag_find(name);
        if (!llama || llama->refused) return refuse_foreign(command, &flags[i], name, err);
        mf_log(MF_LOG_NOTICE, "%.*s has no effect: %s", short_len(name), name.ptr, llama->advice);
    }
    return MF_EXIT_DONE;
}

static bool looks_like_model(const char *word) {
    size_t len = strlen(word);
    return (len > 5 && strcmp(word + len - 5, ".gguf") == 0) || access(word, F_OK) == 0;
}

// Gives the words their places: MODEL, then the text.
static int place_words(parser *p, mf_env_fn *env, mf_error *err) {
    mf_options *o = p->o;
    size_t n = o->words.len, used = 0;
    if (p->command->n_words < 0 && n > 0) o->word = o->words.data[used++];
    if (p->command->n_words < -1 && used < n) o->second_word = o->words.data[used++];
    const char *elsewhere = env ? env("MINFER_MODEL") : NULL;
    bool model_word = p->command->n_words > 0 && n > 0 && !p->source[MF_SOURCE_MODEL];
    if (model_word && n == 1 && p->command->n_words > 1 && elsewhere && *elsewhere)
        model_word = looks_like_model(o->words.data[0]);
    if (model_word) o->model = o->words.data[used++];
    if (used < n && p->command->n_words > 1) {
        if (p->source[MF_SOURCE_TEXT]) {
            char name[64];
            mf_flag_name(p->source[MF_SOURCE_TEXT], name);
            mf_fail(err, MF_ERR_ARGUMENT, "the text is given by %s and as the word '%.80s'; one of them is enough", name,
                    o->words.data[used]);
            return MF_EXIT_USAGE;
        }
        o->prompt = o->words.data[used++];
    }
    if (used == n) return MF_EXIT_DONE;
    bool text = p->command->n_words > 1;
    mf_fail(err, MF_ERR_ARGUMENT, "unexpected word '%.80s'%s", o->words.data[used],
            text ? "; a text of several words is quoted" : "");
    return MF_EXIT_USAGE;
}

// The flag's value in the environment, by any of its variables, which don't contradict each other. *value is NULL where there is none.
static int from_environment(const mf_flag *flag, mf_env_fn *env, char where[64], const char **value, mf_error *err) {
    char name[64];
    *value = NULL;
    for (size_t i = 0; mf_flag_variable(flag, i, name); i++) {
        const char *said = env(name);
        bool present = said && (flag->marks & MF_FLAG_PRESENT), word;
        if (present && !mf_word_bool(mf_str_of(said), &word)) said = "1";
        if (!said || !*said) continue;
        if (*value && strcmp(*value, said) != 0) {
            mf_fail(err, MF_ERR_ARGUMENT, "%s and %s are both set, to '%.80s' and '%.80s'; one of them is enough", where,
                    name, *value, said);
            return MF_EXIT_USAGE;
        }
        if (!*value) memcpy(where, name, sizeof name);
        *value = said;
    }
    return MF_EXIT_DONE;
}

// The variables that stand for one of the flag's values.
static int take_switches(parser *p, const mf_flag *flag, mf_env_fn *env, mf_error *err) {
    size_t at = 0;
    const char *value, *name;
    int code = MF_EXIT_DONE;
    while (code == MF_EXIT_DONE && (name = mf_switch_of(flag, &at, &value))) {
        const char *said = env(name);
        bool on = false;
        if (!said || !*said) continue;
        code = set_bool(&on, name, mf_str_of(said), err);
        if (code != MF_EXIT_DONE || !on) continue;
        p->o->given[number_of(flag)] = true;
        code = set_value(p->o, flag, name, value, err);
    }
    return code;
}

// A flag is read from the environment when neither it nor another for the same thing is on the command line.
static int take_variable(parser *p, const mf_flag *flag, mf_env_fn *env, mf_error *err) {
    char name[64];
    const char *value;
    bool *given = &p->o->given[number_of(flag)];
    bool said = *given || p->source[flag->source] || (flag->source == MF_SOURCE_MODEL && p->o->model) ||
                (flag->source == MF_SOURCE_TEXT && p->o->prompt);
    if (said) return MF_EXIT_DONE;
    int code = from_environment(flag, env, name, &value, err);
    if (code != MF_EXIT_DONE) return code;
    if (!value) return take_switches(p, flag, env, err);
    if (flag->source != MF_SOURCE_ANY) p->source[flag->source] = flag;
    *given = true;
    return set_value(p->o, flag, name, value, err);
}

static int take_environment(parser *p, const mf_command *command, mf_env_fn *env, mf_error *err) {
    size_t n;
    const mf_flag *flags = mf_flags(&n);
    for (size_t i = 0; i < n && env; i++) {
        if (!(flags[i].commands & command->bit)) continue;
        int code = take_variable(p, &flags[i], env, err);
        if (code != MF_EXIT_DONE) return code;
    }
    return MF_EXIT_DONE;
}

static int take_words(parser *p, mf_error *err) {
    bool flags_end = false;
    while (p->at < p->argc) {
        const char *word = p->argv[p->at++];
        if (!flags_end && strcmp(word, "--") == 0) {
            flags_end = true;
        } else if (!flags_end && is_flag_word(word)) {
            int code = take_flag(p, word, err);
            if (code != MF_EXIT_DONE) return code;
        } else if (!mf_array_push(&p->o->words, word)) {
            return out_of_memory(err);
        }
    }
    return MF_EXIT_DONE;
}

// With --cnv (or its variable) run is chat; and so it is where there is nothing to answer and a command to take its place.
static int choose_command(parser *p, mf_env_fn *env, mf_error *err) {
    mf_options *o = p->o;
    const mf_command *instead = p->command->without_text;
    int code = MF_EXIT_DONE;
    o->command = p->command;
    if (o->help || o->help_markdown || o->help_man) return code;
    if ((p->commands & MF_CMD_CHAT) && env) code = take_variable(p, find(MF_STR("--conversation"), MF_CMD_ALL), env, err);
    if (code == MF_EXIT_DONE && o->conversation) o->command = mf_command_find("chat");
    if (code == MF_EXIT_DONE) code = check_foreign(p, o->command, err);
    if (code == MF_EXIT_DONE) code = take_environment(p, o->command, env, err);
    size_t n;
    mf_flags(&n);
    if (code != MF_EXIT_DONE || !instead || o->prompt || o->prompt_file || find_foreign(p, instead, 0) < n) return code;
    o->command = instead;
    return take_environment(p, instead, env, err);
}

int mf_flags_parse(const mf_command *command, int argc, char *const *argv, mf_env_fn *env, mf_options *o, mf_error *err) {
    mf_options_init(o);
    unsigned commands = command->bit == MF_CMD_RUN ? MF_CMD_RUN | MF_CMD_CHAT : command->bit;
    parser p = {.command = command, .commands = commands, .argc = argc, .argv = argv, .o = o};
    int code = take_words(&p, err);
    if (code == MF_EXIT_DONE) code = place_words(&p, env, err);
    return code == MF_EXIT_DONE ? choose_command(&p, env, err) : code;
}
