#include "text/jinja/lexer.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/utf8.h"
#include "text/jinja/unicode.h"

#undef mf_jrefuse
bool mf_jrefuse(const mf_jinja *t, size_t offset, mf_code code, mf_error *err, const char *format, ...) {
    char text[300];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t line = 1, start = 0;
    for (size_t i = 0; i < offset && i < t->source.len; i++) {
        if (t->source.ptr[i] != '\n') continue;
        line++;
        start = i + 1;
    }
    return mf_fail(err, code, "line %zu, column %zu: %s", line, offset - start + 1, text);
}

static bool refuse(const mf_jlexer *l, size_t at, const char *what) {
    return mf_jrefuse(l->t, at, MF_ERR_FORMAT, l->err, "%s", what);
}

static char peek(const mf_jlexer *l, size_t ahead) {
    return l->at + ahead < l->t->source.len ? l->t->source.ptr[l->at + ahead] : 0;
}

static bool stands(const mf_jlexer *l, size_t at, const char *text) {
    size_t n = strlen(text);
    return at + n <= l->t->source.len && memcmp(l->t->source.ptr + at, text, n) == 0;
}

static void move_to(mf_jlexer *l, size_t to) {
    for (; l->at < to; l->at++) l->line += l->t->source.ptr[l->at] == '\n';
    l->line_starting = to > 0 && l->t->source.ptr[to - 1] == '\n';
}

static size_t skip_space(const mf_jlexer *l, size_t at) {
    while (at < l->t->source.len) {
        uint32_t cp;
        int n = mf_utf8_decode(l->t->source.ptr + at, l->t->source.len - at, &cp);
        if (n <= 0 || !mf_is_space(cp)) break;
        at += (size_t)n;
    }
    return at;
}

// Where text [from, to) ends without the white space at its end.
static size_t strip_end(const mf_jlexer *l, size_t from, size_t to) {
    while (to > from) {
        size_t at = to - 1;
        while (at > from && ((uint8_t)l->t->source.ptr[at] & 0xC0) == 0x80) at--;
        uint32_t cp;
        if (mf_utf8_decode(l->t->source.ptr + at, to - at, &cp) <= 0 || !mf_is_space(cp)) break;
        to = at;
    }
    return to;
}

// The data [from, to) before a tag whose opening is followed by `sign`.
static size_t data_end(const mf_jlexer *l, size_t from, size_t to, char sign, bool variable) {
    if (sign == '-') return strip_end(l, from, to);
    if (sign == '+' || variable) return to;
    size_t line = to;
    while (line > from && l->t->source.ptr[line - 1] != '\n') line--;
    if (line == from && !l->line_starting) return to;
    return strip_end(l, line, to) == line ? line : to;
}

static char sign_at(const mf_jlexer *l, size_t at) {
    char c = at < l->t->source.len ? l->t->source.ptr[at] : 0;
    return c == '-' || c == '+' ? c : 0;
}

// The end of a tag at `at` ("%}", "#}" or "}}", maybe with a sign before): where the text goes on; 0: none stands here.
static size_t tag_end(const mf_jlexer *l, size_t at, const char *end, bool block) {
    char sign = sign_at(l, at);
    if (sign == '+' && !block) return 0;
    size_t close = at + (sign != 0);
    if (!stands(l, close, end)) return 0;
    close += 2;
    if (sign == '-') return skip_space(l, close);
    return block && !sign && stands(l, close, "\n") ? close + 1 : close;
}

// The next occurrence of {% {{ {# from `at` on; the end of the source where there is none.
static size_t find_tag(const mf_jlexer *l, size_t at) {
    const char *s = l->t->source.ptr;
    for (; at + 1 < l->t->source.len; at++)
        if (s[at] == '{' && (s[at + 1] == '%' || s[at + 1] == '{' || s[at + 1] == '#')) return at;
    return l->t->source.len;
}

// "{%- raw %}" at `at`: where its text begins; 0: it is something else.
static size_t raw_begin(const mf_jlexer *l, size_t at) {
    if (!stands(l, at, "{%")) return 0;
    at += 2;
    at = skip_space(l, at + (sign_at(l, at) != 0));
    if (!stands(l, at, "raw")) return 0;
    at = skip_space(l, at + 3);
    if (stands(l, at, "-%}")) return skip_space(l, at + 3);
    return stands(l, at, "%}") ? at + 2 : 0;
}

