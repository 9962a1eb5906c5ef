#include <stddef.h>

#include "cli/flags.h"
#include "graph/graph.h"

#define AT(field)       .offset = offsetof(mf_options, field)
#define RANGE(low, top) .min = (low), .max = (top)

#define RUN        (MF_CMD_RUN | MF_CMD_CHAT) // what generates
#define CHAT       MF_CMD_CHAT
#define BENCH      MF_CMD_BENCH
#define PPL        MF_CMD_PERPLEXITY
#define MODELS     (RUN | MF_CMD_INFO | MF_CMD_TOKENIZE | MF_CMD_BENCH | PPL | MF_CMD_RENDER)
#define TEXTS      (RUN | MF_CMD_TOKENIZE | PPL)
#define ENGINES    (RUN | MF_CMD_INFO | MF_CMD_BENCH | PPL)
#define THREADED   (RUN | MF_CMD_BENCH | MF_CMD_DOCTOR | MF_CMD_INFO | PPL)
#define REAL(f)    MF_FLAG_REAL, RUN, MF_GROUP_SAMPLING, AT(sampler.f)
#define INTEGER(f) MF_FLAG_INT, RUN, MF_GROUP_SAMPLING, AT(sampler.f), RANGE(INT32_MIN, INT32_MAX)

#define CONSTRAINED         (RUN | MF_CMD_GRAMMAR)
#define CONSTRAINT(kind, f) MF_FLAG_##kind, CONSTRAINED, MF_GROUP_SAMPLING, AT(f), .source = MF_SOURCE_CONSTRAINT

