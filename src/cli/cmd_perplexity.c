// minfer perplexity: how well a model predicts a text, and how far it is from saved predictions.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/load.h"
#include "cli/terminal.h"
#include "tools/perplexity.h"

#define DEFAULT_CTX  512
#define LOGITS_BYTES ((size_t)128 << 20) // of a step at most

typedef struct job {
    mf_options *o;
    mf_loaded loaded;
    mf_token_array tokens;
    int32_t n_ctx, n_chunk, bos;
    mf_logits_reader base;
    mf_logits_writer save;
    mf_perplexity result;
    mf_progress progress;
} job;

// The text's tokens, and whether the vocabulary begins a text with a token of its own.
static bool read_text(job *j, mf_str text, mf_error *err) {
    const mf_tokenizer *t = j->loaded.tokenizer;
    mf_token_array start = {0};
    bool ok = mf_tokenizer_encode(t, MF_STR(""), MF_ENCODE_ADD_BOS, &start, err);
    bool begins = ok && start.len && mf_tokenizer_bos(t) >= 0 && start.data[0] == mf_tokenizer_bos(t);
    j->bos = begins ? mf_tokenizer_bos(t) : -1;
    free(start.data);
    return ok && (j->o->kl_base || mf_tokenizer_encode(t, text, MF_ENCODE_ADD_BOS, &j->tokens, err));
}

static bool take_tokens_of_base(job *j, mf_error *err) {
    j->n_ctx = j->base.header.n_ctx;
    j->n_chunk = j->base.header.n_chunk;
    if (j->o->ctx && j->o->ctx != j->n_ctx)
        return mf_fail(err, MF_ERR_ARGUMENT, "--ctx %d: the base was made with %d", j->o->ctx, j->n_ctx);
    for (int32_t c = 0; c < j->n_chunk; c++)
        for (int32_t i = 0; i < j->n_ctx; i++)
            if (!mf_array_push(&j->tokens, mf_logits_token(&j->base, c, i)))
                return mf_fail_memory(err, j->tokens.len * sizeof(int32_t), "the tokens");
    return true;
}

static bool cut_into_chunks(job *j, mf_error *err) {
    int32_t n_vocab = j->loaded.model->hparams.n_vocab;
    if (j->o->ctx == MF_CTX_AUTO) return mf_fail(err, MF_ERR_ARGUMENT, "--ctx auto: a chunk is a number of tokens");
    j->n_ctx = j->o->ctx ? j->o->ctx : DEFAULT_CTX;
    if (j->o->kl_base) {
        if (!mf_logits_open(&j->base, j->o->kl_base, n_vocab, err) || !take_tokens_of_base(j, err)) return false;
    } else {
        if (j->n_ctx < MF_LOGITS_CTX_MIN || j->n_ctx > MF_LOGITS_CTX_MAX)
            return mf_fail(err, MF_ERR_ARGUMENT, "--ctx %d: a chunk has %d to %d tokens", j->n_ctx, MF_LOGITS_CTX_MIN,
                           MF_LOGITS_CTX_MAX);
        size_t chunks = j->tokens.len / (size_t)j->n_ctx;
        if (chunks == 0)
            return mf_fail(err, MF_ERR_ARGUMENT, "the text has %zu tokens; a chunk has %d (--ctx)", j->tokens.len, j->n_ctx);
        j->n_chunk = chunks > INT32_MAX ? INT32_MAX : (int32_t)chunks;
    }
    if (j->o->chunks == 0) return mf_fail(err, MF_ERR_ARGUMENT, "--chunks 0 leaves nothing to read");
    if (j->o->chunks > 0 && j->o->chunks < j->n_chunk) j->n_chunk = j->o->chunks;
    int32_t most = j->loaded.model->hparams.n_ctx_train;
    return j->n_ctx <= most ||
           mf_fail(err, MF_ERR_LIMIT, "a chunk of %d tokens is longer than the model's maximum of %d", j->n_ctx, most);
}

static bool load(job *j, const char *path, mf_str text, mf_error *err) {
    mf_loaded *l = &j->loaded;
    mf_engine_params params;
    if (!mf_engine_params_from(j->o, &params, err) || !mf_load_file(l, path, err) || !mf_load_devices(l, j->o, err) ||
        !mf_load_model(l, err) || !mf_load_tokenizer(l, j->o, err) || !read_text(j, text, err) || !cut_into_chunks(j, err))
        return false;
    size_t outs = LOGITS_BYTES / ((size_t)l->model->hparams.n_vocab * sizeof(float)) + 1;
    params.n_ctx = j->n_ctx;
    params.max_seqs = 1;
    params.max_outs = outs < (size_t)params.n_batch ? (int32_t)outs : params.n_batch;
    params.prefix_cache = false;
    return mf_load_engine(l, &params, err);
}

static bool on_progress(void *arg, int32_t done) {
    job *j = arg;
    mf_progress_update(&j->progress, (double)done / j->n_chunk);
    return !mf_interrupted();
}

static bool measure(job *j, mf_error *err) {
    mf_logits_header header = {j->n_ctx, j->loaded.model->hparams.n_vocab, j->n_chunk};
    const char *save = j->o->save_logits;
    if (save && !mf_logits_create(&j->save, save, header, j->tokens.data, err)) return false;
    mf_perplexity_task task = {.engine = j->loaded.engine,
                               .tokens = j->tokens.data,
                               .n_ctx = j->n_ctx,
                               .n_chunk = j->n_chunk,
                               .bos = j->bos,
                               .base = j->o->kl_base ? &j->base : NULL,
                               .save = save ? &j->save : NULL,
                               .progress = on_progress,
                               .arg = j};
    mf_progress_begin(&j->progress, "reading the text");
    bool ok = mf_perplexity_run(&task, &j->result, err);
    mf_progress_end(&j->progress);
    return ok && (!save || mf_logits_commit(&j->save, err));
}