static void set_data(const mf_jlexer *l, mf_jtoken *token, size_t from, size_t to) {
    *token = (mf_jtoken){.kind = MF_T_DATA, .line = l->line, .from = (uint32_t)from, .to = (uint32_t)to};
    token->text = (mf_str){l->t->source.ptr + from, to - from};
}

static bool lex_raw(mf_jlexer *l, size_t start, mf_jtoken *token) {
    move_to(l, start);
    if (start >= l->t->source.len) { // jinja2 takes a tag at the very end that nothing follows
        *token = (mf_jtoken){.kind = MF_T_EOF, .line = l->line, .from = l->at, .to = l->at};
        return true;
    }
    for (size_t at = start; at < l->t->source.len; at++) {
        if (!stands(l, at, "{%")) continue;
        size_t p = at + 2;
        char sign = sign_at(l, p);
        p = skip_space(l, p + (sign != 0));
        if (!stands(l, p, "endraw")) continue;
        size_t after = tag_end(l, skip_space(l, p + 6), "%}", true);
        if (!after) continue;
        set_data(l, token, start, data_end(l, start, at, sign, false));
        move_to(l, after);
        return true;
    }
    return refuse(l, start, "Missing end of raw directive");
}

static bool skip_comment(mf_jlexer *l) {
    size_t start = l->at + 2;
    start += sign_at(l, start) != 0;
    for (size_t at = start; at < l->t->source.len; at++) {
        size_t after = tag_end(l, at, "#}", true);
        if (!after) continue;
        move_to(l, after);
        return true;
    }
    if (start >= l->t->source.len) return move_to(l, start), true; // as after raw
    return refuse(l, l->at, "Missing end of comment tag");
}

// The tag that stands at the lexer: a comment is skipped, others open their state.
static bool open_tag(mf_jlexer *l, mf_jtoken *token, bool *again) {
    char kind = peek(l, 1);
    *again = false;
    size_t raw = raw_begin(l, l->at);
    if (raw) return lex_raw(l, raw, token);
    if (kind == '#') {
        *again = true;
        return skip_comment(l);
    }
    bool variable = kind == '{';
    size_t to = l->at + 2;
    to += sign_at(l, to) != 0;
    *token = (mf_jtoken){.kind = variable ? MF_T_VARIABLE_BEGIN : MF_T_BLOCK_BEGIN, .line = l->line, .from = l->at};
    token->to = (uint32_t)to;
    l->state = variable ? MF_LEX_VARIABLE : MF_LEX_BLOCK;
    move_to(l, to);
    return true;
}

static bool lex_root(mf_jlexer *l, mf_jtoken *token) {
    for (;;) {
        if (l->begin_pending) {
            bool again;
            l->begin_pending = false;
            if (!open_tag(l, token, &again)) return false;
            if (!again) return true;
        }
        if (l->at >= l->t->source.len) {
            *token = (mf_jtoken){.kind = MF_T_EOF, .line = l->line, .from = l->at, .to = l->at};
            return true;
        }
        size_t tag = find_tag(l, l->at), start = l->at;
        bool found = tag < l->t->source.len;
        size_t end = found ? data_end(l, start, tag, sign_at(l, tag + 2), l->t->source.ptr[tag + 1] == '{') : tag;
        set_data(l, token, start, end);
        for (; l->at < tag; l->at++) l->line += l->t->source.ptr[l->at] == '\n';
        l->begin_pending = found;
        if (!found) l->line_starting = false;
        if (end > start) return true;
    }
}

// ---- Inside a tag

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static bool in_base(char c, int base) {
    int lower = c | 0x20;
    return base == 16 ? is_digit(c) || (lower >= 'a' && lower <= 'f') : c >= '0' && c < '0' + base;
}

// Digits with single underscores between, from `at` (which must be a digit): where they end.
static size_t digits_end(const mf_jlexer *l, size_t at, int base) {
    const char *s = l->t->source.ptr;
    size_t n = l->t->source.len;
    while (at < n && in_base(s[at], base)) {
        at++;
        if (at + 1 < n && s[at] == '_' && in_base(s[at + 1], base)) at++;
    }
    return at;
}

static bool digit_at(const mf_jlexer *l, size_t at) { return at < l->t->source.len && is_digit(l->t->source.ptr[at]); }

