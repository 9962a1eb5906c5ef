// Names to slots, with the scopes that jinja2's compiler gives them (its idtracking.py and compiler.py): which names a block of
// statements stores and loads is found first, and decides what each scope starts with.
#include <stdio.h>
#include <stdlib.h>

#include "text/jinja/ast.h"
#include "text/jinja/call.h"
#include "text/jinja/string.h"

enum {
    MOST_SLOTS = 4096,       // of a function
    MOST_WORK = 200000000,   // names compared
    MOST_MEMORY = 128 << 20, // of the analysis
};

typedef struct ref { // a name's variable: slot `slot` of a function
    uint32_t name;
    mf_jfunc *func;
    uint32_t slot;
} ref;

typedef struct load {
    uint32_t slot, name;
    int how; // as mf_jload; PARAMETER: set by who enters
    ref from;
} load;

enum {
    LOAD_PARAMETER = -1
};

typedef struct ident { // a variable of a function
    uint32_t level, name;
} ident;

typedef struct func_names {
    mf_jfunc *func;
    ident *idents;
    size_t n, cap;
} func_names;

typedef struct symbols symbols;
struct symbols {
    symbols *parent;
    func_names *names;
    uint32_t level;
    ref *refs;
    load *loads;
    uint32_t *stores;
    size_t n_refs, cap_refs, n_loads, cap_loads, n_stores, cap_stores;
};

typedef struct frame {
    symbols *symbols;
    func_names *names;
    bool in_loop; // break and continue are allowed
    bool in_for;  // `loop` can't be assigned
} frame;

typedef struct resolver {
    mf_jinja *t;
    mf_error *err;
    mf_arena arena;
    uint64_t work;
    uint32_t loop, caller, kwargs, varargs, self; // names
} resolver;

bool mf_jeach_child(const mf_jnode *node, bool (*fn)(mf_jnode *child, void *arg), void *arg) {
    mf_jnodes one[] = {{(mf_jnode **)&node->a, node->a != NULL},
                       {(mf_jnode **)&node->b, node->b != NULL},
                       {(mf_jnode **)&node->c, node->c != NULL},
                       node->list,
                       node->more,
                       node->last};
    enum {
        A,
        B,
        C,
        LIST,
        MORE,
        LAST
    };
    static const uint8_t plain[] = {A, B, C, LIST, MORE, LAST}, call[] = {A, LIST, MORE, B, C, LAST},
                         loop[] = {A, B, LIST, MORE, C, LAST}, filter[] = {LIST, A, B, C, MORE, LAST};
    const uint8_t *order = plain;
    if (node->kind == MF_N_CALL || node->kind == MF_N_FILTER || node->kind == MF_N_TEST) order = call;
    if (node->kind == MF_N_FOR) order = loop;
    if (node->kind == MF_N_FILTERBLOCK) order = filter;
    for (int i = 0; i < 6; i++)
        for (size_t k = 0; k < one[order[i]].n; k++)
            if (!fn(one[order[i]].items[k], arg)) return false;
    return true;
}

static bool too_many(resolver *r) {
    return mf_fail(r->err, MF_ERR_LIMIT, "the template has too many names in too many blocks");
}

static bool out_of_memory(resolver *r) {
    return r->arena.used > MOST_MEMORY / 2 ? too_many(r) : mf_fail_memory(r->err, r->arena.used, "the template's names");
}

static bool work(resolver *r, size_t n) {
    r->work += n + 1;
    return r->work <= MOST_WORK || too_many(r);
}

// Room for one more element of an array in the arena.
static bool grow(resolver *r, void *items, size_t n, size_t *cap, size_t size) {
    if (n < *cap) return true;
    size_t more = *cap ? *cap * 2 : 8;
    void *bigger = mf_arena_alloc(&r->arena, more, size);
    if (!bigger) return out_of_memory(r);
    void *old;
    memcpy(&old, items, sizeof old);
    if (n) memcpy(bigger, old, n * size);
    memcpy(items, &bigger, sizeof bigger);
    *cap = more;
    return true;
}

// ---- Symbols

static symbols *new_symbols(resolver *r, symbols *parent, func_names *names) {
    symbols *s = mf_arena_alloc(&r->arena, 1, sizeof *s);
    if (!s) return out_of_memory(r), NULL;
    *s = (symbols){.parent = parent, .names = names, .level = parent ? parent->level + 1 : 0};
    return s;
}

