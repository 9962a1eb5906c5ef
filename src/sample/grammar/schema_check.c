// Whether a value of an enum is right by what stands beside it: a small validator over the same records.
#include <stdlib.h>

#include "base/utf8.h"
#include "sample/grammar/schema_reader.h"

static bool same(const mf_json *a, const mf_json *b, mf_arena *arena) {
    mf_decimal x, y;
    if (a->kind != b->kind || a->count != b->count) return false;
    switch (a->kind) {
    case MF_JSON_NULL: return true;
    case MF_JSON_BOOL: return a->boolean == b->boolean;
    case MF_JSON_STRING: return mf_str_eq(a->text, b->text);
    case MF_JSON_NUMBER:
        return mf_decimal_read(arena, a->text, &x) && mf_decimal_read(arena, b->text, &y) && mf_decimal_compare(&x, &y) == 0;
    case MF_JSON_ARRAY:
        for (const mf_json *p = a->child, *q = b->child; p && q; p = p->next, q = q->next)
            if (!same(p, q, arena)) return false;
        return true;
    case MF_JSON_OBJECT:
        for (const mf_json *p = a->child; p; p = p->next) {
            const mf_json *q = mf_schema_member(b, p->key);
            if (!q || !same(p, q, arena)) return false;
        }
        return true;
    }
    return false;
}

static bool in_list(mf_schema_reader *r, const mf_json *value, const mf_json *list) {
    for (const mf_json *x = list->child; x; x = x->next)
        if (same(value, x, r->arena)) return true;
    return false;
}

static uint32_t characters(mf_str text) {
    uint32_t n = 0, cp;
    for (size_t at = 0; at < text.len; n++) {
        int taken = mf_utf8_decode(text.ptr + at, text.len - at, &cp);
        at += taken > 0 ? (size_t)taken : 1;
    }
    return n;
}

static bool number_fits(mf_schema_reader *r, const mf_json *value, const mf_schema_record *x) {
    mf_decimal d;
    if (!mf_decimal_read(r->arena, value->text, &d)) return false;
    bool whole = mf_decimal_is_whole(&d);
    if (!(x->types & (whole ? MF_S_INTEGER | MF_S_NUMBER : MF_S_NUMBER))) return false;
    int low = x->least.there ? mf_decimal_compare(&d, &x->least.value) : 1,
        high = x->most.there ? mf_decimal_compare(&d, &x->most.value) : -1;
    if (low < 0 || (low == 0 && x->least.exclusive) || high > 0 || (high == 0 && x->most.exclusive)) return false;
    for (size_t i = 0; i < x->multiples.len; i++) {
        uint32_t rest = 0;
        for (size_t k = 0; k < d.whole.len; k++)
            rest = (rest * 10 + (uint32_t)(d.whole.ptr[k] - '0')) % x->multiples.data[i];
        if (!whole || rest) return false;
    }
    return true;
}

static bool array_fits(mf_schema_reader *r, const mf_json *value, const mf_schema_record *x, bool *ok) {
    size_t i = 0;
    *ok = value->count >= x->min_items && value->count <= x->max_items;
    for (const mf_json *v = value->child; v && *ok; v = v->next, i++) {
        if (!mf_schema_fits(r, v, i < x->prefix.len ? &x->prefix.data[i] : &x->items, ok)) return false;
        for (const mf_json *other = value->child; x->unique && other != v && *ok; other = other->next)
            *ok = !same(v, other, r->arena);
    }
    return true;
}

// The names that a value's member needs beside it.
static bool dependents_fit(const mf_json *value, const mf_schema_record *x) {
    for (size_t i = 0; i < x->dependents.len; i++)
        for (const mf_json *d = x->dependents.data[i]->child; d; d = d->next)
            for (const mf_json *n = mf_schema_member(value, d->key) ? d->child : NULL; n; n = n->next)
                if (!mf_schema_member(value, n->text)) return false;
    return true;
}

