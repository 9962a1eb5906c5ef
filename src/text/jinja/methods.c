// Methods of text, dicts, lists and the rest.
#include <math.h>
#include <stdio.h>

#include "base/utf8.h"
#include "text/jinja/call.h"
#include "text/jinja/iter.h"
#include "text/jinja/number.h"
#include "text/jinja/run.h"
#include "text/jinja/string.h"

#define METHOD(name) static bool name(mf_jrun *run, mf_jargs *args, mf_jval *out)

static bool given(mf_jval v) { return v.type != MF_J_MISSING; }
static bool given_value(mf_jval v) { return v.type != MF_J_MISSING && v.type != MF_J_NONE; }

// Results of Markup's methods are Markup.
static bool keep_markup(const mf_jargs *args, bool ok, mf_jval *out) {
    if (!ok || !args->self.str->markup) return ok;
    if (out->type == MF_J_STR) out->str->markup = true;
    for (size_t i = 0; mf_jis_seq(*out) && i < out->list->n; i++) out->list->items[i].str->markup = true;
    return true;
}

// An argument of text, escaped where the method is Markup's.
static bool text_arg(mf_jrun *run, mf_jargs *args, int i, bool escape, const mf_jstr **out) {
    if (args->bound[i].type == MF_J_UNDEFINED) return mf_jraise(run, "must be str, not Undefined");
    if (!mf_jarg_text(run, args->bound[i], "the argument", out)) return false;
    if (!escape || !args->self.str->markup || (*out)->markup) return true;
    mf_jbuild b = {.run = run};
    mf_jval v;
    mf_jescape(&b, *out);
    if (!mf_jbuild_done(&b, &v)) return false;
    *out = v.str;
    return true;
}

// ---- Case and kinds of characters

METHOD(str_upper) { return keep_markup(args, mf_jstr_case(run, args->self.str, MF_CASE_UPPER, out), out); }
METHOD(str_lower) { return keep_markup(args, mf_jstr_case(run, args->self.str, MF_CASE_LOWER, out), out); }
METHOD(str_casefold) { return keep_markup(args, mf_jstr_case(run, args->self.str, MF_CASE_FOLD, out), out); }
METHOD(str_title) { return keep_markup(args, mf_jstr_title(run, args->self.str, out), out); }
METHOD(str_capitalize) { return keep_markup(args, mf_jstr_capitalize(run, args->self.str, out), out); }
METHOD(str_swapcase) { return keep_markup(args, mf_jstr_swapcase(run, args->self.str, out), out); }

static bool all_are(mf_jrun *run, const mf_jargs *args, bool (*is)(uint32_t), bool empty, mf_jval *out) {
    const mf_jstr *s = args->self.str;
    bool yes = s->len > 0 || empty;
    if (!mf_jpay(run, 2 * (uint64_t)s->len)) return false;
    for (size_t at = 0; yes && at < s->len;) yes = is(mf_jstr_next(s, &at));
    *out = mf_jbool(yes);
    return true;
}

static bool is_alnum(uint32_t cp) { return mf_is_alpha(cp) || mf_is_numeric(cp) || mf_is_digit(cp); }
static bool is_ascii(uint32_t cp) { return cp < 0x80; }

METHOD(str_isalpha) { return all_are(run, args, mf_is_alpha, false, out); }
METHOD(str_isdecimal) { return all_are(run, args, mf_is_decimal, false, out); }
METHOD(str_isdigit) { return all_are(run, args, mf_is_digit, false, out); }
METHOD(str_isnumeric) { return all_are(run, args, mf_is_numeric, false, out); }
METHOD(str_isalnum) { return all_are(run, args, is_alnum, false, out); }
METHOD(str_isspace) { return all_are(run, args, mf_is_space, false, out); }
METHOD(str_isprintable) { return all_are(run, args, mf_is_printable, true, out); }
METHOD(str_isascii) { return all_are(run, args, is_ascii, true, out); }

