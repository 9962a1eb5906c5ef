#include "base/json.h"

#include "base/utf8.h"

#include <limits.h>
#include <string.h>

#define MOST_NESTING 512

// An array or object that is being read.
typedef struct level {
    mf_json *node, *last;
} level;

typedef struct reader {
    mf_arena *arena;
    mf_str text;
    size_t pos;
    mf_error *err;
    int depth;
    level levels[MOST_NESTING];
} reader;

// The refusal of what stands at `offset`. Returns false.
static bool fail_at(reader *r, size_t offset, mf_code code, const char *what) {
    size_t line = 1, start = 0;
    for (size_t i = 0; i < offset; i++) {
        if (r->text.ptr[i] == '\n') {
            line++;
            start = i + 1;
        }
    }
    return mf_fail(r->err, code, "line %zu, column %zu: %s", line, offset - start + 1, what);
}

static bool refuse(reader *r, const char *what) {
    if (r->pos >= r->text.len) what = "the text ends too early";
    return fail_at(r, r->pos, MF_ERR_FORMAT, what);
}

static bool out_of_memory(reader *r) { return fail_at(r, r->pos, MF_ERR_MEMORY, "out of memory for the JSON value"); }

// The byte at the reader, 0 at the end (which no rule of the grammar takes).
static char peek(const reader *r) { return r->pos < r->text.len ? r->text.ptr[r->pos] : 0; }

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static void skip_space(reader *r) {
    while (is_space(peek(r))) r->pos++;
}

static bool take(reader *r, char c) {
    if (r->pos >= r->text.len || r->text.ptr[r->pos] != c) return false;
    r->pos++;
    return true;
}

static bool read_hex4(reader *r, uint32_t *out) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++, r->pos++) {
        char c = peek(r), lower = (char)(c | 0x20);
        if (c >= '0' && c <= '9') {
            value = value << 4 | (uint32_t)(c - '0');
        } else if (lower >= 'a' && lower <= 'f') {
            value = value << 4 | (uint32_t)(lower - 'a' + 10);
        } else {
            return refuse(r, "\\u needs four hexadecimal digits");
        }
    }
    *out = value;
    return true;
}

// What follows "\u" (the reader stands behind it): one code point of one or two escapes.
static bool read_code_point(reader *r, uint32_t *out) {
    size_t start = r->pos - 2;
    uint32_t high, low;
    if (!read_hex4(r, &high)) return false;
    *out = high;
    if (high < 0xD800 || high > 0xDFFF) return true;
    if (high >= 0xDC00 || !take(r, '\\') || !take(r, 'u'))
        return fail_at(r, start, MF_ERR_FORMAT, "a surrogate escape without its other half");
    if (!read_hex4(r, &low)) return false;
    if (low < 0xDC00 || low > 0xDFFF) return fail_at(r, start, MF_ERR_FORMAT, "a surrogate escape without its other half");
    *out = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

// One escape; the reader stands behind the backslash. Appends to *out.
static bool read_escape(reader *r, char **out) {
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = peek(r);
    const char *known = c ? strchr(names, c) : NULL;
    if (known) {
        r->pos++;
        *(*out)++ = values[known - names];
        return true;
    }
    if (c != 'u') return refuse(r, "unknown escape in a string");
    r->pos++;
    uint32_t cp;
    if (!read_code_point(r, &cp)) return false;
    *out += mf_utf8_encode(cp, *out);
    return true;
}

// Where a string's closing quote is (the reader stands behind the opening one); false where there is none.
static bool find_quote(const reader *r, size_t *end) {
    for (size_t i = r->pos; i < r->text.len; i++) {
        if (r->text.ptr[i] == '"') {
            *end = i;
            return true;
        }
        i += r->text.ptr[i] == '\\';
    }
    return false;
}

static bool read_string(reader *r, mf_str *out) {
    size_t end;
    if (!take(r, '"')) return refuse(r, "expected a string");
    if (!find_quote(r, &end)) return fail_at(r, r->pos - 1, MF_ERR_FORMAT, "a string without its closing quote");
    // No escape is shorter than what it stands for.
    char *text = mf_arena_alloc(r->arena, end - r->pos + 1, 1), *to = text;
    if (!text) return out_of_memory(r);
    while (r->pos < end) {
        char c = r->text.ptr[r->pos];
        if ((unsigned char)c < 0x20) return refuse(r, "a control character in a string must be escaped");
        r->pos++;
        if (c != '\\') {
            *to++ = c;
        } else if (!read_escape(r, &to)) {
            return false;
        }
    }
    r->pos = end + 1;
    *out = (mf_str){text, (size_t)(to - text)};
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool skip_digits(reader *r) {
    if (!is_digit(peek(r))) return refuse(r, "expected a digit");
    while (is_digit(peek(r))) r->pos++;
    return true;
}

static bool read_number(reader *r, mf_str *out) {
    size_t start = r->pos;
    take(r, '-');
    if (take(r, '0')) {
        if (is_digit(peek(r))) return refuse(r, "a number with a leading zero");
    } else if (!skip_digits(r)) {
        return false;
    }
    if (take(r, '.') && !skip_digits(r)) return false;
    if (take(r, 'e') || take(r, 'E')) {
        if (!take(r, '+')) take(r, '-');
        if (!skip_digits(r)) return false;
    }
    size_t len = r->pos - start;
    char *text = mf_arena_copy(r->arena, r->text.ptr + start, len);
    if (!text) return out_of_memory(r);
    *out = (mf_str){text, len};
    return true;
}

static bool read_word(reader *r, mf_json *node) {
    static const struct {
        mf_str word;
        mf_json_kind kind;
        bool boolean;
    } words[] = {
        {{"null", 4}, MF_JSON_NULL, false},
        {{"true", 4}, MF_JSON_BOOL, true},
        {{"false", 5}, MF_JSON_BOOL, false},
    };
    mf_str rest = {r->text.ptr + r->pos, r->text.len - r->pos};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!mf_str_starts(rest, words[i].word)) continue;
        node->kind = words[i].kind;
        node->boolean = words[i].boolean;
        r->pos += words[i].word.len;
        return true;
    }
    return refuse(r, "expected a value");
}

