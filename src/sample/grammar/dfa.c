// From regular expressions to deterministic automata, by way of automata with free moves (Thompson) and sets of their states (Rabin and
// Scott), trimmed and minimized (Moore).
#include "sample/grammar/dfa.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/siphash.h"
#include "base/utf8.h"
#include "sample/grammar/regex.h"

#define MAX_NFA   400000
#define MAX_MOVES 30000000 // states that are looked at while sets of them are made

typedef enum nfa_kind {
    NFA_CHARS,
    NFA_SPLIT,
    NFA_BEGIN,
    NFA_END,
    NFA_ACCEPT
} nfa_kind;

typedef struct nfa_state {
    nfa_kind kind;
    uint32_t a, b; // where it goes; b: the other way of a split
    mf_charset chars;
} nfa_state;

typedef struct maker {
    mf_arena *arena;
    mf_error *err;
    mf_array(nfa_state) nfa;
    mf_array(uint32_t) bounds;
    // sets of NFA states, one a DFA state
    mf_array(uint32_t) members; // of all sets, each sorted
    mf_array(size_t) first;     // [n + 1] where a set's begin
    mf_array(uint32_t) next;    // [n][n_classes]
    mf_array(bool) accepts;
    uint32_t *slots; // of the table of sets
    size_t n_slots;
    uint32_t *mark, turn; // [nfa] visited in this closure
    uint32_t moves;       // states looked at so far
    mf_array(uint32_t) work, set;
} maker;

static bool out_of_memory(maker *m) { return mf_fail_memory(m->err, 0, "a pattern"); }

static void *too_big(mf_error *err) {
    mf_fail(err, MF_ERR_LIMIT, "a pattern, a range or a set of names comes to over %d states", MF_DFA_MAX_STATES);
    return NULL;
}

