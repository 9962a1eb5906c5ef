#include "sample/grammar/gbnf.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/utf8.h"

#define MAX_DEPTH 200

typedef struct parser {
    mf_grammar *g;
    const mf_grammar_vocab *vocab;
    mf_str text;
    size_t at;
    size_t line, counted; // the line of byte `counted`
    int depth;
    mf_map names;
    mf_error *err;
} parser;

static void where(const parser *p, size_t at, size_t *line, size_t *column) {
    *line = *column = 1;
    for (size_t i = 0; i < at && i < p->text.len; i++) {
        bool end = p->text.ptr[i] == '\n';
        *line += end;
        *column = end ? 1 : *column + 1;
    }
}

static void *refuse_at(const parser *p, size_t at, const char *what) {
    size_t line, column;
    where(p, at, &line, &column);
    mf_fail(p->err, MF_ERR_FORMAT, "line %zu, column %zu: %s", line, column, what);
    return NULL;
}

static void *refuse(const parser *p, const char *what) { return refuse_at(p, p->at, what); }

static void *out_of_memory(const parser *p) {
    mf_grammar_no_memory(&p->g->arena, "the grammar", p->err);
    return NULL;
}

static mf_expr *checked(const parser *p, mf_expr *e) { return e ? e : out_of_memory(p); }

static char peek(const parser *p) { return p->at < p->text.len ? p->text.ptr[p->at] : 0; }

static bool take(parser *p, const char *text) {
    size_t n = strlen(text);
    if (p->text.len - p->at < n || memcmp(p->text.ptr + p->at, text, n) != 0) return false;
    p->at += n;
    return true;
}

// White space and comments; line ends only where a rule can't end with them.
static void skip(parser *p, bool lines) {
    for (;;) {
        char c = peek(p);
        if (c == '#') {
            while (p->at < p->text.len && peek(p) != '\n' && peek(p) != '\r') p->at++;
        } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
            p->at++;
        } else {
            return;
        }
    }
}

static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static mf_str name(parser *p) {
    size_t first = p->at;
    while (is_name(peek(p))) p->at++;
    return (mf_str){p->text.ptr + first, p->at - first};
}

static bool rule_of(parser *p, mf_str n, uint32_t *rule) {
    if (mf_map_get(&p->names, n, rule)) return true;
    for (; p->counted < p->at; p->counted++) p->line += p->text.ptr[p->counted] == '\n';
    bool ok = mf_grammar_add_rule(p->g, n, p->line, rule) && mf_map_set(&p->names, n, *rule, NULL);
    return ok || (out_of_memory(p), false);
}

// ---- Characters

static bool hex(parser *p, int n, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < n; i++) {
        char c = peek(p);
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : -1;
        if (digit < 0) return refuse(p, "a hexadecimal digit is missing"), false;
        *out = *out * 16 + (uint32_t)digit;
        p->at++;
    }
    if (*out <= MF_CHAR_LAST && !(*out >= 0xd800 && *out < 0xe000)) return true;
    return refuse(p, "no character has this number"), false;
}

// One character of a literal or a class.
static bool character(parser *p, uint32_t *cp) {
    if (take(p, "\\")) {
        char c = peek(p);
        p->at++;
        switch (c) {
        case 'x': return hex(p, 2, cp);
        case 'u': return hex(p, 4, cp);
        case 'U': return hex(p, 8, cp);
        case 't': return *cp = '\t', true;
        case 'r': return *cp = '\r', true;
        case 'n': return *cp = '\n', true;
        case '\\':
        case '"':
        case '[':
        case ']':
        case '-':
        case '^': return *cp = (uint8_t)c, true;
        default: return p->at--, refuse(p, "an unknown escape"), false;
        }
    }
    if (p->at >= p->text.len) return refuse(p, "the grammar ends in the middle"), false;
    int n = mf_utf8_decode(p->text.ptr + p->at, p->text.len - p->at, cp);
    if (n <= 0) return refuse(p, "bytes that are no UTF-8"), false;
    p->at += (size_t)n;
    return true;
}

static mf_expr *literal(parser *p) {
    mf_buf bytes = {0};
    size_t first = p->at - 1;
    uint32_t cp;
    bool ok = true;
    while (ok && peek(p) != '"') {
        if (p->at >= p->text.len || peek(p) == '\n')
            ok = refuse_at(p, first, "a literal that does not end") != NULL;
        else if ((ok = character(p, &cp))) {
            char utf8[4];
            mf_buf_add(&bytes, utf8, (size_t)mf_utf8_encode(cp, utf8));
        }
    }
    p->at++;
    mf_expr *e = !ok            ? NULL
                 : bytes.failed ? out_of_memory(p)
                                : checked(p, mf_expr_literal(p->g, bytes.data ? bytes.data : "", bytes.len));
    free(bytes.data);
    return e;
}

