// DRY ("don't repeat yourself", p-e-w 2024): a token that would continue a repetition of the last tokens is penalized the more,
// the longer the repetition is.
#include "sample/state.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/real.h"

bool mf_dry_active(const mf_sampler_params *params) { return params->dry_multiplier > 0 && params->dry_penalty_last_n > 0; }

static int by_first_token(const void *a, const void *b) {
    int32_t x = ((const mf_token_run *)a)->ids[0], y = ((const mf_token_run *)b)->ids[0];
    return (x > y) - (x < y);
}

static bool copy_breakers(mf_dry *dry, const mf_sampler_params *params) {
    size_t n = params->n_dry_sequence_breakers, n_ids = 0;
    for (size_t i = 0; i < n; i++) n_ids += params->dry_sequence_breakers[i].len;
    dry->breakers = mf_alloc(n, sizeof *dry->breakers);
    dry->breaker_ids = mf_alloc(n_ids, sizeof *dry->breaker_ids);
    if (!dry->breakers || !dry->breaker_ids) return false;
    int32_t *ids = dry->breaker_ids;
    for (size_t i = 0; i < n; i++) {
        mf_token_run run = params->dry_sequence_breakers[i];
        memcpy(ids, run.ids, run.len * sizeof *ids);
        dry->breakers[i] = (mf_token_run){ids, run.len};
        ids += run.len;
    }
    dry->n_breakers = n;
    if (n > 0) qsort(dry->breakers, n, sizeof *dry->breakers, by_first_token);
    return true;
}

static bool copy_texts(mf_dry *dry, const mf_sampler_params *params) {
    size_t n = params->n_dry_breaker_texts, n_tokens = 0;
    for (size_t i = 0; i < n; i++) n_tokens += params->dry_breaker_texts[i].n;
    dry->texts = mf_alloc(n, sizeof *dry->texts);
    dry->text_tokens = mf_alloc(n_tokens, sizeof *dry->text_tokens);
    dry->open = mf_alloc(n, sizeof *dry->open);
    if (!dry->texts || !dry->text_tokens || !dry->open) return false;
    mf_breaker_token *tokens = dry->text_tokens;
    for (size_t i = 0; i < n; i++) {
        mf_breaker_text text = params->dry_breaker_texts[i];
        if (text.n) memcpy(tokens, text.tokens, text.n * sizeof *tokens);
        dry->texts[i] = (mf_breaker_text){tokens, text.n};
        tokens += text.n;
    }
    dry->n_texts = n;
    return true;
}

bool mf_dry_init(mf_dry *dry, const mf_sampler_params *params, int32_t n_vocab, mf_error *err) {
    *dry = (mf_dry){0};
    if (!mf_dry_active(params)) return true;
    size_t n = (size_t)params->dry_penalty_last_n;
    dry->recent = mf_alloc(n, sizeof *dry->recent);
    dry->match = mf_alloc(n, sizeof *dry->match);
    dry->repeat = mf_alloc((size_t)n_vocab, sizeof *dry->repeat);
    if (dry->recent && dry->match && dry->repeat && copy_breakers(dry, params) && copy_texts(dry, params)) return true;
    mf_dry_free(dry);
    return mf_fail_memory(err, (2 * n + (size_t)n_vocab) * sizeof *dry->repeat, "the DRY sampler");
}

void mf_dry_free(mf_dry *dry) {
    free(dry->breakers);
    free(dry->breaker_ids);
    free(dry->texts);
    free(dry->text_tokens);
    free(dry->open);
    free(dry->recent);
    free(dry->match);
    free(dry->repeat);
    *dry = (mf_dry){0};
}

// The breakers that begin with `token`: the first of them, and *n how many.
static const mf_token_run *breakers_of(const mf_dry *dry, int32_t token, size_t *n) {
    size_t low = 0, high = dry->n_breakers;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (dry->breakers[mid].ids[0] < token)
            low = mid + 1;
        else
            high = mid;
    }
    for (high = low; high < dry->n_breakers && dry->breakers[high].ids[0] == token;) high++;
    *n = high - low;
    return dry->breakers + low;
}

// The length of the longest breaker that begins `back` tokens from the end and lies whole in the history; 0 for none.
static size_t breaker_at(const mf_dry *dry, size_t back) {
    size_t n, longest = 0;
    const mf_token_run *run = breakers_of(dry, dry->recent[back], &n);
    for (; n > 0; n--, run++) {
        if (run->len <= longest || run->len > back + 1) continue;
        size_t i = 1;
        while (i < run->len && run->ids[i] == dry->recent[back - i]) i++;
        if (i == run->len) longest = run->len;
    }
    return longest;
}

