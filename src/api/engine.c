// Engines and the step.
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/cpu.h"
#include "base/mem.h"
#include "engine/memory.h"

#define DEFAULT_CTX 4096 // cells for each sequence

static bool engine_params(const minfer_model *m, const minfer_engine_options *o, mf_engine_params *p, mf_error *err) {
    if (o->n_ctx < MINFER_CTX_AUTO)
        return mf_fail(err, MF_ERR_ARGUMENT, "the context is %d; it must be 0 or more, or MINFER_CTX_AUTO", o->n_ctx);
    static const mf_type types[] = {
        [MINFER_CACHE_F16] = MF_TYPE_F16, [MINFER_CACHE_F32] = MF_TYPE_F32, [MINFER_CACHE_Q8_0] = MF_TYPE_Q8_0};
    if ((unsigned)o->cache_type >= sizeof types / sizeof types[0])
        return mf_fail(err, MF_ERR_ARGUMENT, "the cache type is %d; it must be 0 (f16), 1 (f32) or 2 (q8_0)",
                       (int)o->cache_type);
    mf_engine_params_init(p);
    p->max_seqs = o->max_sequences;
    p->n_batch = o->n_batch;
    p->max_outs = o->max_outputs;
    p->kv_type = types[o->cache_type];
    p->prefix_cache = o->prefix_cache;
    p->kv_share = o->kv_share;
    p->populate = o->populate;
    int32_t most = m->model->hparams.n_ctx_train, window = m->model->hparams.window;
    if (window && window < most) most = window;
    int64_t cells = (int64_t)(most < DEFAULT_CTX ? most : DEFAULT_CTX) * o->max_sequences;
    p->n_ctx = o->n_ctx ? o->n_ctx : cells > INT32_MAX ? INT32_MAX : (int32_t)cells;
    return true;
}

// Holds the parameters against the memory that is free; false with err where they don't fit. The weights are in memory.
static bool fit(const minfer_model *m, mf_engine_params *p, mf_error *err) {
    uint64_t available = mf_memory_available();
    mf_memory_plan plan;
    if (p->n_ctx == MINFER_CTX_AUTO) return mf_memory_auto_ctx(m->model, &m->devices, p, true, available, err);
    return mf_memory_plan_make(m->model, &m->devices, p, true, &plan, err) &&
           mf_memory_check(&plan, available, mf_memory_most_ctx(m->model, p->max_seqs), err);
}

static minfer_engine *make(minfer_model *m, const minfer_engine_options *options, mf_error *err) {
    minfer_engine_options o;
    mf_engine_params p;
    if (!mf_api_need(m, "the model", err) || !mf_api_check_process(m, err) || !mf_api_engine_options(options, &o, err) ||
        !engine_params(m, &o, &p, err))
        return NULL;
    minfer_engine *e = mf_alloc(1, sizeof *e);
    if (!e) return mf_fail_memory(err, sizeof *e, "the engine"), NULL;
    *e = (minfer_engine){.model = m, .max_sequences = o.max_sequences};
    if (pthread_mutex_init(&e->published_lock, NULL) != 0) {
        free(e);
        return mf_fail_memory(err, sizeof *e, "the engine"), NULL;
    }
    mf_api_model_hold(m);
    if (fit(m, &p, err)) e->engine = mf_engine_new(m->model, &m->devices, &p, err); // both refuse numbers out of range
    if (e->engine) {
        e->memory = mf_engine_memory_of(e->engine);
        e->sequences = mf_alloc((size_t)o.max_sequences, sizeof(minfer_sequence *));
        if (e->sequences) return mf_api_publish(e), e;
        mf_fail_memory(err, (size_t)o.max_sequences * sizeof(minfer_sequence *), "the engine");
    }
    minfer_engine_free(e);
    return NULL;
}

minfer_engine *minfer_engine_new(minfer_model *model, const minfer_engine_options *options, minfer_error *error) {
    MF_FLOAT_SCOPE();
    mf_error err = {0};
    minfer_engine *e = make(model, options, &err);
    if (!e) mf_api_refuse(error, &err);
    return e;
}

void minfer_engine_free(minfer_engine *e) {
    if (!e) return;
    if (e->stepping) {
        e->free_after = true;
        return;
    }
    for (int32_t i = 0; i < e->max_sequences && e->sequences; i++) minfer_sequence_free(e->sequences[i]);
    mf_engine_free(e->engine);
    mf_api_model_drop(e->model);
    pthread_mutex_destroy(&e->published_lock);
    free(e->sequences);
    free(e);
}

// ---- What other threads may ask for

void mf_api_publish(minfer_engine *e) {
    mf_kv_stats kv = mf_engine_kv_stats(e->engine);
    bool idle = mf_engine_idle(e->engine);
    for (int32_t i = 0; i < e->max_sequences; i++)
        if (e->sequences[i]) mf_api_publish_sequence(e->sequences[i]);
    pthread_mutex_lock(&e->published_lock);
    e->published = kv;
    e->published_idle = idle;
    pthread_mutex_unlock(&e->published_lock);
}

// The lock is no part of what callers see of an engine.
static mf_kv_stats published(const minfer_engine *engine, bool *idle) {
    minfer_engine *e = (minfer_engine *)(uintptr_t)engine;
    pthread_mutex_lock(&e->published_lock);
    mf_kv_stats kv = e->published;
    *idle = e->published_idle;
    pthread_mutex_unlock(&e->published_lock);
    return kv;
}

