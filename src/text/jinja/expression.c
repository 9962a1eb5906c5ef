// Expressions: jinja2's grammar (its parser.py), recursive descent with bounded nesting.
#include <stdio.h>
#include <stdlib.h>

#include "text/jinja/call.h"
#include "text/jinja/parse.h"
#include "text/jinja/run.h"
#include "text/jinja/string.h"

static mf_jnode *parse_unary(mf_jparser *p, bool filters);

// ---- Primaries

mf_jnode *mf_jp_name(mf_jparser *p) {
    mf_jnode *node = mf_jp_node_here(p, MF_N_NAME);
    if (!node || !mf_jp_name_id(p, p->token.text, &node->name) || !mf_jp_advance(p)) return NULL;
    return mf_jp_finish(p, node);
}

static mf_jnode *parse_word(mf_jparser *p, bool namespaces) {
    static const struct {
        const char *name;
        mf_jval value;
    } constants[] = {
        {"true", {.type = MF_J_BOOL, .boolean = true}},
        {"True", {.type = MF_J_BOOL, .boolean = true}},
        {"false", {.type = MF_J_BOOL}},
        {"False", {.type = MF_J_BOOL}},
        {"none", {.type = MF_J_NONE}},
        {"None", {.type = MF_J_NONE}},
    };
    for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
        if (!is_name(&p->token, constants[i].name)) continue;
        mf_jnode *node = mf_jp_node_here(p, MF_N_CONST);
        if (!node || !mf_jp_advance(p)) return NULL;
        node->value = constants[i].value;
        return mf_jp_finish(p, node);
    }
    mf_jnode *node = mf_jp_name(p);
    if (!node || !namespaces || !is_op(&p->token, '.')) return node;
    node->kind = MF_N_NSREF;
    if (!mf_jp_advance(p)) return NULL;
    if (p->token.kind != MF_T_NAME) return mf_jp_unexpected(p, "a name"), NULL;
    if (!mf_jp_const_text(p, p->token.text, &node->value) || !mf_jp_advance(p)) return NULL;
    return mf_jp_finish(p, node);
}

static mf_jnode *parse_strings(mf_jparser *p) { // adjacent literals are one
    mf_jnode *node = mf_jp_node_here(p, MF_N_CONST);
    mf_buf text = {0};
    bool ok = node != NULL;
    while (ok && p->token.kind == MF_T_STRING) {
        mf_buf_str(&text, p->token.text);
        ok = mf_jp_advance(p);
    }
    if (ok && text.failed) ok = mf_jp_out_of_memory(p);
    char *copy = ok ? mf_arena_copy(&p->t->arena, text.data, text.len) : NULL;
    if (ok && !copy) ok = mf_jp_out_of_memory(p);
    ok = ok && mf_jp_const_text(p, (mf_str){copy, text.len}, &node->value);
    free(text.data);
    return ok ? mf_jp_finish(p, node) : NULL;
}

static mf_jnode *parse_number(mf_jparser *p) {
    mf_jnode *node = mf_jp_node_here(p, MF_N_CONST);
    if (!node) return NULL;
    mf_jrun run = {.arena = p->t->arena, .err = p->err, .steps = MF_JINJA_STEPS, .work = MF_JINJA_STEPS};
    bool ok;
    if (p->token.kind == MF_T_FLOAT) {
        double value;
        if (!mf_jparse_real(&run, p->token.text, &value, &ok)) return NULL;
        if (!ok) return mf_jrefuse(p->t, p->token.from, MF_ERR_FORMAT, p->err, "a number out of range"), NULL;
        node->value = mf_jreal(value);
    } else {
        bool done = mf_jparse_int(&run, p->token.text, 0, &node->value, &ok);
        p->t->arena = run.arena;
        if (!done) return NULL;
        if (!ok)
            return mf_jrefuse(p->t, p->token.from, MF_ERR_FORMAT, p->err, "an integer of more than %d digits",
                              MF_JINJA_INT_DIGITS),
                   NULL;
    }
    return mf_jp_advance(p) ? mf_jp_finish(p, node) : NULL;
}

