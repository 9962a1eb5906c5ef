#include "sample/grammar/constraint.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "sample/grammar/gbnf.h"
#include "sample/grammar/machine.h"
#include "sample/grammar/schema.h"

#define MACHINE_MEMORY (64U << 20)
#define GRAMMAR_MEMORY (64U << 20)

struct mf_constraint {
    _Atomic uint32_t users;
    pthread_mutex_t turn; // of the machine
    const mf_grammar_vocab *vocab;
    mf_grammar_program program;
    mf_grammar_machine machine;
};

// ---- Making one

// A mark as text or as the control token of that name.
static mf_expr *mark_expr(mf_grammar *g, const mf_grammar_vocab *vocab, const char *mark) {
    mf_expr *text = mf_expr_literal(g, mark, strlen(mark));
    for (int32_t id = 0; vocab && id < vocab->n; id++) {
        if (vocab->tokens[id].text || !mf_str_is(vocab->tokens[id].name, mark)) continue;
        mf_expr *token = mf_expr_new(g, MF_EXPR_TOKEN), *both[] = {text, token};
        if (token) token->token = id;
        return mf_expr_list(g, MF_EXPR_CHOICE, both, 2);
    }
    return text;
}

// Any text in which the mark does not occur.
static mf_expr *text_without(mf_grammar *g, const char *mark, mf_error *err) {
    mf_buf pattern = {0};
    for (const char *p = mark; *p; p++) mf_buf_printf(&pattern, strchr("^$\\.*+?()[]{}|/", *p) ? "\\%c" : "%c", *p);
    const mf_dfa *has = pattern.failed ? NULL : mf_dfa_of_regex(&g->arena, (mf_str){pattern.data, pattern.len}, false, err);
    mf_expr *e = NULL;
    const mf_dfa *has_not = has ? mf_dfa_complement(&g->arena, has, err) : NULL;
    if (has_not && (e = mf_expr_new(g, MF_EXPR_NUMBER))) e->dfa = has_not;
    free(pattern.data);
    return e;
}

// Puts free text before the whole.
static bool put_before(mf_grammar *g, const mf_grammar_vocab *vocab, const mf_free_text *f, mf_error *err) {
    static const mf_range spaces[] = {{'\t', '\n'}, {'\r', '\r'}, {' ', ' '}};
    mf_expr *space = mf_expr_repeat(g, mf_expr_chars(g, (mf_charset){spaces, 3}), 0, 20);
    mf_expr *thought[] = {text_without(g, f->close, err), mark_expr(g, vocab, f->close), space, NULL};
    mf_expr *opened[] = {mark_expr(g, vocab, f->open), NULL}, *whole[] = {NULL, mf_expr_rule(g, g->root)};
    uint32_t root;
    mf_expr *inner = mf_expr_list(g, MF_EXPR_SEQUENCE, thought, 3);
    opened[1] = inner;
    whole[0] = f->is_open ? inner : mf_expr_repeat(g, mf_expr_list(g, MF_EXPR_SEQUENCE, opened, 2), 0, 1);
    mf_expr *all = whole[0] && whole[1] ? mf_expr_list(g, MF_EXPR_SEQUENCE, whole, 2) : NULL;
    if (!all || !mf_grammar_add_rule(g, (mf_str){0}, 0, &root)) return mf_grammar_no_memory(&g->arena, "the grammar", err);
    g->rules.data[root].expr = all;
    g->root = root;
    return true;
}

static mf_constraint *constraint_of(mf_grammar *g, const mf_grammar_vocab *vocab, const mf_free_text *f, mf_error *err) {
    if (f && !put_before(g, vocab, f, err)) return NULL;
    mf_constraint *c = mf_alloc(1, sizeof *c);
    if (!c) return mf_fail_memory(err, sizeof *c, "a constraint"), NULL;
    c->vocab = vocab;
    atomic_init(&c->users, 1);
    if (pthread_mutex_init(&c->turn, NULL) != 0) return free(c), mf_fail_memory(err, sizeof *c, "a constraint"), NULL;
    if (mf_program_compile(g, &c->program, err) && mf_machine_init(&c->machine, &c->program, MACHINE_MEMORY, err)) return c;
    mf_constraint_drop(c);
    return NULL;
}

