// Expressions out of records: the choice of types, numbers, strings, lists of values; rules for sets of schemas, which may be recursive.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sample/grammar/schema_reader.h"

#define MAX_SPACE    20 // white-space characters between tokens
#define JSON_NUMBER  "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
#define PLAIN_NUMBER "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?"
#define WHOLE_NUMBER "-?(?:0|[1-9][0-9]*)"

static mf_expr *checked(mf_schema_reader *r, mf_expr *e) { return e ? e : mf_schema_no_memory(r); }

mf_expr *mf_schema_text(mf_schema_reader *r, const char *literal) {
    return checked(r, mf_expr_literal(r->g, literal, strlen(literal)));
}

mf_expr *mf_schema_seq(mf_schema_reader *r, mf_expr *const *parts, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!parts[i]) return NULL; // said already why
    return checked(r, mf_expr_list(r->g, MF_EXPR_SEQUENCE, parts, n));
}

mf_expr *mf_schema_string(mf_schema_reader *r, const mf_dfa *dfa, uint32_t min, uint32_t max) {
    mf_expr *e = checked(r, mf_expr_new(r->g, MF_EXPR_STRING));
    if (e) e->dfa = dfa, e->min = min, e->max = max;
    return e;
}

static bool new_rule(mf_schema_reader *r, uint32_t *rule) {
    if (r->g->rules.len >= MF_SCHEMA_MAX_RULES)
        return mf_fail(r->err, MF_ERR_LIMIT, "the schema comes to over %d rules", MF_SCHEMA_MAX_RULES);
    return mf_grammar_add_rule(r->g, (mf_str){0}, 0, rule) || (mf_schema_no_memory(r), false);
}

mf_expr *mf_schema_space(mf_schema_reader *r) {
    static const mf_range spaces[] = {{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}};
    if (!r->has_space) {
        if (!new_rule(r, &r->space)) return NULL;
        r->has_space = true;
        mf_expr *many = mf_expr_repeat(r->g, mf_expr_chars(r->g, (mf_charset){spaces, 3}), 0, MAX_SPACE);
        r->g->rules.data[r->space].expr = many;
        if (!many) return mf_schema_no_memory(r);
    }
    return checked(r, mf_expr_rule(r->g, r->space));
}

// ---- Any value

static mf_expr *regex(mf_schema_reader *r, const char *text) {
    const mf_dfa *d = mf_schema_paid(r, mf_dfa_of_regex(r->arena, mf_str_of(text), true, r->err));
    mf_expr *e = d ? checked(r, mf_expr_new(r->g, MF_EXPR_NUMBER)) : NULL;
    if (e) e->dfa = d;
    return e;
}

static mf_expr *list_of(mf_schema_reader *r, const char *open, mf_expr *first, mf_expr *another, const char *close) {
    mf_expr *more[] = {mf_schema_space(r), mf_schema_text(r, ","), mf_schema_space(r), another};
    mf_expr *rest = mf_schema_seq(r, more, 4),
            *many = rest ? checked(r, mf_expr_repeat(r->g, rest, 0, MF_GRAMMAR_MANY)) : NULL;
    mf_expr *inner[] = {first, many, mf_schema_space(r)}, *in = mf_schema_seq(r, inner, 3);
    mf_expr *whole[] = {mf_schema_text(r, open), mf_schema_space(r), in ? checked(r, mf_expr_repeat(r->g, in, 0, 1)) : NULL,
                        mf_schema_text(r, close)};
    return mf_schema_seq(r, whole, 4);
}

static mf_expr *any_member(mf_schema_reader *r) {
    mf_expr *parts[] = {mf_schema_string(r, NULL, 0, MF_GRAMMAR_MANY), mf_schema_space(r), mf_schema_text(r, ":"),
                        mf_schema_space(r), mf_expr_rule(r->g, r->value)};
    return mf_schema_seq(r, parts, 5);
}

static mf_expr *any_of_type(mf_schema_reader *r, unsigned type) {
    switch (type) {
    case MF_S_NULL: return mf_schema_text(r, "null");
    case MF_S_STRING: return mf_schema_string(r, NULL, 0, MF_GRAMMAR_MANY);
    case MF_S_ARRAY: return list_of(r, "[", mf_expr_rule(r->g, r->value), mf_expr_rule(r->g, r->value), "]");
    case MF_S_OBJECT: return list_of(r, "{", any_member(r), any_member(r), "}");
    default: return NULL;
    }
}