// At least one cased character, and none of the other case.
static bool cased(mf_jrun *run, const mf_jargs *args, bool (*is)(uint32_t), bool (*other)(uint32_t), mf_jval *out) {
    const mf_jstr *s = args->self.str;
    bool some = false, none = true;
    if (!mf_jpay(run, 4 * (uint64_t)s->len)) return false;
    for (size_t at = 0; none && at < s->len;) {
        uint32_t cp = mf_jstr_next(s, &at);
        none = !other(cp) && !mf_is_title(cp);
        some = some || is(cp);
    }
    *out = mf_jbool(some && none);
    return true;
}

METHOD(str_isupper) { return cased(run, args, mf_is_upper, mf_is_lower, out); }
METHOD(str_islower) { return cased(run, args, mf_is_lower, mf_is_upper, out); }

METHOD(str_istitle) {
    const mf_jstr *s = args->self.str;
    bool inside = false, some = false, ok = true;
    if (!mf_jpay(run, 4 * (uint64_t)s->len)) return false;
    for (size_t at = 0; ok && at < s->len;) {
        uint32_t cp = mf_jstr_next(s, &at);
        bool capital = mf_is_upper(cp) || mf_is_title(cp), small = mf_is_lower(cp);
        if (capital ? inside : small && !inside) ok = false;
        inside = capital || small;
        some = some || inside;
    }
    *out = mf_jbool(ok && some);
    return true;
}

// ---- Stripping, splitting, replacing

static bool strip(mf_jrun *run, mf_jargs *args, unsigned sides, mf_jval *out) {
    const mf_jstr *chars = NULL;
    if (given_value(args->bound[0]) && !text_arg(run, args, 0, false, &chars)) return false;
    return keep_markup(args, mf_jstr_strip(run, args->self.str, chars, sides, out), out);
}

METHOD(str_strip) { return strip(run, args, MF_J_LEFT | MF_J_RIGHT, out); }
METHOD(str_lstrip) { return strip(run, args, MF_J_LEFT, out); }
METHOD(str_rstrip) { return strip(run, args, MF_J_RIGHT, out); }

static bool split(mf_jrun *run, mf_jargs *args, bool right, mf_jval *out) {
    const mf_jstr *sep = NULL;
    int64_t most;
    if (given_value(args->bound[0]) && !text_arg(run, args, 0, false, &sep)) return false;
    return mf_jarg_int(run, args->bound[1], "maxsplit", -1, &most) &&
           keep_markup(args, mf_jstr_split(run, args->self.str, sep, most, right, out), out);
}

METHOD(str_split) { return split(run, args, false, out); }
METHOD(str_rsplit) { return split(run, args, true, out); }

METHOD(str_splitlines) {
    bool keep;
    if (given(args->bound[0]) && !mf_jis_int(args->bound[0]) && args->bound[0].type != MF_J_UNDEFINED)
        return mf_jraise(run, "'%s' object cannot be interpreted as an integer", mf_jtype_name(args->bound[0]));
    if (args->bound[0].type == MF_J_UNDEFINED) return mf_jundefined_fail(run, args->bound[0]);
    return mf_jarg_true(run, args->bound[0], false, &keep) &&
           keep_markup(args, mf_jstr_splitlines(run, args->self.str, keep, out), out);
}

METHOD(str_replace) {
    const mf_jstr *old, *by;
    int64_t count;
    return text_arg(run, args, 0, false, &old) && text_arg(run, args, 1, true, &by) &&
           mf_jarg_int(run, args->bound[2], "count", -1, &count) &&
           keep_markup(args, mf_jstr_replace(run, args->self.str, old, by, count, out), out);
}

