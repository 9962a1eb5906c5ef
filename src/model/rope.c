// Rope's inverse frequencies in double, with the scaling that the file asks for.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/real.h"
#include "model/arch.h"

typedef struct scaling {
    mf_str type;
    double base, factor, attn_factor, yarn_magnitude, beta_fast, beta_slow; // yarn_magnitude 0: not given
} scaling;

static bool read_real(const mf_model *m, const char *suffix, double *out, mf_error *err) {
    char key[128];
    mf_model_key(m, suffix, key);
    if (!mf_gguf_find(m->file, key)) return true;
    float value = 0;
    if (!mf_gguf_get_f32(m->file, key, &value, err)) return false;
    if (!(value > 0 && value < 1e12F))
        return mf_fail(err, MF_ERR_FORMAT, "%s is %g; it must be positive and below 1e12", key, (double)value);
    *out = value;
    return true;
}

// Without a type a factor is a linear one, as in files that are older than the types; rope.scale_linear is its oldest name.
static bool read_scaling(mf_model *m, scaling *s, mf_error *err) {
    *s = (scaling){.type = MF_STR("linear"), .base = 10000, .factor = 1, .attn_factor = 1, .beta_fast = 32, .beta_slow = 1};
    m->n_ctx_orig = m->hparams.n_ctx_train;
    char key[128];
    if (!mf_gguf_get_str(m->file, mf_model_key(m, "rope.scaling.type", key), &s->type, err) ||
        !read_real(m, "rope.freq_base", &s->base, err) || !read_real(m, "rope.scale_linear", &s->factor, err) ||
        !read_real(m, "rope.scaling.factor", &s->factor, err) ||
        !read_real(m, "rope.scaling.attn_factor", &s->attn_factor, err) ||
        !read_real(m, "rope.scaling.yarn_attn_factor", &s->yarn_magnitude, err) ||
        !read_real(m, "rope.scaling.yarn_beta_fast", &s->beta_fast, err) ||
        !read_real(m, "rope.scaling.yarn_beta_slow", &s->beta_slow, err))
        return false;
    uint32_t orig = (uint32_t)m->n_ctx_orig;
    if (!mf_gguf_get_u32(m->file, mf_model_key(m, "rope.scaling.original_context_length", key), &orig, err)) return false;
    if (orig < 1 || orig > MF_MAX_CTX) return mf_fail(err, MF_ERR_FORMAT, "%s is %u", key, orig);
    m->n_ctx_orig = (int32_t)orig;
    if (!(s->base > 1)) // the same wavelength for every pair
        return mf_fail(err, MF_ERR_FORMAT, "%s is %g; it must be above 1", mf_model_key(m, "rope.freq_base", key), s->base);
    return true;
}

// Linear scaling and YaRN stretch the original context by their factor, whether context_length says so or not.
static bool stretch_context(mf_model *m, const scaling *s, mf_error *err) {
    const double stretched = (double)m->n_ctx_orig * s->factor;
    char key[128];
    if (s->factor <= 1) return true;
    if (stretched > MF_MAX_CTX)
        return mf_fail(err, MF_ERR_FORMAT, "%s is %g: %d tokens become %.0f, and a context is at most %d",
                       mf_model_key(m, "rope.scaling.factor", key), s->factor, m->n_ctx_orig, stretched, MF_MAX_CTX);
    if ((int32_t)stretched > m->hparams.n_ctx_train) m->hparams.n_ctx_train = (int32_t)stretched;
    return true;
}

// The pair number whose wavelength makes `rotations` turns over the original context (Peng et al., "YaRN", arXiv:2309.00071, eq. 17-18).
static double yarn_pair(const mf_model *m, const scaling *s, double rotations) {
    const double pi = 3.14159265358979323846;
    return m->rope.n_dims * mf_log64(m->n_ctx_orig / (rotations * 2 * pi)) / (2 * mf_log64(s->base));
}

// The whole number at or below x; x itself where |x| >= 2^31.
static double floor_of(double x) {
    if (!(x > -0x1p31 && x < 0x1p31)) return x;
    double t = (double)(int32_t)x;
    return t > x ? t - 1 : t;
}

static bool scale_none(mf_model *m, const scaling *s, double *freq, mf_error *err) {
    (void)m, (void)s, (void)freq, (void)err;
    return true;
}

static bool scale_linear(mf_model *m, const scaling *s, double *freq, mf_error *err) {
    for (int32_t i = 0; i < m->rope.n_dims / 2; i++) freq[i] /= s->factor;
    return stretch_context(m, s, err);
}

// Fast pairs stay, slow ones are divided, those between are mixed; cos and sin grow by 1 + 0.1 ln(factor) unless the file says by how
// much (a 1 there is a writer's way of saying nothing).
static bool scale_yarn(mf_model *m, const scaling *s, double *freq, mf_error *err) {
    int32_t n_dims = m->rope.n_dims;
    double low = floor_of(yarn_pair(m, s, s->beta_fast)), high = -floor_of(-yarn_pair(m, s, s->beta_slow));
    if (low < 0) low = 0;
    if (high > n_dims - 1) high = n_dims - 1;
    for (int32_t i = 0; i < n_dims / 2; i++) {
        double span = high - low > 0.001 ? high - low : 0.001;
        double ramp = (i - low) / span;
        ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
        freq[i] = freq[i] / s->factor * ramp + freq[i] * (1 - ramp);
    }
    double usual = s->factor > 1 ? 1 + 0.1 * mf_log64(s->factor) : 1;
    bool given = s->yarn_magnitude > 0 && (s->yarn_magnitude < 1 || s->yarn_magnitude > 1);
    m->rope.magnitude *= given ? s->yarn_magnitude : usual;
    return stretch_context(m, s, err);
}

