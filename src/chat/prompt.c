#include "chat/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "chat/align.h"

// A rendered conversation beside the tokens that the sequence holds.
typedef struct prompt {
    mf_token_array ids;
    mf_symbols symbols;
    size_t n_held, n_new; // the beginning they share: tokens of the sequence, tokens of ids
} prompt;

static void prompt_free(prompt *p) {
    free(p->ids.data);
    mf_symbols_free(&p->symbols);
    *p = (prompt){0};
}

// Appends the ids of the messages; those marked in `leave` (NULL: none) as if they were not there.
static bool encode(const mf_conversation *c, const bool *leave, bool open_answer, mf_token_array *ids, mf_error *err) {
    mf_chat_message *turns = mf_alloc(c->entries.len, sizeof *turns);
    if (!turns) return mf_fail_memory(err, c->entries.len * sizeof *turns, "a conversation");
    size_t n = 0;
    for (size_t i = 0; i < c->entries.len; i++) {
        const mf_chat_entry *e = &c->entries.data[i];
        if (!e->left && !(leave && leave[i]))
            turns[n++] = (mf_chat_message){mf_str_of(e->role), mf_str_of(e->content), mf_str_of(e->json ? e->json : "")};
    }
    bool ok = c->params.render(c->params.render_arg, turns, n, open_answer, ids, err);
    free(turns);
    return ok;
}

static bool render(const mf_conversation *c, const bool *leave, prompt *p, mf_error *err) {
    *p = (prompt){0};
    bool ok =
        encode(c, leave, true, &p->ids, err) &&
        (p->ids.len > 0 || mf_fail(err, MF_ERR_ARGUMENT, "the chat template makes an empty text of the conversation")) &&
        mf_symbols_make(&p->symbols, c->params.tokenizer, p->ids.data, p->ids.len, err);
    if (!ok) prompt_free(p);
    return ok;
}

int32_t mf_prompt_count(const mf_conversation *c) {
    mf_token_array ids = {0};
    mf_error refused = {0};
    bool ok = encode(c, NULL, false, &ids, &refused);
    int32_t n = ok && ids.len <= INT32_MAX ? (int32_t)ids.len : -1;
    free(ids.data);
    return n;
}

static bool render_beside(const mf_conversation *c, const bool *leave, const mf_symbols *held, prompt *p, mf_error *err) {
    if (!render(c, leave, p, err)) return false;
    mf_symbols_align(held, &p->symbols, &p->n_held, &p->n_new);
    // A row must be left to evaluate: the answer starts from its logits.
    if (p->n_new == p->ids.len && p->n_new > 0) {
        p->n_new--;
        p->n_held = mf_symbols_token_at(held, mf_symbols_before(&p->symbols, p->n_new));
        if (p->n_held == SIZE_MAX) p->n_held = p->n_new = 0;
    }
    return true;
}

// Puts the prompt into the sequence behind the `n_held` tokens that agree.
static bool take(mf_conversation *c, const prompt *p, mf_error *err) {
    mf_sequence *s = c->params.sequence;
    mf_sequence_truncate(s, (int32_t)p->n_held);
    int32_t before = mf_sequence_n_evaluated(s);
    if (!mf_sequence_append(s, p->ids.data + p->n_new, p->ids.len - p->n_new, err)) return false;
    c->cost.n_prompt = mf_sequence_n_tokens(s);
    int32_t found = before > 0 ? before : mf_sequence_n_evaluated(s);
    c->cost.n_evaluated = mf_sequence_n_tokens(s) - found;
    return true;
}

// ---- Overflow

#define SHIFT_LEAST (2 * (size_t)MF_KV_BLOCK) // cells whose removal makes room for moving the others in a cache that is full

static bool is_user(const mf_chat_entry *e) { return strcmp(e->role, "user") == 0; }