mf_constraint *mf_constraint_of_gbnf(mf_str grammar, const mf_grammar_vocab *vocab, const mf_free_text *free_text,
                                     mf_error *err) {
    mf_grammar g = {.arena.limit = GRAMMAR_MEMORY};
    mf_constraint *c = mf_gbnf_parse(grammar, vocab, &g, err) ? constraint_of(&g, vocab, free_text, err) : NULL;
    mf_grammar_free(&g);
    return c;
}

mf_constraint *mf_constraint_of_schema(mf_str schema, const mf_schema_options *options, const mf_grammar_vocab *vocab,
                                       const mf_free_text *free_text, mf_error *err) {
    mf_grammar g = {.arena.limit = GRAMMAR_MEMORY};
    mf_constraint *c = mf_schema_read(schema, options, &g, err) ? constraint_of(&g, vocab, free_text, err) : NULL;
    mf_grammar_free(&g);
    return c;
}

mf_constraint *mf_constraint_hold(mf_constraint *c) {
    atomic_fetch_add(&c->users, 1);
    return c;
}

void mf_constraint_drop(mf_constraint *c) {
    if (!c || atomic_fetch_sub(&c->users, 1) != 1) return;
    mf_machine_free(&c->machine);
    mf_program_free(&c->program);
    pthread_mutex_destroy(&c->turn);
    free(c);
}

// ---- Places

static void lock(mf_constraint *c) { pthread_mutex_lock(&c->turn); }
static void unlock(mf_constraint *c) { pthread_mutex_unlock(&c->turn); }

mf_constraint_place mf_constraint_copy_place(mf_constraint *c, mf_constraint_place place) {
    lock(c);
    c->machine.states.data[place].users++;
    unlock(c);
    return place;
}

mf_constraint_place mf_constraint_start(mf_constraint *c) { return mf_constraint_copy_place(c, c->machine.start); }

void mf_constraint_drop_place(mf_constraint *c, mf_constraint_place place) {
    lock(c);
    c->machine.states.data[place].users--;
    unlock(c);
}

bool mf_constraint_final(mf_constraint *c, mf_constraint_place place) {
    lock(c);
    bool final = c->machine.states.data[place].final;
    unlock(c);
    return final;
}

static bool refuse_token(const mf_constraint *c, int32_t token, mf_error *err) {
    mf_str name = c->vocab->tokens[token].name;
    return mf_fail(err, MF_ERR_ARGUMENT, "the constraint does not allow token %d ('%.*s') there", token,
                   (int)(name.len < 40 ? name.len : 40), name.ptr);
}

bool mf_constraint_advance(mf_constraint *c, mf_constraint_place place, int32_t token, mf_constraint_place *to,
                           mf_error *err) {
    if (!c->vocab || token < 0 || token >= c->vocab->n)
        return mf_fail(err, MF_ERR_ARGUMENT, "token %d is not in the constraint's vocabulary", token);
    const mf_grammar_token *t = &c->vocab->tokens[token];
    lock(c);
    bool ends = t->ends && c->machine.states.data[place].final;
    uint32_t next = mf_machine_step_token(&c->machine, place, t->text ? t->name : (mf_str){0}, token, t->ends, err);
    if (next == MF_STATE_DEAD && ends) next = place;
    bool ok = next != MF_STATE_NONE && next != MF_STATE_DEAD;
    if (ok) {
        c->machine.states.data[next].users++;
        mf_machine_collect(&c->machine);
        *to = next;
    }
    unlock(c);
    return ok || (next == MF_STATE_DEAD && refuse_token(c, token, err));
}

// ---- Masks

