#include "sample/grammar/machine.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

#define MANY MF_GRAMMAR_MANY

// ---- Building a state

static bool same_item(const mf_grammar_item *a, const mf_grammar_item *b) {
    return a->node == b->node && a->origin == b->origin && a->completes == b->completes && a->need == b->need &&
           a->room == b->room;
}

static uint32_t hash_item(const mf_grammar_item *i) {
    uint64_t h = i->node * 0x9E3779B97F4A7C15u;
    h = (h ^ i->origin) * 0xD6E8FEB86659FD93u;
    h = (h ^ i->completes ^ (uint64_t)i->need << 32) * 0x9E3779B97F4A7C15u;
    h = (h ^ i->room) * 0xD6E8FEB86659FD93u;
    return (uint32_t)(h >> 32);
}

static bool grow_seen(mf_grammar_machine *m) {
    size_t n = m->n_seen ? m->n_seen * 2 : 64;
    void *seen = mf_alloc(n, sizeof *m->seen);
    if (!seen) return false;
    free(m->seen);
    m->seen = seen, m->n_seen = n;
    for (size_t i = 0; i < m->visited.len; i++) {
        size_t at = hash_item(&m->visited.data[i]) & (n - 1);
        while (m->seen[at].turn == m->turn) at = (at + 1) & (n - 1);
        m->seen[at].turn = m->turn, m->seen[at].index = (uint32_t)i;
    }
    return true;
}

// Takes an item into the state, and later all that it leads to, unless it was there.
static void visit(mf_grammar_machine *m, mf_grammar_item item) {
    if (m->failed || m->full) return;
    if (2 * (m->visited.len + 1) > m->n_seen && !grow_seen(m)) {
        m->failed = true;
        return;
    }
    size_t at = hash_item(&item) & (m->n_seen - 1);
    for (; m->seen[at].turn == m->turn; at = (at + 1) & (m->n_seen - 1))
        if (same_item(&m->visited.data[m->seen[at].index], &item)) return;
    m->seen[at].turn = m->turn, m->seen[at].index = (uint32_t)m->visited.len;
    m->full = m->visited.len >= 8 * MF_STATE_MAX_ITEMS;
    if (!mf_array_push(&m->visited, item) || !mf_array_push(&m->work, item)) m->failed = true;
}

static void call(mf_grammar_machine *m, const mf_grammar_item *item) {
    const mf_grammar_program *p = m->program;
    const mf_grammar_node *n = &p->nodes.data[item->node];
    const mf_program_rule *rule = &p->rules.data[n->a];
    mf_grammar_item inner = {rule->start, MF_ORIGIN_SELF, n->a, 0, 0}, after = *item;
    if (rule->counts) inner.need = rule->min, inner.room = rule->max;
    if (n->kind == MF_NODE_CALL && p->nodes.data[n->b].kind == MF_NODE_END) // in its caller's place
        inner.origin = item->origin, inner.completes = item->completes;
    else if (!mf_array_push(&m->wait, *item))
        m->failed = true;
    visit(m, inner);
    after.node = n->b;
    if (n->kind == MF_NODE_CALL && rule->nullable) visit(m, after);
}

// Items that waited for a rule which began in their state go on. What is complete without a byte was passed by at the call.
static void complete(mf_grammar_machine *m, const mf_grammar_item *item) {
    if (item->origin == MF_ORIGIN_SELF) return;
    if (item->origin == MF_ORIGIN_ROOT) {
        m->final = true;
        return;
    }
    const mf_grammar_state *s = &m->states.data[item->origin];
    for (const mf_grammar_item *w = s->items + s->n_scan; w < s->items + s->n_scan + s->n_wait; w++) {
        const mf_grammar_node *n = &m->program->nodes.data[w->node];
        if (++m->moves > MF_STATE_MAX_WORK) m->full = true;
        if (n->a != item->completes || m->full) continue;
        mf_grammar_item next = *w;
        next.node = n->b;
        if (next.origin == MF_ORIGIN_SELF) next.origin = item->origin;
        visit(m, next);
    }
}

