// Statements, macros and loops.
#include <stdio.h>

#include "text/jinja/eval.h"

// ---- Targets

static bool assign_attribute(mf_jrun *run, const mf_jnode *target, mf_jval value, mf_jvars *vars) {
    const mf_jval *ns = mf_jslot_of(vars, target->slot);
    if (ns->type != MF_J_NAMESPACE) return mf_jraise(run, "cannot assign attribute on non-namespace object");
    if (target->value.str->len && *target->value.str->ptr == '_')
        return mf_jraise(run, "underscore-prefixed attributes can't be stored on a namespace");
    return mf_jdict_set(run, ns->dict, target->value, value);
}

static bool unpack(mf_jrun *run, const mf_jnode *target, mf_jval value, mf_jvars *vars, bool test) {
    mf_jiter *it = mf_jiter_of(run, value);
    size_t n = 0;
    bool got = true;
    mf_jgrow items = {0};
    if (!it) return false;
    for (; got && n <= target->list.n; n += got) {
        mf_jval item;
        if (!mf_jnext(run, it, &item, &got)) return false;
        if (got && !mf_jgrow_push(run, &items, item)) return false;
    }
    if (n > target->list.n) return mf_jraise(run, "too many values to unpack (expected %zu)", target->list.n);
    if (n < target->list.n) return mf_jraise(run, "not enough values to unpack (expected %zu, got %zu)", target->list.n, n);
    for (size_t i = 0; i < n; i++)
        if (!mf_jassign(run, target->list.items[i], items.items[i], vars, test)) return false;
    return true;
}

bool mf_jassign(mf_jrun *run, const mf_jnode *target, mf_jval value, mf_jvars *vars, bool test) {
    if (target->kind == MF_N_NAME) {
        *(test ? &vars->slots[target->test_slot] : mf_jslot_of(vars, target->slot)) = value;
        return true;
    }
    bool ok =
        target->kind == MF_N_NSREF ? assign_attribute(run, target, value, vars) : unpack(run, target, value, vars, test);
    return ok || mf_jlocate(run, target);
}

// The value of a loop's targets in its test, which the loop then takes apart again.
static bool target_value(mf_jrun *run, const mf_jnode *target, mf_jvars *vars, mf_jval *out) {
    if (target->kind == MF_N_NAME) {
        *out = vars->slots[target->test_slot];
        return true;
    }
    mf_jval tuple;
    if (!mf_jlist_new(run, MF_J_TUPLE, target->list.n, &tuple)) return false;
    for (size_t i = 0; i < target->list.n; i++)
        if (!target_value(run, target->list.items[i], vars, &tuple.list->items[i])) return false;
    *out = tuple;
    return true;
}

// ---- Loops

typedef struct loop_test {
    const mf_jnode *node;
    mf_jvars *vars;
    bool entered;
} loop_test;

static bool next_tested(mf_jrun *run, mf_jiter *it, mf_jval *out, bool *got) {
    loop_test *test = it->state;
    if (!test->entered) mf_jscope_enter(run, &test->node->scopes->test, test->vars);
    test->entered = true;
    for (;;) {
        bool yes;
        mf_jval item, result;
        if (!mf_jnext(run, it->inner, &item, got)) return false;
        if (!*got) return true;
        if (!mf_jassign(run, test->node->a, item, test->vars, true) || !mf_jeval(run, test->node->c, test->vars, &result) ||
            !mf_jtruth(run, result, &yes))
            return false;
        if (yes) return target_value(run, test->node->a, test->vars, out);
    }
}

// The values that a loop walks: all of the iterable, or those that pass the test (which are looked at one by one).
static bool loop_source(mf_jrun *run, const mf_jnode *node, mf_jval iterable, mf_jvars *outer, mf_jval *out) {
    *out = iterable;
    if (!node->c) return true;
    loop_test *test = mf_jalloc(run, 1, sizeof *test);
    if (!test || !(test->vars = mf_jvars_new(run, node->scopes->test_func, outer))) return false;
    test->node = node;
    return mf_jgenerator(run, next_tested, iterable, test, out);
}