static func_names *new_func(resolver *r, mf_jfunc *func, const func_names *outer) {
    func_names *names = mf_arena_alloc(&r->arena, 1, sizeof *names);
    if (!names || !func) return out_of_memory(r), NULL;
    func->depth = outer ? outer->func->depth + 1 : 0;
    names->func = func;
    return names;
}

static bool slot_of(resolver *r, func_names *names, uint32_t level, uint32_t name, uint32_t *slot) {
    if (!work(r, names->n)) return false;
    for (size_t i = 0; i < names->n; i++) {
        if (names->idents[i].level != level || names->idents[i].name != name) continue;
        *slot = (uint32_t)i;
        return true;
    }
    if (names->n >= MOST_SLOTS) return too_many(r);
    if (!grow(r, &names->idents, names->n, &names->cap, sizeof *names->idents)) return false;
    *slot = (uint32_t)names->n;
    names->idents[names->n++] = (ident){level, name};
    names->func->n_slots = (uint32_t)names->n;
    return true;
}

static ref *own_ref(symbols *s, uint32_t name) {
    for (size_t i = 0; i < s->n_refs; i++)
        if (s->refs[i].name == name) return &s->refs[i];
    return NULL;
}

static bool find_ref(resolver *r, symbols *s, uint32_t name, ref **out) {
    for (*out = NULL; s && !*out; s = s->parent) {
        if (!work(r, s->n_refs)) return false;
        *out = own_ref(s, name);
    }
    return true;
}

static bool set_load(resolver *r, symbols *s, load l) {
    if (!work(r, s->n_loads)) return false;
    for (size_t i = 0; i < s->n_loads; i++) {
        if (s->loads[i].slot != l.slot) continue;
        s->loads[i] = l;
        return true;
    }
    if (!grow(r, &s->loads, s->n_loads, &s->cap_loads, sizeof l)) return false;
    s->loads[s->n_loads++] = l;
    return true;
}

static bool set_ref(resolver *r, symbols *s, ref value) {
    ref *known = own_ref(s, value.name);
    if (known) {
        *known = value;
        return true;
    }
    if (!grow(r, &s->refs, s->n_refs, &s->cap_refs, sizeof value)) return false;
    s->refs[s->n_refs++] = value;
    return true;
}

static bool define(resolver *r, symbols *s, uint32_t name, load how) {
    ref target = {.name = name, .func = s->names->func};
    if (!slot_of(r, s->names, s->level, name, &target.slot)) return false;
    how.slot = target.slot;
    how.name = name;
    return set_ref(r, s, target) && set_load(r, s, how);
}

static bool has_store(const symbols *s, uint32_t name) {
    for (size_t i = 0; i < s->n_stores; i++)
        if (s->stores[i] == name) return true;
    return false;
}

static bool add_store(resolver *r, symbols *s, uint32_t name) {
    if (!work(r, s->n_stores)) return false;
    if (has_store(s, name)) return true;
    if (!grow(r, &s->stores, s->n_stores, &s->cap_stores, sizeof name)) return false;
    s->stores[s->n_stores++] = name;
    return true;
}

static bool store_name(resolver *r, symbols *s, uint32_t name) {
    ref *outer;
    if (!add_store(r, s, name)) return false;
    if (own_ref(s, name)) return true;
    if (!find_ref(r, s->parent, name, &outer)) return false;
    return define(r, s, name, outer ? (load){.how = MF_LOAD_ALIAS, .from = *outer} : (load){.how = MF_LOAD_UNSET});
}

static bool declare(resolver *r, symbols *s, uint32_t name) {
    return add_store(r, s, name) && define(r, s, name, (load){.how = LOAD_PARAMETER});
}

static bool load_name(resolver *r, symbols *s, uint32_t name) {
    ref *known;
    if (!find_ref(r, s, name, &known)) return false;
    return known || define(r, s, name, (load){.how = MF_LOAD_RESOLVE});
}

static bool copy_symbols(resolver *r, const symbols *s, symbols *out) {
    *out = (symbols){.parent = s->parent, .names = s->names, .level = s->level};
    if (!work(r, s->n_refs + s->n_loads + s->n_stores)) return false;
    for (size_t i = 0; i < s->n_refs; i++) {
        if (!grow(r, &out->refs, i, &out->cap_refs, sizeof *out->refs)) return false;
        out->refs[out->n_refs++] = s->refs[i];
    }
    for (size_t i = 0; i < s->n_loads; i++) {
        if (!grow(r, &out->loads, i, &out->cap_loads, sizeof *out->loads)) return false;
        out->loads[out->n_loads++] = s->loads[i];
    }
    for (size_t i = 0; i < s->n_stores; i++) {
        if (!grow(r, &out->stores, i, &out->cap_stores, sizeof *out->stores)) return false;
        out->stores[out->n_stores++] = s->stores[i];
    }
    return true;
}