static void count(mf_grammar_machine *m, mf_grammar_item item, const mf_grammar_node *n) {
    if (item.room == 0) return;
    if (item.room != MANY) item.room--;
    if (item.need && item.need != MANY) item.need--;
    if (n->a != MF_NO_REACH && item.need != MANY && !mf_reach_within(&m->program->reach.data[n->a], item.need, item.room))
        return;
    item.node = n->b;
    visit(m, item);
}

static void close_items(mf_grammar_machine *m) {
    while (m->work.len > 0 && !m->failed && !m->full) {
        mf_grammar_item item = m->work.data[--m->work.len], next = item;
        const mf_grammar_node *n = &m->program->nodes.data[item.node];
        next.node = n->b;
        switch ((mf_grammar_node_kind)n->kind) {
        case MF_NODE_END: complete(m, &item); break;
        case MF_NODE_BYTES:
        case MF_NODE_TOKEN:
        case MF_NODE_OTHER:
            if (!mf_array_push(&m->scan, item)) m->failed = true;
            break;
        case MF_NODE_CALL:
        case MF_NODE_REAL: call(m, &item); break;
        case MF_NODE_SPLIT:
            visit(m, next);
            next.node = n->a;
            visit(m, next);
            break;
        case MF_NODE_ROOM:
            if (item.room) visit(m, next);
            break;
        case MF_NODE_COUNT: count(m, item, n); break;
        case MF_NODE_DONE:
            if (item.need == 0) visit(m, next);
            break;
        }
    }
}

static void begin(mf_grammar_machine *m) {
    m->scan.len = m->wait.len = m->work.len = m->visited.len = 0;
    m->moves = 0;
    if (++m->turn == 0) { // numbers begin anew
        if (m->n_seen) memset(m->seen, 0, m->n_seen * sizeof *m->seen);
        m->turn = 1;
    }
    m->final = m->failed = m->full = false;
}

// ---- The table of states

static int by_item(const void *a, const void *b) {
    const mf_grammar_item *x = a, *y = b;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    if (x->origin != y->origin) return x->origin < y->origin ? -1 : 1;
    if (x->completes != y->completes) return x->completes < y->completes ? -1 : 1;
    if (x->need != y->need) return x->need < y->need ? -1 : 1;
    return x->room < y->room ? -1 : x->room > y->room;
}

static void sort_items(mf_grammar_item *items, size_t n) {
    if (n > 16) {
        qsort(items, n, sizeof *items, by_item);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        mf_grammar_item item = items[i];
        size_t at = i;
        for (; at > 0 && by_item(&items[at - 1], &item) > 0; at--) items[at] = items[at - 1];
        items[at] = item;
    }
}

static size_t hash_state(const mf_grammar_item *scan, size_t n_scan, const mf_grammar_item *wait, size_t n_wait,
                         bool final) {
    uint64_t h = mf_hash(scan, n_scan * sizeof *scan, final);
    return (size_t)mf_hash(wait, n_wait * sizeof *wait, h);
}

static size_t hash_of_state(const mf_grammar_state *s) {
    return hash_state(s->items, s->n_scan, s->items + s->n_scan, s->n_wait, s->final);
}

// Puts all states into an empty table.
static void fill_slots(mf_grammar_machine *m, uint32_t *slots, size_t n) {
    m->n_used = 0;
    for (size_t i = 1; i < m->states.len; i++) {
        if (!m->states.data[i].items) continue;
        size_t at = hash_of_state(&m->states.data[i]) & (n - 1);
        while (slots[at]) at = (at + 1) & (n - 1);
        slots[at] = (uint32_t)i;
        m->n_used++;
    }
}

static bool grow_slots(mf_grammar_machine *m, size_t n) {
    uint32_t *slots = mf_alloc(n, sizeof *slots);
    if (!slots) return false;
    fill_slots(m, slots, n);
    free(m->slots);
    m->slots = slots, m->n_slots = n;
    return true;
}

