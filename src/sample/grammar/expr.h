// What grammars are made of before they are compiled: rules of expressions. GBNF and JSON Schema are both read into this.
#ifndef MF_SAMPLE_GRAMMAR_EXPR_H
#define MF_SAMPLE_GRAMMAR_EXPR_H

#include "base/error.h"
#include "base/text.h"
#include "sample/grammar/charset.h"
#include "sample/grammar/dfa.h"

#define MF_GRAMMAR_MANY UINT32_MAX // of a repetition: without an upper bound

typedef enum mf_expr_kind {
    MF_EXPR_LITERAL, // bytes
    MF_EXPR_CHARS,   // one character of a set
    MF_EXPR_SEQUENCE,
    MF_EXPR_CHOICE,
    MF_EXPR_REPEAT,
    MF_EXPR_RULE,
    MF_EXPR_TOKEN,  // one token of the vocabulary, whatever its text; negated: any other
    MF_EXPR_NUMBER, // what an automaton accepts, as it is
    MF_EXPR_STRING, // a JSON string whose characters an automaton accepts, with its quotes
} mf_expr_kind;

typedef struct mf_expr {
    mf_expr_kind kind;
    mf_str text;           // LITERAL
    mf_charset chars;      // CHARS
    struct mf_expr *child; // SEQUENCE, CHOICE: the first of a list by `next`; REPEAT: the repeated
    struct mf_expr *next;  // in the list of its parent
    uint32_t min, max;     // REPEAT; STRING: characters
    uint32_t rule;         // RULE
    int32_t token;         // TOKEN
    bool negated;          // TOKEN
    const mf_dfa *dfa;     // NUMBER, STRING; of a string NULL: any
} mf_expr;

typedef struct mf_grammar_rule {
    mf_str name;
    mf_expr *expr; // NULL: not defined
    size_t line;   // where it was first named, from 1; 0: nowhere in a text
} mf_grammar_rule;

// Expressions and what they point to live in the arena, whose limit bounds a grammar's size.
typedef struct mf_grammar {
    mf_arena arena;
    mf_array(mf_grammar_rule) rules;
    uint32_t root;
} mf_grammar;

void mf_grammar_free(mf_grammar *g);

// What to fail with where something of an arena is NULL: its limit (MF_ERR_LIMIT), else memory. `what`: "the grammar". Returns false.
bool mf_grammar_no_memory(const mf_arena *arena, const char *what, mf_error *err);

// Each gives NULL when memory or the arena's limit is out, or an argument is NULL: a whole expression may be built before it is checked.
mf_expr *mf_expr_new(mf_grammar *g, mf_expr_kind kind);
mf_expr *mf_expr_literal(mf_grammar *g, const char *bytes, size_t n); // copied
mf_expr *mf_expr_chars(mf_grammar *g, mf_charset set);
mf_expr *mf_expr_repeat(mf_grammar *g, mf_expr *child, uint32_t min, uint32_t max);
mf_expr *mf_expr_rule(mf_grammar *g, uint32_t rule);
mf_expr *mf_expr_list(mf_grammar *g, mf_expr_kind kind, mf_expr *const *children, size_t n);

// Number of a rule that has no expression yet; false when memory is out.
bool mf_grammar_add_rule(mf_grammar *g, mf_str name, size_t line, uint32_t *rule);

#endif
