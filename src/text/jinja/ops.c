// Operators, attributes and elements of any values.
#include <stdio.h>

#include "text/jinja/call.h"
#include "text/jinja/eval.h"
#include "text/jinja/iter.h"
#include "text/jinja/number.h"
#include "text/jinja/run.h"
#include "text/jinja/string.h"

bool mf_jundefined_fail(mf_jrun *run, mf_jval v) {
    const mf_jundefined *u = v.undefined;
    mf_jbuild b = {.run = run};
    if (u->hint) return mf_jraise(run, "%s", u->hint);
    if (!mf_jadd_repr(&b, u->name)) return false;
    int n = (int)(b.len < 120 ? b.len : 120);
    if (!u->of) return mf_jraise(run, "%.*s is undefined", n, b.data);
    return mf_jraise(run, mf_jis_str(u->name) ? "'%s object' has no attribute %.*s" : "%s object has no element %.*s", u->of,
                     n, b.data);
}

// ---- Operators

static bool join_lists(mf_jrun *run, mf_jval a, mf_jval b, mf_jval *out) {
    mf_jval sum;
    if (!mf_jlist_new(run, a.type, a.list->n + b.list->n, &sum)) return false;
    if (a.list->n) memcpy(sum.list->items, a.list->items, a.list->n * sizeof(mf_jval));
    if (b.list->n) memcpy(sum.list->items + a.list->n, b.list->items, b.list->n * sizeof(mf_jval));
    *out = sum;
    return true;
}

static bool repeat(mf_jrun *run, mf_jval of, mf_jval times, mf_jval *out) {
    int64_t n;
    if (times.type == MF_J_BIG) return mf_jraise(run, "cannot fit 'int' into an index-sized integer");
    if (!mf_jindex(run, times, "can't multiply", &n)) return false;
    if (n < 0) n = 0;
    if (of.type == MF_J_STR) {
        if (!mf_jstr_repeat(run, of.str, n, out)) return false;
        out->str->markup = of.str->markup;
        return true;
    }
    mf_jval product;
    size_t total;
    if (__builtin_mul_overflow(of.list->n, (size_t)n, &total) || total > MF_JINJA_TEXT_MAX)
        return mf_jfail(run, MF_ERR_LIMIT, "a list of more than %d items", MF_JINJA_TEXT_MAX);
    if (!mf_jlist_new(run, of.type, total, &product)) return false;
    for (size_t i = 0; i < total; i++) product.list->items[i] = of.list->items[i % of.list->n];
    *out = product;
    return true;
}

static bool is_repeatable(mf_jval v) { return v.type == MF_J_STR || mf_jis_seq(v); }

bool mf_jbinary(mf_jrun *run, int op, mf_jval a, mf_jval b, mf_jval *out) {
    static const char *const names[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};
    if (mf_jis_number(a) && mf_jis_number(b)) return mf_jarith(run, (mf_jarith_op)op, a, b, out);
    if (op == MF_J_MOD && a.type == MF_J_STR) return mf_jpercent(run, a.str, b, out);
    if (a.type == MF_J_UNDEFINED) return mf_jundefined_fail(run, a);
    if (b.type == MF_J_UNDEFINED) return mf_jundefined_fail(run, b);
    if (op == MF_J_ADD && a.type == MF_J_STR && b.type == MF_J_STR) return mf_jstr_concat(run, a.str, b.str, out);
    if (op == MF_J_ADD && mf_jis_seq(a) && a.type == b.type) return join_lists(run, a, b, out);
    if (op == MF_J_MUL && is_repeatable(a) && mf_jis_int(b)) return repeat(run, a, b, out);
    if (op == MF_J_MUL && is_repeatable(b) && mf_jis_int(a)) return repeat(run, b, a, out);
    if (op == MF_J_ADD && (a.type == MF_J_STR || mf_jis_seq(a)))
        return mf_jraise(run, "can only concatenate %s (not \"%s\") to %s", mf_jtype_name(a), mf_jtype_name(b),
                         mf_jtype_name(a));
    if (op == MF_J_SUB && (a.type == MF_J_VIEW || b.type == MF_J_VIEW))
        return mf_jfail(run, MF_ERR_UNSUPPORTED, "sets are not supported");
    return mf_jraise(run, "unsupported operand type(s) for %s: '%s' and '%s'", names[op], mf_jtype_name(a),
                     mf_jtype_name(b));
}

