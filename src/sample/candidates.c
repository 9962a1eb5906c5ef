#include "sample/candidates.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/real.h"

enum {
    BLOCK = MF_LOGITS_BLOCK,
    INSERTION_MAX = 48
};

double mf_sum_of_lanes(const double lane[MF_LOGITS_LANES]) {
    double sum[MF_LOGITS_LANES];
    for (int j = 0; j < MF_LOGITS_LANES; j++) sum[j] = lane[j];
    for (int half = MF_LOGITS_LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) sum[j] += sum[j + half];
    return sum[0];
}

bool mf_candidates_init(mf_candidates *c, int32_t n_vocab, mf_error *err) {
    size_t n_blocks = ((size_t)n_vocab + BLOCK - 1) / BLOCK, n = n_blocks * BLOCK;
    *c = (mf_candidates){.n_vocab = n_vocab, .n_blocks = n_blocks};
    c->logits = mf_alloc(n, sizeof *c->logits);
    c->block_max = mf_alloc(n_blocks, sizeof *c->block_max);
    c->list = mf_alloc(n, sizeof *c->list);
    c->spare = mf_alloc(n, sizeof *c->spare);
    if (!c->logits || !c->block_max || !c->list || !c->spare) {
        mf_candidates_free(c);
        return mf_fail_memory(err, n * (sizeof *c->logits + 2 * sizeof *c->list), "the sampler's candidates");
    }
    for (size_t i = (size_t)n_vocab; i < n; i++) c->logits[i] = -INFINITY;
    return true;
}

void mf_candidates_free(mf_candidates *c) {
    free(c->logits);
    free(c->block_max);
    free(c->list);
    free(c->spare);
    *c = (mf_candidates){0};
}

// Copies a block; not 0 where a logit is NaN or +infinity (both fail the comparison).
static int32_t copy_block(float *restrict to, const float *restrict from) {
    int32_t bad = 0;
    for (int i = 0; i < BLOCK; i++) {
        bad |= !(from[i] <= FLT_MAX);
        to[i] = from[i];
    }
    return bad;
}

// The same for the first n of a block, as a word of bits allows.
static int32_t copy_allowed(float *restrict to, const float *restrict from, size_t n, uint64_t word) {
    int32_t bad = 0;
    for (size_t i = 0; i < n; i++) to[i] = -INFINITY;
    if (n < BLOCK) word &= ((uint64_t)1 << n) - 1;
    for (; word; word &= word - 1) {
        int i = __builtin_ctzll(word);
        bad |= !(from[i] <= FLT_MAX);
        to[i] = from[i];
    }
    return bad;
}

bool mf_candidates_load(mf_candidates *c, const float *logits, const uint64_t *allowed, mf_error *err) {
    size_t n = (size_t)c->n_vocab, i = 0;
    int32_t bad = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        bool all = !allowed || allowed[i / BLOCK] == UINT64_MAX;
        bad |=
            all ? copy_block(c->logits + i, logits + i) : copy_allowed(c->logits + i, logits + i, BLOCK, allowed[i / BLOCK]);
    }
    if (i < n) bad |= copy_allowed(c->logits + i, logits + i, n - i, allowed ? allowed[i / BLOCK] : UINT64_MAX);
    return bad ? mf_logits_refuse(logits, allowed, err) : true;
}

bool mf_logits_refuse(const float *logits, const uint64_t *allowed, mf_error *err) {
    size_t i = 0;
    while (logits[i] <= FLT_MAX || (allowed && !(allowed[i / BLOCK] >> i % BLOCK & 1))) i++;
    return mf_fail(err, MF_ERR_NUMERIC, "the logit of token %zu is %s", i, logits[i] > 0 ? "infinite" : "not a number");
}

// Integers in the order of the floats they stand for (NaN left out; -0 just below +0): a maximum of integers vectorizes.
static int32_t ordered(int32_t bits) { return bits ^ ((bits >> 31) & INT32_MAX); }

float mf_logits_block_max(const float *x) {
    int32_t m = INT32_MIN;
    for (int i = 0; i < BLOCK; i++) {
        int32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        int32_t o = ordered(bits);
        m = o > m ? o : m;
    }
    return mf_bits_f32((uint32_t)ordered(m));
}

bool mf_candidates_scan(mf_candidates *c, mf_error *err) {
    c->max = -INFINITY;
    c->len = 0;
    for (size_t b = 0; b < c->n_blocks; b++) {
        float m = mf_logits_block_max(c->logits + b * BLOCK);
        c->block_max[b] = m;
        if (m > c->max) c->max = m;
    }
    if (c->max < -FLT_MAX)
        return mf_fail(err, MF_ERR_NUMERIC, "no token can be sampled: all %d logits are -infinity", c->n_vocab);
    if (c->max > FLT_MAX)
        return mf_fail(err, MF_ERR_NUMERIC, "the logit of token %d overflowed under bias and penalties",
                       mf_candidates_argmax(c));
    return true;
}

