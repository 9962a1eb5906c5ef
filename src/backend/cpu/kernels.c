// The kernel table: its rows and which of them this machine can run.
#include "backend/cpu/kernels.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/cpu/rows.h"

static bool always(const mf_cpu_features *f) {
    (void)f;
    return true;
}

#if defined(__x86_64__)
static bool has_avx2(const mf_cpu_features *f) { return f->avx2; }
static bool has_avxvnni(const mf_cpu_features *f) { return f->avxvnni; }
static bool has_avx512(const mf_cpu_features *f) { return f->avx512 && f->avx512vnni; }
static bool has_amx(const mf_cpu_features *f) { return f->amx && has_avx512(f); }
#elif defined(__aarch64__)
static bool has_neon(const mf_cpu_features *f) { return f->neon; }
static bool has_dotprod(const mf_cpu_features *f) { return f->dotprod; }
static bool has_i8mm(const mf_cpu_features *f) { return f->dotprod && f->i8mm; }
#endif

// Worst first: each row begins as a copy of the one above it here.
static const struct {
    const char *name;
    bool (*usable)(const mf_cpu_features *f);
    void (*matmul)(mf_kernels *k);
    void (*vector)(mf_kernels *k); // NULL: as above
} levels[] = {
    {"scalar", always, mf_matmul_scalar, mf_vector_scalar}, //
#if defined(__x86_64__)
    {"avx2", has_avx2, mf_matmul_avx2, mf_vector_avx2},         //
    {"avxvnni", has_avxvnni, mf_matmul_avxvnni, NULL},          //
    {"avx512", has_avx512, mf_matmul_avx512, mf_vector_avx512}, //
    {"amx", has_amx, mf_matmul_amx, NULL},                      //
#elif defined(__aarch64__)
    {"neon", has_neon, mf_matmul_neon, mf_vector_neon}, //
    {"dotprod", has_dotprod, mf_matmul_dotprod, NULL},  //
    {"i8mm", has_i8mm, mf_matmul_i8mm, NULL},           //
#endif
};

#define LEVELS ((int)(sizeof levels / sizeof levels[0]))

static mf_kernels table[LEVELS];
static const mf_kernels *best_first[LEVELS + 1];
static pthread_once_t filled = PTHREAD_ONCE_INIT;

static void fill(void) {
    for (int i = 0; i < LEVELS; i++) {
        mf_kernels *k = &table[i];
        if (i > 0) *k = table[i - 1];
        k->name = levels[i].name;
        k->usable = levels[i].usable;
        if (k->usable(mf_cpu_features_get())) { // the fillers themselves are compiled for their level
            levels[i].matmul(k);
            if (levels[i].vector) levels[i].vector(k);
        }
        best_first[LEVELS - 1 - i] = k;
    }
}

const mf_kernels *const *mf_kernels_all(void) {
    pthread_once(&filled, fill);
    return best_first;
}

const mf_kernels *mf_kernels_choose(const char *name, mf_error *err) {
    const mf_cpu_features *features = mf_cpu_features_get();
    const bool any = !name || !*name;
    char usable[128] = "";
    for (const mf_kernels *const *k = mf_kernels_all(); *k; k++) {
        if (!(*k)->usable(features)) continue;
        if (any || strcmp((*k)->name, name) == 0) return *k;
        const size_t len = strlen(usable);
        snprintf(usable + len, sizeof usable - len, "%s%s", len ? ", " : "", (*k)->name);
    }
    mf_fail(err, MF_ERR_ARGUMENT, "kernel set '%.32s' is unknown or not usable on this processor; usable: %s",
            any ? "" : name, usable);
    return NULL;
}
