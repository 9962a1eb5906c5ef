// Sequences: a coat over mf_sequence that owns what the caller's options pointed to and turns tokens into text.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/mem.h"

// The sampler's config with the arrays it borrows.
typedef struct sampler_config {
    mf_sampler_params params;
    mf_logit_bias *biases;
    mf_token_run *breakers;
} sampler_config;

static void copy_numbers(const minfer_sampling *s, mf_sampler_params *p) {
    p->seed = s->seed;
    p->temp = s->temp;
    p->top_k = s->top_k;
    p->top_p = s->top_p;
    p->min_p = s->min_p;
    p->typical = s->typical;
    p->top_n_sigma = s->top_n_sigma;
    p->xtc_probability = s->xtc_probability;
    p->xtc_threshold = s->xtc_threshold;
    p->repeat_penalty = s->repeat_penalty;
    p->frequency_penalty = s->frequency_penalty;
    p->presence_penalty = s->presence_penalty;
    p->repeat_last_n = s->repeat_last_n;
    p->dry_multiplier = s->dry_multiplier;
    p->dry_base = s->dry_base;
    p->dry_allowed_length = s->dry_allowed_length;
    p->dry_penalty_last_n = s->dry_penalty_last_n;
    p->mirostat = s->mirostat;
    p->mirostat_tau = s->mirostat_tau;
    p->mirostat_eta = s->mirostat_eta;
    p->mirostat_m = s->mirostat_m;
}

static bool copy_lists(const minfer_sampling *s, sampler_config *c, mf_error *err) {
    size_t n_bias = s->n_logit_bias, n_runs = s->n_dry_sequence_breakers;
    if ((n_bias && !mf_api_need(s->logit_bias, "the list of logit biases", err)) ||
        (n_runs && !mf_api_need(s->dry_sequence_breakers, "the list of sequence breakers", err)))
        return false;
    c->biases = mf_alloc(n_bias, sizeof *c->biases);
    c->breakers = mf_alloc(n_runs, sizeof *c->breakers);
    if (!c->biases || !c->breakers) return mf_fail_memory(err, n_bias * sizeof *c->biases, "the sampler's lists");
    for (size_t i = 0; i < n_bias; i++) c->biases[i] = (mf_logit_bias){s->logit_bias[i].token, s->logit_bias[i].bias};
    for (size_t i = 0; i < n_runs; i++) {
        c->breakers[i] = (mf_token_run){s->dry_sequence_breakers[i].ids, s->dry_sequence_breakers[i].n};
        if (c->breakers[i].len && !mf_api_need(c->breakers[i].ids, "a sequence breaker", err)) return false;
    }
    c->params.logit_bias = c->biases, c->params.n_logit_bias = n_bias;
    c->params.dry_sequence_breakers = c->breakers, c->params.n_dry_sequence_breakers = n_runs;
    return true;
}

static bool sampler_config_make(const minfer_model *m, const minfer_sampling *given, sampler_config *c, mf_error *err) {
    minfer_sampling s;
    if (!mf_api_sampling_for(m, given, &s, err)) return false;
    mf_sampler_params_init(&c->params);
    copy_numbers(&s, &c->params);
    return copy_lists(&s, c, err);
}

static void sampler_config_free(sampler_config *c) {
    free(c->biases);
    free(c->breakers);
}

// The ids that end an answer: the caller's and the model's.
static bool collect_stops(minfer_sequence *s, const minfer_sequence_options *o, mf_error *err) {
    const minfer_model *m = s->owner->model;
    if (o->n_stop_tokens && !mf_api_need(o->stop_tokens, "the list of stop tokens", err)) return false;
    int32_t n_vocab = m->model->hparams.n_vocab;
    bool ok = true;
    for (size_t i = 0; i < o->n_stop_tokens && ok; i++) {
        int32_t id = o->stop_tokens[i];
        if (id < 0 || id >= n_vocab)
            return mf_fail(err, MF_ERR_ARGUMENT, "stop token %zu is %d; the vocabulary has %d ids", i, id, n_vocab);
        ok = mf_array_push(&s->stop, id);
    }
    for (size_t i = 0; i < m->ends.len && !o->ignore_end && ok; i++) ok = mf_array_push(&s->stop, m->ends.data[i]);
    return ok || mf_fail_memory(err, s->stop.len * sizeof *s->stop.data, "the stop tokens");
}

