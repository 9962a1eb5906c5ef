// Errors: a code and one sentence that names what was refused and the value.
#ifndef MF_BASE_ERROR_H
#define MF_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

typedef enum mf_code {
    MF_OK,
    MF_ERR_ARGUMENT,    // a caller's value is outside what the function takes
    MF_ERR_FORMAT,      // a file or text breaks its format
    MF_ERR_UNSUPPORTED, // well-formed, but not something minfer can do
    MF_ERR_MEMORY,      // an allocation failed, or a plan does not fit
    MF_ERR_IO,          // the operating system refused a read, write or map
    MF_ERR_LIMIT,       // a bound (context, size, depth) would be passed
    MF_ERR_NUMERIC,     // an activation or logit is not finite
    MF_ERR_CANCELLED,   // the caller asked to stop
    MF_ERR_INTERNAL,    // a broken invariant; always a defect of minfer
} mf_code;

typedef struct mf_error {
    mf_code code;
    char text[496]; // one sentence without a final period or newline
} mf_error;

// Fills `err` (which may be NULL) and returns false, so that a refusal is one statement:
//     return mf_fail(err, MF_ERR_FORMAT, "tensor '%s': %u dimensions, at most 4", name, n);
// Text from outside the program that goes into the sentence is the caller's to shorten; control characters are
// replaced by '?'.
bool mf_fail(mf_error *err, mf_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

// Puts "prefix: " before the sentence that is there, cutting at the end if it does not fit. Returns false.
bool mf_fail_prefix(mf_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The refusal of an allocation of `bytes` for `what`. Returns false.
bool mf_fail_memory(mf_error *err, size_t bytes, const char *what);

#ifdef __clang_analyzer__ // it can't see into the functions that their result is always false
#define mf_fail(...)        (mf_fail(__VA_ARGS__), false)
#define mf_fail_prefix(...) (mf_fail_prefix(__VA_ARGS__), false)
#define mf_fail_memory(...) (mf_fail_memory(__VA_ARGS__), false)
#endif

#endif