static bool partition(mf_jrun *run, mf_jargs *args, bool right, mf_jval *out) {
    const mf_jstr *s = args->self.str, *sep;
    mf_jval parts;
    if (!text_arg(run, args, 0, false, &sep)) return false;
    if (sep->len == 0) return mf_jraise(run, "empty separator");
    size_t at;
    if (!(right ? mf_jstr_rfind : mf_jstr_find)(run, s, mf_jstr_slice(sep), 0, s->len, &at)) return false;
    bool found = at != SIZE_MAX;
    size_t a = found ? at : right ? 0 : s->len, b = found ? at + sep->len : a;
    if (!mf_jlist_new(run, MF_J_TUPLE, 3, &parts)) return false;
    const size_t bounds[] = {0, a, a, b, b, s->len};
    for (int i = 0; i < 3; i++) {
        mf_jstr *part = mf_jstr_part(run, s, bounds[2 * i], bounds[2 * i + 1]);
        if (!part) return false;
        parts.list->items[i] = mf_jtext(part);
    }
    *out = parts;
    return keep_markup(args, true, out);
}

METHOD(str_partition) { return partition(run, args, false, out); }
METHOD(str_rpartition) { return partition(run, args, true, out); }

METHOD(str_removeprefix) {
    const mf_jstr *s = args->self.str, *what;
    if (!text_arg(run, args, 0, false, &what)) return false;
    if (!mf_jpay_bytes(run, what->len)) return false;
    bool has = mf_str_starts(mf_jstr_slice(s), mf_jstr_slice(what));
    *out = mf_jtext(mf_jstr_part(run, s, has ? what->len : 0, s->len));
    return keep_markup(args, out->str != NULL, out);
}

static bool ends_with(mf_str text, mf_str what) {
    return text.len >= what.len && (what.len == 0 || memcmp(text.ptr + text.len - what.len, what.ptr, what.len) == 0);
}

METHOD(str_removesuffix) {
    const mf_jstr *s = args->self.str, *what;
    if (!text_arg(run, args, 0, false, &what)) return false;
    if (!mf_jpay_bytes(run, what->len)) return false;
    bool has = ends_with(mf_jstr_slice(s), mf_jstr_slice(what));
    *out = mf_jtext(mf_jstr_part(run, s, 0, has ? s->len - what->len : s->len));
    return keep_markup(args, out->str != NULL, out);
}

// ---- Searching

// start and end of an argument list, as bytes. *in is false where the range is empty because start is past the end.
static bool range_args(mf_jrun *run, const mf_jargs *args, size_t *from, size_t *to, bool *in) {
    const mf_jstr *s = args->self.str;
    int64_t n = (int64_t)mf_jstr_chars(s), bounds[2] = {0, n};
    for (int i = 0; i < 2; i++) {
        if (!given_value(args->bound[1 + i])) continue;
        if (!mf_jis_int(args->bound[1 + i])) return mf_jraise(run, "slice indices must be integers or None");
        if (!mf_jindex(run, args->bound[1 + i], "index", &bounds[i])) return false;
        if (bounds[i] < 0) bounds[i] += n;
        if (bounds[i] < 0) bounds[i] = 0;
    }
    if (bounds[1] > n) bounds[1] = n;
    *in = bounds[0] <= bounds[1];
    if (!mf_jpay(run, n < (int64_t)s->len && (bounds[0] > 0 || bounds[1] < n) ? s->len : 1)) return false;
    *from = *in ? mf_jstr_offset(s, (size_t)bounds[0]) : 0;
    *to = !*in ? 0 : bounds[1] == n ? s->len : mf_jstr_offset(s, (size_t)bounds[1]);
    return true;
}

static bool find(mf_jrun *run, mf_jargs *args, bool right, bool must, mf_jval *out) {
    const mf_jstr *s = args->self.str, *what;
    size_t from, to, at = SIZE_MAX, chars = 0;
    bool in;
    if (!text_arg(run, args, 0, false, &what) || !range_args(run, args, &from, &to, &in)) return false;
    if (in && !(right ? mf_jstr_rfind : mf_jstr_find)(run, s, mf_jstr_slice(what), from, to, &at)) return false;
    if (at == SIZE_MAX && must) return mf_jraise(run, "substring not found");
    if (at != SIZE_MAX && !mf_jpay_bytes(run, at)) return false;
    for (size_t i = 0; at != SIZE_MAX && i < at; i++) chars += ((uint8_t)s->ptr[i] & 0xC0) != 0x80;
    *out = mf_jint(at == SIZE_MAX ? -1 : (int64_t)chars);
    return true;
}

