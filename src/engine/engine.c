#include "engine/engine.h"

#include <stdlib.h>

#include "base/mem.h"
#include "engine/memory.h"
#include "engine/state.h"

void mf_engine_params_init(mf_engine_params *p) {
    *p = (mf_engine_params){.n_ctx = 4096,
                            .n_batch = 512,
                            .max_seqs = 1,
                            .kv_type = MF_TYPE_F16,
                            .fuse = MF_FUSE_ALL,
                            .prefix_cache = true,
                            .kv_share = true};
}

static bool check_range(const char *name, int32_t value, int32_t low, int32_t high, mf_error *err) {
    return (value >= low && value <= high) ||
           mf_fail(err, MF_ERR_ARGUMENT, "%s is %d; it must be %d to %d", name, value, low, high);
}

// The parameters with what is left open filled in.
static bool settle(const mf_model *model, const mf_engine_params *in, mf_engine_params *p, mf_error *err) {
    *p = *in;
    if (!check_range("the number of sequences", p->max_seqs, 1, 1024, err)) return false;
    if (p->max_outs == 0) p->max_outs = p->max_seqs;
    return check_range("the context", p->n_ctx, 1, mf_memory_most_ctx(model, p->max_seqs), err) &&
           check_range("the batch size", p->n_batch, 1, 8192, err) &&
           check_range("the number of output rows", p->max_outs, 1, 8192, err);
}

static mf_kv_params kv_params(const mf_model *m, const mf_engine_params *p) {
    return (mf_kv_params){.type = p->kv_type,
                          .n_layer = m->hparams.n_layer,
                          .n_head_kv = m->hparams.n_head_kv,
                          .head_dim = m->hparams.head_dim,
                          .n_cells = p->n_ctx,
                          .copies = !p->kv_share};
}

// The most cells of one sequence.
static int32_t cells_of_sequence(const mf_model *m, const mf_engine_params *p) {
    return p->n_ctx < m->hparams.n_ctx_train ? p->n_ctx : m->hparams.n_ctx_train;
}

// The graph after its passes.
static bool compile(const mf_model *model, const mf_device_list *devices, const mf_engine_params *p, mf_graph *g,
                    mf_error *err) {
    if (!mf_model_build(model, cells_of_sequence(model, p), g, err)) return false;
    if (mf_graph_lower(g, err) && mf_graph_fuse(g, p->fuse, err) && mf_graph_assign(g, devices, p->kv_type, err) &&
        mf_graph_schedule(g, err))
        return true;
    mf_graph_free(g);
    return false;
}

// The same with its plan and storage.
static mf_graph_exec *compile_to_run(const mf_model *model, const mf_device_list *devices, const mf_engine_params *p,
                                     mf_error *err) {
    mf_graph g;
    if (!compile(model, devices, p, &g, err)) return NULL;
    return mf_graph_exec_new(&g, devices, p->n_batch, p->max_outs, cells_of_sequence(model, p), err);
}

// What sampling takes: one scratch for all sequences, and what each looks back on.
static size_t sampler_bytes(const mf_model *m, const mf_engine_params *p) {
    const size_t looks_back =
        2 * sizeof(int32_t) * (size_t)cells_of_sequence(m, p); // its tokens, and the sampler's copy of them
    return mf_sampler_scratch_bytes(m->hparams.n_vocab) +
           (size_t)p->max_seqs * (mf_sampler_bytes(m->hparams.n_vocab) + looks_back);
}

bool mf_engine_plan(const mf_model *model, const mf_device_list *devices, const mf_engine_params *params,
                    mf_engine_memory *out, mf_error *err) {
    mf_engine_params p;
    if (!settle(model, params, &p, err)) return false;
    mf_kv_params kv = kv_params(model, &p);
    if (!mf_kv_bytes(&kv, &out->kv, err)) return false;
    mf_graph g;
    if (!compile(model, devices, &p, &g, err)) return false;
    const bool ok =
        mf_graph_exec_measure(&g, devices, p.n_batch, p.max_outs, cells_of_sequence(model, &p), &out->activations, err);
    out->activations += sampler_bytes(model, &p);
    mf_graph_free(&g);
    return ok;
}

mf_engine *mf_engine_new(const mf_model *model, const mf_device_list *devices, const mf_engine_params *params,
                         mf_error *err) {
    mf_engine_params p;
    if (!settle(model, params, &p, err)) return NULL;
    mf_engine *e = mf_alloc(1, sizeof *e);
    if (!e) return mf_fail_memory(err, sizeof *e, "the engine"), NULL;
    *e = (mf_engine){.model = model, .devices = *devices, .params = p};
    e->seq_cells = cells_of_sequence(model, &p);
    mf_kv_params kv = kv_params(model, &p);
    e->sequences = mf_alloc((size_t)p.max_seqs, sizeof(mf_sequence *));
    e->events = mf_alloc((size_t)p.max_seqs, sizeof *e->events);
    e->staying = mf_alloc((size_t)p.max_seqs, sizeof *e->staying);
    bool ok = (e->sequences && e->events && e->staying) ||
              mf_fail_memory(err, (size_t)p.max_seqs * sizeof *e->events, "the engine");
    ok = ok && (e->scratch = mf_sampler_scratch_new(model->hparams.n_vocab, err)) && mf_batch_new(&e->batch, &p, err) &&
         (e->kv = mf_kv_new(&kv, devices->device[devices->n - 1], err)) &&
         (e->exec = compile_to_run(model, devices, &p, err));
    if (ok && p.populate) mf_kv_populate(e->kv);
    mf_graph_watch watch = {
        .trace_dir = p.trace_dir, .dump_dir = p.dump_dir, .dump_names = p.dump_names, .timing = p.op_timing};
    ok = ok && ((!p.trace_dir && !p.dump_dir && !p.op_timing) || mf_graph_exec_watch(e->exec, &watch, err));
    if (ok) return e;
    mf_engine_free(e);
    return NULL;
}

void mf_engine_free(mf_engine *e) {
    if (!e) return;
    mf_graph_exec_free(e->exec);
    mf_kv_free(e->kv);
    mf_batch_free(&e->batch);
    mf_sampler_scratch_free(e->scratch);
    free(e->sequences);
    free(e->staying);
    free(e->events);
    free(e);
}

mf_engine_memory mf_engine_memory_of(const mf_engine *e) {
    return (mf_engine_memory){mf_kv_stats_get(e->kv).bytes,
                              mf_graph_exec_bytes(e->exec) + sampler_bytes(e->model, &e->params)};
}

mf_kv_stats mf_engine_kv_stats(const mf_engine *e) { return mf_kv_stats_get(e->kv); }
const mf_graph *mf_engine_graph(const mf_engine *e) { return mf_graph_exec_graph(e->exec); }
const mf_op_time *mf_engine_op_timing(const mf_engine *e) { return mf_graph_exec_timing(e->exec); }
const mf_model *mf_engine_model(const mf_engine *e) { return e->model; }

bool mf_engine_idle(const mf_engine *e) {
    for (int32_t i = 0; i < e->n_sequences; i++)
        if (e->sequences[i]->active) return false;
    return true;
}
