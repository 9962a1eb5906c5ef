// Values of a template at run time, with Python's meaning. Everything a rendering makes lives in its arena until it ends; values
// are immutable but for namespaces and iterators.
#ifndef MF_TEXT_JINJA_VALUE_H
#define MF_TEXT_JINJA_VALUE_H

#include "base/arena.h"
#include "base/array.h"
#include "base/error.h"
#include "base/text.h"

typedef enum mf_jtype {
    MF_J_MISSING, // no value at all: an unset slot, an argument that was not given
    MF_J_UNDEFINED,
    MF_J_NONE,
    MF_J_BOOL,
    MF_J_INT,
    MF_J_BIG, // an integer beyond int64
    MF_J_FLOAT,
    MF_J_STR,
    MF_J_LIST,
    MF_J_TUPLE,
    MF_J_DICT,
    MF_J_RANGE,
    MF_J_NAMESPACE,
    MF_J_MACRO,
    MF_J_LOOP,
    MF_J_FUNCTION,
    MF_J_METHOD, // a function with the value it belongs to
    MF_J_ITER,   // a generator: it can be walked once
    MF_J_VIEW,   // dict.keys(), dict.values(), dict.items()
    MF_J_CYCLER,
    MF_J_JOINER,
} mf_jtype;

typedef struct mf_jrun mf_jrun; // one rendering (run.h)

// Text in UTF-8. `marks` are n_marks pairs [from, to) of bytes that came from a conversation, ascending and apart.
typedef struct mf_jstr {
    const char *ptr;
    uint32_t len;
    uint32_t chars; // code points; MF_JSTR_UNCOUNTED until asked for
    const uint32_t *marks;
    uint32_t n_marks;
    uint32_t whole[2]; // the marks of a text that is marked as a whole
    bool markup;       // markupsafe's Markup: what is joined to it gets escaped
} mf_jstr;

#define MF_JSTR_UNCOUNTED UINT32_MAX

typedef struct mf_jval {
    mf_jtype type;
    union {
        bool boolean;
        int64_t integer;
        double real;
        const struct mf_jbig *big;
        mf_jstr *str;
        struct mf_jlist *list; // list, tuple
        struct mf_jdict *dict; // dict, namespace
        struct mf_jundefined *undefined;
        struct mf_jrange *range;
        struct mf_jiter *iter;
        struct mf_jview *view;
        struct mf_jmacro *macro;
        struct mf_jloop *loop;
        const struct mf_jfunction *function;
        struct mf_jmethod *method;
        struct mf_jcycler *cycler;
    };
} mf_jval;

typedef struct mf_jlist {
    mf_jval *items;
    size_t n;
    bool group; // a tuple of groupby: .grouper and .list
} mf_jlist;

typedef struct mf_jentry {
    mf_jval key, value;
    uint64_t hash;
} mf_jentry;

typedef struct mf_jdict { // in order of insertion
    mf_jentry *entries;
    size_t n, cap;
    uint32_t *index; // open addressing, entry + 1; NULL while small
    size_t index_cap;
} mf_jdict;

typedef struct mf_jundefined {
    const char *hint; // the whole message; NULL: made of the name
    const char *of;   // the type whose attribute or element is missing; NULL: a variable
    mf_jval name;
} mf_jundefined;

typedef struct mf_jrange {
    int64_t start, stop, step, n;
} mf_jrange;

typedef enum mf_jview_kind {
    MF_J_KEYS,
    MF_J_VALUES,
    MF_J_ITEMS,
} mf_jview_kind;

typedef struct mf_jview {
    mf_jdict *dict;
    mf_jview_kind kind;
} mf_jview;

typedef struct mf_jmethod {
    mf_jval self;
    const struct mf_jfunction *function;
} mf_jmethod;

typedef struct mf_jcycler { // cycler; joiner: items[0] is the separator, at 0 until it was used
    mf_jlist items;
    size_t at;
} mf_jcycler;

#define MF_JNONE    ((mf_jval){.type = MF_J_NONE})
#define MF_JMISSING ((mf_jval){.type = MF_J_MISSING})

