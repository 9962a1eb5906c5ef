#include "text/jinja/iter.h"

#include <stdio.h>

#include "text/jinja/call.h"
#include "text/jinja/run.h"

// ---- Over values

static bool next_item(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    (void)run;
    *got = it->at < it->source.list->n;
    if (*got) *out = it->source.list->items[it->at++];
    return true;
}

static bool next_char(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    mf_jstr *s = it->source.str;
    *got = it->at < s->len;
    if (!*got) return true;
    size_t start = it->at;
    mf_jstr_next(s, &it->at);
    *out = mf_jtext(mf_jstr_part(run, s, start, it->at));
    return out->str != NULL;
}

static bool entry_value(mf_jrun *run, const mf_jentry *entry, mf_jview_kind kind, mf_jval *out) {
    *out = kind == MF_J_KEYS ? entry->key : entry->value;
    return kind != MF_J_ITEMS || mf_jpair(run, entry->key, entry->value, out);
}

static bool next_entry(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    bool view = it->source.type == MF_J_VIEW;
    mf_jdict *dict = view ? it->source.view->dict : it->source.dict;
    *got = it->at < dict->n;
    return !*got || entry_value(run, &dict->entries[it->at++], view ? it->source.view->kind : MF_J_KEYS, out);
}

static bool next_number(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    (void)run;
    const mf_jrange *r = it->source.range;
    *got = (int64_t)it->at < r->n;
    if (*got) *out = mf_jint(r->start + r->step * (int64_t)it->at++);
    return true;
}

static bool next_nothing(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    (void)run, (void)it, (void)out;
    *got = false;
    return true;
}

static bool next_round(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    mf_jval item;
    if (!mf_jloop_next(run, it->source.loop, &item, got)) return false;
    return !*got || mf_jpair(run, item, it->source, out);
}

typedef bool next_fn(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got);

static next_fn *walker(mf_jtype type) {
    switch (type) {
    case MF_J_LIST:
    case MF_J_TUPLE: return next_item;
    case MF_J_STR: return next_char;
    case MF_J_DICT:
    case MF_J_VIEW: return next_entry;
    case MF_J_RANGE: return next_number;
    case MF_J_UNDEFINED: return next_nothing;
    case MF_J_LOOP: return next_round;
    default: return NULL;
    }
}

bool mf_jiterable(mf_jval v) { return v.type == MF_J_ITER || walker(v.type); }

mf_jiter *mf_jiter_of(mf_jrun *run, mf_jval v) {
    if (v.type == MF_J_ITER) return v.iter;
    next_fn *next = walker(v.type);
    if (!next) {
        mf_jraise(run, "'%s' object is not iterable", mf_jtype_name(v));
        return NULL;
    }
    mf_jiter *it = mf_jalloc(run, 1, sizeof *it);
    if (it) *it = (mf_jiter){.next = next, .source = v};
    return it;
}

// Generators over generators nest as deep as a template makes them.
bool mf_jnext(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    if (!mf_jenter(run)) return false;
    bool ok = mf_jpay(run, 4) && it->next(run, it, out, got);
    mf_jleave(run);
    return ok;
}

bool mf_jgenerator(mf_jrun *run, next_fn *next, mf_jval source, void *state, mf_jval *out) {
    mf_jiter *it = mf_jalloc(run, 1, sizeof *it);
    if (!it) return false;
    *it = (mf_jiter){.next = next, .source = source, .state = state};
    *out = (mf_jval){.type = MF_J_ITER, .iter = it};
    return true;
}

bool mf_jcollect(mf_jrun *run, mf_jval v, mf_jgrow *out) {
    mf_jiter *it = mf_jiter_of(run, v);
    if (!it) return false;
    for (;;) {
        mf_jval item;
        bool got;
        if (!mf_jnext(run, it, &item, &got)) return false;
        if (!got) return true;
        if (!mf_jgrow_push(run, out, item)) return false;
    }
}

// ---- Sorting: merges of runs that double, in place of values and keys alike

static bool merge(mf_jrun *run, const mf_jval *keys, const size_t *from, size_t *to, size_t low, size_t mid, size_t high,
                  bool reverse) {
    size_t a = low, b = mid;
    for (size_t k = low; k < high; k++) {
        bool take_b = a == mid;
        if (a < mid && b < high) {
            // The later one goes first only where it is less (or, reversed, greater): equals keep their order.
            mf_jval first = keys[from[reverse ? a : b]], second = keys[from[reverse ? b : a]];
            if (!mf_jless(run, first, second, "<", &take_b)) return false;
        }
        to[k] = take_b && b < high ? from[b++] : from[a++];
    }
    return true;
}

static void reorder(mf_jval *values, const size_t *order, mf_jval *copy, size_t n) {
    memcpy(copy, values, n * sizeof *values);
    for (size_t i = 0; i < n; i++) values[i] = copy[order[i]];
}

bool mf_jsort(mf_jrun *run, mf_jval *items, mf_jval *keys, size_t n, bool reverse) {
    if (n < 2) return true;
    size_t *order = mf_jalloc(run, n, sizeof *order), *other = mf_jalloc(run, n, sizeof *other);
    mf_jval *copy = mf_jalloc(run, n, sizeof *copy);
    if (!order || !other || !copy) return false;
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            size_t mid = low + width < n ? low + width : n, high = low + 2 * width < n ? low + 2 * width : n;
            if (!merge(run, keys ? keys : items, order, other, low, mid, high, reverse)) return false;
        }
        if (!mf_jpay(run, n)) return false;
        size_t *swap = order;
        order = other;
        other = swap;
    }
    if (keys) reorder(keys, order, copy, n);
    reorder(items, order, copy, n);
    return true;
}

