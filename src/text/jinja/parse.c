// Tokens to a tree: jinja2's grammar (its parser.py), recursive descent with bounded nesting.
#include <stdio.h>
#include <stdlib.h>

#include "text/jinja/parse.h"
#include "text/jinja/string.h"

enum {
    MOST_NESTING = 100,
    MOST_HEIGHT = 200, // of the tree, which is walked recursively
};

// ---- Tokens

bool mf_jp_advance(mf_jparser *p) {
    p->end = p->token.to;
    if (p->has_ahead) {
        p->token = p->ahead;
        p->has_ahead = false;
        return true;
    }
    return mf_jlex(&p->lexer, &p->token);
}

bool mf_jp_look(mf_jparser *p) {
    if (!p->has_ahead && !mf_jlex(&p->lexer, &p->ahead)) return false;
    p->has_ahead = true;
    return true;
}

static const char *operator_text(char op, char out[4]) {
    static const char codes[] = {MF_T_FLOORDIV, MF_T_POW, MF_T_EQ, MF_T_NE, MF_T_GE, MF_T_LE, 0};
    static const char *const texts[] = {"//", "**", "==", "!=", ">=", "<="};
    const char *code = strchr(codes, op);
    if (code && *code) return texts[code - codes];
    snprintf(out, 4, "%c", op);
    return out;
}

bool mf_jp_unexpected(mf_jparser *p, const char *wanted) {
    const mf_jtoken *t = &p->token;
    char op[4];
    const char *what = "";
    switch (t->kind) {
    case MF_T_EOF: what = "the end of the template"; break;
    case MF_T_BLOCK_END: what = "the end of the tag"; break;
    case MF_T_VARIABLE_END: what = "'}}'"; break;
    case MF_T_OPERATOR:
        return mf_jrefuse(p->t, t->from, MF_ERR_FORMAT, p->err, "expected %s, got '%s'", wanted, operator_text(t->op, op));
    case MF_T_NAME:
        return mf_jrefuse(p->t, t->from, MF_ERR_FORMAT, p->err, "expected %s, got '%.*s'", wanted,
                          (int)(t->text.len < 40 ? t->text.len : 40), t->text.ptr);
    default: what = "a literal";
    }
    return mf_jrefuse(p->t, t->from, MF_ERR_FORMAT, p->err, "expected %s, got %s", wanted, what);
}

bool mf_jp_expect_op(mf_jparser *p, char op) {
    char text[4], wanted[12];
    snprintf(wanted, sizeof wanted, "'%s'", operator_text(op, text));
    return is_op(&p->token, op) ? mf_jp_advance(p) : mf_jp_unexpected(p, wanted);
}

bool mf_jp_expect_name(mf_jparser *p, const char *name) {
    return is_name(&p->token, name) ? mf_jp_advance(p) : mf_jp_unexpected(p, name);
}

bool mf_jp_expect_block_end(mf_jparser *p) {
    return p->token.kind == MF_T_BLOCK_END ? mf_jp_advance(p) : mf_jp_unexpected(p, "the end of the tag");
}

// *skipped tells whether the token stood there.
bool mf_jp_skip_op(mf_jparser *p, char op, bool *skipped) {
    *skipped = is_op(&p->token, op);
    return !*skipped || mf_jp_advance(p);
}

bool mf_jp_skip_name(mf_jparser *p, const char *name, bool *skipped) {
    *skipped = is_name(&p->token, name);
    return !*skipped || mf_jp_advance(p);
}

// ---- Nodes

bool mf_jp_out_of_memory(mf_jparser *p) { return mf_fail_memory(p->err, 0, "the template"); }

mf_jnode *mf_jp_new_node(mf_jparser *p, mf_jkind kind, uint32_t line, uint32_t from) {
    mf_jnode *node = mf_arena_alloc(&p->t->arena, 1, sizeof *node);
    if (!node) {
        mf_jp_out_of_memory(p);
        return NULL;
    }
    *node = (mf_jnode){.kind = kind, .line = line, .from = from, .to = p->end};
    return node;
}

mf_jnode *mf_jp_node_here(mf_jparser *p, mf_jkind kind) { return mf_jp_new_node(p, kind, p->token.line, p->token.from); }