mf_expr *mf_schema_any(mf_schema_reader *r) {
    if (!r->has_value) {
        if (!new_rule(r, &r->value)) return NULL;
        r->has_value = true;
        mf_expr *types[] = {any_of_type(r, MF_S_OBJECT), any_of_type(r, MF_S_ARRAY), any_of_type(r, MF_S_STRING),
                            regex(r, JSON_NUMBER),       mf_schema_text(r, "true"),  mf_schema_text(r, "false"),
                            any_of_type(r, MF_S_NULL)};
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
            if (!types[i]) return NULL;
        r->g->rules.data[r->value].expr = mf_expr_list(r->g, MF_EXPR_CHOICE, types, sizeof types / sizeof types[0]);
        if (!r->g->rules.data[r->value].expr) return mf_schema_no_memory(r);
    }
    return checked(r, mf_expr_rule(r->g, r->value));
}

// ---- Numbers

static const mf_dfa *meet(mf_schema_reader *r, const mf_dfa *a, const mf_dfa *b) {
    return a && b ? mf_schema_paid(r, mf_dfa_intersect(r->arena, a, b, r->err)) : NULL;
}

static const mf_dfa *within(mf_schema_reader *r, const mf_dfa *all, const mf_schema_bound *b, bool least, bool whole) {
    mf_buf text = {0};
    if (!b->there || !all) return all;
    if (least)
        mf_decimal_at_least(&b->value, b->exclusive, whole, &text);
    else
        mf_decimal_at_most(&b->value, b->exclusive, whole, &text);
    const mf_dfa *d =
        text.failed ? mf_schema_no_memory(r) : mf_dfa_of_regex(r->arena, (mf_str){text.data, text.len}, true, r->err);
    free(text.data);
    return meet(r, all, mf_schema_paid(r, d));
}

// *nothing: no number is within the bounds.
static mf_expr *number(mf_schema_reader *r, const mf_schema_record *x, bool whole, bool *nothing) {
    bool bounded = x->least.there || x->most.there, only_whole = whole || x->multiples.len > 0;
    const char *text = only_whole ? WHOLE_NUMBER : bounded ? PLAIN_NUMBER : JSON_NUMBER;
    const mf_dfa *d = mf_schema_paid(r, mf_dfa_of_regex(r->arena, mf_str_of(text), true, r->err));
    d = within(r, d, &x->least, true, only_whole);
    d = within(r, d, &x->most, false, only_whole);
    for (size_t i = 0; i < x->multiples.len && d; i++)
        d = meet(r, d, mf_schema_paid(r, mf_dfa_of_multiples(r->arena, x->multiples.data[i], r->err)));
    if (!d) return NULL;
    if ((*nothing = mf_dfa_empty(d))) return NULL;
    mf_expr *e = checked(r, mf_expr_new(r->g, MF_EXPR_NUMBER));
    if (e) e->dfa = d;
    return e;
}

static mf_expr *string(mf_schema_reader *r, const mf_schema_record *x, bool *nothing) {
    const mf_dfa *d = x->text;
    size_t cells = d ? (size_t)d->n * d->n_classes : 0, steps = x->min_length < 1000 ? x->min_length : 1000;
    if (!mf_schema_spend(r, cells * steps / 8)) return NULL;
    *nothing = x->min_length > x->max_length || (d && !mf_dfa_accepts_length(d, x->min_length, x->max_length));
    return *nothing ? NULL : mf_schema_string(r, d, x->min_length, x->max_length);
}

// ---- Lists of values

static mf_expr *scalar(mf_schema_reader *r, const mf_json *v) {
    mf_buf out = {0};
    mf_json_writer w = {.out = &out};
    if (v->kind == MF_JSON_NULL) mf_json_null(&w);
    if (v->kind == MF_JSON_BOOL) mf_json_bool(&w, v->boolean);
    if (v->kind == MF_JSON_STRING) mf_json_string(&w, v->text);
    if (v->kind == MF_JSON_NUMBER) mf_json_number(&w, v->text);
    mf_expr *e = out.failed ? NULL : mf_expr_literal(r->g, out.data, out.len);
    free(out.data);
    return checked(r, e);
}

typedef mf_array(mf_expr *) expr_list;

static bool add(mf_schema_reader *r, expr_list *list, mf_expr *e) {
    return e && (mf_array_push(list, e) || (mf_schema_no_memory(r), false));
}

static mf_expr *literal_value(mf_schema_reader *r, const mf_json *v);

// An element of a list, or a member of an object with its name, and what stands before it.
static bool add_element(mf_schema_reader *r, const mf_json *x, bool first, bool object, expr_list *out) {
    const mf_json name = {.kind = MF_JSON_STRING, .text = x->key};
    bool ok = first || (add(r, out, mf_schema_space(r)) && add(r, out, mf_schema_text(r, ",")));
    ok = ok && add(r, out, mf_schema_space(r));
    if (object)
        ok = ok && add(r, out, scalar(r, &name)) && add(r, out, mf_schema_space(r)) && add(r, out, mf_schema_text(r, ":")) &&
             add(r, out, mf_schema_space(r));
    return ok && add(r, out, literal_value(r, x));
}