static uint32_t step(mf_constraint *c, uint32_t state, uint8_t byte, mf_error *err) {
    const uint32_t *next = c->machine.states.data[state].next;
    uint32_t known = next ? next[c->program.class_of[byte]] : MF_STATE_NONE;
    return known != MF_STATE_NONE ? known : mf_machine_step(&c->machine, state, byte, err);
}

// Sets the bits of all tokens of a tree that a state allows.
static bool walk(mf_constraint *c, const mf_trie *t, uint32_t state, uint64_t *words, mf_error *err) {
    uint32_t *path = mf_alloc((size_t)c->vocab->most_bytes + 1, sizeof *path);
    if (!path) return mf_fail_memory(err, 0, "a mask");
    path[0] = state;
    for (uint32_t i = 0; i < t->n;) {
        uint32_t to = step(c, path[t->depth[i] - 1], t->bytes[i], err);
        if (to == MF_STATE_NONE) return free(path), false;
        if (to == MF_STATE_DEAD) {
            i = t->skip[i];
            continue;
        }
        path[t->depth[i]] = to;
        for (uint32_t k = t->first[i]; k < t->first[i + 1]; k++)
            words[t->tokens[k] / 64] |= (uint64_t)1 << t->tokens[k] % 64;
        i++;
    }
    free(path);
    return true;
}

// Goes from a state through every byte that UTF-8 has at this place of a character: whether all lead to one state. first and last:
// bytes that are looked at; more: how many follow.
static uint32_t uniform(mf_constraint *c, uint32_t state, int first, int last, int more, mf_error *err) {
    uint32_t all = MF_STATE_NONE;
    bool seen[256] = {false};
    for (int b = first; b <= last; b++) {
        uint8_t class = c->program.class_of[b];
        if (seen[class] || b == '"' || b == '\\') continue;
        seen[class] = true;
        uint32_t to = step(c, state, (uint8_t)b, err);
        if (to == MF_STATE_NONE || to == MF_STATE_DEAD) return to == MF_STATE_NONE ? to : MF_STATE_MIXED;
        if (more) { // the narrower seconds of the first and last bytes of three and four
            int low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80, high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
            to = uniform(c, to, low, high, more - 1, err);
        }
        if (to == MF_STATE_NONE || to == MF_STATE_MIXED) return to;
        if (all != MF_STATE_NONE && to != all) return MF_STATE_MIXED;
        all = to;
    }
    return all;
}

// Where every plain character leads from a state, if it is the same for all.
static uint32_t plain_step(mf_constraint *c, uint32_t state, mf_error *err) {
    static const struct {
        int first, last, more;
    } leads[] = {{0x20, 0x7f, 0}, {0xc2, 0xdf, 1}, {0xe0, 0xe0, 2}, {0xe1, 0xec, 2}, {0xed, 0xed, 2},
                 {0xee, 0xef, 2}, {0xf0, 0xf0, 3}, {0xf1, 0xf3, 3}, {0xf4, 0xf4, 3}};
    if (c->machine.states.data[state].plain != MF_STATE_NONE) return c->machine.states.data[state].plain;
    uint32_t all = MF_STATE_NONE;
    for (size_t i = 0; i < sizeof leads / sizeof leads[0] && all != MF_STATE_MIXED; i++) {
        uint32_t to = uniform(c, state, leads[i].first, leads[i].last, leads[i].more, err);
        if (to == MF_STATE_NONE) return to;
        all = all == MF_STATE_NONE || all == to ? to : MF_STATE_MIXED;
    }
    return c->machine.states.data[state].plain = all;
}

// Whether no plain character leads on from a state.
static bool no_plain(mf_constraint *c, uint32_t state, mf_error *err) {
    for (int b = 0x20; b < 0xf5; b++)
        if (b != '"' && b != '\\' && !(b >= 0x80 && b < 0xc2) && step(c, state, (uint8_t)b, err) != MF_STATE_DEAD)
            return false;
    return true;
}

