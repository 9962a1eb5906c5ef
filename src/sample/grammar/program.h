// A compiled grammar: rules of small nodes over bytes, which the machine (machine.h) walks.
#ifndef MF_SAMPLE_GRAMMAR_PROGRAM_H
#define MF_SAMPLE_GRAMMAR_PROGRAM_H

#include "sample/grammar/expr.h"

#define MF_PROGRAM_MAX_NODES 3000000

typedef enum mf_grammar_node_kind {
    MF_NODE_END,   // the rule is complete
    MF_NODE_BYTES, // a byte of set a, then b
    MF_NODE_TOKEN, // token a, then b
    MF_NODE_OTHER, // any token but a, then b
    MF_NODE_CALL,  // rule a, then b
    MF_NODE_REAL,  // the same, but rule a must not be empty
    MF_NODE_SPLIT, // a or b
    MF_NODE_ROOM,  // b, if the count has room for one more
    MF_NODE_COUNT, // counts one, then b; a: what must be left to be said (reach), or MF_NO_REACH
    MF_NODE_DONE,  // b, if the count is enough
} mf_grammar_node_kind;

#define MF_NO_REACH UINT32_MAX

typedef struct mf_grammar_node {
    uint32_t kind, a, b;
} mf_grammar_node;

typedef struct mf_byteset {
    uint64_t bits[4];
} mf_byteset;

// A rule. One that counts begins with `min` needed and room for `max` (MF_GRAMMAR_MANY: any number).
typedef struct mf_program_rule {
    uint32_t start;
    uint32_t min, max;
    bool counts, nullable, productive;
} mf_program_rule;

// In how many characters a state of an automaton can come to an end: least[x] is the smallest such number from x on, for x below
// pre + period; further ones repeat with the period. UINT32_MAX: none.
typedef struct mf_reach {
    const uint32_t *least;
    uint32_t pre, period;
} mf_reach;

typedef struct mf_grammar_program {
    mf_array(mf_grammar_node) nodes; // 0 is END
    mf_array(mf_byteset) sets;
    mf_array(mf_program_rule) rules;
    mf_array(mf_reach) reach;
    mf_arena arena; // reach's numbers
    uint32_t root;
    uint8_t class_of[256]; // bytes that no set tells apart
    uint8_t example[256];  // [n_classes] a byte of each class
    uint32_t n_classes;
    bool has_tokens; // some rule names tokens
} mf_grammar_program;

// Compiles a grammar whose rules are all defined. False with err: MF_ERR_LIMIT (too many nodes), MF_ERR_ARGUMENT: a rule that begins
// with itself, by name and line.
bool mf_program_compile(const mf_grammar *g, mf_grammar_program *out, mf_error *err);
void mf_program_free(mf_grammar_program *p);

static inline bool mf_byteset_has(const mf_byteset *s, uint8_t byte) { return s->bits[byte / 64] >> byte % 64 & 1; }
static inline void mf_byteset_add(mf_byteset *s, uint8_t byte) { s->bits[byte / 64] |= (uint64_t)1 << byte % 64; }

// Whether an end can be had in at least `need` and at most `room` characters.
static inline bool mf_reach_within(const mf_reach *r, uint32_t need, uint32_t room) {
    uint32_t low = need, more = 0;
    if (low >= r->pre + r->period) {
        more = (low - r->pre) / r->period * r->period;
        low -= more;
    }
    uint32_t least = r->least[low];
    return least != UINT32_MAX && (uint64_t)least + more <= room;
}

#endif
