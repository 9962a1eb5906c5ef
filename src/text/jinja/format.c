// `text % values` and text.format(values), with the same layout of numbers and text below both.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "text/jinja/call.h"
#include "text/jinja/number.h"
#include "text/jinja/run.h"
#include "text/jinja/string.h"

enum {
    MOST_PRECISION = 400,
    MOST_WIDTH = 1 << 20,
};

// How a value is laid out.
typedef struct layout {
    uint32_t fill; // 0: a space
    char align;    // < > = ^, 0: the type's own
    char sign;     // + or space, 0: only minus
    bool alternate, zero;
    int64_t width;
    char group;        // , or _, 0: none
    int64_t precision; // -1: none
    char type;         // 0: none
} layout;

// ---- Numbers

// sign, prefix, digits, with padding after the prefix for '='.
static void put_number(mf_jbuild *b, const layout *l, bool negative, const char *prefix, const char *digits) {
    char head[8];
    snprintf(head, sizeof head, "%s%s", negative ? "-" : l->sign == '+' ? "+" : l->sign == ' ' ? " " : "", prefix);
    int64_t pad = l->width - (int64_t)(strlen(head) + strlen(digits));
    char align = l->align ? l->align : l->zero ? '=' : '>';
    uint32_t fill = l->fill ? l->fill : l->zero ? '0' : ' ';
    int64_t left = align == '>' ? pad : align == '^' ? pad / 2 : 0;
    mf_jbuild_repeat(b, fill, left);
    mf_jbuild_text(b, head);
    if (align == '=') mf_jbuild_repeat(b, fill, pad);
    mf_jbuild_text(b, digits);
    if (align == '<' || align == '^') mf_jbuild_repeat(b, fill, pad - left);
}

// Digits with a separator between groups, in the arena.
static char *grouped(mf_jrun *run, const char *digits, size_t n, size_t every, char separator) {
    char *out = mf_jalloc(run, n * 2 + 1, 1), *p = out;
    for (size_t i = 0; out && i < n; i++) {
        if (i && (n - i) % every == 0) *p++ = separator;
        *p++ = digits[i];
    }
    return out;
}

