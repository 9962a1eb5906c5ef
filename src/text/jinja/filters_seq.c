// Filters over sequences.
#include <stdio.h>

#include "text/jinja/call.h"
#include "text/jinja/iter.h"
#include "text/jinja/number.h"
#include "text/jinja/run.h"
#include "text/jinja/string.h"

#define FILTER(name) static bool name(mf_jrun *run, mf_jargs *args, mf_jval *out)

static bool given(mf_jval v) { return v.type != MF_J_MISSING; }
static bool given_value(mf_jval v) { return v.type != MF_J_MISSING && v.type != MF_J_NONE; }

// ---- Attributes by path: "a.b.0"

typedef struct path {
    mf_jgrow parts;
    mf_jval otherwise; // what an undefined step becomes; MF_J_MISSING: nothing else
    bool ignore_case;
} path;

static bool all_digits(const mf_jstr *s) {
    for (size_t at = 0; at < s->len;)
        if (!mf_is_digit(mf_jstr_next(s, &at))) return false;
    return s->len > 0;
}

static bool path_of(mf_jrun *run, mf_jval attribute, path *p) {
    mf_jval pieces;
    const mf_jstr dot = {.ptr = ".", .len = 1, .chars = 1};
    if (!given_value(attribute)) return true;
    if (attribute.type != MF_J_STR) return mf_jgrow_push(run, &p->parts, attribute);
    if (!mf_jstr_split(run, attribute.str, &dot, -1, false, &pieces)) return false;
    for (size_t i = 0; i < pieces.list->n; i++) {
        mf_jval part = pieces.list->items[i];
        bool ok;
        if (all_digits(part.str)) {
            if (!mf_jparse_int(run, mf_jstr_slice(part.str), 10, &part, &ok)) return false;
            if (!ok) return mf_jraise(run, "invalid literal for int() with base 10");
        }
        if (!mf_jgrow_push(run, &p->parts, part)) return false;
    }
    return true;
}

static bool walk_path(mf_jrun *run, const path *p, mf_jval item, mf_jval *out) {
    for (size_t i = 0; i < p->parts.n; i++) {
        if (!mf_jgetitem(run, item, p->parts.items[i], &item)) return false;
        if (given_value(p->otherwise) && item.type == MF_J_UNDEFINED) item = p->otherwise;
    }
    *out = item;
    return !p->ignore_case || item.type != MF_J_STR || mf_jstr_case(run, item.str, MF_CASE_LOWER, out);
}

// The keys of items by a path.
static bool keys_of(mf_jrun *run, const path *p, const mf_jgrow *items, mf_jval *keys) {
    if (!mf_jlist_new(run, MF_J_LIST, items->n, keys)) return false;
    for (size_t i = 0; i < items->n; i++)
        if (!walk_path(run, p, items->items[i], &keys->list->items[i])) return false;
    return true;
}

// ---- Generators

typedef struct generator {
    mf_jargs args; // of the filter
    path p;
    bool reject, by_attribute, started;
    size_t skip;  // arguments before those of the inner filter or test
    mf_jval seen; // unique: a dict
} generator;

static bool start(mf_jrun *run, mf_jiter *it, generator *g, bool *any) {
    *any = true;
    if (g->started) return true;
    g->started = true;
    if (!mf_jtruth(run, it->source, any)) return false;
    if (!*any) return true;
    if (g->by_attribute && g->args.n < 2) return mf_jraise(run, "Missing parameter for attribute name");
    return (!g->by_attribute || path_of(run, g->args.pos[1], &g->p)) && (it->inner = mf_jiter_of(run, it->source));
}