static bool copy_stop_texts(minfer_sequence *s, const minfer_sequence_options *o, mf_error *err) {
    if (o->n_stop_texts == 0) return true;
    if (!mf_api_need(o->stop_texts, "the list of stop texts", err)) return false;
    if (!s->owner->model->tokenizer)
        return mf_fail(err, MF_ERR_UNSUPPORTED, "stop texts need a tokenizer, and the model was opened without one");
    for (size_t i = 0; i < o->n_stop_texts; i++) {
        if (!mf_api_need(o->stop_texts[i], "a stop text", err)) return false;
        size_t len = strlen(o->stop_texts[i]);
        if (len == 0 || len > MF_STREAM_STOP_MAX)
            return mf_fail(err, MF_ERR_ARGUMENT, "stop text %zu has %zu bytes; it must have 1 to %d", i, len,
                           MF_STREAM_STOP_MAX);
        char *copy = mf_copy_text(o->stop_texts[i], len);
        if (!copy || !mf_array_push(&s->stop_texts, copy)) {
            free(copy);
            return mf_fail_memory(err, len, "the stop texts");
        }
    }
    return true;
}

// Another model's constraint would be about other tokens, which may be gone before the sequence is.
static bool check_constraint(const minfer_model *m, const minfer_sequence_options *o, mf_error *err) {
    if (!o->constraint) return true;
    if (o->constraint->model != m) return mf_fail(err, MF_ERR_ARGUMENT, "the constraint is for answers of another model");
    return !o->evaluate_only ||
           mf_fail(err, MF_ERR_ARGUMENT, "a constraint is for answers, and evaluate_only asks for none");
}

static void on_logits(void *arg, mf_sequence *sequence, int32_t position, const float *logits, int32_t n_vocab) {
    (void)sequence;
    minfer_sequence *s = arg;
    if (s->free_after) return;
    mf_api_publish_sequence(s);
    mf_float_leave(&s->owner->host);
    s->on_logits(s->arg, s, position, logits, n_vocab);
    s->owner->host = mf_float_enter();
}

static bool start(minfer_sequence *s, const minfer_sequence_options *o, mf_error *err) {
    sampler_config config = {0};
    bool ok = check_constraint(s->owner->model, o, err) &&
              (o->evaluate_only || sampler_config_make(s->owner->model, o->sampling, &config, err)) &&
              collect_stops(s, o, err) && copy_stop_texts(s, o, err);
    if (ok) {
        mf_sequence_params p;
        mf_sequence_params_init(&p);
        p.sampler = o->evaluate_only ? NULL : &config.params;
        p.max_tokens = o->max_tokens;
        p.stop = s->stop.data, p.n_stop = s->stop.len;
        p.logits_from = o->all_logits ? 0 : -1;
        p.on_logits = o->on_logits ? on_logits : NULL;
        p.arg = s;
        p.constraint = o->constraint ? o->constraint->constraint : NULL;
        p.ignore_ends = o->ignore_end;
        s->sequence = mf_sequence_new(s->owner->engine, &p, err);
    }
    sampler_config_free(&config);
    return s->sequence != NULL;
}

static void free_own(minfer_sequence *s) {
    for (size_t i = 0; i < s->stop_texts.len; i++) free(s->stop_texts.data[i]);
    free(s->stop_texts.data);
    free(s->stop.data);
    mf_stream_free(&s->stream);
    free(s);
}