METHOD(str_find) { return find(run, args, false, false, out); }
METHOD(str_rfind) { return find(run, args, true, false, out); }
METHOD(str_index) { return find(run, args, false, true, out); }
METHOD(str_rindex) { return find(run, args, true, true, out); }

METHOD(str_count) {
    const mf_jstr *s = args->self.str, *what;
    size_t from, to;
    bool in;
    int64_t n = 0;
    if (!text_arg(run, args, 0, false, &what) || !range_args(run, args, &from, &to, &in)) return false;
    if (what->len == 0 && !mf_jpay(run, s->len)) return false;
    if (in && what->len == 0) { // before each character and at the end
        for (size_t at = from; at < to; n++) mf_jstr_next(s, &at);
        n++;
    }
    while (in && what->len) {
        size_t at;
        if (!mf_jstr_find(run, s, mf_jstr_slice(what), from, to, &at)) return false;
        if (at == SIZE_MAX) break;
        n++;
        from = at + what->len;
    }
    *out = mf_jint(n);
    return true;
}

static bool starts_or_ends(mf_jrun *run, mf_jargs *args, bool ends, mf_jval *out) {
    const mf_jstr *s = args->self.str;
    mf_jval one = args->bound[0], *items = &one;
    size_t n = 1, from, to;
    bool in, yes = false;
    if (one.type == MF_J_TUPLE) items = one.list->items, n = one.list->n;
    if (!range_args(run, args, &from, &to, &in)) return false;
    for (size_t i = 0; i < n && !yes; i++) {
        if (items[i].type != MF_J_STR)
            return mf_jraise(run, "%s first arg must be str or a tuple of str, not %s", ends ? "endswith" : "startswith",
                             mf_jtype_name(items[i]));
        mf_str part = {s->ptr + from, in ? to - from : 0}, what = mf_jstr_slice(items[i].str);
        if (!mf_jpay_bytes(run, what.len <= part.len ? what.len : 0)) return false;
        yes = in && (ends ? ends_with : mf_str_starts)(part, what);
    }
    *out = mf_jbool(yes);
    return true;
}

METHOD(str_startswith) { return starts_or_ends(run, args, false, out); }
METHOD(str_endswith) { return starts_or_ends(run, args, true, out); }

// ---- Layout

// How many characters the text lacks to the width that is asked for; never below 0.
static bool missing_arg(mf_jrun *run, const mf_jargs *args, int64_t *missing) {
    int64_t width, n = (int64_t)mf_jstr_chars(args->self.str);
    if (!mf_jindex(run, args->bound[0], "width", &width)) return false;
    *missing = width > n ? width - n : 0;
    return true;
}

static bool fill_arg(mf_jrun *run, mf_jargs *args, int64_t *missing, const mf_jstr **fill) {
    *fill = NULL;
    if (!missing_arg(run, args, missing)) return false;
    if (!given(args->bound[1])) return true;
    if (!text_arg(run, args, 1, true, fill)) return false;
    return mf_jstr_chars(*fill) == 1 || mf_jraise(run, "The fill character must be exactly one character long");
}

METHOD(str_ljust) {
    int64_t n;
    const mf_jstr *fill;
    return fill_arg(run, args, &n, &fill) && keep_markup(args, mf_jstr_pad(run, args->self.str, 0, n, fill, out), out);
}

METHOD(str_rjust) {
    int64_t n;
    const mf_jstr *fill;
    return fill_arg(run, args, &n, &fill) && keep_markup(args, mf_jstr_pad(run, args->self.str, n, 0, fill, out), out);
}

METHOD(str_center) {
    int64_t n;
    const mf_jstr *fill;
    if (!fill_arg(run, args, &n, &fill)) return false;
    int64_t width = n + (int64_t)mf_jstr_chars(args->self.str), left = n / 2 + (n & width & 1);
    return keep_markup(args, mf_jstr_pad(run, args->self.str, left, n - left, fill, out), out);
}

