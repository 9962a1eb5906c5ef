// Shorthand for tests of the public interface.
#ifndef TESTS_API_FIXTURE_H
#define TESTS_API_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <minfer.h>

#define TINY(name) (MF_FIXTURES "/tiny/" name ".gguf")

// A call that must be refused with a code and a sentence that has `part`. The call uses `error`.
#define refused(call, want, part)                                                \
    do {                                                                         \
        minfer_error error = {MINFER_OK, ""};                                    \
        assert_false(call);                                                      \
        if (error.code != (want) || !strstr(error.text, (part)))                 \
            fail_msg("%s: code %d, \"%s\"", #call, (int)error.code, error.text); \
    } while (0)

// A call that must succeed and leave the error alone.
#define good(call)                                                                        \
    do {                                                                                  \
        minfer_error error = {MINFER_OK, "untouched"};                                    \
        if (!(call)) fail_msg("%s: code %d, \"%s\"", #call, (int)error.code, error.text); \
        assert_int_equal(error.code, MINFER_OK);                                          \
        assert_string_equal(error.text, "untouched");                                     \
    } while (0)

static inline minfer_model *fixture_model(const char *path) {
    minfer_model_options o;
    minfer_model_options_init(&o, sizeof o);
    o.n_threads = 2;
    minfer_model *m = NULL;
    good((m = minfer_model_open(path, &o, &error)) != NULL);
    return m;
}

static inline minfer_engine *fixture_engine(minfer_model *m, int32_t max_sequences, int32_t n_ctx) {
    minfer_engine_options o;
    minfer_engine_options_init(&o, sizeof o);
    o.max_sequences = max_sequences;
    o.n_ctx = n_ctx;
    minfer_engine *e = NULL;
    good((e = minfer_engine_new(m, &o, &error)) != NULL);
    return e;
}

#endif