minfer_sequence *mf_api_sequence_new(minfer_engine *e, const minfer_sequence_options *options, mf_error *err) {
    minfer_sequence_options o;
    if (!mf_api_need(e, "the engine", err) || !mf_api_check_process(e->model, err) ||
        !mf_api_sequence_options(options, &o, err))
        return NULL;
    if (e->stepping) return mf_fail(err, MF_ERR_ARGUMENT, "a sequence was asked for inside a step"), NULL;
    if (o.max_tokens < -1 || o.max_tokens == 0)
        return mf_fail(err, MF_ERR_ARGUMENT, "max_tokens is %d; it must be -1, or 1 and more", o.max_tokens), NULL;
    int32_t slot = 0;
    while (slot < e->max_sequences && e->sequences[slot]) slot++;
    if (slot == e->max_sequences)
        return mf_fail(err, MF_ERR_LIMIT, "all %d sequences of the engine are in use", e->max_sequences), NULL;
    minfer_sequence *s = mf_alloc(1, sizeof *s);
    if (!s) return mf_fail_memory(err, sizeof *s, "a sequence"), NULL;
    *s = (minfer_sequence){.owner = e, .slot = slot, .on_logits = o.on_logits, .arg = o.arg};
    if (!start(s, &o, err)) {
        free_own(s);
        return NULL;
    }
    mf_stream_init(&s->stream, e->model->tokenizer, (const char *const *)s->stop_texts.data, s->stop_texts.len);
    e->sequences[slot] = s;
    e->n_sequences++;
    mf_api_publish(e);
    return s;
}

minfer_sequence *minfer_sequence_new(minfer_engine *engine, const minfer_sequence_options *options, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    minfer_sequence *s = mf_api_sequence_new(engine, options, &err);
    if (!s) mf_api_refuse(error, &err);
    return s;
}

void minfer_sequence_free(minfer_sequence *s) {
    if (!s) return;
    minfer_engine *e = s->owner;
    if (e->stepping) { // the step holds on to it
        mf_sequence_stop(s->sequence);
        s->free_after = true;
        return;
    }
    minfer_session_close(s);
    mf_api_conversation_free(s->conversation);
    mf_sequence_free(s->sequence);
    e->sequences[s->slot] = NULL;
    e->n_sequences--;
    free_own(s);
    mf_api_publish(e);
}

void mf_api_publish_sequence(minfer_sequence *s) {
    atomic_store(&s->n_evaluated, mf_sequence_n_evaluated(s->sequence));
    atomic_store(&s->n_cached, mf_sequence_n_cached(s->sequence));
    atomic_store(&s->idle, mf_sequence_idle(s->sequence));
}

bool mf_api_check_open(const minfer_sequence *s, mf_error *err) {
    if (!mf_api_need(s, "the sequence", err)) return false;
    if (!mf_api_check_process(s->owner->model, err)) return false;
    if (s->owner->stepping) return mf_fail(err, MF_ERR_ARGUMENT, "a sequence was to be changed inside a step");
    return !s->failed || mf_fail(err, MF_ERR_ARGUMENT, "the sequence ended with an error: %.300s", s->error.text);
}

// Refuses a sequence whose tokens are not the caller's to change.
static bool check_free(const minfer_sequence *s, mf_error *err) {
    if (!mf_api_check_open(s, err)) return false;
    return !s->conversation ||
           mf_fail(err, MF_ERR_ARGUMENT, "the sequence is a conversation's, which alone changes its tokens");
}

static bool append(minfer_sequence *s, const int32_t *ids, size_t n, mf_error *err) {
    if (!check_free(s, err)) return false;
    if (n == 0) return true;
    if (!mf_api_need(ids, "the list of ids", err)) return false;
    int32_t before = mf_sequence_n_tokens(s->sequence);
    bool ok = mf_sequence_append(s->sequence, ids, n, err);
    if (ok)
        mf_stream_restart(&s->stream);
    else
        mf_sequence_truncate(s->sequence, before); // the prefix cache may have failed behind the append
    mf_api_publish(s->owner);
    return ok;
}

bool minfer_append(minfer_sequence *sequence, const int32_t *ids, size_t n, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    return append(sequence, ids, n, &err) || mf_api_refuse(error, &err);
}