static bool add_height(mf_jnode *child, void *height) {
    if (child->height > *(uint32_t *)height) *(uint32_t *)height = child->height;
    return true;
}

mf_jnode *mf_jp_finish(mf_jparser *p, mf_jnode *node) {
    if (!node) return NULL;
    node->to = p->end;
    mf_jeach_child(node, add_height, &node->height);
    if (++node->height <= MOST_HEIGHT) return node;
    mf_jrefuse(p->t, node->from, MF_ERR_LIMIT, p->err, "an expression of more than %d operations in a row", MOST_HEIGHT);
    return NULL;
}

bool mf_jp_push(mf_jparser *p, mf_jnode_list *list, mf_jnode *node) {
    return node && (mf_array_push(list, node) || mf_jp_out_of_memory(p));
}

// Moves the list into the arena.
bool mf_jp_keep(mf_jparser *p, mf_jnode_list *list, mf_jnodes *out) {
    out->n = list->len;
    out->items = mf_arena_alloc(&p->t->arena, list->len, sizeof *out->items);
    if (out->items && list->len) memcpy(out->items, list->data, list->len * sizeof *out->items);
    free(list->data);
    *list = (mf_jnode_list){0};
    return out->items || mf_jp_out_of_memory(p);
}

mf_jnode *mf_jp_drop(mf_jnode_list *list) {
    free(list->data);
    *list = (mf_jnode_list){0};
    return NULL;
}

bool mf_jp_name_id(mf_jparser *p, mf_str name, uint32_t *id) {
    if (mf_map_get(&p->t->name_ids, name, id)) return true;
    *id = (uint32_t)p->t->names.len;
    return (mf_array_push(&p->t->names, name) && mf_map_set(&p->t->name_ids, name, *id, NULL)) || mf_jp_out_of_memory(p);
}

bool mf_jp_const_text(mf_jparser *p, mf_str text, mf_jval *out) {
    mf_jstr *s = mf_arena_alloc(&p->t->arena, 1, sizeof *s);
    if (!s) return mf_jp_out_of_memory(p);
    *s = (mf_jstr){.ptr = text.ptr, .len = (uint32_t)text.len, .chars = MF_JSTR_UNCOUNTED};
    mf_jstr_chars(s); // counted once, so that renderings share it
    *out = mf_jtext(s);
    return true;
}

bool mf_jp_deeper(mf_jparser *p) {
    if (p->depth >= MOST_NESTING)
        return mf_jrefuse(p->t, p->token.from, MF_ERR_LIMIT, p->err, "nested more than %d deep", MOST_NESTING);
    p->depth++;
    return true;
}

// ---- Statements

static bool parse_body(mf_jparser *p, const char *const *ends, mf_jnodes *out);

// "%}", then a body up to one of the tags in `ends` (NULL-terminated), at whose name the parser then stands.
static bool parse_statements(mf_jparser *p, const char *const *ends, mf_jnodes *out) {
    bool colon;
    return mf_jp_skip_op(p, ':', &colon) && mf_jp_expect_block_end(p) && parse_body(p, ends, out);
}

// The same up to one tag, which is taken.
static bool parse_until(mf_jparser *p, const char *end, mf_jnodes *out) {
    const char *const ends[] = {end, NULL};
    return parse_statements(p, ends, out) && mf_jp_advance(p);
}

static bool can_assign(mf_jparser *p, mf_jnode *target) {
    if (target->kind == MF_N_TUPLE) {
        for (size_t i = 0; i < target->list.n; i++)
            if (!can_assign(p, target->list.items[i])) return false;
        return true;
    }
    if (target->kind != MF_N_NAME && target->kind != MF_N_NSREF)
        return mf_jrefuse(p->t, target->from, MF_ERR_FORMAT, p->err, "this can't be assigned to");
    target->store = target->kind == MF_N_NAME;
    return true;
}

static mf_jnode *parse_target(mf_jparser *p, const char *end, bool namespaces) {
    mf_jtuple_rules rules = {.simplified = true, .namespaces = namespaces, .end = end};
    mf_jnode *target = mf_jp_tuple(p, &rules);
    return target && can_assign(p, target) ? target : NULL;
}