// How many plain characters in a row may come next whatever they are. *ends: and no more than these.
static uint32_t plain_run(mf_constraint *c, uint32_t state, bool *ends, mf_error *err) {
    *ends = false;
    for (uint32_t n = 0; n < c->vocab->most_chars; n++) {
        uint32_t to = plain_step(c, state, err);
        if (to == MF_STATE_NONE) return MF_STATE_NONE;
        if (to == MF_STATE_MIXED) {
            *ends = n > 0 && no_plain(c, state, err);
            return n;
        }
        if (to == state) break;
        state = to;
    }
    return c->vocab->most_chars;
}

void mf_token_mask_drop(mf_token_mask *mask) {
    if (mask && atomic_fetch_sub(&mask->users, 1) == 1) free(mask);
}

static void add_named_tokens(mf_constraint *c, uint32_t state, uint64_t *words) {
    const mf_grammar_state *s = &c->machine.states.data[state];
    for (uint32_t i = 0; i < s->n_scan; i++) {
        const mf_grammar_node *n = &c->program.nodes.data[s->items[i].node];
        if (n->kind == MF_NODE_TOKEN) words[n->a / 64] |= (uint64_t)1 << n->a % 64;
        if (n->kind != MF_NODE_OTHER) continue;
        bool had = words[n->a / 64] >> n->a % 64 & 1;
        for (int32_t id = 0; id < c->vocab->n; id++)
            if (!c->vocab->tokens[id].ends) words[id / 64] |= (uint64_t)1 << id % 64;
        if (!had) words[n->a / 64] &= ~((uint64_t)1 << n->a % 64);
    }
}

static bool fill(mf_constraint *c, uint32_t state, uint64_t *words, mf_error *err) {
    const mf_grammar_vocab *v = c->vocab;
    bool ends;
    uint32_t run = plain_run(c, state, &ends, err);
    if (run == MF_STATE_NONE) return false;
    bool shared = run > 0 && (run >= v->most_chars || ends);
    if (shared) memcpy(words, v->plain[run], v->n_words * sizeof *words);
    if (!walk(c, shared ? &v->others : &v->all, state, words, err)) return false;
    if (c->program.has_tokens) add_named_tokens(c, state, words);
    return true;
}

static mf_token_mask *make_mask(mf_constraint *c, uint32_t state, mf_error *err) {
    const mf_grammar_vocab *v = c->vocab;
    size_t bytes = sizeof(mf_token_mask) + v->n_words * sizeof(uint64_t);
    mf_token_mask *mask = mf_alloc(bytes, 1);
    if (!mask) return mf_fail_memory(err, bytes, "a mask"), NULL;
    atomic_init(&mask->users, 1);
    if (!fill(c, state, mask->words, err)) return free(mask), NULL;
    for (uint32_t i = 0; i < v->n_ends && c->machine.states.data[state].final; i++)
        mask->words[v->ends[i] / 64] |= (uint64_t)1 << v->ends[i] % 64;
    for (size_t i = 0; i < v->n_words; i++) mask->n_allowed += (uint32_t)__builtin_popcountll(mask->words[i]);
    c->machine.bytes += bytes;
    return c->machine.states.data[state].mask = mask;
}

mf_token_mask *mf_constraint_mask(mf_constraint *c, mf_constraint_place place, mf_error *err) {
    if (!c->vocab) return mf_fail(err, MF_ERR_ARGUMENT, "the constraint has no vocabulary"), NULL;
    lock(c);
    mf_machine_collect(&c->machine);
    uint32_t state = mf_machine_clip(&c->machine, place, c->vocab->most_bytes, err);
    mf_token_mask *mask = state == MF_STATE_NONE ? NULL : c->machine.states.data[state].mask;
    if (!mask && state != MF_STATE_NONE) mask = make_mask(c, state, err);
    if (mask) atomic_fetch_add(&mask->users, 1);
    unlock(c);
    return mask;
}

// ---- What must come, and whole texts

int32_t mf_constraint_vocab_size(const mf_constraint *c) { return c->vocab ? c->vocab->n : 0; }

bool mf_constraint_is_end(const mf_constraint *c, int32_t token) {
    return c->vocab && token >= 0 && token < c->vocab->n && c->vocab->tokens[token].ends;
}

