// Functions that templates can call: filters, tests, methods and globals, by table.
#ifndef MF_TEXT_JINJA_CALL_H
#define MF_TEXT_JINJA_CALL_H

#include "text/jinja/value.h"

enum {
    MF_J_MAX_PARAMS = 6
};

typedef struct mf_jkeyword {
    mf_jval name, value; // name: text
} mf_jkeyword;

// The arguments of one call.
typedef struct mf_jargs {
    mf_jval self; // of a method
    mf_jval *pos;
    size_t n;
    mf_jkeyword *kw;
    size_t n_kw;
    mf_jval bound[MF_J_MAX_PARAMS]; // by parameter; MF_J_MISSING where not given
} mf_jargs;

// params: the names in order, a space between; NULL: the function takes pos and kw as they are. Names behind '/' can't be given
// by keyword. run NULL: known to Python and not supported here.
typedef struct mf_jfunction {
    const char *name, *params;
    int n_required;
    bool (*run)(mf_jrun *run, mf_jargs *args, mf_jval *out);
} mf_jfunction;

const mf_jfunction *mf_jfilter_find(mf_str name);
const mf_jfunction *mf_jtest_find(mf_str name);
const mf_jfunction *mf_jglobal_find(mf_str name);
const mf_jfunction *mf_jmethod_find(mf_jtype type, mf_str name);
const mf_jfunction *mf_jfunction_in(const mf_jfunction *table, mf_str name); // NULL: there is none

const mf_jfunction *mf_jmethods_of(mf_jtype type); // a table; NULL where the type has none

// The tables. Ended by a NULL name.
extern const mf_jfunction mf_jtext_filters[], mf_jsequence_filters[], mf_jvalue_filters[], mf_jtests[], mf_jglobals[];

// The place of a parameter that can be given by this name; -1: there is none.
int mf_jparameter(const char *params, mf_str name);

// Whether the sandbox hides methods of that name, which lists and dicts have in Python: calling one is Python's error.
bool mf_jhidden_method(mf_str name);
bool mf_jloop_method(mf_str name); // of a loop: iter.c

// A filter by its name as a value, for map(); a test for select().
bool mf_jcall_named(mf_jrun *run, bool filter, mf_jval name, mf_jval value, const mf_jargs *rest, size_t skip, mf_jval *out);

// Binds the arguments and calls. `what` is "filter", "test" or "function", for messages.
bool mf_jfunction_call(mf_jrun *run, const mf_jfunction *f, mf_jargs *args, mf_jval *out);

// Calls any value. False with Python's error where it can't be called.
bool mf_jcall_value(mf_jrun *run, mf_jval callee, mf_jargs *args, mf_jval *out);

// environment.getattr and environment.getitem: the attribute or element, else the other, else an Undefined.
bool mf_jgetattr(mf_jrun *run, mf_jval v, mf_jval name, mf_jval *out);
bool mf_jgetitem(mf_jrun *run, mf_jval v, mf_jval key, mf_jval *out);
// v[start:stop:step]; bounds are MF_J_NONE or integers.
bool mf_jslice(mf_jrun *run, mf_jval v, const mf_jval bounds[3], mf_jval *out);

bool mf_jcontains(mf_jrun *run, mf_jval container, mf_jval item, bool *out);
// An operator of MF_N_BINARY on any values; one of MF_N_COMPARE.
bool mf_jbinary(mf_jrun *run, int op, mf_jval a, mf_jval b, mf_jval *out);
bool mf_jcompare(mf_jrun *run, int op, mf_jval a, mf_jval b, bool *out);

// Arguments with a default.
bool mf_jarg_text(mf_jrun *run, mf_jval v, const char *what, const mf_jstr **out); // refuses other types
bool mf_jarg_int(mf_jrun *run, mf_jval v, const char *what, int64_t otherwise, int64_t *out);
bool mf_jarg_true(mf_jrun *run, mf_jval v, bool otherwise, bool *out);

// `text % values` and text.format() (format.c)
bool mf_jpercent(mf_jrun *run, const mf_jstr *format, mf_jval values, mf_jval *out);
bool mf_jformat_method(mf_jrun *run, const mf_jstr *format, const mf_jargs *args, mf_jval *out);

#endif
