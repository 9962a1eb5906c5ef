#include "cli/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#define ENDING 64 // tokens at the end of a prompt in which a mark is looked for

typedef struct run {
    mf_answer *a;
    const mf_loaded *l;
    const mf_answer_request *request;
    mf_engine *engine;
    mf_sequence *seq;
    float *logits; // a copy of the last row, where log-probabilities are wanted
} run;

static void keep_logits(void *arg, mf_sequence *seq, int32_t position, const float *logits, int32_t n_vocab) {
    (void)seq, (void)position;
    memcpy(((run *)arg)->logits, logits, (size_t)n_vocab * sizeof *logits);
}

static bool add_logprobs(run *r, int32_t token, mf_error *err) {
    mf_answer *a = r->a;
    int32_t ids[MF_SAMPLER_LOGPROBS_MAX];
    float values[MF_SAMPLER_LOGPROBS_MAX], own;
    int n = mf_sampler_logprobs(r->logits, r->l->model->hparams.n_vocab, token, &own, a->n_top, ids, values, err);
    if (n < 0) return false;
    bool ok = mf_array_push(&a->logprobs, ((mf_logprob_entry){token, own}));
    for (int i = 0; i < a->n_top && ok; i++) {
        mf_logprob_entry entry = {i < n ? ids[i] : -1, i < n ? values[i] : 0};
        ok = mf_array_push(&a->logprobs, entry);
    }
    return ok || mf_fail_memory(err, 0, "the log-probabilities");
}

// Shows the text that came; false when nobody reads it any more.
static bool show(run *r) {
    mf_stream *s = &r->a->stream;
    mf_buf_add(&r->a->text, s->out.data, s->out.len);
    bool ok = s->out.len == 0 || mf_think_write(&r->a->think, r->request->out, (mf_str){s->out.data, s->out.len});
    mf_stream_taken(s);
    return ok;
}

// Ends an answer whose text could not be shown: nobody reads it any more, or, with no output, memory is out.
static void not_shown(run *r) {
    r->a->finish = r->request->out ? "cancelled" : "error";
    if (!r->request->out) mf_fail_memory(&r->a->error, 0, "the answer");
}

// The mark of a thought that a control token is; NULL: it is none. The text of other control tokens is left out.
static const char *mark_of(const run *r, int32_t token) {
    const mf_tokenizer *t = r->l->tokenizer;
    const char *marks[] = {r->request->marks->open, r->request->marks->close};
    for (size_t i = 0; i < 2; i++)
        if (mf_tokenizer_find(t, mf_str_of(marks[i])) == token && mf_tokenizer_type(t, token) == MF_TOKEN_CONTROL)
            return marks[i];
    return NULL;
}

static bool take_text(run *r, int32_t token) {
    if (token >= mf_tokenizer_n_vocab(r->l->tokenizer)) return true;
    const char *mark = mark_of(r, token);
    return mark ? mf_stream_text(&r->a->stream, mf_str_of(mark)) : mf_stream_token(&r->a->stream, token);
}

// Takes a generated token that is a part of the text. False ends the answer, with a->finish set.
static bool take_token(run *r, int32_t token) {
    mf_answer *a = r->a;
    bool ok = mf_array_push(&a->ids, token) || mf_fail_memory(&a->error, 0, "the answer");
    if (ok && a->n_top >= 0) ok = add_logprobs(r, token, &a->error);
    if (!ok) return a->finish = "error", false;
    bool goes_on = take_text(r, token);
    if (a->stream.held.failed || a->stream.out.failed || a->text.failed)
        return mf_fail_memory(&a->error, 0, "the answer"), a->finish = "error", false;
    if (!show(r)) return not_shown(r), false;
    if (!goes_on) a->finish = "stop";
    return goes_on;
}

static void take_event(run *r, const mf_event *e) {
    mf_answer *a = r->a;
    a->n_generated += e->token >= 0;
    if (e->finish == MF_FINISH_ERROR) {
        a->finish = "error";
        a->error = e->error;
        return;
    }
    if (e->finish == MF_FINISH_CONSTRAINT) {
        a->finish = "constraint";
        a->error = e->error;
        return;
    }
    bool ends_text = e->finish == MF_FINISH_STOP;
    if (e->token >= 0 && !ends_text && !take_token(r, e->token)) return;
    if (ends_text && e->token >= 0 && e->token < mf_tokenizer_n_vocab(r->l->tokenizer))
        mf_stream_ending(&a->stream, e->token);
    if (e->finish != MF_FINISH_NONE) a->finish = ends_text ? "stop" : "length";
}

