// Objects: declared properties in their order (or in any), then names that only patterns or additionalProperties speak of. What may come
// next depends on how many members there were and on which of those that others depend on; each such case is a rule, made once.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample/grammar/schema_reader.h"

#define MAX_PATTERNS  6
#define MAX_ANY_ORDER 12
#define MAX_DEPENDENT 16
#define MAX_CASES     200000

typedef struct object {
    mf_schema_reader *r;
    mf_schema_record *x;
    size_t n;                    // properties
    mf_expr **members;           // [n] "name": value; NULL: it may not be there
    uint32_t *needs, *needed_by; // [n] dependents: bits of tracked properties
    uint32_t *bit;               // [n] the property's own; 0: not tracked
    uint32_t cap;                // members are counted up to this
    bool any_order;
    mf_expr *other; // a member of another name; NULL: none
    mf_map cases;
} object;

// ---- Names

bool mf_schema_of_name(mf_schema_reader *r, const mf_schema_record *x, mf_str name, mf_schema_list *out) {
    bool ok = true;
    for (size_t i = 0; i < x->properties.len && ok; i++)
        for (size_t k = 0; ok && mf_str_eq(x->properties.data[i].name, name) && k < x->properties.data[i].schemas.len; k++)
            ok = mf_array_push(out, x->properties.data[i].schemas.data[k]);
    for (size_t i = 0; i < x->patterns.len && ok; i++)
        if (mf_dfa_accepts(x->patterns.data[i].dfa, name)) ok = mf_array_push(out, x->patterns.data[i].schema);
    for (size_t i = 0; i < x->additional.len && ok; i++) {
        const mf_json *owner = x->additional.data[i].owner, *own = mf_json_get(owner, "properties"),
                      *patterns = mf_json_get(owner, "patternProperties");
        bool known = own && mf_schema_member(own, name);
        for (size_t k = 0; k < x->patterns.len && patterns && !known; k++)
            known = mf_schema_member(patterns, x->patterns.data[k].pattern) && mf_dfa_accepts(x->patterns.data[k].dfa, name);
        if (!known) ok = mf_array_push(out, x->additional.data[i].schema);
    }
    return ok || (mf_schema_no_memory(r), false);
}

static mf_expr *member_of(object *o, mf_expr *name, const mf_schema_list *schemas) {
    mf_schema_reader *r = o->r;
    mf_expr *parts[] = {name, mf_schema_space(r), mf_schema_text(r, ":"), mf_schema_space(r), mf_schema_value(r, schemas)};
    return mf_schema_seq(r, parts, 5);
}

static mf_expr *quoted(object *o, mf_str name) {
    mf_buf out = {0};
    mf_json_writer w = {.out = &out};
    mf_json_string(&w, name);
    mf_expr *e = out.failed ? NULL : mf_expr_literal(o->r->g, out.data, out.len);
    free(out.data);
    return e ? e : mf_schema_no_memory(o->r);
}

// The declared members that may be there. False with err.
static bool make_members(object *o) {
    for (size_t i = 0; i < o->n; i++) {
        const mf_schema_property *p = &o->x->properties.data[i];
        const mf_json name = {.kind = MF_JSON_STRING, .text = p->name};
        mf_schema_list schemas = {0};
        bool fits = true;
        bool ok = mf_schema_of_name(o->r, o->x, p->name, &schemas) && mf_schema_fits(o->r, &name, &o->x->names, &fits);
        if (ok && fits && !mf_schema_is_false(&schemas))
            ok = (o->members[i] = member_of(o, quoted(o, p->name), &schemas)) != NULL;
        free(schemas.data);
        if (!ok) return false;
    }
    return true;
}

// ---- Other names

