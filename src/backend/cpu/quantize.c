// Activations to int8: the reference, and the size of a row.
#include "backend/cpu/quantize.h"
#include "backend/cpu/act.h"
#include "base/half.h"
#include "base/mem.h"

size_t mf_act_row_bytes(mf_format format, int64_t n) {
    const size_t values = (size_t)n;
    switch (format) {
    case MF_FORMAT_A8_32: return mf_align_up(values + values / 32 * 16, 64) + 64;
    case MF_FORMAT_A8_256: return mf_align_up(values + values / 256 * 116, 64) + 64;
    default: return values * sizeof(float);
    }
}

// Nearest integer, ties to even, of |x| < 2^22.
static float round_even(float x) {
    const float shift = 0x1.8p23f;
    return (x + shift) - shift;
}

// One group of n values: fills q and *d; false when a value is not finite (the group is zeros then).
static bool quantize_group(const float *x, int n, int8_t *q, float *d) {
    uint32_t bits = 0;
    for (int i = 0; i < n; i++) {
        const uint32_t b = mf_f32_bits(x[i]) & 0x7fffffff;
        bits = b > bits ? b : bits;
    }
    const float amax = mf_bits_f32(bits);
    const bool finite = bits < 0x7f800000, zero = !finite || amax < MF_ACT_TINY;
    const float id = zero ? 0 : 127 / amax;
    *d = zero ? 0 : amax / 127;
    for (int i = 0; i < n; i++) q[i] = zero ? 0 : (int8_t)round_even(x[i] * id);
    return finite;
}

// The sums of q[0 .. n-1] with i mod 4 = 0, 1 and with i mod 4 = 2, 3.
static void pair_sums(const int8_t *q, int n, int sum[2]) {
    sum[0] = sum[1] = 0;
    for (int i = 0; i < n; i++) sum[i / 2 % 2] += q[i];
}

bool mf_quantize_32_scalar(const float *x, void *row, int64_t n) {
    const mf_act32 a = mf_act32_of(row, n);
    bool finite = true;
    for (int64_t b = 0; b < n / 32; b++) {
        finite &= quantize_group(x + 32 * b, 32, a.q + 32 * b, &a.d[b]);
        int sum[2];
        pair_sums(a.q + 32 * b, 32, sum);
        a.asum[b] = sum[0] + sum[1];
        a.s[b] = a.d[b] * (float)a.asum[b];
        for (int i = 0; i < 2; i++) a.start[2 * b + i] = (int16_t)(-MF_ACT32_OFFSET * sum[i]);
    }
    return finite;
}

bool mf_quantize_256_scalar(const float *x, void *row, int64_t n) {
    const mf_act256 a = mf_act256_of(row, n);
    bool finite = true;
    for (int64_t b = 0; b < n / 256; b++) finite &= quantize_group(x + 256 * b, 256, a.q + 256 * b, &a.d[b]);
    for (int64_t j = 0; j < n / 16; j++) {
        int sum[2];
        pair_sums(a.q + 16 * j, 16, sum);
        a.asum[j] = (int16_t)(sum[0] + sum[1]);
        for (int i = 0; i < 2; i++) a.start[2 * j + i] = (int16_t)(-MF_ACT256_OFFSET * sum[i]);
    }
    for (int64_t j = 0; j < n / 32; j++) a.asum32[j] = (int16_t)(a.asum[2 * j] + a.asum[2 * j + 1]);
    return finite;
}

void mf_act_decode(mf_format format, const void *row, int64_t n, float *out) {
    const int64_t group = format == MF_FORMAT_A8_32 ? 32 : 256;
    const int8_t *q = format == MF_FORMAT_A8_32 ? mf_act32_of(row, n).q : mf_act256_of(row, n).q;
    const float *d = format == MF_FORMAT_A8_32 ? mf_act32_of(row, n).d : mf_act256_of(row, n).d;
    for (int64_t i = 0; i < n; i++) out[i] = d[i / group] * (float)q[i];
}