static mf_jflow run_body(mf_jrun *run, const mf_jnode *node, mf_jloop *loop, mf_jvars *vars, mf_jbuild *out, bool *ran) {
    const mf_jnode_scopes *scopes = node->scopes;
    for (;;) {
        mf_jval item;
        bool got;
        if (!mf_jloop_next(run, loop, &item, &got)) return mf_jlocate(run, node->b), MF_FLOW_FAILED;
        if (!got) return MF_FLOW_ON;
        if (!mf_jassign(run, node->a, item, vars, false)) return MF_FLOW_FAILED;
        if (scopes->extended) vars->slots[scopes->loop_slot] = (mf_jval){.type = MF_J_LOOP, .loop = loop};
        mf_jscope_enter(run, &scopes->body, vars);
        mf_jflow flow = mf_jexec(run, node->list, vars, out);
        if (flow == MF_FLOW_FAILED) return flow;
        if (flow == MF_FLOW_BREAK) return MF_FLOW_ON;
        *ran = *ran || flow == MF_FLOW_ON; // jinja2 takes the else branch where every round was left by continue
    }
}

// The loop over an iterable; `outer` are the variables around a recursive loop's own.
static mf_jflow run_loop(mf_jrun *run, const mf_jnode *node, mf_jval iterable, mf_jvars *vars, mf_jvars *outer,
                         int64_t depth, mf_jbuild *out) {
    mf_jloop *loop = mf_jalloc(run, 1, sizeof *loop);
    mf_jval source;
    bool ran = false;
    if (!loop || !loop_source(run, node, iterable, outer, &source)) return MF_FLOW_FAILED;
    *loop = (mf_jloop){.iterable = source, .index0 = -1, .depth0 = depth, .vars = outer};
    loop->recurse = node->recursive ? node : NULL;
    if (!(loop->iter = mf_jiter_of(run, source))) return mf_jlocate(run, node->b), MF_FLOW_FAILED;
    if (node->c && !(loop->iter->inner = mf_jiter_of(run, iterable))) return mf_jlocate(run, node->b), MF_FLOW_FAILED;
    mf_jflow flow = run_body(run, node, loop, vars, out, &ran);
    if (flow != MF_FLOW_ON || ran || node->more.n == 0) return flow;
    mf_jscope_enter(run, &node->scopes->other, vars);
    return mf_jexec(run, node->more, vars, out);
}

static bool run_recursive(mf_jrun *run, const mf_jnode *node, mf_jval iterable, mf_jvars *outer, int64_t depth,
                          mf_jval *out) {
    mf_jvars *vars = mf_jvars_new(run, node->scopes->func, outer);
    mf_jbuild b = {.run = run};
    return vars && run_loop(run, node, iterable, vars, outer, depth, &b) != MF_FLOW_FAILED && mf_jbuild_done(&b, out);
}

static mf_jflow exec_for(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jbuild *out) {
    mf_jval iterable, text;
    if (!mf_jeval(run, node->b, vars, &iterable)) return MF_FLOW_FAILED;
    if (!node->recursive) return run_loop(run, node, iterable, vars, vars, 0, out);
    if (!run_recursive(run, node, iterable, vars, 0, &text)) return MF_FLOW_FAILED;
    mf_jbuild_str(out, text.str);
    return MF_FLOW_ON;
}

bool mf_jloop_call(mf_jrun *run, mf_jloop *loop, const mf_jargs *args, mf_jval *out) {
    if (args->n != 1 || args->n_kw) return mf_jraise(run, "loop() takes one iterable");
    if (!loop->recurse) return mf_jraise(run, "The loop must have the 'recursive' marker to be called recursively.");
    if (!mf_jenter(run)) return false;
    bool ok = run_recursive(run, loop->recurse, args->pos[0], loop->vars, loop->depth0 + 1, out);
    mf_jleave(run);
    return ok;
}

// ---- Macros

static bool take_keyword(mf_jargs *args, mf_str name, mf_jval *out) {
    for (size_t i = 0; i < args->n_kw; i++) {
        if (!mf_str_eq(mf_jstr_slice(args->kw[i].name.str), name)) continue;
        *out = args->kw[i].value;
        memmove(&args->kw[i], &args->kw[i + 1], (args->n_kw - i - 1) * sizeof args->kw[0]);
        args->n_kw--;
        return true;
    }
    return false;
}