bool minfer_append_text(minfer_sequence *s, const char *text, size_t len, unsigned flags, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    mf_token_array ids = {0};
    bool ok = check_free(s, &err) && mf_api_encode(s->owner->model, text, len, flags, &ids, &err) &&
              append(s, ids.data, ids.len, &err);
    free(ids.data);
    return ok || mf_api_refuse(error, &err);
}

// A template writes conversations from their beginning: what stands in the sequence is not among the messages.
static bool check_begins(const minfer_sequence *s, mf_error *err) {
    int32_t n = mf_sequence_n_tokens(s->sequence);
    return n == 0 || mf_fail(err, MF_ERR_ARGUMENT,
                             "minfer_append_chat begins a conversation, and the sequence has %d tokens: further turns are a "
                             "minfer_conversation's",
                             n);
}

bool minfer_append_chat(minfer_sequence *s, const minfer_message *messages, size_t n_messages, bool open_answer,
                        minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    mf_token_array ids = {0};
    bool ok = check_free(s, &err) && check_begins(s, &err) &&
              mf_api_encode_chat(s->owner->model, messages, n_messages, open_answer, &ids, &err) &&
              append(s, ids.data, ids.len, &err);
    free(ids.data);
    return ok || mf_api_refuse(error, &err);
}

static bool truncate_at(minfer_sequence *s, int32_t n, mf_error *err) {
    if (!check_free(s, err)) return false;
    if (n < 0) return mf_fail(err, MF_ERR_ARGUMENT, "a sequence can't be truncated to %d tokens", n);
    if (n >= mf_sequence_n_tokens(s->sequence)) return true;
    mf_sequence_truncate(s->sequence, n);
    mf_stream_restart(&s->stream);
    mf_api_publish(s->owner);
    return true;
}

bool minfer_truncate(minfer_sequence *sequence, int32_t n, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    return truncate_at(sequence, n, &err) || mf_api_refuse(error, &err);
}

bool minfer_shift(minfer_sequence *s, int32_t n_keep, int32_t n_discard, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    bool ok = check_free(s, &err) && mf_sequence_shift(s->sequence, n_keep, n_discard, &err);
    if (ok) mf_api_publish(s->owner);
    return ok || mf_api_refuse(error, &err);
}

void minfer_stop(minfer_sequence *s) {
    mf_sequence_stop(s->sequence);
    mf_api_publish(s->owner);
}

static bool resume(minfer_sequence *s, mf_error *err) {
    if (!mf_api_check_open(s, err)) return false;
    if (s->conversation && !mf_api_conversation_answers(s->conversation))
        return mf_fail(err, MF_ERR_ARGUMENT, "the conversation awaits no answer");
    if (s->stream.stopped_by)
        return mf_fail(err, MF_ERR_ARGUMENT, "the answer has ended at the stop text '%.200s'", s->stream.stopped_by);
    return mf_sequence_resume(s->sequence, err);
}

bool minfer_resume(minfer_sequence *s, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    if (!resume(s, &err)) return mf_api_refuse(error, &err);
    mf_api_publish(s->owner);
    return true;
}

const int32_t *minfer_sequence_tokens(const minfer_sequence *sequence, size_t *n) {
    if (n) *n = (size_t)mf_sequence_n_tokens(sequence->sequence);
    return mf_sequence_tokens(sequence->sequence);
}

int32_t minfer_sequence_n_evaluated(const minfer_sequence *s) { return atomic_load(&s->n_evaluated); }
int32_t minfer_sequence_n_cached(const minfer_sequence *s) { return atomic_load(&s->n_cached); }
bool minfer_sequence_idle(const minfer_sequence *s) { return atomic_load(&s->idle); }
void *minfer_sequence_arg(const minfer_sequence *s) { return s->arg; }
minfer_engine *minfer_sequence_engine(const minfer_sequence *s) { return s->owner; }
const char *minfer_sequence_stop_text(const minfer_sequence *s) { return s->stream.stopped_by; }