static bool contains_by_walking(mf_jrun *run, mf_jval container, mf_jval item, bool *out) {
    mf_jiter *it = mf_jiter_of(run, container);
    bool got = it != NULL;
    for (*out = false; got && !*out;) {
        mf_jval one;
        if (!mf_jnext(run, it, &one, &got)) return false;
        *out = got && mf_jsame(one, item);
        if (got && !*out && !mf_jequal(run, one, item, out)) return false;
    }
    return it != NULL;
}

bool mf_jcontains(mf_jrun *run, mf_jval container, mf_jval item, bool *out) {
    bool ok;
    size_t at;
    if (container.type == MF_J_STR) {
        if (item.type != MF_J_STR)
            return mf_jraise(run, "'in <string>' requires string as left operand, not %s", mf_jtype_name(item));
        if (!mf_jstr_find(run, container.str, mf_jstr_slice(item.str), 0, container.str->len, &at)) return false;
        *out = at != SIZE_MAX;
        return true;
    }
    bool keys = container.type == MF_J_VIEW && container.view->kind == MF_J_KEYS;
    if (container.type == MF_J_DICT || keys) {
        *out = mf_jdict_find(run, keys ? container.view->dict : container.dict, item, &ok) != NULL;
        return ok;
    }
    if (!mf_jiterable(container)) return mf_jraise(run, "argument of type '%s' is not iterable", mf_jtype_name(container));
    return contains_by_walking(run, container, item, out);
}

bool mf_jcompare(mf_jrun *run, int op, mf_jval a, mf_jval b, bool *out) {
    static const char *const names[] = {"==", "!=", "<", "<=", ">", ">="};
    bool swap = op == MF_J_GT || op == MF_J_LE, equal, nan = false;
    int order;
    switch (op) {
    case MF_J_EQ: return mf_jequal(run, a, b, out);
    case MF_J_NE:
        if (!mf_jequal(run, a, b, &equal)) return false;
        *out = !equal;
        return true;
    case MF_J_IN:
    case MF_J_NOT_IN:
        if (!mf_jcontains(run, b, a, out)) return false;
        *out = *out == (op == MF_J_IN);
        return true;
    default:
        // a > b is b < a; a <= b is not b < a, unless one is NaN, when nothing is true.
        if (mf_jis_number(a) && mf_jis_number(b)) nan = !mf_jcompare_numbers(a, b, &order);
        bool less, strict = op == MF_J_LT || op == MF_J_GT;
        if (a.type == MF_J_VIEW && b.type == MF_J_VIEW)
            return mf_jfail(run, MF_ERR_UNSUPPORTED, "comparing dict views is not supported");
        bool refused = !(mf_jis_number(a) && mf_jis_number(b)) && a.type != b.type && a.type != MF_J_UNDEFINED &&
                       b.type != MF_J_UNDEFINED;
        if (refused) return mf_jless(run, a, b, names[op], &less);
        if (!mf_jless(run, swap ? b : a, swap ? a : b, names[op], &less)) return false;
        *out = !nan && less == strict;
        return true;
    }
}

// ---- Attributes

