// The parser of regular expressions: ECMA-262 with the flag u, without look-around, back-references and word boundaries.
#include "sample/grammar/regex.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

#define MAX_DEPTH  200
#define MAX_REPEAT 1000000

typedef struct parser {
    mf_arena *arena;
    mf_str text;
    size_t at;
    int depth;
    mf_error *err;
} parser;

static void *refuse(parser *p, const char *what) {
    mf_fail(p->err, MF_ERR_FORMAT, "the pattern is wrong at byte %zu: %s", p->at, what);
    return NULL;
}

static void *unsupported(parser *p, const char *what) {
    mf_fail(p->err, MF_ERR_UNSUPPORTED, "the pattern has %s at byte %zu, which is not supported", what, p->at);
    return NULL;
}

static mf_re *node(parser *p, mf_re_kind kind, mf_re *a, mf_re *b) {
    mf_re *n = mf_arena_alloc(p->arena, 1, sizeof *n);
    if (!n) return mf_fail_memory(p->err, sizeof *n, "a pattern"), NULL;
    *n = (mf_re){.kind = kind, .a = a, .b = b};
    return n;
}

static bool looking_at(const parser *p, const char *text) {
    return mf_str_starts((mf_str){p->text.ptr + p->at, p->text.len - p->at}, mf_str_of(text));
}

static bool take(parser *p, const char *text) {
    if (!looking_at(p, text)) return false;
    p->at += strlen(text);
    return true;
}

static bool ends(const parser *p) { return p->at >= p->text.len; }
static char peek(const parser *p) { return ends(p) ? 0 : p->text.ptr[p->at]; }

// ---- Characters and classes

