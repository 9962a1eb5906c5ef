// Rope's inverse frequencies in double, with the scaling that the file asks for.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/real.h"
#include "model/arch.h"

typedef struct scaling {
    mf_str type;
    double base, factor, attn_factor, beta_fast, beta_slow, ext_factor;
    int32_t n_ctx_orig;
} scaling;

static bool read_real(const mf_model *m, const char *suffix, double *out, mf_error *err) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", m->arch->name, suffix);
    if (!mf_gguf_find(m->file, key) && m->arch->fallback_prefix)
        snprintf(key, sizeof key, "%s.%s", m->arch->fallback_prefix, suffix);
    float value = (float)*out;
    if (!mf_gguf_get_f32(m->file, key, &value, err)) return false;
    if (!(value > 0 && value < 1e12F))
        return mf_fail(err, MF_ERR_FORMAT, "%s is %g; it must be positive", key, (double)value);
    *out = value;
    return true;
}

static bool read_scaling(const mf_model *m, scaling *s, mf_error *err) {
    *s = (scaling){.type = MF_STR("none"), .base = 10000, .factor = 1, .attn_factor = 1, .beta_fast = 32, .beta_slow = 1};
    s->n_ctx_orig = m->hparams.n_ctx_train;
    char key[128];
    snprintf(key, sizeof key, "%s.rope.scaling.type", m->arch->name);
    if (!mf_gguf_get_str(m->file, key, &s->type, err) || !read_real(m, "rope.freq_base", &s->base, err) ||
        !read_real(m, "rope.scaling.factor", &s->factor, err) ||
        !read_real(m, "rope.scaling.attn_factor", &s->attn_factor, err) ||
        !read_real(m, "rope.scaling.yarn_beta_fast", &s->beta_fast, err) ||
        !read_real(m, "rope.scaling.yarn_beta_slow", &s->beta_slow, err))
        return false;
    uint32_t orig = (uint32_t)s->n_ctx_orig;
    snprintf(key, sizeof key, "%s.rope.scaling.original_context_length", m->arch->name);
    if (!mf_gguf_get_u32(m->file, key, &orig, err)) return false;
    if (orig < 1 || orig > (1U << 24)) return mf_fail(err, MF_ERR_FORMAT, "%s is %u", key, orig);
    s->n_ctx_orig = (int32_t)orig;
    return true;
}

// The pair number whose wavelength makes `rotations` turns over the original context (Peng et al., "YaRN", arXiv:2309.00071, eq. 17-18).
static double yarn_pair(const scaling *s, int32_t n_dims, double rotations) {
    const double pi = 3.14159265358979323846;
    return n_dims * mf_log64(s->n_ctx_orig / (rotations * 2 * pi)) / (2 * mf_log64(s->base));
}

// The whole number at or below x; |x| < 2^31.
static double floor_of(double x) {
    double t = (double)(int32_t)x;
    return t > x ? t - 1 : t;
}

static void apply_yarn(const scaling *s, int32_t n_dims, double *freq, double *magnitude) {
    double low = floor_of(yarn_pair(s, n_dims, s->beta_fast)), high = -floor_of(-yarn_pair(s, n_dims, s->beta_slow));
    if (low < 0) low = 0;
    if (high > n_dims - 1) high = n_dims - 1;
    for (int32_t i = 0; i < n_dims / 2; i++) {
        double span = high - low > 0.001 ? high - low : 0.001;
        double ramp = (i - low) / span;
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        freq[i] = freq[i] / s->factor * ramp + freq[i] * (1 - ramp);
    }
    *magnitude = s->attn_factor * (1 + 0.1 * mf_log64(s->factor));
}

// Frequencies are divided by rope_freqs.weight, where the file has it (Llama 3's scaling is stored so).
static bool apply_factors(const mf_model *m, int32_t n_dims, double *freq, mf_error *err) {
    const mf_gguf_tensor *t = mf_gguf_find_tensor(m->file, "rope_freqs.weight");
    if (!t) return true;
    if (t->type != MF_TYPE_F32 || t->n_dims != 1 || t->ne[0] != (uint64_t)(n_dims / 2))
        return mf_fail(err, MF_ERR_FORMAT, "rope_freqs.weight is %s of %llu; F32 of %d was expected", mf_type_name(t->type),
                       (unsigned long long)t->ne[0], n_dims / 2);
    for (int32_t i = 0; i < n_dims / 2; i++) {
        float factor;
        memcpy(&factor, t->data + (size_t)i * sizeof factor, sizeof factor);
        if (!(factor > 0 && factor < 1e6F))
            return mf_fail(err, MF_ERR_FORMAT, "rope_freqs.weight[%d] is %g", i, (double)factor);
        freq[i] /= factor;
    }
    return true;
}

bool mf_rope_read(mf_model *m, mf_error *err) {
    scaling s;
    if (!read_scaling(m, &s, err)) return false;
    int32_t n = m->hparams.n_rot;
    double *freq = mf_alloc((size_t)n / 2, sizeof *freq);
    if (!freq) return mf_fail_memory(err, (size_t)n / 2 * sizeof *freq, "rope frequencies");
    m->rope = (mf_rope_params){.n_dims = n, .interleaved = m->arch->interleaved_rope, .inv_freq = freq, .magnitude = 1};
    for (int32_t i = 0; i < n / 2; i++) freq[i] = mf_pow64(s.base, -2.0 * i / n);
    if (mf_str_is(s.type, "linear")) {
        for (int32_t i = 0; i < n / 2; i++) freq[i] /= s.factor;
    } else if (mf_str_is(s.type, "yarn")) {
        apply_yarn(&s, n, freq, &m->rope.magnitude);
    } else if (!mf_str_is(s.type, "none")) {
        return mf_fail(err, MF_ERR_UNSUPPORTED, "%s.rope.scaling.type is '%.*s'; supported: none, linear, yarn",
                       m->arch->name, (int)(s.type.len < 40 ? s.type.len : 40), s.type.ptr);
    }
    return apply_factors(m, n, freq, err);
}
