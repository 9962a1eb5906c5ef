// One rendering: its memory, its bounds, its error.
#ifndef MF_TEXT_JINJA_RUN_H
#define MF_TEXT_JINJA_RUN_H

#include "base/map.h"
#include "text/jinja/jinja.h"
#include "text/jinja/value.h"

struct mf_jrun {
    const mf_jinja *t;
    mf_arena arena;
    mf_error *err;
    uint64_t steps;         // left
    int depth;              // of nested evaluation
    mf_hash_key key;        // of dict hashes
    int64_t now;            // seconds since 1970; below 0: the clock's
    const mf_jval *globals; // by name: the variables of this rendering
    mf_jval captured;       // the text that the filter of a block is applied to
    bool located;           // the error says where
    bool raised;            // it came from raise_exception
};

enum {
    MF_JINJA_DEPTH = 1500,        // nested evaluations
    MF_JINJA_STEPS = 20000000,    // nodes evaluated, and bytes looked at by the 32
    MF_JINJA_MEMORY = 256 << 20,  // bytes of all values of a rendering
    MF_JINJA_TEXT_MAX = 64 << 20, // bytes of a text, the output among them
    MF_JINJA_RANGE_MAX = 100000,  // the sandbox's MAX_RANGE
    MF_JINJA_INT_DIGITS = 4300,   // Python prints no longer integers
};

// Fills the run's error (the first one stays) and returns false.
bool mf_jfail(mf_jrun *run, mf_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

// The usual code: what Python would raise.
#define mf_jraise(run, ...) mf_jfail(run, MF_ERR_ARGUMENT, __VA_ARGS__)

void *mf_jalloc(mf_jrun *run, size_t n, size_t size); // NULL with the error set

// Takes steps for work in proportion to n bytes or items.
bool mf_jcharge(mf_jrun *run, size_t n);

bool mf_jenter(mf_jrun *run); // one level deeper; false past the bound
static inline void mf_jleave(mf_jrun *run) { run->depth--; }

#ifdef __clang_analyzer__ // it can't see into the function that its result is always false
#define mf_jfail(...) (mf_jfail(__VA_ARGS__), false)
#endif

#endif