// The strings that propertyNames allows, less the declared names. NULL with err.
static const mf_dfa *other_names(object *o) {
    mf_schema_reader *r = o->r;
    mf_schema_record names = {
        .types = MF_S_ALL, .max_length = UINT32_MAX, .max_items = UINT32_MAX, .max_properties = UINT32_MAX};
    mf_str *texts = mf_arena_alloc(r->arena, o->n + 1, sizeof *texts);
    bool ok = texts || (mf_schema_no_memory(r), false);
    for (size_t i = 0; ok && i < o->n; i++) texts[i] = o->x->properties.data[i].name;
    for (size_t i = 0; ok && i < o->x->names.len; i++) ok = mf_schema_gather(r, &names, o->x->names.data[i]);
    if (ok && (names.values || names.one || names.choices.len))
        ok = mf_schema_refuse(r, MF_ERR_UNSUPPORTED, names.at,
                              "propertyNames with enum, const, anyOf or oneOf is not supported") != NULL;
    const mf_dfa *d = ok ? mf_schema_paid(r, mf_dfa_of_texts(r->arena, texts, o->n, r->err)) : NULL;
    d = d ? mf_schema_paid(r, mf_dfa_complement(r->arena, d, r->err)) : NULL;
    if (d && names.text) d = mf_schema_paid(r, mf_dfa_intersect(r->arena, d, names.text, r->err));
    if (d && (names.nothing || !(names.types & MF_S_STRING)))
        d = mf_schema_paid(r, mf_dfa_of_texts(r->arena, NULL, 0, r->err));
    if (d && (names.min_length > 0 || names.max_length != UINT32_MAX)) {
        char text[64];
        snprintf(text, sizeof text, names.max_length == UINT32_MAX ? "[\\s\\S]{%u,}" : "[\\s\\S]{%u,%u}", names.min_length,
                 names.max_length);
        const mf_dfa *length = mf_schema_paid(r, mf_dfa_of_regex(r->arena, mf_str_of(text), true, r->err));
        d = length ? mf_schema_paid(r, mf_dfa_intersect(r->arena, d, length, r->err)) : NULL;
    }
    mf_schema_record_free(&names);
    return d;
}

// The schemas of a name that matches just these patterns.
static bool schemas_of_set(object *o, unsigned set, mf_schema_list *out) {
    const mf_schema_record *x = o->x;
    bool ok = true;
    for (size_t i = 0; i < x->patterns.len && ok; i++)
        if (set >> i & 1) ok = mf_array_push(out, x->patterns.data[i].schema);
    for (size_t i = 0; i < x->additional.len && ok; i++) {
        const mf_json *patterns = mf_json_get(x->additional.data[i].owner, "patternProperties");
        bool known = false;
        for (size_t k = 0; k < x->patterns.len && patterns; k++)
            known = known || ((set >> k & 1) && mf_schema_member(patterns, x->patterns.data[k].pattern));
        if (!known) ok = mf_array_push(out, x->additional.data[i].schema);
    }
    return ok || (mf_schema_no_memory(o->r), false);
}

// A member of any other name, by which patterns it matches. o->other stays NULL where none may be. False with err.
static bool make_other(object *o) {
    mf_schema_reader *r = o->r;
    mf_schema_record *x = o->x;
    if (x->patterns.len > MAX_PATTERNS)
        return mf_schema_refuse(r, MF_ERR_LIMIT, x->at, "over %d patternProperties", MAX_PATTERNS), false;
    const mf_dfa *names = other_names(o);
    if (!names) return false;
    mf_expr *kinds[1 << MAX_PATTERNS];
    size_t n = 0;
    for (unsigned set = 0; set < 1U << x->patterns.len; set++) {
        const mf_dfa *d = names;
        for (size_t i = 0; i < x->patterns.len && d; i++) {
            const mf_dfa *one = set >> i & 1
                                    ? x->patterns.data[i].dfa
                                    : mf_schema_paid(r, mf_dfa_complement(r->arena, x->patterns.data[i].dfa, r->err));
            d = one ? mf_schema_paid(r, mf_dfa_intersect(r->arena, d, one, r->err)) : NULL;
        }
        if (!d) return false;
        mf_schema_list schemas = {0};
        bool ok = schemas_of_set(o, set, &schemas);
        if (ok && !mf_dfa_empty(d) && !mf_schema_is_false(&schemas)) {
            bool any_name = o->n == 0 && x->patterns.len == 0 && x->names.len == 0;
            kinds[n] = member_of(o, mf_schema_string(r, any_name ? NULL : d, 0, MF_GRAMMAR_MANY), &schemas);
            ok = kinds[n++] != NULL;
        }
        free(schemas.data);
        if (!ok) return false;
    }
    if (n == 0) return true;
    o->other = mf_expr_list(r->g, MF_EXPR_CHOICE, kinds, n);
    return o->other || (mf_schema_no_memory(r), false);
}

// ---- Dependents

