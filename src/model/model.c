#include "model/model.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/arch.h"

static const mf_arch *find_arch(const mf_gguf *file, mf_error *err) {
    mf_str name = {0};
    if (!mf_gguf_get_str(file, "general.architecture", &name, err)) return NULL;
    if (!name.ptr) return mf_fail(err, MF_ERR_FORMAT, "the key general.architecture is missing"), NULL;
    size_t n;
    const mf_arch *const *archs = mf_archs(&n);
    mf_buf known = {0};
    const mf_arch *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (mf_str_is(name, archs[i]->name)) found = archs[i];
        mf_buf_printf(&known, "%s%s", i ? ", " : "", archs[i]->name);
    }
    if (!found)
        mf_fail(err, MF_ERR_UNSUPPORTED, "unsupported architecture '%.*s'; supported: %s",
                (int)(name.len < 60 ? name.len : 60), name.ptr, known.failed ? "" : known.data);
    free(known.data);
    return found;
}

mf_model *mf_model_new(const mf_gguf *file, mf_error *err) {
    const mf_arch *arch = find_arch(file, err);
    if (!arch) return NULL;
    mf_model *m = mf_alloc(1, sizeof *m);
    if (!m) return mf_fail_memory(err, sizeof *m, "the model"), NULL;
    m->arch = arch;
    m->file = file;
    if (mf_hparams_read(m, err) && mf_rope_read(m, err) && mf_unread_keys_check(m, err) && mf_weights_bind(m, err)) return m;
    mf_model_free(m);
    return NULL;
}

void mf_model_free(mf_model *m) {
    if (!m) return;
    for (size_t i = 0; i < m->n_weights; i++) {
        if (m->device) m->device->class->weight_release(m->device, &m->weights[i]);
        free((char *)m->weights[i].name);
    }
    free(m->weights);
    free(m->layers);
    free((double *)m->rope.inv_freq);
    free((double *)m->rope_long.inv_freq);
    free(m);
}

const char *mf_model_arch(const mf_model *m) { return m->arch->name; }

uint64_t mf_model_n_params(const mf_model *m) {
    uint64_t n = 0;
    for (size_t i = 0; i < mf_gguf_n_tensors(m->file); i++) {
        const mf_gguf_tensor *t = mf_gguf_tensor_at(m->file, i);
        n += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
    }
    return n;
}

const mf_rope_params *mf_model_rope(const mf_model *m, int32_t n_ctx) {
    return m->rope_long.inv_freq && n_ctx > m->n_ctx_orig ? &m->rope_long : &m->rope;
}

bool mf_model_build(const mf_model *m, int32_t n_ctx, mf_graph *g, mf_error *err) {
    const int32_t window = m->hparams.window;
    if (window && n_ctx > window)
        return mf_fail(err, MF_ERR_UNSUPPORTED,
                       "%s.attention.sliding_window is %d and the context %d: attention over a window is not supported; the "
                       "largest context (--ctx) is %d",
                       m->arch->name, window, n_ctx, window);
    *g = (mf_graph){.layer = -1, .output = -1};
    g->output = m->arch->build(m, mf_model_rope(m, n_ctx), g);
    if (!g->failed) return true;
    if (err) *err = g->error;
    mf_graph_free(g);
    return false;
}