// ---- Loops

static bool peek_next(mf_jrun *run, mf_jloop *loop, mf_jval *out, bool *got) {
    *got = loop->after.type != MF_J_MISSING;
    if (!*got) {
        mf_jval item;
        if (!mf_jnext(run, loop->iter, &item, got)) return false;
        if (*got) loop->after = item;
    }
    if (*got) *out = loop->after;
    return true;
}

bool mf_jloop_next(mf_jrun *run, mf_jloop *loop, mf_jval *out, bool *got) {
    if (!peek_next(run, loop, out, got)) return false;
    if (!*got) return true;
    loop->after = MF_JMISSING;
    loop->index0++;
    loop->before = loop->current;
    loop->current = *out;
    return true;
}

bool mf_jloop_length(mf_jrun *run, mf_jloop *loop, size_t *out) {
    if (!loop->counted) {
        bool has = false;
        if (loop->iterable.type != MF_J_ITER && !mf_jlength(run, loop->iterable, &loop->length, &has)) return false;
        if (!has) { // a generator: what is left of it is walked and kept
            mf_jgrow rest = {0};
            mf_jval list, source = {.type = MF_J_ITER, .iter = loop->iter};
            if (!mf_jcollect(run, source, &rest) || !mf_jgrow_list(run, &rest, MF_J_LIST, &list)) return false;
            if (!(loop->iter = mf_jiter_of(run, list))) return false;
            loop->length = rest.n + (size_t)(loop->index0 + 1) + (loop->after.type != MF_J_MISSING);
        }
        loop->counted = true;
    }
    *out = loop->length;
    return true;
}

static bool call_cycle(mf_jrun *run, mf_jargs *args, mf_jval *out) {
    if (args->n_kw) return mf_jraise(run, "cycle() takes no keyword arguments");
    if (args->n == 0) return mf_jraise(run, "no items for cycling given");
    *out = args->pos[(size_t)args->self.loop->index0 % args->n];
    return true;
}

static bool call_changed(mf_jrun *run, mf_jargs *args, mf_jval *out) {
    mf_jgrow values = {.items = args->pos, .n = args->n};
    mf_jval tuple;
    bool equal;
    if (args->n_kw) return mf_jraise(run, "changed() takes no keyword arguments");
    if (!mf_jgrow_list(run, &values, MF_J_TUPLE, &tuple) || !mf_jequal(run, args->self.loop->last_changed, tuple, &equal))
        return false;
    if (!equal) args->self.loop->last_changed = tuple;
    *out = mf_jbool(!equal);
    return true;
}

static bool loop_method(mf_jrun *run, mf_jval loop, const mf_jfunction *f, mf_jval *out) {
    mf_jmethod *method = mf_jalloc(run, 1, sizeof *method);
    if (!method) return false;
    *method = (mf_jmethod){loop, f};
    *out = (mf_jval){.type = MF_J_METHOD, .method = method};
    return true;
}

static bool loop_neighbour(mf_jrun *run, mf_jloop *loop, bool next, mf_jval *out) {
    bool got = loop->index0 > 0;
    if (!next) {
        *out = loop->before;
        return got || mf_jundefined_hint(run, "there is no previous item", out);
    }
    if (!peek_next(run, loop, out, &got)) return false;
    return got || mf_jundefined_hint(run, "there is no next item", out);
}

bool mf_jloop_method(mf_str name) { return mf_str_is(name, "cycle") || mf_str_is(name, "changed"); }

bool mf_jloop_attr(mf_jrun *run, mf_jval value, mf_str name, mf_jval *out, bool *has) {
    static const mf_jfunction cycle = {"cycle", NULL, 0, call_cycle}, changed = {"changed", NULL, 0, call_changed};
    mf_jloop *loop = value.loop;
    size_t n;
    bool got;
    mf_jval item;
    *has = true;
    if (mf_str_is(name, "index")) return *out = mf_jint(loop->index0 + 1), true;
    if (mf_str_is(name, "index0")) return *out = mf_jint(loop->index0), true;
    if (mf_str_is(name, "first")) return *out = mf_jbool(loop->index0 == 0), true;
    if (mf_str_is(name, "depth")) return *out = mf_jint(loop->depth0 + 1), true;
    if (mf_str_is(name, "depth0")) return *out = mf_jint(loop->depth0), true;
    if (mf_str_is(name, "last")) {
        if (!peek_next(run, loop, &item, &got)) return false;
        *out = mf_jbool(!got);
        return true;
    }
    if (mf_str_is(name, "previtem")) return loop_neighbour(run, loop, false, out);
    if (mf_str_is(name, "nextitem")) return loop_neighbour(run, loop, true, out);
    if (mf_str_is(name, "cycle")) return loop_method(run, value, &cycle, out);
    if (mf_str_is(name, "changed")) return loop_method(run, value, &changed, out);
    bool length = mf_str_is(name, "length"), reverse = mf_str_is(name, "revindex"), reverse0 = mf_str_is(name, "revindex0");
    *has = length || reverse || reverse0;
    if (!*has) return true;
    if (!mf_jloop_length(run, loop, &n)) return false;
    *out = mf_jint((int64_t)n - (length ? 0 : loop->index0 + reverse0));
    return true;
}

bool mf_jloop_repr(mf_jbuild *b, mf_jloop *loop) {
    size_t n;
    char text[64];
    if (!mf_jloop_length(b->run, loop, &n)) return false;
    snprintf(text, sizeof text, "<LoopContext %lld/%zu>", (long long)loop->index0 + 1, n);
    mf_jbuild_text(b, text);
    return true;
}