static bool next_mapped(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    generator *g = it->state;
    *got = false;
    if (!g->started) {
        bool any;
        g->started = true;
        if (!mf_jtruth(run, it->source, &any)) return false;
        if (!any) return true;
        for (size_t i = 0; i < g->args.n_kw && g->args.n < 2; i++) {
            mf_str name = mf_jstr_slice(g->args.kw[i].name.str);
            if (mf_str_is(name, "attribute"))
                g->by_attribute = true;
            else if (!mf_str_is(name, "default"))
                g->reject = true; // an unknown keyword
        }
        if (!g->by_attribute && g->args.n < 2) return mf_jraise(run, "map requires a filter argument");
        if (g->reject) return mf_jraise(run, "map() got an unexpected keyword argument");
        for (size_t i = 0; g->by_attribute && i < g->args.n_kw; i++) {
            bool attribute = mf_str_is(mf_jstr_slice(g->args.kw[i].name.str), "attribute");
            if (attribute && !path_of(run, g->args.kw[i].value, &g->p)) return false;
            if (!attribute) g->p.otherwise = g->args.kw[i].value;
        }
        if (!(it->inner = mf_jiter_of(run, it->source))) return false;
    }
    mf_jval item;
    if (!it->inner) return true;
    if (!mf_jnext(run, it->inner, &item, got)) return false;
    if (!*got) return true;
    if (g->by_attribute) return walk_path(run, &g->p, item, out);
    return mf_jcall_named(run, true, g->args.pos[1], item, &g->args, 2, out);
}

static bool next_selected(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    generator *g = it->state;
    bool any;
    *got = false;
    if (!start(run, it, g, &any)) return false;
    if (!it->inner) return true;
    for (;;) {
        mf_jval item, tested;
        bool yes;
        if (!mf_jnext(run, it->inner, &item, got)) return false;
        if (!*got) return true;
        if (!walk_path(run, &g->p, item, &tested)) return false;
        if (g->args.n > g->skip && !mf_jcall_named(run, false, g->args.pos[g->skip], tested, &g->args, g->skip + 1, &tested))
            return false;
        if (!mf_jtruth(run, tested, &yes)) return false;
        if (yes != g->reject) return *out = item, true;
    }
}

static bool next_unique(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    generator *g = it->state;
    if (!it->inner && !(it->inner = mf_jiter_of(run, it->source))) return false;
    for (;;) {
        mf_jval item, key;
        bool ok;
        if (!mf_jnext(run, it->inner, &item, got)) return false;
        if (!*got) return true;
        if (!walk_path(run, &g->p, item, &key)) return false;
        const mf_jval *known = mf_jdict_find(run, g->seen.dict, key, &ok);
        if (!ok) return false;
        if (known) continue;
        *out = item;
        return mf_jdict_set(run, g->seen.dict, key, MF_JNONE);
    }
}

static generator *new_generator(mf_jrun *run, const mf_jargs *args) {
    generator *g = mf_jalloc(run, 1, sizeof *g);
    if (g) g->args = *args;
    return g;
}

FILTER(do_map) {
    if (args->n == 0) return mf_jraise(run, "map() misses an argument");
    generator *g = new_generator(run, args);
    return g && mf_jgenerator(run, next_mapped, args->pos[0], g, out);
}

static bool select_filter(mf_jrun *run, mf_jargs *args, bool reject, bool attribute, mf_jval *out) {
    if (args->n == 0) return mf_jraise(run, "the filter misses an argument");
    generator *g = new_generator(run, args);
    if (!g) return false;
    g->reject = reject;
    g->by_attribute = attribute;
    g->skip = attribute ? 2 : 1;
    return mf_jgenerator(run, next_selected, args->pos[0], g, out);
}

FILTER(do_select) { return select_filter(run, args, false, false, out); }
FILTER(do_reject) { return select_filter(run, args, true, false, out); }
FILTER(do_selectattr) { return select_filter(run, args, false, true, out); }
FILTER(do_rejectattr) { return select_filter(run, args, true, true, out); }

FILTER(do_unique) {
    generator *g = new_generator(run, args);
    bool sensitive;
    if (!g || !mf_jarg_true(run, args->bound[1], false, &sensitive) || !path_of(run, args->bound[2], &g->p) ||
        !mf_jdict_new(run, MF_J_DICT, &g->seen))
        return false;
    g->p.ignore_case = !sensitive;
    return mf_jgenerator(run, next_unique, args->bound[0], g, out);
}

