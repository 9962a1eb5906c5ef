#include "text/jinja/jinja.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/jinja/eval.h"

enum {
    MOST_SOURCE = 1 << 20,
};

// ---- Compiling

// The source with newlines for all line ends, without the last one.
static bool set_source(mf_jinja *t, mf_str source, mf_error *err) {
    size_t bad;
    if (source.len > MOST_SOURCE)
        return mf_fail(err, MF_ERR_LIMIT, "the template has %zu bytes, at most %d are taken", source.len, MOST_SOURCE);
    if (!mf_utf8_valid(source.ptr, source.len, &bad))
        return mf_fail(err, MF_ERR_FORMAT, "the template is not UTF-8 at byte %zu", bad);
    char *copy = mf_arena_alloc(&t->arena, source.len + 1, 1);
    if (!copy) return mf_fail_memory(err, source.len, "the template");
    size_t n = 0;
    for (size_t i = 0; i < source.len; i++) {
        char c = source.ptr[i];
        if (c == '\r' && i + 1 < source.len && source.ptr[i + 1] == '\n') continue;
        copy[n++] = c == '\r' ? '\n' : c;
    }
    if (n && copy[n - 1] == '\n') n--;
    t->source = (mf_str){copy, n};
    return true;
}

mf_jinja *mf_jinja_new(mf_str source, mf_error *err) {
    mf_error own = {0};
    mf_error *e = err ? err : &own;
    *e = (mf_error){0};
    mf_jinja *t = mf_alloc(1, sizeof *t);
    if (!t) return mf_fail_memory(e, sizeof *t, "the template"), NULL;
    if (!source.ptr) source = MF_STR("");
    if (set_source(t, source, e) && mf_jparse(t, e) && mf_jresolve(t, e) && mf_jcheck(t, e)) return t;
    mf_jinja_free(t);
    return NULL;
}

void mf_jinja_free(mf_jinja *t) {
    if (!t) return;
    mf_arena_free(&t->arena);
    mf_map_free(&t->name_ids);
    free(t->names.data);
    free(t->globals.data);
    free(t);
}

mf_str mf_jinja_source(const mf_jinja *t) { return t->source; }

const char *mf_jinja_missing(const mf_jinja *t) { return t->missing; }

// ---- Variables

// A role of letters, digits, '_' and '-' alone can't make a control token of its own.
static bool is_role(mf_str key, mf_str text) {
    if (!mf_str_is(key, "role")) return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!plain) return false;
    }
    return true;
}

static bool text_value(mf_jrun *run, mf_str text, bool marked, mf_jval *out) {
    if (!mf_jstr_value(run, text, out)) return false;
    if (!marked || text.len == 0) return true;
    out->str->whole[1] = out->str->len;
    out->str->marks = out->str->whole;
    out->str->n_marks = 1;
    return true;
}

static bool number_value(mf_jrun *run, mf_str text, mf_jval *out) {
    bool real = memchr(text.ptr, '.', text.len) || memchr(text.ptr, 'e', text.len) || memchr(text.ptr, 'E', text.len);
    if (!real) {
        bool negative = *text.ptr == '-';
        return mf_jint_from_digits(run, negative, (mf_str){text.ptr + negative, text.len - negative}, out);
    }
    double value;
    if (!mf_parse_f64(text, &value)) value = *text.ptr == '-' ? -(double)INFINITY : (double)INFINITY;
    *out = mf_jreal(value);
    return true;
}

static bool json_to_value(mf_jrun *run, const mf_json *json, bool marked, mf_jval *out);