METHOD(str_zfill) {
    const mf_jstr *s = args->self.str;
    int64_t missing;
    mf_jbuild b = {.run = run};
    if (!missing_arg(run, args, &missing)) return false;
    size_t sign = s->len && (*s->ptr == '-' || *s->ptr == '+');
    mf_jbuild_part(&b, s, 0, sign);
    mf_jbuild_repeat(&b, '0', missing);
    mf_jbuild_part(&b, s, sign, s->len);
    return keep_markup(args, mf_jbuild_done(&b, out), out);
}

METHOD(str_expandtabs) {
    const mf_jstr *s = args->self.str;
    int64_t size, column = 0;
    mf_jbuild b = {.run = run};
    if (!mf_jarg_int(run, args->bound[0], "tabsize", 8, &size)) return false;
    if (!mf_jpay(run, s->len)) return false;
    for (size_t at = 0; at < s->len && !b.failed;) { // while nothing failed, a column is no more than the text's length
        size_t start = at, from = b.len;
        uint32_t cp = mf_jstr_next(s, &at);
        int64_t n = cp == '\t' && size > 0 ? size - column % size : 0;
        if (cp != '\t') {
            mf_jbuild_part(&b, s, start, at);
            column = cp == '\n' || cp == '\r' ? 0 : column + 1;
            continue;
        }
        mf_jbuild_repeat(&b, ' ', n);
        if (mf_jstr_marked(s, start, at)) mf_jbuild_mark(&b, from);
        column += n;
    }
    return keep_markup(args, mf_jbuild_done(&b, out), out);
}

METHOD(str_join) {
    mf_jgrow items = {0};
    mf_jbuild b = {.run = run};
    if (!mf_jcollect(run, args->bound[0], &items)) return false;
    for (size_t i = 0; i < items.n; i++) {
        bool markup = args->self.str->markup;
        if (items.items[i].type != MF_J_STR && !markup)
            return mf_jraise(run, "sequence item %zu: expected str instance, %s found", i, mf_jtype_name(items.items[i]));
        if (i) mf_jbuild_str(&b, args->self.str);
        if (markup) {
            mf_jval text;
            if (!mf_jto_str(run, items.items[i], &text)) return false;
            if (text.str->markup)
                mf_jbuild_str(&b, text.str);
            else
                mf_jescape(&b, text.str);
        } else {
            mf_jbuild_str(&b, items.items[i].str);
        }
    }
    return keep_markup(args, mf_jbuild_done(&b, out), out);
}

METHOD(str_format) { return mf_jformat_method(run, args->self.str, args, out); }

METHOD(str_format_map) {
    mf_jargs own = {.self = args->self};
    if (args->n_kw || args->n != 1) return mf_jraise(run, "format_map() takes exactly one argument");
    if (args->pos[0].type != MF_J_DICT) return mf_jraise(run, "format_map() takes a mapping");
    const mf_jdict *dict = args->pos[0].dict;
    own.kw = mf_jalloc(run, dict->n, sizeof *own.kw);
    if (!own.kw) return false;
    for (size_t i = 0; i < dict->n; i++)
        if (dict->entries[i].key.type == MF_J_STR)
            own.kw[own.n_kw++] = (mf_jkeyword){dict->entries[i].key, dict->entries[i].value};
    return mf_jformat_method(run, args->self.str, &own, out);
}

