// str(), repr() and json.dumps() of values.
#include <math.h>
#include <stdio.h>

#include "base/utf8.h"
#include "text/jinja/iter.h"
#include "text/jinja/number.h"
#include "text/jinja/run.h"
#include "text/jinja/string.h"

// ---- repr

static void add_str_repr(mf_jbuild *b, const mf_jstr *s) {
    bool single = memchr(s->ptr, '\'', s->len) && !memchr(s->ptr, '"', s->len);
    char quote = single ? '"' : '\'';
    mf_jbuild_bytes(b, &quote, 1);
    for (size_t at = 0; at < s->len;) {
        size_t start = at;
        uint32_t cp = mf_jstr_next(s, &at);
        char text[16];
        int n;
        if (cp == (uint32_t)quote || cp == '\\')
            n = snprintf(text, sizeof text, "\\%c", (int)cp);
        else if (cp == '\n' || cp == '\r' || cp == '\t')
            n = snprintf(text, sizeof text, "\\%c", cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't');
        else if (mf_is_printable(cp)) {
            mf_jbuild_part(b, s, start, at);
            continue;
        } else
            n = snprintf(text, sizeof text, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", (unsigned)cp);
        if (!b->failed) b->failed = !mf_jpay(b->run, MF_JCOST_PRINT);
        mf_jbuild_as(b, text, (size_t)n, s, start);
    }
    mf_jbuild_bytes(b, &quote, 1);
}

static bool add_items(mf_jbuild *b, const mf_jlist *list, const char *open, const char *close) {
    mf_jbuild_text(b, open);
    for (size_t i = 0; i < list->n; i++) {
        if (i) mf_jbuild_text(b, ", ");
        if (!mf_jadd_repr(b, list->items[i])) return false;
    }
    mf_jbuild_text(b, close);
    return true;
}

static bool add_entries(mf_jbuild *b, const mf_jdict *dict, bool keys, bool values, const char *colon) {
    for (size_t i = 0; i < dict->n; i++) {
        if (i) mf_jbuild_text(b, ", ");
        bool pair = keys && values && *colon == ',';
        if (pair) mf_jbuild_text(b, "(");
        if (keys && !mf_jadd_repr(b, dict->entries[i].key)) return false;
        if (keys && values) mf_jbuild_text(b, colon);
        if (values && !mf_jadd_repr(b, dict->entries[i].value)) return false;
        if (pair) mf_jbuild_text(b, ")");
    }
    return true;
}

static bool add_view(mf_jbuild *b, const mf_jview *view) {
    static const char *const names[] = {"dict_keys([", "dict_values([", "dict_items(["};
    mf_jbuild_text(b, names[view->kind]);
    if (!add_entries(b, view->dict, view->kind != MF_J_VALUES, view->kind != MF_J_KEYS, ", ")) return false;
    mf_jbuild_text(b, "])");
    return true;
}

static bool add_range(mf_jbuild *b, const mf_jrange *r) {
    char text[80];
    int n = snprintf(text, sizeof text, r->step == 1 ? "range(%lld, %lld)" : "range(%lld, %lld, %lld)", (long long)r->start,
                     (long long)r->stop, (long long)r->step);
    mf_jbuild_bytes(b, text, (size_t)n);
    return true;
}

static bool add_number(mf_jbuild *b, mf_jval v) {
    mf_str text;
    char real[40];
    if (v.type == MF_J_FLOAT) {
        if (!mf_jpay(b->run, MF_JCOST_NUMBER)) return false;
        mf_jreal_text(v.real, real);
        mf_jbuild_text(b, real);
        return true;
    }
    if (!mf_jint_text(b->run, v, &text)) return false;
    mf_jbuild_bytes(b, text.ptr, text.len);
    return true;
}

static bool add_inner(mf_jbuild *b, mf_jval v) {
    switch (v.type) {
    case MF_J_STR:
        if (v.str->markup) mf_jbuild_text(b, "Markup(");
        add_str_repr(b, v.str);
        if (v.str->markup) mf_jbuild_text(b, ")");
        return true;
    case MF_J_UNDEFINED: mf_jbuild_text(b, "Undefined"); return true;
    case MF_J_NONE: mf_jbuild_text(b, "None"); return true;
    case MF_J_BOOL: mf_jbuild_text(b, v.boolean ? "True" : "False"); return true;
    case MF_J_INT:
    case MF_J_BIG:
    case MF_J_FLOAT: return add_number(b, v);
    case MF_J_LIST: return add_items(b, v.list, "[", "]");
    case MF_J_TUPLE: return add_items(b, v.list, "(", v.list->n == 1 ? ",)" : ")");
    case MF_J_NAMESPACE:
    case MF_J_DICT:
        mf_jbuild_text(b, v.type == MF_J_DICT ? "{" : "<Namespace {");
        if (!add_entries(b, v.dict, true, true, ": ")) return false;
        mf_jbuild_text(b, v.type == MF_J_DICT ? "}" : "}>");
        return true;
    case MF_J_RANGE: return add_range(b, v.range);
    case MF_J_VIEW: return add_view(b, v.view);
    case MF_J_MACRO: return mf_jmacro_repr(b, v.macro);
    case MF_J_LOOP: return mf_jloop_repr(b, v.loop);
    default: return mf_jfail(b->run, MF_ERR_UNSUPPORTED, "a %s has no text but its address", mf_jtype_name(v));
    }
}

bool mf_jadd_repr(mf_jbuild *b, mf_jval v) {
    if (!mf_jenter(b->run)) return false;
    bool ok = mf_jpay(b->run, MF_JCOST_NODE) && add_inner(b, v);
    mf_jleave(b->run);
    return ok && !b->failed;
}

bool mf_jadd_str(mf_jbuild *b, mf_jval v) {
    if (v.type == MF_J_STR) {
        mf_jbuild_str(b, v.str);
        return !b->failed;
    }
    return v.type == MF_J_UNDEFINED || mf_jadd_repr(b, v);
}

bool mf_jto_str(mf_jrun *run, mf_jval v, mf_jval *out) {
    if (v.type == MF_J_STR) {
        *out = v;
        return true;
    }
    mf_jbuild b = {.run = run};
    return mf_jadd_str(&b, v) && mf_jbuild_done(&b, out);
}

// ---- json.dumps

typedef struct json_writer {
    mf_jbuild b;
    const mf_jjson_options *o;
    size_t depth;
} json_writer;

static void json_text(json_writer *w, const mf_jstr *s) {
    static const char specials[] = "\"\\\n\r\t\f\b", names[] = "\"\\nrtfb";
    mf_jbuild_text(&w->b, "\"");
    size_t start = 0;
    for (size_t at = 0; at < s->len;) {
        size_t from = at;
        uint32_t cp = mf_jstr_next(s, &at);
        const char *special = cp && cp < 0x80 ? strchr(specials, (int)cp) : NULL;
        if (!special && cp >= 0x20 && (cp < 0x7F || !w->o->ascii)) continue;
        mf_jbuild_part(&w->b, s, start, from);
        char text[16];
        int n;
        if (special)
            n = snprintf(text, sizeof text, "\\%c", names[special - specials]);
        else if (cp < 0x10000)
            n = snprintf(text, sizeof text, "\\u%04x", (unsigned)cp);
        else
            n = snprintf(text, sizeof text, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((cp - 0x10000) >> 10)),
                         (unsigned)(0xDC00 + ((cp - 0x10000) & 0x3FF)));
        if (!w->b.failed) w->b.failed = !mf_jpay(w->b.run, MF_JCOST_PRINT);
        mf_jbuild_as(&w->b, text, (size_t)n, s, from);
        start = at;
    }
    mf_jbuild_part(&w->b, s, start, s->len);
    mf_jbuild_text(&w->b, "\"");
}