static uint32_t new_state(mf_grammar_machine *m, size_t slot) {
    size_t n = m->scan.len + m->wait.len;
    mf_grammar_state s = {.items = mf_alloc(n ? n : 1, sizeof(mf_grammar_item)),
                          .n_scan = (uint32_t)m->scan.len,
                          .n_wait = (uint32_t)m->wait.len,
                          .clipped = MF_STATE_NONE,
                          .plain = MF_STATE_NONE,
                          .final = m->final};
    uint32_t number = m->unused.len ? m->unused.data[m->unused.len - 1] : (uint32_t)m->states.len;
    if (!s.items || (!m->unused.len && !mf_array_push(&m->states, s))) {
        free(s.items);
        return MF_STATE_NONE;
    }
    if (m->scan.len) memcpy(s.items, m->scan.data, m->scan.len * sizeof(mf_grammar_item));
    if (m->wait.len) memcpy(s.items + m->scan.len, m->wait.data, m->wait.len * sizeof(mf_grammar_item));
    if (m->unused.len) m->unused.len--;
    m->states.data[number] = s;
    m->slots[slot] = number;
    m->n_used++;
    m->bytes += sizeof s + n * sizeof(mf_grammar_item);
    return number;
}

// The number of the state that was built.
static uint32_t intern(mf_grammar_machine *m, mf_error *err) {
    if (m->full || m->scan.len > MF_STATE_MAX_ITEMS)
        return mf_fail(err, MF_ERR_LIMIT, "the grammar is too ambiguous: over %d ways to go on at one place",
                       MF_STATE_MAX_ITEMS),
               MF_STATE_NONE;
    if (m->bytes / 4 > m->limit)
        return mf_fail(err, MF_ERR_LIMIT, "the grammar is too ambiguous: what could come next takes over %zu MB",
                       m->limit >> 18),
               MF_STATE_NONE;
    if (!m->failed && m->scan.len == 0 && !m->final) return MF_STATE_DEAD;
    if (m->failed || (2 * (m->n_used + 1) > m->n_slots && !grow_slots(m, m->n_slots * 2)))
        return mf_fail_memory(err, 0, "a grammar's state"), MF_STATE_NONE;
    sort_items(m->scan.data, m->scan.len);
    sort_items(m->wait.data, m->wait.len);
    size_t at = hash_state(m->scan.data, m->scan.len, m->wait.data, m->wait.len, m->final) & (m->n_slots - 1);
    for (; m->slots[at]; at = (at + 1) & (m->n_slots - 1)) {
        const mf_grammar_state *s = &m->states.data[m->slots[at]];
        if (s->n_scan == m->scan.len && s->n_wait == m->wait.len && s->final == m->final &&
            (s->n_scan == 0 || memcmp(s->items, m->scan.data, s->n_scan * sizeof(mf_grammar_item)) == 0) &&
            (s->n_wait == 0 || memcmp(s->items + s->n_scan, m->wait.data, s->n_wait * sizeof(mf_grammar_item)) == 0))
            return m->slots[at];
    }
    uint32_t number = new_state(m, at);
    if (number == MF_STATE_NONE) mf_fail_memory(err, 0, "a grammar's state");
    return number;
}

bool mf_machine_init(mf_grammar_machine *m, const mf_grammar_program *p, size_t limit, mf_error *err) {
    *m = (mf_grammar_machine){.program = p, .limit = limit};
    if (!mf_array_push(&m->states, ((mf_grammar_state){.clipped = MF_STATE_DEAD})) || !grow_slots(m, 256))
        return mf_fail_memory(err, 0, "a grammar");
    const mf_program_rule *root = &p->rules.data[p->root];
    begin(m);
    visit(m, (mf_grammar_item){root->start, MF_ORIGIN_ROOT, p->root, root->counts ? root->min : 0,
                               root->counts ? root->max : 0});
    close_items(m);
    m->start = intern(m, err);
    if (m->start == MF_STATE_NONE) return false;
    if (m->start == MF_STATE_DEAD) return mf_fail(err, MF_ERR_ARGUMENT, "the grammar allows nothing");
    m->states.data[m->start].users++;
    return true;
}

void mf_machine_free(mf_grammar_machine *m) {
    for (size_t i = 0; i < m->states.len; i++) {
        free(m->states.data[i].items);
        free(m->states.data[i].next);
        mf_token_mask_drop(m->states.data[i].mask);
    }
    free(m->states.data);
    free(m->unused.data);
    free(m->slots);
    free(m->scan.data);
    free(m->wait.data);
    free(m->work.data);
    free(m->visited.data);
    free(m->seen);
    *m = (mf_grammar_machine){0};
}