int32_t mf_candidates_argmax(const mf_candidates *c) {
    size_t b = 0;
    while (c->block_max[b] != c->max) b++;
    size_t i = b * BLOCK;
    while (c->logits[i] != c->max) i++;
    return (int32_t)i;
}

// Keys of -0 and +0 are one; the largest float gets the smallest integer.
static uint32_t descending(float key) {
    uint32_t bits = mf_f32_bits(key + 0.0f);
    return bits >> 31 ? bits : bits ^ INT32_MAX;
}

static void insertion_sort(mf_candidate *list, size_t len) {
    for (size_t i = 1; i < len; i++) {
        mf_candidate x = list[i];
        size_t j = i;
        for (; j > 0 && list[j - 1].key < x.key; j--) list[j] = list[j - 1];
        list[j] = x;
    }
}

void mf_candidates_sort(mf_candidates *c) {
    if (c->len <= INSERTION_MAX) {
        insertion_sort(c->list, c->len);
        return;
    }
    uint32_t counts[4][256] = {{0}};
    for (size_t i = 0; i < c->len; i++) {
        uint32_t key = descending(c->list[i].key);
        for (int d = 0; d < 4; d++) counts[d][key >> (8 * d) & 255]++;
    }
    for (int d = 0; d < 4; d++) {
        uint32_t next = 0;
        for (int v = 0; v < 256; v++) {
            uint32_t n = counts[d][v];
            counts[d][v] = next;
            next += n;
        }
        for (size_t i = 0; i < c->len; i++) c->spare[counts[d][descending(c->list[i].key) >> (8 * d) & 255]++] = c->list[i];
        mf_candidate *sorted = c->spare;
        c->spare = c->list;
        c->list = sorted;
    }
}

void mf_candidates_rank(mf_candidates *c) {
    if (c->ranked) return;
    for (size_t i = 0; i < c->len; i++) c->list[i].key = c->list[i].logit;
    mf_candidates_sort(c);
    c->ranked = true;
}

// The k-th largest maximum of a block: at least k logits are as large, and few more in any usual row.
static float kth_block_max(mf_candidates *c, size_t k) {
    for (size_t b = 0; b < c->n_blocks; b++) c->list[b] = (mf_candidate){.key = c->block_max[b]};
    c->len = c->n_blocks;
    mf_candidates_sort(c);
    return c->list[k - 1].key;
}

void mf_candidates_take(mf_candidates *c, size_t k) {
    float floor = -FLT_MAX;
    if (k > 0 && k < c->n_blocks) {
        float kth = kth_block_max(c, k);
        if (kth > floor) floor = kth;
    }
    size_t len = 0;
    for (size_t b = 0; b < c->n_blocks; b++) {
        if (c->block_max[b] < floor) continue;
        for (size_t i = b * BLOCK; i < (b + 1) * BLOCK; i++)
            if (c->logits[i] >= floor) c->list[len++] = (mf_candidate){.id = (int32_t)i, .logit = c->logits[i]};
    }
    c->len = len;
    c->ranked = false;
    if (k == 0 || k >= (size_t)c->n_vocab) return;
    mf_candidates_rank(c);
    if (k < len) c->len = k;
}

float mf_candidates_max(const mf_candidates *c) {
    float max = c->list[0].logit;
    for (size_t i = 1; i < c->len && !c->ranked; i++)
        if (c->list[i].logit > max) max = c->list[i].logit;
    return max;
}

void mf_candidates_keep(mf_candidates *c, float floor) {
    size_t len = 0;
    for (size_t i = 0; i < c->len; i++)
        if (c->list[i].logit >= floor) c->list[len++] = c->list[i];
    c->len = len;
}

double mf_candidates_softmax(mf_candidates *c) {
    float max = mf_candidates_max(c);
    double total = 0, x[MF_EXP64_BLOCK] = {0}, y[MF_EXP64_BLOCK];
    for (size_t i = 0; i < c->len; i += MF_EXP64_BLOCK) {
        size_t n = c->len - i < MF_EXP64_BLOCK ? c->len - i : MF_EXP64_BLOCK;
        for (size_t j = 0; j < n; j++) x[j] = (double)c->list[i + j].logit - max;
        mf_exp64_block(x, y);
        for (size_t j = 0; j < n; j++) total += c->list[i + j].p = (float)y[j];
    }
    return total;
}

size_t mf_candidates_draw(mf_candidates *c, double u) {
    double total = mf_candidates_softmax(c), target = u * total, sum = 0;
    size_t chosen = c->len;
    for (size_t i = 0; i < c->len; i++) {
        sum += c->list[i].p;
        if (chosen == c->len && sum > target) chosen = i;
        c->list[i].p = (float)(c->list[i].p / total);
    }
    return chosen;
}
