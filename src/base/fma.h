// The fused multiply-add of docs/arithmetic.md: a * b + c in float, rounded once. Where the target has no such instruction
// it is put together from exact steps, with the same bits.
#ifndef MF_BASE_FMA_H
#define MF_BASE_FMA_H

#include <stdint.h>
#include <string.h>

static inline float mf_fma(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
    return __builtin_fmaf(a, b, c);
#else
    // The product of two floats is exact in double (48 bits). sum + error is the exact result (Knuth's two-sum).
    double product = (double)a * b, addend = c;
    double sum = product + addend;
    double part = sum - product;
    double error = (product - (sum - part)) + (addend - part);
    // Round the sum to odd: where something was rounded off an even sum, take its neighbour on the exact result's side. A sum
    // to odd with at least two more bits than float rounds to float as the exact result does (Boldo and Melquiond, 2008). For
    // an infinite or NaN sum the error is NaN and nothing is changed.
    int64_t bits, towards = (error > 0) - (error < 0);
    memcpy(&bits, &sum, 8);
    int64_t negative = bits >> 63, even = (bits & 1) - 1;
    uint64_t odd = (uint64_t)bits + (uint64_t)(((towards ^ negative) - negative) & even);
    memcpy(&sum, &odd, 8);
    return (float)sum;
#endif
}

#endif