// What branches of an if stored may be unset behind it: such names start with what they mean outside.
static bool merge_branches(resolver *r, symbols *s, symbols *branches, size_t n) {
    size_t before = s->n_stores;
    for (size_t b = 0; b < n; b++) {
        for (size_t i = 0; i < branches[b].n_refs; i++)
            if (!work(r, s->n_refs) || !set_ref(r, s, branches[b].refs[i])) return false;
        for (size_t i = 0; i < branches[b].n_loads; i++)
            if (!set_load(r, s, branches[b].loads[i])) return false;
        for (size_t i = 0; i < branches[b].n_stores; i++)
            if (!add_store(r, s, branches[b].stores[i])) return false;
    }
    for (size_t i = before; i < s->n_stores; i++) {
        ref *target, *outer;
        if (!find_ref(r, s, s->stores[i], &target) || !find_ref(r, s->parent, s->stores[i], &outer)) return false;
        if (!target) continue;
        load l = {.slot = target->slot, .name = s->stores[i], .how = outer ? MF_LOAD_ALIAS : MF_LOAD_RESOLVE};
        if (outer) l.from = *outer;
        if (!set_load(r, s, l)) return false;
    }
    return true;
}

// ---- What a block of statements stores and loads

typedef struct visit {
    resolver *r;
    symbols *s;
    bool parameters; // names are parameters, whatever they are
} visit;

static bool visit_node(mf_jnode *node, void *arg);

static bool visit_all(visit *v, mf_jnodes nodes) {
    for (size_t i = 0; i < nodes.n; i++)
        if (!visit_node(nodes.items[i], v)) return false;
    return true;
}

static bool visit_branch(visit *v, mf_jnodes nodes, symbols *out) {
    visit inner = {.r = v->r, .s = out};
    return copy_symbols(v->r, v->s, out) && visit_all(&inner, nodes);
}

static bool visit_if(visit *v, mf_jnode *node) {
    symbols branches[3];
    return visit_node(node->a, v) && visit_branch(v, node->list, &branches[0]) &&
           visit_branch(v, node->more, &branches[1]) && visit_branch(v, node->last, &branches[2]) &&
           merge_branches(v->r, v->s, branches, 3);
}

static bool visit_node(mf_jnode *node, void *arg) {
    visit *v = arg;
    switch (node->kind) {
    case MF_N_NAME:
        if (v->parameters) return declare(v->r, v->s, node->name);
        return (node->store ? store_name : load_name)(v->r, v->s, node->name);
    case MF_N_NSREF: return load_name(v->r, v->s, node->name);
    case MF_N_IF: return visit_if(v, node);
    case MF_N_MACRO: return store_name(v->r, v->s, node->name);
    case MF_N_SET: return visit_node(node->b, v) && visit_node(node->a, v);
    case MF_N_FOR: return visit_node(node->b, v);
    case MF_N_CALLBLOCK:
    case MF_N_FILTERBLOCK:
    case MF_N_SETBLOCK: return !node->a || visit_node(node->a, v);
    case MF_N_WITH: return visit_all(v, node->more);
    default: return mf_jeach_child(node, visit_node, v);
    }
}

// Whether one of up to three names is loaded before it is stored.
typedef struct undeclared {
    uint32_t names[3];
    bool gone[3], found[3];
    int n;
} undeclared;

static bool find_undeclared_in(mf_jnode *node, void *arg) {
    undeclared *u = arg;
    for (int i = 0; node->kind == MF_N_NAME && i < u->n; i++) {
        if (u->names[i] != node->name || u->gone[i]) continue;
        if (node->store)
            u->gone[i] = true;
        else
            u->found[i] = true;
    }
    return mf_jeach_child(node, find_undeclared_in, u);
}

static void find_undeclared(mf_jnodes body, undeclared *u) {
    for (size_t i = 0; i < body.n; i++) find_undeclared_in(body.items[i], u);
}

// ---- Walking the statements

static bool resolve_all(resolver *r, mf_jnodes nodes, frame f);

static bool slot_for(resolver *r, const frame *f, const ref *target, mf_jslot *out) {
    uint32_t hops = f->names->func->depth - target->func->depth;
    if (hops > UINT16_MAX) return too_many(r);
    *out = (mf_jslot){(uint16_t)hops, target->slot};
    return true;
}

