// The flag parser: every kind, every spelling, every refusal, the environment, and the table's own consistency.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/log.h"
#include "cli/flags.h"
#include "graph/graph.h"

static mf_options o;
static mf_error err;

static const char *env_name, *env_value;

static char *fake_env(const char *name) {
    return env_name && strcmp(name, env_name) == 0 ? (char *)(uintptr_t)env_value : NULL;
}

// Parses words separated by spaces ('~' is a space inside a word, "''" an empty word).
static int parse_with(const char *command, const char *line, mf_env_fn *env) {
    static char text[1024];
    char *argv[64];
    int argc = 0;
    mf_options_free(&o);
    err = (mf_error){0};
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        if (strcmp(word, "''") == 0) *word = 0;
        for (char *p = word; *p; p++)
            if (*p == '~') *p = ' ';
        argv[argc++] = word;
    }
    return mf_flags_parse(mf_command_find(command), argc, argv, env, &o, &err);
}

static int parse(const char *command, const char *line) { return parse_with(command, line, NULL); }

static void good(const char *command, const char *line) {
    int code = parse(command, line);
    if (code != MF_EXIT_DONE) print_error("%s %s: %s\n", command, line, err.text);
    assert_int_equal(code, MF_EXIT_DONE);
}

// The refusal's code, and a part of its sentence.
static void bad(const char *command, const char *line, int code, const char *part) {
    assert_int_equal(parse(command, line), code);
    if (!strstr(err.text, part)) print_error("%s %s: '%s' has no '%s'\n", command, line, err.text, part);
    assert_non_null(strstr(err.text, part));
}

static void words(void **state) {
    (void)state;
    good("run", "model.gguf");
    assert_string_equal(o.model, "model.gguf");
    assert_null(o.prompt);
    good("run", "model.gguf a~prompt");
    assert_string_equal(o.model, "model.gguf");
    assert_string_equal(o.prompt, "a prompt");
    good("run", "-m model.gguf a~prompt");
    assert_string_equal(o.model, "model.gguf");
    assert_string_equal(o.prompt, "a prompt");
    good("run", "a.gguf -- -p");
    assert_string_equal(o.prompt, "-p");
    good("run", "a.gguf -");
    assert_string_equal(o.prompt, "-");
    good("info", "a.gguf");
    assert_string_equal(o.model, "a.gguf");
    good("doctor", "");
    assert_null(o.model);
    bad("run", "a.gguf b c", MF_EXIT_USAGE, "unexpected word 'c'");
    bad("info", "a.gguf b", MF_EXIT_USAGE, "unexpected word 'b'");
    bad("doctor", "a.gguf", MF_EXIT_USAGE, "unexpected word 'a.gguf'");
    bad("run", "-m a.gguf b c", MF_EXIT_USAGE, "unexpected word 'c'");
    bad("bench", "-m a.gguf b", MF_EXIT_USAGE, "unexpected word 'b'");
}

static void one_source(void **state) {
    (void)state;
    bad("run", "m.gguf -p a -f b", MF_EXIT_USAGE, "--prompt and --file are both given");
    bad("run", "m.gguf a -p b", MF_EXIT_USAGE, "by --prompt and as the word 'a'");
    bad("run", "m.gguf -f b a", MF_EXIT_USAGE, "by --file and as the word 'a'");
    bad("run", "m.gguf --temp 1 --greedy", MF_EXIT_USAGE, "--temp and --greedy are both given");
    good("run", "m.gguf -p a -p b"); // the last one counts
    assert_string_equal(o.prompt, "b");
    good("tokenize", "m.gguf -f x");
    assert_string_equal(o.prompt_file, "x");
}