static mf_jnode *parse_items(mf_jparser *p, mf_jkind kind, char close) {
    mf_jnode *node = mf_jp_node_here(p, kind);
    mf_jnode_list list = {0};
    if (!node || !mf_jp_advance(p)) return NULL;
    while (!is_op(&p->token, close)) {
        if (list.len && !mf_jp_expect_op(p, ',')) return mf_jp_drop(&list);
        if (is_op(&p->token, close)) break;
        if (!mf_jp_push(p, &list, mf_jp_expression(p))) return mf_jp_drop(&list);
        if (kind == MF_N_DICT && (!mf_jp_expect_op(p, ':') || !mf_jp_push(p, &list, mf_jp_expression(p))))
            return mf_jp_drop(&list);
    }
    if (!mf_jp_keep(p, &list, &node->list) || !mf_jp_expect_op(p, close)) return NULL;
    return mf_jp_finish(p, node);
}

static bool tuple_ends(const mf_jparser *p, const mf_jtuple_rules *rules) {
    return p->token.kind == MF_T_VARIABLE_END || p->token.kind == MF_T_BLOCK_END || is_op(&p->token, ')') ||
           (rules->end && is_name(&p->token, rules->end));
}

// An expression, or several with commas between.
mf_jnode *mf_jp_tuple(mf_jparser *p, const mf_jtuple_rules *rules) {
    mf_jnode *node = mf_jp_node_here(p, MF_N_TUPLE);
    mf_jnode_list list = {0};
    bool tuple = false, comma = true;
    if (!node) return NULL;
    while (comma && !tuple_ends(p, rules)) {
        mf_jnode *item = rules->simplified ? mf_jp_primary(p, rules->namespaces) : mf_jp_condition(p, rules->conditional);
        if (!mf_jp_push(p, &list, item) || !mf_jp_skip_op(p, ',', &comma)) return mf_jp_drop(&list);
        tuple = tuple || comma;
    }
    if (!tuple && list.len) {
        mf_jnode *only = list.data[0];
        mf_jp_drop(&list);
        return only;
    }
    if (!tuple && !rules->parentheses) return mf_jp_unexpected(p, "an expression"), NULL;
    return mf_jp_keep(p, &list, &node->list) ? mf_jp_finish(p, node) : NULL;
}

static mf_jnode *parse_parentheses(mf_jparser *p) {
    static const mf_jtuple_rules rules = {.conditional = true, .parentheses = true};
    uint32_t from = p->token.from;
    if (!mf_jp_advance(p)) return NULL;
    mf_jnode *node = mf_jp_tuple(p, &rules);
    if (!node || !mf_jp_expect_op(p, ')')) return NULL;
    node->from = from;
    return mf_jp_finish(p, node);
}

mf_jnode *mf_jp_primary(mf_jparser *p, bool namespaces) {
    mf_jnode *node = NULL;
    if (!mf_jp_deeper(p)) return NULL;
    if (p->token.kind == MF_T_NAME)
        node = parse_word(p, namespaces);
    else if (p->token.kind == MF_T_STRING)
        node = parse_strings(p);
    else if (p->token.kind == MF_T_INTEGER || p->token.kind == MF_T_FLOAT)
        node = parse_number(p);
    else if (is_op(&p->token, '('))
        node = parse_parentheses(p);
    else if (is_op(&p->token, '['))
        node = parse_items(p, MF_N_LIST, ']');
    else if (is_op(&p->token, '{'))
        node = parse_items(p, MF_N_DICT, '}');
    else
        mf_jp_unexpected(p, "an expression");
    p->depth--;
    return node;
}

// ---- Behind a primary

static mf_jnode *parse_subscribed(mf_jparser *p) {
    mf_jnode *slice = mf_jp_node_here(p, MF_N_SLICE);
    mf_jnode *bounds[3] = {NULL};
    if (!slice) return NULL;
    if (!is_op(&p->token, ':')) {
        bounds[0] = mf_jp_expression(p);
        if (!bounds[0] || !is_op(&p->token, ':')) return bounds[0];
    }
    for (int i = 1; i < 3 && is_op(&p->token, ':'); i++) {
        if (!mf_jp_advance(p)) return NULL;
        if (is_op(&p->token, ':') || is_op(&p->token, ']') || is_op(&p->token, ',')) continue;
        if (!(bounds[i] = mf_jp_expression(p))) return NULL;
    }
    slice->a = bounds[0];
    slice->b = bounds[1];
    slice->c = bounds[2];
    return mf_jp_finish(p, slice);
}

