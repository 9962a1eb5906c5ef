#include "cli/machine.h"

#include <unistd.h>

void mf_machine_features(const mf_cpu_features *f, mf_buf *out) {
    const struct {
        bool has;
        const char *name;
    } all[] = {{f->avx2, "avx2"}, {f->avxvnni, "avxvnni"}, {f->avx512, "avx512"},   {f->avx512vnni, "avx512vnni"},
               {f->amx, "amx"},   {f->neon, "neon"},       {f->dotprod, "dotprod"}, {f->i8mm, "i8mm"}};
    size_t start = out->len;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].has) mf_buf_printf(out, "%s%s", out->len > start ? " " : "", all[i].name);
    if (out->len == start) mf_buf_text(out, "none");
}

const char *mf_machine_row_needs(const char *row) {
    static const struct {
        const char *row, *needs;
    } all[] = {
        {"avx2", "AVX2, FMA, F16C and BMI2"},
        {"avxvnni", "AVX-VNNI"},
        {"avx512", "AVX-512 F, BW, DQ, VL and VNNI"},
        {"amx", "AMX tiles with int8, allowed by the kernel"},
        {"neon", "NEON"},
        {"dotprod", "the dot product instructions"},
        {"i8mm", "the int8 matrix instructions"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (mf_str_is(mf_str_of(row), all[i].row)) return all[i].needs;
    return "";
}

uint64_t mf_machine_memory_total(void) {
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}