static const mf_range digits[] = {{'0', '9'}};
static const mf_range words[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const mf_range spaces[] = {{9, 13},          {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
                                  {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
static const mf_range line_ends[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

static bool memory(parser *p, bool ok) { return ok || mf_fail_memory(p->err, 0, "a pattern"); }

// The set of \d, \D, \w, \W, \s, \S; false when the letter is none of them.
static bool named_set(parser *p, char letter, mf_charset *out, bool *ok) {
    mf_charset set;
    switch (letter | 0x20) {
    case 'd': set = (mf_charset){digits, 1}; break;
    case 'w': set = (mf_charset){words, 4}; break;
    case 's': set = (mf_charset){spaces, sizeof spaces / sizeof *spaces}; break;
    default: return false;
    }
    *ok = memory(p, letter & 0x20 ? mf_charset_make(p->arena, set.ranges, set.n, out)
                                  : mf_charset_complement(p->arena, set, out));
    return true;
}

static bool hex(parser *p, int n, uint32_t *out) {
    uint32_t value = 0;
    if (p->text.len - p->at < (size_t)n) return false;
    for (int i = 0; i < n; i++) {
        char c = p->text.ptr[p->at + (size_t)i];
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
        if (digit < 0) return false;
        value = value * 16 + (uint32_t)digit;
    }
    p->at += (size_t)n;
    *out = value;
    return true;
}

// \u0041, \u{1F600} and surrogate pairs; `at` is behind the u.
static bool unicode_escape(parser *p, uint32_t *cp) {
    if (take(p, "{")) {
        *cp = 0;
        size_t first = p->at;
        uint32_t digit;
        while (hex(p, 1, &digit) && *cp <= MF_CHAR_LAST) *cp = *cp * 16 + digit;
        return p->at > first && *cp <= MF_CHAR_LAST && take(p, "}");
    }
    if (!hex(p, 4, cp)) return false;
    uint32_t low;
    size_t behind = p->at;
    if (*cp >= 0xd800 && *cp < 0xdc00 && take(p, "\\u")) {
        if (hex(p, 4, &low) && low >= 0xdc00 && low < 0xe000)
            *cp = 0x10000 + ((*cp - 0xd800) << 10) + (low - 0xdc00);
        else
            p->at = behind;
    }
    return true;
}

// A character behind a backslash, which has been read.
static bool escaped_char(parser *p, bool in_class, uint32_t *cp) {
    static const char from[] = "tnvfr", to[] = "\t\n\v\f\r";
    char c = peek(p);
    const char *simple = c ? strchr(from, c) : NULL;
    if (!c) return refuse(p, "a backslash at the end"), false;
    if (c >= '1' && c <= '9') return unsupported(p, "a back-reference"), false;
    if (c == 'k') return unsupported(p, "a back-reference"), false;
    if (c == 'b' && in_class) return p->at++, *cp = 8, true;
    if (c == 'b' || c == 'B') return unsupported(p, "a word boundary"), false;
    if (c == 'p' || c == 'P') return unsupported(p, "\\p"), false;
    p->at++;
    if (simple) return *cp = (uint8_t)to[simple - from], true;
    if (c == '0' && !(peek(p) >= '0' && peek(p) <= '9')) return *cp = 0, true;
    if (c == 'x') return hex(p, 2, cp) || (refuse(p, "\\x needs two hexadecimal digits"), false);
    if (c == 'u') return unicode_escape(p, cp) || (refuse(p, "\\u needs four hexadecimal digits"), false);
    if (c == 'c' && ((peek(p) | 0x20) >= 'a' && (peek(p) | 0x20) <= 'z'))
        return *cp = (uint8_t)(p->text.ptr[p->at++] & 31), true;
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') {
        p->at--;
        return refuse(p, "an unknown escape"), false;
    }
    p->at--;
    int n = mf_utf8_decode(p->text.ptr + p->at, p->text.len - p->at, cp);
    if (n <= 0) return refuse(p, "bytes that are no UTF-8"), false;
    p->at += (size_t)n;
    return true;
}

static bool plain_char(parser *p, uint32_t *cp) {
    int n = mf_utf8_decode(p->text.ptr + p->at, p->text.len - p->at, cp);
    if (n <= 0) return refuse(p, "bytes that are no UTF-8"), false;
    p->at += (size_t)n;
    return true;
}

static bool add_set(parser *p, mf_range_array *list, mf_charset set) {
    for (size_t i = 0; i < set.n; i++)
        if (!memory(p, mf_array_push(list, set.ranges[i]))) return false;
    return true;
}

// One element of a class: a set, or a character that may begin a range.
static bool class_element(parser *p, mf_range_array *list) {
    uint32_t first, last;
    mf_charset set;
    bool ok = true;
    if (take(p, "\\")) {
        if (named_set(p, peek(p), &set, &ok)) return p->at++, ok && add_set(p, list, set);
        if (!escaped_char(p, true, &first)) return false;
    } else if (!plain_char(p, &first)) {
        return false;
    }
    last = first;
    if (peek(p) == '-' && p->at + 1 < p->text.len && p->text.ptr[p->at + 1] != ']') {
        p->at++;
        if (take(p, "\\")) {
            if (named_set(p, peek(p), &set, &ok)) return refuse(p, "a range that ends with a set"), false;
            if (!escaped_char(p, true, &last)) return false;
        } else if (!plain_char(p, &last)) {
            return false;
        }
        if (last < first) return refuse(p, "a range that runs backwards"), false;
    }
    return memory(p, mf_array_push(list, ((mf_range){first, last})));
}

static mf_re *class_of(parser *p) {
    mf_range_array list = {0};
    bool negated = take(p, "^"), ok = true;
    while (ok && !ends(p) && peek(p) != ']') ok = class_element(p, &list);
    if (ok && !take(p, "]")) ok = refuse(p, "a class that does not end") != NULL;
    mf_re *n = ok ? node(p, MF_RE_CHARS, NULL, NULL) : NULL;
    if (n) ok = memory(p, mf_charset_make(p->arena, list.data, list.len, &n->chars));
    if (n && ok && negated) ok = memory(p, mf_charset_complement(p->arena, n->chars, &n->chars));
    free(list.data);
    return ok ? n : NULL;
}

// ---- Terms

static mf_re *choice(parser *p);

static mf_re *group(parser *p) {
    if (looking_at(p, "?=") || looking_at(p, "?!")) return unsupported(p, "a look-ahead");
    if (looking_at(p, "?<=") || looking_at(p, "?<!")) return unsupported(p, "a look-behind");
    if (take(p, "?<")) {
        const char *end = memchr(p->text.ptr + p->at, '>', p->text.len - p->at);
        if (!end) return refuse(p, "a group's name that does not end");
        p->at = (size_t)(end - p->text.ptr) + 1;
    } else if (looking_at(p, "?") && !take(p, "?:")) {
        return refuse(p, "an unknown kind of group");
    }
    mf_re *inner = choice(p);
    if (inner && !take(p, ")")) return refuse(p, "a group that does not end");
    return inner;
}

static mf_re *chars_node(parser *p, mf_charset set) {
    mf_re *n = node(p, MF_RE_CHARS, NULL, NULL);
    if (n) n->chars = set;
    return n;
}

static mf_re *atom(parser *p) {
    mf_charset set;
    uint32_t cp;
    bool ok = true;
    switch (peek(p)) {
    case '(': return p->at++, group(p);
    case '[': return p->at++, class_of(p);
    case '^': return p->at++, node(p, MF_RE_BEGIN, NULL, NULL);
    case '$': return p->at++, node(p, MF_RE_END, NULL, NULL);
    case '.':
        p->at++;
        return memory(p, mf_charset_complement(p->arena, (mf_charset){line_ends, 3}, &set)) ? chars_node(p, set) : NULL;
    case '*':
    case '+':
    case '?': return refuse(p, "nothing to repeat");
    case '\\':
        p->at++;
        if (named_set(p, peek(p), &set, &ok)) return p->at++, ok ? chars_node(p, set) : NULL;
        if (!escaped_char(p, false, &cp)) return NULL;
        break;
    default:
        if (!plain_char(p, &cp)) return NULL;
    }
    const mf_range one = {cp, cp};
    return memory(p, mf_charset_make(p->arena, &one, 1, &set)) ? chars_node(p, set) : NULL;
}

static bool number(parser *p, uint32_t *out) {
    size_t first = p->at;
    uint64_t value = 0;
    while (peek(p) >= '0' && peek(p) <= '9' && value <= MAX_REPEAT)
        value = value * 10 + (uint64_t)(p->text.ptr[p->at++] - '0');
    *out = (uint32_t)value;
    return p->at > first;
}

// {m}, {m,} and {m,n}; what only looks like one is text.
static bool braces(parser *p, uint32_t *min, uint32_t *max) {
    size_t before = p->at;
    if (take(p, "{") && number(p, min)) {
        *max = *min;
        if (take(p, ",") && !number(p, max)) *max = UINT32_MAX;
        if (take(p, "}")) return true;
    }
    p->at = before;
    return false;
}

static mf_re *term(parser *p) {
    mf_re *a = atom(p);
    uint32_t min = 0, max = UINT32_MAX;
    if (!a) return NULL;
    if (take(p, "+")) {
        min = 1;
    } else if (take(p, "?")) {
        max = 1;
    } else if (!take(p, "*") && !braces(p, &min, &max)) {
        return a;
    }
    take(p, "?"); // as few as possible: the same texts
    if (min > max) return refuse(p, "a repetition whose bounds run backwards");
    if (min > MAX_REPEAT || (max != UINT32_MAX && max > MAX_REPEAT)) return refuse(p, "a repetition of over 1000000 times");
    if (a->kind == MF_RE_BEGIN || a->kind == MF_RE_END) return refuse(p, "nothing to repeat");
    mf_re *n = node(p, MF_RE_REPEAT, a, NULL);
    if (n) n->min = min, n->max = max;
    return braces(p, &min, &max) ? refuse(p, "nothing to repeat") : n;
}

static mf_re *sequence(parser *p) {
    mf_re *all = NULL;
    while (!ends(p) && peek(p) != '|' && peek(p) != ')') {
        mf_re *next = term(p);
        all = !next ? NULL : all ? node(p, MF_RE_SEQUENCE, all, next) : next;
        if (!all) return NULL;
    }
    return all ? all : node(p, MF_RE_EMPTY, NULL, NULL);
}

static mf_re *choice(parser *p) {
    if (++p->depth > MAX_DEPTH) return refuse(p, "groups nested over 200 deep");
    mf_re *all = sequence(p);
    while (all && take(p, "|")) {
        mf_re *other = sequence(p);
        all = other ? node(p, MF_RE_CHOICE, all, other) : NULL;
    }
    p->depth--;
    return all;
}

mf_re *mf_re_parse(mf_arena *arena, mf_str pattern, mf_error *err) {
    parser p = {.arena = arena, .text = pattern, .err = err};
    mf_re *all = choice(&p);
    return all && !ends(&p) ? refuse(&p, "a closing parenthesis without an opening one") : all;
}
