// minfer run: one prompt, one answer.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/constrain.h"
#include "cli/input.h"
#include "cli/inside.h"
#include "cli/piece.h"
#include "cli/prompt.h"
#include "cli/sampling.h"

// What a run holds.
typedef struct job {
    mf_options *o;
    mf_loaded loaded;
    mf_buf storage; // the prompt, where it was read
    mf_str text;
    mf_token_array prompt, eog;
    mf_sampling sampling;
    mf_constrained constrained;
    mf_answer answer;
    mf_output out;
} job;

// The context, which without --ctx is large enough for the prompt and the answer.
static bool choose_ctx(job *j, mf_engine_params *params, mf_error *err) {
    int64_t prompt = (int64_t)j->prompt.len, answer = j->o->n_predict >= 0 ? j->o->n_predict : 512;
    if (!mf_load_ctx(&j->loaded, j->o, prompt + answer, params, err)) return false;
    return prompt <= params->n_ctx ||
           mf_fail(err, MF_ERR_LIMIT, "the prompt has %" PRId64 " tokens and the context %d%s", prompt, params->n_ctx,
                   params->n_ctx == j->loaded.model->hparams.n_ctx_train ? ", the model's maximum"
                                                                         : "; --ctx makes it larger");
}

static bool load(job *j, const char *path, mf_error *err) {
    mf_loaded *l = &j->loaded;
    mf_engine_params params;
    return mf_load_for_answers(l, j->o, path, &params, err) && mf_prompt_ids(l, j->o, j->text, &j->prompt, err) &&
           mf_load_ends(l, &j->eog, err) &&
           mf_sampling_make(&j->sampling, j->o, l->file, l->tokenizer, j->eog.data, j->eog.len, l->model->hparams.n_vocab,
                            err) &&
           mf_constrain_make(&j->constrained, j->o, l, j->o->raw ? NULL : mf_prompt_marks(l, j->o),
                             mf_answer_begins_open(l->tokenizer, j->prompt.data, j->prompt.len, mf_prompt_marks(l, j->o)),
                             err) &&
           choose_ctx(j, &params, err) && mf_load_engine(l, &params, err);
}

// ---- What is printed

static void add_token_text(const job *j, int32_t id, mf_buf *out) {
    if (id >= 0 && id < mf_tokenizer_n_vocab(j->loaded.tokenizer)) mf_tokenizer_piece(j->loaded.tokenizer, id, true, out);
}

static void json_token(const job *j, mf_json_writer *w, const mf_logprob_entry *e) {
    mf_buf piece = {0};
    add_token_text(j, e->id, &piece);
    mf_json_add_int(w, "id", e->id);
    mf_json_key(w, "token");
    mf_piece_json((mf_str){piece.data, piece.len}, w);
    mf_json_add_real(w, "logprob", (double)e->logprob);
    free(piece.data);
}

static void json_logprobs(const job *j, mf_json_writer *w) {
    const mf_answer *a = &j->answer;
    size_t stride = 1 + (size_t)a->n_top;
    mf_json_key(w, "logprobs");
    mf_json_begin(w, '[');
    for (size_t i = 0; i + stride <= a->logprobs.len; i += stride) {
        mf_json_begin(w, '{');
        json_token(j, w, &a->logprobs.data[i]);
        mf_json_key(w, "top");
        mf_json_begin(w, '[');
        for (size_t k = 1; k < stride && a->logprobs.data[i + k].id >= 0; k++) {
            mf_json_begin(w, '{');
            json_token(j, w, &a->logprobs.data[i + k]);
            mf_json_end(w, '}');
        }
        mf_json_end(w, ']');
        mf_json_end(w, '}');
    }
    mf_json_end(w, ']');
}

// The text, or with --hide-thinking the answer and the thought apart.
static void json_text(const job *j, mf_json_writer *w) {
    const mf_answer *a = &j->answer;
    const mf_buf *text = j->o->hide_thinking ? &a->think.answer : &a->text, *thought = &a->think.thought;
    mf_json_key(w, "text");
    mf_json_string(w, (mf_str){text->data, text->len});
    if (j->o->hide_thinking && thought->len) {
        mf_json_key(w, "reasoning");
        mf_json_string(w, mf_reasoning_inner(a->think.reasoning.marks, (mf_str){thought->data, thought->len}));
    }
    if (a->think.cut) {
        mf_json_key(w, "reasoning_cut");
        mf_json_bool(w, true);
    }
}

static void print_json(job *j) {
    const mf_answer *a = &j->answer;
    mf_buf text = {0};
    mf_json_writer w = {.out = &text};
    mf_json_begin(&w, '{');
    json_text(j, &w);
    mf_json_key(&w, "tokens");
    mf_json_begin(&w, '[');
    for (size_t i = 0; i < a->ids.len; i++) mf_json_int(&w, a->ids.data[i]);
    mf_json_end(&w, ']');
    mf_json_add_text(&w, "finish_reason", a->finish);
    if (a->stream.stopped_by) mf_json_add_text(&w, "stop", a->stream.stopped_by);
    mf_json_add_text(&w, "model", j->loaded.path);
    mf_json_add_int(&w, "seed", (int64_t)j->sampling.params.seed);
    mf_json_add_int(&w, "prompt_tokens", a->n_prompt);
    mf_json_add_int(&w, "completion_tokens", a->n_generated);
    if (a->n_top >= 0) json_logprobs(j, &w);
    mf_json_key(&w, "timings");
    mf_json_begin(&w, '{');
    mf_json_add_real(&w, "prompt_seconds", a->prompt_seconds);
    mf_json_add_real(&w, "prompt_tokens_per_second", mf_answer_prompt_speed(a));
    mf_json_add_real(&w, "decode_seconds", a->decode_seconds);
    mf_json_add_real(&w, "decode_tokens_per_second", mf_answer_decode_speed(a));
    mf_json_end(&w, '}');
    mf_json_end(&w, '}');
    mf_buf_char(&text, '\n');
    mf_output_buf(&j->out, &text);
    free(text.data);
}