static bool next_pair(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    *got = false;
    if (it->source.type == MF_J_UNDEFINED) return true;
    if (it->source.type != MF_J_DICT) return mf_jraise(run, "Can only get item pairs from a mapping.");
    const mf_jdict *d = it->source.dict;
    *got = it->at < d->n;
    if (!*got) return true;
    const mf_jentry *e = &d->entries[it->at++];
    return mf_jpair(run, e->key, e->value, out);
}

FILTER(do_items) { return mf_jgenerator(run, next_pair, args->bound[0], NULL, out); }

// A row of a batch or slice, with what fills it.
static bool row(mf_jrun *run, const mf_jgrow *items, size_t from, size_t n, size_t total, mf_jval fill, mf_jval *out) {
    mf_jval list;
    if (!mf_jlist_new(run, MF_J_LIST, total, &list)) return false;
    for (size_t i = 0; i < total; i++) list.list->items[i] = i < n ? items->items[from + i] : fill;
    *out = list;
    return true;
}

// Batches and slices are made when the first one is asked for; a generator then gives them.
typedef struct rows {
    mf_jval count, fill, made;
    bool slice;
} rows;

static bool make_slices(mf_jrun *run, const mf_jgrow *items, const rows *r, mf_jgrow *out) {
    int64_t n;
    size_t at = 0;
    if (!mf_jindex(run, r->count, "slice", &n)) return false;
    if (n == 0) return mf_jraise(run, "integer division or modulo by zero");
    if (n > MF_JINJA_RANGE_MAX) return mf_jfail(run, MF_ERR_LIMIT, "more than %d slices", MF_JINJA_RANGE_MAX);
    for (int64_t i = 0; i < n; i++) {
        mf_jval list;
        size_t each = items->n / (size_t)n, longer = items->n % (size_t)n, own = each + ((size_t)i < longer);
        bool fill = given_value(r->fill) && (size_t)i >= longer;
        if (!row(run, items, at, own, own + fill, r->fill, &list) || !mf_jgrow_push(run, out, list)) return false;
        at += own;
    }
    return true;
}

static bool make_batches(mf_jrun *run, const mf_jgrow *items, const rows *r, mf_jgrow *out) {
    int64_t n;
    if (r->count.type == MF_J_UNDEFINED || !mf_jis_int(r->count))
        return mf_jfail(run, MF_ERR_UNSUPPORTED, "batch needs a whole number");
    if (!mf_jindex(run, r->count, "batch", &n)) return false;
    if (n < 1) n = n == 0 ? 0 : INT64_MAX; // Python's list never has a negative length
    if (n == 0) return mf_jfail(run, MF_ERR_UNSUPPORTED, "batches of no items are not supported");
    if (given_value(r->fill) && n > MF_JINJA_RANGE_MAX) n = MF_JINJA_RANGE_MAX + 1;
    for (size_t at = 0; at < items->n;) {
        mf_jval list;
        size_t own = items->n - at < (size_t)n ? items->n - at : (size_t)n;
        size_t total = given_value(r->fill) && n <= MF_JINJA_RANGE_MAX ? (size_t)n : own;
        if (!row(run, items, at, own, total, r->fill, &list) || !mf_jgrow_push(run, out, list)) return false;
        at += own;
    }
    return true;
}

static bool next_row(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    rows *r = it->state;
    if (!given(r->made)) {
        mf_jgrow items = {0}, all = {0};
        if (!mf_jcollect(run, it->source, &items) || !(r->slice ? make_slices : make_batches)(run, &items, r, &all) ||
            !mf_jgrow_list(run, &all, MF_J_LIST, &r->made))
            return false;
    }
    *got = it->at < r->made.list->n;
    if (*got) *out = r->made.list->items[it->at++];
    return true;
}

