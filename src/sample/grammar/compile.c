// From expressions to nodes. Each expression is put in front of what follows it. What repeats a number of times becomes a rule with a
// count of its own, never copies; a choice of literals becomes a tree; strings are made once for each automaton and its bounds.
#include "sample/grammar/program.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "sample/grammar/chars.h"

#define MAX_UNROLLED   8         // times that one character or a short literal is copied instead of counted
#define MAX_REACH      4096      // lengths that are told apart where a pattern is bounded in length
#define MAX_REACH_WORK 500000000 // moves that are followed for them
#define MAX_LOOKS      20000000  // at rules, to find what may be empty and what allows something
#define COMPILE_MEMORY (256U << 20)
#define PROGRAM_MEMORY (64U << 20) // of lengths

uint32_t mf_compile_fail(mf_compiler *c, mf_code code, const char *why) {
    if (!c->failed) mf_fail(c->err, code, "%s", why);
    c->failed = true;
    return MF_NO_NODE;
}

uint32_t mf_compile_no_memory(mf_compiler *c) {
    if (!c->failed) mf_grammar_no_memory(&c->arena, "the grammar", c->err);
    c->failed = true;
    return MF_NO_NODE;
}

uint32_t mf_compile_node(mf_compiler *c, mf_grammar_node_kind kind, uint32_t a, uint32_t b) {
    if (c->failed || b == MF_NO_NODE) return MF_NO_NODE;
    if (c->program->nodes.len >= MF_PROGRAM_MAX_NODES)
        return mf_compile_fail(c, MF_ERR_LIMIT, "the grammar comes to over 3000000 nodes");
    if (!mf_array_push(&c->program->nodes, ((mf_grammar_node){kind, a, b}))) return mf_compile_no_memory(c);
    return (uint32_t)c->program->nodes.len - 1;
}

uint32_t mf_compile_either(mf_compiler *c, uint32_t a, uint32_t b) {
    if (a == MF_NO_NODE || b == MF_NO_NODE) return a == MF_NO_NODE ? b : a;
    return mf_compile_node(c, MF_NODE_SPLIT, a, b);
}

