#include "model/arch.h"

static const mf_arch *const archs[] = {&mf_arch_llama, &mf_arch_qwen2, &mf_arch_qwen3};

const mf_arch *const *mf_archs(size_t *n) {
    *n = sizeof archs / sizeof archs[0];
    return archs;
}
