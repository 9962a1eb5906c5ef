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
    uint64_t steps;          // of work that may be done
    uint64_t work;           // steps left
    bool (*stop)(void *arg); // whether to end now; NULL: never
    void *stop_arg;
    int depth;              // of nested evaluation
    mf_hash_key key;        // of dict hashes
    int64_t now;            // seconds since 1970; below 0: the clock's
    const mf_jval *globals; // by name: the variables of this rendering
    mf_jval captured;       // the text that the filter of a block is applied to
    bool located;           // the error says where
    bool raised;            // it came from raise_exception
};

enum {
    MF_JINJA_DEPTH = 256,         // nested evaluations: some 90 kB of stack, so that threads of 128 kB are enough
    MF_JINJA_STEPS = 200000000,   // of work: see mf_jpay
    MF_JINJA_MEMORY = 256 << 20,  // bytes of all values of a rendering
    MF_JINJA_TEXT_MAX = 64 << 20, // bytes of a text, the output among them
    MF_JINJA_MARKS_MAX = 1 << 20, // marked pieces of a text
    MF_JINJA_RANGE_MAX = 100000,  // the sandbox's MAX_RANGE
    MF_JINJA_INT_DIGITS = 4300,   // Python prints no longer integers
};

// Fills the run's error (the first one stays) and returns false.
bool mf_jfail(mf_jrun *run, mf_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));

// The usual code: what Python would raise.
#define mf_jraise(run, ...) mf_jfail(run, MF_ERR_ARGUMENT, __VA_ARGS__)

void *mf_jalloc(mf_jrun *run, size_t n, size_t size); // NULL with the error set

// Pays for work, in steps of about 5 nanoseconds: an item visited or a character decoded is one. Whoever loops over what a
// template or a conversation can make long pays for it. False with the error set where the rendering has no steps left, or has
// been stopped.
bool mf_jpay(mf_jrun *run, uint64_t steps);

// For n bytes that are copied, compared or counted.
static inline bool mf_jpay_bytes(mf_jrun *run, size_t n) { return mf_jpay(run, n / 16 + 1); }

enum {                     // what the parts of a rendering cost, in steps
    MF_JCOST_NODE = 8,     // a node of the template
    MF_JCOST_CALL = 16,    // binding arguments
    MF_JCOST_LOOKUP = 32,  // a name in the tables of functions
    MF_JCOST_SEARCH = 16,  // beginning one
    MF_JCOST_NUMBER = 256, // a number to text or back
    MF_JCOST_PRINT = 16,   // a printf of an integer
};

bool mf_jenter(mf_jrun *run); // one level deeper; false past the bound
static inline void mf_jleave(mf_jrun *run) { run->depth--; }

#ifdef __clang_analyzer__ // it can't see into the function that its result is always false
#define mf_jfail(...) (mf_jfail(__VA_ARGS__), false)
#endif

#endif