// The end of a float at the lexer; 0: it is no float.
static size_t float_end(const mf_jlexer *l) {
    if (l->at > 0 && l->t->source.ptr[l->at - 1] == '.') return 0;
    size_t at = digits_end(l, l->at, 10), end = 0;
    if (stands(l, at, ".") && digit_at(l, at + 1)) end = at = digits_end(l, at + 1, 10);
    if (stands(l, at, "e") || stands(l, at, "E")) {
        size_t exponent = at + 1;
        if (stands(l, exponent, "+") || stands(l, exponent, "-")) exponent++;
        if (digit_at(l, exponent)) end = digits_end(l, exponent, 10);
    }
    return end;
}

static size_t integer_end(const mf_jlexer *l) {
    size_t at = l->at;
    if (l->t->source.ptr[at] != '0') return digits_end(l, at, 10);
    int kind = peek(l, 1) | 0x20, base = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
    size_t first = at + 2 + (peek(l, 2) == '_');
    if (base && first < l->t->source.len && in_base(l->t->source.ptr[first], base)) return digits_end(l, first, base);
    return digits_end(l, at, 1); // zeros alone
}

static bool lex_number(mf_jlexer *l, mf_jtoken *token) {
    size_t end = float_end(l);
    token->kind = end ? MF_T_FLOAT : MF_T_INTEGER;
    if (!end) end = integer_end(l);
    char *text = mf_arena_alloc(&l->t->arena, end - l->at + 1, 1);
    if (!text) return mf_fail_memory(l->err, end - l->at, "the template");
    size_t n = 0;
    for (size_t i = l->at; i < end; i++)
        if (l->t->source.ptr[i] != '_') text[n++] = l->t->source.ptr[i];
    token->text = (mf_str){text, n};
    move_to(l, end);
    return true;
}

// Up to `most` digits of a base; *n of them were there.
static uint32_t escape_digits(const char *p, const char *end, int base, size_t most, size_t *n) {
    uint32_t value = 0;
    for (*n = 0; *n < most && p + *n < end && in_base(p[*n], base); ++*n) {
        int c = p[*n] | 0x20;
        value = value * (uint32_t)base + (uint32_t)(is_digit(p[*n]) ? p[*n] - '0' : c - 'a' + 10);
    }
    return value;
}