static bool keywords_dict(mf_jrun *run, const mf_jargs *args, mf_jval *out) {
    if (!mf_jdict_new(run, MF_J_DICT, out)) return false;
    for (size_t i = 0; i < args->n_kw; i++)
        if (!mf_jdict_set(run, out->dict, args->kw[i].name, args->kw[i].value)) return false;
    return true;
}

// Arguments into the macro's variables; those without one stay MF_J_MISSING (jinja2's Macro.__call__).
static bool bind_macro(mf_jrun *run, const mf_jmacro *macro, mf_jargs *args, mf_jvars *vars) {
    const mf_jnode *node = macro->node;
    const mf_jnode_scopes *scopes = node->scopes;
    size_t n = node->list.n, given = args->n < n ? args->n : n;
    bool found_caller = false;
    int shown = macro->name.len < 80 ? (int)macro->name.len : 80;
    if (!mf_jpay(run, n * (args->n_kw + 1))) return false;
    for (size_t i = 0; i < n; i++) {
        const mf_jnode *parameter = node->list.items[i];
        mf_jval *slot = &vars->slots[parameter->slot.slot];
        mf_str name = run->t->names.data[parameter->name];
        bool caller = mf_str_is(name, "caller");
        found_caller = found_caller || caller;
        if (i < given)
            *slot = args->pos[i];
        else
            take_keyword(args, name, slot);
    }
    if (scopes->caller && !found_caller) {
        mf_jval *slot = &vars->slots[scopes->caller_slot];
        if ((!take_keyword(args, MF_STR("caller"), slot) || slot->type == MF_J_NONE) &&
            !mf_jundefined_hint(run, "No caller defined", slot))
            return false;
    }
    if (scopes->kwargs && !keywords_dict(run, args, &vars->slots[scopes->kwargs_slot])) return false;
    if (!scopes->kwargs && args->n_kw)
        return mf_jraise(run, "macro '%.*s' takes no keyword argument '%.*s'", shown, macro->name.ptr,
                         (int)args->kw[0].name.str->len, args->kw[0].name.str->ptr);
    if (scopes->varargs) {
        mf_jgrow rest = {.items = args->pos + given, .n = args->n - given};
        return mf_jgrow_list(run, &rest, MF_J_TUPLE, &vars->slots[scopes->varargs_slot]);
    }
    if (args->n > n) return mf_jraise(run, "macro '%.*s' takes not more than %zu argument(s)", shown, macro->name.ptr, n);
    return true;
}

static bool set_defaults(mf_jrun *run, const mf_jnode *node, mf_jvars *vars) {
    size_t without = node->list.n - node->more.n;
    for (size_t i = 0; i < node->list.n; i++) {
        mf_jval *slot = &vars->slots[node->list.items[i]->slot.slot], name;
        if (slot->type != MF_J_MISSING) continue;
        if (i >= without) {
            if (!mf_jeval(run, node->more.items[i - without], vars, slot)) return false;
            continue;
        }
        if (!mf_jstr_value(run, run->t->names.data[node->list.items[i]->name], &name) ||
            !mf_jundefined_hint(run, "parameter was not provided", slot))
            return false;
        slot->undefined->name = name;
    }
    return true;
}

static bool run_macro(mf_jrun *run, const mf_jmacro *macro, mf_jargs *args, mf_jval *out) {
    mf_jvars *vars = mf_jvars_new(run, macro->node->scopes->func, macro->vars);
    mf_jbuild b = {.run = run};
    if (!vars || !bind_macro(run, macro, args, vars)) return false;
    mf_jscope_enter(run, &macro->node->scopes->body, vars);
    return set_defaults(run, macro->node, vars) && mf_jexec(run, macro->node->last, vars, &b) != MF_FLOW_FAILED &&
           mf_jbuild_done(&b, out);
}

bool mf_jmacro_call(mf_jrun *run, const mf_jmacro *macro, const mf_jargs *args, mf_jval *out) {
    mf_jargs own = *args; // keywords are taken out of it
    own.kw = mf_jalloc(run, args->n_kw, sizeof *own.kw);
    if (!own.kw || !mf_jenter(run)) return false;
    if (args->n_kw) memcpy(own.kw, args->kw, args->n_kw * sizeof *own.kw);
    mf_jval captured = run->captured;
    bool ok = run_macro(run, macro, &own, out);
    run->captured = captured;
    mf_jleave(run);
    return ok;
}