static void whole_numbers(void **state) {
    (void)state;
    good("run", "m -n 7");
    assert_int_equal(o.n_predict, 7);
    good("run", "m -n -1");
    assert_int_equal(o.n_predict, -1);
    const char *spellings[] = {"m --predict 9", "m --n-predict 9", "m --max-tokens 9", "m --predict=9", "m -n 9"};
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        good("run", spellings[i]);
        assert_int_equal(o.n_predict, 9);
    }
    good("run", "m --seed -1 -c 77 -b 3 -t 2");
    assert_int_equal(o.seed, -1);
    assert_int_equal(o.ctx, 77);
    assert_int_equal(o.batch, 3);
    assert_int_equal(o.threads, 2);
    good("run", "m -s 9223372036854775807");
    assert_true(o.seed == INT64_MAX);
    good("run", "m");
    assert_int_equal(o.n_predict, 512);
    assert_int_equal(o.ctx, 0);
    assert_int_equal(o.batch, 512);
    assert_int_equal(o.seed, 42);
    bad("run", "m -n x", MF_EXIT_USAGE, "-n: 'x' is not a whole number");
    bad("run", "m -n 1.5", MF_EXIT_USAGE, "'1.5' is not a whole number");
    bad("run", "m -n ''", MF_EXIT_USAGE, "'' is not a whole number");
    bad("run", "m -n -", MF_EXIT_USAGE, "'-' is not a whole number");
    bad("run", "m --predict=", MF_EXIT_USAGE, "--predict: '' is not a whole number");
    bad("run", "m -n", MF_EXIT_USAGE, "the flag -n needs a value (N)");
    bad("run", "m -n -2", MF_EXIT_REFUSED, "-n: -2 is below -1");
    bad("run", "m -n 99999999999999999999", MF_EXIT_REFUSED, "99999999999999999999 is not between");
    bad("run", "m -t 0", MF_EXIT_REFUSED, "-t: 0 is not between 1 and 8192");
    bad("run", "m -t 8193", MF_EXIT_REFUSED, "8193 is not between 1 and 8192");
    bad("run", "m --batch-size 8193", MF_EXIT_REFUSED, "8193 is not between 1 and 8192");
    bad("run", "m -c 0", MF_EXIT_REFUSED, "-c: 0 is below 1");
    bad("run", "m --seed -2", MF_EXIT_REFUSED, "--seed: -2 is below -1");
    bad("run", "m --logprobs 129", MF_EXIT_REFUSED, "129 is not between -1 and 128");
}

static void reals(void **state) {
    (void)state;
    good("run", "m --temp 0.5 --top-p 1e-1 --frequency-penalty -2 --top-k 3");
    assert_float_equal(o.sampler.temp, 0.5F, 0);
    assert_float_equal(o.sampler.top_p, 0.1F, 0);
    assert_float_equal(o.sampler.frequency_penalty, -2.0F, 0);
    assert_int_equal(o.sampler.top_k, 3);
    assert_true(mf_flag_given(&o, "--temp"));
    assert_false(mf_flag_given(&o, "--min-p"));
    bad("run", "m --temp warm", MF_EXIT_USAGE, "--temp: 'warm' is not a number");
    bad("run", "m --temp nan", MF_EXIT_USAGE, "'nan' is not a number");
    bad("run", "m --temp 1x", MF_EXIT_USAGE, "'1x' is not a number");
    bad("run", "m --top-k 1.5", MF_EXIT_USAGE, "'1.5' is not a whole number");
    bad("run", "m --temp", MF_EXIT_USAGE, "the flag --temp needs a value (X)");
}

static void bools(void **state) {
    (void)state;
    good("run", "m --raw --json");
    assert_true(o.raw && o.json);
    good("run", "m --raw=no --json=on");
    assert_true(!o.raw && o.json);
    const char *raw[] = {"m --no-template", "m -no-cnv", "m --no-conversation"};
    for (size_t i = 0; i < sizeof raw / sizeof raw[0]; i++) {
        good("run", raw[i]);
        assert_true(o.raw);
    }
    bad("run", "m --raw=maybe", MF_EXIT_USAGE, "--raw: 'maybe' is not yes or no");
}

static void texts_and_lists(void **state) {
    (void)state;
    good("run", "m --stop a --stop b~c -r d");
    assert_int_equal(o.stop.len, 3);
    assert_string_equal(o.stop.data[1], "b c");
    assert_string_equal(o.stop.data[2], "d");
    good("bench", "m -o json");
    assert_string_equal(o.output, "json");
    good("run", "m -ctk f32 -ctv f32 --backend cpu --backend CUDA,cpu");
    assert_string_equal(o.cache_type_k, "f32");
    assert_int_equal(o.backends.len, 2);
    bad("bench", "m -o xml", MF_EXIT_USAGE, "-o: 'xml' is not one of md|csv|json");
    bad("run", "m --cache-type q4_0", MF_EXIT_USAGE, "--cache-type: 'q4_0' is not one of f16|f32|q8_0");
    bad("run", "m --stop", MF_EXIT_USAGE, "the flag --stop needs a value");
}