static bool in_rows(mf_jrun *run, mf_jargs *args, bool slice, mf_jval *out) {
    rows *r = mf_jalloc(run, 1, sizeof *r);
    if (!r) return false;
    *r = (rows){.count = args->bound[1], .fill = args->bound[2], .slice = slice};
    return mf_jgenerator(run, next_row, args->bound[0], r, out);
}

FILTER(do_batch) { return in_rows(run, args, false, out); }
FILTER(do_slice) { return in_rows(run, args, true, out); }

// ---- Sorting and grouping

// sorted()'s reverse: an int, as C has it.
static bool reverse_arg(mf_jrun *run, mf_jval v, bool *reverse) {
    int64_t value;
    *reverse = false;
    if (!given(v)) return true;
    if (v.type == MF_J_UNDEFINED) return mf_jraise(run, "'Undefined' object cannot be interpreted as an integer");
    if (!mf_jindex(run, v, "reverse", &value)) return false;
    if (value < INT32_MIN || value > INT32_MAX) return mf_jraise(run, "Python int too large to convert to C int");
    *reverse = value != 0;
    return true;
}

FILTER(do_sort) {
    mf_jgrow items = {0};
    bool reverse, sensitive;
    mf_jval keys;
    const mf_jstr comma = {.ptr = ",", .len = 1, .chars = 1};
    if (!mf_jcollect(run, args->bound[0], &items) || !reverse_arg(run, args->bound[1], &reverse) ||
        !mf_jarg_true(run, args->bound[2], false, &sensitive))
        return false;
    mf_jval attributes = {0};
    size_t n = 1;
    if (args->bound[3].type == MF_J_STR) {
        if (!mf_jstr_split(run, args->bound[3].str, &comma, -1, false, &attributes)) return false;
        n = attributes.list->n;
    }
    if (!mf_jlist_new(run, MF_J_LIST, items.n, &keys)) return false;
    for (size_t k = 0; k < n; k++) {
        path p = {.ignore_case = !sensitive};
        if (!path_of(run, args->bound[3].type == MF_J_STR ? attributes.list->items[k] : args->bound[3], &p)) return false;
        for (size_t i = 0; i < items.n; i++) {
            if (k == 0 && !mf_jlist_new(run, MF_J_LIST, n, &keys.list->items[i])) return false;
            if (!walk_path(run, &p, items.items[i], &keys.list->items[i].list->items[k])) return false;
        }
    }
    return mf_jsort(run, items.items, keys.list->items, items.n, reverse) && mf_jgrow_list(run, &items, MF_J_LIST, out);
}

FILTER(do_dictsort) {
    bool sensitive, reverse;
    mf_jval by = args->bound[2], keys;
    if (args->bound[0].type == MF_J_UNDEFINED) return mf_jundefined_fail(run, args->bound[0]);
    if (args->bound[0].type != MF_J_DICT)
        return mf_jraise(run, "'%s' object has no attribute 'items'", mf_jtype_name(args->bound[0]));
    const mf_jdict *d = args->bound[0].dict;
    bool key = !given(by) || (mf_jis_str(by) && mf_str_is(mf_jstr_slice(by.str), "key"));
    if (!key && !(mf_jis_str(by) && mf_str_is(mf_jstr_slice(by.str), "value")))
        return mf_jraise(run, "You can only sort by either \"key\" or \"value\"");
    if (!mf_jarg_true(run, args->bound[1], false, &sensitive) || !reverse_arg(run, args->bound[3], &reverse) ||
        !mf_jlist_new(run, MF_J_LIST, d->n, &keys) || !mf_jlist_new(run, MF_J_LIST, d->n, out))
        return false;
    for (size_t i = 0; i < d->n; i++) {
        mf_jval sort_by = key ? d->entries[i].key : d->entries[i].value;
        if (!sensitive && sort_by.type == MF_J_STR && !mf_jstr_case(run, sort_by.str, MF_CASE_LOWER, &sort_by)) return false;
        keys.list->items[i] = sort_by;
        if (!mf_jpair(run, d->entries[i].key, d->entries[i].value, &out->list->items[i])) return false;
    }
    return mf_jsort(run, out->list->items, keys.list->items, d->n, reverse);
}

