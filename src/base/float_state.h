// The floating-point state that all of the library's arithmetic runs in (docs/arithmetic.md): round to nearest, subnormals kept,
// exceptions masked. The program around it may have another in its threads, and gets it back with its exception flags.
#ifndef MF_BASE_FLOAT_STATE_H
#define MF_BASE_FLOAT_STATE_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

typedef struct mf_float_state {
#if defined(__x86_64__)
    uint32_t x87[7]; // what the C library's number formats look at
    uint32_t mxcsr;
#else
    uint64_t control, status;
#endif
} mf_float_state;

// Sets the state for the calling thread and returns the one before, for mf_float_leave.
static inline mf_float_state mf_float_enter(void) {
    mf_float_state old = {0};
#if defined(__x86_64__)
    const uint16_t masked_nearest_long = 0x37F;
    old.mxcsr = _mm_getcsr();
    _mm_setcsr(0x1F80);
    __asm__ volatile("fnstenv %0\n\tfldcw %1" : "=m"(old.x87) : "m"(masked_nearest_long) : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(old.control), "=r"(old.status));
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)0) : "memory");
#endif
    return old;
}

static inline void mf_float_leave(const mf_float_state *old) {
#if defined(__x86_64__)
    __asm__ volatile("fldenv %0" ::"m"(old->x87) : "memory");
    _mm_setcsr(old->mxcsr);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1" ::"r"(old->control), "r"(old->status) : "memory");
#else
    (void)old;
#endif
}

static inline void mf_float_leave_scope(mf_float_state *old) { mf_float_leave(old); }

// The state until the end of the block.
#define MF_FLOAT_SCOPE() \
    mf_float_state float_state_before __attribute__((cleanup(mf_float_leave_scope), unused)) = mf_float_enter()

#endif
