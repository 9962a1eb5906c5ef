#include "kv/cells.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

#define HALF_INFINITY 0x7c00
#define HALF_NAN      0x7e00

static void mix(float *x, int32_t n) {
    for (int32_t s = 1; s < n; s *= 2)
        for (int32_t i = 0; i < n; i += 2 * s)
            for (int32_t j = i; j < i + s; j++) {
                float a = x[j], b = x[j + s];
                x[j] = a + b;
                x[j + s] = a - b;
            }
    float norm = 1 / sqrtf((float)n);
    for (int32_t i = 0; i < n; i++) x[i] = x[i] * norm;
}

void mf_kv_hadamard(float *x, int32_t head_dim) {
    int32_t n = mf_kv_hadamard_width(head_dim);
    for (int32_t d = 0; d < head_dim; d += n) mix(x + d, n);
}

uint16_t mf_kv_quantize(const float *x, int8_t *q) {
    uint32_t bits = 0;
    for (int i = 0; i < MF_KV_GROUP; i++) {
        uint32_t b = mf_f32_bits(x[i]) & 0x7fffffff;
        if (b > bits) bits = b;
    }
    uint16_t d = bits < 0x7f800000 ? mf_f32_to_f16(mf_bits_f32(bits) / 127) : HALF_INFINITY;
    memset(q, 0, MF_KV_GROUP);
    if (d >= HALF_INFINITY) return HALF_NAN;
    if (d == 0) return 0;
    float id = 1 / mf_f16_to_f32(d);
    for (int i = 0; i < MF_KV_GROUP; i++) {
        float r = (x[i] * id + 0x1.8p23f) - 0x1.8p23f; // to a whole number, ties to even
        q[i] = (int8_t)(r > 127 ? 127 : r < -127 ? -127 : r);
    }
    return d;
}

static float get(const mf_kv_view *kv, const uint8_t *half, size_t at, size_t scale) {
    if (kv->type == MF_TYPE_F32) return ((const float *)half)[at];
    if (kv->type == MF_TYPE_F16) return mf_f16_to_f32(((const uint16_t *)half)[at]);
    return mf_f16_to_f32(mf_kv_scales(kv, half)[scale]) * (float)((const int8_t *)half)[at];
}

// Channels stand `step` elements apart from `first` on.
static void read_half(const mf_kv_view *kv, const uint8_t *half, int32_t slot, size_t first, size_t step, float *out) {
    for (int32_t d = 0; d < kv->head_dim; d++) out[d] = get(kv, half, first + (size_t)d * step, mf_kv_scale_index(slot, d));
}

// n channels from d on, of which x is the first.
static void write_bytes(const mf_kv_view *kv, uint8_t *half, int32_t slot, size_t first, size_t step, int32_t d, int32_t n,
                        const float *x) {
    for (int32_t end = d + n; d < end; d += MF_KV_GROUP, x += MF_KV_GROUP) {
        int8_t q[MF_KV_GROUP], *to = (int8_t *)half + first + (size_t)d * step;
        mf_kv_scales(kv, half)[mf_kv_scale_index(slot, d)] = mf_kv_quantize(x, q);
        for (size_t i = 0; i < MF_KV_GROUP; i++) to[i * step] = q[i];
    }
}

static void write_half(const mf_kv_view *kv, uint8_t *half, int32_t slot, size_t first, size_t step, int32_t n,
                       const float *x) {
    for (int32_t d = 0; d < n && kv->type == MF_TYPE_F32; d++) ((float *)half)[first + (size_t)d * step] = x[d];
    for (int32_t d = 0; d < n && kv->type == MF_TYPE_F16; d++)
        ((uint16_t *)half)[first + (size_t)d * step] = mf_f32_to_f16(x[d]);
    if (kv->type == MF_TYPE_Q8_0) write_bytes(kv, half, slot, first, step, 0, n, x);
}

static size_t v_first(const mf_kv_view *kv, int32_t slot) { return (size_t)slot * (size_t)kv->head_dim; }

void mf_kv_read_k(const mf_kv_view *kv, const uint8_t *part, int32_t slot, float *out) {
    read_half(kv, part, slot, mf_kv_k_index(kv->head_dim, slot, 0), MF_KV_LANES, out);
}

void mf_kv_read_v(const mf_kv_view *kv, const uint8_t *part, int32_t slot, float *out) {
    read_half(kv, part + kv->v_offset, slot, v_first(kv, slot), 1, out);
}

void mf_kv_write_k(const mf_kv_view *kv, uint8_t *part, int32_t slot, int32_t n, const float *x) {
    size_t first = mf_kv_k_index(kv->head_dim, slot, 0);
    if (kv->type != MF_TYPE_Q8_0) {
        write_half(kv, part, slot, first, MF_KV_LANES, n, x);
        return;
    }
    float mixed[MF_KV_HADAMARD];
    int32_t width = mf_kv_hadamard_width(kv->head_dim);
    for (int32_t d = 0; d < n; d += width) {
        memcpy(mixed, x + d, (size_t)width * sizeof *x);
        mix(mixed, width);
        write_bytes(kv, part, slot, first, MF_KV_LANES, d, width, mixed);
    }
}

void mf_kv_write_v(const mf_kv_view *kv, uint8_t *part, int32_t slot, int32_t n, const float *x) {
    write_half(kv, part + kv->v_offset, slot, v_first(kv, slot), 1, n, x);
}

void mf_kv_copy_cell(const mf_kv_view *kv, const uint8_t *from, int32_t from_slot, uint8_t *to, int32_t to_slot) {
    size_t bytes = mf_kv_element_bytes(kv->type), n = (size_t)kv->head_dim, step = MF_KV_LANES * bytes;
    const uint8_t *k = from + mf_kv_k_index(kv->head_dim, from_slot, 0) * bytes;
    uint8_t *k_to = to + mf_kv_k_index(kv->head_dim, to_slot, 0) * bytes;
    for (size_t d = 0; d < n; d++) memcpy(k_to + d * step, k + d * step, bytes);
    memcpy(to + kv->v_offset + v_first(kv, to_slot) * bytes, from + kv->v_offset + v_first(kv, from_slot) * bytes,
           n * bytes);
    for (int32_t d = 0; d < kv->head_dim && kv->type == MF_TYPE_Q8_0; d += MF_KV_GROUP)
        for (size_t half = 0; half <= kv->v_offset; half += kv->v_offset)
            mf_kv_scales(kv, to + half)[mf_kv_scale_index(to_slot, d)] =
                mf_kv_scales(kv, from + half)[mf_kv_scale_index(from_slot, d)];
}
