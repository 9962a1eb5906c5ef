#include "text/jinja/value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/map.h"
#include "base/mem.h"
#include "text/jinja/iter.h"
#include "text/jinja/number.h"
#include "text/jinja/run.h"
#include "text/jinja/string.h"

#undef mf_jfail
bool mf_jfail(mf_jrun *run, mf_code code, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (run->err && run->err->code == MF_OK) mf_fail(run->err, code, "%s", text);
    return false;
}

void *mf_jalloc(mf_jrun *run, size_t n, size_t size) {
    void *ptr = mf_arena_alloc(&run->arena, n, size);
    size_t bytes;
    if (ptr) return ptr;
    bool bounded = !mf_mul_size(n, size, &bytes) || bytes >= MF_JINJA_MEMORY - run->arena.used;
    if (bounded)
        mf_jfail(run, MF_ERR_LIMIT, "the rendering needs more than %d MB of memory", MF_JINJA_MEMORY >> 20);
    else
        mf_jfail(run, MF_ERR_MEMORY, "out of memory for %zu bytes of the rendering", bytes);
    return NULL;
}

bool mf_jpay(mf_jrun *run, uint64_t steps) {
    enum {
        STOP_EVERY = 16
    }; // bits of the steps between two looks at the stop: a third of a millisecond
    uint64_t before = run->work;
    run->work = steps < before ? before - steps : 0;
    if (run->work == 0)
        return mf_jfail(run, MF_ERR_LIMIT, "the rendering takes more than %llu steps", (unsigned long long)run->steps);
    if (before >> STOP_EVERY == run->work >> STOP_EVERY || !run->stop || !run->stop(run->stop_arg)) return true;
    run->work = 0; // nothing goes on after this
    return mf_jfail(run, MF_ERR_CANCELLED, "stopped");
}

bool mf_jenter(mf_jrun *run) {
    if (run->depth >= MF_JINJA_DEPTH) return mf_jfail(run, MF_ERR_LIMIT, "nested more than %d deep", MF_JINJA_DEPTH);
    run->depth++;
    return true;
}

const char *mf_jtype_name(mf_jval v) {
    static const char *const names[] = {
        [MF_J_MISSING] = "missing",
        [MF_J_UNDEFINED] = "Undefined",
        [MF_J_NONE] = "NoneType",
        [MF_J_BOOL] = "bool",
        [MF_J_INT] = "int",
        [MF_J_BIG] = "int",
        [MF_J_FLOAT] = "float",
        [MF_J_STR] = "str",
        [MF_J_LIST] = "list",
        [MF_J_TUPLE] = "tuple",
        [MF_J_DICT] = "dict",
        [MF_J_RANGE] = "range",
        [MF_J_NAMESPACE] = "namespace",
        [MF_J_MACRO] = "Macro",
        [MF_J_LOOP] = "LoopContext",
        [MF_J_FUNCTION] = "function",
        [MF_J_METHOD] = "method",
        [MF_J_ITER] = "generator",
        [MF_J_VIEW] = "dict view",
        [MF_J_CYCLER] = "Cycler",
        [MF_J_JOINER] = "Joiner",
    };
    return v.type == MF_J_STR && v.str->markup ? "Markup" : names[v.type];
}

// ---- Making values

mf_jstr *mf_jstr_new(mf_jrun *run, mf_str text) {
    if (text.len > MF_JINJA_TEXT_MAX) {
        mf_jfail(run, MF_ERR_LIMIT, "a text of more than %d MB", MF_JINJA_TEXT_MAX >> 20);
        return NULL;
    }
    mf_jstr *str = mf_jpay_bytes(run, text.len) ? mf_jalloc(run, 1, sizeof *str) : NULL; // its characters will be counted
    if (str) *str = (mf_jstr){.ptr = text.ptr, .len = (uint32_t)text.len, .chars = MF_JSTR_UNCOUNTED};
    return str;
}

bool mf_jstr_value(mf_jrun *run, mf_str text, mf_jval *out) {
    *out = mf_jtext(mf_jstr_new(run, text));
    return out->str != NULL;
}