static void loop(run *r) {
    mf_answer *a = r->a;
    mf_progress progress;
    mf_progress_begin(&progress, "reading the prompt");
    uint64_t start = mf_clock_ns(), first = 0;
    a->n_ctx = mf_sequence_n_ctx(r->seq);
    int32_t before = mf_sequence_n_evaluated(r->seq), end_of_prompt = mf_sequence_n_tokens(r->seq);
    while (!a->finish) {
        const mf_event *events;
        size_t n = 0;
        if (mf_interrupted()) {
            a->finish = "cancelled";
        } else if (!mf_engine_step(r->engine, &events, &n, &a->error)) {
            a->finish = "error";
        } else {
            int32_t done = mf_sequence_n_evaluated(r->seq);
            // Behind the prompt the line is the answer's: the bar must not come back.
            if (!first && done >= end_of_prompt) {
                first = mf_clock_ns();
                mf_progress_end(&progress);
            } else if (!first) {
                mf_progress_update(&progress, (double)(done - before) / (end_of_prompt - before));
            }
            for (size_t i = 0; i < n && !a->finish; i++) take_event(r, &events[i]);
            if (!a->finish && mf_engine_idle(r->engine)) a->finish = "length";
        }
    }
    mf_progress_end(&progress);
    uint64_t end = mf_clock_ns();
    a->prompt_seconds = mf_clock_seconds(start, first ? first : end);
    a->decode_seconds = first ? mf_clock_seconds(first, end) : 0;
    a->kv = mf_engine_kv_stats(r->engine);
    a->n_dropped = mf_stream_finish(&a->stream);
    show(r);
    if (a->stream.held.failed || a->stream.out.failed || a->text.failed)
        mf_fail_memory(&a->error, 0, "the answer"), a->finish = "error";
    if (!mf_think_end(&a->think, r->request->out)) not_shown(r);
}

bool mf_answer_begins_open(const mf_tokenizer *t, const int32_t *ids, size_t n, const mf_reasoning_marks *marks) {
    mf_buf text = {0};
    for (size_t i = n > ENDING ? n - ENDING : 0; i < n; i++)
        if (ids[i] < mf_tokenizer_n_vocab(t)) mf_tokenizer_piece(t, ids[i], true, &text);
    size_t len = text.len, mark = strlen(marks->open);
    while (len && strchr(" \t\r\n", text.data[len - 1])) len--;
    bool open = text.data && len >= mark && memcmp(text.data + len - mark, marks->open, mark) == 0;
    free(text.data);
    return open;
}

static void begin_text(run *r, const mf_options *o, const int32_t *prompt, size_t n) {
    mf_think_init(&r->a->think, o, r->request->marks, mf_answer_begins_open(r->l->tokenizer, prompt, n, r->request->marks));
}

bool mf_answer_make(mf_answer *a, const mf_loaded *l, const mf_options *o, const mf_answer_request *request, mf_error *err) {
    *a = (mf_answer){.n_top = o->logprobs, .n_prompt = (int32_t)request->n_prompt};
    mf_stream_init(&a->stream, l->tokenizer, o->stop.data, o->stop.len);
    run r = {.a = a, .l = l, .request = request, .engine = l->engine, .seq = request->sequence};
    if (r.seq) {
        a->n_top = -1;
        a->n_prompt = mf_sequence_n_tokens(r.seq) - mf_sequence_n_evaluated(r.seq);
        begin_text(&r, o, mf_sequence_tokens(r.seq), (size_t)mf_sequence_n_tokens(r.seq));
        loop(&r);
        return true;
    }
    begin_text(&r, o, request->prompt, request->n_prompt);
    mf_sequence_params params;
    mf_sequence_params_init(&params);
    params.sampler = o->n_predict == 0 ? NULL : request->sampler;
    params.max_tokens = o->n_predict;
    params.stop = request->eog;
    params.n_stop = o->ignore_eos ? 0 : request->n_eog;
    params.constraint = request->constraint;
    params.ignore_ends = o->ignore_eos;
    if (a->n_top >= 0) {
        size_t n_vocab = (size_t)l->model->hparams.n_vocab;
        r.logits = mf_alloc(n_vocab, sizeof *r.logits);
        if (!r.logits) return mf_fail_memory(err, n_vocab * sizeof *r.logits, "the log-probabilities");
        params.on_logits = keep_logits;
        params.arg = &r;
    }
    r.seq = mf_sequence_new(l->engine, &params, err);
    bool ok = r.seq && mf_sequence_append(r.seq, request->prompt, request->n_prompt, err);
    if (ok) loop(&r);
    mf_sequence_free(r.seq);
    free(r.logits);
    return ok;
}

void mf_answer_free(mf_answer *a) {
    mf_stream_free(&a->stream);
    mf_think_free(&a->think);
    free(a->text.data);
    free(a->ids.data);
    free(a->logprobs.data);
}

bool mf_answer_failed(const mf_answer *a) { return strcmp(a->finish, "error") == 0 || strcmp(a->finish, "constraint") == 0; }

void mf_answer_note_end(const mf_answer *a, const mf_loaded *l, const mf_options *o) {
    int32_t most = l->model->hparams.n_ctx_train;
    bool full = strcmp(a->finish, "length") == 0 && o->n_predict != a->n_generated;
    if (full)
        mf_log(MF_LOG_NOTICE, "the answer is cut off: prompt and answer fill the context of %d tokens%s", a->n_ctx,
               a->n_ctx < most ? "; --ctx makes it larger" : ", the model's maximum");
    if (a->think.cut && a->n_generated > 0)
        mf_log(MF_LOG_NOTICE, "the answer ended inside the model's thinking: the thought is cut, and nothing was answered");
}

bool mf_answer_open_line(const mf_answer *a, const mf_options *o) {
    const mf_buf *shown = o->hide_thinking ? &a->think.answer : &a->text;
    return shown->len == 0 || shown->data[shown->len - 1] != '\n';
}

double mf_answer_prompt_speed(const mf_answer *a) { return a->prompt_seconds > 0 ? a->n_prompt / a->prompt_seconds : 0; }

double mf_answer_decode_speed(const mf_answer *a) {
    int32_t n = a->n_generated - 1;
    return n > 0 && a->decode_seconds > 0 ? n / a->decode_seconds : 0;
}
