// What an engine shows of its inside: its graph in a file, the time of its operations.
#ifndef MF_CLI_INSIDE_H
#define MF_CLI_INSIDE_H

#include "cli/load.h"
#include "cli/options.h"

// Writes the files of --dump-graph and --dump-graph-json, and says so.
bool mf_inside_dump(const mf_loaded *l, const mf_options *o, mf_error *err);

// The table of --op-timing on standard error; nothing without the flag.
void mf_inside_timing(const mf_loaded *l);

#endif