static mf_expr *class(parser *p) {
    size_t first = p->at - 1;
    bool negated = take(p, "^"), ok = true;
    mf_range_array ranges = {0};
    while (ok && peek(p) != ']') {
        mf_range r = {0, 0};
        if (p->at >= p->text.len || peek(p) == '\n') {
            ok = refuse_at(p, first, "a class that does not end") != NULL;
            break;
        }
        ok = character(p, &r.first);
        r.last = r.first;
        if (ok && peek(p) == '-' && p->at + 1 < p->text.len && p->text.ptr[p->at + 1] != ']') {
            p->at++;
            ok = character(p, &r.last) && (r.last >= r.first || refuse(p, "a range that runs backwards"));
        }
        if (ok && !mf_array_push(&ranges, r)) ok = out_of_memory(p) != NULL;
    }
    p->at++;
    mf_charset set = {0};
    if (ok && (!mf_charset_make(&p->g->arena, ranges.data, ranges.len, &set) ||
               (negated && !mf_charset_complement(&p->g->arena, set, &set))))
        ok = out_of_memory(p) != NULL;
    free(ranges.data);
    return ok ? checked(p, mf_expr_chars(p->g, set)) : NULL;
}

// ---- Tokens

static bool number(parser *p, uint32_t *out) {
    uint64_t value = 0;
    size_t first = p->at;
    while (peek(p) >= '0' && peek(p) <= '9' && value < UINT32_MAX)
        value = value * 10 + (uint64_t)(p->text.ptr[p->at++] - '0');
    *out = (uint32_t)value;
    return p->at > first && value < UINT32_MAX;
}

// <[id]> or <text>; the < has been read.
static mf_expr *token(parser *p, bool negated) {
    size_t first = p->at - 1;
    uint32_t id = UINT32_MAX;
    if (!p->vocab) return refuse_at(p, first, "tokens can only be named beside a model");
    if (take(p, "[")) {
        if (!number(p, &id) || !take(p, "]>")) return refuse(p, "a token's number is written <[7]>");
        if (id >= (uint32_t)p->vocab->n) return refuse_at(p, first, "the vocabulary has no token of this number");
    } else {
        const char *end = memchr(p->text.ptr + p->at, '>', p->text.len - p->at);
        if (!end) return refuse_at(p, first, "a token that does not end");
        p->at = (size_t)(end - p->text.ptr) + 1;
        const mf_str text = {p->text.ptr + first, p->at - first};
        for (int32_t i = 0; i < p->vocab->n && id == UINT32_MAX; i++)
            if (mf_str_eq(p->vocab->tokens[i].name, text)) id = (uint32_t)i;
        if (id == UINT32_MAX) return refuse_at(p, first, "the vocabulary has no such token");
    }
    mf_expr *e = checked(p, mf_expr_new(p->g, MF_EXPR_TOKEN));
    if (e) e->token = (int32_t)id, e->negated = negated;
    return e;
}

// ---- Sequences and choices

static mf_expr *choice(parser *p, bool nested);

static mf_expr *element(parser *p) {
    mf_str n;
    uint32_t rule;
    if (take(p, "\"")) return literal(p);
    if (take(p, "[")) return class(p);
    if (take(p, "<")) return token(p, false);
    if (take(p, "!<")) return token(p, true);
    if (take(p, ".")) return checked(p, mf_expr_chars(p->g, mf_charset_all));
    if (take(p, "(")) {
        size_t first = p->at - 1;
        skip(p, true);
        mf_expr *e = choice(p, true);
        if (e && !take(p, ")")) return refuse_at(p, first, "a group that does not end");
        return e;
    }
    n = name(p);
    return rule_of(p, n, &rule) ? checked(p, mf_expr_rule(p->g, rule)) : NULL;
}

static bool begins_element(const parser *p) {
    char c = peek(p);
    return c &&
           (strchr("\"[<.(", c) || is_name(c) || (c == '!' && p->at + 1 < p->text.len && p->text.ptr[p->at + 1] == '<'));
}

