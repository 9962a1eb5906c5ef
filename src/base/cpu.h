// What this machine is: instruction sets, usable processors, memory.
#ifndef MF_BASE_CPU_H
#define MF_BASE_CPU_H

#include <stdbool.h>
#include <stdint.h>

typedef struct mf_cpu_features {
    bool avx2;    // with fma, f16c, bmi2, and the operating system saving ymm state
    bool avxvnni; // the VEX-coded 256-bit form
    bool avx512;  // f, bw, dq, vl, with the operating system saving zmm state
    bool avx512vnni;
    bool amx; // amx-tile, amx-int8, and the kernel's permission was given to this process
    bool neon, dotprod, i8mm;
} mf_cpu_features;

// Read once from CPUID/XGETBV (x86) or the auxiliary vector (Arm).
const mf_cpu_features *mf_cpu_features_get(void);

// The processor's marketing name, "unknown" where there is none.
const char *mf_cpu_name(void);

// How many threads are worth starting: the processors of the affinity mask, one of each core's SMT siblings, performance cores
// only where there are two kinds, bounded by the cgroup's CPU quota (v1 and v2, rounded up). At least 1.
int mf_cpu_default_threads(void);

// Bytes that can be allocated without swapping: MemAvailable bounded by what the cgroup (v1 and v2) has left, less what was handed out in
// this process and has no pages yet (mf_promise_untouched).
uint64_t mf_memory_available(void);

// Bytes of this process that are resident (RSS); 0 where it can't be read.
uint64_t mf_memory_resident(void);

#endif