FILTER(do_groupby) {
    mf_jgrow items = {0}, groups = {0};
    path p = {.otherwise = args->bound[2]}, real = {.otherwise = args->bound[2]};
    bool sensitive;
    mf_jval keys;
    if (!mf_jcollect(run, args->bound[0], &items) || !mf_jarg_true(run, args->bound[3], false, &sensitive) ||
        !path_of(run, args->bound[1], &p) || !path_of(run, args->bound[1], &real))
        return false;
    p.ignore_case = !sensitive;
    if (!keys_of(run, &p, &items, &keys) || !mf_jsort(run, items.items, keys.list->items, items.n, false)) return false;
    for (size_t at = 0; at < items.n;) {
        size_t end = at + 1;
        for (bool equal = true; end < items.n; end++) {
            if (!mf_jequal(run, keys.list->items[at], keys.list->items[end], &equal)) return false;
            if (!equal) break;
        }
        mf_jval key, list, group;
        if (!walk_path(run, &real, items.items[at], &key) || !row(run, &items, at, end - at, end - at, MF_JNONE, &list) ||
            !mf_jpair(run, key, list, &group))
            return false;
        group.list->group = true;
        if (!mf_jgrow_push(run, &groups, group)) return false;
        at = end;
    }
    return mf_jgrow_list(run, &groups, MF_J_LIST, out);
}

static bool extreme(mf_jrun *run, mf_jargs *args, bool largest, mf_jval *out) {
    mf_jgrow items = {0};
    path p = {0};
    bool sensitive;
    mf_jval keys;
    if (!mf_jcollect(run, args->bound[0], &items) || !mf_jarg_true(run, args->bound[1], false, &sensitive)) return false;
    if (items.n == 0) return mf_jundefined_hint(run, "No aggregated item, sequence was empty.", out);
    p.ignore_case = !sensitive;
    if (!path_of(run, args->bound[2], &p) || !keys_of(run, &p, &items, &keys)) return false;
    size_t best = 0;
    for (size_t i = 1; i < items.n; i++) {
        mf_jval a = keys.list->items[i], b = keys.list->items[best];
        bool better;
        if (!mf_jcompare(run, largest ? 4 : 2, a, b, &better)) return false; // MF_J_GT, MF_J_LT
        if (better) best = i;
    }
    *out = items.items[best];
    return true;
}

FILTER(do_min) { return extreme(run, args, false, out); }
FILTER(do_max) { return extreme(run, args, true, out); }

// ---- The rest

FILTER(do_first) {
    mf_jiter *it = mf_jiter_of(run, args->bound[0]);
    bool got;
    if (!it || !mf_jnext(run, it, out, &got)) return false;
    return got || mf_jundefined_hint(run, "No first item, sequence was empty.", out);
}

static bool reversible(mf_jrun *run, mf_jval v) {
    if (v.type == MF_J_ITER || v.type == MF_J_LOOP) return mf_jraise(run, "'%s' object is not reversible", mf_jtype_name(v));
    return true;
}

FILTER(do_last) {
    mf_jgrow items = {0};
    if (!reversible(run, args->bound[0]) || !mf_jcollect(run, args->bound[0], &items)) return false;
    if (items.n == 0) return mf_jundefined_hint(run, "No last item, sequence was empty.", out);
    *out = items.items[items.n - 1];
    return true;
}

static bool next_reversed(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    (void)run;
    *got = it->at > 0;
    if (*got) *out = it->source.list->items[--it->at];
    return true;
}

