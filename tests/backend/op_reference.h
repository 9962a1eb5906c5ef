// References in double precision, written from the operations' formulas, for tests of what devices compute.
#ifndef TESTS_BACKEND_OP_REFERENCE_H
#define TESTS_BACKEND_OP_REFERENCE_H

#include <math.h>
#include <stdint.h>

static inline double ref_silu(double x) { return x / (1 + exp(-x)); }

static inline double ref_gelu(double x) { return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))); }

static inline void ref_rms_norm(const float *x, const float *w, int64_t n, double eps, double *out) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) squares += (double)x[i] * (double)x[i];
    double r = 1 / sqrt(squares / (double)n + eps);
    for (int64_t i = 0; i < n; i++) out[i] = (double)x[i] * r * (double)w[i];
}

static inline void ref_softmax(const double *x, int64_t n, double *out) {
    double largest = x[0], sum = 0;
    for (int64_t i = 1; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    for (int64_t i = 0; i < n; i++) sum += out[i] = exp(x[i] - largest);
    for (int64_t i = 0; i < n; i++) out[i] /= sum;
}

// The orthonormal Walsh-Hadamard transform of n <= 64 channels: the sign of (i, j) is the parity of the bits they share.
static inline void ref_hadamard(double *x, int n) {
    double out[64] = {0};
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) out[i] += __builtin_parity((unsigned)(i & j)) ? -x[j] : x[j];
    for (int i = 0; i < n; i++) x[i] = out[i] / sqrt(n);
}

// Turns a head's first n_dims channels.
static inline void ref_rope(const float *x, double position, const double *inv_freq, double magnitude, int n_dims,
                            int head_dim, int interleaved, double *out) {
    for (int i = 0; i < head_dim; i++) out[i] = (double)x[i];
    for (int i = 0; i < n_dims / 2; i++) {
        int a = interleaved ? 2 * i : i, b = interleaved ? 2 * i + 1 : i + n_dims / 2;
        double c = cos(position * inv_freq[i]) * magnitude, s = sin(position * inv_freq[i]) * magnitude;
        out[a] = (double)x[a] * c - (double)x[b] * s;
        out[b] = (double)x[b] * c + (double)x[a] * s;
    }
}

// What int8 activations stand for, in groups: whole steps of amax / 127, each value to the nearest one (ties to even). In float, as
// docs/arithmetic.md has it: another rounding would fall on another step. step[i]: of value i's group.
static inline void ref_int8(const float *x, int64_t n, int group, double *out, double *step) {
    for (int64_t g = 0; g < n; g += group) {
        float amax = 0;
        for (int i = 0; i < group; i++) amax = fabsf(x[g + i]) > amax ? fabsf(x[g + i]) : amax;
        float d = amax < 0x1p-120F ? 0 : amax / 127, id = amax < 0x1p-120F ? 0 : 127 / amax;
        for (int i = 0; i < group; i++) out[g + i] = (double)d * (double)rintf(x[g + i] * id), step[g + i] = (double)d;
    }
}

#endif
