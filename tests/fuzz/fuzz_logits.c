// Saved log-probabilities (minfer perplexity --kl-base): any file is read or refused.
#define _GNU_SOURCE // memfd_create
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/logits_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum {
        N_VOCAB = 5
    };
    char path[32];
    int fd = memfd_create("logits", 0);
    if (fd < 0) abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    bool written = write(fd, data, size) == (ssize_t)size;
    mf_logits_reader r;
    mf_error err = {0};
    float row[N_VOCAB];
    if (!written) abort();
    if (mf_logits_open(&r, path, N_VOCAB, &err))
        for (int32_t c = 0; c < r.header.n_chunk && c < 100; c++)
            for (int32_t i = 0; i < mf_logits_rows(r.header.n_ctx); i++)
                if (!mf_logits_row(&r, c, i, row, &err)) break;
    mf_logits_close(&r);
    close(fd);
    return 0;
}
