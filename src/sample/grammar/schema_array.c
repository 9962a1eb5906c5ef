#include <stdlib.h>

#include "sample/grammar/schema_reader.h"

#define MAX_UNIQUE 10 // values of an enum whose items must differ

static mf_expr *comma(mf_schema_reader *r) {
    mf_expr *parts[] = {mf_schema_space(r), mf_schema_text(r, ","), mf_schema_space(r)};
    return mf_schema_seq(r, parts, 3);
}

static mf_expr *behind_comma(mf_schema_reader *r, mf_expr *item) {
    mf_expr *parts[] = {comma(r), item};
    return mf_schema_seq(r, parts, 2);
}

static mf_expr *repeat(mf_schema_reader *r, mf_expr *e, uint32_t min, uint32_t max) {
    if (!e) return NULL;
    mf_expr *x = mf_expr_repeat(r->g, e, min, max);
    return x ? x : mf_schema_no_memory(r);
}

static mf_expr *brackets(mf_schema_reader *r, mf_expr *inner, bool may_be_empty) {
    mf_expr *in[] = {inner, mf_schema_space(r)}, *content = mf_schema_seq(r, in, 2);
    if (may_be_empty) content = repeat(r, content, 0, 1);
    mf_expr *parts[] = {mf_schema_text(r, "["), mf_schema_space(r), content, mf_schema_text(r, "]")};
    return mf_schema_seq(r, parts, 4);
}

static uint32_t less(uint32_t a, uint32_t b) { return a == UINT32_MAX ? a : a > b ? a - b : 0; }

// Items that must differ: from here on none of those in `used`. A rule for each set, made once.
typedef struct unique {
    mf_schema_reader *r;
    mf_expr *values[MAX_UNIQUE];
    size_t n;
    uint32_t min, max;
    uint32_t rules[1 << MAX_UNIQUE]; // + 1; 0: none yet
} unique;

static mf_expr *copy_of(mf_schema_reader *r, const mf_expr *e) {
    mf_expr *x = mf_expr_new(r->g, e->kind);
    if (!x) return mf_schema_no_memory(r);
    *x = *e;
    x->next = NULL;
    return x;
}

// What may follow when the values of `used` have been said; 0: out of memory.
static uint32_t unique_rest(unique *u, uint32_t used) {
    uint32_t said = (uint32_t)__builtin_popcount(used), rule;
    if (u->rules[used]) return u->rules[used];
    if (!mf_grammar_add_rule(u->r->g, (mf_str){0}, 0, &rule)) return mf_schema_no_memory(u->r), 0;
    u->rules[used] = rule + 1;
    mf_expr *choices[MAX_UNIQUE + 1];
    size_t n = 0;
    if (said >= u->min) choices[n++] = mf_schema_text(u->r, "");
    for (size_t i = 0; i < u->n && said < u->max; i++) {
        if (used >> i & 1) continue;
        uint32_t rest = unique_rest(u, used | 1U << i);
        mf_expr *value = copy_of(u->r, u->values[i]), *after = rest ? mf_expr_rule(u->r->g, rest - 1) : NULL;
        mf_expr *parts[] = {said ? comma(u->r) : mf_schema_text(u->r, ""), value, after};
        choices[n++] = mf_schema_seq(u->r, parts, 3);
    }
    for (size_t i = 0; i < n; i++)
        if (!choices[i]) return 0;
    u->r->g->rules.data[rule].expr = mf_expr_list(u->r->g, MF_EXPR_CHOICE, choices, n);
    return u->r->g->rules.data[rule].expr ? u->rules[used] : (mf_schema_no_memory(u->r), 0);
}

static mf_expr *unique_array(mf_schema_reader *r, mf_schema_record *x) {
    mf_expr *value = mf_schema_value(r, &x->items);
    if (!value) return NULL;
    const mf_expr *e = value->kind == MF_EXPR_RULE ? r->g->rules.data[value->rule].expr : NULL;
    unique *u = mf_arena_alloc(r->arena, 1, sizeof *u);
    if (!u) return mf_schema_no_memory(r);
    *u = (unique){.r = r, .min = x->min_items, .max = x->max_items};
    bool simple = e && e->kind == MF_EXPR_CHOICE && x->prefix.len == 0;
    for (mf_expr *c = simple ? e->child : NULL; c && simple; c = c->next) {
        simple = c->kind == MF_EXPR_LITERAL && u->n < MAX_UNIQUE;
        if (simple) u->values[u->n++] = c;
    }
    if (!simple)
        return mf_schema_refuse(r, MF_ERR_UNSUPPORTED, x->at,
                                "uniqueItems is supported for items of an enum of at most %d values only", MAX_UNIQUE);
    uint32_t rule = unique_rest(u, 0);
    mf_expr *parts[] = {mf_schema_text(r, "["), mf_schema_space(r), rule ? mf_expr_rule(r->g, rule - 1) : NULL,
                        mf_schema_space(r), mf_schema_text(r, "]")};
    return mf_schema_seq(r, parts, 5);
}

mf_expr *mf_schema_array(mf_schema_reader *r, mf_schema_record *x, bool *nothing) {
    uint32_t most = x->max_items, n = (uint32_t)x->prefix.len;
    for (uint32_t i = 0; i < n; i++)
        if (mf_schema_is_false(&x->prefix.data[i]) && most > i) most = i;
    if (mf_schema_is_false(&x->items) && most > n) most = n;
    *nothing = x->min_items > most;
    if (*nothing) return NULL;
    x->max_items = most;
    if (most == 0) return brackets(r, mf_schema_text(r, ""), false);
    if (x->unique && most > 1) return unique_array(r, x);
    // From the last item to the first: each is followed by the rest, which may be left out behind min_items.
    mf_expr *tail = mf_schema_text(r, "");
    uint32_t first = n ? n : 1; // without a prefix the first item stands for it
    if (most > first)
        tail = repeat(r, behind_comma(r, mf_schema_value(r, &x->items)), less(x->min_items, first), less(most, first));
    for (uint32_t i = first < most ? first : most; i-- > 0 && tail;) {
        mf_expr *item = mf_schema_value(r, i < n ? &x->prefix.data[i] : &x->items);
        mf_expr *parts[] = {i ? behind_comma(r, item) : item, tail};
        tail = mf_schema_seq(r, parts, 2);
        if (i >= x->min_items && i > 0) tail = repeat(r, tail, 0, 1);
    }
    return tail ? brackets(r, tail, x->min_items == 0) : NULL;
}
