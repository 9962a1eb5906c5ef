// The subcommands. Each gets parsed options and gives the exit code.
#ifndef MF_CLI_COMMANDS_H
#define MF_CLI_COMMANDS_H

#include "cli/flags.h"

int mf_command_run(mf_options *o);
int mf_command_chat(mf_options *o);
int mf_command_session(mf_options *o);
int mf_command_info(mf_options *o);
int mf_command_tokenize(mf_options *o);
int mf_command_render(mf_options *o);
int mf_command_grammar(mf_options *o);
int mf_command_bench(mf_options *o);
int mf_command_doctor(mf_options *o);
int mf_command_perplexity(mf_options *o);
int mf_command_list(mf_options *o);
int mf_command_rm(mf_options *o);
int mf_command_completion(mf_options *o);

// The whole program but main(): chooses the subcommand, parses, runs.
int mf_cli_main(int argc, char *const *argv);

// The exit code for --stop texts that make no sense, with err; MF_EXIT_DONE: all do.
int mf_cli_check_stops(const mf_options *o, mf_error *err);

// Says an error on standard error and gives its exit code (130 for a stop by Ctrl-C).
int mf_cli_fail(const mf_error *err);

// The option's model path, or NULL with the sentence that says how to give one.
const char *mf_cli_model(const mf_options *o, mf_error *err);

#endif