static bool new_macro(mf_jrun *run, const mf_jnode *node, mf_str name, mf_jvars *vars, mf_jval *out) {
    mf_jmacro *macro = mf_jalloc(run, 1, sizeof *macro);
    if (!macro) return false;
    *macro = (mf_jmacro){.node = node, .vars = vars, .name = name};
    *out = (mf_jval){.type = MF_J_MACRO, .macro = macro};
    return true;
}

bool mf_jmacro_repr(mf_jbuild *b, const mf_jmacro *macro) {
    mf_jbuild_text(b, macro->name.len ? "<Macro '" : "<Macro anonymous");
    mf_jbuild_bytes(b, macro->name.ptr, macro->name.len);
    mf_jbuild_text(b, macro->name.len ? "'>" : ">");
    return true;
}

static bool macro_arguments(mf_jrun *run, const mf_jmacro *macro, mf_jval *out) {
    mf_jnodes list = macro->node->list;
    if (!mf_jlist_new(run, MF_J_TUPLE, list.n, out)) return false;
    for (size_t i = 0; i < list.n; i++)
        if (!mf_jstr_value(run, run->t->names.data[list.items[i]->name], &out->list->items[i])) return false;
    return true;
}

bool mf_jmacro_attr(mf_jrun *run, const mf_jmacro *macro, mf_str name, mf_jval *out, bool *has) {
    const mf_jnode_scopes *scopes = macro->node->scopes;
    *has = true;
    if (mf_str_is(name, "name")) {
        *out = MF_JNONE;
        return macro->name.len == 0 || mf_jstr_value(run, macro->name, out);
    }
    if (mf_str_is(name, "arguments")) return macro_arguments(run, macro, out);
    if (mf_str_is(name, "catch_kwargs"))
        *out = mf_jbool(scopes->kwargs);
    else if (mf_str_is(name, "catch_varargs"))
        *out = mf_jbool(scopes->varargs);
    else if (mf_str_is(name, "caller"))
        *out = mf_jbool(scopes->caller);
    else
        *has = false;
    return true;
}

// ---- The other statements

static bool print_value(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jbuild *out) {
    mf_jval value;
    return mf_jeval(run, node, vars, &value) && (mf_jadd_str(out, value) || mf_jlocate(run, node));
}

static mf_jflow exec_if(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jbuild *out) {
    const mf_jnode *branch = node;
    for (size_t i = 0;; branch = node->more.items[i++]) {
        mf_jval test;
        bool yes;
        if (!mf_jeval(run, branch->a, vars, &test)) return MF_FLOW_FAILED;
        if (!mf_jtruth(run, test, &yes)) return mf_jlocate(run, branch->a), MF_FLOW_FAILED;
        if (yes) return mf_jexec(run, branch->list, vars, out);
        if (i == node->more.n) return mf_jexec(run, node->last, vars, out);
    }
}

static bool exec_set(mf_jrun *run, const mf_jnode *node, mf_jvars *vars) {
    mf_jval value;
    return mf_jeval(run, node->b, vars, &value) && mf_jassign(run, node->a, value, vars, false);
}

// The body of a block into *text, then its filter.
static mf_jflow capture(mf_jrun *run, const mf_jnode *node, const mf_jnode *filter, mf_jvars *vars, mf_jval *out) {
    mf_jbuild b = {.run = run};
    mf_jscope_enter(run, &node->scopes->body, vars);
    mf_jflow flow = mf_jexec(run, node->list, vars, &b);
    if (flow != MF_FLOW_ON) return flow;
    if (!mf_jbuild_done(&b, out)) return MF_FLOW_FAILED;
    if (!filter) return MF_FLOW_ON;
    mf_jval outer = run->captured;
    run->captured = *out;
    bool ok = mf_jeval(run, filter, vars, out);
    run->captured = outer;
    return ok ? MF_FLOW_ON : MF_FLOW_FAILED;
}

