// Text of templates: building it with its marks, cutting it by characters, and what Python's str methods do.
#ifndef MF_TEXT_JINJA_STRING_H
#define MF_TEXT_JINJA_STRING_H

#include "text/jinja/unicode.h"
#include "text/jinja/value.h"

static inline mf_str mf_jstr_slice(const mf_jstr *s) { return (mf_str){s->ptr, s->len}; }

// ---- Building

// A text that grows in the arena and pays for its bytes and marks. An append that fails (memory, MF_JINJA_TEXT_MAX, work) sets
// `failed` and the run's error.
typedef struct mf_jbuild {
    mf_jrun *run;
    char *data;
    size_t len, cap;
    uint32_t *marks;
    size_t n_marks, cap_marks; // pairs
    bool failed;
} mf_jbuild;

void mf_jbuild_text(mf_jbuild *b, const char *text);         // unmarked
void mf_jbuild_bytes(mf_jbuild *b, const void *p, size_t n); // unmarked
void mf_jbuild_repeat(mf_jbuild *b, uint32_t cp, int64_t n); // unmarked; n below 1: nothing
void mf_jbuild_str(mf_jbuild *b, const mf_jstr *s);
void mf_jbuild_part(mf_jbuild *b, const mf_jstr *s, size_t from, size_t to); // bytes
// Marks everything from byte `from` of the text on.
void mf_jbuild_mark(mf_jbuild *b, size_t from);
// n bytes that stand for the byte `at` of s, marked if that is.
void mf_jbuild_as(mf_jbuild *b, const void *p, size_t n, const mf_jstr *s, size_t at);
bool mf_jbuild_done(mf_jbuild *b, mf_jval *out);

// ---- Parts

size_t mf_jstr_chars(const mf_jstr *s);
bool mf_jstr_marked(const mf_jstr *s, size_t from, size_t to); // any of these bytes
// The bytes [from, to) as a text of their own (shared).
mf_jstr *mf_jstr_part(mf_jrun *run, const mf_jstr *s, size_t from, size_t to);
size_t mf_jstr_offset(const mf_jstr *s, size_t index); // of a character, at most the end
uint32_t mf_jstr_next(const mf_jstr *s, size_t *at);   // the character at a byte offset below the end, and goes behind it
uint32_t mf_jstr_before(const mf_jstr *s, size_t *at); // the character before a byte offset above 0, and goes to it

// The first place of `what` in bytes [from, to), or the last one; SIZE_MAX: none. False where the work can't be paid.
bool mf_jstr_find(mf_jrun *run, const mf_jstr *s, mf_str what, size_t from, size_t to, size_t *at);
bool mf_jstr_rfind(mf_jrun *run, const mf_jstr *s, mf_str what, size_t from, size_t to, size_t *at);

// ---- As str's methods

typedef enum mf_jside {
    MF_J_LEFT = 1,
    MF_J_RIGHT = 2,
} mf_jside;

bool mf_jstr_case(mf_jrun *run, const mf_jstr *s, mf_letter_case to, mf_jval *out);
bool mf_jstr_title(mf_jrun *run, const mf_jstr *s, mf_jval *out);
bool mf_jstr_capitalize(mf_jrun *run, const mf_jstr *s, mf_jval *out);
bool mf_jstr_swapcase(mf_jrun *run, const mf_jstr *s, mf_jval *out);
// chars NULL: white space.
bool mf_jstr_strip(mf_jrun *run, const mf_jstr *s, const mf_jstr *chars, unsigned sides, mf_jval *out);
bool mf_jstr_replace(mf_jrun *run, const mf_jstr *s, const mf_jstr *old, const mf_jstr *by, int64_t count, mf_jval *out);
// sep NULL: runs of white space. most < 0: no bound.
bool mf_jstr_split(mf_jrun *run, const mf_jstr *s, const mf_jstr *sep, int64_t most, bool from_right, mf_jval *out);
bool mf_jstr_splitlines(mf_jrun *run, const mf_jstr *s, bool keep, mf_jval *out);
// Python's slice of characters; absent bounds are MF_J_NONE.
bool mf_jstr_cut(mf_jrun *run, const mf_jstr *s, int64_t start, int64_t step, size_t n, mf_jval *out);
bool mf_jstr_repeat(mf_jrun *run, const mf_jstr *s, int64_t n, mf_jval *out);
bool mf_jstr_concat(mf_jrun *run, const mf_jstr *a, const mf_jstr *b, mf_jval *out);
// fill NULL: spaces; else one character, whose marks its repetitions have.
bool mf_jstr_pad(mf_jrun *run, const mf_jstr *s, int64_t left, int64_t right, const mf_jstr *fill, mf_jval *out);

// HTML's five characters as markupsafe escapes them.
void mf_jescape(mf_jbuild *b, const mf_jstr *s);

// ---- Values as text (repr.c)

// str(v) and repr(v) appended. Refused: what Python prints with an address.
bool mf_jadd_str(mf_jbuild *b, mf_jval v);
bool mf_jadd_repr(mf_jbuild *b, mf_jval v);
bool mf_jto_str(mf_jrun *run, mf_jval v, mf_jval *out); // a text stays itself (soft_str)

typedef struct mf_jjson_options {
    bool ascii, sort;
    const mf_jstr *indent;     // NULL: on one line
    const mf_jstr *item, *key; // separators; NULL: Python's
} mf_jjson_options;
bool mf_jto_json(mf_jrun *run, mf_jval v, const mf_jjson_options *options, mf_jval *out);

#endif
