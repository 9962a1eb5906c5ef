// The flag parser on any words: the first byte chooses the subcommand and whether there is an environment, NUL or a line end
// separates words.
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cli/flags.h"

#define MAX_WORDS 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Every variable has the value of the last word.
static _Thread_local char *last_word;
static char *environment(const char *name) {
    (void)name;
    return last_word;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    mf_log_set_level(MF_LOG_ERROR);
    if (size < 1 || size > 4096) return 0;
    size_t n_commands;
    const mf_command *command = mf_commands(&n_commands) + data[0] % 16 % n_commands;
    char *text = mf_copy_text((const char *)data + 1, size - 1), *words[MAX_WORDS];
    if (!text) return 0;
    int n = 0;
    for (size_t i = 0; i < size - 1; i++)
        if (text[i] == '\n') text[i] = 0;
    for (char *p = text; p < text + size - 1 && n < MAX_WORDS; p += strlen(p) + 1) words[n++] = p;
    last_word = n ? words[n - 1] : NULL;
    mf_options o;
    mf_error err = {0};
    int code = mf_flags_parse(command, n, words, data[0] & 128 ? environment : NULL, &o, &err);
    if ((code == MF_EXIT_DONE) == (err.text[0] != 0)) abort(); // a refusal has its sentence, and only a refusal
    mf_options_free(&o);
    free(text);
    return 0;
}