bool mf_jlist_new(mf_jrun *run, mf_jtype type, size_t n, mf_jval *out) {
    mf_jlist *list = mf_jalloc(run, 1, sizeof *list);
    if (!list || !(list->items = mf_jalloc(run, n, sizeof *list->items))) return false;
    list->n = n;
    *out = (mf_jval){.type = type, .list = list};
    return true;
}

bool mf_jpair(mf_jrun *run, mf_jval a, mf_jval b, mf_jval *out) {
    mf_jval pair;
    if (!mf_jlist_new(run, MF_J_TUPLE, 2, &pair)) return false;
    pair.list->items[0] = a;
    pair.list->items[1] = b;
    *out = pair;
    return true;
}

bool mf_jgrow_push(mf_jrun *run, mf_jgrow *grow, mf_jval value) {
    if (grow->n == grow->cap) {
        size_t cap = grow->cap ? grow->cap * 2 : 8;
        mf_jval *items = mf_jalloc(run, cap, sizeof *items);
        if (!items) return false;
        if (grow->n) memcpy(items, grow->items, grow->n * sizeof *items);
        grow->items = items;
        grow->cap = cap;
    }
    grow->items[grow->n++] = value;
    return true;
}

bool mf_jgrow_list(mf_jrun *run, const mf_jgrow *grow, mf_jtype type, mf_jval *out) {
    mf_jlist *list = mf_jalloc(run, 1, sizeof *list);
    if (!list) return false;
    *list = (mf_jlist){.items = grow->items, .n = grow->n};
    *out = (mf_jval){.type = type, .list = list};
    return true;
}

bool mf_jdict_new(mf_jrun *run, mf_jtype type, mf_jval *out) {
    mf_jdict *dict = mf_jalloc(run, 1, sizeof *dict);
    *out = (mf_jval){.type = type, .dict = dict};
    return dict != NULL;
}

static bool new_undefined(mf_jrun *run, mf_jundefined content, mf_jval *out) {
    mf_jundefined *u = mf_jalloc(run, 1, sizeof *u);
    if (!u) return false;
    *u = content;
    *out = (mf_jval){.type = MF_J_UNDEFINED, .undefined = u};
    return true;
}

bool mf_jundefined_name(mf_jrun *run, mf_jval name, mf_jval *out) {
    return new_undefined(run, (mf_jundefined){.name = name}, out);
}

bool mf_jundefined_of(mf_jrun *run, mf_jval of, mf_jval name, mf_jval *out) {
    return new_undefined(run, (mf_jundefined){.of = mf_jtype_name(of), .name = name}, out);
}

bool mf_jundefined_hint(mf_jrun *run, const char *hint, mf_jval *out) {
    return new_undefined(run, (mf_jundefined){.hint = hint, .name = MF_JNONE}, out);
}

bool mf_jview_new(mf_jrun *run, mf_jdict *dict, mf_jview_kind kind, mf_jval *out) {
    mf_jview *view = mf_jalloc(run, 1, sizeof *view);
    if (!view) return false;
    *view = (mf_jview){dict, kind};
    *out = (mf_jval){.type = MF_J_VIEW, .view = view};
    return true;
}

// ---- Dicts

