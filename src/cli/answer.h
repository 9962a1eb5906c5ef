// One answer: the loop over the engine's steps, with the text as it comes.
#ifndef MF_CLI_ANSWER_H
#define MF_CLI_ANSWER_H

#include "api/stream.h"
#include "cli/load.h"
#include "cli/terminal.h"
#include "cli/think.h"

typedef struct mf_logprob_entry {
    int32_t id;
    float logprob;
} mf_logprob_entry;

typedef struct mf_answer {
    mf_stream stream;
    mf_think think;
    mf_buf text;                         // all of it, thoughts too
    mf_token_array ids;                  // generated, without the one that ended the text
    mf_array(mf_logprob_entry) logprobs; // for each of ids: itself, then the best n_top
    int32_t n_top;                       // -1: none were asked for
    int32_t n_prompt, n_generated;       // n_generated counts the ending token
    int32_t n_ctx;                       // the context's tokens
    double prompt_seconds, decode_seconds;
    mf_kv_stats kv;     // of the engine's cache at the end
    const char *finish; // "stop", "length", "constraint", "cancelled", "error"
    int n_dropped;      // bytes of an incomplete character at the end
    mf_error error;     // where finish is "error" or "constraint"
} mf_answer;

typedef struct mf_answer_request {
    mf_sequence *
        sequence; // NULL: one is made for this answer; else one with a sampler whose prompt is appended, and the four fields
                  // from prompt on are not looked at
    const int32_t *prompt;
    size_t n_prompt;
    const mf_sampler_params *sampler;
    const int32_t *eog; // ids that end the answer
    size_t n_eog;
    struct mf_constraint *constraint; // what the answer may say; NULL: anything
    const mf_reasoning_marks *marks;  // of the model's thoughts
    mf_output *out;                   // where text goes as it comes; NULL: nowhere
} mf_answer_request;

// Generates into *a (which is made by it and freed by the caller in any case). Ctrl-C, an output that can't be written and
// an error in a step end it in a->finish. False with err: it could not begin.
bool mf_answer_make(mf_answer *a, const mf_loaded *l, const mf_options *o, const mf_answer_request *request, mf_error *err);
void mf_answer_free(mf_answer *a);

// Whether a prompt ends with the mark that opens a thought, and white space at most.
bool mf_answer_begins_open(const mf_tokenizer *t, const int32_t *ids, size_t n, const mf_reasoning_marks *marks);

// Whether a->error says why there is no whole answer.
bool mf_answer_failed(const mf_answer *a);

// Says where an answer ended before its time: at the end of the context, inside a thought.
void mf_answer_note_end(const mf_answer *a, const mf_loaded *l, const mf_options *o);

// Whether what was shown lacks a line end.
bool mf_answer_open_line(const mf_answer *a, const mf_options *o);

// Tokens per second by own wall time, or 0 where there is none. The first generated token belongs to the prompt's time.
double mf_answer_prompt_speed(const mf_answer *a);
double mf_answer_decode_speed(const mf_answer *a);

#endif