static const mf_flag flags[] = {
    // Model and text
    {"--model -m", "FILE", MF_FLAG_TEXT, MODELS, MF_GROUP_TEXT, AT(model), .source = MF_SOURCE_MODEL,
     .help = "the model, a GGUF file (instead of the word MODEL)"},
    {"--prompt -p --text", "TEXT", MF_FLAG_TEXT, TEXTS, MF_GROUP_TEXT, AT(prompt), .source = MF_SOURCE_TEXT,
     .help = "the text (instead of the word behind MODEL)"},
    {"--file -f", "FILE", MF_FLAG_TEXT, TEXTS, MF_GROUP_TEXT, AT(prompt_file), .source = MF_SOURCE_TEXT,
     .help = "reads the text from a file; - is standard input"},
    {"--system -sys --system-prompt", "TEXT", MF_FLAG_TEXT, RUN, MF_GROUP_TEXT, AT(system),
     .help = "a system message before the prompt"},
    {"--raw --no-template -no-cnv --no-conversation", NULL, MF_FLAG_BOOL, MF_CMD_RUN, MF_GROUP_TEXT, AT(raw),
     .help = "continues the prompt as it is, without a chat template"},
    {"--chat-template --template --chat-template-file", "NAME|FILE|TEXT", MF_FLAG_TEXT, RUN | MF_CMD_RENDER, MF_GROUP_TEXT,
     AT(chat_template),
     .help = "a chat template instead of the model's own: chatml, a variant's name, a file, or the Jinja text itself"},
    {"--chat-template-kwargs --kwargs", "JSON", MF_FLAG_TEXT, RUN | MF_CMD_RENDER, MF_GROUP_TEXT, AT(template_kwargs),
     .help = "an object of variables for the template, such as {\"enable_thinking\": false}"},
    {"--messages", "FILE", MF_FLAG_TEXT, MF_CMD_RENDER, MF_GROUP_TEXT, AT(messages_file),
     .help = "the conversation: a JSON list of messages; - is standard input"},
    {"--tools", "FILE", MF_FLAG_TEXT, MF_CMD_RENDER, MF_GROUP_TEXT, AT(tools_file), .help = "a JSON list of tools"},
    {"--no-generation-prompt", NULL, MF_FLAG_BOOL, MF_CMD_RENDER, MF_GROUP_TEXT, AT(no_generation_prompt),
     .help = "does not open the assistant's turn"},
    {"--bos", "TEXT", MF_FLAG_TEXT, MF_CMD_RENDER, MF_GROUP_TEXT, AT(bos), .help = "bos_token, instead of the model's"},
    {"--eos", "TEXT", MF_FLAG_TEXT, MF_CMD_RENDER, MF_GROUP_TEXT, AT(eos), .help = "eos_token, instead of the model's"},
    {"--chat-rules", NULL, MF_FLAG_BOOL, MF_CMD_RENDER, MF_GROUP_TEXT, AT(chat_rules),
     .help = "does to the messages what conversations do: developer and late system messages, reasoning, null members"},
    {"--pre", "NAME", MF_FLAG_TEXT, TEXTS, MF_GROUP_TEXT, AT(pre),
     .help = "the pre-tokenizer, instead of the one the file names"},
    {"--no-nfc", NULL, MF_FLAG_BOOL, TEXTS, MF_GROUP_TEXT, AT(no_nfc), .help = "never normalizes text, as llama.cpp does"},
    {"--no-special", NULL, MF_FLAG_BOOL, MF_CMD_TOKENIZE, MF_GROUP_TEXT, AT(no_special),
     .help = "gives what the text becomes in a message: no control tokens, no BOS; user-defined tokens match"},
    {"--plain", NULL, MF_FLAG_BOOL, MF_CMD_TOKENIZE, MF_GROUP_TEXT, AT(plain),
     .help = "takes all special tokens' text as plain text, user-defined ones' too"},
    {"--ids", NULL, MF_FLAG_BOOL, MF_CMD_TOKENIZE, MF_GROUP_TEXT, AT(ids), .help = "takes ids and prints their text"},

    // Generation
    {"--predict -n --n-predict --max-tokens", "N", MF_FLAG_INT, RUN, MF_GROUP_GENERATION, AT(n_predict),
     RANGE(-1, INT32_MAX), .help = "tokens to generate at most; -1: until the model ends or the context is full"},
    {"--ctx -c --ctx-size --n-ctx", "N|auto", MF_FLAG_INT, RUN | MF_CMD_INFO | PPL | BENCH, MF_GROUP_GENERATION, AT(ctx),
     RANGE(1, INT32_MAX), .marks = MF_FLAG_NO_DEFAULT | MF_FLAG_AUTO,
     .help = "tokens of context, at most the model's maximum (default: 4096, or more where prompt and -n need it; "
             "perplexity: 512; bench: what the tests need; "
             "auto: as many as fit into free memory)"},
    {"--stop -r --reverse-prompt", "TEXT", MF_FLAG_LIST, RUN, MF_GROUP_GENERATION, AT(stop),
     .help = "ends the answer before this text, which may hold control tokens' text; may be repeated"},
    {"--ignore-eos", NULL, MF_FLAG_BOOL, RUN, MF_GROUP_GENERATION, AT(ignore_eos),
     .help = "never lets the model end its answer"},

    {"--conversation --cnv -cnv -i --interactive", NULL, MF_FLAG_BOOL, RUN, MF_GROUP_CHAT, AT(conversation),
     .help = "run becomes minfer chat, with its flags"},
    {"--single-turn -st", NULL, MF_FLAG_BOOL, CHAT, MF_GROUP_CHAT, AT(single_turn), .help = "ends after one answer"},
    {"--multiline-input -mli", NULL, MF_FLAG_BOOL, CHAT, MF_GROUP_CHAT, AT(multiline),
     .help = "a text goes on until an empty line"},
    {"--session", "FILE", MF_FLAG_TEXT, CHAT, MF_GROUP_CHAT, AT(session),
     .help = "goes on with the conversation in FILE and keeps it there, and its cells in FILE.kv"},
    {"--keep", "N", MF_FLAG_INT, CHAT, MF_GROUP_CHAT, AT(n_keep), RANGE(-1, INT32_MAX),
     .help = "tokens at the beginning that never leave a full context, beside the system message"},
    {"--no-context-shift", NULL, MF_FLAG_BOOL, CHAT, MF_GROUP_CHAT, AT(no_context_shift),
     .help = "evaluates the rest again when turns leave a full context, instead of moving its cells"},
    {"--hide-thinking", NULL, MF_FLAG_BOOL, RUN, MF_GROUP_CHAT, AT(hide_thinking),
     .help = "leaves out what the model thinks before it answers (with --json: apart, as reasoning)"},
    {"--commands", NULL, MF_FLAG_BOOL, CHAT, MF_GROUP_CHAT, AT(commands),
     .help = "takes commands such as /save from standard input too when it is no terminal"},

    // Sampling
    {"--temp --temperature", "X", REAL(temp), .source = MF_SOURCE_TEMP,
     .help = "temperature; 0 always takes the most likely token"},
    {"--greedy", NULL, MF_FLAG_BOOL, RUN, MF_GROUP_SAMPLING, AT(greedy), .source = MF_SOURCE_TEMP,
     .help = "the same as --temp 0"},
    {"--seed -s", "N", MF_FLAG_LONG, RUN, MF_GROUP_SAMPLING, AT(seed), RANGE(-1, INT64_MAX),
     .help = "key of the random draws; -1: a random one, which is printed"},
    {"--top-k", "N", INTEGER(top_k), .help = "keeps the N most likely tokens; 0 or -1: off"},
    {"--top-p", "X", REAL(top_p), .help = "keeps the most likely tokens that together reach this probability; 1: off"},
    {"--min-p", "X", REAL(min_p), .help = "keeps tokens at least X times as likely as the best; 0: off"},
    {"--typical --typical-p", "X", REAL(typical),
     .help = "keeps the tokens of most typical surprise up to this mass; 1: off"},
    {"--top-n-sigma --top-nsigma", "X", REAL(top_n_sigma),
     .help = "keeps logits within X standard deviations of the best; 0: off"},
    {"--xtc-probability", "X", REAL(xtc_probability), .help = "chance of dropping the best of several good tokens; 0: off"},
    {"--xtc-threshold", "X", REAL(xtc_threshold), .help = "probability from which XTC calls a token good"},
    {"--repeat-penalty", "X", REAL(repeat_penalty), .help = "makes tokens that were seen less likely; 1: off"},
    {"--frequency-penalty", "X", REAL(frequency_penalty),
     .help = "taken off a token's logit for each time it was seen; 0: off"},
    {"--presence-penalty", "X", REAL(presence_penalty), .help = "taken off a token's logit once if it was seen; 0: off"},
    {"--repeat-last-n", "N", INTEGER(repeat_last_n),
     .help = "tokens the three penalties look back on; 0: off, -1: all of the context"},
    {"--dry-multiplier", "X", REAL(dry_multiplier), .help = "strength of the penalty on repeated sequences; 0: off"},
    {"--dry-base", "X", REAL(dry_base), .help = "its growth with the sequence's length"},
    {"--dry-allowed-length", "N", INTEGER(dry_allowed_length), .help = "length up to which repetition is free"},
    {"--dry-penalty-last-n", "N", INTEGER(dry_penalty_last_n),
     .help = "tokens it looks back on; 0: off, -1: all of the context"},
    {"--dry-sequence-breakers --dry-sequence-breaker", "TEXT", MF_FLAG_LIST, RUN, MF_GROUP_SAMPLING, AT(breakers),
     .help = "text that ends a sequence wherever tokens say it, or ids as in 198;13,2 (two sequences); none: those before "
             "it don't count; may be repeated"},
    {"--mirostat", "0|1|2", INTEGER(mirostat), .help = "version of mirostat, which then chooses the temperature; 0: off"},
    {"--mirostat-tau --mirostat-ent", "X", REAL(mirostat_tau), .help = "surprise aimed at, in bits"},
    {"--mirostat-eta --mirostat-lr", "X", REAL(mirostat_eta), .help = "learning rate"},
    {"--mirostat-m", "N", INTEGER(mirostat_m), .help = "candidates that version 1 estimates from"},
    {"--logit-bias -l", "ID:BIAS,…", MF_FLAG_BIAS, RUN, MF_GROUP_SAMPLING, AT(logit_bias),
     .help = "added to a token's logit, -100 to 100; may be repeated"},

    {"--grammar --grammar-str", "FILE|TEXT", CONSTRAINT(TEXT, grammar),
     .help = "answers only what a GBNF grammar allows: a file, or the text itself"},
    {"--grammar-file", "FILE", CONSTRAINT(TEXT, grammar_file), .help = "the same out of a file"},
    {"--json-schema -j --json-schema-str", "FILE|TEXT", CONSTRAINT(TEXT, json_schema),
     .help = "answers only JSON that a schema allows: a file, or the text itself"},
    {"--json-schema-file -jf", "FILE", CONSTRAINT(TEXT, json_schema_file), .help = "the same out of a file"},
    {"--json-object", NULL, CONSTRAINT(BOOL, json_object), .help = "answers only a JSON object"},
    {"--schema-any-order", NULL, MF_FLAG_BOOL, CONSTRAINED, MF_GROUP_SAMPLING, AT(schema_any_order),
     .help = "lets an object's declared properties come in any order"},
    {"--schema-closed", NULL, MF_FLAG_BOOL, CONSTRAINED, MF_GROUP_SAMPLING, AT(schema_closed),
     .help = "lets objects that declare properties have no others, unless the schema says so"},
    {"--strict-oneof", NULL, MF_FLAG_BOOL, CONSTRAINED, MF_GROUP_SAMPLING, AT(strict_oneof),
     .help = "refuses oneOf, which else is taken as anyOf"},

    // Machine
    {"--threads -t", "N", MF_FLAG_INT, THREADED, MF_GROUP_MACHINE, AT(threads), RANGE(1, 8192), .marks = MF_FLAG_NO_DEFAULT,
     .help = "threads (default: the cores this process may use)"},
    {"--batch-size -b --batch", "N", MF_FLAG_INT, ENGINES, MF_GROUP_MACHINE, AT(batch), RANGE(1, 8192),
     .help = "tokens evaluated together at most"},
    {"--cache-type", "f16|f32|q8_0", MF_FLAG_TEXT, ENGINES, MF_GROUP_MACHINE, AT(cache_type), .choices = "f16|f32|q8_0",
     .help = "number format of the KV cache (default: f16)"},
    {"--cache-type-k -ctk", "f16|f32|q8_0", MF_FLAG_TEXT, ENGINES, MF_GROUP_MACHINE, AT(cache_type_k),
     .choices = "f16|f32|q8_0", .help = "the same: K and V have one format"},
    {"--cache-type-v -ctv", "f16|f32|q8_0", MF_FLAG_TEXT, ENGINES, MF_GROUP_MACHINE, AT(cache_type_v),
     .choices = "f16|f32|q8_0", .help = "the same: K and V have one format"},
    {"--no-prefix-cache", NULL, MF_FLAG_BOOL, ENGINES, MF_GROUP_MACHINE, AT(no_prefix_cache),
     .help = "evaluates every prompt whole; the same bytes, another speed"},
    {"--populate", NULL, MF_FLAG_BOOL, RUN | BENCH, MF_GROUP_MACHINE, AT(populate),
     .help = "gives the KV cache its memory at the start instead of when it is first used"},
    {"--no-kv-share", NULL, MF_FLAG_BOOL, ENGINES, MF_GROUP_MACHINE, AT(no_kv_share),
     .help = "copies what prompts have in common instead of sharing it; the same bytes, more memory"},
    {"--backend", "NAME,…", MF_FLAG_LIST, MODELS | MF_CMD_DOCTOR, MF_GROUP_MACHINE, AT(backends), .env = "MINFER_BACKENDS",
     .help = "devices to compute on, the best first; cpu always joins; may be repeated"},
    {"--cpu", "NAME", MF_FLAG_TEXT, THREADED, MF_GROUP_MACHINE, AT(cpu),
     .help = "a lower set of CPU kernels, such as scalar (default: the best; minfer doctor lists them)"},
    {"--no-fuse", "LIST", MF_FLAG_FUSE, RUN | BENCH, MF_GROUP_MACHINE, AT(no_fuse),
     .help = "leaves operations apart: qkv, ffn, norm, add or all; the same bytes, another speed"},

    // Inside
    {"--dump-graph", "FILE", MF_FLAG_TEXT, MF_CMD_RUN, MF_GROUP_OUTPUT, AT(dump_dot),
     .help = "reads the prompt, writes the graph as it ran in DOT, and answers nothing"},
    {"--dump-graph-json", "FILE", MF_FLAG_TEXT, MF_CMD_RUN, MF_GROUP_OUTPUT, AT(dump_json), .help = "the same in JSON"},
    {"--trace", "DIR", MF_FLAG_TEXT, RUN, MF_GROUP_OUTPUT, AT(trace),
     .help = "writes every node's shape and statistics there, a file for each step"},
    {"--dump-values --dump-dir", "DIR", MF_FLAG_TEXT, RUN, MF_GROUP_OUTPUT, AT(dump_dir), .env = "MINFER_DUMP_DIR",
     .help = "writes whole values there, a folder for each step, as NumPy reads them; nothing is fused then"},
    {"--dump-names", "NAME,…", MF_FLAG_TEXT, RUN, MF_GROUP_OUTPUT, AT(dump_names),
     .help = "only those of these names, such as attn_out (of every layer), blk.0.q_rope, logits (default: all)"},
    {"--op-timing", NULL, MF_FLAG_BOOL, RUN | BENCH, MF_GROUP_OUTPUT, AT(op_timing), .marks = MF_FLAG_PRESENT,
     .help = "measures each operation's time and prints the table at the end"},

    // Benchmark
    {"--n-prompt -p", "N", MF_FLAG_INT, BENCH, MF_GROUP_BENCH, AT(bench_prompt), RANGE(0, 1 << 20),
     .help = "tokens of the prompt test; 0: no such test"},
    {"--n-gen -n", "N", MF_FLAG_INT, BENCH, MF_GROUP_BENCH, AT(bench_gen), RANGE(0, 1 << 20),
     .help = "tokens of the generation test; 0: no such test"},
    {"--repetitions -r", "N", MF_FLAG_INT, BENCH, MF_GROUP_BENCH, AT(repetitions), RANGE(1, 1000),
     .help = "times each is done"},
    {"--depth -d --n-depth", "N", MF_FLAG_INT, BENCH, MF_GROUP_BENCH, AT(depth), RANGE(0, 1 << 20),
     .help = "tokens that are in the cache before a test starts"},
    {"--parallel -np --n-slots", "N", MF_FLAG_INT, BENCH, MF_GROUP_BENCH, AT(parallel), RANGE(1, 256),
     .help = "sequences that generate together"},
    {"--warmup-ms", "N", MF_FLAG_INT, BENCH, MF_GROUP_BENCH, AT(warmup_ms), RANGE(0, 600000),
     .env = "MINFER_BENCH_WARMUP_MS", .help = "milliseconds of work before the clock starts"},
    {"--output -o", "FORMAT", MF_FLAG_TEXT, BENCH, MF_GROUP_BENCH, AT(output), .choices = "md|csv|json",
     .source = MF_SOURCE_FORM, .help = "md, csv or json (default: md)"},

    // Perplexity
    {"--chunks", "N", MF_FLAG_INT, PPL, MF_GROUP_BENCH, AT(chunks), RANGE(-1, INT32_MAX),
     .help = "chunks that are read at most; -1: all of the text"},
    {"--save-logits", "FILE", MF_FLAG_TEXT, PPL, MF_GROUP_BENCH, AT(save_logits), .source = MF_SOURCE_KL,
     .help = "writes the log-probabilities of all scored rows there, as a base for --kl-base"},
    {"--kl-base --kl-divergence-base", "FILE", MF_FLAG_TEXT, PPL, MF_GROUP_BENCH, AT(kl_base), .source = MF_SOURCE_KL,
     .help = "compares with log-probabilities that were saved there (the text is in it), by minfer or llama-perplexity"},

    // Output
    {"--json", NULL, MF_FLAG_BOOL, MF_CMD_ALL & ~(MF_CMD_RM | MF_CMD_COMPLETION | MF_CMD_HELP | CHAT), MF_GROUP_OUTPUT,
     AT(json), .source = MF_SOURCE_FORM, .help = "prints one JSON object instead of text"},
    {"--logprobs --n-probs", "N", MF_FLAG_INT, MF_CMD_RUN, MF_GROUP_OUTPUT, AT(logprobs), RANGE(-1, MF_SAMPLER_LOGPROBS_MAX),
     .marks = MF_FLAG_NO_DEFAULT, .help = "log-probability of every token and of the N best (default: none)"},
    {"--meta", NULL, MF_FLAG_BOOL, RUN, MF_GROUP_OUTPUT, AT(meta),
     .help = "prints the file's metadata and its key tensors first"},
    {"--color", "auto|always|never", MF_FLAG_TEXT, RUN, MF_GROUP_OUTPUT, AT(color),
     .choices = "auto|always|never|on|off|1|0", .marks = MF_FLAG_OPTIONAL,
     .help = "dims what a model thinks (default: auto, on a terminal where NO_COLOR is not set)"},
    {"--raw-output", NULL, MF_FLAG_BOOL, RUN | MF_CMD_RENDER | MF_CMD_TOKENIZE, MF_GROUP_OUTPUT, AT(raw_output),
     .help = "lets control characters of a text through to a terminal"},
    {"--yes -y", NULL, MF_FLAG_BOOL, MF_CMD_RM, MF_GROUP_OUTPUT, AT(yes), .env = "", .help = "removes without a question"},
    {"--names", NULL, MF_FLAG_BOOL, MF_CMD_LIST, MF_GROUP_OUTPUT, AT(names), .env = "", .source = MF_SOURCE_FORM,
     .help = "prints the names alone, a line each, for shells; those that would have to be quoted are left out"},
    {"--verbose -v", NULL, MF_FLAG_BOOL, MF_CMD_ALL, MF_GROUP_OUTPUT, AT(verbose), .help = "says more on standard error"},
    {"--help -h --usage", NULL, MF_FLAG_BOOL, MF_CMD_ALL, MF_GROUP_OUTPUT, AT(help), .env = "", .help = "prints this"},
    {"--version", NULL, MF_FLAG_BOOL, MF_CMD_ALL, MF_GROUP_OUTPUT, AT(version), .env = "",
     .help = "prints the versions of the program and its arithmetic, and the kernels in use"},
    {"--help-markdown", NULL, MF_FLAG_BOOL, MF_CMD_ALL, MF_GROUP_OUTPUT, AT(help_markdown), .env = "",
     .marks = MF_FLAG_HIDDEN, .help = "prints the reference of all flags for docs/cli.md"},
    {"--help-man", NULL, MF_FLAG_BOOL, MF_CMD_ALL, MF_GROUP_OUTPUT, AT(help_man), .env = "", .marks = MF_FLAG_HIDDEN,
     .help = "prints the man page"},
};

_Static_assert(sizeof flags / sizeof flags[0] <= MF_CLI_MAX_FLAGS, "mf_options.given has a place for every flag");

const mf_flag *mf_flags(size_t *n) {
    *n = sizeof flags / sizeof flags[0];
    return flags;
}

void mf_options_init(mf_options *o) {
    *o = (mf_options){
        .n_predict = 512,
        .logprobs = -1,
        .seed = 42,
        .batch = 512,
        .bench_prompt = 512,
        .bench_gen = 128,
        .repetitions = 5,
        .parallel = 1,
        .warmup_ms = 2000,
        .chunks = -1,
        .output = "md",
    };
    mf_sampler_params_init(&o->sampler);
}