// Reads a value, of an array or object only the opening bracket, which becomes the innermost level.
static bool open_value(reader *r, mf_json *node) {
    node->offset = r->pos;
    char c = peek(r);
    if (c == '"') {
        node->kind = MF_JSON_STRING;
        return read_string(r, &node->text);
    }
    if (c == '-' || is_digit(c)) {
        node->kind = MF_JSON_NUMBER;
        return read_number(r, &node->text);
    }
    if (c != '[' && c != '{') return read_word(r, node);
    if (r->depth == MOST_NESTING) return fail_at(r, r->pos, MF_ERR_LIMIT, "nested more than 512 deep");
    r->pos++;
    node->kind = c == '[' ? MF_JSON_ARRAY : MF_JSON_OBJECT;
    r->levels[r->depth++] = (level){node, NULL};
    return true;
}

// The next member of the innermost level: a fresh node, linked in, with its key read. The reader ends before its value.
static mf_json *open_member(reader *r) {
    level *l = &r->levels[r->depth - 1];
    mf_json *member = mf_arena_alloc(r->arena, 1, sizeof *member);
    if (!member) {
        out_of_memory(r);
        return NULL;
    }
    if (l->node->kind == MF_JSON_OBJECT) {
        if (!read_string(r, &member->key)) return NULL;
        skip_space(r);
        if (!take(r, ':')) {
            refuse(r, "expected ':' after a member's name");
            return NULL;
        }
        skip_space(r);
    }
    if (l->last) {
        l->last->next = member;
    } else {
        l->node->child = member;
    }
    l->last = member;
    l->node->count++;
    return member;
}

// Between a value (or an opening bracket) and the next one: closes every level that ends here and goes to the next member.
// *member is NULL when the outermost value is complete.
static bool next_member(reader *r, mf_json **member) {
    *member = NULL;
    for (skip_space(r); r->depth > 0; skip_space(r)) {
        level *l = &r->levels[r->depth - 1];
        bool array = l->node->kind == MF_JSON_ARRAY;
        if (take(r, array ? ']' : '}')) {
            r->depth--;
            continue;
        }
        if (l->last) {
            if (!take(r, ',')) return refuse(r, array ? "expected ',' or ']'" : "expected ',' or '}'");
            skip_space(r);
        }
        *member = open_member(r);
        return *member != NULL;
    }
    return true;
}

mf_json *mf_json_parse(mf_arena *arena, mf_str text, mf_error *err) {
    if (!text.ptr) text = MF_STR("");
    reader r = {.arena = arena, .text = text, .err = err};
    size_t bad;
    if (!mf_utf8_valid(text.ptr, text.len, &bad)) {
        fail_at(&r, bad, MF_ERR_FORMAT, "not UTF-8");
        return NULL;
    }
    mf_json *root = mf_arena_alloc(arena, 1, sizeof *root), *node = root;
    if (!root) {
        out_of_memory(&r);
        return NULL;
    }
    skip_space(&r);
    while (node)
        if (!open_value(&r, node) || !next_member(&r, &node)) return NULL;
    if (r.pos == text.len) return root;
    refuse(&r, "something follows the value");
    return NULL;
}

const mf_json *mf_json_get(const mf_json *object, const char *key) {
    if (!object || object->kind != MF_JSON_OBJECT) return NULL;
    const mf_json *found = NULL;
    for (const mf_json *member = object->child; member; member = member->next)
        if (mf_str_is(member->key, key)) found = member;
    return found;
}

bool mf_json_i64(const mf_json *value, int64_t *out) {
    return value && value->kind == MF_JSON_NUMBER && mf_parse_i64(value->text, out);
}

bool mf_json_f64(const mf_json *value, double *out) {
    return value && value->kind == MF_JSON_NUMBER && mf_parse_f64(value->text, out);
}
