// A compiled template: the tree the parser makes, with names resolved to slots (scope.c).
#ifndef MF_TEXT_JINJA_AST_H
#define MF_TEXT_JINJA_AST_H

#include "base/map.h"
#include "text/jinja/jinja.h"
#include "text/jinja/number.h"
#include "text/jinja/value.h"

typedef enum mf_jkind {
    // Expressions: a, b, c and list as said
    MF_N_CONST,   // value
    MF_N_NAME,    // name
    MF_N_NSREF,   // name.value, only as a target
    MF_N_TUPLE,   // list
    MF_N_LIST,    // list
    MF_N_DICT,    // list: key, value, key, value …
    MF_N_COND,    // a if …: test, b: value, c: the other or NULL
    MF_N_OR,      // a, b
    MF_N_AND,     // a, b
    MF_N_NOT,     // a
    MF_N_NEG,     // a
    MF_N_POS,     // a
    MF_N_BINARY,  // a op b
    MF_N_CONCAT,  // list
    MF_N_COMPARE, // a, list: operands
    MF_N_OPERAND, // op, a
    MF_N_GETATTR, // a.value
    MF_N_GETITEM, // a[b]
    MF_N_SLICE,   // a, b, c: start, stop, step, or NULL
    MF_N_CALL,    // a: callee; list: arguments, more: keywords, b: *arguments, c: **keywords
    MF_N_FILTER,  // a: value (NULL in a block), function, the rest as CALL
    MF_N_TEST,    // as FILTER
    MF_N_KEYWORD, // value: name, a
    // Statements
    MF_N_DATA,        // value
    MF_N_OUTPUT,      // list
    MF_N_FOR,         // a: target, b: iterable, c: test; list: body, more: else
    MF_N_IF,          // a: test; list: body, more: elifs (IF), last: else
    MF_N_SET,         // a: target, b: value
    MF_N_SETBLOCK,    // a: target, b: filter or NULL; list: body
    MF_N_MACRO,       // name; list: parameters (NAME), more: defaults, last: body
    MF_N_CALLBLOCK,   // a: the call, NULL for the generation block; list, more, last as MACRO
    MF_N_FILTERBLOCK, // a: filter; list: body
    MF_N_WITH,        // list: targets, more: values, last: body
    MF_N_BREAK,
    MF_N_CONTINUE,
} mf_jkind;

typedef enum mf_jcompare_op {
    MF_J_EQ,
    MF_J_NE,
    MF_J_LT,
    MF_J_LE,
    MF_J_GT,
    MF_J_GE,
    MF_J_IN,
    MF_J_NOT_IN,
} mf_jcompare_op;

typedef struct mf_jnode mf_jnode;

typedef struct mf_jnodes {
    mf_jnode **items;
    size_t n;
} mf_jnodes;

// Where a variable lives: `hops` functions outwards, then a slot of that function's variables.
typedef struct mf_jslot {
    uint16_t hops;
    uint32_t slot;
} mf_jslot;

// What entering a scope does to a variable of it.
typedef struct mf_jload {
    enum {
        MF_LOAD_UNSET,   // no value
        MF_LOAD_ALIAS,   // the value of an outer variable
        MF_LOAD_RESOLVE, // the rendering's variable `name`
    } how;
    uint32_t slot, name;
    mf_jslot from;
} mf_jload;

typedef struct mf_jscope {
    mf_jload *loads;
    size_t n;
} mf_jscope;

// What has variables of its own: the template, a macro, a recursive loop, the test of a loop.
typedef struct mf_jfunc {
    uint32_t n_slots;
    uint32_t depth; // functions around it
} mf_jfunc;

struct mf_jnode {
    mf_jkind kind;
    uint8_t op;
    bool store;              // NAME: a target
    bool recursive;          // FOR
    uint32_t line, from, to; // in the source
    uint32_t height;         // of the tree below, itself included
    uint32_t name_at;        // FILTER, TEST: where its name stands, which is its value
    uint32_t name;           // NAME, NSREF, MACRO: index into names
    uint32_t test_slot;      // NAME: as a target of a loop, in the loop's test
    mf_jslot slot;           // NAME, NSREF, MACRO
    mf_jval value;
    mf_jnode *a, *b, *c;
    mf_jnodes list, more, last;
    const struct mf_jfunction *function; // FILTER, TEST: NULL where there is none of that name
    struct mf_jnode_scopes *scopes;      // FOR, SETBLOCK, MACRO, CALLBLOCK, FILTERBLOCK, WITH
};

// What scope.c adds to the statements that open scopes.
typedef struct mf_jnode_scopes {
    mf_jscope body, other, test;  // other: the else branch of a loop
    mf_jfunc *func, *test_func;   // MACRO, CALLBLOCK, recursive FOR; a FOR's test
    bool extended;                // FOR: has `loop`
    uint32_t loop_slot;           // FOR
    bool caller, kwargs, varargs; // MACRO, CALLBLOCK: the body asks for them
    uint32_t caller_slot, kwargs_slot, varargs_slot;
    mf_jslot call_slot;
} mf_jnode_scopes;

struct mf_jinja {
    mf_arena arena;
    mf_str source; // with newlines only
    mf_jnodes body;
    mf_jfunc root;
    mf_jscope root_scope;
    mf_map name_ids;
    mf_array(mf_str) names;
    const char *missing;       // the first filter or test that there is not and a conversation may reach; NULL: none
    mf_array(mf_jval) globals; // by name: the functions a template may call, else MF_J_MISSING
};

// Calls fn for each child, in jinja2's order, until it gives false. Whether it never did.
bool mf_jeach_child(const mf_jnode *node, bool (*fn)(mf_jnode *child, void *arg), void *arg);

// parse.c
bool mf_jparse(mf_jinja *t, mf_error *err);
// scope.c
bool mf_jresolve(mf_jinja *t, mf_error *err);
// check.c
bool mf_jcheck(mf_jinja *t, mf_error *err);

// "line L, column C: …" for a place of the source. Returns false.
bool mf_jrefuse(const mf_jinja *t, size_t offset, mf_code code, mf_error *err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#ifdef __clang_analyzer__
#define mf_jrefuse(...) (mf_jrefuse(__VA_ARGS__), false)
#endif

#endif
