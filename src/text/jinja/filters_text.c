// Filters that make text.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "text/jinja/call.h"
#include "text/jinja/iter.h"
#include "text/jinja/number.h"
#include "text/jinja/run.h"
#include "text/jinja/string.h"

#define FILTER(name) static bool name(mf_jrun *run, mf_jargs *args, mf_jval *out)

static bool given(mf_jval v) { return v.type != MF_J_MISSING; }

// soft_str of the value, which str's method then works on; Markup stays Markup.
static bool self_text(mf_jrun *run, mf_jargs *args, mf_jval *text) { return mf_jto_str(run, args->bound[0], text); }

static bool by_method(mf_jrun *run, mf_jargs *args, const char *name, mf_jval *out) {
    mf_jval text;
    mf_jargs call = {.pos = args->bound + 1};
    if (!self_text(run, args, &text)) return false;
    while (call.n + 1 < MF_J_MAX_PARAMS && given(call.pos[call.n])) call.n++;
    call.self = text;
    return mf_jfunction_call(run, mf_jmethod_find(MF_J_STR, mf_str_of(name)), &call, out);
}

FILTER(do_upper) { return by_method(run, args, "upper", out); }
FILTER(do_lower) { return by_method(run, args, "lower", out); }
FILTER(do_capitalize) { return by_method(run, args, "capitalize", out); }
FILTER(do_trim) { return by_method(run, args, "strip", out); }

FILTER(do_center) {
    if (!given(args->bound[1])) args->bound[1] = mf_jint(80);
    return by_method(run, args, "center", out);
}

FILTER(do_string) { return self_text(run, args, out); }

static bool begins_word(uint32_t cp) {
    return mf_is_space(cp) || cp == '-' || cp == '(' || cp == '{' || cp == '[' || cp == '<';
}

// Each run of word beginnings, and each run of other characters, gets its first character in upper case.
FILTER(do_title) {
    mf_jval text, part, rest;
    mf_jbuild b = {.run = run};
    if (!self_text(run, args, &text)) return false;
    const mf_jstr *s = text.str;
    if (!mf_jpay(run, 2 * (uint64_t)s->len)) return false;
    for (size_t at = 0; at < s->len;) {
        size_t start = at, first, end;
        bool begins = begins_word(mf_jstr_next(s, &at));
        first = end = at;
        while (end < s->len && begins_word(mf_jstr_next(s, &end)) == begins) at = end;
        mf_jstr *head = mf_jstr_part(run, s, start, first), *tail = mf_jstr_part(run, s, first, at);
        if (!head || !tail || !mf_jstr_case(run, head, MF_CASE_UPPER, &part) ||
            !mf_jstr_case(run, tail, MF_CASE_LOWER, &rest))
            return false;
        mf_jbuild_str(&b, part.str);
        mf_jbuild_str(&b, rest.str);
    }
    return mf_jbuild_done(&b, out);
}

// str(value) without Markup.
static bool plain_str(mf_jrun *run, mf_jval v, mf_jval *out) {
    if (!mf_jto_str(run, v, out)) return false;
    if (!out->str->markup) return true;
    *out = mf_jtext(mf_jstr_part(run, out->str, 0, out->str->len));
    return out->str != NULL;
}

FILTER(do_replace) {
    mf_jval s, old, by;
    int64_t count;
    if (args->bound[3].type == MF_J_NONE) args->bound[3] = MF_JMISSING;
    return plain_str(run, args->bound[0], &s) && plain_str(run, args->bound[1], &old) &&
           plain_str(run, args->bound[2], &by) && mf_jarg_int(run, args->bound[3], "count", -1, &count) &&
           mf_jstr_replace(run, s.str, old.str, by.str, count, out);
}

static bool to_markup(mf_jrun *run, mf_jval v, bool escape, mf_jval *out) {
    mf_jval text;
    mf_jbuild b = {.run = run};
    if (!mf_jto_str(run, v, &text)) return false;
    if (escape && !text.str->markup)
        mf_jescape(&b, text.str);
    else
        mf_jbuild_str(&b, text.str);
    if (!mf_jbuild_done(&b, out)) return false;
    out->str->markup = true;
    return true;
}

FILTER(do_escape) { return to_markup(run, args->bound[0], true, out); }
FILTER(do_safe) { return to_markup(run, args->bound[0], false, out); }

FILTER(do_forceescape) {
    mf_jval text;
    return plain_str(run, args->bound[0], &text) && to_markup(run, text, true, out);
}