static bool object_fits(mf_schema_reader *r, const mf_json *value, const mf_schema_record *x, bool *ok) {
    *ok = value->count >= x->min_properties && value->count <= x->max_properties && dependents_fit(value, x);
    for (size_t i = 0; i < x->properties.len && *ok; i++)
        *ok = !x->properties.data[i].required || mf_schema_member(value, x->properties.data[i].name);
    for (const mf_json *v = value->child; v && *ok; v = v->next) {
        mf_schema_list schemas = {0};
        const mf_json name = {.kind = MF_JSON_STRING, .text = v->key};
        bool fine = mf_schema_of_name(r, x, v->key, &schemas) && mf_schema_fits(r, v, &schemas, ok) &&
                    (!*ok || mf_schema_fits(r, &name, &x->names, ok));
        free(schemas.data);
        if (!fine) return false;
    }
    return true;
}

bool mf_schema_record_fits(mf_schema_reader *r, const mf_json *value, const mf_schema_record *x, bool *ok) {
    static const unsigned types[] = {MF_S_NULL,   MF_S_BOOLEAN, MF_S_NUMBER | MF_S_INTEGER,
                                     MF_S_STRING, MF_S_ARRAY,   MF_S_OBJECT};
    bool pairs = x->unique || (value->kind == MF_JSON_OBJECT && (x->values || x->one || x->enums.len));
    size_t steps =
        1 + value->count * (1 + x->properties.len + (pairs ? value->count : 0)) + (x->values ? x->values->count : 0);
    for (size_t i = 0; i < x->enums.len; i++) steps += x->enums.data[i].json->count;
    if (!mf_schema_spend(r, steps)) return false;
    *ok = !x->nothing && (x->types & types[value->kind]);
    if (*ok && x->values) *ok = in_list(r, value, x->values);
    if (*ok && x->one) *ok = same(value, x->one, r->arena);
    for (size_t i = 0; i < x->enums.len && *ok; i++) *ok = in_list(r, value, x->enums.data[i].json);
    for (size_t i = 0; i < x->choices.len && *ok; i++) {
        bool any = false;
        for (const mf_json *s = x->choices.data[i].json->child; s && !any; s = s->next) {
            mf_schema_at at = {s, x->choices.data[i].at};
            const mf_schema_list list = {&at, 1, 1};
            if (!mf_schema_fits(r, value, &list, &any)) return false;
        }
        *ok = any;
    }
    if (!*ok) return true;
    uint32_t n;
    switch (value->kind) {
    case MF_JSON_NUMBER: *ok = number_fits(r, value, x); return true;
    case MF_JSON_STRING:
        n = characters(value->text);
        *ok = n >= x->min_length && n <= x->max_length && (!x->text || mf_dfa_accepts(x->text, value->text));
        return true;
    case MF_JSON_ARRAY: return array_fits(r, value, x, ok);
    case MF_JSON_OBJECT: return object_fits(r, value, x, ok);
    default: return true;
    }
}

bool mf_schema_fits(mf_schema_reader *r, const mf_json *value, const mf_schema_list *schemas, bool *ok) {
    mf_schema_record x = {
        .types = MF_S_ALL, .max_length = UINT32_MAX, .max_items = UINT32_MAX, .max_properties = UINT32_MAX};
    if (schemas->len && ++r->depth > MF_SCHEMA_MAX_DEPTH)
        return mf_schema_refuse(r, MF_ERR_LIMIT, schemas->data[0].at,
                                "schemas in schemas, or a reference to itself, over %d deep", MF_SCHEMA_MAX_DEPTH) != NULL;
    bool fine = true;
    for (size_t i = 0; i < schemas->len && fine; i++) fine = mf_schema_gather(r, &x, schemas->data[i]);
    fine = fine && mf_schema_record_fits(r, value, &x, ok);
    if (schemas->len) r->depth--;
    mf_schema_record_free(&x);
    return fine;
}