// The first message of the turn after the one that begins at `i`; the number of messages where there is none.
static size_t next_turn(const mf_conversation *c, size_t i) {
    do i++;
    while (i < c->entries.len && !is_user(&c->entries.data[i]));
    return i;
}

static size_t first_turn(const mf_conversation *c) {
    size_t i = 0;
    while (i < c->entries.len && (c->entries.data[i].left || !is_user(&c->entries.data[i]))) i++;
    return i;
}

// Skips the turns that n_keep protects: those that end within the first n_keep tokens. The last one before the new turn may leave in
// any case.
static size_t first_to_leave(const mf_conversation *c, const mf_symbols *held, const prompt *whole, mf_error *err) {
    size_t i = first_turn(c), own = whole->ids.len - whole->n_new; // of the new turn
    bool *leave = mf_alloc(c->entries.len + 1, sizeof *leave);
    if (!leave) return mf_fail_memory(err, c->entries.len, "a conversation"), SIZE_MAX;
    while (c->params.n_keep > 0 && i + 1 < c->entries.len) {
        memset(leave, 0, c->entries.len * sizeof *leave);
        size_t next = next_turn(c, i);
        for (size_t k = next; k + 1 < c->entries.len; k++) leave[k] = true;
        prompt p;
        if (!render_beside(c, leave, held, &p, err)) return free(leave), SIZE_MAX;
        bool within = p.ids.len <= own + (size_t)c->params.n_keep;
        prompt_free(&p);
        if (!within || next + 1 >= c->entries.len) break;
        i = next;
    }
    free(leave);
    return i;
}

// Finds which tokens to take out so that what stays is the shortened prompt's beginning: [*from, *to). `whole` is the prompt before
// turns left, p after; held the sequence's tokens as far as they agree with `whole`.
static bool find_cut(const mf_symbols *held, const prompt *whole, const prompt *p, size_t *from, size_t *to) {
    size_t rest = whole->symbols.symbol.len - mf_symbols_before(&whole->symbols, whole->n_new); // of the new turn
    size_t stays = p->symbols.symbol.len - rest, has = held->symbol.len;
    if (rest > p->symbols.symbol.len || stays >= has) return false;
    for (size_t i = p->n_held;; i--) {
        size_t end = mf_symbols_token_at(held, mf_symbols_before(held, i) + (has - stays));
        if (end != SIZE_MAX) return *from = i, *to = end, true;
        if (i == 0) return false;
    }
}

// Moves the cells that stay. False without err set: they can't be moved, for the reason in the cost.
static bool shift(mf_conversation *c, mf_symbols *held, const prompt *whole, prompt *p, mf_error *err) {
    mf_turn_cost *cost = &c->cost;
    size_t from, to;
    if (!c->params.shift) return snprintf(cost->again_reason, sizeof cost->again_reason, "context shifts are off"), false;
    if (!find_cut(held, whole, p, &from, &to)) {
        bool alone = p->ids.len <= whole->ids.len - whole->n_new;
        return snprintf(cost->again_reason, sizeof cost->again_reason, "%s",
                        alone ? "no earlier turn stays" : "the template has no place to cut"),
               false;
    }
    mf_symbols_cut(held, from, to);
    size_t n_held, n_new;
    mf_symbols_align(held, &p->symbols, &n_held, &n_new);
    if (n_held < held->end.len)
        return snprintf(cost->again_reason, sizeof cost->again_reason,
                        "the template renders the rest in other words once turns have left"),
               false;
    mf_sequence_truncate(c->params.sequence, (int32_t)whole->n_held);
    if (!mf_sequence_shift(c->params.sequence, (int32_t)from, (int32_t)(to - from), err)) return false;
    cost->n_shifted = (int32_t)(to - from);
    p->n_held = n_held, p->n_new = n_new;
    return true;
}

static bool fits(const mf_conversation *c, const prompt *p) {
    return (int64_t)p->ids.len + c->params.n_reserve <= c->params.n_ctx;
}