// What every object of Python has and the sandbox hides.
static bool is_hidden(mf_str name) {
    static const char *const names[] = {"__class__",
                                        "__doc__",
                                        "__init__",
                                        "__eq__",
                                        "__hash__",
                                        "__str__",
                                        "__repr__",
                                        "__dir__",
                                        "__getattribute__",
                                        "__setattr__",
                                        "__delattr__",
                                        "__new__",
                                        "__reduce__",
                                        "__reduce_ex__",
                                        "__sizeof__",
                                        "__subclasshook__",
                                        "__init_subclass__",
                                        "__format__",
                                        "__ne__",
                                        "__lt__",
                                        "__le__",
                                        "__gt__",
                                        "__ge__"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (mf_str_is(name, names[i])) return true;
    return false;
}

// Methods that would change a list or dict: the sandbox makes them undefined.
static bool is_mutator(mf_jtype type, mf_str name) {
    static const char *const lists[] = {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove", NULL};
    static const char *const dicts[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    const char *const *names = type == MF_J_LIST ? lists : type == MF_J_DICT ? dicts : NULL;
    for (; names && *names; names++)
        if (mf_str_is(name, *names)) return true;
    return false;
}

bool mf_jhidden_method(mf_str name) { return is_hidden(name) || is_mutator(MF_J_LIST, name) || is_mutator(MF_J_DICT, name); }

static bool number_attr(mf_jval v, mf_str name, mf_jval *out, bool *has) {
    bool real = v.type == MF_J_FLOAT;
    *has = true;
    if (mf_str_is(name, "real") || (!real && mf_str_is(name, "numerator")))
        *out = v.type == MF_J_BOOL ? mf_jint(v.boolean) : v;
    else if (mf_str_is(name, "imag"))
        *out = real ? mf_jreal(0) : mf_jint(0);
    else if (!real && mf_str_is(name, "denominator"))
        *out = mf_jint(1);
    else
        *has = false;
    return true;
}

static bool range_attr(mf_jval v, mf_str name, mf_jval *out, bool *has) {
    *has = mf_str_is(name, "start") || mf_str_is(name, "stop") || mf_str_is(name, "step");
    if (*has)
        *out = mf_jint(mf_str_is(name, "start") ? v.range->start : mf_str_is(name, "stop") ? v.range->stop : v.range->step);
    return true;
}

// Attributes that are no methods.
static bool plain_attr(mf_jrun *run, mf_jval v, mf_jval name, mf_jval *out, bool *has) {
    mf_str text = mf_jstr_slice(name.str);
    const mf_jval *found;
    *has = false;
    switch (v.type) {
    case MF_J_NAMESPACE:
        found = mf_jdict_text(run, v.dict, text);
        *has = found != NULL;
        if (found) *out = *found;
        return true;
    case MF_J_LOOP: return mf_jloop_attr(run, v, text, out, has);
    case MF_J_MACRO: return mf_jmacro_attr(run, v.macro, text, out, has);
    case MF_J_BOOL:
    case MF_J_INT:
    case MF_J_BIG:
    case MF_J_FLOAT: return number_attr(v, text, out, has);
    case MF_J_RANGE: return range_attr(v, text, out, has);
    case MF_J_CYCLER:
        *has = mf_str_is(text, "current");
        if (*has) *out = v.cycler->items.items[v.cycler->at];
        return true;
    case MF_J_TUPLE:
        *has = v.list->group && (mf_str_is(text, "grouper") || mf_str_is(text, "list"));
        if (*has) *out = v.list->items[mf_str_is(text, "list")];
        return true;
    default: return true;
    }
}

// Python's getattr() under the sandbox. *has is false where there is no such attribute.
static bool attribute(mf_jrun *run, mf_jval v, mf_jval name, mf_jval *out, bool *has) {
    mf_str text = mf_jstr_slice(name.str);
    if (v.type == MF_J_UNDEFINED) return mf_jundefined_fail(run, v);
    if (!plain_attr(run, v, name, out, has)) return false;
    if (*has) return true;
    *has = true;
    if (!mf_jpay(run, MF_JCOST_LOOKUP)) return false;
    if (is_hidden(text) || is_mutator(v.type, text)) return mf_jundefined_of(run, v, name, out);
    const mf_jfunction *f = v.type == MF_J_NAMESPACE ? NULL : mf_jmethod_find(v.type, text);
    *has = f != NULL;
    if (!f) return true;
    if (!f->run) return mf_jfail(run, MF_ERR_UNSUPPORTED, "the method %s.%s() is not supported", mf_jtype_name(v), f->name);
    mf_jmethod *method = mf_jalloc(run, 1, sizeof *method);
    if (!method) return false;
    *method = (mf_jmethod){v, f};
    *out = (mf_jval){.type = MF_J_METHOD, .method = method};
    return true;
}

// ---- Elements

static bool list_element(mf_jrun *run, mf_jval v, mf_jval key, mf_jval *out, bool *has) {
    int64_t i, n = v.type == MF_J_RANGE ? v.range->n : (int64_t)v.list->n;
    *has = mf_jis_int(key);
    if (!*has) return true;
    if (!mf_jindex(run, key, "index", &i)) return false;
    if (i < 0) i += n;
    *has = i >= 0 && i < n;
    if (*has) *out = v.type == MF_J_RANGE ? mf_jint(v.range->start + i * v.range->step) : v.list->items[i];
    return true;
}

static bool char_element(mf_jrun *run, mf_jval v, mf_jval key, mf_jval *out, bool *has) {
    int64_t i;
    *has = mf_jis_int(key);
    if (!*has) return true;
    if (!mf_jindex(run, key, "index", &i)) return false;
    int64_t n = (int64_t)mf_jstr_chars(v.str);
    if (i < 0) i += n;
    *has = i >= 0 && i < n;
    if (!*has) return true;
    if (!mf_jstr_cut(run, v.str, i, 1, 1, out)) return false;
    out->str->markup = v.str->markup;
    return true;
}

// Whether a dict takes the key: lists, dicts and tuples of them can't be hashed.
static bool check_hashable(mf_jrun *run, mf_jval v, bool *yes) {
    *yes = v.type != MF_J_LIST && v.type != MF_J_DICT && v.type != MF_J_VIEW;
    if (v.type != MF_J_TUPLE) return true;
    if (!mf_jenter(run)) return false;
    bool ok = mf_jpay(run, v.list->n);
    for (size_t i = 0; ok && *yes && i < v.list->n; i++) ok = check_hashable(run, v.list->items[i], yes);
    mf_jleave(run);
    return ok;
}

// v[key]. *has is false where Python raises TypeError, KeyError or IndexError.
static bool element(mf_jrun *run, mf_jval v, mf_jval key, mf_jval *out, bool *has) {
    bool ok;
    *has = false;
    switch (v.type) {
    case MF_J_UNDEFINED: return mf_jundefined_fail(run, v);
    case MF_J_LIST:
    case MF_J_TUPLE:
    case MF_J_RANGE: return list_element(run, v, key, out, has);
    case MF_J_STR: return char_element(run, v, key, out, has);
    case MF_J_DICT: {
        if (!check_hashable(run, key, &ok)) return false;
        if (!ok) return true;
        const mf_jval *found = mf_jdict_find(run, v.dict, key, &ok);
        *has = found != NULL;
        if (found) *out = *found;
        return ok;
    }
    default: return true;
    }
}

bool mf_jgetattr(mf_jrun *run, mf_jval v, mf_jval name, mf_jval *out) {
    bool has;
    if (!attribute(run, v, name, out, &has)) return false;
    if (!has && !element(run, v, name, out, &has)) return false;
    return has || mf_jundefined_of(run, v, name, out);
}

bool mf_jgetitem(mf_jrun *run, mf_jval v, mf_jval key, mf_jval *out) {
    bool has;
    if (!element(run, v, key, out, &has)) return false;
    if (!has && key.type == MF_J_STR && !attribute(run, v, key, out, &has)) return false;
    return has || mf_jundefined_of(run, v, key, out);
}

// ---- Slices

// Python's slice.indices(): the first index and the number of items.
static bool slice_indices(mf_jrun *run, const mf_jval bounds[3], int64_t n, int64_t *first, int64_t *step, size_t *count) {
    int64_t values[3];
    for (int i = 0; i < 3; i++) {
        if (bounds[i].type == MF_J_NONE) continue;
        if (!mf_jis_int(bounds[i]))
            return mf_jraise(run, "slice indices must be integers or None or have an __index__ method");
        if (!mf_jindex(run, bounds[i], "slice", &values[i])) return false;
    }
    *step = bounds[2].type == MF_J_NONE ? 1 : values[2];
    if (*step == 0) return mf_jraise(run, "slice step cannot be zero");
    if (*step == INT64_MIN) *step = -INT64_MAX;
    int64_t low = *step < 0 ? -1 : 0, high = *step < 0 ? n - 1 : n, ends[2];
    for (int i = 0; i < 2; i++) {
        bool start = i == 0;
        if (bounds[i].type == MF_J_NONE) {
            ends[i] = start == (*step < 0) ? high : low;
            continue;
        }
        int64_t at = values[i] < 0 ? values[i] + n : values[i];
        ends[i] = at < low ? low : at > high ? high : at;
    }
    *first = ends[0];
    int64_t distance = *step < 0 ? ends[0] - ends[1] : ends[1] - ends[0], size = *step < 0 ? -*step : *step;
    *count = distance > 0 ? (size_t)((distance - 1) / size + 1) : 0;
    return true;
}

bool mf_jslice(mf_jrun *run, mf_jval v, const mf_jval bounds[3], mf_jval *out) {
    size_t n, count = 0;
    bool has;
    int64_t first = 0, step = 1;
    if (v.type == MF_J_UNDEFINED) return mf_jundefined_fail(run, v);
    if (v.type == MF_J_DICT) return mf_jraise(run, "unhashable type: 'slice'");
    if (v.type != MF_J_STR && !mf_jis_seq(v) && v.type != MF_J_RANGE)
        return mf_jraise(run, "'%s' object is not subscriptable", mf_jtype_name(v));
    if (!mf_jlength(run, v, &n, &has) || !slice_indices(run, bounds, (int64_t)n, &first, &step, &count)) return false;
    if (v.type == MF_J_STR) {
        if (!mf_jstr_cut(run, v.str, first, step, count, out)) return false;
        out->str->markup = v.str->markup;
        return true;
    }
    if (v.type == MF_J_RANGE) return mf_jfail(run, MF_ERR_UNSUPPORTED, "slices of a range are not supported");
    mf_jval part;
    if (!mf_jlist_new(run, v.type, count, &part)) return false;
    for (size_t i = 0; i < count; i++) part.list->items[i] = v.list->items[first + (int64_t)i * step];
    *out = part;
    return true;
}

// ---- Calls

const mf_jfunction *mf_jfunction_in(const mf_jfunction *table, mf_str name) {
    for (; table->name; table++)
        if (mf_str_is(name, table->name)) return table;
    return NULL;
}

int mf_jparameter(const char *params, mf_str name) {
    bool nameable = true;
    for (int i = 0; *params;) {
        size_t n = strcspn(params, " ");
        if (n == 1 && *params == '/') {
            nameable = false;
        } else {
            if (nameable && mf_str_eq(name, (mf_str){params, n})) return i;
            i++;
        }
        params += n + (params[n] == ' ');
    }
    return -1;
}

static int count_parameters(const char *params) {
    int n = 0;
    for (const char *p = params; *p; p += strcspn(p, " "), p += *p == ' ') n += *p != '/';
    return n;
}

static bool bind(mf_jrun *run, const mf_jfunction *f, mf_jargs *args) {
    int most = count_parameters(f->params);
    if (args->n > (size_t)most)
        return mf_jraise(run, "%s() takes at most %d argument%s (%zu given)", f->name, most, most == 1 ? "" : "s", args->n);
    for (size_t i = 0; i < args->n; i++) args->bound[i] = args->pos[i];
    for (size_t i = 0; i < args->n_kw; i++) {
        mf_str name = mf_jstr_slice(args->kw[i].name.str);
        int at = mf_jparameter(f->params, name);
        if (at < 0)
            return mf_jraise(run, "%s() got an unexpected keyword argument '%.*s'", f->name, (int)name.len, name.ptr);
        if (args->bound[at].type != MF_J_MISSING)
            return mf_jraise(run, "%s() got multiple values for argument '%.*s'", f->name, (int)name.len, name.ptr);
        args->bound[at] = args->kw[i].value;
    }
    for (int i = 0; i < f->n_required; i++)
        if (args->bound[i].type == MF_J_MISSING) return mf_jraise(run, "%s() misses an argument", f->name);
    return true;
}

bool mf_jfunction_call(mf_jrun *run, const mf_jfunction *f, mf_jargs *args, mf_jval *out) {
    if (!mf_jpay(run, MF_JCOST_CALL) || (f->params && !bind(run, f, args))) return false;
    return f->run(run, args, out);
}

bool mf_jcall_value(mf_jrun *run, mf_jval callee, mf_jargs *args, mf_jval *out) {
    switch (callee.type) {
    case MF_J_FUNCTION: return mf_jfunction_call(run, callee.function, args, out);
    case MF_J_METHOD: args->self = callee.method->self; return mf_jfunction_call(run, callee.method->function, args, out);
    case MF_J_MACRO: return mf_jmacro_call(run, callee.macro, args, out);
    case MF_J_LOOP: return mf_jloop_call(run, callee.loop, args, out);
    case MF_J_JOINER:
        if (args->n || args->n_kw) return mf_jraise(run, "a joiner takes no arguments");
        if (callee.cycler->at++) return *out = callee.cycler->items.items[0], true;
        return mf_jstr_value(run, MF_STR(""), out);
    case MF_J_UNDEFINED: return mf_jundefined_fail(run, callee);
    default: return mf_jraise(run, "'%s' object is not callable", mf_jtype_name(callee));
    }
}

bool mf_jarg_text(mf_jrun *run, mf_jval v, const char *what, const mf_jstr **out) {
    if (v.type != MF_J_STR) return mf_jraise(run, "%s must be str, not %s", what, mf_jtype_name(v));
    *out = v.str;
    return true;
}

bool mf_jarg_int(mf_jrun *run, mf_jval v, const char *what, int64_t otherwise, int64_t *out) {
    *out = otherwise;
    return v.type == MF_J_MISSING || mf_jindex(run, v, what, out);
}

bool mf_jarg_true(mf_jrun *run, mf_jval v, bool otherwise, bool *out) {
    *out = otherwise;
    return v.type == MF_J_MISSING || mf_jtruth(run, v, out);
}