FILTER(do_format) {
    mf_jval text, values;
    if (args->n == 0) return mf_jraise(run, "format() misses an argument");
    if (args->n > 1 && args->n_kw) return mf_jraise(run, "can't handle positional and keyword arguments at the same time");
    if (!mf_jto_str(run, args->pos[0], &text)) return false;
    if (args->n_kw) {
        if (!mf_jdict_new(run, MF_J_DICT, &values)) return false;
        for (size_t i = 0; i < args->n_kw; i++)
            if (!mf_jdict_set(run, values.dict, args->kw[i].name, args->kw[i].value)) return false;
    } else {
        mf_jgrow list = {.items = args->pos + 1, .n = args->n - 1};
        if (!mf_jgrow_list(run, &list, MF_J_TUPLE, &values)) return false;
    }
    return mf_jpercent(run, text.str, values, out);
}

// The text that an int or str argument stands for: so many spaces, or itself.
static bool indention_of(mf_jrun *run, mf_jval width, mf_jval *out) {
    int64_t n;
    if (width.type == MF_J_STR) return *out = width, true;
    mf_jbuild b = {.run = run};
    if (!mf_jarg_int(run, width, "indent", 4, &n)) return false;
    mf_jbuild_repeat(&b, ' ', n);
    return mf_jbuild_done(&b, out);
}

FILTER(do_indent) {
    mf_jval with, lines, newline, text = args->bound[0];
    bool first, blank;
    if (!indention_of(run, args->bound[1], &with) || !mf_jarg_true(run, args->bound[2], false, &first) ||
        !mf_jarg_true(run, args->bound[3], false, &blank) || !mf_jstr_value(run, MF_STR("\n"), &newline) ||
        !mf_jbinary(run, MF_J_ADD, text, newline, &text))
        return false;
    if (text.type != MF_J_STR) return mf_jraise(run, "'%s' object has no attribute 'splitlines'", mf_jtype_name(text));
    if (!mf_jstr_splitlines(run, text.str, false, &lines)) return false;
    mf_jbuild b = {.run = run};
    for (size_t i = 0; i < lines.list->n; i++) {
        const mf_jstr *line = lines.list->items[i].str;
        if (i) mf_jbuild_as(&b, "\n", 1, text.str, (size_t)(line->ptr - text.str->ptr) - 1); // for the line end there
        if (i ? blank || line->len : first) mf_jbuild_str(&b, with.str);
        mf_jbuild_str(&b, line);
    }
    if (!mf_jbuild_done(&b, out)) return false;
    out->str->markup = text.str->markup;
    return true;
}

// A number with a default, as Python compares it.
static bool real_arg(mf_jrun *run, mf_jval v, double otherwise, double *out) {
    *out = otherwise;
    if (!given(v)) return true;
    if (!mf_jis_number(v)) return mf_jraise(run, "'>=' not supported between instances of '%s' and 'int'", mf_jtype_name(v));
    return mf_jto_real(run, v, out);
}

FILTER(do_truncate) {
    mf_jval end, s = args->bound[0];
    double length, leeway;
    size_t n;
    bool killwords, has;
    if (args->bound[4].type == MF_J_NONE) args->bound[4] = MF_JMISSING;
    if (!real_arg(run, args->bound[1], 255, &length) || !mf_jarg_true(run, args->bound[2], false, &killwords) ||
        !real_arg(run, args->bound[4], 5, &leeway))
        return false;
    if (given(args->bound[3]) ? !mf_jto_str(run, args->bound[3], &end) : !mf_jstr_value(run, MF_STR("..."), &end))
        return false;
    double keep = length - (double)mf_jstr_chars(end.str);
    if (!(keep >= 0)) return mf_jraise(run, "expected length >= %zu, got %g", mf_jstr_chars(end.str), length);
    if (!(leeway >= 0)) return mf_jraise(run, "expected leeway >= 0, got %g", leeway);
    if (!mf_jlength(run, s, &n, &has)) return false;
    if (has && (double)n <= length + leeway) return *out = s, true; // of any type
    if (s.type != MF_J_STR) return mf_jraise(run, "object of type '%s' can't be truncated", mf_jtype_name(s));
    if (args->bound[1].type == MF_J_FLOAT) return mf_jraise(run, "slice indices must be integers or None");
    size_t to = mf_jstr_offset(s.str, (size_t)keep), space = SIZE_MAX;
    if (!mf_jpay_bytes(run, to) || (!killwords && !mf_jstr_rfind(run, s.str, MF_STR(" "), 0, to, &space))) return false;
    mf_jval head = mf_jtext(mf_jstr_part(run, s.str, 0, space != SIZE_MAX ? space : to));
    if (!head.str) return false;
    head.str->markup = s.str->markup;
    return mf_jstr_concat(run, head.str, end.str, out);
}

FILTER(do_wordcount) {
    mf_jval text;
    int64_t n = 0;
    bool inside = false;
    if (!self_text(run, args, &text) || !mf_jpay(run, 2 * (uint64_t)text.str->len)) return false;
    for (size_t at = 0; at < text.str->len;) {
        bool word = mf_is_word(mf_jstr_next(text.str, &at));
        n += word && !inside;
        inside = word;
    }
    *out = mf_jint(n);
    return true;
}

