#include "base/cpu.h"

#include <pthread.h>
#include <string.h>

// What this program has learnt about its processor, once.
static struct {
    pthread_once_t once;
    mf_cpu_features features;
    char name[64];
} cpu = {.once = PTHREAD_ONCE_INIT};

#if defined(__x86_64__)

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct registers {
    unsigned a, b, c, d;
} registers;

static registers cpuid(unsigned leaf, unsigned subleaf) {
    registers r = {0, 0, 0, 0};
    __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d); // leaves the zeros where the leaf is unknown
    return r;
}

static bool bit(unsigned word, int n) { return word >> n & 1; }

// Which register states the operating system saves (XCR0).
static uint64_t saved_state(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

// Linux gives the 8 KB of tile state only to a process that asks.
static bool ask_for_tiles(void) {
#if defined(__linux__) && defined(SYS_arch_prctl)
    const long arch_req_xcomp_perm = 0x1023, xfeature_tile_data = 18;
    return syscall(SYS_arch_prctl, arch_req_xcomp_perm, xfeature_tile_data) == 0;
#else
    return false;
#endif
}

static void read_features(mf_cpu_features *f) {
    registers one = cpuid(1, 0), seven = cpuid(7, 0), seven_one = cpuid(7, 1);
    uint64_t state = bit(one.c, 27) ? saved_state() : 0;
    bool ymm = (state & 0x6) == 0x6, zmm = (state & 0xE6) == 0xE6, tiles = (state & 0x60000) == 0x60000;
    bool avx = bit(one.c, 28), fma = bit(one.c, 12), f16c = bit(one.c, 29);
    f->avx2 = ymm && avx && fma && f16c && bit(seven.b, 5) && bit(seven.b, 8);
    f->avxvnni = f->avx2 && bit(seven_one.a, 4);
    f->avx512 = f->avx2 && zmm && bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 30) && bit(seven.b, 31);
    f->avx512vnni = f->avx512 && bit(seven.c, 11);
    f->amx = tiles && bit(seven.d, 24) && bit(seven.d, 25) && ask_for_tiles();
}

static void read_name(char name[64]) {
    char brand[49] = "";
    if ((unsigned)__get_cpuid_max(0x80000000, NULL) < 0x80000004) return;
    for (unsigned i = 0; i < 3; i++) {
        registers r = cpuid(0x80000002 + i, 0);
        memcpy(brand + 16 * i, &r, 16);
    }
    brand[48] = 0;
    const char *start = brand + strspn(brand, " ");
    size_t len = strlen(start);
    while (len && start[len - 1] == ' ') len--;
    if (len == 0) return;
    memcpy(name, start, len);
    name[len] = 0;
}

#elif defined(__aarch64__)

#if defined(__linux__)
#include <sys/auxv.h>
#endif

static void read_features(mf_cpu_features *f) {
    f->neon = true; // part of every 64-bit Arm processor
#if defined(__linux__)
    const unsigned long hwcap_asimddp = 1ul << 20, hwcap2_i8mm = 1ul << 13;
    f->dotprod = getauxval(AT_HWCAP) & hwcap_asimddp;
    f->i8mm = getauxval(AT_HWCAP2) & hwcap2_i8mm;
#endif
}

static void read_name(char name[64]) { (void)name; }

#else

static void read_features(mf_cpu_features *f) { (void)f; }

static void read_name(char name[64]) { (void)name; }

#endif

static void read_cpu(void) {
    memcpy(cpu.name, "unknown", sizeof "unknown");
    read_features(&cpu.features);
    read_name(cpu.name);
}

const mf_cpu_features *mf_cpu_features_get(void) {
    pthread_once(&cpu.once, read_cpu);
    return &cpu.features;
}

const char *mf_cpu_name(void) {
    pthread_once(&cpu.once, read_cpu);
    return cpu.name;
}
