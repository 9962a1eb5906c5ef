// Walking over values, as Python's iterators do: lazily.
#ifndef MF_TEXT_JINJA_ITER_H
#define MF_TEXT_JINJA_ITER_H

#include "text/jinja/string.h"
#include "text/jinja/value.h"

typedef struct mf_jiter mf_jiter;
struct mf_jiter {
    // Gives the next value, or *got false at the end. False with the error set.
    bool (*next)(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got);
    mf_jval source;
    mf_jiter *inner; // of a generator
    size_t at;       // items or bytes
    void *state;     // the generator's own
};

// An iterator over a value (a generator is its own). NULL with the error "… is not iterable".
mf_jiter *mf_jiter_of(mf_jrun *run, mf_jval v);
bool mf_jiterable(mf_jval v);
bool mf_jnext(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got);

// A generator value over `source` with the given step.
bool mf_jgenerator(mf_jrun *run, bool (*next)(mf_jrun *, mf_jiter *, mf_jval *, bool *), mf_jval source, void *state,
                   mf_jval *out);

// list(v) appended.
bool mf_jcollect(mf_jrun *run, mf_jval v, mf_jgrow *out);

// Sorts items by keys (NULL: by themselves), stably; both arrays are reordered.
bool mf_jsort(mf_jrun *run, mf_jval *items, mf_jval *keys, size_t n, bool reverse);

// ---- Loops

typedef struct mf_jloop {
    mf_jiter *iter;
    mf_jval iterable;
    mf_jval after, before, current; // MF_J_MISSING where there is none
    mf_jval last_changed;
    int64_t index0;
    int64_t depth0;
    bool counted;
    size_t length;
    const struct mf_jnode *recurse; // the recursive loop, or NULL
    struct mf_jvars *vars;          // where it was defined
} mf_jloop;

bool mf_jloop_next(mf_jrun *run, mf_jloop *loop, mf_jval *out, bool *got);
bool mf_jloop_length(mf_jrun *run, mf_jloop *loop, size_t *out);
bool mf_jloop_attr(mf_jrun *run, mf_jval loop, mf_str name, mf_jval *out, bool *has);
bool mf_jloop_repr(mf_jbuild *b, mf_jloop *loop);

// ---- Macros (eval.c)

typedef struct mf_jmacro {
    const struct mf_jnode *node;
    struct mf_jvars *vars; // where it was defined
    mf_str name;           // empty: a call block
} mf_jmacro;

bool mf_jmacro_repr(mf_jbuild *b, const mf_jmacro *macro);
bool mf_jmacro_attr(mf_jrun *run, const mf_jmacro *macro, mf_str name, mf_jval *out, bool *has);

#endif