static void sets_and_biases(void **state) {
    (void)state;
    good("run", "m --no-fuse qkv,ffn --no-fuse add");
    assert_int_equal(o.no_fuse, MF_FUSE_QKV | MF_FUSE_FFN | MF_FUSE_ADD);
    good("bench", "m --no-fuse all");
    assert_int_equal(o.no_fuse, MF_FUSE_ALL);
    bad("run", "m --no-fuse qkv,x", MF_EXIT_USAGE, "'x' is not one of qkv, ffn, norm, add, all");
    bad("run", "m --no-fuse ''", MF_EXIT_USAGE, "'' is not one of");
    good("run", "m --logit-bias 5:1.5,7:-100 -l 9:0");
    assert_int_equal(o.logit_bias.len, 3);
    assert_int_equal(o.logit_bias.data[1].token, 7);
    assert_float_equal(o.logit_bias.data[1].bias, -100, 0);
    assert_int_equal(o.logit_bias.data[2].token, 9);
    const char *wrong[] = {"m -l 5", "m -l 5:", "m -l :5", "m -l x:1", "m -l 5:1,", "m -l 5:1:1", "m -l 99999999999:1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) bad("run", wrong[i], MF_EXIT_USAGE, "is not ID:BIAS");
}

// A word of the command's own is no model, and --color may stand without a value, but not before a word that might be meant as one.
static void own_words(void **state) {
    (void)state;
    good("rm", "smollm2 --yes");
    assert_string_equal(o.word, "smollm2");
    assert_null(o.model);
    assert_true(o.yes);
    good("completion", "zsh");
    assert_string_equal(o.word, "zsh");
    good("list", "--json");
    assert_null(o.word);
    bad("rm", "a b", MF_EXIT_USAGE, "unexpected word 'b'");
    bad("list", "a", MF_EXIT_USAGE, "unexpected word 'a'");
    const char *without[] = {"m hi --color", "m --color -n 3 hi", "m --color -- hi"};
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        good("run", without[i]);
        assert_string_equal(o.color, "always");
        assert_string_equal(o.prompt, "hi");
    }
    const char *refusal = "--color: 'hi' is not one of auto|always|never|on|off|1|0; a prompt goes before the flag";
    bad("run", "m --color hi", MF_EXIT_USAGE, refusal);
    bad("chat", "m --color hi", MF_EXIT_USAGE, refusal);
    bad("run", "m --color hi there", MF_EXIT_USAGE, refusal);
    bad("run", "m --color -", MF_EXIT_USAGE, "--color: '-' is not one of");
    good("run", "m --color never hi");
    assert_string_equal(o.color, "never");
    assert_string_equal(o.prompt, "hi");
    bad("run", "m --color=pink", MF_EXIT_USAGE, "--color: 'pink' is not one of");
    bad("perplexity", "m --kl-base a --save-logits b", MF_EXIT_USAGE, "are both given");
}

static void unknown_flags(void **state) {
    (void)state;
    bad("run", "m --tmep 1", MF_EXIT_USAGE, "unknown flag '--tmep'; did you mean --temp?");
    bad("run", "m --ctxsize 5", MF_EXIT_USAGE, "did you mean --ctx-size?");
    bad("run", "m --zzzzzzzz", MF_EXIT_USAGE, "unknown flag '--zzzzzzzz'; minfer run --help lists them");
    bad("run", "m -Z", MF_EXIT_USAGE, "unknown flag '-Z'");
    bad("info", "m --ids", MF_EXIT_USAGE, "minfer info does not take the flag --ids");
    bad("bench", "m --temp 1", MF_EXIT_USAGE, "minfer bench does not take the flag --temp");
    bad("run", "m -=", MF_EXIT_USAGE, "unknown flag '-='");
    bad("run", "m --=1", MF_EXIT_USAGE, "unknown flag '--'");
}

