// JSON: a reader that keeps number lexemes and duplicate keys, and a writer. RFC 8259, strict; input must be UTF-8.
#ifndef MF_BASE_JSON_H
#define MF_BASE_JSON_H

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

typedef enum mf_json_kind {
    MF_JSON_NULL,
    MF_JSON_BOOL,
    MF_JSON_NUMBER,
    MF_JSON_STRING,
    MF_JSON_ARRAY,
    MF_JSON_OBJECT,
} mf_json_kind;

typedef struct mf_json {
    mf_json_kind kind;
    bool boolean;
    mf_str text;           // string: the unescaped bytes (may hold NUL); number: the lexeme as written
    mf_str key;            // in an object: the member's unescaped name
    struct mf_json *child; // array, object: the first member
    struct mf_json *next;  // the next member of the same parent
    size_t count;          // array, object: members
    size_t offset;         // where the value starts in the input
} mf_json;

// Parses one value with nothing but whitespace around it. Everything lives in `arena`. Nesting over 512 is refused. A lone
// surrogate escape is refused. NULL with err: "line L, column C: what", 1-based, columns in bytes.
mf_json *mf_json_parse(mf_arena *arena, mf_str text, mf_error *err);

// The member `key` of an object (the last one, as Python has it, where it is repeated); NULL if absent or not an object.
const mf_json *mf_json_get(const mf_json *object, const char *key);

// The number as int64 (false unless it is an integer lexeme that fits: no fraction, no exponent) or as double.
bool mf_json_i64(const mf_json *value, int64_t *out);
bool mf_json_f64(const mf_json *value, double *out);

// Writer: commas and colons are put by itself. A zero-initialised writer with `out` set is ready. indent = 0: compact, with
// no spaces; indent > 0: that many spaces a level.
typedef struct mf_json_writer {
    mf_buf *out;
    int indent;
    int depth;
    bool has_member, after_key;
} mf_json_writer;

void mf_json_begin(mf_json_writer *w, char open); // '{' or '['
void mf_json_end(mf_json_writer *w, char close);  // '}' or ']'
void mf_json_key(mf_json_writer *w, const char *key);
void mf_json_key_str(mf_json_writer *w, mf_str key);
void mf_json_string(mf_json_writer *w, mf_str text); // bytes that are not UTF-8 are written as U+FFFD
void mf_json_int(mf_json_writer *w, int64_t value);
void mf_json_number(mf_json_writer *w, mf_str lexeme); // as it is
void mf_json_real(mf_json_writer *w, double value);    // shortest text that reads back the same; not finite: null
void mf_json_bool(mf_json_writer *w, bool value);
void mf_json_null(mf_json_writer *w);

// A member of an object: its key and its value.
void mf_json_add_text(mf_json_writer *w, const char *key, const char *text);
void mf_json_add_int(mf_json_writer *w, const char *key, int64_t value);
void mf_json_add_real(mf_json_writer *w, const char *key, double value);

#endif