// How many tokens stand behind the newest breaker: a repetition can't be longer.
static size_t limit_of_repeat(const mf_dry *dry, size_t len) {
    for (size_t back = 0; back < len; back++) {
        size_t breaker = breaker_at(dry, back);
        if (breaker > 0) return back + 1 - breaker;
    }
    return len;
}

// ---- Breakers that are texts

static const mf_breaker_token *effect_of(const mf_breaker_text *text, int32_t token) {
    size_t low = 0, high = text->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (text->tokens[mid].id < token)
            low = mid + 1;
        else
            high = mid;
    }
    return low < text->n && text->tokens[low].id == token ? &text->tokens[low] : NULL;
}

void mf_dry_accept(mf_dry *dry, int32_t token) {
    dry->since++;
    for (size_t i = 0; i < dry->n_texts; i++) {
        const mf_breaker_token *e = effect_of(&dry->texts[i], token);
        uint64_t open = dry->open[i];
        if (e && (e->holds || (open & e->begins))) dry->since = 0;
        dry->open[i] = e ? e->ends | (open & e->inside) << e->len : 0;
    }
}

void mf_dry_clear(mf_dry *dry) {
    for (size_t i = 0; i < dry->n_texts; i++) dry->open[i] = 0;
    dry->since = 0;
}

bool mf_dry_copy(mf_dry *dst, const mf_dry *src) {
    if (dst->n_texts != src->n_texts) return false;
    for (size_t i = 0; i < src->n_texts; i++) dst->open[i] = src->open[i];
    dst->since = src->since;
    return true;
}

static bool is_breaker(const mf_dry *dry, int32_t token) {
    size_t n;
    for (size_t i = 0; i < dry->n_texts; i++) {
        const mf_breaker_token *e = effect_of(&dry->texts[i], token);
        if (e && e->holds) return true;
    }
    const mf_token_run *run = breakers_of(dry, token, &n);
    for (; n > 0; n--, run++)
        if (run->len == 1) return true;
    return false;
}

// The Z function of the newest-first tokens (Gusfield, "Algorithms on Strings, Trees and Sequences", 1.4), in linear time.
static void find_matches(const int32_t *x, size_t len, uint32_t *match) {
    size_t left = 0, right = 0; // [left, right) matches the beginning
    for (size_t k = 1; k < len; k++) {
        size_t n = 0;
        if (k < right) n = match[k - left] < right - k ? match[k - left] : right - k;
        while (k + n < len && x[n] == x[k + n]) n++;
        match[k] = (uint32_t)n;
        if (k + n > right) {
            left = k;
            right = k + n;
        }
    }
}

// The largest whole exponent for which base^exponent is a float.
static double max_exponent(double base) {
    return base > 1.000001 ? (double)(int64_t)(88.7228391 / mf_log64(base)) : FLT_MAX;
}

void mf_stage_dry(mf_sampler *s) {
    const mf_sampler_params *p = &s->params;
    mf_dry *dry = &s->dry;
    if (!mf_dry_active(p)) return;
    size_t len = s->history.len, allowed = (size_t)p->dry_allowed_length;
    if (len > (size_t)p->dry_penalty_last_n) len = (size_t)p->dry_penalty_last_n;
    if (len <= allowed) return;
    for (size_t i = 0; i < len; i++) dry->recent[i] = mf_history_at(&s->history, i);
    size_t limit = limit_of_repeat(dry, len);
    if (limit > dry->since) limit = dry->since;
    if (limit < allowed) return;

    find_matches(dry->recent, len, dry->match);
    // Behind the earlier occurrence that ends k tokens back stands recent[k - 1]; 1 is added so that 0 means none.
    for (size_t k = 1; k < len; k++) {
        size_t n = dry->match[k] < limit ? dry->match[k] : limit;
        uint32_t *repeat = &dry->repeat[dry->recent[k - 1]];
        if (n >= allowed && n + 1 > *repeat) *repeat = (uint32_t)(n + 1);
    }
    double most = max_exponent(p->dry_base);
    for (size_t k = 1; k < len; k++) {
        int32_t token = dry->recent[k - 1];
        uint32_t repeat = dry->repeat[token];
        dry->repeat[token] = 0;
        if (repeat == 0 || is_breaker(dry, token)) continue;
        double exponent = (double)(repeat - 1 - (uint32_t)allowed);
        if (exponent > most) exponent = most;
        s->candidates->logits[token] -= (float)(p->dry_multiplier * mf_pow64(p->dry_base, exponent));
    }
}
