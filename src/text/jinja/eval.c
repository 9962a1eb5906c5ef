#include "text/jinja/eval.h"

#include <stdio.h>

mf_jvars *mf_jvars_new(mf_jrun *run, const mf_jfunc *func, mf_jvars *parent) {
    mf_jvars *vars = mf_jalloc(run, 1, sizeof *vars);
    if (!vars || !(vars->slots = mf_jalloc(run, func->n_slots, sizeof *vars->slots))) return NULL;
    vars->parent = parent;
    return vars;
}

mf_jval *mf_jslot_of(mf_jvars *vars, mf_jslot slot) {
    for (uint32_t i = 0; i < slot.hops; i++) vars = vars->parent;
    return &vars->slots[slot.slot];
}

void mf_jscope_enter(mf_jrun *run, const mf_jscope *scope, mf_jvars *vars) {
    mf_jpay(run, scope->n); // where nothing is left, the next node fails
    for (size_t i = 0; i < scope->n; i++) {
        const mf_jload *l = &scope->loads[i];
        vars->slots[l->slot] = l->how == MF_LOAD_ALIAS     ? *mf_jslot_of(vars, l->from)
                               : l->how == MF_LOAD_RESOLVE ? run->globals[l->name]
                                                           : MF_JMISSING;
    }
}

bool mf_jlocate(mf_jrun *run, const mf_jnode *node) {
    if (run->located) return false;
    run->located = true;
    char text[64];
    size_t n = 0;
    bool space = false;
    for (size_t i = node->from; i < node->to && n < sizeof text - 5; i++) {
        char c = run->t->source.ptr[i];
        if (c == '\n' || c == '\t') c = ' ';
        if (c != ' ' || !space) text[n++] = c;
        space = c == ' ';
        if (n == sizeof text - 5) n += (size_t)snprintf(text + n, 5, "…");
    }
    return mf_fail_prefix(run->err, "template line %u: `%.*s`", node->line, (int)n, text);
}

// ---- Parts of expressions

static bool eval_name(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    *out = *mf_jslot_of(vars, node->slot);
    if (out->type != MF_J_MISSING) return true;
    mf_jval name;
    return mf_jstr_value(run, run->t->names.data[node->name], &name) && mf_jundefined_name(run, name, out);
}

static bool eval_items(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    mf_jval list;
    if (!mf_jlist_new(run, node->kind == MF_N_LIST ? MF_J_LIST : MF_J_TUPLE, node->list.n, &list)) return false;
    for (size_t i = 0; i < node->list.n; i++)
        if (!mf_jeval(run, node->list.items[i], vars, &list.list->items[i])) return false;
    *out = list;
    return true;
}

static bool eval_dict(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    mf_jval dict, key, value;
    if (!mf_jdict_new(run, MF_J_DICT, &dict)) return false;
    for (size_t i = 0; i + 1 < node->list.n; i += 2)
        if (!mf_jeval(run, node->list.items[i], vars, &key) || !mf_jeval(run, node->list.items[i + 1], vars, &value) ||
            !mf_jdict_set(run, dict.dict, key, value))
            return false;
    *out = dict;
    return true;
}

static bool eval_cond(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    bool yes;
    if (!mf_jeval(run, node->a, vars, out) || !mf_jtruth(run, *out, &yes)) return false;
    if (yes) return mf_jeval(run, node->b, vars, out);
    if (node->c) return mf_jeval(run, node->c, vars, out);
    return mf_jundefined_hint(run, "the inline if-expression evaluated to false and no else section was defined.", out);
}

static bool eval_logic(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    bool yes;
    if (!mf_jeval(run, node->a, vars, out) || !mf_jtruth(run, *out, &yes)) return false;
    return yes == (node->kind == MF_N_OR) || mf_jeval(run, node->b, vars, out);
}

static bool eval_not(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    bool yes;
    if (!mf_jeval(run, node->a, vars, out) || !mf_jtruth(run, *out, &yes)) return false;
    *out = mf_jbool(!yes);
    return true;
}

static bool eval_sign(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    if (!mf_jeval(run, node->a, vars, out)) return false;
    if (out->type == MF_J_UNDEFINED) return mf_jundefined_fail(run, *out);
    if (!mf_jis_number(*out))
        return mf_jraise(run, "bad operand type for unary %c: '%s'", node->kind == MF_N_NEG ? '-' : '+',
                         mf_jtype_name(*out));
    if (node->kind == MF_N_NEG) return mf_jnegate(run, *out, out);
    if (out->type == MF_J_BOOL) *out = mf_jint(out->boolean);
    return true;
}

static bool eval_concat(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    mf_jbuild b = {.run = run};
    for (size_t i = 0; i < node->list.n; i++)
        if (!mf_jeval(run, node->list.items[i], vars, out) || !mf_jadd_str(&b, *out)) return false;
    return mf_jbuild_done(&b, out);
}

static bool eval_compare(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    mf_jval left, right;
    bool yes = true;
    if (!mf_jeval(run, node->a, vars, &left)) return false;
    for (size_t i = 0; yes && i < node->list.n; i++) {
        const mf_jnode *operand = node->list.items[i];
        if (!mf_jeval(run, operand->a, vars, &right) || !mf_jcompare(run, operand->op, left, right, &yes)) return false;
        left = right;
    }
    *out = mf_jbool(yes);
    return true;
}

static bool eval_getitem(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    mf_jval of, key, bounds[3];
    if (!mf_jeval(run, node->a, vars, &of)) return false;
    if (node->b->kind != MF_N_SLICE) return mf_jeval(run, node->b, vars, &key) && mf_jgetitem(run, of, key, out);
    const mf_jnode *parts[] = {node->b->a, node->b->b, node->b->c};
    for (int i = 0; i < 3; i++) {
        bounds[i] = MF_JNONE;
        if (parts[i] && !mf_jeval(run, parts[i], vars, &bounds[i])) return false;
    }
    return mf_jslice(run, of, bounds, out);
}

