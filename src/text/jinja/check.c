// What a template calls, against the tables of functions: a filter, test, method, function or argument that there is not is found
// when the template is loaded, not when a conversation first reaches it. As in jinja2, unknown filters and tests inside an if are
// let pass (published templates have some, in branches that few conversations reach); the first of them is noted.
#include "base/map.h"
#include "text/jinja/ast.h"
#include "text/jinja/call.h"
#include "text/jinja/string.h"

typedef struct checker {
    mf_jinja *t;
    mf_error *err;
    bool *stored;   // by name: the template gives it a value somewhere
    int32_t *asked; // by name: loads that are no calls: by one of them the template may ask whether it is there
    mf_map members; // names that the template gives to members of its own namespaces and dicts, which may be functions
    bool inside_if;
} checker;

static bool is_const_text(const mf_jnode *node) { return node && node->kind == MF_N_CONST && node->value.type == MF_J_STR; }

// Where a name stands that the parser took out of the source; else where the node begins.
static size_t place(const checker *c, const mf_jnode *node) {
    const char *p = node->value.str->ptr, *source = c->t->source.ptr;
    return p >= source && p < source + c->t->source.len ? (size_t)(p - source) : node->from;
}

// ---- What the template defines

static bool note_member(checker *c, mf_jval name) {
    return mf_map_set(&c->members, mf_jstr_slice(name.str), 1, NULL) || mf_fail_memory(c->err, 0, "the template");
}

static bool note(mf_jnode *node, void *arg) {
    checker *c = arg;
    switch (node->kind) {
    case MF_N_NAME:
        c->stored[node->name] |= node->store;
        c->asked[node->name] += !node->store;
        break;
    case MF_N_MACRO: c->stored[node->name] = true; break;
    case MF_N_NSREF:
    case MF_N_KEYWORD:
        if (!note_member(c, node->value)) return false;
        break;
    case MF_N_DICT:
        for (size_t i = 0; i < node->list.n; i += 2)
            if (is_const_text(node->list.items[i]) && !note_member(c, node->list.items[i]->value)) return false;
        break;
    case MF_N_CALL:
        if (node->a->kind == MF_N_NAME) c->asked[node->a->name]--; // calling a name does not ask for it
        break;
    default: break;
    }
    return mf_jeach_child(node, note, c);
}

// ---- Arguments

// The first keyword argument that the function does not take; NULL: none.
static const mf_jnode *wrong_keyword(const mf_jfunction *f, const mf_jnode *call) {
    for (size_t i = 0; f->params && i < call->more.n; i++)
        if (mf_jparameter(f->params, mf_jstr_slice(call->more.items[i]->value.str)) < 0) return call->more.items[i];
    return NULL;
}

static bool check_keywords(const checker *c, const mf_jfunction *f, const char *what, const mf_jnode *call) {
    const mf_jnode *wrong = wrong_keyword(f, call);
    if (!wrong) return true;
    mf_str name = mf_jstr_slice(wrong->value.str);
    return mf_jrefuse(c->t, wrong->from, MF_ERR_UNSUPPORTED, c->err, "the %s '%s' takes no argument '%.*s'", what, f->name,
                      (int)(name.len < 40 ? name.len : 40), name.ptr);
}

// ---- Filters and tests

static bool check_name(const checker *c, const mf_jfunction *f, bool filter, mf_str name, size_t at) {
    const char *what = filter ? "filter" : "test";
    int shown = (int)(name.len < 40 ? name.len : 40);
    if (f && f->run) return true;
    if (f) return mf_jrefuse(c->t, at, MF_ERR_UNSUPPORTED, c->err, "the %s '%.*s' is not supported", what, shown, name.ptr);
    mf_error err = {0};
    mf_jrefuse(c->t, at, MF_ERR_UNSUPPORTED, &err, "there is no %s '%.*s'", what, shown, name.ptr);
    if (!c->inside_if) return mf_fail(c->err, err.code, "%s", err.text);
    if (!c->t->missing) c->t->missing = mf_arena_copy(&c->t->arena, err.text, strlen(err.text));
    return true;
}

// The filter or test that map, select and the like are given by name.
static bool check_named(const checker *c, const mf_jnode *node) {
    static const struct {
        const char *name;
        size_t at;
        bool filter;
    } takers[] = {
        {"map", 0, true}, {"select", 0, false}, {"reject", 0, false}, {"selectattr", 1, false}, {"rejectattr", 1, false}};
    for (size_t i = 0; i < sizeof takers / sizeof takers[0]; i++) {
        const mf_jnode *named = node->list.n > takers[i].at ? node->list.items[takers[i].at] : NULL;
        if (!mf_str_is(mf_jstr_slice(node->value.str), takers[i].name) || !is_const_text(named)) continue;
        mf_str name = mf_jstr_slice(named->value.str);
        const mf_jfunction *f = (takers[i].filter ? mf_jfilter_find : mf_jtest_find)(name);
        return check_name(c, f, takers[i].filter, name, named->from);
    }
    return true;
}