static bool hash_value(mf_jrun *run, mf_jval v, uint64_t *out) {
    if (!mf_jpay(run, MF_JCOST_CALL)) return false;
    switch (v.type) {
    case MF_J_STR: *out = mf_hash_keyed(v.str->ptr, v.str->len, run->key); return mf_jpay(run, v.str->len / 4);
    case MF_J_BOOL:
    case MF_J_INT: {
        int64_t value = v.type == MF_J_BOOL ? v.boolean : v.integer;
        *out = mf_hash_keyed(&value, sizeof value, run->key);
        return true;
    }
    case MF_J_FLOAT: {
        int64_t value = fabs(v.real) < 9e18 ? (int64_t)v.real : 0;
        *out = (double)value == v.real ? mf_hash_keyed(&value, sizeof value, run->key) : 2;
        return true;
    }
    case MF_J_BIG:
        *out = 2; // beside the floats that may equal it
        return true;
    case MF_J_NONE:
    case MF_J_UNDEFINED: *out = v.type; return true;
    case MF_J_TUPLE:
        *out = 3;
        for (size_t i = 0; i < v.list->n; i++) {
            uint64_t item;
            if (!mf_jenter(run)) return false;
            bool ok = hash_value(run, v.list->items[i], &item);
            mf_jleave(run);
            if (!ok) return false;
            const uint64_t pair[2] = {*out, item};
            *out = mf_hash_keyed(pair, sizeof pair, run->key);
        }
        return true;
    case MF_J_LIST:
    case MF_J_DICT:
    case MF_J_VIEW: return mf_jraise(run, "unhashable type: '%s'", mf_jtype_name(v));
    default: *out = mf_hash_keyed(&v.dict, sizeof v.dict, run->key); return true;
    }
}

// The place of the key: its entry + 1, or 0; *slot is where it is or belongs in the index.
static bool locate(mf_jrun *run, const mf_jdict *dict, mf_jval key, uint64_t hash, size_t *entry, size_t *slot) {
    *entry = 0;
    *slot = 0;
    if (!dict->index) {
        for (size_t i = 0; i < dict->n; i++) {
            bool equal = false;
            if (dict->entries[i].hash == hash && !mf_jequal(run, dict->entries[i].key, key, &equal)) return false;
            if (equal) {
                *entry = i + 1;
                return true;
            }
        }
        return true;
    }
    for (size_t i = hash & (dict->index_cap - 1);; i = (i + 1) & (dict->index_cap - 1)) {
        *slot = i;
        uint32_t at = dict->index[i];
        if (!at) return true;
        bool equal = false;
        if (dict->entries[at - 1].hash == hash && !mf_jequal(run, dict->entries[at - 1].key, key, &equal)) return false;
        if (equal) {
            *entry = at;
            return true;
        }
        if (!mf_jpay(run, 1)) return false;
    }
}

static bool make_index(mf_jrun *run, mf_jdict *dict) {
    size_t cap = dict->cap * 2;
    dict->index = mf_jalloc(run, cap, sizeof *dict->index);
    if (!dict->index) return false;
    dict->index_cap = cap;
    for (size_t k = 0; k < dict->n; k++) {
        size_t i = dict->entries[k].hash & (cap - 1);
        while (dict->index[i]) i = (i + 1) & (cap - 1);
        dict->index[i] = (uint32_t)k + 1;
    }
    return true;
}

bool mf_jdict_set(mf_jrun *run, mf_jdict *dict, mf_jval key, mf_jval value) {
    uint64_t hash = 0;
    size_t entry, slot;
    if (!hash_value(run, key, &hash) || !locate(run, dict, key, hash, &entry, &slot)) return false;
    if (entry) {
        dict->entries[entry - 1].value = value;
        return true;
    }
    bool grown = dict->n == dict->cap;
    if (grown) {
        size_t cap = dict->cap ? dict->cap * 2 : 8;
        mf_jentry *entries = mf_jalloc(run, cap, sizeof *entries);
        if (!entries) return false;
        if (dict->n) memcpy(entries, dict->entries, dict->n * sizeof *entries);
        dict->entries = entries;
        dict->cap = cap;
    }
    dict->entries[dict->n++] = (mf_jentry){key, value, hash};
    if (grown && dict->n > 8) return make_index(run, dict);
    if (dict->index) dict->index[slot] = (uint32_t)dict->n;
    return true;
}

const mf_jval *mf_jdict_find(mf_jrun *run, const mf_jdict *dict, mf_jval key, bool *ok) {
    uint64_t hash;
    size_t entry, slot;
    *ok = hash_value(run, key, &hash) && locate(run, dict, key, hash, &entry, &slot);
    return *ok && entry ? &dict->entries[entry - 1].value : NULL;
}

const mf_jval *mf_jdict_text(mf_jrun *run, const mf_jdict *dict, mf_str key) {
    if (dict->n == 0) return NULL;
    mf_jstr text = {.ptr = key.ptr, .len = (uint32_t)key.len};
    bool ok;
    return mf_jdict_find(run, dict, mf_jtext(&text), &ok);
}