static bool add_star_args(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jgrow *args) {
    mf_jval more;
    return !node || (mf_jeval(run, node, vars, &more) && mf_jcollect(run, more, args));
}

bool mf_jadd_keyword(mf_jrun *run, mf_jargs *args, mf_jval name, mf_jval value) {
    if (!mf_jis_str(name)) return mf_jraise(run, "keywords must be strings");
    for (size_t i = 0; i < args->n_kw; i++)
        if (mf_str_eq(mf_jstr_slice(args->kw[i].name.str), mf_jstr_slice(name.str)))
            return mf_jraise(run, "got multiple values for keyword argument '%.*s'", (int)name.str->len, name.str->ptr);
    mf_jkeyword *kw = mf_jalloc(run, args->n_kw + 1, sizeof *kw);
    if (!kw || !mf_jpay(run, 4 * args->n_kw)) return false;
    if (args->n_kw) memcpy(kw, args->kw, args->n_kw * sizeof *kw);
    kw[args->n_kw++] = (mf_jkeyword){name, value};
    args->kw = kw;
    return true;
}

static bool add_star_keywords(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jargs *args) {
    mf_jval more;
    if (!node) return true;
    if (!mf_jeval(run, node, vars, &more)) return false;
    if (more.type == MF_J_UNDEFINED) return mf_jundefined_fail(run, more);
    if (more.type != MF_J_DICT) return mf_jraise(run, "argument after ** must be a mapping, not %s", mf_jtype_name(more));
    for (size_t i = 0; i < more.dict->n; i++)
        if (!mf_jadd_keyword(run, args, more.dict->entries[i].key, more.dict->entries[i].value)) return false;
    return true;
}

bool mf_jeval_args(mf_jrun *run, const mf_jnode *call, mf_jval first, mf_jvars *vars, mf_jargs *args) {
    mf_jgrow pos = {0};
    *args = (mf_jargs){0};
    size_t n = call->list.n + 1;
    pos.items = mf_jalloc(run, n, sizeof *pos.items);
    if (!pos.items) return false;
    pos.cap = n;
    if (first.type != MF_J_MISSING) pos.items[pos.n++] = first;
    for (size_t i = 0; i < call->list.n; i++)
        if (!mf_jeval(run, call->list.items[i], vars, &pos.items[pos.n++])) return false;
    if (!add_star_args(run, call->b, vars, &pos)) return false;
    args->pos = pos.items;
    args->n = pos.n;
    for (size_t i = 0; i < call->more.n; i++) {
        mf_jval value;
        if (!mf_jeval(run, call->more.items[i]->a, vars, &value) ||
            !mf_jadd_keyword(run, args, call->more.items[i]->value, value))
            return false;
    }
    return add_star_keywords(run, call->c, vars, args);
}

static bool eval_call(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    mf_jval callee;
    mf_jargs args;
    return mf_jeval(run, node->a, vars, &callee) && mf_jeval_args(run, node, MF_JMISSING, vars, &args) &&
           mf_jcall_value(run, callee, &args, out);
}

static bool eval_filter(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    mf_jval value = run->captured;
    mf_jargs args;
    if (!node->function)
        return mf_jfail(run, MF_ERR_UNSUPPORTED, "there is no %s '%.*s'", node->kind == MF_N_FILTER ? "filter" : "test",
                        (int)(node->value.str->len < 40 ? node->value.str->len : 40), node->value.str->ptr);
    return (!node->a || mf_jeval(run, node->a, vars, &value)) && mf_jeval_args(run, node, value, vars, &args) &&
           mf_jfunction_call(run, node->function, &args, out);
}

static bool eval_node(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    mf_jval a, b;
    switch (node->kind) {
    case MF_N_CONST: *out = node->value; return true;
    case MF_N_NAME: return eval_name(run, node, vars, out);
    case MF_N_TUPLE:
    case MF_N_LIST: return eval_items(run, node, vars, out);
    case MF_N_DICT: return eval_dict(run, node, vars, out);
    case MF_N_COND: return eval_cond(run, node, vars, out);
    case MF_N_OR:
    case MF_N_AND: return eval_logic(run, node, vars, out);
    case MF_N_NOT: return eval_not(run, node, vars, out);
    case MF_N_NEG:
    case MF_N_POS: return eval_sign(run, node, vars, out);
    case MF_N_BINARY:
        return mf_jeval(run, node->a, vars, &a) && mf_jeval(run, node->b, vars, &b) && mf_jbinary(run, node->op, a, b, out);
    case MF_N_CONCAT: return eval_concat(run, node, vars, out);
    case MF_N_COMPARE: return eval_compare(run, node, vars, out);
    case MF_N_GETATTR: return mf_jeval(run, node->a, vars, &a) && mf_jgetattr(run, a, node->value, out);
    case MF_N_GETITEM: return eval_getitem(run, node, vars, out);
    case MF_N_CALL: return eval_call(run, node, vars, out);
    case MF_N_FILTER:
    case MF_N_TEST: return eval_filter(run, node, vars, out);
    default: return mf_jfail(run, MF_ERR_INTERNAL, "not an expression");
    }
}

bool mf_jeval(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jval *out) {
    bool ok = mf_jenter(run);
    if (ok) {
        ok = mf_jpay(run, MF_JCOST_NODE + node->slot.hops) && eval_node(run, node, vars, out);
        mf_jleave(run);
    }
    if (!ok) mf_jlocate(run, node);
    return ok;
}