static const mf_jfunction str_methods[] = {
    {"upper", "", 0, str_upper},
    {"lower", "", 0, str_lower},
    {"casefold", "", 0, str_casefold},
    {"title", "", 0, str_title},
    {"capitalize", "", 0, str_capitalize},
    {"swapcase", "", 0, str_swapcase},
    {"isalpha", "", 0, str_isalpha},
    {"isdecimal", "", 0, str_isdecimal},
    {"isdigit", "", 0, str_isdigit},
    {"isnumeric", "", 0, str_isnumeric},
    {"isalnum", "", 0, str_isalnum},
    {"isspace", "", 0, str_isspace},
    {"isprintable", "", 0, str_isprintable},
    {"isascii", "", 0, str_isascii},
    {"isupper", "", 0, str_isupper},
    {"islower", "", 0, str_islower},
    {"istitle", "", 0, str_istitle},
    {"strip", "/ chars", 0, str_strip},
    {"lstrip", "/ chars", 0, str_lstrip},
    {"rstrip", "/ chars", 0, str_rstrip},
    {"split", "sep maxsplit", 0, str_split},
    {"rsplit", "sep maxsplit", 0, str_rsplit},
    {"splitlines", "keepends", 0, str_splitlines},
    {"replace", "/ old new count", 2, str_replace},
    {"partition", "/ sep", 1, str_partition},
    {"rpartition", "/ sep", 1, str_rpartition},
    {"removeprefix", "/ prefix", 1, str_removeprefix},
    {"removesuffix", "/ suffix", 1, str_removesuffix},
    {"find", "/ sub start end", 1, str_find},
    {"rfind", "/ sub start end", 1, str_rfind},
    {"index", "/ sub start end", 1, str_index},
    {"rindex", "/ sub start end", 1, str_rindex},
    {"count", "/ sub start end", 1, str_count},
    {"startswith", "/ prefix start end", 1, str_startswith},
    {"endswith", "/ suffix start end", 1, str_endswith},
    {"ljust", "/ width fillchar", 1, str_ljust},
    {"rjust", "/ width fillchar", 1, str_rjust},
    {"center", "/ width fillchar", 1, str_center},
    {"zfill", "/ width", 1, str_zfill},
    {"expandtabs", "tabsize", 0, str_expandtabs},
    {"join", "/ iterable", 1, str_join},
    {"format", NULL, 0, str_format},
    {"format_map", NULL, 0, str_format_map},
    {"encode", NULL, 0, NULL},
    {"isidentifier", NULL, 0, NULL},
    {"maketrans", NULL, 0, NULL},
    {"translate", NULL, 0, NULL},
    {NULL, NULL, 0, NULL},
};

// ---- Dicts

METHOD(dict_get) {
    bool ok;
    const mf_jval *found = mf_jdict_find(run, args->self.dict, args->bound[0], &ok);
    *out = found ? *found : given(args->bound[1]) ? args->bound[1] : MF_JNONE;
    return ok;
}

METHOD(dict_keys) { return mf_jview_new(run, args->self.dict, MF_J_KEYS, out); }
METHOD(dict_values) { return mf_jview_new(run, args->self.dict, MF_J_VALUES, out); }
METHOD(dict_items) { return mf_jview_new(run, args->self.dict, MF_J_ITEMS, out); }
METHOD(dict_copy) { return mf_jdict_copy(run, args->self.dict, MF_J_DICT, out); }

static const mf_jfunction dict_methods[] = {
    {"get", "/ key default", 1, dict_get},
    {"keys", "", 0, dict_keys},
    {"values", "", 0, dict_values},
    {"items", "", 0, dict_items},
    {"copy", "", 0, dict_copy},
    {"fromkeys", NULL, 0, NULL},
    {NULL, NULL, 0, NULL},
};

// ---- Lists, tuples, ranges

METHOD(seq_count) {
    int64_t n = 0;
    mf_jiter *it = mf_jiter_of(run, args->self);
    for (bool got = it != NULL; got;) {
        mf_jval item;
        bool equal = false;
        if (!mf_jnext(run, it, &item, &got) || (got && !mf_jequal(run, item, args->bound[0], &equal))) return false;
        n += got && equal;
    }
    *out = mf_jint(n);
    return it != NULL;
}

METHOD(seq_index) {
    int64_t n = (int64_t)args->self.list->n, bounds[2] = {0, n};
    for (int i = 0; i < 2; i++) {
        if (!mf_jarg_int(run, args->bound[1 + i], "index", bounds[i], &bounds[i])) return false;
        if (bounds[i] < 0) bounds[i] = bounds[i] + n < 0 ? 0 : bounds[i] + n;
    }
    for (int64_t i = bounds[0]; i < bounds[1] && i < n; i++) {
        bool equal;
        if (!mf_jequal(run, args->self.list->items[i], args->bound[0], &equal)) return false;
        if (!equal) continue;
        *out = mf_jint(i);
        return true;
    }
    return mf_jraise(run, "the value is not in %s", mf_jtype_name(args->self));
}