// ---- Steps

// The item behind one that was taken in a state.
static void advance(mf_grammar_machine *m, uint32_t state, mf_grammar_item item) {
    item.node = m->program->nodes.data[item.node].b;
    if (item.origin == MF_ORIGIN_SELF) item.origin = state;
    visit(m, item);
}

static void take_byte(mf_grammar_machine *m, uint32_t state, uint8_t byte) {
    const mf_grammar_program *p = m->program;
    for (uint32_t i = 0; i < m->states.data[state].n_scan; i++) {
        mf_grammar_item item = m->states.data[state].items[i];
        const mf_grammar_node *n = &p->nodes.data[item.node];
        if (n->kind == MF_NODE_BYTES && mf_byteset_has(&p->sets.data[n->a], byte)) advance(m, state, item);
    }
}

static uint32_t *next_of(mf_grammar_machine *m, uint32_t state) {
    mf_grammar_state *s = &m->states.data[state];
    if (s->next) return s->next;
    s->next = mf_alloc(m->program->n_classes, sizeof *s->next);
    if (s->next) memset(s->next, 0xff, m->program->n_classes * sizeof *s->next);
    if (s->next) m->bytes += m->program->n_classes * sizeof *s->next;
    return s->next;
}

uint32_t mf_machine_step(mf_grammar_machine *m, uint32_t state, uint8_t byte, mf_error *err) {
    if (state == MF_STATE_DEAD) return MF_STATE_DEAD;
    uint32_t class = m->program->class_of[byte], *next = next_of(m, state);
    if (!next) return mf_fail_memory(err, 0, "a grammar's state"), MF_STATE_NONE;
    if (next[class] != MF_STATE_NONE) return next[class];
    begin(m);
    take_byte(m, state, byte);
    close_items(m);
    uint32_t to = intern(m, err);
    if (to != MF_STATE_NONE) m->states.data[state].next[class] = to;
    return to;
}

uint32_t mf_machine_step_token(mf_grammar_machine *m, uint32_t state, mf_str bytes, int32_t token, bool ends,
                               mf_error *err) {
    uint32_t at = bytes.len ? state : MF_STATE_DEAD;
    for (size_t i = 0; i + 1 < bytes.len && at != MF_STATE_DEAD; i++) {
        at = mf_machine_step(m, at, (uint8_t)bytes.ptr[i], err);
        if (at == MF_STATE_NONE) return at;
    }
    if (!m->program->has_tokens)
        return at == MF_STATE_DEAD ? at : mf_machine_step(m, at, (uint8_t)bytes.ptr[bytes.len - 1], err);
    begin(m);
    if (at != MF_STATE_DEAD) take_byte(m, at, (uint8_t)bytes.ptr[bytes.len - 1]);
    for (uint32_t i = 0; i < m->states.data[state].n_scan; i++) {
        mf_grammar_item item = m->states.data[state].items[i];
        const mf_grammar_node *n = &m->program->nodes.data[item.node];
        bool same = n->a == (uint32_t)token;
        if ((n->kind == MF_NODE_TOKEN && same) || (n->kind == MF_NODE_OTHER && !same && !ends)) advance(m, state, item);
    }
    close_items(m);
    return intern(m, err);
}

// ---- Far bounds

static uint32_t clip_count(uint32_t n, uint32_t most) { return n > most ? MANY : n; }

static mf_grammar_item clip_item(mf_grammar_item item, uint32_t most) {
    item.need = clip_count(item.need, most), item.room = clip_count(item.room, most);
    return item;
}

// An item's counts may be clipped where a pattern's lengths can't tell: that is, unless both its bounds lie close together.
static bool clips(const mf_grammar_item *item, uint32_t most) {
    if (item->need <= most && (item->room <= most || item->room == MANY)) return false;
    return item->need <= most || item->room == MANY || item->room - item->need > most;
}

