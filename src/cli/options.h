// What the flags, the environment and the words of a command line say. Texts are borrowed from argv and the environment.
#ifndef MF_CLI_OPTIONS_H
#define MF_CLI_OPTIONS_H

#include "base/array.h"
#include "sample/sampler.h"

#define MF_CLI_MAX_FLAGS 128

enum { // exit codes
    MF_EXIT_DONE = 0,
    MF_EXIT_REFUSED = 1,
    MF_EXIT_USAGE = 2,
    MF_EXIT_INTERRUPTED = 130,
};

typedef mf_array(const char *) mf_text_list;

#define MF_CTX_AUTO (-1) // --ctx auto: what fits into the memory that is free

struct mf_command;

typedef struct mf_options {
    const struct mf_command *command; // what is run: the one that was named, or chat in the place of run
    mf_text_list words;               // what is no flag: MODEL, then PROMPT or TEXT

    const char *model, *prompt, *prompt_file, *system;
    const char *word, *second_word; // of a command that takes words of its own
    char *model_owned;              // what model points to where a name became a path; freed with the options
    bool raw, no_nfc, meta;
    const char *chat_template, *template_kwargs;        // NULL: the model's own, none
    const char *messages_file, *tools_file, *bos, *eos; // render
    bool no_generation_prompt, chat_rules;              // render
    const char *pre;

    int32_t n_predict; // -1: until the end
    int32_t ctx;       // 0: not given; MF_CTX_AUTO
    int32_t logprobs;  // -1: none
    bool ignore_eos, greedy;
    int32_t n_keep;      // chat: tokens that never leave a full context
    const char *session; // chat: NULL: none
    bool conversation, single_turn, multiline, no_context_shift, hide_thinking, commands, raw_output;
    mf_text_list stop;

    int64_t seed; // -1: random
    mf_sampler_params sampler;
    mf_text_list breakers;
    mf_array(mf_logit_bias) logit_bias;
    const char *grammar, *grammar_file, *json_schema, *json_schema_file; // NULL: not given
    bool json_object, schema_any_order, schema_closed, strict_oneof;

    int32_t batch, threads; // threads 0: the machine's default
    const char *cache_type, *cache_type_k, *cache_type_v;
    const char *cpu; // kernel row; NULL or "": the best
    mf_text_list backends;
    bool no_prefix_cache, no_kv_share, populate;
    unsigned no_fuse;                         // MF_FUSE_*
    const char *dump_dot, *dump_json, *trace; // NULL: not asked for
    const char *dump_dir, *dump_names;
    bool op_timing;

    bool json, verbose, help, help_markdown, help_man, version, yes, names;
    const char *color;                 // NULL: auto
    const char *kl_base, *save_logits; // perplexity
    int32_t chunks;                    // -1: all
    bool no_special, plain, ids;

    int32_t bench_prompt, bench_gen, repetitions, depth, parallel, warmup_ms;
    const char *output;

    bool given[MF_CLI_MAX_FLAGS]; // by the flag's place in the table: set on the command line or in the environment
} mf_options;

void mf_options_init(mf_options *o); // the defaults
void mf_options_free(mf_options *o);

#endif