static void flags_of_llama_cpp(void **state) {
    (void)state;
    mf_log_set_level(MF_LOG_ERROR);
    good("run",
         "-m m.gguf -ngl 99 -fa on --no-mmap --mlock -ub 256 -np 1 --no-warmup --simple-io --color auto -st -p hi -n 3");
    assert_string_equal(o.prompt, "hi");
    assert_int_equal(o.n_predict, 3);
    good("run", "m.gguf -fa hi"); // the older form without a value
    assert_string_equal(o.prompt, "hi");
    good("run", "m.gguf --n-gpu-layers=99 --color -p hi");
    assert_string_equal(o.prompt, "hi");
    good("bench", "m.gguf -np 4 -d 8 -ngl 1");
    assert_int_equal(o.parallel, 4);
    bad("run", "m -ngl", MF_EXIT_USAGE, "the flag -ngl needs a value");
    bad("run", "-hf a/b", MF_EXIT_USAGE, "-hf: downloading is not in this version");
    bad("run", "m --grammar x --json-schema y", MF_EXIT_USAGE,
        "--grammar and --json-schema are both given; one of them is enough");
    bad("run", "m -if", MF_EXIT_USAGE, "-if: minfer chat waits");
    good("run", "m -cnv --keep 4 --no-context-shift -st");
    assert_true(o.conversation && o.no_context_shift && o.single_turn);
    good("chat", "m -mli --session s.json --hide-thinking");
    assert_true(o.multiline && o.hide_thinking);
    bad("chat", "m --raw", MF_EXIT_USAGE, "minfer chat does not take the flag --raw");
    for (const char *const *w = (const char *const[]){"--raw", "--json", "--logprobs 2", "--dump-graph g", NULL}; *w; w++) {
        char line[64];
        snprintf(line, sizeof line, "m %s -i", *w);
        bad("run", line, MF_EXIT_USAGE, "minfer chat does not take the flag --");
    }
    good("run", "m --session s.json -cnv -mli");
    assert_string_equal(o.command->name, "chat");
    assert_string_equal(o.session, "s.json");
    good("run", "m --conversation=no");
    assert_string_equal(o.command->name, "run");
    bad("run", "m --session s.json", MF_EXIT_USAGE, "minfer run does not take the flag --session; it belongs to chat");
    bad("run", "m -mli", MF_EXIT_USAGE, "minfer run does not take the flag -mli; it belongs to chat");
    good("run", "m --keep 4 --no-context-shift -st"); // each with a word
    bad("run", "m --list-devices", MF_EXIT_USAGE, "minfer doctor");
    mf_log_set_level(MF_LOG_NOTICE);
}