// A name as a target; constants such as `true` can't be one.
static mf_jnode *parse_target_name(mf_jparser *p) {
    if (p->token.kind != MF_T_NAME) return mf_jp_unexpected(p, "a name"), NULL;
    static const char *const reserved[] = {"true", "false", "none", "True", "False", "None"};
    for (size_t i = 0; i < 6; i++)
        if (is_name(&p->token, reserved[i]))
            return mf_jrefuse(p->t, p->token.from, MF_ERR_FORMAT, p->err, "can't assign to '%s'", reserved[i]), NULL;
    mf_jnode *name = mf_jp_name(p);
    if (name) name->store = true;
    return name;
}

static bool parse_set(mf_jparser *p, mf_jnode *node) {
    static const mf_jtuple_rules rules = {.conditional = true};
    bool assign;
    if (!(node->a = parse_target(p, NULL, true)) || !mf_jp_skip_op(p, '=', &assign)) return false;
    node->kind = assign ? MF_N_SET : MF_N_SETBLOCK;
    if (assign) return (node->b = mf_jp_tuple(p, &rules)) != NULL;
    if (is_op(&p->token, '|') && !(node->b = mf_jp_filters(p, NULL))) return false;
    return parse_until(p, "endset", &node->list);
}

static bool parse_for(mf_jparser *p, mf_jnode *node) {
    static const char *const ends[] = {"endfor", "else", NULL};
    static const mf_jtuple_rules rules = {.end = "recursive"};
    bool test;
    node->kind = MF_N_FOR;
    if (!(node->a = parse_target(p, "in", false)) || !mf_jp_expect_name(p, "in") || !(node->b = mf_jp_tuple(p, &rules)) ||
        !mf_jp_skip_name(p, "if", &test) || (test && !(node->c = mf_jp_expression(p))) ||
        !mf_jp_skip_name(p, "recursive", &node->recursive) || !parse_statements(p, ends, &node->list))
        return false;
    bool otherwise = is_name(&p->token, "else");
    return mf_jp_advance(p) && (!otherwise || parse_until(p, "endfor", &node->more));
}

static bool parse_if(mf_jparser *p, mf_jnode *node) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    static const mf_jtuple_rules rules = {0};
    mf_jnode_list elifs = {0};
    mf_jnode *branch = node;
    node->kind = MF_N_IF;
    for (;;) {
        if (!(branch->a = mf_jp_tuple(p, &rules)) || !parse_statements(p, ends, &branch->list))
            return mf_jp_drop(&elifs), false;
        bool elif = is_name(&p->token, "elif"), otherwise = is_name(&p->token, "else");
        if (!mf_jp_advance(p) || (branch != node && !mf_jp_finish(p, branch))) return mf_jp_drop(&elifs), false;
        if (elif) {
            branch = mf_jp_node_here(p, MF_N_IF);
            if (!mf_jp_push(p, &elifs, branch)) return mf_jp_drop(&elifs), false;
            continue;
        }
        if (otherwise && !parse_until(p, "endif", &node->last)) return mf_jp_drop(&elifs), false;
        return mf_jp_keep(p, &elifs, &node->more);
    }
}

// "(a, b=1)": the parameters of a macro or call block.
static bool parse_signature(mf_jparser *p, mf_jnode *node) {
    mf_jnode_list names = {0}, defaults = {0};
    bool ok = mf_jp_expect_op(p, '('), assign;
    while (ok && !is_op(&p->token, ')')) {
        mf_jnode *name = names.len && !mf_jp_expect_op(p, ',') ? NULL : parse_target_name(p);
        if (name && names.len == MF_JP_MOST_NAMED) {
            mf_jrefuse(p->t, name->from, MF_ERR_LIMIT, p->err, "more than %d parameters", MF_JP_MOST_NAMED);
            name = NULL;
        }
        for (size_t i = 0; name && i < names.len; i++) {
            if (names.data[i]->name != name->name) continue;
            mf_jrefuse(p->t, name->from, MF_ERR_FORMAT, p->err, "a parameter is repeated");
            name = NULL;
        }
        ok = mf_jp_push(p, &names, name) && mf_jp_skip_op(p, '=', &assign);
        if (ok && assign)
            ok = mf_jp_push(p, &defaults, mf_jp_expression(p));
        else if (ok && defaults.len)
            ok = mf_jrefuse(p->t, name->from, MF_ERR_FORMAT, p->err, "non-default argument follows default argument");
    }
    ok = ok && mf_jp_expect_op(p, ')');
    if (!ok) return mf_jp_drop(&names), mf_jp_drop(&defaults), false;
    if (!mf_jp_keep(p, &names, &node->list)) return mf_jp_drop(&defaults), false;
    return mf_jp_keep(p, &defaults, &node->more);
}