static void log_logprobs(const job *j) {
    const mf_answer *a = &j->answer;
    size_t stride = 1 + (size_t)a->n_top;
    for (size_t i = 0; i + stride <= a->logprobs.len; i += stride) {
        mf_buf line = {0}, piece = {0};
        for (size_t k = 0; k < stride && a->logprobs.data[i + k].id >= 0; k++) {
            mf_buf_text(&line, k == 0 ? "" : k == 1 ? " | " : ", ");
            piece.len = 0;
            add_token_text(j, a->logprobs.data[i + k].id, &piece);
            mf_buf_shown(&line, (mf_str){piece.data, piece.len}, true);
            mf_buf_printf(&line, " %.4f", (double)a->logprobs.data[i + k].logprob);
        }
        mf_log(MF_LOG_NOTICE, "logprob: %s", line.data ? line.data : "");
        free(line.data);
        free(piece.data);
    }
}

static void log_speed(const mf_answer *a) {
    if (mf_answer_decode_speed(a) > 0)
        mf_log(MF_LOG_NOTICE, "prompt: %d tokens, %.1f tok/s; answer: %d tokens, %.1f tok/s", a->n_prompt,
               mf_answer_prompt_speed(a), a->n_generated, mf_answer_decode_speed(a));
    else
        mf_log(MF_LOG_NOTICE, "prompt: %d tokens, %.1f tok/s; answer: %d token%s", a->n_prompt, mf_answer_prompt_speed(a),
               a->n_generated, a->n_generated == 1 ? "" : "s");
}

static int finish(job *j) {
    const mf_answer *a = &j->answer;
    if (j->o->json)
        print_json(j);
    else if (mf_answer_open_line(a, j->o) && a->n_generated > 0)
        mf_output_write(&j->out, "\n", 1);
    if (j->out.failed) return MF_EXIT_REFUSED;
    if (!j->o->json && a->n_top >= 0) log_logprobs(j);
    if (a->n_dropped)
        mf_log(MF_LOG_NOTICE, "the answer ended inside a character: %d byte%s left out", a->n_dropped,
               a->n_dropped == 1 ? " is" : "s are");
    mf_answer_note_end(a, &j->loaded, j->o);
    log_speed(a);
    mf_inside_timing(&j->loaded);
    mf_log_kv(a->kv);
    if (mf_answer_failed(a)) return mf_cli_fail(&a->error);
    return strcmp(a->finish, "cancelled") == 0 ? MF_EXIT_INTERRUPTED : MF_EXIT_DONE;
}

static int check_usage(const mf_options *o, mf_error *err) {
    int code = mf_cli_check_stops(o, err);
    if (code != MF_EXIT_DONE) return code;
    const char *flag = o->system            ? "--system"
                       : o->chat_template   ? "--chat-template"
                       : o->template_kwargs ? "--chat-template-kwargs"
                                            : NULL;
    if (flag && o->raw)
        return mf_fail(err, MF_ERR_ARGUMENT, "%s needs a chat template's turns; with --raw the prompt is all there is",
                       flag),
               MF_EXIT_USAGE;
    return MF_EXIT_DONE;
}

static int answer(job *j, mf_error *err) {
    const char *path = mf_cli_model(j->o, err);
    if (!path) return MF_EXIT_USAGE;
    int code = check_usage(j->o, err);
    if (code == MF_EXIT_DONE) code = mf_input_prompt(j->o, &j->storage, &j->text, err);
    if (code != MF_EXIT_DONE) return code;
    mf_interrupt_catch();
    if (!load(j, path, err)) return MF_EXIT_REFUSED;
    mf_answer_request request = {.prompt = j->prompt.data,
                                 .n_prompt = j->prompt.len,
                                 .sampler = &j->sampling.params,
                                 .eog = j->eog.data,
                                 .n_eog = j->eog.len,
                                 .constraint = j->constrained.constraint,
                                 .marks = mf_prompt_marks(&j->loaded, j->o),
                                 .out = j->o->json ? NULL : &j->out};
    bool dump = j->o->dump_dot || j->o->dump_json;
    if (dump) j->o->n_predict = 0;
    if (!mf_answer_make(&j->answer, &j->loaded, j->o, &request, err)) return MF_EXIT_REFUSED;
    return !dump || mf_inside_dump(&j->loaded, j->o, err) ? MF_EXIT_DONE : MF_EXIT_REFUSED;
}

int mf_command_run(mf_options *o) {
    job j = {.o = o};
    mf_error err = {0};
    int code = answer(&j, &err);
    if (code == MF_EXIT_DONE) {
        code = finish(&j);
    } else {
        int by_error = mf_cli_fail(&err);
        if (by_error == MF_EXIT_INTERRUPTED) code = by_error;
    }
    mf_answer_free(&j.answer);
    mf_sampling_free(&j.sampling);
    mf_constrain_drop(&j.constrained);
    free(j.storage.data);
    free(j.prompt.data);
    free(j.eog.data);
    mf_unload(&j.loaded);
    return code;
}