static mf_jnode *parse_bracket(mf_jparser *p, mf_jnode *of) {
    mf_jnode *node = mf_jp_new_node(p, MF_N_GETITEM, p->token.line, of->from);
    mf_jnode_list list = {0};
    uint32_t from = p->token.from, line = p->token.line;
    if (!node || !mf_jp_advance(p)) return NULL;
    while (!is_op(&p->token, ']')) {
        if (list.len && !mf_jp_expect_op(p, ',')) return mf_jp_drop(&list);
        if (!mf_jp_push(p, &list, parse_subscribed(p))) return mf_jp_drop(&list);
    }
    if (!mf_jp_expect_op(p, ']')) return mf_jp_drop(&list);
    node->a = of;
    if (list.len == 1) {
        node->b = list.data[0];
        mf_jp_drop(&list);
        return mf_jp_finish(p, node);
    }
    for (size_t i = 0; i < list.len; i++) {
        if (list.data[i]->kind != MF_N_SLICE) continue;
        mf_jrefuse(p->t, list.data[i]->from, MF_ERR_UNSUPPORTED, p->err, "a slice beside another index is not supported");
        return mf_jp_drop(&list);
    }
    node->b = mf_jp_new_node(p, MF_N_TUPLE, line, from);
    if (!node->b) return mf_jp_drop(&list);
    return mf_jp_keep(p, &list, &node->b->list) ? mf_jp_finish(p, node) : NULL;
}

static mf_jnode *parse_subscript(mf_jparser *p, mf_jnode *of) {
    if (is_op(&p->token, '[')) return parse_bracket(p, of);
    mf_jnode *node = mf_jp_new_node(p, MF_N_GETATTR, p->token.line, of->from);
    if (!node || !mf_jp_advance(p)) return NULL;
    node->a = of;
    if (p->token.kind == MF_T_INTEGER) {
        node->kind = MF_N_GETITEM;
        node->b = parse_number(p);
        return node->b ? mf_jp_finish(p, node) : NULL;
    }
    if (p->token.kind != MF_T_NAME) return mf_jp_unexpected(p, "a name or number"), NULL;
    if (!mf_jp_const_text(p, p->token.text, &node->value) || !mf_jp_advance(p)) return NULL;
    return mf_jp_finish(p, node);
}

static bool bad_call(mf_jparser *p, const mf_jtoken *open) {
    return mf_jrefuse(p->t, open->from, MF_ERR_FORMAT, p->err, "invalid syntax for function call expression");
}

static mf_jnode *parse_keyword(mf_jparser *p, const mf_jnode_list *others) {
    mf_jnode *node = mf_jp_node_here(p, MF_N_KEYWORD);
    if (!node || !mf_jp_const_text(p, p->token.text, &node->value)) return NULL;
    if (others->len == MF_JP_MOST_NAMED)
        return mf_jrefuse(p->t, p->token.from, MF_ERR_LIMIT, p->err, "more than %d keyword arguments", MF_JP_MOST_NAMED),
               NULL;
    for (size_t i = 0; i < others->len; i++)
        if (mf_str_eq(mf_jstr_slice(others->data[i]->value.str), p->token.text))
            return mf_jrefuse(p->t, p->token.from, MF_ERR_FORMAT, p->err, "the keyword argument '%.*s' is repeated",
                              (int)(p->token.text.len < 40 ? p->token.text.len : 40), p->token.text.ptr),
                   NULL;
    if (!mf_jp_advance(p)) return NULL; // to the =
    if (!mf_jp_advance(p) || !(node->a = mf_jp_expression(p))) return NULL;
    return mf_jp_finish(p, node);
}

static bool parse_argument(mf_jparser *p, mf_jnode *call, mf_jnode_list *args, mf_jnode_list *keywords,
                           const mf_jtoken *open) {
    if (is_op(&p->token, '*')) {
        if (call->b || call->c) return bad_call(p, open);
        return mf_jp_advance(p) && (call->b = mf_jp_expression(p));
    }
    if (is_op(&p->token, MF_T_POW)) {
        if (call->c) return bad_call(p, open);
        return mf_jp_advance(p) && (call->c = mf_jp_expression(p));
    }
    if (p->token.kind == MF_T_NAME && !mf_jp_look(p)) return false;
    if (p->token.kind == MF_T_NAME && is_op(&p->ahead, '=')) {
        if (call->c) return bad_call(p, open);
        return mf_jp_push(p, keywords, parse_keyword(p, keywords));
    }
    if (call->b || call->c || keywords->len) return bad_call(p, open);
    return mf_jp_push(p, args, mf_jp_expression(p));
}