METHOD(list_copy) {
    const mf_jlist *from = args->self.list;
    mf_jval copy;
    if (!mf_jlist_new(run, MF_J_LIST, from->n, &copy)) return false;
    if (from->n) memcpy(copy.list->items, from->items, from->n * sizeof *from->items);
    *out = copy;
    return true;
}

static const mf_jfunction list_methods[] = {
    {"count", "/ value", 1, seq_count},
    {"index", "/ value start stop", 1, seq_index},
    {"copy", "", 0, list_copy},
    {NULL, NULL, 0, NULL},
};
static const mf_jfunction tuple_methods[] = {
    {"count", "/ value", 1, seq_count},
    {"index", "/ value start stop", 1, seq_index},
    {NULL, NULL, 0, NULL},
};
static const mf_jfunction range_methods[] = {
    {"count", "/ value", 1, seq_count},
    {"index", NULL, 0, NULL},
    {NULL, NULL, 0, NULL},
};

// ---- Numbers, cyclers

METHOD(float_is_integer) {
    double x = args->self.real;
    *out = mf_jbool(isfinite(x) && floor(x) == x);
    return run != NULL;
}

METHOD(int_bit_length) {
    if (args->self.type == MF_J_BIG)
        return mf_jfail(run, MF_ERR_UNSUPPORTED, "bit_length() beyond 64 bits is not supported");
    int64_t v = args->self.type == MF_J_BOOL ? args->self.boolean : args->self.integer;
    uint64_t magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    int n = 0;
    for (; magnitude; magnitude >>= 1) n++;
    *out = mf_jint(n);
    return true;
}

static const mf_jfunction int_methods[] = {
    {"bit_length", "", 0, int_bit_length},
    {"bit_count", NULL, 0, NULL},
    {"conjugate", NULL, 0, NULL},
    {"to_bytes", NULL, 0, NULL},
    {"from_bytes", NULL, 0, NULL},
    {"as_integer_ratio", NULL, 0, NULL},
    {NULL, NULL, 0, NULL},
};
static const mf_jfunction float_methods[] = {
    {"is_integer", "", 0, float_is_integer},
    {"conjugate", NULL, 0, NULL},
    {"hex", NULL, 0, NULL},
    {"fromhex", NULL, 0, NULL},
    {"as_integer_ratio", NULL, 0, NULL},
    {NULL, NULL, 0, NULL},
};

METHOD(cycler_next) {
    mf_jcycler *c = args->self.cycler;
    *out = c->items.items[c->at];
    c->at = (c->at + 1) % c->items.n;
    return run != NULL;
}

METHOD(cycler_reset) {
    args->self.cycler->at = 0;
    *out = MF_JNONE;
    return run != NULL;
}

static const mf_jfunction cycler_methods[] = {
    {"next", "", 0, cycler_next},
    {"reset", "", 0, cycler_reset},
    {NULL, NULL, 0, NULL},
};

const mf_jfunction *mf_jmethods_of(mf_jtype type) {
    static const mf_jfunction *const tables[] = {
        [MF_J_STR] = str_methods,       [MF_J_DICT] = dict_methods,   [MF_J_LIST] = list_methods,
        [MF_J_TUPLE] = tuple_methods,   [MF_J_RANGE] = range_methods, [MF_J_BOOL] = int_methods,
        [MF_J_INT] = int_methods,       [MF_J_BIG] = int_methods,     [MF_J_FLOAT] = float_methods,
        [MF_J_CYCLER] = cycler_methods, [MF_J_JOINER] = NULL,
    };
    return (size_t)type < sizeof tables / sizeof tables[0] ? tables[type] : NULL;
}

const mf_jfunction *mf_jmethod_find(mf_jtype type, mf_str name) {
    const mf_jfunction *table = mf_jmethods_of(type);
    return table ? mf_jfunction_in(table, name) : NULL;
}
