#include "cli/input.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"

#define INPUT_LIMIT ((size_t)256 << 20)
#define PATIENCE_MS 1000 // without a byte, before it is said what is waited for

// What standard input is: a set of these.
enum {
    INPUT_DATA = 1,  // a file or a pipe
    INPUT_SOCKET = 2 // which a program that starts others may leave open for ever
};

static int standard_input(void) {
    struct stat st;
    if (fstat(STDIN_FILENO, &st) != 0) return 0;
    return S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) ? INPUT_DATA : S_ISSOCK(st.st_mode) ? INPUT_SOCKET : 0;
}

bool mf_input_read(const char *path, size_t limit, const char *what, mf_buf *out, mf_error *err) {
    struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
    bool standard = strcmp(path, "-") == 0;
    if (standard && !isatty(STDIN_FILENO) && poll(&wait, 1, PATIENCE_MS) == 0)
        mf_log(MF_LOG_NOTICE, "waiting for %s on standard input (with </dev/null there is none)", what);
    return mf_file_read_text(path, limit, out, err);
}

int mf_input_text(const mf_options *o, const char *what, mf_buf *storage, mf_str *text, mf_error *err) {
    if (o->prompt) {
        *text = mf_str_of(o->prompt);
        return MF_EXIT_DONE;
    }
    const char *path = o->prompt_file ? o->prompt_file : "-";
    if (!o->prompt_file && standard_input() == 0) {
        mf_fail(err, MF_ERR_ARGUMENT, "no %s: give it as a word, by -p TEXT or -f FILE, or on standard input", what);
        return MF_EXIT_USAGE;
    }
    if (!mf_input_read(path, INPUT_LIMIT, what, storage, err)) return MF_EXIT_REFUSED;
    *text = (mf_str){storage->data, storage->len};
    return MF_EXIT_DONE;
}

// Refuses a byte on standard input, which would be a second text beside -f FILE.
static int expect_nothing(const char *file, mf_error *err) {
    mf_buf second = {0};
    mf_error why = {0};
    bool read = mf_input_read("-", 0, "the end of what may be a second text", &second, &why);
    free(second.data);
    if (read) return MF_EXIT_DONE;
    if (why.code != MF_ERR_LIMIT) return *err = why, MF_EXIT_REFUSED;
    mf_fail(err, MF_ERR_ARGUMENT,
            "-f %.200s and standard input both have a text; one of them is enough (</dev/null leaves "
            "standard input out)",
            file);
    return MF_EXIT_USAGE;
}

int mf_input_prompt(const mf_options *o, mf_buf *storage, mf_str *text, mf_error *err) {
    int code = mf_input_text(o, "prompt", storage, text, err);
    bool from_input = !o->prompt && (!o->prompt_file || strcmp(o->prompt_file, "-") == 0);
    if (code != MF_EXIT_DONE) return code;
    if (!o->prompt) *text = mf_input_chop(*text);
    if (from_input || standard_input() != INPUT_DATA) return MF_EXIT_DONE;
    if (o->prompt_file) return expect_nothing(o->prompt_file, err);
    mf_buf piped = {0};
    if (!mf_input_read("-", INPUT_LIMIT, "a text behind the prompt", &piped, err)) return MF_EXIT_REFUSED;
    mf_str behind = mf_input_chop((mf_str){piped.data, piped.len});
    if (behind.len) {
        if (text->len) mf_buf_printf(storage, "%s\n\n", text->ptr);
        mf_buf_str(storage, behind);
        *text = (mf_str){storage->data, storage->len};
    }
    free(piped.data);
    return !storage->failed || mf_fail_memory(err, behind.len, "the prompt") ? MF_EXIT_DONE : MF_EXIT_REFUSED;
}

mf_str mf_input_chop(mf_str text) {
    if (!text.len || text.ptr[text.len - 1] != '\n') return text;
    text.len--;
    if (text.len && text.ptr[text.len - 1] == '\r') text.len--;
    return text;
}
