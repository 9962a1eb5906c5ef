// Inside of the schema reader: what a set of schemas that all must hold says, gathered into one record, and the expressions made of it.
#ifndef MF_SAMPLE_GRAMMAR_SCHEMA_READER_H
#define MF_SAMPLE_GRAMMAR_SCHEMA_READER_H

#include "base/json.h"
#include "base/map.h"
#include "sample/grammar/decimal.h"
#include "sample/grammar/schema.h"

#define MF_SCHEMA_MAX_DEPTH   200   // of schemas in schemas, references followed
#define MF_SCHEMA_MAX_CHOICES 20000 // alternatives in all, once anyOf beside anyOf is multiplied out
#define MF_SCHEMA_MAX_RULES   200000
#define MF_SCHEMA_MAX_MEMBERS 2000     // properties of an object, items of a prefix
#define MF_SCHEMA_MAX_WORK    20000000 // steps that reading may take: keywords, names and values looked at

typedef enum mf_schema_types {
    MF_S_NULL = 1,
    MF_S_BOOLEAN = 2,
    MF_S_OBJECT = 4,
    MF_S_ARRAY = 8,
    MF_S_STRING = 16,
    MF_S_NUMBER = 32, // with a fraction or an exponent
    MF_S_INTEGER = 64,
    MF_S_ALL = 127
} mf_schema_types;

// A schema and the JSON pointer to it.
typedef struct mf_schema_at {
    const mf_json *json;
    const char *at;
} mf_schema_at;

typedef mf_array(mf_schema_at) mf_schema_list;

typedef struct mf_schema_property {
    mf_str name;
    mf_schema_list schemas;
    bool required;
} mf_schema_property;

typedef struct mf_schema_pattern { // of patternProperties
    mf_str pattern;
    const mf_dfa *dfa;
    mf_schema_at schema;
} mf_schema_pattern;

typedef struct mf_schema_additional { // of additionalProperties, which speaks of names that its owner doesn't
    mf_schema_at schema;
    const mf_json *owner;
} mf_schema_additional;

typedef struct mf_schema_bound {
    bool there, exclusive;
    mf_decimal value;
} mf_schema_bound;

typedef struct mf_schema_record {
    const char *at; // of the first schema
    unsigned types;
    bool nothing;          // a false schema is among them
    const mf_json *values; // of enum: its list; const: see `one`
    const mf_json *one;    // of const
    mf_schema_list enums;  // further lists that a value must also be in
    // strings
    uint32_t min_length, max_length;
    const mf_dfa *text; // pattern and format; NULL: any
    // numbers
    mf_schema_bound least, most;
    mf_array(uint32_t) multiples;
    // arrays
    mf_array(mf_schema_list) prefix;
    mf_schema_list items; // of those behind the prefix
    uint32_t min_items, max_items;
    bool unique;
    // objects
    mf_array(mf_schema_property) properties;
    mf_array(mf_schema_pattern) patterns;
    mf_array(mf_schema_additional) additional;
    mf_schema_list names;                 // propertyNames
    mf_array(const mf_json *) dependents; // dependentRequired
    uint32_t min_properties, max_properties;
    // anyOf and oneOf: lists of which one must hold
    mf_schema_list choices;
} mf_schema_record;

typedef struct mf_schema_reader {
    mf_grammar *g;
    mf_arena *arena; // the grammar's
    const mf_json *root;
    mf_str id; // the root's $id
    mf_schema_options options;
    int draft; // 4, 6, 7; 2020: all later
    int depth;
    uint32_t n_choices, work;
    mf_map rules;             // sets of schemas -> rule
    mf_map patterns, formats; // what is matched somewhere, and as a whole -> number in automata
    mf_array(const mf_dfa *) automata;
    uint32_t space, value, comma;
    bool has_space, has_value;
    mf_error *err;
} mf_schema_reader;

// Refusals name the pointer. They return NULL.
void *mf_schema_refuse(mf_schema_reader *r, mf_code code, const char *at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void *mf_schema_no_memory(mf_schema_reader *r);

// Counts work that a hostile schema could have done again and again; false with err when it was too much.
bool mf_schema_spend(mf_schema_reader *r, size_t steps);
const mf_dfa *mf_schema_paid(mf_schema_reader *r, const mf_dfa *d); // the same, for what making it took; NULL: NULL

// schema_gather.c
const char *mf_schema_join(mf_schema_reader *r, const char *at, const char *key, mf_str name); // a pointer further in
bool mf_schema_gather(mf_schema_reader *r, mf_schema_record *out, mf_schema_at schema);
const mf_json *mf_schema_member(const mf_json *json, mf_str name); // of an object (the last one), or a list's by number
void mf_schema_record_free(mf_schema_record *record);
bool mf_schema_any_list(mf_schema_list *list); // whether it says nothing: it is empty, or all of it is true or {}

// schema_build.c: the expression of a value for which all of these hold. NULL with err.
mf_expr *mf_schema_value(mf_schema_reader *r, const mf_schema_list *schemas);
mf_expr *mf_schema_any(mf_schema_reader *r);
mf_expr *mf_schema_space(mf_schema_reader *r);
mf_expr *mf_schema_text(mf_schema_reader *r, const char *literal);
mf_expr *mf_schema_seq(mf_schema_reader *r, mf_expr *const *parts, size_t n);
mf_expr *mf_schema_string(mf_schema_reader *r, const mf_dfa *dfa, uint32_t min, uint32_t max);

// Whether the schemas allow nothing at all, as far as that is told by `false`.
bool mf_schema_is_false(const mf_schema_list *schemas);

// schema_check.c: whether a value is right. *ok; false with err: a schema that is not understood.
bool mf_schema_fits(mf_schema_reader *r, const mf_json *value, const mf_schema_list *schemas, bool *ok);
bool mf_schema_record_fits(mf_schema_reader *r, const mf_json *value, const mf_schema_record *record, bool *ok);

// The schemas that speak of a member of this name.
bool mf_schema_of_name(mf_schema_reader *r, const mf_schema_record *record, mf_str name, mf_schema_list *out);

// schema_object.c, schema_array.c: NULL without err (*nothing): no object (array) is allowed.
mf_expr *mf_schema_object(mf_schema_reader *r, mf_schema_record *record, bool *nothing);
mf_expr *mf_schema_array(mf_schema_reader *r, mf_schema_record *record, bool *nothing);

#endif