FILTER(do_reverse) {
    mf_jval v = args->bound[0], list;
    mf_jgrow items = {0};
    if (v.type == MF_J_STR) {
        size_t n = mf_jstr_chars(v.str);
        return mf_jstr_cut(run, v.str, (int64_t)n - 1, -1, n, out);
    }
    if (!mf_jiterable(v)) return mf_jraise(run, "argument must be iterable");
    if (!mf_jcollect(run, v, &items)) return false;
    if (v.type == MF_J_ITER) { // Python makes a list of those
        for (size_t i = 0; i < items.n / 2; i++) {
            mf_jval item = items.items[i];
            items.items[i] = items.items[items.n - 1 - i];
            items.items[items.n - 1 - i] = item;
        }
        return mf_jgrow_list(run, &items, MF_J_LIST, out);
    }
    if (!mf_jgrow_list(run, &items, MF_J_LIST, &list) || !mf_jgenerator(run, next_reversed, list, NULL, out)) return false;
    out->iter->at = items.n;
    return true;
}

FILTER(do_list) {
    mf_jgrow items = {0};
    return mf_jcollect(run, args->bound[0], &items) && mf_jgrow_list(run, &items, MF_J_LIST, out);
}

FILTER(do_length) {
    size_t n;
    bool has;
    if (!mf_jlength(run, args->bound[0], &n, &has)) return false;
    if (!has) return mf_jraise(run, "object of type '%s' has no len()", mf_jtype_name(args->bound[0]));
    *out = mf_jint((int64_t)n);
    return true;
}

FILTER(do_join) {
    mf_jval separator, text;
    mf_jgrow items = {0};
    path p = {0};
    mf_jbuild b = {.run = run};
    if (given(args->bound[1]) ? !mf_jto_str(run, args->bound[1], &separator) : !mf_jstr_value(run, MF_STR(""), &separator))
        return false;
    if (!path_of(run, args->bound[2], &p) || !mf_jcollect(run, args->bound[0], &items)) return false;
    for (size_t i = 0; i < items.n; i++) {
        if (i) mf_jbuild_str(&b, separator.str);
        if (!walk_path(run, &p, items.items[i], &text) || !mf_jadd_str(&b, text)) return false;
    }
    return mf_jbuild_done(&b, out);
}

FILTER(do_sum) {
    mf_jgrow items = {0};
    path p = {0};
    mf_jval sum = given(args->bound[2]) ? args->bound[2] : mf_jint(0), item;
    if (!path_of(run, args->bound[1], &p) || !mf_jcollect(run, args->bound[0], &items)) return false;
    if (sum.type == MF_J_STR) return mf_jraise(run, "sum() can't sum strings [use ''.join(seq) instead]");
    for (size_t i = 0; i < items.n; i++)
        if (!walk_path(run, &p, items.items[i], &item) || !mf_jbinary(run, MF_J_ADD, sum, item, &sum)) return false;
    *out = sum;
    return true;
}

const mf_jfunction mf_jsequence_filters[] = {
    {"map", NULL, 0, do_map},
    {"select", NULL, 0, do_select},
    {"reject", NULL, 0, do_reject},
    {"selectattr", NULL, 0, do_selectattr},
    {"rejectattr", NULL, 0, do_rejectattr},
    {"unique", "value case_sensitive attribute", 1, do_unique},
    {"items", "value", 1, do_items},
    {"batch", "value linecount fill_with", 2, do_batch},
    {"slice", "value slices fill_with", 2, do_slice},
    {"sort", "value reverse case_sensitive attribute", 1, do_sort},
    {"dictsort", "value case_sensitive by reverse", 1, do_dictsort},
    {"groupby", "value attribute default case_sensitive", 2, do_groupby},
    {"min", "value case_sensitive attribute", 1, do_min},
    {"max", "value case_sensitive attribute", 1, do_max},
    {"first", "seq", 1, do_first},
    {"last", "seq", 1, do_last},
    {"reverse", "value", 1, do_reverse},
    {"list", "value", 1, do_list},
    {"length", "/ obj", 1, do_length},
    {"count", "/ obj", 1, do_length},
    {"join", "value d attribute", 1, do_join},
    {"sum", "iterable attribute start", 1, do_sum},
    {"random", NULL, 0, NULL},
    {NULL, NULL, 0, NULL},
};