static bool check_function(const checker *c, const mf_jnode *node) {
    bool filter = node->kind == MF_N_FILTER;
    if (!check_name(c, node->function, filter, mf_jstr_slice(node->value.str), node->name_at)) return false;
    if (!node->function) return true;
    return check_keywords(c, node->function, filter ? "filter" : "test", node) && (!filter || check_named(c, node));
}

// ---- Methods and functions

// A method by its name alone: the types of values are known when they are there.
static bool check_method(const checker *c, const mf_jnode *call, const mf_jnode *at) {
    mf_str name = mf_jstr_slice(at->value.str);
    static mf_jstr plain;
    const mf_jfunction *known = NULL;
    mf_jval of = mf_jtext(&plain); // for its type's name
    for (int type = 0; type <= MF_J_JOINER; type++) {
        const mf_jfunction *f = mf_jmethod_find((mf_jtype)type, name);
        if (!f || (known && known->run)) continue;
        known = f;
        of.type = (mf_jtype)type;
        if (f->run && !wrong_keyword(f, call)) return true;
    }
    uint32_t found;
    if (mf_map_get(&c->members, name, &found) || mf_jloop_method(name) || mf_jhidden_method(name)) return true;
    if (known && known->run) return check_keywords(c, known, "method", call);
    if (known)
        return mf_jrefuse(c->t, place(c, at), MF_ERR_UNSUPPORTED, c->err, "the method %s.%s() is not supported",
                          mf_jtype_name(of), known->name);
    return mf_jrefuse(c->t, place(c, at), MF_ERR_UNSUPPORTED, c->err, "there is no method '%.*s'",
                      (int)(name.len < 40 ? name.len : 40), name.ptr);
}

static bool check_call(const checker *c, const mf_jnode *call) {
    const mf_jnode *callee = call->a;
    if (callee->kind == MF_N_GETATTR) return check_method(c, call, callee);
    if (callee->kind == MF_N_GETITEM && is_const_text(callee->b)) return check_method(c, call, callee->b);
    if (callee->kind != MF_N_NAME || c->stored[callee->name]) return true;
    mf_str name = c->t->names.data[callee->name];
    const mf_jfunction *f = mf_jglobal_find(name);
    if (f) return check_keywords(c, f, "function", call);
    return c->asked[callee->name] > 0 ||
           mf_jrefuse(c->t, callee->from, MF_ERR_UNSUPPORTED, c->err, "there is no function '%.*s'",
                      (int)(name.len < 40 ? name.len : 40), name.ptr);
}

static bool check(mf_jnode *node, void *arg) {
    checker *c = arg;
    if ((node->kind == MF_N_FILTER || node->kind == MF_N_TEST) && !check_function(c, node)) return false;
    if (node->kind == MF_N_CALL && !check_call(c, node)) return false;
    bool outer = c->inside_if;
    c->inside_if = outer || node->kind == MF_N_IF || node->kind == MF_N_COND;
    bool ok = mf_jeach_child(node, check, c);
    c->inside_if = outer;
    return ok;
}

// ---- The template

static bool for_all(checker *c, bool (*fn)(mf_jnode *, void *)) {
    for (size_t i = 0; i < c->t->body.n; i++)
        if (!fn(c->t->body.items[i], c)) return false;
    return true;
}

bool mf_jcheck(mf_jinja *t, mf_error *err) {
    static const char *const given[] = {"loop", "caller", "varargs", "kwargs"};
    mf_arena arena = {0};
    checker c = {.t = t, .err = err};
    c.stored = mf_arena_alloc(&arena, t->names.len, sizeof *c.stored);
    c.asked = mf_arena_alloc(&arena, t->names.len, sizeof *c.asked);
    uint32_t id;
    bool ok = (c.stored && c.asked) || mf_fail_memory(err, t->names.len, "the template");
    for (size_t i = 0; ok && i < sizeof given / sizeof given[0]; i++)
        if (mf_map_get(&t->name_ids, mf_str_of(given[i]), &id)) c.stored[id] = true;
    ok = ok && for_all(&c, note) && for_all(&c, check);
    mf_map_free(&c.members);
    mf_arena_free(&arena);
    return ok;
}