static bool parse_macro(mf_jparser *p, mf_jnode *node) {
    mf_jnode *name = parse_target_name(p);
    if (!name) return false;
    node->kind = MF_N_MACRO;
    node->name = name->name;
    return parse_signature(p, node) && parse_until(p, "endmacro", &node->last);
}

static bool parse_call_block(mf_jparser *p, mf_jnode *node) {
    node->kind = MF_N_CALLBLOCK;
    if (is_op(&p->token, '(') && !parse_signature(p, node)) return false;
    if (!(node->a = mf_jp_expression(p))) return false;
    if (node->a->kind != MF_N_CALL) return mf_jrefuse(p->t, node->a->from, MF_ERR_FORMAT, p->err, "expected a call");
    for (size_t i = 0; i < node->a->more.n; i++)
        if (mf_str_is((mf_str){node->a->more.items[i]->value.str->ptr, node->a->more.items[i]->value.str->len}, "caller"))
            return mf_jrefuse(p->t, node->a->from, MF_ERR_FORMAT, p->err, "the keyword argument 'caller' is repeated");
    return parse_until(p, "endcall", &node->last);
}

static bool parse_generation(mf_jparser *p, mf_jnode *node) {
    node->kind = MF_N_CALLBLOCK;
    return parse_until(p, "endgeneration", &node->last);
}

static bool parse_filter_block(mf_jparser *p, mf_jnode *node) {
    node->kind = MF_N_FILTERBLOCK;
    return (node->a = mf_jp_filter(p, NULL)) && (node->a = mf_jp_filters(p, node->a)) &&
           parse_until(p, "endfilter", &node->list);
}

static bool parse_with(mf_jparser *p, mf_jnode *node) {
    mf_jnode_list targets = {0}, values = {0};
    node->kind = MF_N_WITH;
    bool ok = true;
    while (ok && p->token.kind != MF_T_BLOCK_END) {
        ok = (targets.len == 0 || mf_jp_expect_op(p, ',')) && mf_jp_push(p, &targets, parse_target(p, NULL, false)) &&
             mf_jp_expect_op(p, '=') && mf_jp_push(p, &values, mf_jp_expression(p));
    }
    if (!ok) return mf_jp_drop(&targets), mf_jp_drop(&values), false;
    if (!mf_jp_keep(p, &targets, &node->list)) return mf_jp_drop(&values), false;
    return mf_jp_keep(p, &values, &node->more) && parse_until(p, "endwith", &node->last);
}

static bool parse_print(mf_jparser *p, mf_jnode *node) {
    mf_jnode_list list = {0};
    node->kind = MF_N_OUTPUT;
    while (p->token.kind != MF_T_BLOCK_END)
        if ((list.len && !mf_jp_expect_op(p, ',')) || !mf_jp_push(p, &list, mf_jp_expression(p)))
            return mf_jp_drop(&list), false;
    return mf_jp_keep(p, &list, &node->list);
}

static bool parse_break(mf_jparser *p, mf_jnode *node) {
    (void)p;
    node->kind = MF_N_BREAK;
    return true;
}

static bool parse_continue(mf_jparser *p, mf_jnode *node) {
    (void)p;
    node->kind = MF_N_CONTINUE;
    return true;
}

static const struct {
    const char *name;
    bool (*parse)(mf_jparser *p, mf_jnode *node); // NULL: known to jinja2 and not supported here
} tags[] = {
    {"for", parse_for},
    {"if", parse_if},
    {"set", parse_set},
    {"macro", parse_macro},
    {"call", parse_call_block},
    {"generation", parse_generation},
    {"filter", parse_filter_block},
    {"with", parse_with},
    {"print", parse_print},
    {"break", parse_break},
    {"continue", parse_continue},
    {"block", NULL},
    {"extends", NULL},
    {"include", NULL},
    {"import", NULL},
    {"from", NULL},
    {"autoescape", NULL},
    {"trans", NULL},
    {"do", NULL},
    {"debug", NULL},
};

