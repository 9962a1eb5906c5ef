// Looking for numbers that are not finite in the file's layout: floats, and the half-precision scales of blocks. All else of a block is
// a small integer.
#include "quant/finite.h"

#include <string.h>

#include "quant/blocks.h"

bool mf_scales_of(mf_type type, int out[2]) {
    static const struct {
        mf_type type;
        int first, second;
    } all[] = {
        {MF_TYPE_Q4_0, offsetof(mf_block_q4_0, d), -1},
        {MF_TYPE_Q4_1, offsetof(mf_block_q4_1, d), offsetof(mf_block_q4_1, m)},
        {MF_TYPE_Q5_0, offsetof(mf_block_q5_0, d), -1},
        {MF_TYPE_Q5_1, offsetof(mf_block_q5_1, d), offsetof(mf_block_q5_1, m)},
        {MF_TYPE_Q8_0, offsetof(mf_block_q8_0, d), -1},
        {MF_TYPE_Q2_K, offsetof(mf_block_q2_k, d), offsetof(mf_block_q2_k, dmin)},
        {MF_TYPE_Q3_K, offsetof(mf_block_q3_k, d), -1},
        {MF_TYPE_Q4_K, offsetof(mf_block_q4_k, d), offsetof(mf_block_q4_k, dmin)},
        {MF_TYPE_Q5_K, offsetof(mf_block_q5_k, d), offsetof(mf_block_q5_k, dmin)},
        {MF_TYPE_Q6_K, offsetof(mf_block_q6_k, d), -1},
        {MF_TYPE_IQ4_NL, offsetof(mf_block_iq4_nl, d), -1},
        {MF_TYPE_IQ4_XS, offsetof(mf_block_iq4_xs, d), -1},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].type != type) continue;
        out[0] = all[i].first;
        out[1] = all[i].second;
        return true;
    }
    return false;
}

// Whether one of n numbers of `size` bytes, `stride` apart, has all bits of `exponent` set.
static inline bool any_full_exponent(const uint8_t *at, size_t n, size_t size, size_t stride, uint32_t exponent) {
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = 0;
        memcpy(&bits, at + i * stride, size);
        found |= (bits & exponent) == exponent;
    }
    return found != 0;
}

bool mf_all_finite(mf_type type, const void *data, size_t n) {
    const uint8_t *at = data;
    int scales[2];
    if (type == MF_TYPE_F32) return !any_full_exponent(at, n, 4, 4, 0x7F800000);
    if (type == MF_TYPE_F16) return !any_full_exponent(at, n, 2, 2, 0x7C00);
    if (type == MF_TYPE_BF16) return !any_full_exponent(at, n, 2, 2, 0x7F80);
    if (!mf_scales_of(type, scales)) return true;
    const mf_type_info *info = mf_type_info_of(type);
    const size_t blocks = n / info->block_len, stride = info->block_bytes;
    return !any_full_exponent(at + scales[0], blocks, 2, stride, 0x7C00) &&
           (scales[1] < 0 || !any_full_exponent(at + scales[1], blocks, 2, stride, 0x7C00));
}

size_t mf_first_not_finite(mf_type type, const void *data, size_t n) {
    const mf_type_info *info = mf_type_info_of(type);
    const size_t len = info->block_len;
    for (size_t i = 0; i < n; i += len)
        if (!mf_all_finite(type, (const uint8_t *)data + i / len * info->block_bytes, len)) return i;
    return n;
}