static bool put_int(mf_jbuild *b, const layout *l, mf_jval v, char type) {
    mf_str text;
    char based[80], *digits;
    int base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
    const char *prefix = !l->alternate ? ""
                         : type == 'x' ? "0x"
                         : type == 'X' ? "0X"
                         : type == 'o' ? "0o"
                         : type == 'b' ? "0b"
                                       : "";
    bool negative;
    if (base == 10) {
        if (!mf_jint_text(b->run, v, &text)) return false;
        negative = *text.ptr == '-';
        digits = (char *)text.ptr + negative;
    } else {
        if (v.type == MF_J_BIG)
            return mf_jfail(b->run, MF_ERR_UNSUPPORTED, "integers beyond 64 bits in base %d are not supported", base);
        int64_t value = v.type == MF_J_BOOL ? v.boolean : v.integer;
        negative = value < 0;
        uint64_t magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value;
        digits = based + sizeof based - 1;
        *digits = 0;
        do *--digits = (type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[magnitude % (unsigned)base];
        while (magnitude /= (unsigned)base);
    }
    size_t n = strlen(digits);
    if (l->precision > (int64_t)n) { // of %: at least so many digits
        char *padded = mf_jalloc(b->run, (size_t)l->precision + 1, 1);
        if (!padded) return false;
        memset(padded, '0', (size_t)l->precision - n);
        memcpy(padded + l->precision - n, digits, n + 1);
        digits = padded;
    }
    if (l->group && (l->zero || l->align == '='))
        return mf_jfail(b->run, MF_ERR_UNSUPPORTED, "a number format with separators and padding is not supported");
    if (l->group && !(digits = grouped(b->run, digits, strlen(digits), base == 10 ? 3 : 4, l->group))) return false;
    put_number(b, l, negative, prefix, digits);
    return true;
}

// The digits of a float without its sign.
static void real_digits(double value, const layout *l, char type, char *out, size_t room) {
    char format[16];
    snprintf(format, sizeof format, "%%%s.*%c", l->alternate ? "#" : "", type);
    int precision = l->precision < 0 ? 6 : (int)l->precision;
    snprintf(out, room, format, precision, fabs(value));
}

static void add_point(char *text, size_t room) {
    if (strpbrk(text, ".en")) return; // a point, an exponent, inf or nan
    size_t n = strlen(text);
    snprintf(text + n, room - n, ".0");
}

static bool put_real(mf_jbuild *b, const layout *l, double value, char type) {
    char text[800];
    // printf makes all digits of a large number, then those that are asked for.
    int64_t printed = (fabs(value) > 1e15 ? 300 : 0) + (l->precision > 0 ? l->precision : 0);
    if (!mf_jpay(b->run, MF_JCOST_NUMBER + 4 * (uint64_t)printed)) return false;
    bool percent = type == '%', negative = signbit(value) && !isnan(value);
    if (percent) value *= 100;
    if (!isfinite(value)) {
        snprintf(text, sizeof text,
                 type >= 'A' && type <= 'Z' ? (isnan(value) ? "NAN" : "INF")
                 : isnan(value)             ? "nan"
                                            : "inf");
    } else if (!type && l->precision < 0) {
        mf_jreal_text(fabs(value), text);
    } else if (!type) { // as g, but with a digit behind the point, and an exponent one place earlier
        layout general = *l;
        if (general.precision == 0) general.precision = 1;
        char digits[800];
        snprintf(digits, sizeof digits, "%.*e", (int)general.precision - 1, fabs(value));
        int exponent = (int)strtol(strchr(digits, 'e') + 1, NULL, 10);
        bool scientific = exponent < -4 || exponent >= general.precision - (general.precision > 1 ? 1 : 0);
        if (general.precision == 1) scientific = exponent < -4 || exponent >= 1;
        if (!scientific) {
            real_digits(value, &general, 'g', text, sizeof text);
            add_point(text, sizeof text);
        } else {
            char *e = strchr(digits, 'e'), *end = e;
            while (strchr(digits, '.') && end > digits && end[-1] == '0') end--;
            if (end > digits && end[-1] == '.') end--;
            snprintf(text, sizeof text, "%.*s%s", (int)(end - digits), digits, e);
        }
    } else {
        real_digits(value, l, percent ? 'f' : type, text, sizeof text - 2);
    }
    if (l->group) {
        if (l->zero || l->align == '=')
            return mf_jfail(b->run, MF_ERR_UNSUPPORTED, "a number format with separators and padding is not supported");
        size_t whole = strspn(text, "0123456789");
        char *head = grouped(b->run, text, whole, 3, l->group), tail[800];
        if (!head) return false;
        snprintf(tail, sizeof tail, "%s", text + whole);
        snprintf(text, sizeof text, "%s%s", head, tail);
    }
    size_t n = strlen(text);
    if (percent) snprintf(text + n, sizeof text - n, "%%");
    put_number(b, l, negative, "", text);
    return true;
}

// ---- Text

static void put_str(mf_jbuild *b, const layout *l, const mf_jstr *s) {
    size_t chars = mf_jstr_chars(s), to = s->len;
    if (l->precision >= 0 && (uint64_t)l->precision < chars) {
        chars = (size_t)l->precision;
        to = mf_jstr_offset(s, chars);
    }
    int64_t pad = l->width - (int64_t)chars;
    char align = l->align ? l->align : '<';
    uint32_t fill = l->fill ? l->fill : l->zero ? '0' : ' ';
    int64_t left = align == '>' ? pad : align == '^' ? pad / 2 : 0;
    mf_jbuild_repeat(b, fill, left);
    mf_jbuild_part(b, s, 0, to);
    if (align != '>') mf_jbuild_repeat(b, fill, pad - left);
}

// ascii(): what repr() leaves beyond ASCII is escaped too.
static bool to_ascii(mf_jrun *run, const mf_jstr *s, mf_jval *out) {
    mf_jbuild b = {.run = run};
    for (size_t at = 0; at < s->len;) {
        size_t start = at;
        uint32_t cp = mf_jstr_next(s, &at);
        char text[16];
        int n = snprintf(text, sizeof text, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
        if (cp < 0x80)
            mf_jbuild_part(&b, s, start, at);
        else
            mf_jbuild_as(&b, text, (size_t)n, s, start);
    }
    return mf_jbuild_done(&b, out);
}

static bool convert(mf_jrun *run, mf_jval v, char how, mf_jval *out) {
    mf_jbuild b = {.run = run};
    if (how == 's') {
        if (v.type != MF_J_STR || v.str->markup) return mf_jadd_str(&b, v) && mf_jbuild_done(&b, out);
        *out = v;
        return true;
    }
    if (!mf_jadd_repr(&b, v) || !mf_jbuild_done(&b, out)) return false;
    return how != 'a' || to_ascii(run, out->str, out);
}

// ---- %

typedef struct percent {
    mf_jbuild b;
    const mf_jstr *format;
    size_t at;
    mf_jval values; // a tuple, or one value
    size_t next;
    bool mapped; // a %(key) was used
    mf_jval keyed;
    bool has_keyed;
} percent;

static bool next_value(percent *p, mf_jval *out) {
    if (p->has_keyed) {
        *out = p->keyed;
        return true;
    }
    bool tuple = p->values.type == MF_J_TUPLE;
    size_t n = tuple ? p->values.list->n : 1;
    if (p->next >= n) return mf_jraise(p->b.run, "not enough arguments for format string");
    *out = tuple ? p->values.list->items[p->next] : p->values;
    p->next++;
    return true;
}

static char format_char(const percent *p) { return p->at < p->format->len ? p->format->ptr[p->at] : 0; }

static bool take_key(percent *p) {
    if (format_char(p) != '(') return true;
    size_t start = ++p->at;
    int depth = 1;
    for (; p->at < p->format->len; p->at++) {
        char c = p->format->ptr[p->at];
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (depth == 0) break;
    }
    if (depth) return mf_jraise(p->b.run, "incomplete format key");
    if (p->values.type != MF_J_DICT) return mf_jraise(p->b.run, "format requires a mapping");
    mf_jval key;
    bool ok;
    if (!mf_jstr_value(p->b.run, (mf_str){p->format->ptr + start, p->at++ - start}, &key)) return false;
    const mf_jval *found = mf_jdict_find(p->b.run, p->values.dict, key, &ok);
    if (!found) return ok && mf_jraise(p->b.run, "KeyError: '%.*s'", (int)key.str->len, key.str->ptr);
    p->keyed = *found;
    p->has_keyed = p->mapped = true;
    return true;
}

static bool take_count(percent *p, int64_t *out) {
    *out = 0;
    if (format_char(p) == '*') {
        mf_jval v;
        p->at++;
        if (!next_value(p, &v)) return false;
        if (!mf_jis_int(v)) return mf_jraise(p->b.run, "* wants int");
        return mf_jindex(p->b.run, v, "width", out);
    }
    for (char c; (c = format_char(p)) >= '0' && c <= '9' && *out < MOST_WIDTH; p->at++) *out = *out * 10 + (c - '0');
    return true;
}

static bool take_layout(percent *p, layout *l) {
    bool left = false;
    for (;; p->at++) {
        char c = format_char(p);
        if (c == '-')
            left = true;
        else if (c == '+')
            l->sign = '+';
        else if (c == ' ')
            l->sign = l->sign ? l->sign : ' ';
        else if (c == '#')
            l->alternate = true;
        else if (c == '0')
            l->zero = true;
        else
            break;
    }
    if (!take_count(p, &l->width)) return false;
    if (l->width < 0) {
        left = true;
        l->width = l->width < -MOST_WIDTH ? MOST_WIDTH + 1 : -l->width;
    }
    if (format_char(p) == '.') {
        p->at++;
        if (!take_count(p, &l->precision)) return false;
        if (l->precision < 0) l->precision = 0;
    }
    if (left) l->align = '<';
    if (left) l->zero = false;
    if (l->width > MOST_WIDTH || l->precision > MOST_WIDTH) return mf_jraise(p->b.run, "width or precision too big");
    while (format_char(p) && strchr("hlL", format_char(p))) p->at++;
    return true;
}

static bool percent_int(percent *p, layout *l, mf_jval v, char type) {
    if (v.type == MF_J_UNDEFINED) return mf_jundefined_fail(p->b.run, v);
    bool decimal = strchr("diu", type) != NULL;
    if (!mf_jis_int(v) && !(decimal && v.type == MF_J_FLOAT))
        return mf_jraise(p->b.run,
                         decimal ? "%%%c format: a real number is required, not %s"
                                 : "%%%c format: an integer is required, not %s",
                         type, mf_jtype_name(v));
    if (v.type == MF_J_FLOAT && !mf_jfrom_real(p->b.run, v.real, &v)) return false;
    return put_int(&p->b, l, v, decimal ? 'd' : type);
}

static bool percent_real(percent *p, layout *l, mf_jval v, char type) {
    double value;
    if (v.type == MF_J_UNDEFINED) return mf_jundefined_fail(p->b.run, v);
    if (!mf_jis_number(v)) return mf_jraise(p->b.run, "must be real number, not %s", mf_jtype_name(v));
    if (l->precision > MOST_PRECISION)
        return mf_jfail(p->b.run, MF_ERR_UNSUPPORTED, "a precision over %d is not supported", MOST_PRECISION);
    return mf_jto_real(p->b.run, v, &value) && put_real(&p->b, l, value, type);
}

static bool percent_char(percent *p, layout *l, mf_jval v) {
    char bytes[4];
    mf_jval text = v;
    if (mf_jis_int(v)) {
        int64_t cp;
        if (!mf_jindex(p->b.run, v, "%c", &cp)) return false;
        if (cp < 0 || cp > 0x10FFFF) return mf_jraise(p->b.run, "%%c arg not in range(0x110000)");
        if (cp >= 0xD800 && cp <= 0xDFFF) return mf_jfail(p->b.run, MF_ERR_UNSUPPORTED, "surrogates are not supported");
        mf_jbuild b = {.run = p->b.run};
        mf_jbuild_bytes(&b, bytes, (size_t)mf_utf8_encode((uint32_t)cp, bytes));
        mf_jbuild_mark(&b, 0); // numbers have no marks: this one may be a conversation's
        if (!mf_jbuild_done(&b, &text)) return false;
    } else if (v.type != MF_J_STR || mf_jstr_chars(v.str) != 1) {
        return mf_jraise(p->b.run, "%%c requires int or char");
    }
    l->precision = -1;
    if (!l->align) l->align = '>';
    put_str(&p->b, l, text.str);
    return true;
}

static bool percent_field(percent *p) {
    layout l = {.precision = -1};
    mf_jval v, text;
    p->has_keyed = false;
    if (!take_key(p) || !take_layout(p, &l)) return false;
    char type = format_char(p);
    if (!type) return mf_jraise(p->b.run, "incomplete format");
    p->at++;
    if (type == '%') {
        mf_jbuild_part(&p->b, p->format, p->at - 1, p->at);
        return true;
    }
    if (!strchr("sradiuoxXeEfFgGc", type)) return mf_jraise(p->b.run, "unsupported format character '%c'", type);
    if (!next_value(p, &v)) return false;
    if (strchr("diuoxX", type)) return percent_int(p, &l, v, type);
    if (strchr("eEfFgG", type)) return percent_real(p, &l, v, type);
    if (type == 'c') return percent_char(p, &l, v);
    if (!convert(p->b.run, v, type, &text)) return false;
    if (!l.align) l.align = '>';
    l.zero = false;
    put_str(&p->b, &l, text.str);
    return true;
}

// A field whose layout came from a conversation is marked as a whole.
static bool percent_one(percent *p) {
    size_t from = p->at, start = p->b.len;
    if (!percent_field(p)) return false;
    if (mf_jstr_marked(p->format, from, p->at)) mf_jbuild_mark(&p->b, start);
    return true;
}

bool mf_jpercent(mf_jrun *run, const mf_jstr *format, mf_jval values, mf_jval *out) {
    percent p = {.b = {.run = run}, .format = format, .values = values};
    if (format->markup) return mf_jfail(run, MF_ERR_UNSUPPORTED, "%% on Markup is not supported");
    while (p.at < format->len) {
        if (!mf_jpay(run, MF_JCOST_CALL)) return false;
        const char *found = memchr(format->ptr + p.at, '%', format->len - p.at);
        size_t to = found ? (size_t)(found - format->ptr) : format->len;
        mf_jbuild_part(&p.b, format, p.at, to);
        p.at = to + 1;
        if (found && !percent_one(&p)) return false;
    }
    bool tuple = values.type == MF_J_TUPLE;
    bool mapping =
        values.type == MF_J_DICT || values.type == MF_J_LIST || values.type == MF_J_UNDEFINED || values.type == MF_J_RANGE;
    if (!p.mapped && !mapping && p.next < (tuple ? values.list->n : 1))
        return mf_jraise(run, "not all arguments converted during string formatting");
    return mf_jbuild_done(&p.b, out);
}

// ---- format()

typedef struct formatter {
    mf_jrun *run;
    const mf_jargs *args;
    int64_t automatic; // the next index; -1: indices are given
} formatter;

static bool bad_spec(mf_jrun *run) { return mf_jraise(run, "Invalid format specifier"); }

static bool read_number(const mf_jstr *s, size_t *at, int64_t *out) {
    *out = 0;
    for (; *at < s->len && s->ptr[*at] >= '0' && s->ptr[*at] <= '9'; ++*at)
        if (*out <= MOST_WIDTH) *out = *out * 10 + (s->ptr[*at] - '0');
    return *out <= MOST_WIDTH;
}

static bool is_align(const mf_jstr *s, size_t at) { return at < s->len && s->ptr[at] && strchr("<>=^", s->ptr[at]); }

// [[fill]align][sign][#][0][width][,_][.precision][type]
static bool read_spec(mf_jrun *run, const mf_jstr *s, layout *l) {
    size_t at = 0, second = 0;
    *l = (layout){.precision = -1};
    if (s->len) mf_jstr_next(s, &second);
    if (is_align(s, second)) {
        l->fill = mf_jstr_next(s, &at);
        l->align = s->ptr[at++];
    } else if (is_align(s, 0)) {
        l->align = s->ptr[at++];
    }
    if (at < s->len && strchr("+- ", s->ptr[at]) && s->ptr[at]) l->sign = s->ptr[at] == '-' ? 0 : s->ptr[at], at++;
    if (at < s->len && s->ptr[at] == '#') l->alternate = true, at++;
    if (at < s->len && s->ptr[at] == '0') l->zero = !l->align, l->fill = l->fill ? l->fill : l->align ? '0' : 0, at++;
    if (!read_number(s, &at, &l->width)) return mf_jraise(run, "Too many decimal digits in format string");
    if (at < s->len && (s->ptr[at] == ',' || s->ptr[at] == '_')) l->group = s->ptr[at++];
    if (at < s->len && s->ptr[at] == '.') {
        size_t start = ++at;
        if (!read_number(s, &at, &l->precision) || at == start) return mf_jraise(run, "Format specifier missing precision");
    }
    if (at < s->len) l->type = s->ptr[at++];
    return at == s->len || bad_spec(run);
}

static bool format_str(mf_jbuild *b, const layout *l, mf_jval v) {
    if (l->type && l->type != 's') return mf_jraise(b->run, "Unknown format code '%c' for object of type 'str'", l->type);
    if (l->sign || l->alternate || l->group || l->align == '=') return bad_spec(b->run);
    put_str(b, l, v.str);
    return true;
}

static bool format_number(mf_jbuild *b, const layout *l, mf_jval v) {
    bool integer = mf_jis_int(v);
    double value;
    if (l->type == 'n') return mf_jfail(b->run, MF_ERR_UNSUPPORTED, "the format code 'n' is not supported");
    if (integer && (!l->type || strchr("dxXob", l->type))) {
        if (l->precision >= 0) return mf_jraise(b->run, "Precision not allowed in integer format specifier");
        return put_int(b, l, v, l->type ? l->type : 'd');
    }
    if (integer && l->type == 'c') return mf_jfail(b->run, MF_ERR_UNSUPPORTED, "the format code 'c' is not supported");
    if (l->type && !strchr("eEfFgG%", l->type))
        return mf_jraise(b->run, "Unknown format code '%c' for object of type '%s'", l->type, mf_jtype_name(v));
    if (l->precision > MOST_PRECISION)
        return mf_jfail(b->run, MF_ERR_UNSUPPORTED, "a precision over %d is not supported", MOST_PRECISION);
    return mf_jto_real(b->run, v, &value) && put_real(b, l, value, l->type);
}

// A field whose layout came from a conversation is marked as a whole.
static bool format_value(mf_jbuild *b, mf_jval v, const mf_jstr *spec) {
    layout l;
    size_t start = b->len;
    if (spec->len == 0) return mf_jadd_str(b, v);
    if (v.type != MF_J_STR && !mf_jis_number(v))
        return mf_jraise(b->run, "unsupported format string passed to %s.__format__", mf_jtype_name(v));
    if (!read_spec(b->run, spec, &l)) return false;
    if (!(v.type == MF_J_STR ? format_str(b, &l, v) : format_number(b, &l, v))) return false;
    if (mf_jstr_marked(spec, 0, spec->len)) mf_jbuild_mark(b, start);
    return true;
}

// The first part of a field's name: an argument by place or by name.
static bool field_value(formatter *f, mf_str name, mf_jval *out) {
    bool digits = name.len > 0;
    int64_t index = 0;
    for (size_t i = 0; i < name.len; i++) {
        digits = digits && name.ptr[i] >= '0' && name.ptr[i] <= '9';
        if (digits && index < MOST_WIDTH) index = index * 10 + (name.ptr[i] - '0');
    }
    if (digits) {
        if (index >= (int64_t)f->args->n)
            return mf_jraise(f->run, "Replacement index %lld out of range for positional args tuple", (long long)index);
        *out = f->args->pos[index];
        return true;
    }
    if (!mf_jpay(f->run, f->args->n_kw)) return false;
    for (size_t i = 0; i < f->args->n_kw; i++) {
        if (!mf_str_eq(mf_jstr_slice(f->args->kw[i].name.str), name)) continue;
        *out = f->args->kw[i].value;
        return true;
    }
    return mf_jraise(f->run, "KeyError: '%.*s'", (int)(name.len < 80 ? name.len : 80), name.ptr);
}

// ".attribute" and "[element]" behind the first part.
static bool field_rest(formatter *f, mf_str rest, mf_jval *v) {
    for (size_t at = 0; at < rest.len;) {
        bool bracket = rest.ptr[at] == '[';
        size_t start = ++at;
        while (at < rest.len && (bracket ? rest.ptr[at] != ']' : rest.ptr[at] != '.' && rest.ptr[at] != '[')) at++;
        mf_str part = {rest.ptr + start, at - start};
        if (bracket && at++ >= rest.len) return mf_jraise(f->run, "Missing ']' in format string");
        if (part.len == 0) return mf_jraise(f->run, "Empty attribute in format string");
        if (bracket && at < rest.len && rest.ptr[at] != '.' && rest.ptr[at] != '[')
            return mf_jraise(f->run, "Only '.' or '[' may follow ']' in format field specifier");
        mf_jval key;
        int64_t index;
        if (bracket && *part.ptr >= '0' && *part.ptr <= '9' && mf_parse_i64(part, &index))
            key = mf_jint(index);
        else if (!mf_jstr_value(f->run, part, &key))
            return false;
        if (!(bracket ? mf_jgetitem : mf_jgetattr)(f->run, *v, key, v)) return false;
    }
    return true;
}

static bool format_text(formatter *f, const mf_jstr *s, int depth, mf_jbuild *b);

// One field [from, to) of s: name, "!conversion", ":spec".
static bool format_field(formatter *f, const mf_jstr *s, size_t from, size_t to, int depth, mf_jbuild *b) {
    size_t end = from, bracket = 0;
    for (; end < to && (bracket || (s->ptr[end] != '!' && s->ptr[end] != ':')); end++)
        bracket = s->ptr[end] == '[' ? 1 : s->ptr[end] == ']' ? 0 : bracket;
    mf_str name = {s->ptr + from, end - from};
    char conversion = 0, number[24];
    if (end < to && s->ptr[end] == '!') {
        if (end + 1 >= to) return mf_jraise(f->run, "end of string while looking for conversion specifier");
        conversion = s->ptr[end + 1];
        end += 2;
        if (end < to && s->ptr[end] != ':') return mf_jraise(f->run, "expected ':' after conversion specifier");
    }
    if (memchr(name.ptr, '{', name.len) || memchr(name.ptr, '}', name.len))
        return mf_jraise(f->run, "unexpected '{' in field name");
    size_t first = 0;
    bool digits = name.len > 0;
    while (first < name.len && name.ptr[first] != '.' && name.ptr[first] != '[') first++;
    for (size_t i = 0; i < name.len; i++) digits = digits && name.ptr[i] >= '0' && name.ptr[i] <= '9';
    mf_str head = {name.ptr, first};
    if (name.len == 0) {
        if (f->automatic < 0)
            return mf_jraise(f->run, "cannot switch from manual field specification to automatic field numbering");
        head = (mf_str){number, (size_t)snprintf(number, sizeof number, "%lld", (long long)f->automatic++)};
    } else if (digits) {
        if (f->automatic > 0)
            return mf_jraise(f->run, "cannot switch from manual field specification to automatic field numbering");
        f->automatic = -1;
    }
    mf_jval v, spec;
    if (!field_value(f, head, &v) || !field_rest(f, (mf_str){name.ptr + first, name.len - first}, &v)) return false;
    if (conversion && !strchr("sra", conversion)) return mf_jraise(f->run, "Unknown conversion specifier %c", conversion);
    if (conversion && !convert(f->run, v, conversion, &v)) return false;
    mf_jstr *part = mf_jstr_part(f->run, s, end < to ? end + 1 : to, to);
    mf_jbuild inner = {.run = f->run};
    return part && format_text(f, part, depth - 1, &inner) && mf_jbuild_done(&inner, &spec) && format_value(b, v, spec.str);
}

static bool format_text(formatter *f, const mf_jstr *s, int depth, mf_jbuild *b) {
    if (depth < 0) return mf_jraise(f->run, "Max string recursion exceeded");
    if (!mf_jpay(f->run, 2 * (uint64_t)s->len)) return false;
    for (size_t at = 0; at < s->len;) {
        char c = s->ptr[at];
        if (c != '{' && c != '}') {
            size_t start = at;
            while (at < s->len && s->ptr[at] != '{' && s->ptr[at] != '}') at++;
            mf_jbuild_part(b, s, start, at);
            continue;
        }
        if (at + 1 < s->len && s->ptr[at + 1] == c) {
            mf_jbuild_part(b, s, at, at + 1);
            at += 2;
            continue;
        }
        if (c == '}') return mf_jraise(f->run, "Single '}' encountered in format string");
        if (at + 1 == s->len) return mf_jraise(f->run, "Single '{' encountered in format string");
        size_t start = ++at, nested = 1;
        for (; at < s->len; at++) {
            nested += s->ptr[at] == '{' ? 1 : 0;
            if (s->ptr[at] == '}' && --nested == 0) break;
        }
        if (at >= s->len) return mf_jraise(f->run, "expected '}' before end of string");
        if (!format_field(f, s, start, at++, depth, b)) return false;
    }
    return !b->failed;
}

bool mf_jformat_method(mf_jrun *run, const mf_jstr *format, const mf_jargs *args, mf_jval *out) {
    formatter f = {.run = run, .args = args};
    mf_jbuild b = {.run = run};
    if (format->markup) return mf_jfail(run, MF_ERR_UNSUPPORTED, "format() of Markup is not supported");
    return format_text(&f, format, 2, &b) && mf_jbuild_done(&b, out);
}
