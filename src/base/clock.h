// Time.
#ifndef MF_BASE_CLOCK_H
#define MF_BASE_CLOCK_H

#include <stdint.h>

// Monotonic nanoseconds.
uint64_t mf_clock_ns(void);

// Nanoseconds since 1970, as files have them.
int64_t mf_clock_since_1970(void);

static inline double mf_clock_seconds(uint64_t from_ns, uint64_t to_ns) { return (double)(to_ns - from_ns) * 1e-9; }

#endif
