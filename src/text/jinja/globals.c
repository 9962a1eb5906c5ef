// The functions that templates start with.
#define _GNU_SOURCE // tm_gmtoff is not looked at, localtime_r is

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "text/jinja/call.h"
#include "text/jinja/iter.h"
#include "text/jinja/number.h"
#include "text/jinja/run.h"
#include "text/jinja/string.h"

#define GLOBAL(name) static bool name(mf_jrun *run, mf_jargs *args, mf_jval *out)

static bool given(mf_jval v) { return v.type != MF_J_MISSING; }

GLOBAL(do_range) {
    int64_t bounds[3] = {0, 0, 1};
    size_t n = args->n;
    if (args->n_kw) return mf_jraise(run, "range() takes no keyword arguments");
    if (n < 1 || n > 3) return mf_jraise(run, "range expected 1 to 3 arguments, got %zu", n);
    for (size_t i = 0; i < n; i++) {
        if (!mf_jindex(run, args->pos[i], "range", &bounds[n == 1 ? 1 : i])) return false;
        if (args->pos[i].type == MF_J_BIG)
            return mf_jfail(run, MF_ERR_UNSUPPORTED, "a range beyond 64 bits is not supported");
    }
    if (bounds[2] == 0) return mf_jraise(run, "range() arg 3 must not be zero");
    bool down = bounds[2] < 0;
    __int128 distance = down ? (__int128)bounds[0] - bounds[1] : (__int128)bounds[1] - bounds[0];
    __int128 step = down ? -(__int128)bounds[2] : bounds[2], count = distance > 0 ? (distance - 1) / step + 1 : 0;
    if (count > MF_JINJA_RANGE_MAX)
        return mf_jraise(run, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", MF_JINJA_RANGE_MAX);
    mf_jrange *range = mf_jalloc(run, 1, sizeof *range);
    if (!range) return false;
    *range = (mf_jrange){bounds[0], bounds[1], bounds[2], (int64_t)count};
    *out = (mf_jval){.type = MF_J_RANGE, .range = range};
    return true;
}

// dict(mapping or pairs, **keywords), into a dict or namespace.
static bool make_dict(mf_jrun *run, mf_jargs *args, mf_jtype type, mf_jval *out) {
    if (args->n > 1) return mf_jraise(run, "dict expected at most 1 argument, got %zu", args->n);
    mf_jval dict;
    if (!mf_jdict_new(run, type, &dict)) return false;
    if (args->n && args->pos[0].type == MF_J_DICT) {
        if (!mf_jdict_copy(run, args->pos[0].dict, type, &dict)) return false;
    } else if (args->n) {
        mf_jgrow pairs = {0};
        if (!mf_jcollect(run, args->pos[0], &pairs)) return false;
        for (size_t i = 0; i < pairs.n; i++) {
            mf_jgrow pair = {0};
            if (!mf_jcollect(run, pairs.items[i], &pair)) return false;
            if (pair.n != 2)
                return mf_jraise(run, "dictionary update sequence element #%zu has length %zu; 2 is required", i, pair.n);
            if (!mf_jdict_set(run, dict.dict, pair.items[0], pair.items[1])) return false;
        }
    }
    for (size_t i = 0; i < args->n_kw; i++)
        if (!mf_jdict_set(run, dict.dict, args->kw[i].name, args->kw[i].value)) return false;
    *out = dict;
    return true;
}

GLOBAL(do_dict) { return make_dict(run, args, MF_J_DICT, out); }

GLOBAL(do_namespace) {
    if (!make_dict(run, args, MF_J_NAMESPACE, out)) return false;
    for (size_t i = 0; i < out->dict->n; i++) {
        mf_jval key = out->dict->entries[i].key;
        if (key.type == MF_J_STR && key.str->len && *key.str->ptr == '_')
            return mf_jraise(run, "Chat templates cannot store underscore-prefixed attributes on a namespace");
    }
    return true;
}

static bool new_cycler(mf_jrun *run, mf_jtype type, const mf_jval *items, size_t n, mf_jval *out) {
    mf_jcycler *c = mf_jalloc(run, 1, sizeof *c);
    if (!c || !(c->items.items = mf_jalloc(run, n, sizeof *items))) return false;
    memcpy(c->items.items, items, n * sizeof *items);
    c->items.n = n;
    *out = (mf_jval){.type = type, .cycler = c};
    return true;
}

GLOBAL(do_cycler) {
    if (args->n_kw) return mf_jraise(run, "cycler() takes no keyword arguments");
    if (args->n == 0) return mf_jraise(run, "at least one item has to be provided");
    return new_cycler(run, MF_J_CYCLER, args->pos, args->n, out);
}

GLOBAL(do_joiner) {
    mf_jval separator = args->bound[0];
    if (!given(separator) && !mf_jstr_value(run, MF_STR(", "), &separator)) return false;
    return new_cycler(run, MF_J_JOINER, &separator, 1, out);
}

GLOBAL(do_raise) {
    mf_jval text;
    (void)out;
    if (!mf_jto_str(run, args->bound[0], &text)) return false;
    int n = (int)(text.str->len < 300 ? text.str->len : 300);
    run->raised = true;
    return mf_jraise(run, "%.*s", n, text.str->ptr);
}

// strftime() of this moment: a naive time, whose zone is empty text.
static bool format_time(mf_jrun *run, const struct tm *tm, const mf_jstr *format, mf_jval *out) {
    mf_buf plain = {0};
    for (size_t i = 0; i < format->len; i++) {
        char c = format->ptr[i], next = i + 1 < format->len ? format->ptr[i + 1] : 0;
        if (c == '%' && (next == 'z' || next == 'Z' || next == 'f')) {
            i++;
            if (next == 'f') mf_buf_text(&plain, "000000");
        } else {
            mf_buf_char(&plain, c);
            if (c == '%' && next) mf_buf_char(&plain, format->ptr[++i]);
        }
    }
    mf_buf_char(&plain, '.'); // so that an empty result is told from one that does not fit
    size_t room = plain.len * 16 + 256, n = 0;
    char *text = plain.failed ? NULL : mf_jalloc(run, room, 1);
    if (text && !memchr(plain.data, 0, plain.len)) n = strftime(text, room, plain.data, tm);
    free(plain.data);
    if (!text) return mf_jfail(run, MF_ERR_MEMORY, "out of memory");
    if (n == 0) return mf_jraise(run, "strftime_now: the format can't be used");
    mf_jbuild b = {.run = run};
    mf_jbuild_bytes(&b, text, n - 1);
    // Which bytes of a time are the format's own is not known: one marked byte marks all.
    if (mf_jstr_marked(format, 0, format->len)) mf_jbuild_mark(&b, 0);
    return mf_jbuild_done(&b, out);
}

GLOBAL(do_strftime_now) {
    const mf_jstr *format;
    struct tm tm;
    if (!mf_jarg_text(run, args->bound[0], "strftime_now's format", &format)) return false;
    if (!mf_jpay(run, ((uint64_t)format->len + 1) * MF_JCOST_NUMBER / 4)) return false;
    if (format->len > 4096) return mf_jraise(run, "strftime_now: the format is longer than 4096 bytes");
    time_t now = run->now >= 0 ? (time_t)run->now : time(NULL);
    if (!localtime_r(&now, &tm)) return mf_jraise(run, "strftime_now: no local time");
    return format_time(run, &tm, format, out);
}

const mf_jfunction mf_jglobals[] = {
    {"range", NULL, 0, do_range},
    {"dict", NULL, 0, do_dict},
    {"namespace", NULL, 0, do_namespace},
    {"cycler", NULL, 0, do_cycler},
    {"joiner", "sep", 0, do_joiner},
    {"raise_exception", "message", 1, do_raise},
    {"strftime_now", "format", 1, do_strftime_now},
    {NULL, NULL, 0, NULL},
};

const mf_jfunction *mf_jglobal_find(mf_str name) { return mf_jfunction_in(mf_jglobals, name); }