// A value as it stands in an enum, with white space between its tokens.
static mf_expr *literal_value(mf_schema_reader *r, const mf_json *v) {
    bool object = v->kind == MF_JSON_OBJECT;
    if (!object && v->kind != MF_JSON_ARRAY) return scalar(r, v);
    expr_list parts = {0};
    bool ok = add(r, &parts, mf_schema_text(r, object ? "{" : "["));
    for (const mf_json *x = v->child; x && ok; x = x->next) ok = add_element(r, x, x == v->child, object, &parts);
    ok = ok && add(r, &parts, mf_schema_space(r)) && add(r, &parts, mf_schema_text(r, object ? "}" : "]"));
    mf_expr *all = ok ? mf_schema_seq(r, parts.data, parts.len) : NULL;
    free(parts.data);
    return all;
}

// The values of enum and const that all the rest of the record allows too.
static bool add_values(mf_schema_reader *r, mf_schema_record *x, expr_list *out) {
    const mf_json *values = x->values, *one = x->one;
    x->values = x->one = NULL;
    bool fits = false, ok = true;
    if (one && values) ok = mf_array_push(&x->enums, ((mf_schema_at){values, x->at})) || (mf_schema_no_memory(r), false);
    for (const mf_json *v = one ? one : values->child; v && ok; v = one ? NULL : v->next) {
        ok = mf_schema_record_fits(r, v, x, &fits);
        if (ok && fits) ok = add(r, out, literal_value(r, v));
    }
    return ok;
}

// ---- Types

static bool add_type(mf_schema_reader *r, mf_schema_record *x, unsigned type, expr_list *out) {
    bool nothing = false;
    mf_expr *e = NULL;
    switch (type) {
    case MF_S_NULL: return add(r, out, mf_schema_text(r, "null"));
    case MF_S_BOOLEAN: return add(r, out, mf_schema_text(r, "true")) && add(r, out, mf_schema_text(r, "false"));
    case MF_S_STRING: e = string(r, x, &nothing); break;
    case MF_S_NUMBER: e = number(r, x, false, &nothing); break;
    case MF_S_INTEGER:
        if (x->types & MF_S_NUMBER) return true;
        e = number(r, x, true, &nothing);
        break;
    case MF_S_ARRAY: e = mf_schema_array(r, x, &nothing); break;
    default: e = mf_schema_object(r, x, &nothing); break;
    }
    return nothing || add(r, out, e);
}

static bool add_record(mf_schema_reader *r, mf_schema_record *x, expr_list *out);

// One of the alternatives of a list beside all that is gathered: the schemas are gathered anew for each.
static bool add_choices(mf_schema_reader *r, const mf_schema_list *schemas, size_t n_choices, expr_list *out) {
    mf_schema_record x = {0};
    x.types = MF_S_ALL, x.max_length = x.max_items = x.max_properties = UINT32_MAX;
    if (n_choices > MF_SCHEMA_MAX_DEPTH)
        return mf_schema_refuse(r, MF_ERR_LIMIT, schemas->data[0].at,
                                "anyOf or oneOf beside one another, or a reference to itself, over %d deep",
                                MF_SCHEMA_MAX_DEPTH) != NULL;
    bool ok = true;
    for (size_t i = 0; i < schemas->len && ok; i++) ok = mf_schema_gather(r, &x, schemas->data[i]);
    if (ok && n_choices < x.choices.len) {
        const mf_schema_at list = x.choices.data[n_choices];
        size_t i = 0;
        for (const mf_json *v = list.json->child; v && ok; v = v->next, i++) {
            char number_text[24];
            snprintf(number_text, sizeof number_text, "%zu", i);
            mf_schema_list with = {0};
            for (size_t k = 0; k < schemas->len && ok; k++)
                ok = mf_array_push(&with, schemas->data[k]) || (mf_schema_no_memory(r), false);
            mf_schema_at own = {v, mf_schema_join(r, list.at, number_text, (mf_str){0})};
            ok = ok && own.at && (mf_array_push(&with, own) || (mf_schema_no_memory(r), false));
            if (ok && ++r->n_choices > MF_SCHEMA_MAX_CHOICES)
                ok = mf_fail(r->err, MF_ERR_LIMIT, "the schema at '#%.150s': over %d alternatives", list.at,
                             MF_SCHEMA_MAX_CHOICES);
            ok = ok && add_choices(r, &with, n_choices + 1, out);
            free(with.data);
        }
    } else if (ok && !x.nothing) {
        ok = add_record(r, &x, out);
    }
    mf_schema_record_free(&x);
    return ok;
}