// The clipped form of a state whose origins have theirs.
static uint32_t clip_one(mf_grammar_machine *m, uint32_t state, uint32_t most, mf_error *err) {
    const mf_grammar_state *s = &m->states.data[state];
    bool changes = false;
    begin(m);
    m->final = s->final;
    for (uint32_t i = 0; i < s->n_scan + s->n_wait; i++) {
        mf_grammar_item item = clips(&s->items[i], most) ? clip_item(s->items[i], most) : s->items[i];
        if (item.origin < MF_ORIGIN_ROOT) item.origin = m->states.data[item.origin].clipped;
        changes = changes || !same_item(&item, &s->items[i]);
        if (i < s->n_scan ? !mf_array_push(&m->scan, item) : !mf_array_push(&m->wait, item)) m->failed = true;
    }
    uint32_t to = changes ? intern(m, err) : state;
    if (to == MF_STATE_NONE) return to;
    m->states.data[state].clipped = to;
    m->states.data[to].clipped = to;
    return to;
}

// An origin that has no clipped form yet; MF_STATE_NONE: all have.
static uint32_t unclipped_origin(const mf_grammar_machine *m, uint32_t state) {
    const mf_grammar_state *s = &m->states.data[state];
    for (uint32_t i = 0; i < s->n_scan + s->n_wait; i++) {
        uint32_t origin = s->items[i].origin;
        if (origin < MF_ORIGIN_ROOT && m->states.data[origin].clipped == MF_STATE_NONE) return origin;
    }
    return MF_STATE_NONE;
}

uint32_t mf_machine_clip(mf_grammar_machine *m, uint32_t state, uint32_t most, mf_error *err) {
    if (state == MF_STATE_DEAD || m->states.data[state].clipped != MF_STATE_NONE) return m->states.data[state].clipped;
    mf_array(uint32_t) path = {0};
    uint32_t to = MF_STATE_NONE;
    bool ok = mf_array_push(&path, state) || mf_fail_memory(err, 0, "a grammar's state");
    while (ok && path.len > 0) { // origins are older: the path has no circle
        uint32_t at = path.data[path.len - 1], origin = unclipped_origin(m, at);
        if (origin != MF_STATE_NONE) {
            ok = mf_array_push(&path, origin) || mf_fail_memory(err, 0, "a grammar's state");
        } else {
            to = clip_one(m, at, most, err);
            ok = to != MF_STATE_NONE;
            path.len--;
        }
    }
    free(path.data);
    return ok ? to : MF_STATE_NONE;
}

// ---- Giving up states

// Marks a state and all that its items come from. `unused`, which has room for every state, serves as the list of what is to be looked at.
static void mark(mf_grammar_machine *m, uint32_t from) {
    if (m->states.data[from].marked) return;
    m->states.data[from].marked = true;
    m->unused.len = 0;
    m->unused.data[m->unused.len++] = from;
    while (m->unused.len > 0) {
        const mf_grammar_state *s = &m->states.data[m->unused.data[--m->unused.len]];
        for (uint32_t i = 0; i < s->n_scan + s->n_wait; i++) {
            uint32_t origin = s->items[i].origin;
            if (origin >= MF_ORIGIN_ROOT || m->states.data[origin].marked) continue;
            m->states.data[origin].marked = true;
            m->unused.data[m->unused.len++] = origin;
        }
    }
}

static void forget(mf_grammar_machine *m, mf_grammar_state *s) {
    free(s->next);
    mf_token_mask_drop(s->mask);
    s->next = NULL, s->mask = NULL;
    s->clipped = s->plain = MF_STATE_NONE;
    if (s->marked) {
        m->bytes += sizeof *s + (s->n_scan + s->n_wait) * sizeof(mf_grammar_item);
        return;
    }
    free(s->items);
    *s = (mf_grammar_state){0};
}

void mf_machine_collect(mf_grammar_machine *m) {
    if (m->bytes <= m->limit || !mf_array_reserve(&m->unused, m->states.len)) return;
    for (size_t i = 1; i < m->states.len; i++)
        if (m->states.data[i].users) mark(m, (uint32_t)i);
    m->unused.len = 0;
    m->bytes = 0;
    for (size_t i = 1; i < m->states.len; i++) {
        forget(m, &m->states.data[i]);
        m->states.data[i].marked = false;
        if (!m->states.data[i].items) m->unused.data[m->unused.len++] = (uint32_t)i;
    }
    memset(m->slots, 0, m->n_slots * sizeof *m->slots);
    fill_slots(m, m->slots, m->n_slots);
}
