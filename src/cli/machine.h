// Names of what this machine can do, as people know them.
#ifndef MF_CLI_MACHINE_H
#define MF_CLI_MACHINE_H

#include "base/cpu.h"
#include "base/text.h"

// The instruction sets found, separated by spaces; "none" where there are none that matter.
void mf_machine_features(const mf_cpu_features *f, mf_buf *out);

// What a kernel row needs, for the sentence that says why it is not usable; "" when the row is not known here.
const char *mf_machine_row_needs(const char *row);

uint64_t mf_machine_memory_total(void); // bytes of memory; 0 where it can't be read

#endif