static bool add_record(mf_schema_reader *r, mf_schema_record *x, expr_list *out) {
    if (x->values || x->one) return add_values(r, x, out);
    bool ok = true;
    for (unsigned type = 1; type < MF_S_ALL && ok; type *= 2)
        if (x->types & type) ok = add_type(r, x, type, out);
    return ok;
}

// ---- Sets of schemas

bool mf_schema_is_false(const mf_schema_list *schemas) {
    for (size_t i = 0; i < schemas->len; i++)
        if (schemas->data[i].json->kind == MF_JSON_BOOL && !schemas->data[i].json->boolean) return true;
    return false;
}

static int by_address(const void *a, const void *b) {
    const mf_json *x = ((const mf_schema_at *)a)->json, *y = ((const mf_schema_at *)b)->json;
    return x < y ? -1 : x > y;
}

// A name for the set, the same in whatever order it is listed.
static bool set_key(mf_schema_reader *r, const mf_schema_list *schemas, mf_str *key) {
    size_t n = schemas->len;
    mf_schema_at *sorted = mf_arena_alloc(r->arena, n + 1, sizeof *sorted);
    const mf_json **addresses = mf_arena_alloc(r->arena, n + 1, sizeof *addresses);
    if (!sorted || !addresses) return mf_schema_no_memory(r), false;
    memcpy(sorted, schemas->data, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_address);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || sorted[i].json != sorted[i - 1].json) addresses[kept++] = sorted[i].json;
    *key = (mf_str){(const char *)addresses, kept * sizeof *addresses};
    return true;
}

mf_expr *mf_schema_value(mf_schema_reader *r, const mf_schema_list *schemas) {
    mf_schema_list list = *schemas;
    uint32_t rule;
    mf_str key;
    if (mf_schema_any_list(&list)) return mf_schema_any(r);
    if (!set_key(r, schemas, &key)) return NULL;
    if (mf_map_get(&r->rules, key, &rule)) return checked(r, mf_expr_rule(r->g, rule));
    if (!new_rule(r, &rule)) return NULL;
    if (!mf_map_set(&r->rules, key, rule, NULL)) return mf_schema_no_memory(r);
    if (++r->depth > MF_SCHEMA_MAX_DEPTH)
        return mf_schema_refuse(r, MF_ERR_LIMIT, schemas->data[0].at, "schemas in schemas over %d deep",
                                MF_SCHEMA_MAX_DEPTH);
    expr_list all = {0};
    bool ok = add_choices(r, schemas, 0, &all);
    r->depth--;
    mf_expr *e = ok ? checked(r, mf_expr_list(r->g, MF_EXPR_CHOICE, all.data, all.len)) : NULL;
    free(all.data);
    if (e) r->g->rules.data[rule].expr = e;
    return e ? checked(r, mf_expr_rule(r->g, rule)) : NULL;
}

// ---- The whole

static int draft_of(const mf_json *root) {
    const mf_json *schema = mf_json_get(root, "$schema");
    if (!schema || schema->kind != MF_JSON_STRING) return 2020;
    if (strstr(schema->text.ptr, "draft-04")) return 4;
    if (strstr(schema->text.ptr, "draft-06")) return 6;
    return strstr(schema->text.ptr, "draft-07") ? 7 : 2020;
}

static bool read_root(mf_schema_reader *r) {
    const mf_json *id = mf_json_get(r->root, r->draft == 4 ? "id" : "$id");
    if (id && id->kind == MF_JSON_STRING) r->id = id->text;
    if (!new_rule(r, &r->g->root)) return false;
    mf_schema_at root = {r->root, ""};
    mf_schema_list list = {&root, 1, 1};
    mf_expr *parts[] = {mf_schema_space(r), mf_schema_value(r, &list)};
    mf_expr *e = mf_schema_seq(r, parts, 2);
    if (!e) return false;
    r->g->rules.data[r->g->root].expr = e;
    return true;
}

bool mf_schema_read(mf_str schema, const mf_schema_options *options, mf_grammar *g, mf_error *err) {
    mf_error own = {0};
    mf_schema_reader r = {.g = g, .arena = &g->arena, .err = err ? err : &own};
    if (options) r.options = *options;
    mf_arena json = {.limit = 256U << 20};
    r.root = mf_json_parse(&json, schema, r.err);
    bool ok = r.root ? true : mf_fail_prefix(r.err, "the schema");
    if (ok) {
        r.draft = draft_of(r.root);
        ok = read_root(&r);
        // Whatever was made of a part that found no room, say a bound that could not be compared, is wrong.
        if (g->arena.failed || (!ok && r.err->code == MF_OK)) ok = mf_schema_no_memory(&r) != NULL;
    }
    mf_map_free(&r.rules);
    mf_map_free(&r.patterns);
    mf_map_free(&r.formats);
    free(r.automata.data);
    mf_arena_free(&json);
    return ok;
}