static bool grow_set_slots(mf_compiler *c) {
    size_t n = c->n_set_slots ? c->n_set_slots * 2 : 256;
    uint32_t *slots = mf_alloc(n, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < c->program->sets.len; i++) {
        size_t at = (size_t)mf_hash(&c->program->sets.data[i], sizeof(mf_byteset), 0) & (n - 1);
        while (slots[at]) at = (at + 1) & (n - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(c->set_slots);
    c->set_slots = slots, c->n_set_slots = n;
    return true;
}

uint32_t mf_compile_bytes(mf_compiler *c, const mf_byteset *set, uint32_t next) {
    mf_grammar_program *p = c->program;
    if (2 * (p->sets.len + 1) > c->n_set_slots && !grow_set_slots(c)) return mf_compile_no_memory(c);
    size_t at = (size_t)mf_hash(set, sizeof *set, 0) & (c->n_set_slots - 1);
    for (; c->set_slots[at]; at = (at + 1) & (c->n_set_slots - 1)) {
        uint32_t i = c->set_slots[at] - 1;
        if (memcmp(&p->sets.data[i], set, sizeof *set) == 0) return mf_compile_node(c, MF_NODE_BYTES, i, next);
    }
    if (!mf_array_push(&p->sets, *set)) return mf_compile_no_memory(c);
    c->set_slots[at] = (uint32_t)p->sets.len;
    return mf_compile_node(c, MF_NODE_BYTES, (uint32_t)p->sets.len - 1, next);
}

uint32_t mf_compile_text(mf_compiler *c, const char *bytes, size_t n, uint32_t next) {
    while (n-- > 0) {
        mf_byteset one = {{0}};
        mf_byteset_add(&one, (uint8_t)bytes[n]);
        next = mf_compile_bytes(c, &one, next);
    }
    return next;
}

static uint32_t add_rule(mf_compiler *c, mf_program_rule rule) {
    if (!mf_array_push(&c->program->rules, rule)) return mf_compile_no_memory(c);
    return (uint32_t)c->program->rules.len - 1;
}

// ---- What may be empty, and what begins with what

static bool nullable(const mf_expr *e, const mf_program_rule *rules) {
    switch (e->kind) {
    case MF_EXPR_LITERAL: return e->text.len == 0;
    case MF_EXPR_REPEAT: return e->min == 0 || nullable(e->child, rules);
    case MF_EXPR_RULE: return rules[e->rule].nullable;
    case MF_EXPR_NUMBER: return e->dfa->accepts[0];
    case MF_EXPR_SEQUENCE:
        for (const mf_expr *x = e->child; x; x = x->next)
            if (!nullable(x, rules)) return false;
        return true;
    case MF_EXPR_CHOICE:
        for (const mf_expr *x = e->child; x; x = x->next)
            if (nullable(x, rules)) return true;
        return false;
    default: return false;
    }
}

// Whether anything is allowed by an expression at all.
static bool productive(const mf_expr *e, const mf_program_rule *rules) {
    switch (e->kind) {
    case MF_EXPR_CHARS: return e->chars.n > 0;
    case MF_EXPR_REPEAT: return e->min == 0 || productive(e->child, rules);
    case MF_EXPR_RULE: return rules[e->rule].productive;
    case MF_EXPR_NUMBER: return !mf_dfa_empty(e->dfa);
    case MF_EXPR_SEQUENCE:
        for (const mf_expr *x = e->child; x; x = x->next)
            if (!productive(x, rules)) return false;
        return true;
    case MF_EXPR_CHOICE:
        for (const mf_expr *x = e->child; x; x = x->next)
            if (productive(x, rules)) return true;
        return false;
    default: return true;
    }
}

typedef bool property(const mf_expr *e, const mf_program_rule *rules);

// Gives every rule a property of its expression that may depend on other rules': marks rules until none is added. The walk alternates its
// direction, so that chains of rules take few rounds either way they run.
static bool mark_rules(mf_compiler *c, property *has, size_t field) {
    mf_program_rule *rules = c->program->rules.data;
    size_t n = c->grammar->rules.len, looks = 0;
    for (bool changed = true, forward = false; changed && !c->failed; forward = !forward) {
        changed = false;
        if ((looks += n) > MAX_LOOKS + n)
            mf_compile_fail(c, MF_ERR_LIMIT, "the grammar's rules lean on one another in too many ways to be told apart");
        for (size_t k = 0; k < n; k++) {
            size_t i = forward ? k : n - 1 - k;
            bool *marked = (bool *)((char *)&rules[i] + field);
            if (!*marked && has(c->grammar->rules.data[i].expr, rules)) *marked = changed = true;
        }
    }
    return !c->failed;
}

typedef mf_array(uint32_t) rule_list;

// The rules that an expression may begin with. False: memory.
static bool first_rules(const mf_expr *e, const mf_program_rule *rules, rule_list *out) {
    switch (e->kind) {
    case MF_EXPR_RULE: return mf_array_push(out, e->rule);
    case MF_EXPR_REPEAT: return e->max == 0 || first_rules(e->child, rules, out);
    case MF_EXPR_SEQUENCE:
    case MF_EXPR_CHOICE:
        for (const mf_expr *x = e->child; x; x = x->next) {
            if (!first_rules(x, rules, out)) return false;
            if (e->kind == MF_EXPR_SEQUENCE && !nullable(x, rules)) return true;
        }
        return true;
    default: return true;
    }
}

// Takes away, again and again, rules that nothing left begins with; a rule that stays begins, in the end, with itself.
static bool refuse_left_recursion(mf_compiler *c) {
    size_t n = c->grammar->rules.len, n_gone = 0, n_work = 0;
    uint32_t *users = mf_alloc(n + 1, sizeof *users), *work = mf_alloc(n + 1, sizeof *work);
    rule_list *firsts = mf_alloc(n + 1, sizeof *firsts);
    bool ok = users && work && firsts;
    for (size_t i = 0; ok && i < n; i++) {
        ok = first_rules(c->grammar->rules.data[i].expr, c->program->rules.data, &firsts[i]);
        for (size_t k = 0; ok && k < firsts[i].len; k++) users[firsts[i].data[k]]++;
    }
    if (!ok) mf_compile_no_memory(c);
    for (size_t i = 0; ok && i < n; i++)
        if (users[i] == 0) work[n_work++] = (uint32_t)i;
    for (; ok && n_gone < n_work; n_gone++)
        for (size_t k = 0; k < firsts[work[n_gone]].len; k++) {
            uint32_t to = firsts[work[n_gone]].data[k];
            if (--users[to] == 0) work[n_work++] = to;
        }
    for (size_t i = 0; ok && n_gone < n && i < n && !c->failed; i++) {
        const mf_grammar_rule *r = &c->grammar->rules.data[i];
        if (users[i] == 0) continue;
        ok = mf_fail(c->err, MF_ERR_ARGUMENT, "the rule '%.*s' of line %zu begins with itself (left recursion)",
                     (int)(r->name.len < 80 ? r->name.len : 80), r->name.ptr, r->line);
        c->failed = true;
    }
    for (size_t i = 0; firsts && i < n; i++) free(firsts[i].data);
    free(firsts);
    free(users);
    free(work);
    return ok;
}

// ---- Lengths that an automaton's states can come to an end in

typedef struct lengths {
    uint64_t *rows; // [MAX_REACH + 1][words]: which states accept in exactly so many characters
    size_t words;
    uint32_t pre, period;
} lengths;

static bool find_lengths(mf_compiler *c, const mf_dfa *d, lengths *out) {
    size_t words = (d->n + 63) / 64;
    out->words = words;
    if (words * MAX_REACH > 1U << 24)
        return mf_compile_fail(c, MF_ERR_LIMIT, "a pattern with bounds of length comes to too many states"), false;
    out->rows = mf_arena_alloc(&c->arena, (MAX_REACH + 1) * words, sizeof *out->rows);
    if (!out->rows) return mf_compile_no_memory(c), false;
    for (uint32_t q = 0; q < d->n; q++)
        if (d->accepts[q]) out->rows[q / 64] |= (uint64_t)1 << q % 64;
    uint64_t cells = (uint64_t)d->n * d->n_classes;
    for (uint32_t k = 1; k <= MAX_REACH && k * cells <= MAX_REACH_WORK; k++) {
        uint64_t *row = out->rows + k * words;
        const uint64_t *before = row - words;
        for (uint32_t q = 0; q < d->n; q++)
            for (uint32_t i = 0; i < d->n_classes; i++) {
                uint32_t to = d->next[(size_t)q * d->n_classes + i];
                if (to != MF_DFA_DEAD && (before[to / 64] >> to % 64 & 1)) {
                    row[q / 64] |= (uint64_t)1 << q % 64;
                    break;
                }
            }
        for (uint32_t j = k; j-- > 0;)
            if (memcmp(row, out->rows + j * words, words * 8) == 0) return out->pre = j, out->period = k - j, true;
    }
    return mf_compile_fail(c, MF_ERR_LIMIT, "a pattern with bounds of length has too many kinds of lengths"), false;
}

// The reach of every state, from *first on in the program.
static bool add_reach(mf_compiler *c, const mf_dfa *d, uint32_t *first) {
    lengths l;
    mf_grammar_program *p = c->program;
    *first = (uint32_t)p->reach.len;
    if (!find_lengths(c, d, &l)) return false;
    uint32_t n = l.pre + l.period;
    for (uint32_t q = 0; q < d->n; q++) {
        uint32_t *least = mf_arena_alloc(&p->arena, n, sizeof *least), found = UINT32_MAX;
        if (!least || !mf_array_push(&p->reach, ((mf_reach){least, l.pre, l.period}))) return mf_compile_no_memory(c), false;
        for (uint32_t x = n + l.period; x-- > 0;) { // one period more: the least one may lie in the next
            uint32_t row = x < n ? x : x - l.period;
            if (l.rows[row * l.words + q / 64] >> q % 64 & 1) found = x;
            if (x < n) least[x] = found;
        }
    }
    return true;
}

// ---- Expressions

static uint32_t emit(mf_compiler *c, const mf_expr *e, uint32_t next);

static int by_text(const void *a, const void *b) {
    const mf_str *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int order = n ? memcmp(x->ptr, y->ptr, n) : 0;
    return order ? order : x->len < y->len ? -1 : x->len > y->len;
}

// Literals first to last, sorted, which share their first `depth` bytes.
static uint32_t emit_literals(mf_compiler *c, const mf_str *texts, size_t n, size_t depth, uint32_t next) {
    size_t shared = depth, first = 0;
    uint32_t at = MF_NO_NODE;
    const mf_str *a = &texts[0], *b = &texts[n - 1];
    while (shared < a->len && shared < b->len && a->ptr[shared] == b->ptr[shared]) shared++;
    while (first < n && texts[first].len == shared) first++; // this one and its copies end here
    if (first > 0) at = next;
    for (size_t end = first; first < n && !c->failed; first = end) {
        while (end < n && texts[end].ptr[shared] == texts[first].ptr[shared]) end++;
        at = mf_compile_either(c, emit_literals(c, texts + first, end - first, shared, next), at);
    }
    return mf_compile_text(c, a->ptr + depth, shared - depth, at);
}

static uint32_t emit_choice(mf_compiler *c, const mf_expr *e, uint32_t next) {
    size_t n = 0, n_texts = 0;
    uint32_t at = MF_NO_NODE;
    for (const mf_expr *x = e->child; x; x = x->next) n++;
    mf_str *texts = mf_arena_alloc(&c->arena, n + 1, sizeof *texts);
    if (!texts) return mf_compile_no_memory(c);
    for (const mf_expr *x = e->child; x && !c->failed; x = x->next) {
        if (x->kind == MF_EXPR_LITERAL)
            texts[n_texts++] = x->text;
        else
            at = mf_compile_either(c, emit(c, x, next), at);
    }
    qsort(texts, n_texts, sizeof *texts, by_text);
    return n_texts ? mf_compile_either(c, emit_literals(c, texts, n_texts, 0, next), at) : at;
}

static uint32_t emit_sequence(mf_compiler *c, const mf_expr *e, uint32_t next) {
    size_t n = 0;
    for (const mf_expr *x = e->child; x; x = x->next) n++;
    const mf_expr **parts = mf_arena_alloc(&c->arena, n + 1, sizeof *parts);
    if (!parts) return mf_compile_no_memory(c);
    n = 0;
    for (const mf_expr *x = e->child; x; x = x->next) parts[n++] = x;
    while (n > 0 && next != MF_NO_NODE) next = emit(c, parts[--n], next);
    return next;
}

// A call of a rule that counts: body is made in front of the count.
static uint32_t begin_count(mf_compiler *c, uint32_t min, uint32_t max, uint32_t *rule) {
    *rule = add_rule(c, (mf_program_rule){.min = min, .max = max, .counts = true, .nullable = min == 0, .productive = true});
    return c->failed ? MF_NO_NODE : mf_compile_node(c, MF_NODE_SPLIT, 0, 0);
}

static uint32_t emit_counted(mf_compiler *c, const mf_expr *e, uint32_t next) {
    bool may_be_empty = nullable(e->child, c->program->rules.data);
    uint32_t rule, start = begin_count(c, may_be_empty ? 0 : e->min, e->max, &rule), body;
    uint32_t count = mf_compile_node(c, MF_NODE_COUNT, MF_NO_REACH, start);
    if (may_be_empty) { // each time must say something
        uint32_t inner = add_rule(c, (mf_program_rule){.nullable = true, .productive = true}), first = emit(c, e->child, 0);
        if (c->failed) return MF_NO_NODE;
        c->program->rules.data[inner].start = first;
        body = mf_compile_node(c, MF_NODE_REAL, inner, count);
    } else {
        body = emit(c, e->child, count);
    }
    uint32_t done = mf_compile_node(c, MF_NODE_DONE, 0, 0), room = mf_compile_node(c, MF_NODE_ROOM, 0, body);
    if (c->failed || room == MF_NO_NODE) return MF_NO_NODE;
    c->program->nodes.data[start].a = done, c->program->nodes.data[start].b = room;
    c->program->rules.data[rule].start = start;
    return mf_compile_node(c, MF_NODE_CALL, rule, next);
}

static uint32_t emit_repeat(mf_compiler *c, const mf_expr *e, uint32_t next) {
    bool small = e->child->kind == MF_EXPR_CHARS || (e->child->kind == MF_EXPR_LITERAL && e->child->text.len <= 4);
    if (e->max == 0 || !productive(e->child, c->program->rules.data)) return next;
    if (e->max == MF_GRAMMAR_MANY && e->min <= 1) {
        uint32_t split = mf_compile_node(c, MF_NODE_SPLIT, next, next), body = emit(c, e->child, split);
        if (c->failed) return MF_NO_NODE;
        if (body == MF_NO_NODE) return e->min ? MF_NO_NODE : next;
        c->program->nodes.data[split].a = body;
        return e->min ? body : split;
    }
    if (e->max != 1 && (!small || e->max > MAX_UNROLLED)) return emit_counted(c, e, next);
    uint32_t at = next;
    for (uint32_t i = e->min; i < e->max; i++) at = mf_compile_either(c, emit(c, e->child, at), next);
    for (uint32_t i = 0; i < e->min && at != MF_NO_NODE; i++) at = emit(c, e->child, at);
    return at;
}

// The characters that lead from one state to another.
static bool edge(mf_compiler *c, const mf_dfa *d, uint32_t from, uint32_t to, mf_charset *out) {
    mf_range *ranges = mf_arena_alloc(&c->arena, d->n_classes, sizeof *ranges);
    size_t n = 0;
    if (!ranges) return mf_compile_no_memory(c), false;
    for (uint32_t i = 0; i < d->n_classes; i++) {
        if (d->next[(size_t)from * d->n_classes + i] != to) continue;
        uint32_t last = i + 1 < d->n_classes ? d->bounds[i + 1] - 1 : MF_CHAR_LAST;
        ranges[n++] = (mf_range){d->bounds[i], last};
    }
    return mf_charset_make(&c->arena, ranges, n, out) || (mf_compile_no_memory(c), false);
}

// Nodes for every state; `end` follows where an automaton accepts. reach: of the states, for strings that count; else MF_NO_REACH.
static uint32_t emit_dfa(mf_compiler *c, const mf_dfa *d, bool in_string, uint32_t reach, uint32_t end) {
    uint32_t *state = mf_arena_alloc(&c->arena, d->n, sizeof *state), *seen = mf_arena_alloc(&c->arena, d->n, sizeof *seen);
    if (!state || !seen) return mf_compile_no_memory(c);
    for (uint32_t q = 0; q < d->n; q++) state[q] = mf_compile_node(c, MF_NODE_SPLIT, 0, 0);
    for (uint32_t q = 0; q < d->n && !c->failed; q++) {
        uint32_t at = d->accepts[q] ? end : MF_NO_NODE;
        for (uint32_t i = 0; i < d->n_classes && !c->failed; i++) {
            uint32_t to = d->next[(size_t)q * d->n_classes + i];
            mf_charset set;
            if (to == MF_DFA_DEAD || seen[to] == q + 1 || !edge(c, d, q, to, &set)) continue;
            seen[to] = q + 1;
            uint32_t next = reach == MF_NO_REACH ? state[to] : mf_compile_node(c, MF_NODE_COUNT, reach + to, state[to]);
            uint32_t chars = in_string ? mf_compile_string_chars(c, set, next) : mf_compile_chars(c, set, next);
            at = mf_compile_either(c, chars, at);
        }
        if (c->failed) break;
        // A state that only waits for what can't come is one that nothing leads to: it loops on itself.
        c->program->nodes.data[state[q]].a = c->program->nodes.data[state[q]].b = at == MF_NO_NODE ? state[q] : at;
    }
    return c->failed ? MF_NO_NODE : state[0];
}

// The rule of a string's characters and its closing quote.
static uint32_t string_rule(mf_compiler *c, const mf_expr *e) {
    bool counts = e->min > 0 || e->max != MF_GRAMMAR_MANY;
    uint32_t rule = add_rule(c, (mf_program_rule){.min = e->min, .max = e->max, .counts = counts, .productive = true});
    uint32_t quote = mf_compile_text(c, "\"", 1, 0), end = counts ? mf_compile_node(c, MF_NODE_DONE, 0, quote) : quote,
             start;
    if (e->dfa) {
        uint32_t reach = MF_NO_REACH;
        if (counts && !add_reach(c, e->dfa, &reach)) return MF_NO_NODE;
        start = emit_dfa(c, e->dfa, true, reach, end);
        if (counts && !c->failed && !mf_reach_within(&c->program->reach.data[reach], e->min, e->max))
            return mf_compile_fail(c, MF_ERR_ARGUMENT, "a string whose pattern, format and bounds of length allow nothing");
    } else {
        start = mf_compile_node(c, MF_NODE_SPLIT, 0, 0);
        uint32_t back = counts ? mf_compile_node(c, MF_NODE_COUNT, MF_NO_REACH, start) : start;
        uint32_t chars = mf_compile_string_chars(c, mf_charset_all, back);
        uint32_t body = counts ? mf_compile_node(c, MF_NODE_ROOM, 0, chars) : chars;
        if (c->failed) return MF_NO_NODE;
        c->program->nodes.data[start].a = end, c->program->nodes.data[start].b = body;
    }
    if (c->failed) return MF_NO_NODE;
    c->program->rules.data[rule].start = mf_compile_text(c, "\"", 1, start);
    return rule;
}

static uint32_t emit_string(mf_compiler *c, const mf_expr *e, uint32_t next) {
    const uint64_t key[3] = {(uint64_t)(uintptr_t)e->dfa, e->min, e->max};
    for (size_t i = 0; i + 4 <= c->strings.len; i += 4)
        if (memcmp(c->strings.data + i, key, sizeof key) == 0)
            return mf_compile_node(c, MF_NODE_CALL, (uint32_t)c->strings.data[i + 3], next);
    uint32_t rule = string_rule(c, e);
    if (rule == MF_NO_NODE) return MF_NO_NODE;
    for (int i = 0; i < 3; i++)
        if (!mf_array_push(&c->strings, key[i])) return mf_compile_no_memory(c);
    if (!mf_array_push(&c->strings, (uint64_t)rule)) return mf_compile_no_memory(c);
    return mf_compile_node(c, MF_NODE_CALL, rule, next);
}

static uint32_t emit(mf_compiler *c, const mf_expr *e, uint32_t next) {
    if (c->failed || next == MF_NO_NODE || !productive(e, c->program->rules.data)) return MF_NO_NODE;
    switch (e->kind) {
    case MF_EXPR_LITERAL: return mf_compile_text(c, e->text.ptr, e->text.len, next);
    case MF_EXPR_CHARS: return mf_compile_chars(c, e->chars, next);
    case MF_EXPR_SEQUENCE: return emit_sequence(c, e, next);
    case MF_EXPR_CHOICE: return emit_choice(c, e, next);
    case MF_EXPR_REPEAT: return emit_repeat(c, e, next);
    case MF_EXPR_RULE: return mf_compile_node(c, MF_NODE_CALL, e->rule, next);
    case MF_EXPR_NUMBER: return emit_dfa(c, e->dfa, false, MF_NO_REACH, next);
    case MF_EXPR_STRING: return emit_string(c, e, next);
    case MF_EXPR_TOKEN:
        c->program->has_tokens = true;
        return mf_compile_node(c, e->negated ? MF_NODE_OTHER : MF_NODE_TOKEN, (uint32_t)e->token, next);
    }
    return MF_NO_NODE;
}

// ---- The whole

// Bytes that are in the same sets are one class: sets split the classes that there are.
static void find_classes(mf_grammar_program *p) {
    p->n_classes = 1;
    memset(p->class_of, 0, sizeof p->class_of);
    for (size_t i = 0; i < p->sets.len && p->n_classes < 256; i++) {
        uint32_t to[256];
        memset(to, 0xff, sizeof to);
        uint32_t n = p->n_classes;
        bool outside[256] = {false};
        for (int b = 0; b < 256; b++)
            if (!mf_byteset_has(&p->sets.data[i], (uint8_t)b)) outside[p->class_of[b]] = true;
        for (int b = 0; b < 256; b++) {
            uint32_t class = p->class_of[b];
            if (!mf_byteset_has(&p->sets.data[i], (uint8_t)b) || !outside[class]) continue;
            if (to[class] == UINT32_MAX) to[class] = n++;
            p->class_of[b] = (uint8_t)to[class];
        }
        p->n_classes = n;
    }
    for (int b = 255; b >= 0; b--) p->example[p->class_of[b]] = (uint8_t)b;
}

static bool compile(mf_compiler *c) {
    const mf_grammar *g = c->grammar;
    for (size_t i = 0; i < g->rules.len; i++) add_rule(c, (mf_program_rule){0});
    mf_compile_node(c, MF_NODE_END, 0, 0);
    if (c->failed) return false;
    if (!mark_rules(c, nullable, offsetof(mf_program_rule, nullable)) || !refuse_left_recursion(c) ||
        !mark_rules(c, productive, offsetof(mf_program_rule, productive)))
        return false;
    if (!c->program->rules.data[g->root].productive)
        return mf_compile_fail(c, MF_ERR_ARGUMENT, "the grammar allows nothing"), false;
    for (size_t i = 0; i < g->rules.len && !c->failed; i++) {
        uint32_t start = emit(c, g->rules.data[i].expr, 0);
        if (start == MF_NO_NODE) start = mf_compile_node(c, MF_NODE_ROOM, 0, 0); // says nothing: no count has room
        if (!c->failed) c->program->rules.data[i].start = start;
    }
    c->program->root = g->root;
    if (!c->failed) find_classes(c->program);
    return !c->failed;
}

bool mf_program_compile(const mf_grammar *g, mf_grammar_program *out, mf_error *err) {
    *out = (mf_grammar_program){.arena.limit = PROGRAM_MEMORY};
    mf_error own = {0};
    mf_compiler c = {.grammar = g, .program = out, .err = err ? err : &own, .arena.limit = COMPILE_MEMORY};
    bool ok = compile(&c);
    mf_arena_free(&c.arena);
    free(c.set_slots);
    free(c.strings.data);
    if (!ok) mf_program_free(out);
    return ok;
}

void mf_program_free(mf_grammar_program *p) {
    free(p->nodes.data);
    free(p->sets.data);
    free(p->rules.data);
    free(p->reach.data);
    mf_arena_free(&p->arena);
    *p = (mf_grammar_program){0};
}
