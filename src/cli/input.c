#include "cli/input.h"

#include <unistd.h>

#include "base/file.h"

#define INPUT_LIMIT ((size_t)256 << 20)

int mf_input_text(const mf_options *o, const char *what, mf_buf *storage, mf_str *text, mf_error *err) {
    if (o->prompt) {
        *text = mf_str_of(o->prompt);
        return MF_EXIT_DONE;
    }
    const char *path = o->prompt_file ? o->prompt_file : "-";
    if (!o->prompt_file && isatty(STDIN_FILENO)) {
        mf_fail(err, MF_ERR_ARGUMENT, "no %s: give it as a word, by -p TEXT or -f FILE, or on standard input", what);
        return MF_EXIT_USAGE;
    }
    if (!mf_file_read(path, INPUT_LIMIT, storage, err)) return MF_EXIT_REFUSED;
    *text = (mf_str){storage->data, storage->len};
    return MF_EXIT_DONE;
}

mf_str mf_input_chop(mf_str text) {
    if (!text.len || text.ptr[text.len - 1] != '\n') return text;
    text.len--;
    if (text.len && text.ptr[text.len - 1] == '\r') text.len--;
    return text;
}
