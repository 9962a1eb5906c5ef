#include "cli/sampling.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/breakers.h"
#include "api/sampling_keys.h"
#include "base/log.h"
#include "base/random.h"
#include "cli/flags.h"

// The flag that sets a field of the sampler: "--top-k" for "top_k".
static void flag_of_field(const char *field, char flag[64]) {
    snprintf(flag, 64, "--%s", field);
    for (char *p = flag; *p; p++)
        if (*p == '_') *p = '-';
}

// What the file brings, and how it is said.
typedef struct file_defaults {
    const mf_options *o;
    mf_buf said;
} file_defaults;

// A flag beats the file.
static bool is_wanted(void *arg, const char *field) {
    const mf_options *o = ((file_defaults *)arg)->o;
    char flag[64];
    flag_of_field(field, flag);
    return !mf_flag_given(o, flag) && !(o->greedy && strcmp(field, "temp") == 0);
}

static void note_used(void *arg, const char *field, const char *value) {
    char flag[64];
    flag_of_field(field, flag);
    mf_buf_printf(&((file_defaults *)arg)->said, " %s %s", flag, value);
}

static bool read_file_defaults(const mf_options *o, const mf_gguf *file, mf_sampler_params *p, mf_error *err) {
    file_defaults d = {.o = o};
    mf_sampling_keys_ask ask = {is_wanted, note_used, &d};
    bool ok = mf_sampling_keys_read(file, p, &ask, err);
    if (ok && d.said.len) mf_log(MF_LOG_NOTICE, "the file's own sampling defaults:%s", d.said.data);
    if (ok && mf_gguf_find(file, "general.sampling.sequence"))
        mf_log(MF_LOG_NOTICE, "general.sampling.sequence is not used: the order of the samplers is fixed");
    free(d.said.data);
    return ok;
}

// Ids as in "198;13,2": sequences apart by semicolons, their ids by commas.
static bool is_id_list(const char *text) {
    for (const char *p = text; *p; p++) {
        bool digit = *p >= '0' && *p <= '9', after_digit = p > text && p[-1] >= '0' && p[-1] <= '9';
        if (!digit && !((*p == ',' || *p == ';') && after_digit && p[1])) return false;
    }
    return *text != 0;
}

// Closes the breaker whose ids began at `first`. The pointer is set when all ids are there.
static bool end_breaker(mf_sampling *s, size_t first) {
    mf_token_run run = {NULL, s->ids.len - first};
    return mf_array_push(&s->breakers, run);
}

static bool add_id_list(mf_sampling *s, const char *text, mf_error *err) {
    size_t first = s->ids.len;
    for (const char *p = text; *p;) {
        size_t len = strcspn(p, ",;");
        int64_t id;
        if (!mf_parse_i64((mf_str){p, len}, &id) || id > INT32_MAX)
            return mf_fail(err, MF_ERR_ARGUMENT, "--dry-sequence-breakers: the id %.*s is too large",
                           (int)(len < 40 ? len : 40), p);
        bool ok = mf_array_push(&s->ids, (int32_t)id);
        bool last = p[len] != ',';
        if (ok && last) ok = end_breaker(s, first);
        if (last) first = s->ids.len;
        if (!ok) return mf_fail_memory(err, 0, "the sequence breakers");
        p += len + (p[len] != 0);
    }
    return true;
}

static bool add_text(mf_sampling *s, const mf_tokenizer *tokenizer, const char *text, mf_error *err) {
    mf_breaker_text breaker;
    if (!mf_breaker_make(tokenizer, mf_str_of(text), &breaker, err)) return mf_fail_prefix(err, "--dry-sequence-breakers");
    if (mf_array_push(&s->texts, breaker)) return true;
    free((void *)breaker.tokens);
    return mf_fail_memory(err, 0, "the sequence breakers");
}

static void drop_breakers(mf_sampling *s) {
    for (size_t i = 0; i < s->texts.len; i++) free((void *)s->texts.data[i].tokens);
    s->ids.len = s->breakers.len = s->texts.len = 0;
}

static bool add_breaker(mf_sampling *s, const mf_tokenizer *tokenizer, const char *text, mf_error *err) {
    if (strcmp(text, "none") == 0) return drop_breakers(s), true;
    return is_id_list(text) ? add_id_list(s, text, err) : add_text(s, tokenizer, text, err);
}

static bool add_breakers(mf_sampling *s, const mf_options *o, const mf_tokenizer *tokenizer, mf_error *err) {
    for (size_t i = 0; i < o->breakers.len; i++)
        if (!add_breaker(s, tokenizer, o->breakers.data[i], err)) return false;
    const int32_t *at = s->ids.data;
    for (size_t i = 0; i < s->breakers.len; at += s->breakers.data[i++].len) s->breakers.data[i].ids = at;
    s->params.dry_sequence_breakers = s->breakers.data;
    s->params.n_dry_sequence_breakers = s->breakers.len;
    s->params.dry_breaker_texts = s->texts.data;
    s->params.n_dry_breaker_texts = s->texts.len;
    return true;
}

static bool add_biases(mf_sampling *s, const mf_options *o, const int32_t *eog, size_t n_eog, mf_error *err) {
    bool ok = true;
    for (size_t i = 0; i < o->logit_bias.len && ok; i++) ok = mf_array_push(&s->biases, o->logit_bias.data[i]);
    for (size_t i = 0; i < n_eog && o->ignore_eos && ok; i++) {
        mf_logit_bias never = {eog[i], -100};
        ok = mf_array_push(&s->biases, never);
    }
    s->params.logit_bias = s->biases.data;
    s->params.n_logit_bias = s->biases.len;
    return ok || mf_fail_memory(err, 0, "the logit biases");
}

bool mf_sampling_make(mf_sampling *s, const mf_options *o, const mf_gguf *file, const mf_tokenizer *tokenizer,
                      const int32_t *eog, size_t n_eog, int32_t n_vocab, mf_error *err) {
    *s = (mf_sampling){.params = o->sampler};
    if (!read_file_defaults(o, file, &s->params, err)) return false;
    if (o->greedy) s->params.temp = 0;
    s->params.seed = o->seed >= 0 ? (uint64_t)o->seed : mf_random_seed() & INT64_MAX;
    if (o->seed < 0) mf_log(MF_LOG_NOTICE, "seed: %llu", (unsigned long long)s->params.seed);
    return add_breakers(s, o, tokenizer, err) && add_biases(s, o, eog, n_eog, err) &&
           mf_sampler_params_check(&s->params, n_vocab, err);
}

void mf_sampling_free(mf_sampling *s) {
    drop_breakers(s);
    free(s->ids.data);
    free(s->breakers.data);
    free(s->texts.data);
    free(s->biases.data);
    *s = (mf_sampling){0};
}
