#include "sample/grammar/expr.h"

#include <stdlib.h>

void mf_grammar_free(mf_grammar *g) {
    mf_arena_free(&g->arena);
    free(g->rules.data);
    g->rules.data = NULL;
    g->rules.len = g->rules.cap = 0;
}

bool mf_grammar_no_memory(const mf_arena *arena, const char *what, mf_error *err) {
    if (arena->full) return mf_fail(err, MF_ERR_LIMIT, "%s needs too much memory", what);
    return mf_fail(err, MF_ERR_MEMORY, "out of memory for %s", what);
}

mf_expr *mf_expr_new(mf_grammar *g, mf_expr_kind kind) {
    mf_expr *e = mf_arena_alloc(&g->arena, 1, sizeof *e);
    if (e) e->kind = kind;
    return e;
}

mf_expr *mf_expr_literal(mf_grammar *g, const char *bytes, size_t n) {
    mf_expr *e = mf_expr_new(g, MF_EXPR_LITERAL);
    char *copy = e ? mf_arena_copy(&g->arena, bytes, n) : NULL;
    if (!copy) return NULL;
    e->text = (mf_str){copy, n};
    return e;
}

mf_expr *mf_expr_chars(mf_grammar *g, mf_charset set) {
    mf_expr *e = mf_expr_new(g, MF_EXPR_CHARS);
    if (e) e->chars = set;
    return e;
}

mf_expr *mf_expr_repeat(mf_grammar *g, mf_expr *child, uint32_t min, uint32_t max) {
    mf_expr *e = child ? mf_expr_new(g, MF_EXPR_REPEAT) : NULL;
    if (e) e->child = child, e->min = min, e->max = max;
    return e;
}

mf_expr *mf_expr_rule(mf_grammar *g, uint32_t rule) {
    mf_expr *e = mf_expr_new(g, MF_EXPR_RULE);
    if (e) e->rule = rule;
    return e;
}

mf_expr *mf_expr_list(mf_grammar *g, mf_expr_kind kind, mf_expr *const *children, size_t n) {
    mf_expr *e = mf_expr_new(g, kind), **end = e ? &e->child : NULL;
    for (size_t i = 0; e && i < n; i++) {
        if (!children[i]) return NULL;
        *end = children[i];
        end = &children[i]->next;
    }
    return e;
}

bool mf_grammar_add_rule(mf_grammar *g, mf_str name, size_t line, uint32_t *rule) {
    *rule = (uint32_t)g->rules.len;
    return mf_array_push(&g->rules, ((mf_grammar_rule){name, NULL, line}));
}