// Marks the oldest turns, as few as free a quarter of the context (two blocks at least) and let the prompt fit, and renders without them.
static bool choose_leaving(const mf_conversation *c, const mf_symbols *held, const prompt *whole, bool *leave, prompt *p,
                           mf_error *err) {
    size_t first = first_to_leave(c, held, whole, err), last = c->entries.len - 1;
    if (first == SIZE_MAX) return false;
    // With nothing that could leave, less room than is kept for answers must do.
    if (first >= last && whole->ids.len <= (size_t)c->params.n_ctx) return render_beside(c, leave, held, p, err);
    size_t freed = (size_t)c->params.n_ctx / 4;
    if (freed < SHIFT_LEAST) freed = SHIFT_LEAST;
    for (size_t end = first; end < last;) {
        size_t next = next_turn(c, end);
        if (next > last) break;
        for (; end < next; end++) leave[end] = !c->entries.data[end].left;
        if (!render_beside(c, leave, held, p, err)) return false;
        bool enough = fits(c, p) && whole->ids.len - p->ids.len >= freed;
        if (enough || (next == last && p->ids.len <= (size_t)c->params.n_ctx)) return true;
        prompt_free(p);
    }
    return mf_fail(err, MF_ERR_LIMIT,
                   "the message is too long: with what has to stay before it the prompt has %zu tokens, and the context %d",
                   whole->ids.len, c->params.n_ctx);
}

static bool make_room(mf_conversation *c, mf_symbols *held, const prompt *whole, mf_error *err) {
    size_t n = c->entries.len;
    bool *leave = mf_alloc(n, sizeof *leave);
    if (!leave) return mf_fail_memory(err, n, "a conversation");
    memset(leave, 0, n * sizeof *leave);
    prompt p = {0};
    bool ok = choose_leaving(c, held, whole, leave, &p, err);
    if (ok) {
        // Only the tokens that agree with the conversation are worth moving.
        mf_symbols_cut(held, whole->n_held, held->end.len);
        mf_error failed = {0};
        bool moved = !memchr(leave, true, n) || shift(c, held, whole, &p, &failed);
        // What is evaluated again is not what was moved: only the conversation's own state may choose between them.
        ok = failed.code != MF_ERR_MEMORY || mf_fail(err, failed.code, "%s", failed.text);
        if (ok && !moved) {
            if (failed.text[0]) snprintf(c->cost.again_reason, sizeof c->cost.again_reason, "%.150s", failed.text);
            int32_t dropped = mf_sequence_n_evaluated(c->params.sequence) - (int32_t)p.n_held;
            c->cost.n_again = dropped > 0 ? dropped : 0;
        }
        ok = ok && take(c, &p, err);
    }
    for (size_t i = 0; i < n && ok; i++) {
        c->entries.data[i].left |= leave[i];
        c->cost.n_left += leave[i];
    }
    prompt_free(&p);
    free(leave);
    return ok;
}

bool mf_prompt_prepare(mf_conversation *c, mf_error *err) {
    mf_sequence *s = c->params.sequence;
    mf_symbols held;
    prompt p;
    c->cost = (mf_turn_cost){0};
    if (!mf_symbols_make(&held, c->params.tokenizer, mf_sequence_tokens(s), (size_t)mf_sequence_n_tokens(s), err))
        return false;
    bool ok = render_beside(c, NULL, &held, &p, err);
    if (ok) {
        int32_t evaluated = mf_sequence_n_evaluated(s);
        if ((int32_t)p.n_held < evaluated) {
            c->cost.n_again = evaluated - (int32_t)p.n_held;
            snprintf(c->cost.again_reason, sizeof c->cost.again_reason, "%s",
                     c->changed ? c->changed : "the template renders earlier turns in other words");
        }
        ok = fits(c, &p) ? take(c, &p, err) : make_room(c, &held, &p, err);
        if (ok) c->changed = NULL;
        prompt_free(&p);
    }
    mf_symbols_free(&held);
    return ok;
}