// The escape behind a backslash at p: what it stands for, in up to 12 bytes of `out`. Returns the bytes taken; 0: refused.
static size_t unescape(const mf_jlexer *l, const char *p, const char *end, char *out, size_t *n_out) {
    static const char names[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    size_t n = 0;
    size_t offset = (size_t)(p - l->t->source.ptr) - 1;
    uint32_t cp;
    const char *known = *p ? strchr(names, *p) : NULL;
    *n_out = 0;
    if (*p == '\n') return 1;
    if (known) {
        out[(*n_out)++] = values[known - names];
        return 1;
    }
    if (*p >= '0' && *p <= '7') {
        cp = escape_digits(p, end, 8, 3, &n);
        *n_out = (size_t)mf_utf8_encode(cp, out);
        return n;
    }
    if (*p == 'x' || *p == 'u' || *p == 'U') {
        size_t want = *p == 'x' ? 2 : *p == 'u' ? 4 : 8;
        cp = escape_digits(p + 1, end, 16, want, &n);
        if (n < want) return refuse(l, offset, "a truncated escape in a string"), 0;
        if (cp > 0x10FFFF) return refuse(l, offset, "an escape beyond Unicode"), 0;
        if (cp >= 0xD800 && cp <= 0xDFFF) {
            mf_jrefuse(l->t, offset, MF_ERR_UNSUPPORTED, l->err, "a surrogate escape in a string is not supported");
            return 0;
        }
        *n_out = (size_t)mf_utf8_encode(cp, out);
        return want + 1;
    }
    if (*p == 'N') {
        mf_jrefuse(l->t, offset, MF_ERR_UNSUPPORTED, l->err, "the escape \\N{…} is not supported");
        return 0;
    }
    out[(*n_out)++] = '\\'; // unknown ones stand for themselves
    int len = mf_utf8_decode(p, (size_t)(end - p), &cp);
    if (len <= 1) {
        out[(*n_out)++] = *p;
        return 1;
    }
    // jinja2 escapes what is not ASCII before it unescapes, so that the backslash before it becomes part of its escape.
    *n_out += (size_t)snprintf(out + 1, 12, cp < 0x100 ? "x%02x" : cp < 0x10000 ? "u%04x" : "U%08x", (unsigned)cp);
    return (size_t)len;
}

static bool lex_string(mf_jlexer *l, mf_jtoken *token) {
    const char *s = l->t->source.ptr, *p = s + l->at + 1, *end = s + l->t->source.len;
    char quote = p[-1];
    const char *close = p;
    while (close < end && *close != quote) close += *close == '\\' && close + 1 < end ? 2 : 1;
    if (close >= end) return refuse(l, l->at, "a string without its closing quote");
    char *text = mf_arena_alloc(&l->t->arena, (size_t)(close - p) * 3 + 16, 1);
    if (!text) return mf_fail_memory(l->err, (size_t)(close - p), "the template");
    size_t n = 0;
    while (p < close) {
        if (*p != '\\') {
            text[n++] = *p++;
            continue;
        }
        size_t n_out, taken = unescape(l, p + 1, close, text + n, &n_out);
        if (!taken) return false;
        p += 1 + taken;
        n += n_out;
    }
    token->kind = MF_T_STRING;
    token->text = (mf_str){text, n};
    move_to(l, (size_t)(close - s) + 1);
    return true;
}

static bool lex_operator(mf_jlexer *l, mf_jtoken *token) {
    static const struct {
        char text[3];
        char op;
    } doubles[] = {{"//", MF_T_FLOORDIV}, {"**", MF_T_POW}, {"==", MF_T_EQ},
                   {"!=", MF_T_NE},       {">=", MF_T_GE},  {"<=", MF_T_LE}};
    char c = peek(l, 0);
    token->kind = MF_T_OPERATOR;
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
        if (!stands(l, l->at, doubles[i].text)) continue;
        token->op = doubles[i].op;
        move_to(l, l->at + 2);
        return true;
    }
    if (!c || !strchr("+-/*%~[](){}><=.:|,;", c)) {
        uint32_t cp = 0;
        mf_utf8_decode(l->t->source.ptr + l->at, l->t->source.len - l->at, &cp);
        const char *what =
            cp >= 0x80 ? "a character outside ASCII in an expression is not supported" : "unexpected character '%c'";
        return mf_jrefuse(l->t, l->at, cp >= 0x80 ? MF_ERR_UNSUPPORTED : MF_ERR_FORMAT, l->err, what, c);
    }
    token->op = c;
    if (c == '(' || c == '[' || c == '{') {
        char closing = c == '(' ? ')' : c == '[' ? ']' : '}';
        if (!mf_array_push(&l->open, closing)) return mf_fail_memory(l->err, l->open.len, "the template");
    } else if (c == ')' || c == ']' || c == '}') {
        if (l->open.len == 0) return mf_jrefuse(l->t, l->at, MF_ERR_FORMAT, l->err, "unexpected '%c'", c);
        char want = l->open.data[--l->open.len];
        if (want != c) return mf_jrefuse(l->t, l->at, MF_ERR_FORMAT, l->err, "unexpected '%c', expected '%c'", c, want);
    }
    move_to(l, l->at + 1);
    return true;
}

static bool lex_tag(mf_jlexer *l, mf_jtoken *token) {
    bool block = l->state == MF_LEX_BLOCK;
    size_t space = skip_space(l, l->at), end = 0;
    if (l->open.len == 0) end = tag_end(l, l->at, block ? "%}" : "}}", block);
    if (!end && space > l->at) {
        move_to(l, space);
        if (l->open.len == 0) end = tag_end(l, l->at, block ? "%}" : "}}", block);
    }
    *token = (mf_jtoken){.line = l->line, .from = l->at, .to = l->at};
    if (end) {
        token->kind = block ? MF_T_BLOCK_END : MF_T_VARIABLE_END;
        l->state = MF_LEX_ROOT;
        move_to(l, end);
        return true;
    }
    if (l->at >= l->t->source.len) return true; // MF_T_EOF
    char c = peek(l, 0);
    bool ok;
    if (is_digit(c)) {
        ok = lex_number(l, token);
    } else if (is_word(c)) {
        size_t to = l->at;
        while (to < l->t->source.len && is_word(l->t->source.ptr[to])) to++;
        token->kind = MF_T_NAME;
        token->text = (mf_str){l->t->source.ptr + l->at, to - l->at};
        move_to(l, to);
        ok = true;
    } else if (c == '\'' || c == '"') {
        ok = lex_string(l, token);
    } else {
        ok = lex_operator(l, token);
    }
    token->to = l->at;
    return ok;
}

bool mf_jlex(mf_jlexer *l, mf_jtoken *token) { return l->state == MF_LEX_ROOT ? lex_root(l, token) : lex_tag(l, token); }
