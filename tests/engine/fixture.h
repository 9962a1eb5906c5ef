// A model ready to run, for tests and tools: opened, prepared on a CPU row.
#ifndef TESTS_ENGINE_FIXTURE_H
#define TESTS_ENGINE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include "backend/backends.h"
#include "engine/engine.h"

typedef struct fixture {
    mf_gguf *file;
    mf_device_list devices;
    mf_model *model;
} fixture;

static inline void fixture_close(fixture *f) {
    mf_model_free(f->model);
    mf_device_list_close(&f->devices);
    mf_gguf_close(f->file);
    *f = (fixture){0};
}

// file: taken over, also on failure; NULL fails with the err that is there. row: a kernel row by name (NULL: the best). False with err.
static inline bool fixture_of(fixture *f, mf_gguf *file, const char *row, int n_threads, mf_error *err) {
    *f = (fixture){.file = file};
    size_t n;
    const mf_device_entry *known = mf_backends(&n);
    mf_device_options options = {n_threads, row};
    if (file && (f->model = mf_model_new(file, err)) && mf_device_list_open(&f->devices, known, n, NULL, &options, err) &&
        mf_model_prepare(f->model, f->devices.device[0], NULL, NULL, err))
        return true;
    fixture_close(f);
    return false;
}

static inline bool fixture_open(fixture *f, const char *path, const char *row, int n_threads, mf_error *err) {
    return fixture_of(f, mf_gguf_open(path, err), row, n_threads, err);
}

// The token ids of a text file of decimal numbers. Returns how many, at most `most`; -1 when it can't be read.
static inline int32_t fixture_ids(const char *path, int32_t *ids, int32_t most) {
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    int32_t n = 0;
    char word[32];
    while (n < most && fscanf(file, "%31s", word) == 1) ids[n++] = (int32_t)strtol(word, NULL, 10);
    fclose(file);
    return n;
}

#endif