static bool resolve_name(resolver *r, mf_jnode *node, const frame *f) {
    ref *target;
    if (!find_ref(r, f->symbols, node->name, &target)) return false;
    if (!target) { // a name that no analysis has met: the filter of a set block
        if (!load_name(r, f->symbols, node->name) || !find_ref(r, f->symbols, node->name, &target)) return false;
    }
    return slot_for(r, f, target, &node->slot);
}

typedef struct walk {
    resolver *r;
    const frame *f;
} walk;

static bool resolve_node(mf_jnode *node, void *arg) {
    walk *w = arg;
    if (node->kind == MF_N_NAME && node->store && w->f->in_for && node->name == w->r->loop)
        return mf_jrefuse(w->r->t, node->from, MF_ERR_FORMAT, w->r->err, "can't assign to the special variable loop");
    if (node->kind == MF_N_NAME || node->kind == MF_N_NSREF) return resolve_name(w->r, node, w->f);
    return mf_jeach_child(node, resolve_node, w);
}

static bool resolve_expr(resolver *r, mf_jnode *node, const frame *f) {
    walk w = {r, f};
    return !node || resolve_node(node, &w);
}

static bool resolve_exprs(resolver *r, mf_jnodes nodes, const frame *f) {
    for (size_t i = 0; i < nodes.n; i++)
        if (!resolve_expr(r, nodes.items[i], f)) return false;
    return true;
}

// What entering the frame does, for the node. Names that the template itself must know are checked here.
static bool keep_scope(resolver *r, const frame *f, mf_jscope *out) {
    const symbols *s = f->symbols;
    out->loads = mf_arena_alloc(&r->t->arena, s->n_loads, sizeof *out->loads);
    if (!out->loads) return mf_fail_memory(r->err, 0, "the template");
    for (size_t i = 0; i < s->n_loads; i++) {
        const load *l = &s->loads[i];
        if (l->how == LOAD_PARAMETER) continue;
        mf_jload *kept = &out->loads[out->n++];
        *kept = (mf_jload){.how = l->how, .slot = l->slot, .name = l->name};
        if (l->how == MF_LOAD_ALIAS && !slot_for(r, f, &l->from, &kept->from)) return false;
        bool lorem = mf_str_is(r->t->names.data[l->name], "lipsum");
        if (l->how == MF_LOAD_RESOLVE && (l->name == r->self || lorem))
            return mf_fail(r->err, MF_ERR_UNSUPPORTED, "the variable '%s' of jinja2 is not supported",
                           lorem ? "lipsum" : "self");
    }
    return true;
}

static mf_jnode_scopes *new_scopes(resolver *r, mf_jnode *node) {
    node->scopes = mf_arena_alloc(&r->t->arena, 1, sizeof *node->scopes);
    if (!node->scopes) mf_fail_memory(r->err, sizeof *node->scopes, "the template");
    return node->scopes;
}

static bool inner_frame(resolver *r, const frame *f, func_names *names, frame *out) {
    *out = (frame){.names = names, .in_loop = names == f->names && f->in_loop, .in_for = f->in_for};
    out->symbols = names ? new_symbols(r, f->symbols, names) : NULL;
    return out->symbols != NULL;
}

static func_names *inner_func(resolver *r, const frame *f, mf_jfunc **func) {
    *func = mf_arena_alloc(&r->t->arena, 1, sizeof **func);
    return new_func(r, *func, f->names);
}

// A body in a scope of its own, in the same function.
static bool resolve_block(resolver *r, mf_jnode *node, mf_jnodes body, frame *f) {
    visit v = {.r = r, .s = f->symbols};
    return visit_all(&v, body) && resolve_all(r, body, *f) && keep_scope(r, f, &node->scopes->body);
}

static bool set_test_slots(mf_jnode *target, void *arg) {
    if (target->kind == MF_N_NAME) target->test_slot = target->slot.slot;
    return mf_jeach_child(target, set_test_slots, arg);
}

// The test of a loop runs in a function of its own, with its own copy of the targets.
static bool resolve_test(resolver *r, mf_jnode *node, const frame *f) {
    frame test;
    if (!inner_frame(r, f, inner_func(r, f, &node->scopes->test_func), &test)) return false;
    visit targets = {.r = r, .s = test.symbols, .parameters = true}, v = {.r = r, .s = test.symbols};
    if (!visit_node(node->a, &targets) || !visit_node(node->c, &v) || !resolve_expr(r, node->a, &test)) return false;
    set_test_slots(node->a, NULL);
    return resolve_expr(r, node->c, &test) && keep_scope(r, &test, &node->scopes->test);
}