FILTER(do_striptags) {
    mf_jval text;
    mf_jbuild kept = {.run = run}, b = {.run = run};
    if (!plain_str(run, args->bound[0], &text)) return false;
    const mf_jstr *s = text.str;
    size_t at = 0;
    for (;;) {
        size_t start, end = SIZE_MAX;
        if (!mf_jstr_find(run, s, MF_STR("<"), at, s->len, &start)) return false;
        if (start == SIZE_MAX) break;
        bool comment = mf_str_starts((mf_str){s->ptr + start, s->len - start}, MF_STR("<!--"));
        mf_str close = comment ? MF_STR("-->") : MF_STR(">");
        if (!mf_jstr_find(run, s, close, comment ? start + 4 : start, s->len, &end)) return false;
        if (end == SIZE_MAX) break;
        mf_jbuild_part(&kept, s, at, start);
        at = end + (comment ? 3 : 1);
    }
    mf_jbuild_part(&kept, s, at, s->len);
    mf_jval words;
    if (!mf_jbuild_done(&kept, &text) || !mf_jstr_split(run, text.str, NULL, -1, false, &words)) return false;
    for (size_t i = 0; i < words.list->n; i++) {
        const mf_jstr *word = words.list->items[i].str;
        if (i) mf_jbuild_as(&b, " ", 1, text.str, (size_t)(word->ptr - text.str->ptr) - 1); // for the white space there
        mf_jbuild_str(&b, word);
    }
    if (!mf_jbuild_done(&b, out)) return false;
    if (memchr(out->str->ptr, '&', out->str->len))
        return mf_jfail(run, MF_ERR_UNSUPPORTED, "striptags of HTML entities is not supported");
    return true;
}

static void quote_url(mf_jbuild *b, const mf_jstr *s, bool query) {
    if (!b->failed) b->failed = !mf_jpay(b->run, (uint64_t)s->len * MF_JCOST_PRINT);
    for (size_t i = 0; i < s->len && !b->failed; i++) {
        unsigned char c = (unsigned char)s->ptr[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c && strchr("_.-~", c)) || (c == '/' && !query);
        char text[4];
        int n = plain               ? snprintf(text, sizeof text, "%c", c)
                : query && c == ' ' ? snprintf(text, sizeof text, "+")
                                    : snprintf(text, sizeof text, "%%%02X", c);
        mf_jbuild_as(b, text, (size_t)n, s, i);
    }
}

FILTER(do_urlencode) {
    mf_jval v = args->bound[0], text;
    mf_jbuild b = {.run = run};
    if (v.type == MF_J_STR || !mf_jiterable(v)) {
        if (!mf_jto_str(run, v, &text)) return false;
        quote_url(&b, text.str, false);
        return mf_jbuild_done(&b, out);
    }
    mf_jgrow pairs = {0};
    if (v.type == MF_J_DICT && !mf_jview_new(run, v.dict, MF_J_ITEMS, &v)) return false;
    if (!mf_jcollect(run, v, &pairs)) return false;
    for (size_t i = 0; i < pairs.n; i++) {
        mf_jgrow pair = {0};
        if (!mf_jcollect(run, pairs.items[i], &pair)) return false;
        if (pair.n != 2) return mf_jraise(run, "urlencode needs pairs");
        for (size_t k = 0; k < 2; k++) {
            if (!mf_jto_str(run, pair.items[k], &text)) return false;
            if (i || k) mf_jbuild_text(&b, k ? "=" : "&");
            quote_url(&b, text.str, true);
        }
    }
    return mf_jbuild_done(&b, out);
}

FILTER(do_xmlattr) {
    mf_jbuild b = {.run = run};
    bool space;
    if (args->bound[0].type == MF_J_UNDEFINED) return mf_jundefined_fail(run, args->bound[0]);
    if (args->bound[0].type != MF_J_DICT) return mf_jraise(run, "xmlattr needs a mapping");
    const mf_jdict *d = args->bound[0].dict;
    if (!mf_jarg_true(run, args->bound[1], true, &space)) return false;
    for (size_t i = 0; i < d->n; i++) {
        mf_jval key = d->entries[i].key, value = d->entries[i].value, text;
        if (value.type == MF_J_NONE || value.type == MF_J_UNDEFINED) continue;
        if (key.type != MF_J_STR) return mf_jraise(run, "expected string, got '%s'", mf_jtype_name(key));
        if (!mf_jpay(run, key.str->len)) return false;
        for (size_t k = 0; k < key.str->len; k++)
            if (key.str->ptr[k] && strchr(" \t\n\r\f\v/>=", key.str->ptr[k]))
                return mf_jraise(run, "Invalid character in attribute name");
        if (b.len || space) mf_jbuild_text(&b, " ");
        if (!to_markup(run, key, true, &text)) return false;
        mf_jbuild_str(&b, text.str);
        mf_jbuild_text(&b, "=\"");
        if (!to_markup(run, value, true, &text)) return false;
        mf_jbuild_str(&b, text.str);
        mf_jbuild_text(&b, "\"");
    }
    return mf_jbuild_done(&b, out);
}