static void environment(void **state) {
    (void)state;
    const struct {
        const char *name, *value, *line;
    } cases[] = {{"MINFER_CTX", "99", "m"}, {"MINFER_CTX", "1", "m -c 99"}, {"MINFER_CTX", "x", "m --ctx=99"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        env_name = cases[i].name, env_value = cases[i].value;
        assert_int_equal(parse_with("run", cases[i].line, fake_env), MF_EXIT_DONE);
        assert_int_equal(o.ctx, 99);
        assert_true(mf_flag_given(&o, "--ctx"));
    }
    env_name = "MINFER_CTX", env_value = "x";
    assert_int_equal(parse_with("run", "m", fake_env), MF_EXIT_USAGE);
    assert_string_equal(err.text, "MINFER_CTX: 'x' is not a whole number");
    assert_int_equal(parse_with("tokenize", "m", fake_env), MF_EXIT_DONE); // it has no such flag
    env_name = "MINFER_CTX", env_value = "";
    assert_int_equal(parse_with("run", "m", fake_env), MF_EXIT_DONE);
    assert_int_equal(o.ctx, 0);
    env_name = "MINFER_BACKENDS", env_value = "cuda";
    assert_int_equal(parse_with("run", "m", fake_env), MF_EXIT_DONE);
    assert_int_equal(o.backends.len, 1);
    assert_int_equal(parse_with("run", "m --backend cpu", fake_env), MF_EXIT_DONE);
    assert_int_equal(o.backends.len, 1);
    assert_string_equal(o.backends.data[0], "cpu");
    env_name = "MINFER_RAW", env_value = "1";
    assert_int_equal(parse_with("run", "m", fake_env), MF_EXIT_DONE);
    assert_true(o.raw);
    env_name = "MINFER_PROMPT", env_value = "from outside";
    assert_int_equal(parse_with("run", "m -f x", fake_env), MF_EXIT_DONE);
    assert_null(o.prompt);
    assert_int_equal(parse_with("run", "m word", fake_env), MF_EXIT_DONE);
    assert_string_equal(o.prompt, "word");
    env_name = "MINFER_NO_PREFIX_REUSE", env_value = "1";
    assert_int_equal(parse_with("run", "m", fake_env), MF_EXIT_DONE);
    assert_true(o.no_prefix_cache);
    env_name = "MINFER_HELP", env_value = "1";
    assert_int_equal(parse_with("run", "m", fake_env), MF_EXIT_DONE);
    assert_false(o.help);
}

static void model_from_environment(void **state) {
    (void)state;
    env_name = "MINFER_MODEL", env_value = "env.gguf";
    assert_int_equal(parse_with("run", "", fake_env), MF_EXIT_DONE);
    assert_string_equal(o.model, "env.gguf");
    assert_int_equal(parse_with("run", "What~is~this?", fake_env), MF_EXIT_DONE);
    assert_string_equal(o.model, "env.gguf");
    assert_string_equal(o.prompt, "What is this?");
    assert_int_equal(parse_with("run", "other.gguf", fake_env), MF_EXIT_DONE);
    assert_string_equal(o.model, "other.gguf");
    assert_null(o.prompt);
    assert_int_equal(parse_with("run", "other.gguf hi", fake_env), MF_EXIT_DONE);
    assert_string_equal(o.model, "other.gguf");
    assert_int_equal(parse_with("info", "other", fake_env), MF_EXIT_DONE);
    assert_string_equal(o.model, "other");
}

// Names are distinct within a command, and every flag can be set from its environment form.
static void table(void **state) {
    (void)state;
    size_t n;
    const mf_flag *flags = mf_flags(&n);
    for (size_t i = 0; i < n; i++) {
        char name[64], env[64], env_other[64];
        mf_flag_name(&flags[i], name);
        assert_true(strncmp(name, "--", 2) == 0);
        assert_true(strlen(flags[i].help) > 3);
        assert_true((flags[i].argument == NULL) == (flags[i].kind == MF_FLAG_BOOL));
        mf_flag_env(&flags[i], env);
        for (size_t j = i + 1; j < n; j++) {
            if (!(flags[i].commands & flags[j].commands)) continue;
            mf_flag_env(&flags[j], env_other);
            assert_false(env[0] && strcmp(env, env_other) == 0);
            for (const char *p = flags[j].names; *p; p += strcspn(p, " "), p += *p == ' ')
                assert_false(mf_names_have(flags[i].names, (mf_str){p, strcspn(p, " ")}));
        }
    }
    char env[64];
    for (size_t i = 0; i < n; i++) {
        mf_flag_env(&flags[i], env);
        if (strncmp(flags[i].names, "--batch-size", 12) == 0) assert_string_equal(env, "MINFER_BATCH_SIZE");
    }
}

// Flags that stand in the table are not shadowed rows of the table for llama.cpp's.
static void llama_table(void **state) {
    (void)state;
    size_t n;
    const mf_flag *flags = mf_flags(&n);
    for (size_t i = 0; i < n; i++) {
        if (!(flags[i].commands & MF_CMD_RUN)) continue;
        for (const char *p = flags[i].names; *p; p += strcspn(p, " "), p += *p == ' ')
            assert_null(mf_llama_flag_find((mf_str){p, strcspn(p, " ")}));
    }
}

static void help_texts(void **state) {
    (void)state;
    mf_buf text = {0};
    mf_help_main(&text);
    assert_non_null(strstr(text.data, "usage: minfer MODEL [PROMPT]"));
    assert_non_null(strstr(text.data, "bench"));
    assert_non_null(strstr(text.data, "(default: 0.95)"));
    assert_null(strstr(text.data, "--help-markdown"));
    free(text.data);
    text = (mf_buf){0};
    mf_help_command(mf_command_find("bench"), &text);
    assert_non_null(strstr(text.data, "-p, --n-prompt N"));
    assert_null(strstr(text.data, "--temp"));
    free(text.data);
    text = (mf_buf){0};
    mf_help_markdown(&text);
    assert_non_null(strstr(text.data, "`MINFER_BENCH_WARMUP_MS`"));
    assert_false(text.failed);
    free(text.data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words),           cmocka_unit_test(one_source),
        cmocka_unit_test(whole_numbers),   cmocka_unit_test(reals),
        cmocka_unit_test(bools),           cmocka_unit_test(texts_and_lists),
        cmocka_unit_test(sets_and_biases), cmocka_unit_test(own_words),
        cmocka_unit_test(unknown_flags),   cmocka_unit_test(flags_of_llama_cpp),
        cmocka_unit_test(environment),     cmocka_unit_test(model_from_environment),
        cmocka_unit_test(table),           cmocka_unit_test(llama_table),
        cmocka_unit_test(help_texts),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    mf_options_free(&o);
    return failed;
}