static bool json_scalar(json_writer *w, mf_jval v) {
    switch (v.type) {
    case MF_J_NONE: mf_jbuild_text(&w->b, "null"); return true;
    case MF_J_BOOL: mf_jbuild_text(&w->b, v.boolean ? "true" : "false"); return true;
    case MF_J_FLOAT:
        if (!isfinite(v.real)) {
            mf_jbuild_text(&w->b, isnan(v.real) ? "NaN" : v.real < 0 ? "-Infinity" : "Infinity");
            return true;
        }
        return add_number(&w->b, v);
    case MF_J_INT:
    case MF_J_BIG: return add_number(&w->b, v);
    case MF_J_STR: json_text(w, v.str); return true;
    default: return mf_jraise(w->b.run, "Object of type %s is not JSON serializable", mf_jtype_name(v));
    }
}

static bool json_key(json_writer *w, mf_jval key) {
    if (key.type == MF_J_STR) {
        json_text(w, key.str);
        return true;
    }
    if (!mf_jis_number(key) && key.type != MF_J_NONE)
        return mf_jraise(w->b.run, "keys must be str, int, float, bool or None, not %s", mf_jtype_name(key));
    mf_jbuild_text(&w->b, "\"");
    if (!json_scalar(w, key)) return false;
    mf_jbuild_text(&w->b, "\"");
    return true;
}