bool mf_jdict_copy(mf_jrun *run, const mf_jdict *from, mf_jtype type, mf_jval *out) {
    if (!mf_jdict_new(run, type, out)) return false;
    for (size_t i = 0; i < from->n; i++)
        if (!mf_jdict_set(run, out->dict, from->entries[i].key, from->entries[i].value)) return false;
    return true;
}

// ---- Comparing

bool mf_jlength(mf_jrun *run, mf_jval v, size_t *out, bool *has) {
    *has = true;
    switch (v.type) {
    case MF_J_STR: *out = mf_jstr_chars(v.str); return true;
    case MF_J_LIST:
    case MF_J_TUPLE: *out = v.list->n; return true;
    case MF_J_DICT: *out = v.dict->n; return true;
    case MF_J_VIEW: *out = v.view->dict->n; return true;
    case MF_J_RANGE: *out = (size_t)v.range->n; return true;
    case MF_J_UNDEFINED: *out = 0; return true;
    case MF_J_LOOP: return mf_jloop_length(run, v.loop, out);
    default: *has = false; return true;
    }
}

bool mf_jtruth(mf_jrun *run, mf_jval v, bool *out) {
    size_t n = 1;
    bool has = true;
    switch (v.type) {
    case MF_J_NONE:
    case MF_J_UNDEFINED:
    case MF_J_MISSING: *out = false; return true;
    case MF_J_BOOL: *out = v.boolean; return true;
    case MF_J_INT: *out = v.integer != 0; return true;
    case MF_J_FLOAT: *out = v.real != 0; return true;
    case MF_J_STR: *out = v.str->len > 0; return true;
    default:
        if (!mf_jlength(run, v, &n, &has)) return false;
        *out = !has || n > 0;
        return true;
    }
}

bool mf_jsame(mf_jval a, mf_jval b) {
    if (a.type != b.type) return false;
    switch (a.type) {
    case MF_J_NONE: return true;
    case MF_J_BOOL: return a.boolean == b.boolean;
    case MF_J_INT: return a.integer == b.integer;
    case MF_J_STR: // Python keeps one object for each character of Latin-1, and one empty text.
        return a.str == b.str || ((a.str->len <= 1 || (a.str->len == 2 && (uint8_t)*a.str->ptr < 0xC4)) &&
                                  mf_jstr_chars(a.str) <= 1 && mf_str_eq(mf_jstr_slice(a.str), mf_jstr_slice(b.str)));
    case MF_J_FLOAT: return false;
    default: return a.dict == b.dict;
    }
}

static bool items_equal(mf_jrun *run, const mf_jlist *a, const mf_jlist *b, bool *out) {
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++)
        if (!mf_jequal(run, a->items[i], b->items[i], out)) return false;
    return true;
}

static bool dicts_equal(mf_jrun *run, const mf_jdict *a, const mf_jdict *b, bool *out) {
    *out = a->n == b->n;
    for (size_t i = 0; *out && i < a->n; i++) {
        bool ok;
        const mf_jval *other = mf_jdict_find(run, b, a->entries[i].key, &ok);
        if (!ok) return false;
        *out = other != NULL;
        if (other && !mf_jequal(run, a->entries[i].value, *other, out)) return false;
    }
    return true;
}

static bool ranges_equal(const mf_jrange *a, const mf_jrange *b) {
    return a->n == b->n && (a->n == 0 || (a->start == b->start && (a->n == 1 || a->step == b->step)));
}

static bool equal_inside(mf_jrun *run, mf_jval a, mf_jval b, bool *out) {
    if (mf_jis_seq(a) && a.type == b.type) return items_equal(run, a.list, b.list, out);
    if (a.type == MF_J_DICT && b.type == MF_J_DICT) return dicts_equal(run, a.dict, b.dict, out);
    if (a.type == MF_J_VIEW && b.type == MF_J_VIEW && a.view != b.view)
        return mf_jfail(run, MF_ERR_UNSUPPORTED, "comparing dict views is not supported");
    if (a.type == MF_J_RANGE && b.type == MF_J_RANGE)
        *out = ranges_equal(a.range, b.range);
    else
        *out = (a.type == MF_J_UNDEFINED && b.type == MF_J_UNDEFINED) || mf_jsame(a, b);
    return true;
}