// Divides the frequencies by a tensor's values. *found: it is in the file.
static bool divide(const mf_model *m, const char *name, double *freq, bool *found, mf_error *err) {
    int32_t half = m->rope.n_dims / 2;
    const mf_gguf_tensor *t = mf_gguf_find_tensor(m->file, name);
    *found = t != NULL;
    if (!t) return true;
    if (t->type != MF_TYPE_F32 || t->n_dims != 1 || t->ne[0] != (uint64_t)half)
        return mf_fail(err, MF_ERR_FORMAT, "%s is %s of %llu; F32 of %d was expected", name, mf_type_name(t->type),
                       (unsigned long long)t->ne[0], half);
    for (int32_t i = 0; i < half; i++) {
        float factor;
        memcpy(&factor, t->data + (size_t)i * sizeof factor, sizeof factor);
        if (!(factor > 0 && factor < 1e6F)) return mf_fail(err, MF_ERR_FORMAT, "%s[%d] is %g", name, i, (double)factor);
        freq[i] /= factor;
    }
    return true;
}

static const char *const long_factors = "rope_factors_long.weight", *const short_factors = "rope_factors_short.weight";

// LongRoPE (Ding et al., arXiv:2402.13753): a divisor for each pair, other ones where the context is above the original. Files keep the
// growth of cos and sin in attn_factor.
static bool scale_longrope(mf_model *m, const scaling *s, double *freq, mf_error *err) {
    size_t half = (size_t)m->rope.n_dims / 2;
    for (size_t i = 0; i < half; i++) freq[i] /= s->factor;
    double *other = mf_alloc(half, sizeof *other);
    if (!other) return mf_fail_memory(err, half * sizeof *other, "rope frequencies");
    memcpy(other, freq, half * sizeof *other);
    m->rope_long = m->rope;
    m->rope_long.inv_freq = other;
    bool has_long, has_short;
    if (!divide(m, long_factors, other, &has_long, err) || !divide(m, short_factors, freq, &has_short, err)) return false;
    return (has_long && has_short) ||
           mf_fail(err, MF_ERR_FORMAT, "rope.scaling.type is 'longrope' and the tensor %s is missing",
                   has_long ? short_factors : long_factors);
}

static const struct {
    const char *name;
    bool (*apply)(mf_model *m, const scaling *s, double *freq, mf_error *err);
} scalings[] = {{"none", scale_none}, {"linear", scale_linear}, {"yarn", scale_yarn}, {"longrope", scale_longrope}};

static bool apply(mf_model *m, const scaling *s, double *freq, mf_error *err) {
    for (size_t i = 0; i < sizeof scalings / sizeof scalings[0]; i++)
        if (mf_str_is(s->type, scalings[i].name)) return scalings[i].apply(m, s, freq, err);
    return mf_fail(err, MF_ERR_UNSUPPORTED, "%s.rope.scaling.type is '%.*s'; supported: none, linear, yarn, longrope",
                   m->arch->name, (int)(s->type.len < 40 ? s->type.len : 40), s->type.ptr);
}

bool mf_rope_read(mf_model *m, mf_error *err) {
    scaling s;
    if (!read_scaling(m, &s, err)) return false;
    int32_t n = m->hparams.n_rot;
    double *freq = mf_alloc((size_t)n / 2, sizeof *freq);
    if (!freq) return mf_fail_memory(err, (size_t)n / 2 * sizeof *freq, "rope frequencies");
    m->rope = (mf_rope_params){
        .n_dims = n, .interleaved = m->arch->interleaved_rope, .inv_freq = freq, .magnitude = s.attn_factor};
    for (int32_t i = 0; i < n / 2; i++) freq[i] = mf_pow64(s.base, -2.0 * i / n);
    if (!apply(m, &s, freq, err)) return false;
    if (!m->rope_long.inv_freq &&
        (mf_gguf_find_tensor(m->file, long_factors) || mf_gguf_find_tensor(m->file, short_factors)))
        return mf_fail(err, MF_ERR_UNSUPPORTED, "the tensor %s is for a rope.scaling.type of 'longrope', which is '%.*s'",
                       mf_gguf_find_tensor(m->file, long_factors) ? long_factors : short_factors, (int)s.type.len,
                       s.type.ptr);
    // Llama 3's scaling is stored as such a tensor.
    bool found;
    if (!divide(m, "rope_freqs.weight", freq, &found, err)) return false;
    return !(found && m->rope_long.inv_freq) ||
           mf_fail(err, MF_ERR_UNSUPPORTED, "the tensors rope_freqs.weight and %s are both there", long_factors);
}