static void json_line(json_writer *w) {
    if (!w->o->indent) return;
    mf_jbuild_text(&w->b, "\n");
    for (size_t i = 0; i < w->depth && !w->b.failed; i++) mf_jbuild_str(&w->b, w->o->indent);
}

static void json_comma(json_writer *w) {
    if (w->o->item)
        mf_jbuild_str(&w->b, w->o->item);
    else
        mf_jbuild_text(&w->b, w->o->indent ? "," : ", ");
    json_line(w);
}

static bool json_value(json_writer *w, mf_jval v);

static bool json_dict(json_writer *w, const mf_jdict *dict) {
    mf_jval sorted = {0};
    if (w->o->sort) {
        mf_jval keys;
        if (!mf_jlist_new(w->b.run, MF_J_LIST, dict->n, &keys)) return false;
        for (size_t i = 0; i < dict->n; i++) keys.list->items[i] = dict->entries[i].key;
        if (!mf_jsort(w->b.run, keys.list->items, NULL, dict->n, false)) return false;
        sorted = keys;
    }
    for (size_t i = 0; i < dict->n; i++) {
        mf_jval key = w->o->sort ? sorted.list->items[i] : dict->entries[i].key, value = dict->entries[i].value;
        if (w->o->sort) {
            bool ok;
            const mf_jval *found = mf_jdict_find(w->b.run, dict, key, &ok);
            if (!found) return false;
            value = *found;
        }
        if (i) json_comma(w);
        if (!json_key(w, key)) return false;
        if (w->o->key)
            mf_jbuild_str(&w->b, w->o->key);
        else
            mf_jbuild_text(&w->b, ": ");
        if (!json_value(w, value)) return false;
    }
    return true;
}

static bool json_items(json_writer *w, const mf_jlist *list) {
    for (size_t i = 0; i < list->n; i++) {
        if (i) json_comma(w);
        if (!json_value(w, list->items[i])) return false;
    }
    return true;
}

static bool json_value(json_writer *w, mf_jval v) {
    bool dict = v.type == MF_J_DICT;
    if (!mf_jpay(w->b.run, MF_JCOST_NODE)) return false;
    if (!dict && !mf_jis_seq(v)) return json_scalar(w, v);
    size_t n = dict ? v.dict->n : v.list->n;
    mf_jbuild_text(&w->b, dict ? "{" : "[");
    if (n) {
        if (!mf_jenter(w->b.run)) return false;
        w->depth++;
        json_line(w);
        if (!(dict ? json_dict(w, v.dict) : json_items(w, v.list))) return false;
        w->depth--;
        json_line(w);
        mf_jleave(w->b.run);
    }
    mf_jbuild_text(&w->b, dict ? "}" : "]");
    return !w->b.failed;
}

bool mf_jto_json(mf_jrun *run, mf_jval v, const mf_jjson_options *options, mf_jval *out) {
    json_writer w = {.b = {.run = run}, .o = options};
    return json_value(&w, v) && mf_jbuild_done(&w.b, out);
}