static bool braces(parser *p, uint32_t *min, uint32_t *max) {
    skip(p, true);
    if (!number(p, min)) return refuse(p, "a number is missing"), false;
    skip(p, true);
    *max = *min;
    if (take(p, ",")) {
        skip(p, true);
        *max = MF_GRAMMAR_MANY;
        if (peek(p) != '}' && !number(p, max)) return refuse(p, "a number is missing"), false;
        skip(p, true);
    }
    if (!take(p, "}")) return refuse(p, "a repetition that does not end"), false;
    return *min <= *max || (refuse(p, "a repetition whose bounds run backwards"), false);
}

static mf_expr *repeated(parser *p, mf_expr *e, bool nested) {
    for (int n = 0; e; n++) {
        uint32_t min = 0, max = MF_GRAMMAR_MANY;
        skip(p, nested);
        if (take(p, "+")) {
            min = 1;
        } else if (take(p, "?")) {
            max = 1;
        } else if (take(p, "{")) {
            if (!braces(p, &min, &max)) return NULL;
        } else if (!take(p, "*")) {
            return e;
        }
        if (n == MAX_DEPTH) return refuse(p, "over 200 repetitions of repetitions");
        e = checked(p, mf_expr_repeat(p->g, e, min, max));
    }
    return NULL;
}

static mf_expr *sequence(parser *p, bool nested) {
    mf_array(mf_expr *) parts = {0};
    bool ok = true;
    skip(p, nested);
    while (ok && begins_element(p)) {
        mf_expr *e = repeated(p, element(p), nested);
        ok = e && (mf_array_push(&parts, e) || out_of_memory(p));
        skip(p, nested);
    }
    mf_expr *all = ok ? checked(p, mf_expr_list(p->g, MF_EXPR_SEQUENCE, parts.data, parts.len)) : NULL;
    if (ok && parts.len == 1) all = parts.data[0];
    free(parts.data);
    return all;
}

// Whether the next line goes on with another choice.
static bool another(parser *p, bool nested) {
    size_t before = p->at;
    skip(p, true);
    if (take(p, "|")) return true;
    if (!nested) p->at = before;
    return false;
}

static mf_expr *choice(parser *p, bool nested) {
    if (++p->depth > MAX_DEPTH) return refuse(p, "groups nested over 200 deep");
    mf_array(mf_expr *) parts = {0};
    bool ok = true;
    do {
        mf_expr *e = sequence(p, nested);
        ok = e && (mf_array_push(&parts, e) || out_of_memory(p));
    } while (ok && another(p, nested) && (skip(p, true), true));
    mf_expr *all = !ok              ? NULL
                   : parts.len == 1 ? parts.data[0]
                                    : checked(p, mf_expr_list(p->g, MF_EXPR_CHOICE, parts.data, parts.len));
    free(parts.data);
    p->depth--;
    return all;
}

static bool rule(parser *p) {
    size_t first = p->at;
    uint32_t number_of_rule;
    mf_str n = name(p);
    if (n.len == 0) return refuse(p, "a rule's name was expected"), false;
    if (!rule_of(p, n, &number_of_rule)) return false;
    skip(p, false);
    if (!take(p, "::=")) return refuse(p, "'::=' was expected"), false;
    skip(p, true);
    mf_expr *e = choice(p, false);
    if (!e) return false;
    skip(p, false);
    if (p->at < p->text.len && peek(p) != '\n' && peek(p) != '\r') return refuse(p, "this can't stand in a rule"), false;
    mf_grammar_rule *r = &p->g->rules.data[number_of_rule];
    if (r->expr) return refuse_at(p, first, "a rule that was defined before"), false;
    r->expr = e;
    skip(p, true);
    return true;
}

static bool check_defined(const parser *p) {
    uint32_t root;
    for (size_t i = 0; i < p->g->rules.len; i++) {
        const mf_grammar_rule *r = &p->g->rules.data[i];
        if (!r->expr)
            return mf_fail(p->err, MF_ERR_FORMAT, "the rule '%.*s', used in line %zu, is not defined",
                           (int)(r->name.len < 80 ? r->name.len : 80), r->name.ptr, r->line);
    }
    if (!mf_map_get(&p->names, MF_STR("root"), &root))
        return mf_fail(p->err, MF_ERR_FORMAT, "the grammar has no rule 'root'");
    p->g->root = root;
    return true;
}

bool mf_gbnf_parse(mf_str text, const mf_grammar_vocab *vocab, mf_grammar *g, mf_error *err) {
    parser p = {.g = g, .vocab = vocab, .text = text, .line = 1, .err = err};
    take(&p, "\xef\xbb\xbf");
    skip(&p, true);
    bool ok = true;
    while (ok && p.at < p.text.len) ok = rule(&p);
    ok = ok && check_defined(&p);
    mf_map_free(&p.names);
    return ok;
}