// ---- What is printed

static mf_estimate share_of_same_top(const mf_perplexity *p) {
    double share = (double)p->same_top / (double)p->n;
    mf_sums s = {(double)p->same_top, (double)p->same_top}; // ones and zeros
    return (mf_estimate){share, mf_sums_mean(&s, p->n).error};
}

static void print_text(job *j, mf_buf *out) {
    mf_perplexity *p = &j->result;
    mf_estimate ppl = mf_perplexity_of(&p->nll, p->n);
    mf_buf_printf(out, "%d chunks of %d tokens, %" PRId64 " tokens scored\n", j->n_chunk, j->n_ctx, p->n);
    mf_buf_printf(out, "perplexity           %.4f ± %.4f\n", ppl.mean, ppl.error);
    if (!j->o->kl_base) return;
    mf_estimate base = mf_perplexity_of(&p->base_nll, p->n), ratio = mf_sums_mean(&p->ratio, p->n),
                kl = mf_sums_mean(&p->divergence, p->n), same = share_of_same_top(p);
    mf_buf_printf(out, "the base's           %.4f ± %.4f\n", base.mean, base.error);
    mf_buf_printf(out, "log of the ratio     %.6f ± %.6f\n", ratio.mean, ratio.error);
    mf_buf_printf(out, "mean KL divergence   %.6f ± %.6f nats\n", kl.mean, kl.error);
    mf_buf_printf(out, "  median             %.6f\n", mf_perplexity_percentile(p, 0.5));
    mf_buf_printf(out, "  99 %%               %.6f\n", mf_perplexity_percentile(p, 0.99));
    mf_buf_printf(out, "  maximum            %.6f\n", mf_perplexity_percentile(p, 1));
    mf_buf_printf(out, "same most likely     %.3f ± %.3f %%\n", 100 * same.mean, 100 * same.error);
}

static void json_estimate(mf_json_writer *w, const char *key, const char *error_key, mf_estimate e) {
    mf_json_add_real(w, key, e.mean);
    mf_json_add_real(w, error_key, e.error);
}

static void print_json(job *j, mf_buf *out) {
    mf_perplexity *p = &j->result;
    mf_json_writer w = {.out = out, .indent = 1};
    mf_json_begin(&w, '{');
    mf_json_add_int(&w, "n_ctx", j->n_ctx);
    mf_json_add_int(&w, "n_chunk", j->n_chunk);
    mf_json_add_int(&w, "n_scored", p->n);
    json_estimate(&w, "perplexity", "perplexity_error", mf_perplexity_of(&p->nll, p->n));
    if (j->o->kl_base) {
        json_estimate(&w, "base_perplexity", "base_perplexity_error", mf_perplexity_of(&p->base_nll, p->n));
        json_estimate(&w, "log_ratio", "log_ratio_error", mf_sums_mean(&p->ratio, p->n));
        json_estimate(&w, "kl_mean", "kl_mean_error", mf_sums_mean(&p->divergence, p->n));
        mf_json_add_real(&w, "kl_median", mf_perplexity_percentile(p, 0.5));
        mf_json_add_real(&w, "kl_p99", mf_perplexity_percentile(p, 0.99));
        mf_json_add_real(&w, "kl_max", mf_perplexity_percentile(p, 1));
        json_estimate(&w, "same_top", "same_top_error", share_of_same_top(p));
    }
    mf_json_end(&w, '}');
    mf_buf_char(out, '\n');
}

static int run(job *j, mf_error *err) {
    const char *path = mf_cli_model(j->o, err);
    mf_buf storage = {0}, text = {0};
    mf_output out = {0};
    mf_str given = {0};
    if (!path) return MF_EXIT_USAGE;
    if (j->o->kl_base && (j->o->prompt || j->o->prompt_file))
        return mf_fail(err, MF_ERR_ARGUMENT, "--kl-base has its text in it; another by -p or -f would not be read"),
               MF_EXIT_USAGE;
    int code = j->o->kl_base ? MF_EXIT_DONE : mf_input_text(j->o, "text", &storage, &given, err);
    if (code == MF_EXIT_DONE) {
        mf_interrupt_catch();
        bool ok = load(j, path, given, err) && measure(j, err);
        if (ok && j->o->json) print_json(j, &text);
        if (ok && !j->o->json) print_text(j, &text);
        code = ok && mf_output_buf(&out, &text) ? MF_EXIT_DONE : MF_EXIT_REFUSED;
    }
    free(storage.data);
    free(text.data);
    return code;
}

int mf_command_perplexity(mf_options *o) {
    job j = {.o = o};
    mf_error err = {0};
    int code = run(&j, &err);
    if (err.code) {
        int by_error = mf_cli_fail(&err);
        if (by_error == MF_EXIT_INTERRUPTED) code = by_error;
    }
    mf_logits_close(&j.base);
    mf_logits_discard(&j.save);
    mf_perplexity_free(&j.result);
    free(j.tokens.data);
    mf_unload(&j.loaded);
    return code;
}