static void maker_free(maker *m) {
    void *all[] = {m->nfa.data,     m->bounds.data, m->members.data, m->first.data, m->next.data,
                   m->accepts.data, m->slots,       m->mark,         m->work.data,  m->set.data};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

// ---- The automaton with free moves. Each piece is put before what follows it, so what is built knows where it goes.

#define NO_STATE UINT32_MAX

static uint32_t add_state(maker *m, nfa_kind kind, uint32_t a, uint32_t b) {
    if (a == NO_STATE || b == NO_STATE) return NO_STATE;
    if (m->nfa.len >= MAX_NFA) return too_big(m->err), NO_STATE;
    if (!mf_array_push(&m->nfa, ((nfa_state){kind, a, b, {0}}))) return out_of_memory(m), NO_STATE;
    return (uint32_t)m->nfa.len - 1;
}

static uint32_t emit(maker *m, const mf_re *e, uint32_t next);

static uint32_t emit_repeat(maker *m, const mf_re *e, uint32_t next) {
    uint32_t at = next;
    if (e->max == UINT32_MAX) {
        at = add_state(m, NFA_SPLIT, next, next);
        uint32_t body = at == NO_STATE ? NO_STATE : emit(m, e->a, at);
        if (body == NO_STATE) return NO_STATE;
        m->nfa.data[at].a = body;
    } else {
        for (uint32_t i = e->min; i < e->max && at != NO_STATE; i++) {
            uint32_t body = emit(m, e->a, at);
            at = body == NO_STATE ? NO_STATE : add_state(m, NFA_SPLIT, body, next);
        }
    }
    for (uint32_t i = 0; i < e->min && at != NO_STATE; i++) {
        size_t before = m->nfa.len;
        at = emit(m, e->a, at);
        if (m->nfa.len == before) break; // what is empty may be repeated without bound
    }
    return at;
}

static uint32_t emit(maker *m, const mf_re *e, uint32_t next) {
    while (e->kind == MF_RE_SEQUENCE && next != NO_STATE) {
        next = emit(m, e->b, next);
        e = e->a;
    }
    if (next == NO_STATE) return NO_STATE;
    uint32_t at = NO_STATE;
    switch (e->kind) {
    case MF_RE_EMPTY: return next;
    case MF_RE_CHARS:
        at = add_state(m, NFA_CHARS, next, 0);
        if (at != NO_STATE) m->nfa.data[at].chars = e->chars;
        return at;
    case MF_RE_BEGIN: return add_state(m, NFA_BEGIN, next, 0);
    case MF_RE_END: return add_state(m, NFA_END, next, 0);
    case MF_RE_REPEAT: return emit_repeat(m, e, next);
    case MF_RE_CHOICE:
        at = emit(m, e->b, next);
        for (e = e->a; e->kind == MF_RE_CHOICE && at != NO_STATE; e = e->a) {
            uint32_t other = emit(m, e->b, next);
            at = other == NO_STATE ? NO_STATE : add_state(m, NFA_SPLIT, other, at);
        }
        next = at == NO_STATE ? NO_STATE : emit(m, e, next);
        return next == NO_STATE ? NO_STATE : add_state(m, NFA_SPLIT, next, at);
    case MF_RE_SEQUENCE: break;
    }
    return NO_STATE;
}

// ---- Classes of characters

static int by_value(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static bool add_bounds(maker *m, mf_charset set) {
    for (size_t i = 0; i < set.n; i++)
        if (!mf_array_push(&m->bounds, set.ranges[i].first) || !mf_array_push(&m->bounds, set.ranges[i].last + 1))
            return false;
    return true;
}

static void sort_bounds(maker *m) {
    qsort(m->bounds.data, m->bounds.len, sizeof m->bounds.data[0], by_value);
    size_t n = 0;
    for (size_t i = 0; i < m->bounds.len; i++)
        if (m->bounds.data[i] <= MF_CHAR_LAST && (n == 0 || m->bounds.data[i] != m->bounds.data[n - 1]))
            m->bounds.data[n++] = m->bounds.data[i];
    m->bounds.len = n;
}

static uint32_t class_of(const uint32_t *bounds, size_t n, uint32_t cp) {
    size_t low = 0, high = n;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (bounds[middle] <= cp)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

// ---- Sets of states

// Puts a state and all that it reaches freely into m->set. Whether the end of the text would be accepted there is told by *accepts.
static bool close_over(maker *m, uint32_t from, bool at_start, bool at_end, bool *accepts) {
    m->work.len = 0;
    if (!mf_array_push(&m->work, from)) return false;
    while (m->work.len > 0) {
        uint32_t at = m->work.data[--m->work.len];
        const nfa_state *s = &m->nfa.data[at];
        if (m->mark[at] == m->turn) continue;
        m->mark[at] = m->turn;
        m->moves++;
        if (s->kind == NFA_ACCEPT) *accepts = true;
        bool goes_on = s->kind == NFA_SPLIT || (s->kind == NFA_BEGIN && at_start) || (s->kind == NFA_END && at_end);
        if (goes_on && !mf_array_push(&m->work, s->a)) return false;
        if (s->kind == NFA_SPLIT && !mf_array_push(&m->work, s->b)) return false;
        bool kept = s->kind == NFA_CHARS || s->kind == NFA_END || s->kind == NFA_ACCEPT;
        if (!at_end && kept && !mf_array_push(&m->set, at)) return false;
    }
    return true;
}

static size_t hash_of(const uint32_t *members, size_t n) {
    return (size_t)mf_hash_keyed(members, n * sizeof *members, (mf_hash_key){{0x6d696e66, n}});
}

static bool grow_slots(maker *m) {
    size_t n = m->n_slots ? m->n_slots * 2 : 256, sets = m->accepts.len;
    uint32_t *slots = mf_alloc(n, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < sets; i++) {
        const uint32_t *members = m->members.data + m->first.data[i];
        size_t at = hash_of(members, m->first.data[i + 1] - m->first.data[i]) & (n - 1);
        while (slots[at]) at = (at + 1) & (n - 1);
        slots[at] = (uint32_t)i + 1;
    }
    free(m->slots);
    m->slots = slots, m->n_slots = n;
    return true;
}

// The number of the set that m->set is, a new one where there was none. NO_STATE with err.
static uint32_t number_of_set(maker *m, bool accepts) {
    if (2 * (m->accepts.len + 1) > m->n_slots && !grow_slots(m)) return out_of_memory(m), NO_STATE;
    qsort(m->set.data, m->set.len, sizeof m->set.data[0], by_value);
    size_t at = hash_of(m->set.data, m->set.len) & (m->n_slots - 1), n = m->set.len;
    for (; m->slots[at]; at = (at + 1) & (m->n_slots - 1)) {
        size_t i = m->slots[at] - 1, first = m->first.data[i];
        if (m->first.data[i + 1] - first == n && (n == 0 || memcmp(m->members.data + first, m->set.data, n * 4) == 0))
            return (uint32_t)i;
    }
    size_t i = m->accepts.len, n_classes = m->bounds.len;
    if (i >= MF_DFA_MAX_STATES || (i + 1) * n_classes > MF_DFA_MAX_CELLS) return too_big(m->err), NO_STATE;
    bool ok = mf_array_reserve(&m->members, m->members.len + n + 1) && mf_array_reserve(&m->next, (i + 1) * n_classes) &&
              mf_array_push(&m->accepts, accepts);
    if (!ok) return out_of_memory(m), NO_STATE;
    if (n) memcpy(m->members.data + m->members.len, m->set.data, n * 4);
    m->members.len += n;
    if (!mf_array_push(&m->first, m->members.len)) return out_of_memory(m), NO_STATE;
    for (size_t c = 0; c < n_classes; c++) m->next.data[i * n_classes + c] = MF_DFA_DEAD;
    m->next.len = (i + 1) * n_classes;
    m->slots[at] = (uint32_t)i + 1;
    return (uint32_t)i;
}

// Whether a text that ends in the set m->set is accepted.
static bool accepted_at_end(maker *m, bool at_start, bool *accepts) {
    m->turn++;
    for (size_t i = 0; i < m->set.len; i++)
        if (!close_over(m, m->set.data[i], at_start, true, accepts)) return false;
    return true;
}

// Where set `from` goes with a character of class c. NO_STATE with err; MF_DFA_DEAD (the same number) with err->code MF_OK: nowhere.
static bool move(maker *m, uint32_t from, uint32_t c, uint32_t *to) {
    bool accepts = false;
    m->turn++;
    m->set.len = 0;
    m->moves += (uint32_t)(m->first.data[from + 1] - m->first.data[from]);
    if (m->moves > MAX_MOVES)
        return mf_fail(m->err, MF_ERR_LIMIT, "a pattern is too ambiguous: it takes over %d moves", MAX_MOVES);
    for (size_t i = m->first.data[from]; i < m->first.data[from + 1]; i++) {
        const nfa_state *s = &m->nfa.data[m->members.data[i]];
        if (s->kind == NFA_CHARS && mf_charset_has(s->chars, m->bounds.data[c]))
            if (!close_over(m, s->a, false, false, &accepts)) return out_of_memory(m);
    }
    *to = MF_DFA_DEAD;
    if (m->set.len == 0) return true;
    if (!accepted_at_end(m, false, &accepts)) return out_of_memory(m);
    return (*to = number_of_set(m, accepts)) != NO_STATE;
}

static bool determinize(maker *m, uint32_t start) {
    bool accepts = false;
    m->turn = 1;
    if (!mf_array_push(&m->first, (size_t)0) || !close_over(m, start, true, false, &accepts) ||
        !accepted_at_end(m, true, &accepts))
        return out_of_memory(m);
    if (number_of_set(m, accepts) == NO_STATE) return false;
    for (uint32_t i = 0; i < m->accepts.len; i++)
        for (uint32_t c = 0; c < m->bounds.len; c++) {
            uint32_t to = MF_DFA_DEAD;
            if (!move(m, i, c, &to)) return false;
            m->next.data[i * m->bounds.len + c] = to;
        }
    return true;
}

// ---- Trimming and minimizing

typedef struct table { // a DFA being worked on; n states of n_classes
    uint32_t n, n_classes;
    const uint32_t *bounds;
    uint32_t *next;
    bool *accepts;
    uint32_t work; // that was done before
} table;

// Moves to states that accept nothing become dead: from the states that accept, moves are followed backwards. Returns whether memory was
// there.
static bool kill_useless(table *t) {
    size_t cells = (size_t)t->n * t->n_classes, n_work = 0;
    bool *useful = mf_alloc((size_t)t->n + 1, 1);
    uint32_t *first = mf_alloc((size_t)t->n + 3, sizeof *first), *from = mf_alloc(cells + 1, sizeof *from),
             *work = mf_alloc((size_t)t->n + 1, sizeof *work);
    bool ok = useful && first && from && work;
    // from[first[i]] to from[first[i + 1]]: the states with a move to i
    for (size_t k = 0; ok && k < cells; k++)
        if (t->next[k] != MF_DFA_DEAD) first[t->next[k] + 2]++;
    for (uint32_t i = 1; ok && i <= t->n; i++) first[i + 1] += first[i];
    for (size_t k = 0; ok && k < cells; k++)
        if (t->next[k] != MF_DFA_DEAD) from[first[t->next[k] + 1]++] = (uint32_t)(k / t->n_classes);
    for (uint32_t i = 0; ok && i < t->n; i++)
        if ((useful[i] = t->accepts[i])) work[n_work++] = i;
    while (n_work > 0) {
        uint32_t at = work[--n_work];
        for (uint32_t k = first[at]; k < first[at + 1]; k++)
            if (!useful[from[k]]) useful[from[k]] = true, work[n_work++] = from[k];
    }
    for (size_t k = 0; ok && k < cells; k++)
        if (t->next[k] != MF_DFA_DEAD && !useful[t->next[k]]) t->next[k] = MF_DFA_DEAD;
    free(useful);
    free(first);
    free(from);
    free(work);
    return ok;
}

static uint64_t signature(const table *t, const uint32_t *group, uint32_t i) {
    uint64_t h = group[i];
    for (uint32_t c = 0; c < t->n_classes; c++) {
        uint32_t to = t->next[(size_t)i * t->n_classes + c];
        h = (h ^ (to == MF_DFA_DEAD ? 0xffffffff : group[to])) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    return h;
}

typedef struct keyed {
    uint64_t key;
    uint32_t state;
} keyed;

static int by_key(const void *a, const void *b) {
    const keyed *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return x->state < y->state ? -1 : x->state > y->state;
}

static bool same_moves(const table *t, const uint32_t *group, uint32_t i, uint32_t j) {
    if (group[i] != group[j]) return false;
    for (uint32_t c = 0; c < t->n_classes; c++) {
        uint32_t a = t->next[(size_t)i * t->n_classes + c], b = t->next[(size_t)j * t->n_classes + c];
        if ((a == MF_DFA_DEAD ? MF_DFA_DEAD : group[a]) != (b == MF_DFA_DEAD ? MF_DFA_DEAD : group[b])) return false;
    }
    return true;
}

// Groups of states that can't be told apart: group[state] of n_groups, the first state's first.
static bool refine(const table *t, uint32_t *group, uint32_t *n_groups) {
    keyed *order = mf_alloc((size_t)t->n + 1, sizeof *order);
    uint32_t *fresh = mf_alloc((size_t)t->n + 1, sizeof *fresh);
    bool ok = order && fresh;
    for (uint32_t i = 0; i < t->n; i++) group[i] = t->accepts[i];
    uint32_t before = 0, now = 1;
    for (int round = 0; ok && now != before && round < 200; round++) {
        before = now;
        for (uint32_t i = 0; i < t->n; i++) order[i] = (keyed){signature(t, group, i), i};
        qsort(order, t->n, sizeof *order, by_key);
        now = 0;
        for (uint32_t i = 0; i < t->n; i++) {
            if (i == 0 || !same_moves(t, group, order[i - 1].state, order[i].state)) now++;
            fresh[order[i].state] = now - 1;
        }
        memcpy(group, fresh, (size_t)t->n * sizeof *group);
    }
    if (ok && now != before) // stopped early: every state stays by itself
        for (uint32_t i = now = 0; i < t->n; i++) group[i] = now++;
    free(order);
    free(fresh);
    *n_groups = now;
    return ok;
}

// The automaton of the groups that can be reached, in the arena.
static const mf_dfa *of_groups(mf_arena *arena, const table *t, const uint32_t *group, uint32_t n_groups) {
    uint32_t *number = mf_alloc((size_t)n_groups + 1, sizeof *number),
             *state = mf_alloc((size_t)n_groups + 1, sizeof *state);
    mf_dfa *d = mf_arena_alloc(arena, 1, sizeof *d);
    uint32_t *bounds = mf_arena_alloc(arena, t->n_classes, sizeof *bounds), n = 1;
    bool ok = number && state && d && bounds;
    if (ok) {
        memset(number, 0xff, n_groups * sizeof *number);
        number[group[0]] = 0;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t c = 0; c < t->n_classes; c++) {
                uint32_t to = t->next[(size_t)state[i] * t->n_classes + c];
                if (to == MF_DFA_DEAD || number[group[to]] != MF_DFA_DEAD) continue;
                state[n] = to;
                number[group[to]] = n++;
            }
    }
    uint32_t *next = ok ? mf_arena_alloc(arena, (size_t)n * t->n_classes, sizeof *next) : NULL;
    bool *accepts = ok ? mf_arena_alloc(arena, n, 1) : NULL;
    if (next && accepts) {
        memcpy(bounds, t->bounds, t->n_classes * sizeof *bounds);
        for (uint32_t i = 0; i < n; i++) {
            accepts[i] = t->accepts[state[i]];
            for (uint32_t c = 0; c < t->n_classes; c++) {
                uint32_t to = t->next[(size_t)state[i] * t->n_classes + c];
                next[(size_t)i * t->n_classes + c] = to == MF_DFA_DEAD ? MF_DFA_DEAD : number[group[to]];
            }
        }
        *d = (mf_dfa){n, t->n_classes, bounds, next, accepts, t->work + t->n * t->n_classes};
    }
    free(number);
    free(state);
    return next && accepts ? d : NULL;
}

static const mf_dfa *finish(mf_arena *arena, table *t, mf_error *err) {
    uint32_t *group = mf_alloc((size_t)t->n + 1, sizeof *group), n_groups = t->n;
    bool ok = group && kill_useless(t) && refine(t, group, &n_groups);
    const mf_dfa *d = ok ? of_groups(arena, t, group, n_groups) : NULL;
    free(group);
    if (!d) mf_fail_memory(err, 0, "a pattern");
    return d;
}

// ---- What makes one

static const mf_dfa *from_nfa(maker *m, uint32_t start) {
    if (start == NO_STATE) return NULL;
    bool ok = mf_array_push(&m->bounds, 0U);
    for (size_t i = 0; i < m->nfa.len && ok; i++)
        if (m->nfa.data[i].kind == NFA_CHARS) ok = add_bounds(m, m->nfa.data[i].chars);
    ok = ok && (m->mark = mf_alloc(m->nfa.len, sizeof *m->mark));
    if (!ok) return out_of_memory(m), NULL;
    sort_bounds(m);
    if (!determinize(m, start)) return NULL;
    table t = {(uint32_t)m->accepts.len, (uint32_t)m->bounds.len, m->bounds.data, m->next.data, m->accepts.data, m->moves};
    return finish(m->arena, &t, m->err);
}

const mf_dfa *mf_dfa_of_regex(mf_arena *arena, mf_str pattern, bool whole, mf_error *err) {
    maker m = {.arena = arena, .err = err};
    const mf_re *re = mf_re_parse(arena, pattern, err);
    if (!re) return NULL;
    uint32_t end = add_state(&m, NFA_ACCEPT, 0, 0);
    if (!whole) { // anything may stand behind it and before it
        uint32_t accept = end, any = add_state(&m, NFA_CHARS, 0, 0);
        end = any == NO_STATE ? NO_STATE : add_state(&m, NFA_SPLIT, any, accept);
        if (end != NO_STATE) m.nfa.data[any].chars = mf_charset_all, m.nfa.data[any].a = end;
    }
    uint32_t start = end == NO_STATE ? NO_STATE : emit(&m, re, end);
    if (!whole && start != NO_STATE) {
        uint32_t body = start, any = add_state(&m, NFA_CHARS, 0, 0);
        start = any == NO_STATE ? NO_STATE : add_state(&m, NFA_SPLIT, any, body);
        if (start != NO_STATE) m.nfa.data[any].chars = mf_charset_all, m.nfa.data[any].a = start;
    }
    const mf_dfa *d = from_nfa(&m, start);
    maker_free(&m);
    return d;
}

const mf_dfa *mf_dfa_of_texts(mf_arena *arena, const mf_str *texts, size_t n, mf_error *err) {
    maker m = {.arena = arena, .err = err};
    uint32_t end = add_state(&m, NFA_ACCEPT, 0, 0), start = NO_STATE;
    for (size_t i = 0; i < n && end != NO_STATE; i++) {
        uint32_t at = end, cp;
        size_t len = texts[i].len;
        while (len > 0 && at != NO_STATE) { // from its last character to its first
            size_t first = len - 1;
            while (first > 0 && ((uint8_t)texts[i].ptr[first] & 0xc0) == 0x80) first--;
            if (mf_utf8_decode(texts[i].ptr + first, len - first, &cp) <= 0) cp = 0xfffd;
            const mf_range one = {cp, cp};
            at = add_state(&m, NFA_CHARS, at, 0);
            if (at != NO_STATE && !mf_charset_make(arena, &one, 1, &m.nfa.data[at].chars)) at = NO_STATE;
            len = first;
        }
        if (at == NO_STATE) {
            if (!err || err->code == MF_OK) out_of_memory(&m);
            end = NO_STATE;
        } else {
            start = start == NO_STATE ? at : add_state(&m, NFA_SPLIT, at, start);
        }
    }
    if (n == 0 && end != NO_STATE) { // nothing is accepted
        start = add_state(&m, NFA_CHARS, end, 0);
    }
    const mf_dfa *d = end == NO_STATE ? NULL : from_nfa(&m, start);
    maker_free(&m);
    return d;
}

const mf_dfa *mf_dfa_of_multiples(mf_arena *arena, uint32_t m, mf_error *err) {
    // States: the start, behind '-', behind a zero that ends the number, then the remainders. Classes: up to '-', '-', up to '0', the
    // digits, the rest.
    enum {
        CLASSES = 14,
        START = 0,
        MINUS = 1,
        ZERO = 2,
        FIRST = 3
    };
    if (m > MF_DFA_MAX_STATES - FIRST) return too_big(err);
    uint32_t bounds[CLASSES] = {0, '-', '-' + 1, '0'};
    for (uint32_t i = 1; i < 11; i++) bounds[3 + i] = '0' + i;
    table t = {m + FIRST, CLASSES, bounds, mf_alloc((size_t)(m + FIRST) * CLASSES, sizeof *t.next), mf_alloc(m + FIRST, 1),
               0};
    const mf_dfa *d = NULL;
    if (t.next && t.accepts) {
        for (size_t k = 0; k < (size_t)t.n * CLASSES; k++) t.next[k] = MF_DFA_DEAD;
        t.next[START * CLASSES + 1] = MINUS;
        t.next[START * CLASSES + 3] = t.next[MINUS * CLASSES + 3] = ZERO;
        for (uint32_t i = 1; i < 10; i++) t.next[START * CLASSES + 3 + i] = t.next[MINUS * CLASSES + 3 + i] = FIRST + i % m;
        for (uint32_t r = 0; r < m; r++)
            for (uint32_t i = 0; i < 10; i++)
                t.next[(FIRST + r) * CLASSES + 3 + i] = FIRST + (uint32_t)((r * 10ULL + i) % m);
        t.accepts[ZERO] = t.accepts[FIRST] = true;
        d = finish(arena, &t, err);
    } else {
        mf_fail_memory(err, 0, "multipleOf");
    }
    free(t.next);
    free(t.accepts);
    return d;
}

// The classes of two automata together.
static uint32_t *joined_bounds(const mf_dfa *a, const mf_dfa *b, uint32_t *n) {
    uint32_t *bounds = mf_alloc((size_t)a->n_classes + b->n_classes, sizeof *bounds);
    *n = 0;
    for (uint32_t i = 0, j = 0; bounds && (i < a->n_classes || j < b->n_classes);) {
        uint32_t x = i < a->n_classes ? a->bounds[i] : UINT32_MAX, y = j < b->n_classes ? b->bounds[j] : UINT32_MAX;
        bounds[(*n)++] = x < y ? x : y;
        i += x <= y;
        j += y <= x;
    }
    return bounds;
}

typedef struct product {
    const mf_dfa *a, *b;
    mf_array(uint32_t) pairs; // a's state * b->n + b's
    mf_array(uint32_t) next;
    uint32_t *number; // [a->n * b->n] + 1
} product;

static uint32_t pair_number(product *p, uint32_t a, uint32_t b) {
    size_t at = (size_t)a * p->b->n + b;
    if (p->number[at]) return p->number[at] - 1;
    if (!mf_array_push(&p->pairs, (uint32_t)at)) return MF_DFA_DEAD;
    p->number[at] = (uint32_t)p->pairs.len;
    return (uint32_t)p->pairs.len - 1;
}

static const mf_dfa *multiply(mf_arena *arena, product *p, const uint32_t *bounds, uint32_t n_classes, mf_error *err) {
    bool ok = pair_number(p, 0, 0) == 0;
    for (size_t i = 0; ok && i < p->pairs.len; i++) {
        if (i >= MF_DFA_MAX_STATES || (i + 1) * n_classes > MF_DFA_MAX_CELLS) return too_big(err);
        uint32_t x = p->pairs.data[i] / p->b->n, y = p->pairs.data[i] % p->b->n;
        for (uint32_t c = 0; ok && c < n_classes; c++) {
            uint32_t to_x = mf_dfa_step(p->a, x, bounds[c]), to_y = mf_dfa_step(p->b, y, bounds[c]), to = MF_DFA_DEAD;
            if (to_x != MF_DFA_DEAD && to_y != MF_DFA_DEAD) ok = (to = pair_number(p, to_x, to_y)) != MF_DFA_DEAD;
            ok = ok && mf_array_push(&p->next, to);
        }
    }
    uint32_t n = (uint32_t)p->pairs.len;
    bool *accepts = ok ? mf_alloc((size_t)n + 1, 1) : NULL;
    if (!accepts) return mf_fail_memory(err, 0, "a pattern"), NULL;
    for (uint32_t i = 0; i < n; i++)
        accepts[i] = p->a->accepts[p->pairs.data[i] / p->b->n] && p->b->accepts[p->pairs.data[i] % p->b->n];
    table t = {n, n_classes, bounds, p->next.data, accepts, n * n_classes};
    const mf_dfa *d = finish(arena, &t, err);
    free(accepts);
    return d;
}

const mf_dfa *mf_dfa_intersect(mf_arena *arena, const mf_dfa *a, const mf_dfa *b, mf_error *err) {
    uint32_t n_classes;
    if ((uint64_t)a->n * b->n > 1U << 26) return too_big(err);
    product p = {.a = a, .b = b, .number = mf_alloc((size_t)a->n * b->n, sizeof *p.number)};
    uint32_t *bounds = joined_bounds(a, b, &n_classes);
    const mf_dfa *d = NULL;
    if (p.number && bounds)
        d = multiply(arena, &p, bounds, n_classes, err);
    else
        mf_fail_memory(err, 0, "a pattern");
    free(p.number);
    free(p.pairs.data);
    free(p.next.data);
    free(bounds);
    return d;
}

const mf_dfa *mf_dfa_complement(mf_arena *arena, const mf_dfa *a, mf_error *err) {
    size_t cells = (size_t)a->n * a->n_classes;
    table t = {a->n + 1, a->n_classes, a->bounds, mf_alloc(cells + a->n_classes, sizeof *t.next), mf_alloc(a->n + 1U, 1), 0};
    const mf_dfa *d = NULL;
    if (t.next && t.accepts) {
        for (size_t k = 0; k < cells; k++) t.next[k] = a->next[k] == MF_DFA_DEAD ? a->n : a->next[k];
        for (uint32_t c = 0; c < a->n_classes; c++) t.next[cells + c] = a->n;
        for (uint32_t i = 0; i <= a->n; i++) t.accepts[i] = i == a->n || !a->accepts[i];
        d = finish(arena, &t, err);
    } else {
        mf_fail_memory(err, 0, "a pattern");
    }
    free(t.next);
    free(t.accepts);
    return d;
}

// ---- Asking one

// The states that a move leads to from those that are in `from`; whether there are any.
static bool move_all(const mf_dfa *a, const bool *from, bool *to) {
    bool any = false;
    memset(to, 0, a->n);
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t c = 0; from[i] && c < a->n_classes; c++) {
            uint32_t next = a->next[(size_t)i * a->n_classes + c];
            if (next != MF_DFA_DEAD) to[next] = any = true;
        }
    return any;
}

bool mf_dfa_accepts_length(const mf_dfa *a, uint32_t min, uint32_t max) {
    uint64_t step = (uint64_t)a->n * (a->n_classes + 1), most = MAX_MOVES / step;
    bool *sets = mf_alloc((size_t)a->n * 2, 1), accepted = !sets, any = true;
    if (sets) sets[0] = true;
    for (uint64_t k = 0; sets && any && !accepted && k <= max; k++) {
        bool *at = sets + (k % 2 ? a->n : 0), *to = sets + (k % 2 ? 0 : a->n);
        for (uint32_t i = 0; k >= min && i < a->n; i++) accepted = accepted || (at[i] && a->accepts[i]);
        accepted = accepted || k > most;
        any = move_all(a, at, to);
    }
    free(sets);
    return accepted;
}

bool mf_dfa_empty(const mf_dfa *a) {
    if (a->accepts[0]) return false;
    for (uint32_t c = 0; c < a->n_classes; c++)
        if (a->next[c] != MF_DFA_DEAD) return false;
    return true;
}

uint32_t mf_dfa_step(const mf_dfa *a, uint32_t state, uint32_t cp) {
    return a->next[(size_t)state * a->n_classes + class_of(a->bounds, a->n_classes, cp)];
}

bool mf_dfa_accepts(const mf_dfa *a, mf_str text) {
    uint32_t state = 0, cp;
    for (size_t at = 0; at < text.len;) {
        int n = mf_utf8_decode(text.ptr + at, text.len - at, &cp);
        if (n <= 0 || (state = mf_dfa_step(a, state, cp)) == MF_DFA_DEAD) return false;
        at += (size_t)n;
    }
    return a->accepts[state];
}