static bool resolve_for(resolver *r, mf_jnode *node, const frame *f) {
    mf_jnode_scopes *scopes = new_scopes(r, node);
    frame body, other;
    if (!scopes || !resolve_expr(r, node->b, f)) return false;
    frame outer = *f;
    outer.in_for = true;
    if (node->c && !resolve_test(r, node, &outer)) return false;
    func_names *names = node->recursive ? inner_func(r, f, &scopes->func) : f->names;
    if (!inner_frame(r, &outer, names, &body) || !inner_frame(r, &outer, names, &other)) return false;
    undeclared u = {.names = {r->loop}, .n = 1};
    find_undeclared(node->list, &u);
    scopes->extended = node->recursive || u.found[0];
    ref *loop = NULL;
    if (scopes->extended && (!declare(r, body.symbols, r->loop) || !find_ref(r, body.symbols, r->loop, &loop))) return false;
    if (loop) scopes->loop_slot = loop->slot;
    visit targets = {.r = r, .s = body.symbols, .parameters = true}, v = {.r = r, .s = other.symbols};
    body.in_loop = true;
    if (!visit_node(node->a, &targets)) return false;
    visit inside = {.r = r, .s = body.symbols};
    if (!visit_all(&inside, node->list) || !visit_all(&v, node->more) || !resolve_expr(r, node->a, &body)) return false;
    return resolve_all(r, node->list, body) && keep_scope(r, &body, &scopes->body) && resolve_all(r, node->more, other) &&
           keep_scope(r, &other, &scopes->other);
}

static bool declare_special(resolver *r, symbols *s, bool wanted, uint32_t name, uint32_t *slot) {
    ref *target;
    if (!wanted) return true;
    if (!declare(r, s, name) || !find_ref(r, s, name, &target)) return false;
    *slot = target->slot;
    return true;
}

static bool has_parameter(const mf_jnode *node, uint32_t name, size_t *index) {
    for (*index = 0; *index < node->list.n; ++*index)
        if (node->list.items[*index]->name == name) return true;
    return false;
}

// The function of a macro or call block: its parameters, its defaults and its body.
static bool resolve_function(resolver *r, mf_jnode *node, const frame *f) {
    mf_jnode_scopes *scopes = node->scopes;
    frame body;
    size_t index;
    if (!inner_frame(r, f, inner_func(r, f, &scopes->func), &body)) return false;
    visit parameters = {.r = r, .s = body.symbols, .parameters = true}, v = {.r = r, .s = body.symbols};
    if (!visit_all(&parameters, node->list) || !visit_all(&v, node->more) || !visit_all(&v, node->last)) return false;
    undeclared u = {.names = {r->caller, r->kwargs, r->varargs}, .n = 3};
    find_undeclared(node->last, &u);
    bool explicit_caller = has_parameter(node, r->caller, &index);
    if (u.found[0] && explicit_caller && index < node->list.n - node->more.n)
        return mf_jrefuse(r->t, node->from, MF_ERR_FORMAT, r->err,
                          "the parameter caller must be left out or have a default");
    scopes->caller = u.found[0];
    scopes->kwargs = u.found[1] && !has_parameter(node, r->kwargs, &index);
    scopes->varargs = u.found[2] && !has_parameter(node, r->varargs, &index);
    if (!declare_special(r, body.symbols, scopes->caller && !explicit_caller, r->caller, &scopes->caller_slot) ||
        !declare_special(r, body.symbols, scopes->kwargs, r->kwargs, &scopes->kwargs_slot) ||
        !declare_special(r, body.symbols, scopes->varargs, r->varargs, &scopes->varargs_slot))
        return false;
    frame parameters_frame = body;
    parameters_frame.in_for = false; // a parameter may be called loop
    return resolve_exprs(r, node->list, &parameters_frame) && resolve_exprs(r, node->more, &body) &&
           resolve_all(r, node->last, body) && keep_scope(r, &body, &scopes->body);
}

static bool resolve_with(resolver *r, mf_jnode *node, const frame *f) {
    frame inner;
    if (!new_scopes(r, node) || !resolve_exprs(r, node->more, f) || !inner_frame(r, f, f->names, &inner)) return false;
    visit targets = {.r = r, .s = inner.symbols, .parameters = true};
    if (!visit_all(&targets, node->list)) return false;
    frame targets_frame = inner;
    targets_frame.in_for = false;
    return resolve_exprs(r, node->list, &targets_frame) && resolve_block(r, node, node->last, &inner);
}