// What a filter or call block gives is printed as it is, so it must be text.
static bool print_text(mf_jrun *run, mf_jval value, mf_jbuild *out) {
    if (value.type != MF_J_STR) return mf_jraise(run, "expected str instance, %s found", mf_jtype_name(value));
    mf_jbuild_str(out, value.str);
    return !out->failed;
}

static mf_jflow exec_capture(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jbuild *out) {
    bool set = node->kind == MF_N_SETBLOCK;
    mf_jval value;
    mf_jflow flow = capture(run, node, set ? node->b : node->a, vars, &value);
    if (flow != MF_FLOW_ON) return flow;
    bool ok = set ? mf_jassign(run, node->a, value, vars, false) : print_text(run, value, out) || mf_jlocate(run, node->a);
    return ok ? MF_FLOW_ON : MF_FLOW_FAILED;
}

static bool exec_call_block(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jbuild *out) {
    mf_jval caller, callee, result;
    mf_jargs args = {0};
    static const mf_jstr name = {.ptr = "caller", .len = 6, .chars = 6};
    if (!new_macro(run, node, MF_STR(""), vars, &caller)) return false;
    if (!node->a) return mf_jmacro_call(run, caller.macro, &args, &result) && (mf_jbuild_str(out, result.str), !out->failed);
    bool ok = mf_jeval(run, node->a->a, vars, &callee) && mf_jeval_args(run, node->a, MF_JMISSING, vars, &args) &&
              mf_jadd_keyword(run, &args, mf_jtext((mf_jstr *)&name), caller) &&
              mf_jcall_value(run, callee, &args, &result) && print_text(run, result, out);
    return ok || mf_jlocate(run, node->a);
}

static mf_jflow exec_with(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jbuild *out) {
    mf_jscope_enter(run, &node->scopes->body, vars);
    for (size_t i = 0; i < node->list.n; i++) {
        mf_jval value;
        if (!mf_jeval(run, node->more.items[i], vars, &value) || !mf_jassign(run, node->list.items[i], value, vars, false))
            return MF_FLOW_FAILED;
    }
    return mf_jexec(run, node->last, vars, out);
}

static mf_jflow exec_node(mf_jrun *run, const mf_jnode *node, mf_jvars *vars, mf_jbuild *out) {
    bool ok = true;
    switch (node->kind) {
    case MF_N_DATA:
        mf_jbuild_str(out, node->value.str);
        ok = !out->failed;
        break;
    case MF_N_OUTPUT:
        for (size_t i = 0; ok && i < node->list.n; i++) ok = print_value(run, node->list.items[i], vars, out);
        break;
    case MF_N_FOR: return exec_for(run, node, vars, out);
    case MF_N_IF: return exec_if(run, node, vars, out);
    case MF_N_SET: ok = exec_set(run, node, vars); break;
    case MF_N_SETBLOCK:
    case MF_N_FILTERBLOCK: return exec_capture(run, node, vars, out);
    case MF_N_MACRO: ok = new_macro(run, node, run->t->names.data[node->name], vars, mf_jslot_of(vars, node->slot)); break;
    case MF_N_CALLBLOCK: ok = exec_call_block(run, node, vars, out); break;
    case MF_N_WITH: return exec_with(run, node, vars, out);
    case MF_N_BREAK: return MF_FLOW_BREAK;
    case MF_N_CONTINUE: return MF_FLOW_CONTINUE;
    default: ok = mf_jfail(run, MF_ERR_INTERNAL, "not a statement");
    }
    return ok ? MF_FLOW_ON : MF_FLOW_FAILED;
}

mf_jflow mf_jexec(mf_jrun *run, mf_jnodes body, mf_jvars *vars, mf_jbuild *out) {
    mf_jflow flow = MF_FLOW_ON;
    if (!mf_jenter(run)) return MF_FLOW_FAILED;
    for (size_t i = 0; flow == MF_FLOW_ON && i < body.n; i++) {
        flow = mf_jpay(run, MF_JCOST_NODE) ? exec_node(run, body.items[i], vars, out) : MF_FLOW_FAILED;
        if (flow == MF_FLOW_FAILED) mf_jlocate(run, body.items[i]);
    }
    mf_jleave(run);
    return flow;
}
