// What Linux tells through /proc and /sys about processors and memory. `root` goes before every path ("" on a real machine),
// so that tests can build their own tree.
#ifndef MF_BASE_CPU_LINUX_H
#define MF_BASE_CPU_LINUX_H

#include <stdint.h>

// mf_cpu_default_threads for the n_cpus processors whose numbers are in cpus (an affinity mask, ascending).
int mf_cpu_threads_at(const char *root, const int *cpus, int n_cpus);

// How many threads can run at the same time: n_cpus, or the cgroup's CPU quota rounded up where that is less. At least 1.
int mf_cpu_parallel_at(const char *root, int n_cpus);

// mf_memory_available.
uint64_t mf_memory_available_at(const char *root);

// mf_cpu_parallel_at for this process: the bound up to which spinning threads don't take each other's processor.
int mf_cpu_parallel(void);

#endif