static size_t property_number(const object *o, mf_str name) {
    size_t i = 0;
    while (i < o->n && !mf_str_eq(o->x->properties.data[i].name, name)) i++;
    return i;
}

static bool track(object *o, size_t i, uint32_t *n_tracked) {
    if (o->bit[i]) return true;
    if (*n_tracked == MAX_DEPENDENT)
        return mf_schema_refuse(o->r, MF_ERR_LIMIT, o->x->at, "over %d properties depend on others", MAX_DEPENDENT), false;
    o->bit[i] = 1U << (*n_tracked)++;
    return true;
}

static bool read_dependents(object *o) {
    uint32_t n_tracked = 0;
    for (size_t k = 0; k < o->x->dependents.len; k++)
        for (const mf_json *d = o->x->dependents.data[k]->child; d; d = d->next)
            for (const mf_json *name = d->child; name; name = name->next) {
                size_t a = property_number(o, d->key), b = property_number(o, name->text);
                if (!track(o, a, &n_tracked) || !track(o, b, &n_tracked)) return false;
                o->needs[a] |= o->bit[b], o->needed_by[b] |= o->bit[a];
            }
    return true;
}

// ---- Cases

static mf_expr *comma(mf_schema_reader *r) {
    mf_expr *parts[] = {mf_schema_space(r), mf_schema_text(r, ","), mf_schema_space(r)};
    return mf_schema_seq(r, parts, 3);
}

static mf_expr *copy_of(object *o, const mf_expr *e) {
    mf_expr *x = mf_expr_new(o->r->g, e->kind);
    if (!x) return mf_schema_no_memory(o->r);
    *x = *e;
    x->next = NULL;
    return x;
}

static uint32_t less(uint32_t a, uint32_t b) { return a == UINT32_MAX ? a : a > b ? a - b : 0; }

// Other members, when `count` were said.
static mf_expr *others(object *o, uint32_t count) {
    mf_schema_reader *r = o->r;
    uint32_t min = less(o->x->min_properties, count), max = less(o->x->max_properties, count);
    if (!o->other || max == 0) return min == 0 ? mf_schema_text(r, "") : mf_expr_list(r->g, MF_EXPR_CHOICE, NULL, 0);
    mf_expr *parts[] = {comma(r), copy_of(o, o->other)}, *more = mf_schema_seq(r, parts, 2);
    if (!more) return NULL;
    if (count > 0) return mf_expr_repeat(r->g, more, min, max);
    mf_expr *list[] = {copy_of(o, o->other), mf_expr_repeat(r->g, more, less(min, 1), less(max, 1))};
    mf_expr *all = mf_schema_seq(r, list, 2);
    return all && min == 0 ? mf_expr_repeat(r->g, all, 0, 1) : all;
}

// The rule for what may follow; 0 with err. at: properties before it are decided (in any order: `said` tells); count: members so far;
// said: tracked ones (in any order: all) that were.
static uint32_t case_of(object *o, size_t at, uint32_t count, uint32_t said);

static mf_expr *with_member(object *o, size_t i, uint32_t count, uint32_t rest) {
    mf_expr *parts[] = {count ? comma(o->r) : mf_schema_text(o->r, ""), copy_of(o, o->members[i]),
                        rest ? mf_expr_rule(o->r->g, rest - 1) : NULL};
    return mf_schema_seq(o->r, parts, 3);
}

static uint32_t counted(const object *o, uint32_t count) { return count < o->cap ? count + 1 : count; }

typedef mf_array(mf_expr *) expr_list;

static bool add(object *o, expr_list *list, mf_expr *e) {
    return e && (mf_array_push(list, e) || (mf_schema_no_memory(o->r), false));
}

static bool ordered(object *o, size_t at, uint32_t count, uint32_t said, expr_list *choices) {
    if (at == o->n) return add(o, choices, others(o, count));
    uint32_t earlier = 0;
    for (size_t i = 0; i < at; i++) earlier |= o->bit[i];
    bool ok = true;
    if (o->members[at] && count < o->x->max_properties && !(o->needs[at] & earlier & ~said)) {
        uint32_t rest = case_of(o, at + 1, counted(o, count), said | o->bit[at]);
        ok = rest && add(o, choices, with_member(o, at, count, rest));
    }
    if (ok && !o->x->properties.data[at].required && !(o->needed_by[at] & said)) {
        uint32_t rest = case_of(o, at + 1, count, said);
        ok = rest && add(o, choices, mf_expr_rule(o->r->g, rest - 1));
    }
    return ok;
}

