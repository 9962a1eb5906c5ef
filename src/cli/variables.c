// Environment variables: every long name of a flag is one, and one that begins like them and means nothing is named.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/flags.h"

#define PREFIX "MINFER_"

// Variables with a yes or a no that stand for a flag's value, or that are read where they count (flag NULL).
static const struct {
    const char *name, *flag, *value;
} switches[] = {
    {"MINFER_NO_AVX512", NULL, NULL},
    {"MINFER_NO_AVX2", NULL, NULL},
    {"MINFER_NO_NEON", NULL, NULL},
    {"MINFER_NO_PREFIX_REUSE", "--no-prefix-cache", "1"},
    {"MINFER_NO_FUSE_QKV", "--no-fuse", "qkv"},
    {"MINFER_NO_FUSE_FFN", "--no-fuse", "ffn"},
    {"MINFER_NO_FUSE_NORM", "--no-fuse", "norm"},
    {"MINFER_NO_FUSE_ADD", "--no-fuse", "add"},
};

#define N_SWITCHES (sizeof switches / sizeof switches[0])

// One sequence or many, which is no number of rows as --batch is.
static const char batch_switch[] = "MINFER_BATCH";

// What the build and the tests read.
static const char others[] =
    "MINFER_GOLDEN_WRITE MINFER_ORACLE_PYTHON MINFER_KILL_ROUNDS MINFER_KILL_SEED MINFER_SANITIZE MINFER_WERROR "
    "MINFER_FUZZ MINFER_CORE_ONLY";
static const char tests[] = "MINFER_TEST_";

bool mf_word_bool(mf_str word, bool *value) {
    static const char *const yes[] = {"1", "true", "yes", "on"}, *const no[] = {"0", "false", "no", "off"};
    for (size_t i = 0; i < 4; i++) {
        if (mf_str_is(word, yes[i])) return *value = true, true;
        if (mf_str_is(word, no[i])) return *value = false, true;
    }
    return false;
}

bool mf_switch_on(const char *name) {
    const char *value = getenv(name);
    bool on = false;
    return value && mf_word_bool(mf_str_of(value), &on) && on;
}

// "--ctx-size" as "MINFER_CTX_SIZE".
static void variable_of(mf_str flag, char out[64]) {
    snprintf(out, 64, PREFIX "%.*s", (int)(flag.len < 50 ? flag.len - 2 : 48), flag.ptr + 2);
    for (char *p = out; *p; p++) *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
}

bool mf_flag_variable(const mf_flag *flag, size_t i, char out[64]) {
    mf_flag_env(flag, out);
    if (i == 0 || !*out) return *out != 0;
    char first[64];
    memcpy(first, out, sizeof first);
    for (const char *p = flag->names; *p;) {
        mf_str name = {p, strcspn(p, " ")};
        p += name.len + (p[name.len] == ' ');
        if (name.len < 4 || name.ptr[1] != '-') continue;
        variable_of(name, out);
        if (strcmp(out, first) != 0 && strcmp(out, batch_switch) != 0 && --i == 0) return true;
    }
    return false;
}

const char *mf_switch_of(const mf_flag *flag, size_t *i, const char **value) {
    char name[64];
    mf_flag_name(flag, name);
    while (*i < N_SWITCHES) {
        size_t at = (*i)++;
        if (!switches[at].flag || strcmp(switches[at].flag, name) != 0) continue;
        *value = switches[at].value;
        return switches[at].name;
    }
    return NULL;
}

// ---- What begins like a variable of ours

static bool is_switch(const char *name) {
    for (size_t i = 0; i < N_SWITCHES; i++)
        if (strcmp(switches[i].name, name) == 0) return true;
    return false;
}

static void come_nearer(const char *name, const char *known, size_t *best, char near[64]) {
    size_t distance = mf_edit_distance(mf_str_of(name), mf_str_of(known));
    if (distance >= *best || distance * 3 > strlen(known) - strlen(PREFIX)) return;
    *best = distance;
    snprintf(near, 64, "%s", known);
}

// Whether a flag has this variable; else `near` is the variable that was probably meant.
static bool is_known(const char *name, char near[64]) {
    size_t n, best = 4;
    const mf_flag *flags = mf_flags(&n);
    char known[64];
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; mf_flag_variable(&flags[i], k, known); k++) {
            if (strcmp(known, name) == 0) return true;
            come_nearer(name, known, &best, near);
        }
    for (size_t i = 0; i < N_SWITCHES; i++) come_nearer(name, switches[i].name, &best, near);
    return strncmp(name, tests, strlen(tests)) == 0 || mf_names_have(others, mf_str_of(name));
}

// The flag of llama.cpp that would have this variable.
static const mf_llama_flag *llama_flag(const char *name) {
    char flag[64];
    snprintf(flag, sizeof flag, "--%s", name + strlen(PREFIX));
    for (char *p = flag; *p; p++) *p = *p == '_' ? '-' : (char)tolower((unsigned char)*p);
    return mf_llama_flag_find(mf_str_of(flag));
}

static int check(const char *name, const char *value, mf_error *err) {
    bool on = true, is_word = mf_word_bool(mf_str_of(value), &on);
    char near[64] = "";
    if (strcmp(name, batch_switch) == 0) {
        if (strcmp(value, "0") == 0 || strcmp(value, "1") == 0) return MF_EXIT_DONE;
        mf_fail(err, MF_ERR_ARGUMENT,
                "MINFER_BATCH: '%.80s' is not 0 (one sequence) or 1 (many); --batch is MINFER_BATCH_SIZE", value);
        return MF_EXIT_USAGE;
    }
    if (is_switch(name)) {
        if (is_word) return MF_EXIT_DONE;
        mf_fail(err, MF_ERR_ARGUMENT, "%s: '%.80s' is not " MF_BOOL_WORDS, name, value);
        return MF_EXIT_USAGE;
    }
    if (is_known(name, near)) return MF_EXIT_DONE;
    const mf_llama_flag *llama = llama_flag(name);
    if (llama && llama->refused && on) {
        mf_fail(err, MF_ERR_UNSUPPORTED, "%s: %s", name, llama->advice);
        return MF_EXIT_USAGE;
    }
    if (!llama)
        mf_log(MF_LOG_WARNING, "the variable %.80s is unknown and has no effect%s%s%s", name, *near ? "; did you mean " : "",
               near, *near ? "?" : "");
    else if (llama->advice && !llama->refused)
        mf_log(MF_LOG_NOTICE, "%s has no effect: %s", name, llama->advice);
    return MF_EXIT_DONE;
}

int mf_variables_check(char *const *environment, mf_error *err) {
    int code = MF_EXIT_DONE;
    for (char *const *entry = environment; *entry && code == MF_EXIT_DONE; entry++) {
        const char *equals = strchr(*entry, '=');
        if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0 || !equals || !equals[1]) continue;
        mf_buf name = {0};
        mf_buf_add(&name, *entry, (size_t)(equals - *entry));
        code =
            name.failed ? (mf_fail_memory(err, 0, "the environment"), MF_EXIT_REFUSED) : check(name.data, equals + 1, err);
        free(name.data);
    }
    return code;
}