static bool parse_arguments(mf_jparser *p, mf_jnode *call) {
    mf_jnode_list args = {0}, keywords = {0};
    mf_jtoken open = p->token;
    bool ok = mf_jp_expect_op(p, '('), comma = false;
    while (ok && !is_op(&p->token, ')')) {
        if (comma) {
            ok = mf_jp_expect_op(p, ',');
            if (!ok || is_op(&p->token, ')')) break;
        }
        ok = parse_argument(p, call, &args, &keywords, &open);
        comma = true;
    }
    ok = ok && mf_jp_expect_op(p, ')');
    if (!ok) return mf_jp_drop(&args), mf_jp_drop(&keywords), false;
    if (!mf_jp_keep(p, &args, &call->list)) return mf_jp_drop(&keywords), false;
    return mf_jp_keep(p, &keywords, &call->more);
}

static mf_jnode *parse_call(mf_jparser *p, mf_jnode *callee) {
    mf_jnode *node = mf_jp_new_node(p, MF_N_CALL, p->token.line, callee->from);
    if (!node) return NULL;
    node->a = callee;
    return parse_arguments(p, node) ? mf_jp_finish(p, node) : NULL;
}

static mf_jnode *parse_postfix(mf_jparser *p, mf_jnode *node) {
    while (node) {
        if (is_op(&p->token, '.') || is_op(&p->token, '['))
            node = parse_subscript(p, node);
        else if (is_op(&p->token, '('))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

// The name of a filter or test, at which the parser stands, looked up. One that is not there is refused in check.c.
static bool parse_function(mf_jparser *p, mf_jnode *node, const mf_jfunction *(*find)(mf_str)) {
    if (p->token.kind != MF_T_NAME) return mf_jp_unexpected(p, "a name");
    mf_str name = p->token.text;
    node->name_at = p->token.from;
    if (!mf_jp_advance(p)) return false;
    while (is_op(&p->token, '.')) {
        if (!mf_jp_advance(p)) return false;
        if (p->token.kind != MF_T_NAME) return mf_jp_unexpected(p, "a name");
        name.len = (size_t)(p->token.text.ptr + p->token.text.len - name.ptr);
        if (!mf_jp_advance(p)) return false;
    }
    node->function = find(name);
    return mf_jp_const_text(p, name, &node->value);
}

// One filter; the parser stands at its name.
mf_jnode *mf_jp_filter(mf_jparser *p, mf_jnode *value) {
    mf_jnode *node = mf_jp_new_node(p, MF_N_FILTER, p->token.line, value ? value->from : p->token.from);
    if (!node || !parse_function(p, node, mf_jfilter_find)) return NULL;
    node->a = value;
    if (is_op(&p->token, '(') && !parse_arguments(p, node)) return NULL;
    return mf_jp_finish(p, node);
}

// Filters behind each other, from a '|' on.
mf_jnode *mf_jp_filters(mf_jparser *p, mf_jnode *value) {
    while (is_op(&p->token, '|')) {
        if (!mf_jp_advance(p)) return NULL;
        if (!(value = mf_jp_filter(p, value))) return NULL;
    }
    return value;
}

static bool begins_test_argument(const mf_jparser *p) {
    const mf_jtoken *t = &p->token;
    if (t->kind == MF_T_NAME) return !is_name(t, "else") && !is_name(t, "or") && !is_name(t, "and");
    return t->kind == MF_T_STRING || t->kind == MF_T_INTEGER || t->kind == MF_T_FLOAT || is_op(t, '[') || is_op(t, '{');
}

static mf_jnode *parse_test(mf_jparser *p, mf_jnode *value) {
    mf_jnode *node = mf_jp_new_node(p, MF_N_TEST, p->token.line, value->from);
    bool negated;
    if (!node || !mf_jp_advance(p) || !mf_jp_skip_name(p, "not", &negated) || !parse_function(p, node, mf_jtest_find))
        return NULL;
    node->a = value;
    if (is_op(&p->token, '(')) {
        if (!parse_arguments(p, node)) return NULL;
    } else if (begins_test_argument(p)) {
        if (is_name(&p->token, "is"))
            return mf_jrefuse(p->t, p->token.from, MF_ERR_FORMAT, p->err, "You cannot chain multiple tests with is"), NULL;
        mf_jnode_list list = {0};
        mf_jnode *argument = mf_jp_primary(p, false);
        if (argument) argument = parse_postfix(p, argument);
        if (!mf_jp_push(p, &list, argument)) return mf_jp_drop(&list);
        if (!mf_jp_keep(p, &list, &node->list)) return NULL;
    }
    if (!mf_jp_finish(p, node) || !negated) return node;
    mf_jnode *negation = mf_jp_new_node(p, MF_N_NOT, node->line, node->from);
    if (!negation) return NULL;
    negation->a = node;
    return mf_jp_finish(p, negation);
}

static mf_jnode *parse_filter_expr(mf_jparser *p, mf_jnode *node) {
    while (node) {
        if (is_op(&p->token, '|'))
            node = mf_jp_filters(p, node);
        else if (is_name(&p->token, "is"))
            node = parse_test(p, node);
        else if (is_op(&p->token, '('))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

// ---- Operators, the loosest last

static mf_jnode *parse_sign(mf_jparser *p) {
    mf_jnode *node = mf_jp_node_here(p, is_op(&p->token, '-') ? MF_N_NEG : MF_N_POS);
    if (!node || !mf_jp_deeper(p)) return NULL;
    bool ok = mf_jp_advance(p) && (node->a = parse_unary(p, false));
    p->depth--;
    return ok ? mf_jp_finish(p, node) : NULL;
}

static mf_jnode *parse_unary(mf_jparser *p, bool filters) {
    mf_jnode *node = is_op(&p->token, '-') || is_op(&p->token, '+') ? parse_sign(p) : mf_jp_primary(p, false);
    if (node) node = parse_postfix(p, node);
    return node && filters ? parse_filter_expr(p, node) : node;
}

static mf_jnode *binary(mf_jparser *p, mf_jkind kind, int op, mf_jnode *left, mf_jnode *right) {
    if (!left || !right) return NULL;
    mf_jnode *node = mf_jp_new_node(p, kind, left->line, left->from);
    if (!node) return NULL;
    node->op = (uint8_t)op;
    node->a = left;
    node->b = right;
    return mf_jp_finish(p, node);
}

static int arith_of(const mf_jtoken *token, const char *ops, const uint8_t *codes) {
    const char *found = token->kind == MF_T_OPERATOR ? strchr(ops, token->op) : NULL;
    return found && *found ? codes[found - ops] : -1;
}

static mf_jnode *parse_pow(mf_jparser *p) {
    mf_jnode *left = parse_unary(p, true);
    while (left && is_op(&p->token, MF_T_POW))
        left = mf_jp_advance(p) ? binary(p, MF_N_BINARY, MF_J_POW, left, parse_unary(p, true)) : NULL;
    return left;
}

static mf_jnode *parse_math2(mf_jparser *p) {
    static const char ops[] = {'*', '/', MF_T_FLOORDIV, '%', 0};
    static const uint8_t codes[] = {MF_J_MUL, MF_J_DIV, MF_J_FLOORDIV, MF_J_MOD};
    mf_jnode *left = parse_pow(p);
    for (int op; left && (op = arith_of(&p->token, ops, codes)) >= 0;)
        left = mf_jp_advance(p) ? binary(p, MF_N_BINARY, op, left, parse_pow(p)) : NULL;
    return left;
}

static mf_jnode *parse_concat(mf_jparser *p) {
    mf_jnode *first = parse_math2(p);
    if (!first || !is_op(&p->token, '~')) return first;
    mf_jnode *node = mf_jp_new_node(p, MF_N_CONCAT, first->line, first->from);
    mf_jnode_list list = {0};
    if (!node || !mf_jp_push(p, &list, first)) return mf_jp_drop(&list);
    while (is_op(&p->token, '~'))
        if (!mf_jp_advance(p) || !mf_jp_push(p, &list, parse_math2(p))) return mf_jp_drop(&list);
    return mf_jp_keep(p, &list, &node->list) ? mf_jp_finish(p, node) : NULL;
}

static mf_jnode *parse_math1(mf_jparser *p) {
    static const uint8_t codes[] = {MF_J_ADD, MF_J_SUB};
    mf_jnode *left = parse_concat(p);
    for (int op; left && (op = arith_of(&p->token, "+-", codes)) >= 0;)
        left = mf_jp_advance(p) ? binary(p, MF_N_BINARY, op, left, parse_concat(p)) : NULL;
    return left;
}

// The comparison that stands at the parser is taken; *op is -1 where there is none.
static bool take_comparison(mf_jparser *p, int *op) {
    static const char ops[] = {MF_T_EQ, MF_T_NE, '<', MF_T_LE, '>', MF_T_GE, 0};
    static const uint8_t codes[] = {MF_J_EQ, MF_J_NE, MF_J_LT, MF_J_LE, MF_J_GT, MF_J_GE};
    *op = arith_of(&p->token, ops, codes);
    if (is_name(&p->token, "in")) *op = MF_J_IN;
    if (is_name(&p->token, "not")) {
        if (!mf_jp_look(p)) return false;
        if (!is_name(&p->ahead, "in")) return true;
        *op = MF_J_NOT_IN;
        if (!mf_jp_advance(p)) return false;
    }
    return *op < 0 || mf_jp_advance(p);
}

static mf_jnode *parse_compare(mf_jparser *p) {
    mf_jnode *first = parse_math1(p);
    mf_jnode_list list = {0};
    for (;;) {
        int op;
        if (!first || !take_comparison(p, &op)) return mf_jp_drop(&list);
        if (op < 0) break;
        mf_jnode *operand = mf_jp_node_here(p, MF_N_OPERAND);
        if (!operand || !(operand->a = parse_math1(p))) return mf_jp_drop(&list);
        operand->op = (uint8_t)op;
        if (!mf_jp_push(p, &list, operand)) return mf_jp_drop(&list);
    }
    if (list.len == 0) return first;
    mf_jnode *node = mf_jp_new_node(p, MF_N_COMPARE, first->line, first->from);
    if (!node) return mf_jp_drop(&list);
    node->a = first;
    return mf_jp_keep(p, &list, &node->list) ? mf_jp_finish(p, node) : NULL;
}

static mf_jnode *parse_not(mf_jparser *p) {
    if (!is_name(&p->token, "not")) return parse_compare(p);
    mf_jnode *node = mf_jp_node_here(p, MF_N_NOT);
    if (!node || !mf_jp_deeper(p)) return NULL;
    bool ok = mf_jp_advance(p) && (node->a = parse_not(p));
    p->depth--;
    return ok ? mf_jp_finish(p, node) : NULL;
}

static mf_jnode *parse_and(mf_jparser *p) {
    mf_jnode *left = parse_not(p);
    while (left && is_name(&p->token, "and")) left = mf_jp_advance(p) ? binary(p, MF_N_AND, 0, left, parse_not(p)) : NULL;
    return left;
}

static mf_jnode *parse_or(mf_jparser *p) {
    mf_jnode *left = parse_and(p);
    while (left && is_name(&p->token, "or")) left = mf_jp_advance(p) ? binary(p, MF_N_OR, 0, left, parse_and(p)) : NULL;
    return left;
}

mf_jnode *mf_jp_condition(mf_jparser *p, bool conditional) {
    if (!mf_jp_deeper(p)) return NULL;
    mf_jnode *value = parse_or(p);
    while (conditional && value && is_name(&p->token, "if")) {
        mf_jnode *node = mf_jp_new_node(p, MF_N_COND, value->line, value->from);
        bool other;
        if (!node || !mf_jp_advance(p) || !(node->a = parse_or(p)) || !mf_jp_skip_name(p, "else", &other)) return NULL;
        if (other && !(node->c = mf_jp_condition(p, true))) return NULL;
        node->b = value;
        value = mf_jp_finish(p, node);
    }
    p->depth--;
    return value;
}

mf_jnode *mf_jp_expression(mf_jparser *p) { return mf_jp_condition(p, true); }