static bool in_any_order(object *o, uint32_t count, uint32_t said, expr_list *choices) {
    bool done = true, ok = true;
    for (size_t i = 0; i < o->n; i++) {
        bool here = said >> i & 1;
        done = done && (here || !o->x->properties.data[i].required);
        for (size_t k = 0; k < o->n; k++) done = done && !(here && (o->needs[i] & o->bit[k]) && !(said >> k & 1));
    }
    for (size_t i = 0; i < o->n && ok; i++) {
        if (said >> i & 1 || !o->members[i] || count >= o->x->max_properties) continue;
        uint32_t rest = case_of(o, 0, counted(o, count), said | 1U << i);
        ok = rest && add(o, choices, with_member(o, i, count, rest));
    }
    return ok && (!done || add(o, choices, others(o, count)));
}

static uint32_t case_of(object *o, size_t at, uint32_t count, uint32_t said) {
    const uint32_t key[3] = {(uint32_t)at, count, said};
    uint32_t rule;
    char *kept = mf_arena_copy(o->r->arena, (const char *)key, sizeof key);
    if (!kept) return mf_schema_no_memory(o->r), 0;
    const mf_str name = {kept, sizeof key};
    if (mf_map_get(&o->cases, name, &rule)) return rule + 1;
    if (o->cases.len >= MAX_CASES || o->r->g->rules.len >= MF_SCHEMA_MAX_RULES)
        return mf_schema_refuse(o->r, MF_ERR_LIMIT, o->x->at, "an object with too many cases"), 0;
    if (!mf_grammar_add_rule(o->r->g, (mf_str){0}, 0, &rule) || !mf_map_set(&o->cases, name, rule, NULL))
        return mf_schema_no_memory(o->r), 0;
    expr_list choices = {0};
    bool ok = o->any_order ? in_any_order(o, count, said, &choices) : ordered(o, at, count, said, &choices);
    mf_expr *e = ok ? mf_expr_list(o->r->g, MF_EXPR_CHOICE, choices.data, choices.len) : NULL;
    free(choices.data);
    if (ok && !e) mf_schema_no_memory(o->r);
    if (!e) return 0;
    o->r->g->rules.data[rule].expr = e;
    return rule + 1;
}

// ---- The whole

static mf_expr *braces(object *o) {
    mf_schema_reader *r = o->r;
    uint32_t rule = case_of(o, 0, 0, 0);
    if (!rule) return NULL;
    mf_expr *parts[] = {mf_schema_text(r, "{"), mf_schema_space(r), mf_expr_rule(r->g, rule - 1), mf_schema_space(r),
                        mf_schema_text(r, "}")};
    return mf_schema_seq(r, parts, 5);
}

static bool prepare(object *o) {
    mf_arena *a = o->r->arena;
    size_t n = o->n + 1;
    o->members = mf_arena_alloc(a, n, sizeof *o->members);
    o->needs = mf_arena_alloc(a, n, sizeof *o->needs);
    o->needed_by = mf_arena_alloc(a, n, sizeof *o->needed_by);
    o->bit = mf_arena_alloc(a, n, sizeof *o->bit);
    if (!o->members || !o->needs || !o->needed_by || !o->bit) return mf_schema_no_memory(o->r), false;
    uint32_t bound = o->x->max_properties == UINT32_MAX ? o->x->min_properties : o->x->max_properties;
    if (bound > o->n && bound != UINT32_MAX) bound = (uint32_t)o->n + 1; // declared ones are all that is counted one by one
    o->cap = bound > 1 ? bound : 1;
    o->any_order = o->r->options.any_order;
    if (o->any_order && o->n > MAX_ANY_ORDER)
        return mf_schema_refuse(o->r, MF_ERR_LIMIT, o->x->at, "over %d properties in any order", MAX_ANY_ORDER), false;
    return read_dependents(o) && make_members(o) && make_other(o);
}

mf_expr *mf_schema_object(mf_schema_reader *r, mf_schema_record *x, bool *nothing) {
    *nothing = x->min_properties > x->max_properties;
    if (*nothing) return NULL;
    object o = {.r = r, .x = x, .n = x->properties.len};
    mf_expr *e = prepare(&o) ? braces(&o) : NULL;
    mf_map_free(&o.cases);
    return e;
}