void minfer_engine_get_stats(const minfer_engine *e, minfer_engine_stats *stats, size_t size) {
    bool idle;
    mf_kv_stats kv = published(e, &idle);
    minfer_engine_stats own = {.size = size,
                               .weight_bytes = e->model->model->weight_bytes,
                               .kv_bytes = e->memory.kv,
                               .activation_bytes = e->memory.activations,
                               .kv_copies = kv.copies,
                               .kv_hit_cells = kv.hit_cells,
                               .kv_blocks_total = kv.blocks_total,
                               .kv_blocks_used = kv.blocks_used,
                               .kv_blocks_shared = kv.blocks_shared,
                               .kv_blocks_cached = kv.blocks_cached};
    memset(stats, 0, size);
    memcpy(stats, &own, size < sizeof own ? size : sizeof own);
}

bool minfer_idle(const minfer_engine *e) {
    bool idle;
    published(e, &idle);
    return idle;
}

// ---- The step

// Whose event it is: events come nearly in the order of slots, so the search goes on from the last one.
static minfer_sequence *owner_of(const minfer_engine *e, const mf_sequence *sequence, int32_t *hint) {
    for (int32_t i = 0; i < e->max_sequences; i++) {
        int32_t slot = (*hint + i) % e->max_sequences;
        minfer_sequence *s = e->sequences[slot];
        if (s && s->sequence == sequence) return *hint = slot, s;
    }
    return NULL;
}

static minfer_finish finish_of(mf_finish finish) {
    static const minfer_finish table[] = {
        [MF_FINISH_NONE] = MINFER_FINISH_NONE,
        [MF_FINISH_STOP] = MINFER_FINISH_STOP,
        [MF_FINISH_LENGTH] = MINFER_FINISH_LENGTH,
        [MF_FINISH_ERROR] = MINFER_FINISH_ERROR,
        [MF_FINISH_CONSTRAINT] = MINFER_FINISH_CONSTRAINT,
    };
    return table[finish];
}

// Takes an event's token into the text and ends the sequence at a stop text. False: memory is out.
static bool add_text(minfer_sequence *s, const mf_event *in, minfer_finish *finish) {
    const mf_tokenizer *t = s->owner->model->tokenizer;
    mf_stream *stream = &s->stream;
    mf_stream_taken(stream);
    if (!t) return true;
    bool known = in->token >= 0 && in->token < mf_tokenizer_n_vocab(t), ends = in->finish == MF_FINISH_STOP;
    if (known && ends) mf_stream_ending(stream, in->token);
    if (known && !ends && !mf_stream_token(stream, in->token)) {
        mf_sequence_stop(s->sequence);
        *finish = MINFER_FINISH_STOP;
    }
    if (*finish != MINFER_FINISH_NONE) mf_stream_finish(stream);
    return !stream->held.failed && !stream->out.failed &&
           (!s->conversation || mf_api_conversation_take(s->conversation, stream));
}

static minfer_event event_of(minfer_sequence *s, const mf_event *in) {
    mf_error why = in->error;
    minfer_event out = {.sequence = s, .text = "", .token = in->token, .finish = finish_of(in->finish)};
    if (!add_text(s, in, &out.finish)) {
        mf_sequence_stop(s->sequence);
        s->failed = true; // its text has a hole
        mf_fail_memory(&why, s->stream.held.len, "the text");
        out.finish = MINFER_FINISH_ERROR;
    } else if (s->stream.out.len > 0) {
        out.text = s->stream.out.data;
        out.text_len = s->stream.out.len;
    }
    if (out.finish == MINFER_FINISH_ERROR || out.finish == MINFER_FINISH_CONSTRAINT) {
        mf_api_refuse(&s->error, &why);
        out.error = &s->error;
    }
    return out;
}

// What was freed by callbacks of the step goes now. False: the engine itself did.
static bool free_marked(minfer_engine *e, mf_error *err) {
    if (e->free_after) {
        minfer_engine_free(e);
        return mf_fail(err, MF_ERR_CANCELLED, "the engine was freed inside its step");
    }
    for (int32_t i = 0; i < e->max_sequences; i++)
        if (e->sequences[i] && e->sequences[i]->free_after) minfer_sequence_free(e->sequences[i]);
    return true;
}

static bool take_step(minfer_engine *e, minfer_event *events, size_t *n, mf_error *err) {
    const mf_event *list;
    size_t count = 0;
    int32_t hint = 0;
    e->host = mf_float_enter();
    e->stepping = true;
    bool ok = mf_engine_step(e->engine, &list, &count, err);
    e->stepping = false;
    for (size_t i = 0; i < count && !e->free_after; i++) {
        minfer_sequence *s = owner_of(e, list[i].seq, &hint);
        if (!s->free_after) events[(*n)++] = event_of(s, &list[i]);
    }
    mf_float_state host = e->host;
    bool alive = free_marked(e, err);
    if (alive) mf_api_publish(e);
    mf_float_leave(&host);
    return ok && alive;
}

static bool step(minfer_engine *e, minfer_event *events, size_t cap, size_t *n, mf_error *err) {
    if (!mf_api_need(n, "the place for the number of events", err)) return false;
    *n = 0;
    if (!mf_api_need(e, "the engine", err)) return false;
    if (e->stepping) return mf_fail(err, MF_ERR_ARGUMENT, "a step was asked for inside a step");
    if (cap < (size_t)e->n_sequences)
        return mf_fail(err, (mf_code)MINFER_ERROR_SPACE, "there is room for %zu events, and %d sequences can have one", cap,
                       e->n_sequences);
    if (cap > 0 && !mf_api_need(events, "the list of events", err)) return false;
    return mf_api_check_process(e->model, err) && take_step(e, events, n, err);
}

bool minfer_step(minfer_engine *engine, minfer_event *events, size_t cap, size_t *n, minfer_error *error) {
    mf_error err = {0};
    return step(engine, events, cap, n, &err) || mf_api_refuse(error, &err);
}

void minfer_interrupt(minfer_engine *e) { mf_engine_interrupt(e->engine); }
