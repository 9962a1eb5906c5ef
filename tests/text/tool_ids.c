// ids [--no-nfc] MODEL [PRE] < TEXTS: the ids of many texts with one load of the vocabulary, without BOS and EOS, for e2e_vocab_files.py. TEXTS is,
// for each text, its length in bytes (decimal), a line end and the bytes. Two lines a text: with control tokens parsed, then not.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"

static bool print_ids(const mf_tokenizer *t, mf_str text, unsigned flags, mf_error *err) {
    mf_token_array ids = {0};
    const bool ok = mf_tokenizer_encode(t, text, flags, &ids, err);
    for (size_t i = 0; ok && i < ids.len; i++) printf(i ? " %d" : "%d", ids.data[i]);
    putchar('\n');
    free(ids.data);
    return ok;
}

static bool each_text(const mf_tokenizer *t, mf_error *err) {
    char line[32];
    while (fgets(line, sizeof line, stdin)) {
        const size_t n = strtoul(line, NULL, 10);
        char *text = malloc(n + 1);
        if (!text || fread(text, 1, n, stdin) != n) {
            free(text);
            return mf_fail(err, MF_ERR_ARGUMENT, "a text of %zu bytes is cut", n);
        }
        const bool ok =
            print_ids(t, (mf_str){text, n}, MF_ENCODE_PARSE_CONTROL, err) && print_ids(t, (mf_str){text, n}, 0, err);
        free(text);
        if (!ok) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    const bool no_nfc = argc > 1 && strcmp(argv[1], "--no-nfc") == 0;
    argv += no_nfc, argc -= no_nfc;
    if (argc < 2) return fputs("usage: ids [--no-nfc] MODEL [PRE] < TEXTS\n", stderr), 2;
    mf_error err = {0};
    const mf_tokenizer_options opts = {.pre = argc > 2 ? argv[2] : NULL, .no_nfc = no_nfc};
    mf_gguf *file = mf_gguf_open(argv[1], &err);
    mf_tokenizer *t = file ? mf_tokenizer_new(file, &opts, &err) : NULL;
    const bool ok = t && each_text(t, &err);
    if (!ok) fprintf(stderr, "ids: %s\n", err.text);
    mf_tokenizer_free(t);
    mf_gguf_close(file);
    return ok ? 0 : 1;
}
