// Inside the parser: tokens, nodes, and what statements take from expressions.
#ifndef MF_TEXT_JINJA_PARSE_H
#define MF_TEXT_JINJA_PARSE_H

#include "text/jinja/lexer.h"

typedef struct mf_jparser {
    mf_jinja *t;
    mf_error *err;
    mf_jlexer lexer;
    mf_jtoken token, ahead;
    bool has_ahead;
    uint32_t end; // where the last token that was taken ended
    int depth;
    const char *const *ends; // the tags that may end the innermost block
} mf_jparser;

typedef mf_array(mf_jnode *) mf_jnode_list;

enum {
    MF_JP_MOST_NAMED = 1000, // keyword arguments of a call, parameters of a macro: each is compared with all before it
};

// How a tuple is read: names and literals alone, with inline ifs, with an end in parentheses (it may be empty), with
// namespace.attribute; `end` is a name that ends it.
typedef struct mf_jtuple_rules {
    bool simplified, conditional, parentheses, namespaces;
    const char *end;
} mf_jtuple_rules;

static inline bool is_op(const mf_jtoken *token, char op) { return token->kind == MF_T_OPERATOR && token->op == op; }
static inline bool is_name(const mf_jtoken *token, const char *name) {
    return token->kind == MF_T_NAME && mf_str_is(token->text, name);
}

// Tokens. False with the error set.
bool mf_jp_advance(mf_jparser *p);
bool mf_jp_look(mf_jparser *p); // fills p->ahead
bool mf_jp_unexpected(mf_jparser *p, const char *wanted);
bool mf_jp_expect_op(mf_jparser *p, char op);
bool mf_jp_expect_name(mf_jparser *p, const char *name);
bool mf_jp_expect_block_end(mf_jparser *p);
bool mf_jp_skip_op(mf_jparser *p, char op, bool *skipped);
bool mf_jp_skip_name(mf_jparser *p, const char *name, bool *skipped);
bool mf_jp_deeper(mf_jparser *p); // one level of nesting more; p->depth-- undoes it

// Nodes, in the template's arena. NULL or false with the error set.
bool mf_jp_out_of_memory(mf_jparser *p);
mf_jnode *mf_jp_new_node(mf_jparser *p, mf_jkind kind, uint32_t line, uint32_t from);
mf_jnode *mf_jp_node_here(mf_jparser *p, mf_jkind kind);
mf_jnode *mf_jp_finish(mf_jparser *p, mf_jnode *node); // it ends with the last token
bool mf_jp_push(mf_jparser *p, mf_jnode_list *list, mf_jnode *node);
bool mf_jp_keep(mf_jparser *p, mf_jnode_list *list, mf_jnodes *out); // into the arena
mf_jnode *mf_jp_drop(mf_jnode_list *list);                           // NULL
bool mf_jp_name_id(mf_jparser *p, mf_str name, uint32_t *id);
bool mf_jp_const_text(mf_jparser *p, mf_str text, mf_jval *out);

// Expressions (expression.c)
mf_jnode *mf_jp_expression(mf_jparser *p);
mf_jnode *mf_jp_condition(mf_jparser *p, bool conditional);
mf_jnode *mf_jp_tuple(mf_jparser *p, const mf_jtuple_rules *rules);
mf_jnode *mf_jp_primary(mf_jparser *p, bool namespaces);
mf_jnode *mf_jp_name(mf_jparser *p);
mf_jnode *mf_jp_filter(mf_jparser *p, mf_jnode *value);  // from the name on
mf_jnode *mf_jp_filters(mf_jparser *p, mf_jnode *value); // from a '|' on

#endif
