// Random operations on sequences that share a small engine (its cache full, its prefix index warm) beside the same operations on engines that
// have one sequence each, much room and no index: the same tokens, and the same logits wherever both report a row.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/golden.h"
#include "engine/session.h"
#include "support/folder.h"

enum {
    PAIRS = 4,
    MOST_CELLS = 1024,
    OPERATIONS = 130
};

typedef struct half {
    mf_engine *engine;
    mf_sequence *seq;
    uint64_t row[MOST_CELLS + 1]; // a hash of the logits that were reported, 0: none
    mf_error why;                 // it ended with this error
} half;

typedef struct pair {
    half warm, cold;
    mf_sequence_params params;
    bool moved;
} pair;

static struct {
    uint64_t random, seed;
    fixture f;
    mf_engine *warm;
    mf_engine_params params;
    pair pairs[PAIRS];
    mf_sampler_params sampling;
    char path[80];
    long n_rows, n_found, n_given_back, n_shifts, n_sessions, n_refused; // what was met
} w;

static int32_t below(int32_t n) { // Knuth's MMIX constants
    w.random = w.random * 6364136223846793005U + 1442695040888963407U;
    return (int32_t)((w.random >> 33) % (uint64_t)n);
}

#define CHECK(condition)                                                                     \
    do {                                                                                     \
        if (!(condition)) fail_msg("seed %llu: %s", (unsigned long long)w.seed, #condition); \
    } while (0)

static void good(bool ok, const mf_error *err) {
    if (!ok) fail_msg("seed %llu: %s", (unsigned long long)w.seed, err->text);
}

static void record(void *arg, mf_sequence *seq, int32_t position, const float *logits, int32_t n_vocab) {
    pair *p = arg;
    half *h = seq == p->warm.seq ? &p->warm : &p->cold;
    h->row[position] = fnv(logits, (size_t)n_vocab * sizeof *logits);
}

// ---- Prompts

// Few different blocks in any order, so that many begin alike and many blocks of the same tokens stand behind different ones; sometimes one
// token is another.
static int32_t write_prompt(int32_t *ids, int32_t n) {
    for (int32_t i = 0; i < n; i += MF_KV_BLOCK) {
        int32_t kind = below(3);
        for (int32_t k = i; k < i + MF_KV_BLOCK && k < n; k++) ids[k] = 20 + (k - i) * (3 + kind) % 200;
    }
    if (below(3) == 0) ids[below(n)] = 240 + below(4);
    return n;
}

// ---- Both sides

static int32_t n_tokens(const half *h) { return mf_sequence_n_tokens(h->seq); }

static bool others_moved(const pair *p) {
    for (int i = 0; i < PAIRS; i++)
        if (&w.pairs[i] != p && w.pairs[i].moved) return true;
    return false;
}

static void step(mf_engine *e) {
    mf_error err = {0};
    const mf_event *events;
    size_t n;
    int32_t before[PAIRS] = {0};
    for (int i = 0; i < PAIRS; i++)
        if (w.pairs[i].warm.seq) before[i] = mf_sequence_n_evaluated(w.pairs[i].warm.seq);
    good(mf_engine_step(e, &events, &n, &err), &err);
    for (int i = 0; i < PAIRS; i++) {
        pair *p = &w.pairs[i];
        if (p->warm.seq) w.n_given_back += mf_sequence_n_evaluated(p->warm.seq) < before[i];
        for (size_t k = 0; k < n; k++) {
            half *h = events[k].seq == p->warm.seq ? &p->warm : events[k].seq == p->cold.seq ? &p->cold : NULL;
            if (!h || events[k].finish != MF_FINISH_ERROR) continue;
            h->why = events[k].error;
            CHECK(strstr(h->why.text, "the KV cache is full"));
            CHECK(others_moved(p));
        }
    }
}

static void compare(const pair *p) {
    CHECK(n_tokens(&p->warm) == n_tokens(&p->cold));
    const int32_t *a = mf_sequence_tokens(p->warm.seq), *b = mf_sequence_tokens(p->cold.seq);
    for (int32_t i = 0; i < n_tokens(&p->warm); i++) {
        CHECK(a[i] == b[i]);
        if (!p->warm.row[i] || !p->cold.row[i]) continue;
        CHECK(p->warm.row[i] == p->cold.row[i]);
        w.n_rows++;
    }
}

static void close_pair(pair *p) {
    mf_sequence_free(p->warm.seq);
    mf_sequence_free(p->cold.seq);
    mf_engine_free(p->cold.engine);
    *p = (pair){0};
}

// Brings the cold side to where the warm one is. False: the pair is over, since the warm one had no room beside moved cells.
static bool meet(pair *p) {
    if (p->warm.why.text[0]) {
        w.n_refused++;
        close_pair(p);
        return false;
    }
    bool idle = mf_sequence_idle(p->warm.seq);
    while (!mf_sequence_idle(p->cold.seq) && (idle || n_tokens(&p->cold) < n_tokens(&p->warm))) step(p->cold.engine);
    CHECK(!p->cold.why.text[0]);
    compare(p);
    return true;
}

static bool settle(pair *p) {
    for (int i = 0; !mf_sequence_idle(p->warm.seq); i++) {
        CHECK(i < 5000); // everybody gets to an end
        step(w.warm);
    }
    return meet(p);
}

// Room for n more tokens and an answer within the context of the small engine.
static bool has_room(const pair *p, int32_t n) { return n_tokens(&p->warm) + n + p->params.max_tokens <= w.params.n_ctx; }

// ---- Operations

static void begin(pair *p) {
    mf_error err = {0};
    int32_t ids[MOST_CELLS];
    mf_sequence_params_init(&p->params);
    p->params.sampler = &w.sampling, p->params.max_tokens = 1 + below(30);
    p->params.logits_from = below(4) ? -1 : below(100);
    p->params.on_logits = record, p->params.arg = p;
    mf_engine_params roomy = w.params;
    roomy.prefix_cache = false, roomy.n_ctx = MOST_CELLS, roomy.max_seqs = 1, roomy.n_batch = 200;
    good((p->cold.engine = mf_engine_new(w.f.model, &w.f.devices, &roomy, &err)) != NULL, &err);
    p->warm.engine = w.warm;
    good((p->warm.seq = mf_sequence_new(w.warm, &p->params, &err)) != NULL, &err);
    good((p->cold.seq = mf_sequence_new(p->cold.engine, &p->params, &err)) != NULL, &err);
    int32_t most = w.params.n_ctx - p->params.max_tokens;
    size_t n = (size_t)write_prompt(ids, 1 + below(most < 400 ? most : 400));
    good(mf_sequence_append(p->warm.seq, ids, n, &err), &err);
    good(mf_sequence_append(p->cold.seq, ids, n, &err), &err);
}

static bool append(pair *p) {
    mf_error err = {0};
    int32_t ids[80];
    size_t n = (size_t)write_prompt(ids, 1 + below(80));
    if (!has_room(p, (int32_t)n)) return false;
    good(mf_sequence_append(p->warm.seq, ids, n, &err), &err);
    good(mf_sequence_append(p->cold.seq, ids, n, &err), &err);
    return true;
}

static void forget_rows(pair *p, int32_t from) {
    memset(p->warm.row + from, 0, sizeof p->warm.row - (size_t)from * sizeof *p->warm.row);
    memset(p->cold.row + from, 0, sizeof p->cold.row - (size_t)from * sizeof *p->cold.row);
}

static void cut(pair *p) {
    int32_t n = below(n_tokens(&p->warm) + 1);
    mf_sequence_truncate(p->warm.seq, n);
    mf_sequence_truncate(p->cold.seq, n);
    forget_rows(p, n);
}

static void shift(pair *p) {
    mf_error err = {0};
    if (!append(p) || !settle(p)) return; // so that both have evaluated the same tokens
    int32_t n = mf_sequence_n_evaluated(p->cold.seq);
    if (n < 3) return;
    int32_t keep = below(n - 1), discard = 1 + below(n - keep);
    if (!mf_sequence_shift(p->warm.seq, keep, discard, &err)) {
        CHECK(strstr(err.text, "the KV cache is full"));
        w.n_refused++;
        return;
    }
    good(mf_sequence_shift(p->cold.seq, keep, discard, &err), &err);
    forget_rows(p, 0);
    p->moved = true;
    w.n_shifts++;
}

// Keeps the warm sequence on the disk, and goes on with another one that loads it.
static void reload(pair *p) {
    mf_error err = {0};
    if (!settle(p)) return;
    unlink(w.path);
    mf_session *s = mf_session_new(p->warm.seq, w.path, &err);
    good(s && mf_session_commit(s, NULL, 0, &err), &err);
    if (below(2) && n_tokens(&p->warm) > 3) {
        cut(p);
        good(mf_session_commit(s, NULL, 0, &err), &err);
    }
    mf_sequence_free(p->warm.seq);
    good((p->warm.seq = mf_sequence_new(w.warm, &p->params, &err)) != NULL, &err);
    s = mf_session_open(p->warm.seq, w.path, &err);
    if (!s) {
        CHECK(strstr(err.text, "the KV cache is full"));
        w.n_refused++;
        close_pair(p);
        return;
    }
    mf_session_close(s);
    compare(p);
    w.n_sessions++;
}

static void operate(void) {
    pair *p = &w.pairs[below(PAIRS)];
    if (!p->warm.seq) {
        begin(p);
    } else if (meet(p)) {
        switch (below(10)) {
        case 0:
        case 1: append(p); break;
        case 2: cut(p); break;
        case 3: shift(p); break;
        case 4: reload(p); break;
        case 5: close_pair(p); break;
        case 6: settle(p); break;
        default: break;
        }
    }
    for (int i = below(6); i > 0; i--) step(w.warm);
}

static void one_round(uint64_t seed) {
    static const char *const models[] = {"llama-mix", "qwen2-mix", "llama3-f16", "qwen3-f16"};
    static const mf_type cells[] = {MF_TYPE_F32, MF_TYPE_F16, MF_TYPE_Q8_0};
    mf_error err = {0};
    w.seed = w.random = seed;
    const char *model = models[below(4)];
    good(golden_open(&w.f, MF_FIXTURES, model, NULL, 1 + below(3), &err), &err);
    mf_engine_params_init(&w.params);
    w.params.n_ctx = MF_KV_BLOCK * (3 + below(9)) - below(30);
    w.params.n_batch = 1 + below(90), w.params.max_seqs = PAIRS, w.params.max_outs = 1 + below(6);
    w.params.kv_type = cells[below(golden_wide(model) ? 3 : 2)], w.params.kv_share = below(4) > 0;
    good((w.warm = mf_engine_new(w.f.model, &w.f.devices, &w.params, &err)) != NULL, &err);
    for (int i = 0; i < OPERATIONS; i++) operate();
    for (int i = 0; i < PAIRS; i++) {
        if (w.pairs[i].warm.seq && settle(&w.pairs[i])) compare(&w.pairs[i]);
        close_pair(&w.pairs[i]);
    }
    mf_kv_stats stats = mf_engine_kv_stats(w.warm);
    CHECK(stats.blocks_used == 0 && stats.blocks_shared == 0);
    w.n_found += (long)stats.hit_cells;
    mf_engine_free(w.warm);
    fixture_close(&w.f);
}

static void a_shared_engine_computes_what_each_sequence_gets_alone(void **state) {
    (void)state;
    const char *first = getenv("MINFER_WARM_SEED"), *rounds = getenv("MINFER_WARM_ROUNDS");
    uint64_t seed = first ? strtoull(first, NULL, 10) : 1, n = rounds ? strtoull(rounds, NULL, 10) : 12;
    mf_sampler_params_init(&w.sampling);
    w.sampling.temp = 3, w.sampling.top_k = 0, w.sampling.top_p = 1, w.sampling.repeat_penalty = 1;
    char folder[64];
    assert_true(folder_make(folder, "warm"));
    snprintf(w.path, sizeof w.path, "%s/it.kv", folder);
    for (uint64_t i = 0; i < n; i++) one_round(seed + i);
    unlink(w.path);
    rmdir(folder);
    print_message("%ld rows compared, %ld cells found, %ld times given back, %ld shifts, %ld sessions, %ld refusals\n",
                  w.n_rows, w.n_found, w.n_given_back, w.n_shifts, w.n_sessions, w.n_refused);
    assert_true(w.n_rows > 1000 && w.n_found > 1000 && w.n_given_back > 20 && w.n_shifts > 10 && w.n_sessions > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_shared_engine_computes_what_each_sequence_gets_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