// Comparing integers of many digits, or one of them with a float, which becomes digits for it.
static bool pay_numbers(mf_jrun *run, mf_jval a, mf_jval b) {
    bool big = a.type == MF_J_BIG || b.type == MF_J_BIG, real = a.type == MF_J_FLOAT || b.type == MF_J_FLOAT;
    uint64_t digits = (a.type == MF_J_BIG ? a.big->n : 0) + (b.type == MF_J_BIG ? b.big->n : 0);
    return !big || mf_jpay(run, real ? 8 * MF_JCOST_NUMBER : digits);
}

bool mf_jequal(mf_jrun *run, mf_jval a, mf_jval b, bool *out) {
    if (!mf_jpay(run, 2)) return false;
    if (a.type == MF_J_STR && b.type == MF_J_STR) {
        *out = mf_str_eq(mf_jstr_slice(a.str), mf_jstr_slice(b.str));
        return a.str->len != b.str->len || mf_jpay_bytes(run, a.str->len);
    }
    if (mf_jis_number(a) && mf_jis_number(b)) {
        int order;
        if (!pay_numbers(run, a, b)) return false;
        *out = mf_jcompare_numbers(a, b, &order) && order == 0;
        return true;
    }
    if (!mf_jenter(run)) return false;
    bool ok = equal_inside(run, a, b, out);
    mf_jleave(run);
    return ok;
}

static bool seq_less(mf_jrun *run, const mf_jlist *a, const mf_jlist *b, const char *op, bool *out) {
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool equal = false;
        if (!mf_jequal(run, a->items[i], b->items[i], &equal)) return false;
        if (!equal) return mf_jless(run, a->items[i], b->items[i], op, out);
    }
    *out = a->n < b->n;
    return true;
}

bool mf_jless(mf_jrun *run, mf_jval a, mf_jval b, const char *op, bool *out) {
    if (!mf_jpay(run, 1)) return false;
    if (a.type == MF_J_UNDEFINED || b.type == MF_J_UNDEFINED)
        return mf_jundefined_fail(run, a.type == MF_J_UNDEFINED ? a : b);
    if (a.type == MF_J_STR && b.type == MF_J_STR) {
        size_t n = a.str->len < b.str->len ? a.str->len : b.str->len;
        int order = n ? memcmp(a.str->ptr, b.str->ptr, n) : 0;
        *out = order < 0 || (order == 0 && a.str->len < b.str->len);
        return mf_jpay_bytes(run, n);
    }
    if (mf_jis_number(a) && mf_jis_number(b)) {
        int order;
        if (!pay_numbers(run, a, b)) return false;
        *out = mf_jcompare_numbers(a, b, &order) && order < 0;
        return true;
    }
    if (mf_jis_seq(a) && a.type == b.type) {
        if (!mf_jenter(run)) return false;
        bool ok = seq_less(run, a.list, b.list, op, out);
        mf_jleave(run);
        return ok;
    }
    return mf_jraise(run, "'%s' not supported between instances of '%s' and '%s'", op, mf_jtype_name(a), mf_jtype_name(b));
}

bool mf_jindex(mf_jrun *run, mf_jval v, const char *what, int64_t *out) {
    if (v.type == MF_J_BOOL)
        *out = v.boolean;
    else if (v.type == MF_J_INT)
        *out = v.integer;
    else if (v.type == MF_J_BIG)
        *out = mf_jbig_negative(v.big) ? INT64_MIN : INT64_MAX;
    else if (v.type == MF_J_UNDEFINED)
        return mf_jundefined_fail(run, v);
    else
        return mf_jraise(run, "%s: '%s' object cannot be interpreted as an integer", what, mf_jtype_name(v));
    return true;
}