void mf_constraint_without_ends(const mf_constraint *c, const uint64_t *words, uint64_t *out) {
    memcpy(out, words, c->vocab->n_words * sizeof *out);
    for (uint32_t i = 0; i < c->vocab->n_ends; i++) out[c->vocab->ends[i] / 64] &= ~((uint64_t)1 << c->vocab->ends[i] % 64);
}

static void add_shown(mf_buf *out, uint8_t byte) {
    if (byte >= 0x20 && byte < 0x7f && byte != '\'')
        mf_buf_char(out, (char)byte);
    else
        mf_buf_printf(out, "\\x%02x", byte);
}

bool mf_constraint_fail_stuck(mf_constraint *c, mf_constraint_place place, const int32_t *tokens, size_t n, mf_error *err) {
    mf_buf said = {0}, shown = {0}, next = {0};
    for (size_t i = n > 20 ? n - 20 : 0; i < n; i++)
        if (c->vocab->tokens[tokens[i]].text) mf_buf_str(&said, c->vocab->tokens[tokens[i]].name);
    for (size_t i = said.len > 20 ? said.len - 20 : 0; i < said.len; i++) add_shown(&shown, (uint8_t)said.data[i]);
    lock(c);
    int n_next = 0;
    for (int b = 0; b < 256; b++) {
        uint32_t to = step(c, place, (uint8_t)b, NULL);
        if (to == MF_STATE_DEAD || to == MF_STATE_NONE || ++n_next > 8) continue;
        mf_buf_text(&next, n_next > 1 ? ", '" : "'");
        add_shown(&next, (uint8_t)b);
        mf_buf_char(&next, '\'');
    }
    unlock(c);
    mf_fail(err, MF_ERR_ARGUMENT, "no token of the vocabulary is allowed behind '%s'; it could go on with %s%s",
            shown.failed || !shown.data ? "" : shown.data, next.failed || !next.data ? "nothing" : next.data,
            n_next > 8 ? " and others" : "");
    free(said.data);
    free(shown.data);
    free(next.data);
    return false;
}

// The only byte that leads on from a state; -1: there are several, or the answer may end.
static int only_byte(mf_constraint *c, uint32_t state, uint32_t *to) {
    int only = -1;
    if (c->machine.states.data[state].final || c->program.has_tokens) return -1;
    for (int b = 0; b < 256; b++) {
        uint32_t next = step(c, state, (uint8_t)b, NULL);
        if (next == MF_STATE_DEAD) continue;
        if (next == MF_STATE_NONE || only >= 0) return -1;
        only = b, *to = next;
    }
    return only;
}

size_t mf_constraint_forced(mf_constraint *c, mf_constraint_place place, char *out, size_t cap) {
    size_t n = 0;
    uint32_t state = place;
    lock(c);
    for (int byte; n < cap && (byte = only_byte(c, state, &state)) >= 0; n++) out[n] = (char)byte;
    unlock(c);
    return n;
}

mf_check mf_constraint_check(mf_constraint *c, mf_str text, size_t *at, mf_error *err) {
    lock(c);
    uint32_t state = c->machine.start;
    size_t i = 0;
    for (; i < text.len && state != MF_STATE_DEAD && state != MF_STATE_NONE; i++) {
        uint32_t to = mf_machine_step(&c->machine, state, (uint8_t)text.ptr[i], err);
        if (to == MF_STATE_DEAD) *at = i;
        if (to != MF_STATE_DEAD && to != MF_STATE_NONE) {
            c->machine.states.data[to].users++;
            mf_machine_collect(&c->machine);
            c->machine.states.data[to].users--;
        }
        state = to;
    }
    mf_check result = state == MF_STATE_NONE                ? MF_CHECK_FAILED
                      : state == MF_STATE_DEAD              ? MF_CHECK_REJECTED
                      : c->machine.states.data[state].final ? MF_CHECK_ACCEPTED
                                                            : MF_CHECK_INCOMPLETE;
    unlock(c);
    return result;
}