static bool json_members(mf_jrun *run, const mf_json *json, bool marked, mf_jval *out) {
    mf_jval v, key, item;
    bool array = json->kind == MF_JSON_ARRAY;
    if (array ? !mf_jlist_new(run, MF_J_LIST, json->count, &v) : !mf_jdict_new(run, MF_J_DICT, &v)) return false;
    size_t i = 0;
    for (const mf_json *member = json->child; member; member = member->next) {
        if (!mf_jpay(run, MF_JCOST_NODE)) return false;
        if (!json_to_value(run, member, marked, &item)) return false;
        if (array)
            v.list->items[i++] = item;
        else if (!text_value(run, member->key, marked, &key) || !mf_jdict_set(run, v.dict, key, item))
            return false;
    }
    *out = v;
    return true;
}

static bool json_to_value(mf_jrun *run, const mf_json *json, bool marked, mf_jval *out) {
    switch (json->kind) {
    case MF_JSON_NULL: *out = MF_JNONE; return true;
    case MF_JSON_BOOL: *out = mf_jbool(json->boolean); return true;
    case MF_JSON_NUMBER: return number_value(run, json->text, out);
    case MF_JSON_STRING: return text_value(run, json->text, marked && !is_role(json->key, json->text), out);
    default: {
        if (!mf_jenter(run)) return false;
        bool ok = json_members(run, json, marked, out);
        mf_jleave(run);
        return ok;
    }
    }
}

static bool set_variables(mf_jrun *run, const mf_jinja_var *vars, size_t n) {
    mf_jval *globals = mf_jalloc(run, run->t->globals.len, sizeof *globals);
    if (!globals) return false;
    memcpy(globals, run->t->globals.data, run->t->globals.len * sizeof *globals);
    for (size_t i = 0; i < n; i++) {
        uint32_t id;
        if (!mf_map_get(&run->t->name_ids, vars[i].name, &id)) continue; // the template never asks for it
        if (!json_to_value(run, vars[i].value, vars[i].from_messages, &globals[id])) return false;
    }
    run->globals = globals;
    return true;
}

// ---- Rendering

static bool give_out(const mf_jbuild *b, mf_jinja_output *out, mf_error *err) {
    mf_buf_add(&out->text, b->data, b->len);
    if (out->text.failed) return mf_fail_memory(err, b->len, "the rendered text");
    for (size_t i = 0; i < b->n_marks; i++)
        if (!mf_array_push(&out->marks, ((mf_jinja_mark){b->marks[2 * i], b->marks[2 * i + 1]})))
            return mf_fail_memory(err, b->n_marks * sizeof(mf_jinja_mark), "the rendered text");
    return true;
}

bool mf_jinja_render(const mf_jinja *t, const mf_jinja_var *vars, size_t n_vars, const mf_jinja_options *opts,
                     mf_jinja_output *out, mf_error *err) {
    mf_error own = {0};
    mf_error *e = err ? err : &own;
    *e = (mf_error){0};
    *out = (mf_jinja_output){0};
    uint64_t steps = opts && opts->steps ? opts->steps : MF_JINJA_STEPS;
    mf_jrun run = {.t = t,
                   .arena = {.limit = MF_JINJA_MEMORY},
                   .err = e,
                   .steps = steps,
                   .work = steps,
                   .stop = opts ? opts->stop : NULL,
                   .stop_arg = opts ? opts->stop_arg : NULL,
                   .now = opts ? opts->now : -1,
                   .key = mf_hash_key_new(),
                   .captured = MF_JMISSING};
    mf_jbuild b = {.run = &run};
    mf_jvars *root = set_variables(&run, vars, n_vars) ? mf_jvars_new(&run, &t->root, NULL) : NULL;
    bool ok = root != NULL;
    if (ok) {
        mf_jscope_enter(&run, &t->root_scope, root);
        ok = mf_jexec(&run, t->body, root, &b) != MF_FLOW_FAILED && !b.failed && give_out(&b, out, e);
    }
    out->raised = run.raised;
    mf_arena_free(&run.arena);
    return ok;
}

void mf_jinja_output_free(mf_jinja_output *out) {
    free(out->text.data);
    free(out->marks.data);
    *out = (mf_jinja_output){0};
}