static bool resolve_capture(resolver *r, mf_jnode *node, const frame *f) {
    frame inner;
    mf_jnode *filter = node->kind == MF_N_FILTERBLOCK ? node->a : node->b;
    if (!new_scopes(r, node) || !inner_frame(r, f, f->names, &inner)) return false;
    visit v = {.r = r, .s = inner.symbols};
    if (!visit_all(&v, node->list) || (filter && !visit_node(filter, &v)) || !resolve_all(r, node->list, inner) ||
        !resolve_expr(r, filter, &inner) || !keep_scope(r, &inner, &node->scopes->body))
        return false;
    return node->kind == MF_N_FILTERBLOCK || resolve_expr(r, node->a, f);
}

static bool resolve_if(resolver *r, mf_jnode *node, const frame *f) {
    return resolve_expr(r, node->a, f) && resolve_all(r, node->list, *f) && resolve_all(r, node->more, *f) &&
           resolve_all(r, node->last, *f);
}

static bool resolve_statement(resolver *r, mf_jnode *node, const frame *f) {
    switch (node->kind) {
    case MF_N_FOR: return resolve_for(r, node, f);
    case MF_N_IF: return resolve_if(r, node, f);
    case MF_N_MACRO: {
        ref *target;
        if (f->in_for && node->name == r->loop)
            return mf_jrefuse(r->t, node->from, MF_ERR_UNSUPPORTED, r->err, "a macro named loop is not supported");
        return new_scopes(r, node) && find_ref(r, f->symbols, node->name, &target) && slot_for(r, f, target, &node->slot) &&
               resolve_function(r, node, f);
    }
    case MF_N_CALLBLOCK: return new_scopes(r, node) && resolve_function(r, node, f) && resolve_expr(r, node->a, f);
    case MF_N_WITH: return resolve_with(r, node, f);
    case MF_N_SETBLOCK:
    case MF_N_FILTERBLOCK: return resolve_capture(r, node, f);
    case MF_N_BREAK:
    case MF_N_CONTINUE:
        return f->in_loop || mf_jrefuse(r->t, node->from, MF_ERR_FORMAT, r->err, "'%s' outside loop",
                                        node->kind == MF_N_BREAK ? "break" : "continue");
    default: return resolve_expr(r, node, f);
    }
}

static bool resolve_all(resolver *r, mf_jnodes nodes, frame f) {
    for (size_t i = 0; i < nodes.n; i++)
        if (!resolve_statement(r, nodes.items[i], &f)) return false;
    return true;
}

// ---- The template

static bool find_name(resolver *r, const char *text, uint32_t *out) {
    mf_str name = mf_str_of(text);
    if (mf_map_get(&r->t->name_ids, name, out)) return true;
    *out = (uint32_t)r->t->names.len;
    return (mf_array_push(&r->t->names, name) && mf_map_set(&r->t->name_ids, name, *out, NULL)) ||
           mf_fail_memory(r->err, 0, "the template");
}

static bool resolve_template(resolver *r) {
    mf_jinja *t = r->t;
    frame root = {.names = new_func(r, &t->root, NULL)};
    if (!root.names || !(root.symbols = new_symbols(r, NULL, root.names))) return false;
    visit v = {.r = r, .s = root.symbols};
    if (!visit_all(&v, t->body) || !resolve_all(r, t->body, root) || !keep_scope(r, &root, &t->root_scope)) return false;
    for (size_t i = 0; i < t->names.len; i++) {
        const mf_jfunction *f = mf_jglobal_find(t->names.data[i]);
        mf_jval value = f ? (mf_jval){.type = MF_J_FUNCTION, .function = f} : MF_JMISSING;
        if (!mf_array_push(&t->globals, value)) return mf_fail_memory(r->err, 0, "the template");
    }
    return true;
}

bool mf_jresolve(mf_jinja *t, mf_error *err) {
    resolver r = {.t = t, .err = err, .arena = {.limit = MOST_MEMORY}};
    bool ok = find_name(&r, "loop", &r.loop) && find_name(&r, "caller", &r.caller) && find_name(&r, "kwargs", &r.kwargs) &&
              find_name(&r, "varargs", &r.varargs) && find_name(&r, "self", &r.self) && resolve_template(&r);
    mf_arena_free(&r.arena);
    return ok;
}