static mf_jnode *parse_statement(mf_jparser *p) {
    if (p->token.kind != MF_T_NAME) return mf_jp_unexpected(p, "a tag's name"), NULL;
    mf_jtoken name = p->token;
    int shown = (int)(name.text.len < 40 ? name.text.len : 40);
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (!is_name(&name, tags[i].name)) continue;
        if (!tags[i].parse)
            return mf_jrefuse(p->t, name.from, MF_ERR_UNSUPPORTED, p->err, "the tag '%s' is not supported", tags[i].name),
                   NULL;
        mf_jnode *node = mf_jp_node_here(p, MF_N_OUTPUT);
        if (!node || !mf_jp_deeper(p) || !mf_jp_advance(p) || !tags[i].parse(p, node)) return NULL;
        p->depth--;
        return mf_jp_finish(p, node);
    }
    char wanted[80] = "";
    size_t n = 0;
    for (size_t i = 0; p->ends && p->ends[i]; i++)
        n += (size_t)snprintf(wanted + n, sizeof wanted - n, "%s'%s'", i ? " or " : "; open is a block that ends with ",
                              p->ends[i]);
    return mf_jrefuse(p->t, name.from, MF_ERR_FORMAT, p->err, "unknown tag '%.*s'%s", shown, name.text.ptr, wanted), NULL;
}

static bool ends_here(const mf_jparser *p, const char *const *ends) {
    for (size_t i = 0; ends && ends[i]; i++)
        if (is_name(&p->token, ends[i])) return true;
    return false;
}

static mf_jnode *parse_output(mf_jparser *p) {
    static const mf_jtuple_rules rules = {.conditional = true};
    if (p->token.kind == MF_T_DATA) {
        mf_jnode *node = mf_jp_node_here(p, MF_N_DATA);
        return node && mf_jp_const_text(p, p->token.text, &node->value) && mf_jp_advance(p) ? mf_jp_finish(p, node) : NULL;
    }
    mf_jnode *node = mf_jp_node_here(p, MF_N_OUTPUT);
    mf_jnode_list list = {0};
    if (!node || !mf_jp_advance(p) || !mf_jp_push(p, &list, mf_jp_tuple(p, &rules))) return mf_jp_drop(&list);
    if (!mf_jp_keep(p, &list, &node->list)) return NULL;
    if (p->token.kind != MF_T_VARIABLE_END) return mf_jp_unexpected(p, "'}}'"), NULL;
    return mf_jp_advance(p) ? mf_jp_finish(p, node) : NULL;
}

static bool unclosed(mf_jparser *p, const char *const *ends) {
    return mf_jrefuse(p->t, p->token.from, MF_ERR_FORMAT, p->err, "the template ends where '%s' is missing", ends[0]);
}

// Everything up to a tag of `ends` (NULL: the end of the template).
static bool parse_body(mf_jparser *p, const char *const *ends, mf_jnodes *out) {
    const char *const *outer = p->ends;
    mf_jnode_list list = {0};
    bool ok = true;
    p->ends = ends;
    while (ok && p->token.kind != MF_T_EOF) {
        if (p->token.kind != MF_T_BLOCK_BEGIN) {
            ok = mf_jp_push(p, &list, parse_output(p));
            continue;
        }
        ok = mf_jp_advance(p);
        if (ok && ends_here(p, ends)) break;
        ok = ok && mf_jp_push(p, &list, parse_statement(p)) && mf_jp_expect_block_end(p);
    }
    p->ends = outer;
    if (ok && ends && p->token.kind == MF_T_EOF) ok = unclosed(p, ends);
    if (!ok) return mf_jp_drop(&list), false;
    return mf_jp_keep(p, &list, out);
}

bool mf_jparse(mf_jinja *t, mf_error *err) {
    mf_jparser p = {.t = t, .err = err, .lexer = {.t = t, .err = err, .line = 1, .line_starting = true}};
    bool ok = mf_jp_advance(&p) && parse_body(&p, NULL, &t->body);
    free(p.lexer.open.data);
    return ok;
}