static inline mf_jval mf_jbool(bool value) { return (mf_jval){.type = MF_J_BOOL, .boolean = value}; }
static inline mf_jval mf_jint(int64_t value) { return (mf_jval){.type = MF_J_INT, .integer = value}; }
static inline mf_jval mf_jreal(double value) { return (mf_jval){.type = MF_J_FLOAT, .real = value}; }
static inline mf_jval mf_jtext(mf_jstr *str) { return (mf_jval){.type = MF_J_STR, .str = str}; }

static inline bool mf_jis_str(mf_jval v) { return v.type == MF_J_STR; }
static inline bool mf_jis_int(mf_jval v) { return v.type == MF_J_BOOL || v.type == MF_J_INT || v.type == MF_J_BIG; }
static inline bool mf_jis_number(mf_jval v) { return mf_jis_int(v) || v.type == MF_J_FLOAT; }
static inline bool mf_jis_seq(mf_jval v) { return v.type == MF_J_LIST || v.type == MF_J_TUPLE; }

// Python's name of a value's type, for messages.
const char *mf_jtype_name(mf_jval v);

// Makes values in the rendering's arena. False or NULL with the error set when memory is out.
mf_jstr *mf_jstr_new(mf_jrun *run, mf_str text); // the text is borrowed
bool mf_jstr_value(mf_jrun *run, mf_str text, mf_jval *out);
bool mf_jlist_new(mf_jrun *run, mf_jtype type, size_t n, mf_jval *out); // items are MF_J_MISSING
bool mf_jdict_new(mf_jrun *run, mf_jtype type, mf_jval *out);
bool mf_jundefined_name(mf_jrun *run, mf_jval name, mf_jval *out);           // a variable
bool mf_jundefined_of(mf_jrun *run, mf_jval of, mf_jval name, mf_jval *out); // an attribute or element
bool mf_jundefined_hint(mf_jrun *run, const char *hint, mf_jval *out);       // the hint is borrowed
bool mf_jundefined_fail(mf_jrun *run, mf_jval undefined);                    // raises its message
bool mf_jview_new(mf_jrun *run, mf_jdict *dict, mf_jview_kind kind, mf_jval *out);
bool mf_jpair(mf_jrun *run, mf_jval a, mf_jval b, mf_jval *out); // a tuple of two

// A list that grows.
typedef struct mf_jgrow {
    mf_jval *items;
    size_t n, cap;
} mf_jgrow;
bool mf_jgrow_push(mf_jrun *run, mf_jgrow *grow, mf_jval value);
bool mf_jgrow_list(mf_jrun *run, const mf_jgrow *grow, mf_jtype type, mf_jval *out);

// Dicts. A key that can't be hashed is refused. find gives NULL where there is none; `ok` is false on an error.
bool mf_jdict_set(mf_jrun *run, mf_jdict *dict, mf_jval key, mf_jval value);
const mf_jval *mf_jdict_find(mf_jrun *run, const mf_jdict *dict, mf_jval key, bool *ok);
const mf_jval *mf_jdict_text(mf_jrun *run, const mf_jdict *dict, mf_str key); // by a string key; no error
bool mf_jdict_copy(mf_jrun *run, const mf_jdict *from, mf_jtype type, mf_jval *out);

bool mf_jtruth(mf_jrun *run, mf_jval v, bool *out); // false only for loops over an endless source
bool mf_jlength(mf_jrun *run, mf_jval v, size_t *out, bool *has);
bool mf_jequal(mf_jrun *run, mf_jval a, mf_jval b, bool *out);
bool mf_jless(mf_jrun *run, mf_jval a, mf_jval b, const char *op, bool *out); // a < b; `op` for the message
bool mf_jsame(mf_jval a, mf_jval b);                                          // Python's `is`

// An argument as an index: int64, big ones clamped. False with an error naming `what` for other types.
bool mf_jindex(mf_jrun *run, mf_jval v, const char *what, int64_t *out);

#endif