FILTER(do_filesizeformat) {
    static const char *const decimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
    static const char *const binary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
    mf_jval v = args->bound[0], text;
    double bytes;
    bool two, ok;
    if (!mf_jarg_true(run, args->bound[1], false, &two)) return false;
    if (v.type == MF_J_UNDEFINED) return mf_jundefined_fail(run, v);
    if (v.type == MF_J_STR) {
        if (!mf_jparse_real(run, mf_jstr_slice(v.str), &bytes, &ok)) return false;
        if (!ok) return mf_jraise(run, "could not convert string to float");
    } else if (!mf_jis_number(v)) {
        return mf_jraise(run, "float() argument must be a string or a real number, not '%s'", mf_jtype_name(v));
    } else if (!mf_jto_real(run, v, &bytes)) {
        return false;
    }
    double base = two ? 1024 : 1000;
    char line[400];
    int n;
    if (bytes == 1) {
        n = snprintf(line, sizeof line, "1 Byte");
    } else if (bytes < base) {
        if (!mf_jfrom_real(run, bytes, &v) || !mf_jto_str(run, v, &text)) return false;
        n = snprintf(line, sizeof line, "%.*s Bytes", (int)text.str->len, text.str->ptr);
    } else {
        double unit = base * base;
        int i = 0;
        for (; i < 7 && bytes >= unit; i++) unit *= base;
        n = snprintf(line, sizeof line, "%.1f %s", base * bytes / unit, (two ? binary : decimal)[i]);
    }
    mf_jbuild b = {.run = run};
    mf_jbuild_bytes(&b, line, (size_t)n);
    return mf_jbuild_done(&b, out);
}

// A separator of tojson's pair, or the indent.
static bool json_text_arg(mf_jrun *run, mf_jval v, const mf_jstr **out) {
    return v.type == MF_J_STR ? (*out = v.str, true) : mf_jraise(run, "separators must be str, not %s", mf_jtype_name(v));
}

FILTER(do_tojson) {
    mf_jjson_options o = {0};
    mf_jval *a = args->bound, indent;
    if (!mf_jarg_true(run, a[1], false, &o.ascii) || !mf_jarg_true(run, a[4], false, &o.sort)) return false;
    bool indented = given(a[2]) && a[2].type != MF_J_NONE && a[0].type != MF_J_STR; // Python doesn't look at it for a text
    if (indented && a[2].type == MF_J_UNDEFINED) return mf_jundefined_fail(run, a[2]);
    if (indented) {
        if (!indention_of(run, a[2], &indent)) return false;
        o.indent = indent.str;
    }
    if (given(a[3]) && a[3].type != MF_J_NONE) {
        mf_jgrow pair = {0};
        if (!mf_jcollect(run, a[3], &pair)) return false;
        if (pair.n != 2) return mf_jraise(run, "separators must be two");
        if (!json_text_arg(run, pair.items[0], &o.item) || !json_text_arg(run, pair.items[1], &o.key)) return false;
    }
    return mf_jto_json(run, a[0], &o, out);
}

const mf_jfunction mf_jtext_filters[] = {
    {"upper", "s", 1, do_upper},
    {"lower", "s", 1, do_lower},
    {"capitalize", "s", 1, do_capitalize},
    {"title", "s", 1, do_title},
    {"trim", "value chars", 1, do_trim},
    {"center", "value width", 1, do_center},
    {"string", "s", 1, do_string},
    {"replace", "s old new count", 3, do_replace},
    {"e", "s", 1, do_escape},
    {"escape", "s", 1, do_escape},
    {"forceescape", "value", 1, do_forceescape},
    {"safe", "value", 1, do_safe},
    {"format", NULL, 0, do_format},
    {"indent", "s width first blank", 1, do_indent},
    {"truncate", "s length killwords end leeway", 1, do_truncate},
    {"wordcount", "s", 1, do_wordcount},
    {"striptags", "value", 1, do_striptags},
    {"urlencode", "value", 1, do_urlencode},
    {"xmlattr", "d autospace", 1, do_xmlattr},
    {"filesizeformat", "value binary", 1, do_filesizeformat},
    {"tojson", "x ensure_ascii indent separators sort_keys", 1, do_tojson},
    {"pprint", NULL, 0, NULL},
    {"urlize", NULL, 0, NULL},
    {"wordwrap", NULL, 0, NULL},
    {NULL, NULL, 0, NULL},
};
